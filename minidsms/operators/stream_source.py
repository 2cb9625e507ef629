"""Where a stream enters a query's plan: a cursor on the stream's store.

The input manager keeps what has been released; the source hands on, as references, what is due. Babu 2005, section
2.2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch, Int64Array
from minidsms.operators.operator import Description, Operator
from minidsms.synopses.stream_store import StreamStore


class StreamSource(Operator):
    """Reads a store from its present end on, with_history from what it still holds; `allow` says up to which instant.

    earlier: ascending instants of elements that came before the query but are released only now (they waited for
        slack); of each instant that many elements come first, and are not for this query (docs/semantics T7).
    """

    name = "Stream"
    is_append_only = True

    def __init__(self, stream: str, store: StreamStore, earlier: Int64Array, with_history: bool = False) -> None:
        super().__init__((), store.schema, is_fifo=True)
        self.stream = stream
        self.store = store
        self.reader = store.reader(store.tail if with_history else None)
        self._allowed = MIN_INSTANT
        self._earlier = earlier

    def waiting(self) -> int:
        """Elements in the store that have not been handed on."""
        return self.store.head - self.reader.lo

    def ts_of_waiting(self, index: int) -> int:
        """The instant of the index-th waiting element."""
        return self.store.ts_at(self.reader.lo + index)

    def allow(self, until: int) -> None:
        """Elements with ts <= until may go."""
        self._allowed = max(self._allowed, until)

    def available(self) -> int:
        return self._allowed

    def has_work(self) -> bool:
        if self._emission is not None or self._allowed > self.progress:
            return True
        return self.is_immediate and self.store.head > self.reader.lo

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        lo = self.reader.lo
        hi = self.store.head
        if not self.is_immediate and until < MAX_INSTANT and hi > lo and self.store.ts_at(hi - 1) > until:
            hi = lo + int(np.searchsorted(self.store.ts(lo, hi), until, side="right"))
        if hi > lo:
            self.counters.elements_in += hi - lo
            self.reader.lo = hi
            batch = self.store.batch(lo, hi)
            yield batch if not len(self._earlier) else self._without_earlier(batch)

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

    def describe(self) -> Description:
        return Description(self.name, self.stream, {"waiting": self.waiting()})
