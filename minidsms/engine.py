"""The engine: takes what the input manager has released through the plans of the queries, slice by slice.

A slice is a range of whole instants, about `batch_size` elements. For each query it ends at the query's frontier: the
instant up to which every stream it reads has told all (docs/semantics T4). So operators never wait for another
input's time; what waits stays in the streams' stores (docs/design, point 10).

Invariant: when `step` returns, the engine is at rest: no operator has work, no queue holds an element, every query has
processed every closed instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.operators.contents import Contents
from minidsms.operators.operator import Failure, Operator
from minidsms.operators.output import Output
from minidsms.operators.relation_source import RelationSource
from minidsms.scheduler import Scheduler
from minidsms.synopses.stream_store import StreamStore


class InputProgress(Protocol):
    """What the engine asks of an input."""

    @property
    def progress(self) -> int:
        """No later element has ts <= it."""

    @property
    def greatest_ts(self) -> int | None:
        """The greatest instant seen."""

    @property
    def ended(self) -> bool:
        """Nothing more comes."""


@runtime_checkable
class Entrance(Protocol):
    """An operator through which an input enters a plan; told by what it does, for the reason `OwnsStore` gives."""

    def waiting(self) -> int:
        """Elements that have not been handed on."""

    def ts_of_waiting(self, index: int) -> int:
        """The instant of the index-th waiting element."""

    def allow(self, until: int) -> None:
        """Elements with ts <= until may go."""


@runtime_checkable
class OwnsStore(Protocol):
    """A synopsis that may keep its rows in a store of its own: a window's stub. Told by what it has, not by its
    class, so
    that a connection without windows need not load compiled kernels.
    """

    @property
    def own_store(self) -> StreamStore | None:
        """The store, once there is one."""


class Network:
    """The running plan of a query: operators in an order in which producers stand before consumers.

    output: the last operator; None only where a frontier is asked for.  streams, relations: the inputs read.
    is_immediate: see `Operator.is_immediate`.  is_paused: what comes waits in the stores.  batch_size: the query's own,
    or None.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        output: Output | None,
        streams: Sequence[InputProgress],
        relations: Sequence[InputProgress],
        is_immediate: bool,
    ) -> None:
        self.operators = list(operators)
        self.output = output
        self.streams = list(streams)
        self.relations = list(relations)
        self.is_immediate = is_immediate
        self.contents: Contents | None = None
        self.sources = [op for op in operators if isinstance(op, Entrance)]
        self._stubs = [s for op in self.operators for s in op.synopses() if isinstance(s, OwnsStore)]
        self.progress = MIN_INSTANT
        self.is_paused = False
        self.batch_size: int | None = None
        self._until = MIN_INSTANT
        self.failure: Failure | None = None
        self._in_flight = False
        self._is_closed = False

    def frontier(self, heartbeat: int) -> int:
        """The greatest closed instant. heartbeat: of the whole connection; it moves queries that read relations
        only.
        """
        progress = MAX_INSTANT
        for stream in self.streams:
            if not stream.ended and stream.progress < progress:
                progress = stream.progress
        if progress < MAX_INSTANT:
            return progress
        inputs = [*self.streams, *self.relations]
        greatest = max((i.greatest_ts for i in inputs if i.greatest_ts is not None), default=MIN_INSTANT)
        if self.streams:
            return greatest
        if all(r.ended for r in self.relations):
            return max(greatest, heartbeat)
        return max(heartbeat, greatest - 1 if greatest > MIN_INSTANT else MIN_INSTANT)

    def closed(self, heartbeat: int) -> int:
        """The greatest instant that is closed for the query, whether or not it has been let to answer it."""
        return self.frontier(heartbeat) if self.is_paused else self.progress

    def release(self, heartbeat: int, batch_size: int) -> bool:
        """Let the sources hand on the next slice; False when there is nothing to do."""
        if self.failure is not None or self.is_paused:
            return False
        batch_size = self.batch_size or batch_size
        until = self.frontier(heartbeat)
        waiting = [s for s in self.sources if s.waiting()]
        if self.is_immediate and not waiting:
            self.progress = max(until, self.progress)  # time alone yields nothing here
            return False
        if until <= self.progress and not self.is_immediate:
            return False
        for source in waiting:
            if source.waiting() > batch_size and not self.is_immediate:
                last = source.ts_of_waiting(batch_size)
                first = source.ts_of_waiting(0)
                until = min(until, first if last <= first else last - 1)
        self._until = max(until, self.progress)
        self._in_flight = True
        for source in self.sources:
            source.allow(self._until)
        return True

    def finish(self) -> None:
        """The slice has passed."""
        self._in_flight = False
        failures = [op.failure for op in self.operators if op.failure is not None]
        if failures:
            self.failure = min(failures, key=lambda f: f.ts)
            self.progress = self.failure.ts - 1
        else:
            self.progress = self._until

    def interrupt(self, reason: str) -> None:
        """An exception has cut a step short: what was in flight is lost, and with it the answers from there on."""
        if self._in_flight and self.failure is None:
            self._in_flight = False
            self.failure = Failure(self.progress + 1, f"interrupted by {reason}")

    def rest(self) -> None:
        """No reference is in flight: the stores that windows over derived streams own may free what they have
        passed. A query that has failed computes nothing any more: it must not hold back what others have passed.
        """
        if self.failure is not None:
            self.close()
            return
        for stub in self._stubs:
            if stub.own_store is not None:
                stub.own_store.free()

    def live_codes(self) -> Iterator[Int64Array]:
        """TEXT codes that wait in sources, outside any synopsis."""
        if self._is_closed:
            return
        for source in self.sources:
            if isinstance(source, RelationSource):
                yield from source.live_codes()

    def close(self) -> None:
        """Give up what the operators claim of shared stores. Closing twice is no error."""
        if self._is_closed:
            return
        self._is_closed = True
        for operator in self.operators:
            close = getattr(operator, "close", None)
            if close is not None:
                close()


class Engine:
    """Drives networks with a scheduler."""

    def __init__(self, scheduler: Scheduler, batch_size: int) -> None:
        self.scheduler = scheduler
        self.batch_size = batch_size
        self.heartbeat = MIN_INSTANT

    def step(self, networks: Iterable[Network]) -> list[Network]:
        """Process everything that is due in these networks; the networks that did something."""
        moved: dict[int, Network] = {}
        pending = list(networks)
        while pending:
            released = [n for n in pending if n.release(self.heartbeat, self.batch_size)]
            if len(released) == 1:
                self.scheduler.run(released[0].operators)
            elif released:
                self.scheduler.run([op for n in released for op in n.operators])
            for network in released:
                network.finish()
                moved[id(network)] = network
            pending = released
        return list(moved.values())
