"""Netting per instant, shared by ISTREAM, DSTREAM and relation outputs, and the order of a derived stream's instants.

Invariant: what leaves and enters equal at one instant cancels (docs/semantics S1); only instants that hold both
signs are looked at row by row.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Batch, Int64Array, Schema
from minidsms.kernels.arrays import normal, places

_NO_ROWS: Int64Array = np.zeros(0, np.int64)
Ranks = Callable[[Int64Array], Int64Array]
"""Ranks of TEXT codes, in the order of their texts."""


@functools.cache
def load() -> Any:
    """The kernels of `surviving`, which are loaded when a query that may need them starts, not at its first mixed
    instant.
    """
    return importlib.import_module("minidsms.kernels.netting")


def surviving(batch: Batch, wanted: int = 0) -> Int64Array | None:
    """Which elements of whole instants remain after netting, ascending; None when all do.

    wanted: of which sign elements are wanted, 0: of both.
    """
    sign = batch.sign
    if sign is None:
        return None
    n = len(sign)
    if n == 1:
        return None if not wanted or sign.item(0) == wanted else _NO_ROWS
    kernels = load()
    ts, sign, rows = normal(batch.ts), normal(sign), np.empty(n, np.int64)
    m = kernels.of_sign(ts, sign, batch.is_netted, wanted, rows)
    if m == kernels.MIXED:
        table, _kept = places(batch.columns)
        heads, chain = np.empty(max(8, 2 * n), np.int64), np.empty(n, np.int64)
        m = kernels.net_instants(ts, sign, table, wanted, heads, chain, rows)
    return None if m == n else rows[:m]


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
    if batch.sign is None and batch.seq is None:
        return batch
    if not keep_seq:
        return Batch(batch.ts, None, batch.columns, is_own=batch.is_own)
    result = batch.slice(0, len(batch))
    result.sign = None
    return result
