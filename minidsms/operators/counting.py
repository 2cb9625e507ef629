"""What DISTINCT and the set operators share: multiplicities of rows, settled at the end of each instant.

Invariant: between instants the output relation holds each row as often as the rule says of its multiplicities on
the left and on the right; a row that is nowhere any more is forgotten.  docs/semantics R1, R5; Babu 2005, table
2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Batch, Column, Int8Array, Int64Array, Schema
from minidsms.kernels import counting as kernels
from minidsms.kernels.arrays import normal
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.operators.union_all import typed
from minidsms.queues import Queue
from minidsms.synopses.key_table import ArrivalRing, KeyTable
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.stub import NO_INSTANTS

_Side = tuple[Int64Array, Int8Array, Int64Array]
"""The instants, signs and row ids of what one side brings."""
_NOTHING: _Side = NO_INSTANTS, np.zeros(0, np.int8), NO_INSTANTS


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
        self._numbers: Int64Array = np.full(1, -1, np.int64)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.counts.nbytes + sum(ring.nbytes for ring in self.arrivals if ring is not None)

    def acquire(self, batch: Batch, ts: Int64Array, sign: Int8Array, side: int) -> Int64Array:
        """The ids of the rows of one side's batch; counts is long enough. ts, sign: its, as kernels take them."""
        ring = self.arrivals[side]
        if ring is None:
            ids = self._ids(batch.columns)
        elif (place := self._place(batch)) is not None:
            assert batch.seq is not None
            store, number = place
            # Plain tuples in the places of the kernels' bundles: a NamedTuple takes seven times as long.
            elements = ts, sign, normal(batch.seq), *store.places(), self._number(number)
            ids = self._ids_in_store(elements, ring)
        elif batch.sign is None:
            ids = ring.recall(sign, self._ids(batch.columns))
        else:
            # Only insertions are looked up, and their columns read.
            columns = batch.columns_at(range(batch.width), (sign > 0).nonzero()[0])
            ids = ring.recall(sign, self._ids(columns))
        missing = self.table.capacity - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros((missing, 3), np.int64)])
        return ids

    def _place(self, batch: Batch) -> tuple[StreamStore, int] | None:
        """Where the elements' only column stands, and its number there, if it need not be converted."""
        reference = batch.reference
        if reference is None or batch.width != 1:
            return None
        store, (number,) = reference
        if isinstance(store, StreamStore) and store.types[number] is self.schema[0].type:
            return store, number
        return None

    def _number(self, number: int) -> Int64Array:
        """As kernels take it."""
        if self._numbers.item(0) != number:
            self._numbers = np.array((number,), np.int64)
        return self._numbers

    def _ids_in_store(self, elements: Sequence[Any], ring: ArrivalRing) -> Int64Array:
        find: Callable[..., int] = kernels.find_rows
        sign = elements[1]
        n = len(sign)
        ids: Int64Array = np.empty(n, np.int64)
        present = ring.parts(sign)
        done = 0
        while True:
            done = find(elements, (*self.table.parts, *present), ids, done)
            if done == n:
                return ids
            self.table.grow()

    def _ids(self, columns: Sequence[Column]) -> Int64Array:
        return self.table.acquire_columns(typed(columns, self.schema))

    def settle(self) -> None:
        """Free memory if most of it is free."""
        kept = self.table.compact()
        if kept is not None:
            counts = np.zeros((self.table.capacity, 3), np.int64)
            counts[: len(kept)] = self.counts[kept]
            self.counts = counts
            for ring in self.arrivals:
                if ring is not None:
                    ring.renumber(kept)

    def arrays(self) -> dict[str, AnyArray]:
        live = self.table.live()
        state: dict[str, AnyArray] = {**self.table.arrays(), "counts": self.counts[live]}
        for side, ring in enumerate(self.arrivals):
            if ring is not None:
                state[f"arrivals{side}"] = ring.arrays(live)["arrivals"]
        return state

    def restore(self, arrays: dict[str, Any]) -> None:
        self.table.restore(arrays)
        self.counts = np.zeros((self.table.capacity, 3), np.int64)
        self.counts[: len(arrays["counts"])] = arrays["counts"]
        for side, ring in enumerate(self.arrivals):
            if ring is not None:
                ring.restore({"arrivals": arrays[f"arrivals{side}"]})

    def live_codes(self) -> Iterable[Int64Array]:
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

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        left, right = self._side(batches, 0), self._side(batches, 1)
        n = len(left[0]) + len(right[0])
        if not n:
            return ()
        count: Callable[..., int] = kernels.count_rows
        rows, ts, sign = self.rows, np.empty(n, np.int64), np.empty(n, np.int8)
        ids, gone = np.empty((2, n), np.int64)
        m = count(self._rule, left, right, rows.table.parts, rows.counts, (ts, sign, ids), gone)
        result: tuple[Batch, ...] = ()
        if m:
            # The words of rows that are gone stand there still.
            columns = rows.table.columns(ids[:m], self.schema)
            result = (Batch(ts[:m], sign[:m], columns),)
        rows.settle()
        return result

    def _side(self, batches: Sequence[Batch | None], side: int) -> _Side:
        batch = self.uncounted(batches[side]) if side < len(batches) else None
        if batch is None or not len(batch.ts):
            return _NOTHING
        ts, sign = normal(batch.ts), normal(batch.signs)
        return ts, sign, self.rows.acquire(batch, ts, sign, side)

    def contents(self) -> Batch:
        ids = np.repeat(np.arange(len(self.rows.counts)), self.rows.counts[:, 2])
        return Batch(np.zeros(len(ids), np.int64), None, self.rows.table.columns(ids, self.schema))

    def describe(self) -> Description:
        return Description(self.name, "", {"rows": len(self.rows), "bytes": self.rows.nbytes})

    def synopses(self) -> tuple[Any, ...]:
        return (self.rows,)
