"""RangeWindow: the elements of the last T ticks, NOW, and windows that hop.

Invariant: after the instant tau the window holds the elements with ts in (tau - T, tau]; with SLIDE L those with ts in
(b - T, b], b the last multiple of L up to tau; in a HOP window those in [b - T, b). NOW is a range of one tick.
docs/semantics W1, W2, W6, W9; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch, Int64Array
from minidsms.operators.operator import Description
from minidsms.operators.stub_window import StubWindow
from minidsms.queues import Queue
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.stub import NO_INSTANTS


def next_boundary(ts: Int64Array, slide: int) -> Int64Array:
    """The least multiple of slide that is not below each instant."""
    return -(-ts // slide) * slide


class RangeWindow(StubWindow):
    """range_: T in ticks, 0 is NOW.  slide: L in ticks, or None.  store, copies: see `Stub`.  lag: 1 of a HOP window.

    An element enters at the first boundary not below its ts and leaves at the first one not below ts + T; without
    SLIDE every instant is a boundary. In a HOP window it does both as if it had come `lag` ticks later. An instant past
    the end of time never comes, so nothing leaves there.
    """

    name = "RangeWindow"
    is_self_contained = True

    def __init__(
        self,
        input_: Queue,
        range_: int,
        slide: int | None = None,
        store: StreamStore | None = None,
        copies: bool = False,
        lag: int = 0,
    ) -> None:
        super().__init__(input_, store, copies)
        self.range_ = range_
        self.lag = lag
        self.slide = slide
        self._length = max(range_, 1)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        stub, slide = self.stub, self.slide
        batch = batches[0]
        if self.counted_until != MIN_INSTANT:
            batch = self.uncounted(batch)
        if batch is not None:
            stub.receive(batch)
        if slide is None:
            return stub.slide(until, self._length)
        lag = self.lag
        del_at = del_seq = NO_INSTANTS
        boundary = until // slide * slide
        mid = stub.search(boundary - lag, stub.mid)
        ins_at, ins_seq = next_boundary(stub.ts(stub.mid, mid) + lag, slide), stub.seq(stub.mid, mid)
        lo = stub.search(boundary - lag - self._length, stub.lo)
        if lo > stub.lo:
            del_at = next_boundary(stub.ts(stub.lo, lo) + lag + self._length, slide)
            del_seq = stub.seq(stub.lo, lo)
        return stub.move(lo, mid, ins_at, ins_seq, del_at, del_seq)

    def shows_at(self, until: int) -> int:
        return until if self.slide is None else until // self.slide * self.slide

    def wakes_at(self) -> int:
        """The instant at which the next element enters or leaves."""
        if self._resumed is not None:
            return super().wakes_at()
        stub, slide = self.stub, self.slide
        first = stub.ts_at(stub.lo) + self._length if stub.lo < stub.mid else MAX_INSTANT
        if stub.mid < stub.hi:
            first = min(first, stub.ts_at(stub.mid))
        return first if slide is None or first == MAX_INSTANT else -(-(first + self.lag) // slide) * slide

    def describe(self) -> Description:
        kind = WindowKind.HOP if self.lag else WindowKind.RANGE
        detail = WindowSpec(kind, self.range_, slide=self.slide).text(self.schema)
        return self.described(detail)
