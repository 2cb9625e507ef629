"""Netting per instant, shared by ISTREAM, DSTREAM and relation outputs, and the order of a derived stream's instants.

Invariant: what leaves and enters equal at one instant cancels (docs/semantics S1); only instants that hold both
signs are looked at row by row.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from minidsms.elements import AnyArray, Batch, BoolArray, Int64Array, Schema, row_words
from minidsms.kernels.arrays import normal

Ranks = Callable[[Int64Array], Int64Array]
"""Ranks of TEXT codes, in the order of their texts."""


def load() -> None:
    """Load the kernels of `surviving` when a query that may need them starts, not at its first mixed instant."""
    importlib.import_module("minidsms.kernels.netting")


def surviving(batch: Batch) -> BoolArray | None:
    """Which elements of whole instants remain after netting; None when all do."""
    if batch.sign is None:
        return None
    n = len(batch)
    insertions = batch.sign > 0
    if insertions.all() or not insertions.any():
        return None
    first = np.flatnonzero(np.concatenate([[True], batch.ts[1:] != batch.ts[:-1]]))
    # Deletions come first, so an instant has both signs when its first and last elements differ.
    last = np.append(first[1:], n) - 1
    mixed = insertions[first] != insertions[last]
    if not mixed.any():
        return None
    everywhere = bool(mixed.all())
    rows = None if everywhere else np.flatnonzero(np.repeat(mixed, last - first + 1))
    part = batch if rows is None else batch.take(rows)
    kept = np.ones(len(part), np.bool_)
    deletions = len(part) - int(np.count_nonzero(part.signs > 0))
    heads = np.full(1 << deletions.bit_length(), -1, np.int64)
    chain = np.empty(len(part), np.int64)
    from minidsms.kernels import netting as kernels

    columns = part.columns
    words = row_words(columns) if columns else np.zeros((len(part), 1), np.int64)
    pairs = kernels.net_instants(normal(part.ts), normal(part.signs), words, heads, chain, kept)
    if not pairs:
        return None
    if rows is None:
        return kept
    result = np.ones(n, np.bool_)
    result[rows] = kept
    return result


def ordered_by_value(batch: Batch, schema: Schema, ranks: Ranks | None) -> Batch:
    """The elements with the rows of each instant ordered column by column, NULL first (docs/semantics T3)."""
    if len(batch) < 2 or bool((batch.ts[1:] != batch.ts[:-1]).all()):
        return batch
    keys: list[AnyArray] = [batch.ts]
    for column, type_ in zip(batch.columns, schema.types):
        if column.valid is not None:
            keys.append(column.valid)
        if type_.is_coded:
            assert ranks is not None, "TEXT columns are ordered by ranks"
            valid = np.ones(len(column), np.bool_) if column.valid is None else column.valid
            values = np.zeros(len(column), np.int64)
            values[valid] = ranks(column.values[valid])  # type: ignore[arg-type]
            keys.append(values)
        else:
            keys.append(column.values)
    return batch.take(np.lexsort(keys[::-1]))


def as_stream(batch: Batch, keep_seq: bool) -> Batch:
    """The same elements, all as arrivals.

    Without keep_seq neither arrival numbers nor references go out: they are those of the windows below, and in the
    derived stream they mean nothing and do not ascend.
    """
    if not keep_seq:
        return Batch(batch.ts, None, batch.columns, is_own=batch.is_own)
    result = batch.slice(0, len(batch))
    result.sign = None
    return result
