"""What DISTINCT and the set operators share: multiplicities of rows, settled at the end of each instant.

Invariant: between instants the output relation holds each row as often as the rule says of its multiplicities on
the left and on the right; a row that is nowhere any more is forgotten.  docs/semantics R1, R5; Babu 2005, table
2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Batch, Column, Int8Array, Int64Array, Schema, row_words
from minidsms.kernels import counting as kernels
from minidsms.kernels.arrays import normal
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.key_table import KeyTable


class CountedRows:
    """The synopsis: every distinct row with [times on the left, times on the right, times in the output]."""

    def __init__(self, schema: Schema) -> None:
        self.table = KeyTable.of_schema(schema)
        self.counts: Int64Array = np.zeros((self.table.capacity, 3), np.int64)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.table.nbytes + self.counts.nbytes

    def acquire(self, words: Int64Array) -> Int64Array:
        """The rows' ids; counts is long enough for them."""
        ids = self.table.acquire(words)
        missing = self.table.capacity - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros((missing, 3), np.int64)])
        return ids

    def forget(self, ids: Int64Array) -> None:
        """Free those of these rows that are nowhere, and the memory if most of it is free."""
        self.table.release(ids[~self.counts[ids].any(axis=1)])
        kept = self.table.compact()
        if kept is not None:
            counts = np.zeros((self.table.capacity, 3), np.int64)
            counts[: len(kept)] = self.counts[kept]
            self.counts = counts

    def arrays(self) -> dict[str, AnyArray]:
        """The state."""
        return {**self.table.arrays(), "counts": self.counts[self.table.live()]}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take a state back."""
        self.table.restore(arrays)
        self.counts = np.zeros((self.table.capacity, 3), np.int64)
        self.counts[: len(arrays["counts"])] = arrays["counts"]

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held."""
        return self.table.live_codes()


class CountingOperator(Operator):
    """A rule over the multiplicities of one or two inputs of equal column types."""

    is_netted = True

    def __init__(self, inputs: Sequence[Queue], rule: int, schema: Schema) -> None:
        super().__init__(inputs, schema)
        self.rows = CountedRows(schema)
        self._rule = rule

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        present = [batch for batch in batches if batch is not None and len(batch)]
        if not present:
            return
        ids = self.rows.acquire(_joined([row_words(typed(b.columns, self.schema)) for b in present]))
        n = len(ids)
        left_ts, left_sign = _times(batches[0])
        right_ts, right_sign = _times(batches[1] if len(batches) > 1 else None)
        left_ids, right_ids = ids[: len(left_ts)], ids[len(left_ts) :]
        out_ts, out_sign, out_ids = np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n, np.int64)
        n_out = kernels.count_rows(
            self._rule,
            left_ts,
            left_sign,
            left_ids,
            right_ts,
            right_sign,
            right_ids,
            self.rows.counts,
            out_ts,
            out_sign,
            out_ids,
        )
        result = None
        if n_out:
            columns = self.rows.table.columns(out_ids[:n_out], self.schema)
            result = Batch(out_ts[:n_out], out_sign[:n_out], columns)
        self.rows.forget(ids)
        if result is not None:
            yield result

    def contents(self) -> Batch:
        """The rows that are put out at present, as insertions (ts of no meaning)."""
        ids = np.repeat(np.arange(len(self.rows.counts)), self.rows.counts[:, 2])
        return Batch(np.zeros(len(ids), np.int64), None, self.rows.table.columns(ids, self.schema))

    def describe(self) -> Description:
        return Description(self.name, "", {"rows": len(self.rows), "bytes": self.rows.nbytes})

    def synopses(self) -> tuple[Any, ...]:
        return (self.rows,)


def typed(columns: Sequence[Column], schema: Schema) -> list[Column]:
    """The columns in the arrays the schema asks for: a column of bare NULLs may come as another type's zeros."""
    return [
        c if c.values.dtype == t.dtype else Column(c.values.astype(t.dtype), c.valid)
        for c, t in zip(columns, schema.types)
    ]


def _times(batch: Batch | None) -> tuple[Int64Array, Int8Array]:
    if batch is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int8)
    return normal(batch.ts), normal(batch.signs)


def _joined(words: list[Int64Array]) -> Int64Array:
    return words[0] if len(words) == 1 else np.concatenate(words)
