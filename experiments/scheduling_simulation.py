"""Schedulers on a simulated clock: operators of given selectivity and cost, arrivals as planned, queue sizes over time.

What waits comes in blocks. A block arrives with a size, usually 1, and shrinks as it passes the operators; an operator
takes one block per turn and needs time in proportion to its size. The schedulers are those of the engine.

Invariant: `total` counts everything that has arrived and not left, a block in work as large as it was before.
Babu 2005, section 2.3.2.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from minidsms.scheduler import Scheduler
from minidsms.scheduler.scheduler import DONE, IDLE, LEFT

_UNIT_NS = 1e6
_REHEARSED = 1e3
"""Elements an operator has seen before the simulation begins: its statistics are known, and stay what they are."""


class Block(NamedTuple):
    """since: when it arrived.  size: in elements, or a share of one."""

    since: float
    size: float


class SimulatedQueue:
    """A queue of blocks, the oldest first. reader: the operator that takes them."""

    def __init__(self, reader: SimulatedOperator) -> None:
        self.reader = reader
        self._blocks: deque[Block] = deque()
        self.size = 0.0

    def put(self, block: Block) -> None:
        """Append a block."""
        self._blocks.append(block)
        self.size += block.size

    def take(self) -> Block:
        """Remove the oldest block."""
        block = self._blocks.popleft()
        # An empty queue is exactly empty, whatever the sums before have lost.
        self.size = self.size - block.size if self._blocks else 0.0
        return block

    def first_ts(self) -> int | None:
        """When the oldest block arrived, in thousandths of a time unit."""
        return round(self._blocks[0].since * 1000) if self._blocks else None


@dataclass
class SimulatedCounters:
    """As `operators.operator.Counters`, in shares of elements."""

    elements_in: float = 0.0
    elements_out: float = 0.0
    time_ns: float = 0.0


class SimulatedOperator:
    """selectivity, time_units: per element.  inputs: one queue per input; `reads` joins operators.

    rehearsed: the scheduler knows the figures from the start; otherwise it has to measure them.
    """

    def __init__(self, selectivity: float, time_units: float, inputs: int = 1, rehearsed: bool = True) -> None:
        self.selectivity = selectivity
        self.time_units = time_units
        self.inputs = [SimulatedQueue(self) for _ in range(inputs)]
        self.outputs: list[SimulatedQueue] = []
        self.counters = SimulatedCounters()
        if rehearsed:
            self._count(_REHEARSED)
        self.progress = 0
        self.simulation: Simulation | None = None

    def reads(self, producer: SimulatedOperator, input: int = 0) -> SimulatedOperator:
        """Let what the producer puts out come to an input; returns itself."""
        producer.outputs.append(self.inputs[input])
        return self

    def has_work(self) -> bool:
        """A block waits."""
        return any(queue.first_ts() is not None for queue in self.inputs)

    def take_turn(self, budget: int) -> int:
        """Process what waits; time alone does nothing."""
        if not self.has_work():
            return IDLE
        self.run(budget)
        return LEFT if self.has_work() else DONE

    def is_blocked(self) -> bool:
        """Queues have no bound here: their size is what is measured."""
        return False

    def run(self, budget: int) -> int:
        """Process the oldest blocks, one after the other; budget: how many at most. Returns how many."""
        assert self.simulation is not None
        for done in range(budget):
            waiting = [(ts, i) for i, queue in enumerate(self.inputs) if (ts := queue.first_ts()) is not None]
            if not waiting:
                return done
            block = self.inputs[min(waiting)[1]].take()
            self.simulation.work(block.size, block.size * self.time_units)
            self._count(block.size)
            left = block.size * self.selectivity
            for queue in self.outputs:
                if left > 0:
                    queue.put(Block(block.since, left))
            if not self.outputs:
                self.simulation.leave(block)
            self.simulation.record()
        return budget

    def _count(self, size: float) -> None:
        self.counters.elements_in += size
        self.counters.elements_out += size * self.selectivity
        self.counters.time_ns += size * self.time_units * _UNIT_NS


class Arrival(NamedTuple):
    """A block of this size comes to an operator's first input."""

    time: float
    operator: SimulatedOperator
    size: float = 1.0


@dataclass
class Simulation:
    """operators: producers before consumers.  arrivals: in any order."""

    operators: Sequence[SimulatedOperator]
    scheduler: Scheduler
    arrivals: Iterable[Arrival]
    now: float = 0.0
    trajectory: list[tuple[float, float]] = field(default_factory=list)
    """(time, total size) after every event."""
    latencies: list[float] = field(default_factory=list)
    """Per block that left: how long it was in the system."""

    def __post_init__(self) -> None:
        self._to_come = [(a.time, n, a) for n, a in enumerate(self.arrivals)]
        heapq.heapify(self._to_come)
        self._in_work = 0.0
        for operator in self.operators:
            operator.simulation = self

    @property
    def total(self) -> float:
        """Size of all that is in the system."""
        return self._in_work + sum(queue.size for operator in self.operators for queue in operator.inputs)

    @property
    def peak(self) -> float:
        """The greatest total so far."""
        return max((size for _, size in self.trajectory), default=0.0)

    @property
    def ticks(self) -> int:
        """The time in the unit of `SimulatedQueue.first_ts`, as a latency bound wants it."""
        return round(self.now * 1000)

    def run(self, until: float = float("inf")) -> Simulation:
        """Go on until nothing is left to do, or until then; returns itself."""
        while True:
            self._arrive(self.now, inclusive=True)
            operator = self.scheduler.choose(self.operators) if self.now < until else None
            if operator is not None:
                operator.run(1)
            elif self._to_come and self._to_come[0][0] <= until:
                self.now = self._to_come[0][0]
            else:
                return self

    def size_at(self, time: float) -> float:
        """The total after all that happens at a time."""
        before = [size for at, size in self.trajectory if at <= time + 1e-9]
        return before[-1] if before else 0.0

    # ------------------------------------------------------------------------------------------- for the operators

    def work(self, size: float, duration: float) -> None:
        """A block of this size is in work that long; meanwhile others arrive."""
        self._in_work = size
        end = self.now + duration
        self._arrive(end, inclusive=False)
        self.now = end
        self._in_work = 0.0

    def leave(self, block: Block) -> None:
        """A block has come to its end."""
        self.latencies.append(self.now - block.since)

    def record(self) -> None:
        """Note the total."""
        self.trajectory.append((self.now, self.total))

    def _arrive(self, until: float, inclusive: bool) -> None:
        # What arrives just as a block is done meets the room it has left: it does not count before.
        last = until + 1e-9 if inclusive else until - 1e-9
        while self._to_come and self._to_come[0][0] <= last:
            time, _, arrival = heapq.heappop(self._to_come)
            arrival.operator.inputs[0].put(Block(time, arrival.size))
            self.trajectory.append((time, self.total))


def pipeline(steps: Sequence[tuple[float, float]], rehearsed: bool = True) -> list[SimulatedOperator]:
    """Operators one behind the other. steps: (selectivity, time units per element) of each."""
    operators = [SimulatedOperator(selectivity, time_units, 1, rehearsed) for selectivity, time_units in steps]
    for producer, consumer in pairwise(operators):
        consumer.reads(producer)
    return operators


def mean_sizes(simulation: Simulation, times: Sequence[float]) -> tuple[list[float], float]:
    """The totals at these times, and their mean, as in the tables of Babu 2005, section 2.3.2."""
    sizes = [simulation.size_at(time) for time in times]
    return sizes, sum(sizes) / len(sizes)
