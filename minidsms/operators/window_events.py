"""WindowEvents: the instants at which a window changes.

RSTREAM speaks at these (docs/semantics S2), whatever the query's filters and joins leave of the change. A window
changes when an element arrives in it or leaves it, even where an equal row takes its place; a sliding window also at
every multiple of its L from its first arrival on.

Invariant: every event instant up to `progress` has been put out once, in order, as an element without columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, AnyArray, Batch, Int64Array, Schema
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.instants import PendingInstants, distinct, union
from minidsms.synopses.partition_stub import PartitionStub
from minidsms.synopses.stub import NO_INSTANTS

_LARGEST_OUTPUT = 1 << 14

NO_COLUMNS = Schema(())
"""The schema of elements that only have an instant."""


def instants_only(ts: Int64Array) -> Batch:
    """A batch of elements without columns."""
    return Batch(ts, None, ())


class SlideClock:
    """The multiples of a slide from the first arrival on, and how many arrivals there were.

    next_boundary: the first multiple not put out yet, or None before the first arrival.
    """

    def __init__(self) -> None:
        self.next_boundary: int | None = None
        self.last_ts = 0
        self.arrived = 0

    @property
    def nbytes(self) -> int:
        return 0

    def live_codes(self) -> Iterator[Int64Array]:
        """No TEXT is kept."""
        return iter(())

    def arrays(self) -> dict[str, AnyArray]:
        started = self.next_boundary is not None
        return {"clock": np.array([started, self.next_boundary or 0, self.last_ts, self.arrived], np.int64)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        started, boundary, self.last_ts, self.arrived = (int(x) for x in state["clock"])
        self.next_boundary = boundary if started else None


class WindowEvents(Resuming):
    """The event instants of one window over the input stream, as the window is written."""

    name = "WindowEvents"
    knows_rows = False

    def __init__(self, input_: Queue, spec: WindowSpec) -> None:
        super().__init__([input_], NO_COLUMNS)
        self.spec = spec
        self._pending = PendingInstants()
        self._clock = SlideClock()
        self._partition: PartitionStub | None = None
        if spec.is_by_key and spec.range_ is not None:
            self._partition = PartitionStub(input_.schema, spec, keeps_rows=False)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        spec, batch = self.spec, self.uncounted(batches[0])
        arrivals = NO_INSTANTS if batch is None else batch.ts
        if self._partition is not None:
            return self._of_partition(self._partition, batch, until)
        if spec.step is not None:
            return self._boundaries(arrivals, spec.step, until)
        if spec.kind is WindowKind.RANGE:
            assert spec.range_ is not None
            length = max(spec.range_, 1)
            if len(arrivals):
                self._pending.put(arrivals)
            left = self._pending.take(until - length)
            return in_parts(union(arrivals, left + length) if len(left) else distinct(arrivals))
        if spec.slide is not None:
            # Only the arrival that completes a batch of M changes the window.
            n = self._clock.arrived
            self._clock.arrived += len(arrivals)
            arrivals = arrivals[spec.slide - 1 - n % spec.slide :: spec.slide]
        return in_parts(distinct(arrivals))

    def _boundaries(self, arrivals: Int64Array, slide: int, until: int) -> Iterator[Batch]:
        """Every multiple of the slide up to `until`, generated as far as the output has room.

        When the input has ended, time goes no further than its last element.
        """
        clock = self._clock
        if len(arrivals):
            if clock.next_boundary is None:
                clock.next_boundary = -(-int(arrivals[0]) // slide) * slide
            clock.last_ts = int(arrivals[-1])
        last = clock.last_ts if until == MAX_INSTANT else until
        while clock.next_boundary is not None and clock.next_boundary <= last:
            start = clock.next_boundary
            n = min((last - start) // slide + 1, _LARGEST_OUTPUT)
            clock.next_boundary = start + n * slide
            yield instants_only(start + np.arange(n, dtype=np.int64) * slide)

    @staticmethod
    def _of_partition(stub: PartitionStub, batch: Batch | None, until: int) -> Iterator[Batch]:
        shown = None
        for changes in stub.pass_through(batch, until):
            ts = distinct(changes.ts)
            if shown is not None and int(ts[0]) == shown:
                ts = ts[1:]
            if len(ts):
                shown = int(ts[-1])
                yield instants_only(ts)

    def wakes_at(self) -> int:
        """Whatever time may pass, a window may change."""
        return MIN_INSTANT

    def describe(self) -> Description:
        return Description(self.name, self.spec.text(self.inputs[0].schema), {"pending": len(self._pending)})

    def synopses(self) -> tuple[PendingInstants | SlideClock | PartitionStub, ...]:
        if self._partition is not None:
            return (self._partition,)
        return (self._pending, self._clock)


def in_parts(ts: Int64Array) -> Iterable[Batch]:
    """The instants in bounded batches."""
    if len(ts) <= _LARGEST_OUTPUT:
        return (instants_only(ts),) if len(ts) else ()
    return (instants_only(ts[i : i + _LARGEST_OUTPUT]) for i in range(0, len(ts), _LARGEST_OUTPUT))
