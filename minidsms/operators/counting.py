"""What DISTINCT and the set operators share: multiplicities of rows, settled at the end of each instant.

Invariant: between instants the output relation holds each row as often as the rule says of its multiplicities on
the left and on the right; a row that is nowhere any more is forgotten.  docs/semantics R1, R5; Babu 2005, table
2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Batch, Column, Int8Array, Int64Array, Schema
from minidsms.kernels import counting as kernels
from minidsms.kernels.arrays import normal
from minidsms.kernels.grouped_slice import Elements, Groups
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.operators.union_all import typed
from minidsms.queues import Queue
from minidsms.synopses.key_table import ArrivalRing, KeyTable
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.stub import NO_INSTANTS

_NO_SIGNS: Int8Array = np.zeros(0, np.int8)


class CountedRows:
    """The synopsis: every distinct row with [times on the left, times on the right, times in the output].

    fifo: of each side, whether its deletions come in the order of its insertions, so that a row that leaves need not be
    looked up.
    """

    def __init__(self, schema: Schema, fifo: Sequence[bool]) -> None:
        self.schema = schema
        self.table = KeyTable.of_schema(schema)
        self.counts: Int64Array = np.zeros((self.table.capacity, 3), np.int64)
        self.arrivals = [ArrivalRing() if is_fifo else None for is_fifo in fifo]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.table.nbytes + self.counts.nbytes + sum(ring.nbytes for ring in self.arrivals if ring is not None)

    def acquire(self, batch: Batch, side: int) -> Int64Array:
        """The ids of the rows of one side's batch; counts is long enough for them."""
        ring = self.arrivals[side]
        if ring is None:
            ids = self._ids(batch.columns)
        elif (place := self._place(batch)) is not None:
            ids = self._ids_in_store(batch, *place, ring)
        elif batch.sign is None:
            ids = ring.recall(np.ones(len(batch), np.int8), self._ids(batch.columns))
        else:
            # Only insertions are looked up, and their columns read.
            columns = batch.columns_at(range(batch.width), np.flatnonzero(batch.sign > 0))
            ids = ring.recall(normal(batch.sign), self._ids(columns))
        missing = self.table.capacity - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros((missing, 3), np.int64)])
        return ids

    def _place(self, batch: Batch) -> tuple[StreamStore, int] | None:
        """Where the elements' only column stands, and its number there, if it need not be converted."""
        if batch.reference is None or batch.width != 1:
            return None
        store, (number,) = batch.reference
        if isinstance(store, StreamStore) and store.schema[number].type is self.schema[0].type:
            return store, number
        return None

    def _ids_in_store(self, batch: Batch, store: StreamStore, number: int, ring: ArrivalRing) -> Int64Array:
        n = len(batch)
        ids = np.empty(n, np.int64)
        sign = np.ones(n, np.int8) if batch.sign is None else normal(batch.sign)
        assert batch.seq is not None
        elements = Elements(normal(batch.ts), sign, normal(batch.seq), *store.places(), np.array((number,)))
        present = ring.parts(n)
        done = 0
        while True:
            done = kernels.find_rows(elements, Groups(*self.table.parts, *present), ids, done)
            if done == n:
                return ids
            self.table.grow()

    def _ids(self, columns: list[Column]) -> Int64Array:
        return self.table.acquire_columns(typed(columns, self.schema))

    def forget(self, ids: Int64Array) -> None:
        """Free those of these rows that are nowhere, and the memory if most of it is free."""
        self.table.release(ids[~self.counts[ids].any(axis=1)])
        kept = self.table.compact()
        if kept is not None:
            counts = np.zeros((self.table.capacity, 3), np.int64)
            counts[: len(kept)] = self.counts[kept]
            self.counts = counts
            for ring in self.arrivals:
                if ring is not None:
                    ring.renumber(kept)

    def arrays(self) -> dict[str, AnyArray]:
        """The state."""
        live = self.table.live()
        state: dict[str, AnyArray] = {**self.table.arrays(), "counts": self.counts[live]}
        for side, ring in enumerate(self.arrivals):
            if ring is not None:
                state[f"arrivals{side}"] = ring.arrays(live)["arrivals"]
        return state

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take a state back."""
        self.table.restore(arrays)
        self.counts = np.zeros((self.table.capacity, 3), np.int64)
        self.counts[: len(arrays["counts"])] = arrays["counts"]
        for side, ring in enumerate(self.arrivals):
            if ring is not None:
                ring.restore({"arrivals": arrays[f"arrivals{side}"]})

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held."""
        return self.table.live_codes()


class CountingOperator(Resuming):
    """A rule over the multiplicities of one or two inputs of equal column types.

    fifo: of each input, whether its deletions come in the order of its insertions; none, if not given.
    """

    acts_on_time = False
    is_self_contained = True

    def __init__(self, inputs: Sequence[Queue], rule: int, schema: Schema, fifo: Sequence[bool] = ()) -> None:
        super().__init__(inputs, schema)
        self.rows = CountedRows(schema, fifo or [False] * len(inputs))
        self._rule = rule

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        left, right = self._side(batches, 0), self._side(batches, 1)
        n = len(left.ids) + len(right.ids)
        if not n:
            return
        answer = kernels.Side(np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n, np.int64))
        gone, written = np.empty(n, np.int64), np.zeros(2, np.int64)
        kernels.count_rows(self._rule, left, right, self.rows.counts, answer, gone, written)
        n_out, n_gone = int(written[0]), int(written[1])
        result = None
        if n_out:
            columns = self.rows.table.columns(answer.ids[:n_out], self.schema)
            result = Batch(answer.ts[:n_out], answer.sign[:n_out], columns)
        if n_gone:
            self.rows.forget(gone[:n_gone])
        if result is not None:
            yield result

    def _side(self, batches: Sequence[Batch | None], side: int) -> kernels.Side:
        """The instants, signs and row ids of what one side brings."""
        batch = self.uncounted(batches[side] if side < len(batches) else None)
        if batch is None or not len(batch):
            return kernels.Side(NO_INSTANTS, _NO_SIGNS, NO_INSTANTS)
        return kernels.Side(normal(batch.ts), normal(batch.signs), self.rows.acquire(batch, side))

    def contents(self) -> Batch:
        """The rows that are put out at present, as insertions (ts of no meaning)."""
        ids = np.repeat(np.arange(len(self.rows.counts)), self.rows.counts[:, 2])
        return Batch(np.zeros(len(ids), np.int64), None, self.rows.table.columns(ids, self.schema))

    def describe(self) -> Description:
        return Description(self.name, "", {"rows": len(self.rows), "bytes": self.rows.nbytes})

    def synopses(self) -> tuple[Any, ...]:
        return (self.rows,)
