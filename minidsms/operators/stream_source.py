"""Where a stream enters a query's plan: a cursor on the stream's store.

The input manager keeps what has been released; the source hands on, as references, what is due. Babu 2005, section
2.2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.elements import (
    MAX_INSTANT,
    MIN_INSTANT,
    AnyArray,
    Batch,
    Int64Array,
    arrays_of_columns,
    columns_of_arrays,
)
from minidsms.operators.operator import Description, Operator
from minidsms.scheduler.scheduler import BLOCKED, DONE, IDLE, LEFT
from minidsms.synopses.stream_store import StreamStore


class OwnRows:
    """The rows of a stream that one query keeps for itself, where queries share nothing. Its windows hold them there;
    the claim of the source, which needs none, says how far it has come.
    """

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._newest = store.reader()

    @property
    def own_store(self) -> StreamStore:
        """The store, which nobody else frees or saves."""
        return self._store

    def append(self, batch: Batch) -> None:
        """Keep rows, under the next numbers."""
        self._store.append(batch.ts, batch.columns)
        self._newest.lo = self._store.head

    @property
    def nbytes(self) -> int:
        return self.own_store.nbytes

    def live_codes(self) -> Iterator[Int64Array]:
        store = self.own_store
        seq = np.arange(store.tail, store.head, dtype=np.int64)
        for i in store.schema.coded:
            yield store.gather(i, seq).words()

    def arrays(self) -> dict[str, AnyArray]:
        """The rows, and the sequence number of the first."""
        ts, columns = self.own_store.arrays()
        first = np.array([self.own_store.tail], np.int64)
        return {"first": first, "ts": ts.copy(), **arrays_of_columns(columns)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave, into an empty store."""
        store = self.own_store
        store.start_at(int(state["first"][0]))
        store.append(state["ts"].astype(np.int64), columns_of_arrays(state, len(store.schema)))
        self._newest.lo = store.head


class StreamSource(Operator):
    """Reads a store from its present end on, with_history from what it still holds; `allow` says up to which instant.

    earlier: ascending instants of elements that came before the query but are released only now (they waited for
        slack); of each instant that many elements come first, and are not for this query (docs/semantics T7).
    own: a store for this query alone, into which the elements are copied under their numbers, and to which what is
        handed on refers; None: it refers to the stream's store.
    """

    name = "Stream"
    is_entrance = True

    def __init__(
        self,
        stream: str,
        store: StreamStore,
        earlier: Int64Array,
        with_history: bool = False,
        own: StreamStore | None = None,
    ) -> None:
        super().__init__((), store.schema)
        self.stream = stream
        self.store = store
        first = store.tail if store.history is None else store.history
        self.reader = store.reader(first if with_history else None)
        self._allowed = MIN_INSTANT
        self._earlier = earlier
        if own is not None:
            own.start_at(self.reader.lo)
        self.keep_in(own)

    def keep_in(self, own: StreamStore | None) -> None:
        """Let the rows stand in a store for this query alone from now on; None: in the stream's."""
        self._kept = None if own is None else OwnRows(own)

    @property
    def own(self) -> StreamStore | None:
        """The store for this query alone."""
        return None if self._kept is None else self._kept.own_store

    def is_as_new(self, earlier: Int64Array) -> bool:
        """A source made now, with this argument, would hand on the same."""
        return self.reader.lo == self.store.head and np.array_equal(self._earlier, earlier)

    def waits_for(self, earlier: Int64Array) -> bool:
        """Of what is to come, a source made with this argument would leave out the same."""
        return np.array_equal(self._earlier, earlier)

    def waiting(self) -> int:
        """Elements in the store that have not been handed on."""
        return self.store.head - self.reader.lo

    def ts_of_waiting(self, index: int) -> int:
        return self.store.ts_at(self.reader.lo + index)

    def allow(self, until: int) -> None:
        if until > self._allowed:
            self._allowed = until

    def available(self) -> int:
        return self._allowed

    def has_work(self) -> bool:
        if self.failure is not None:
            return False
        if self._emission is not None or self._allowed > self.progress:
            return True
        return self.is_immediate and self.store.head > self.reader.lo

    def passes_time(self) -> bool:
        if self._emission is not None or self.reader.lo != self.store.head:
            return False
        if self._allowed > self.progress:
            self._until = self._allowed
            self._complete()
        return True

    def wakes_at(self) -> int:
        return MIN_INSTANT if self.reader.lo < self.store.head else MAX_INSTANT

    def take_turn(self, budget: int) -> int:
        if self._emission is None:
            if self.reader.lo == self.store.head:
                self.passes_time()
                return IDLE
            if self.failure is not None or (self._allowed <= self.progress and not self.is_immediate):
                return IDLE
            if self.is_blocked():
                return BLOCKED
            self._run_slice(self._allowed, budget)
        elif self.is_blocked():
            return BLOCKED
        else:
            self.run(budget)
        return LEFT if self.has_work() else DONE

    def take_by_hand(self, batches: Sequence[Batch | None], until: int) -> Batch | None:
        counters = self.counters
        if self.reader.lo == self.store.head:
            self.progress = until
            return None
        if not counters.untimed or self.failure is not None:
            return super().take_by_hand(batches, until)
        # As of any operator, but that it has no inputs, and makes nothing that could be too much.
        counters.untimed -= 1
        batch = self._due(until)
        if batch is not None:
            counters.elements_out += len(batch.ts)
        self.progress = until
        return batch

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self._due(until)
        return () if batch is None else (batch,)

    def _due(self, until: int) -> Batch | None:
        """What may go, if there is anything."""
        store, reader = self.store, self.reader
        lo, hi = reader.lo, store.head
        if hi == lo:
            return None
        if not self.is_immediate and until < MAX_INSTANT and store.ts_at(hi - 1) > until:
            hi = lo + int(store.ts(lo, hi).searchsorted(until, side="right"))
            if hi == lo:
                return None
        self.counters.elements_in += hi - lo
        reader.lo = hi
        batch = store.batch(lo, hi)
        if self._kept is not None:
            self._kept.append(batch)
            batch = self._kept.own_store.batch(lo, hi)
        if len(self._earlier):
            batch = self._without_earlier(batch)
        return batch if len(batch.ts) else None

    def shed(self, n: int) -> int:
        """Pass over the n elements that wait longest; how many of them were for this query. The engine is at rest."""
        lo, hi = self.reader.lo, min(self.reader.lo + n, self.store.head)
        if hi <= lo:
            return 0
        batch = self.store.batch(lo, hi)
        if self._kept is not None:
            # They keep their numbers, though nobody will ask for them.
            self._kept.append(batch)
        self.reader.lo = hi
        return len(batch) if not len(self._earlier) else len(self._without_earlier(batch))

    def _without_earlier(self, batch: Batch) -> Batch:
        """The batch without what came before the query."""
        due = int(np.searchsorted(self._earlier, batch.ts[-1], side="right"))
        instants, counts = np.unique(self._earlier[:due], return_counts=True)
        starts = np.searchsorted(batch.ts, instants)
        stops = np.minimum(starts + counts, np.searchsorted(batch.ts, instants, side="right"))
        kept = np.ones(len(batch), np.bool_)
        for start, stop in zip(starts.tolist(), stops.tolist()):
            kept[start:stop] = False
        # An instant may come in parts: what is left of its count is for the next.
        left = np.repeat(instants, counts - (stops - starts))
        self._earlier = np.concatenate([left, self._earlier[due:]])
        return batch.take(kept)

    def close(self) -> None:
        """Give up the claim on the store."""
        self.store.release(self.reader)

    def synopses(self) -> tuple[OwnRows, ...]:
        return () if self._kept is None else (self._kept,)

    def describe(self) -> Description:
        return Description(self.name, self.stream, {"waiting": self.waiting()})
