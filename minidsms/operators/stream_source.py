"""Where a stream enters a query's plan: a cursor on the stream's store.

The input manager keeps what has been released; the source hands on, as references, what is due. Babu 2005, section 2.2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch
from minidsms.operators.operator import Description, Operator
from minidsms.synopses.stream_store import StreamStore


class StreamSource(Operator):
    """Reads a store from its present end on; `allow` says up to which instant."""

    name = "Stream"

    def __init__(self, stream: str, store: StreamStore) -> None:
        super().__init__((), store.schema, is_fifo=True)
        self.stream = stream
        self.store = store
        self.reader = store.reader()
        self._allowed = MIN_INSTANT

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
            yield self.store.batch(lo, hi)

    def close(self) -> None:
        """Give up the claim on the store."""
        self.store.release(self.reader)

    def describe(self) -> Description:
        return Description(self.name, self.stream, {"waiting": self.waiting()})
