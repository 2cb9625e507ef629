"""What FIFO, Greedy and Chain share: the ready operator of the highest priority runs, among equals the oldest element.

Priorities are derived from what the operators have been seen to cost. They are looked at again after so many runs, and
renewed when a figure has moved by more than a fifth since they were last computed, or other operators are run.
Babu 2005, section 2.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.elements import MAX_INSTANT
from minidsms.scheduler.agenda import Agenda, Key
from minidsms.scheduler.scheduler import Schedulable, is_ready, run_a_stalled_one
from minidsms.scheduler.statistics import Cost, Measurements
from minidsms.scheduler.wiring import Wiring

_MOST_TURNS = 16
"""Between two looks at the statistics, a turn being as many runs as there are operators. It is one as long
as an operator is unknown, then twice as many each time.
"""


LITTLE = 4_096
"""Elements that are few: choosing among operators would take longer than what it saves in memory is worth."""


class ByPriority:
    """quantum: elements per turn. A subclass says what the priorities are; unless it does all are equal (FIFO).
    See `Scheduler`.
    """

    name = "by priority"
    is_measuring = True
    """The priorities depend on statistics."""

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.least = min(LITTLE, quantum)
        """Elements of a slice from which it is asked."""
        self.recomputed = 0
        """How often priorities have been computed."""
        self._measurements = Measurements()
        self._wiring = Wiring(())
        self._costs: list[Cost] = []
        self._priorities: list[float] = []
        self._runs = 0
        self._turns = 1

    def priorities(self, wiring: Wiring, costs: Sequence[Cost]) -> list[float]:
        """The priority of each operator; higher runs first."""
        return [0.0] * len(costs)

    def run(self, operators: Sequence[Schedulable]) -> None:
        self._prepare(operators)
        agenda = Agenda(operators, self._wiring, self._key)
        while True:
            position = agenda.pop()
            if position is not None:
                operators[position].run(self.quantum)
                if self._look_again(operators):
                    agenda.look_at_all()
                else:
                    agenda.look_around(position)
            elif run_a_stalled_one(operators, self.quantum):
                agenda.look_at_all()
            else:
                return

    def choose(self, operators: Sequence[Schedulable]) -> Schedulable | None:
        self._prepare(operators)
        self._look_again(operators)
        ready = [self._key(operator, i) for i, operator in enumerate(operators) if is_ready(operator)]
        return operators[-min(ready)[2]] if ready else None

    def _key(self, operator: Schedulable, position: int) -> Key:
        # Among equals the operator nearest to the output: it finishes what is begun.
        return -self._priorities[position], waiting_since(operator), -position

    def _prepare(self, operators: Sequence[Schedulable]) -> None:
        if not self._wiring.is_of(operators):
            self._wiring = Wiring(operators)
            self._runs, self._turns = 0, 1
            self._recompute(
                self._measurements.read(operators) if self.is_measuring else [Cost(1.0, 1.0)] * len(operators)
            )

    def _look_again(self, operators: Sequence[Schedulable]) -> bool:
        """Count a run; whether the priorities are others now."""
        self._runs += 1
        if not self.is_measuring or self._runs < self._turns * len(operators):
            return False
        costs = self._measurements.read(operators)
        self._runs = 0
        if self._measurements.complete:
            self._turns = min(2 * self._turns, _MOST_TURNS)
        if not any(now.has_moved(then) for now, then in zip(costs, self._costs)):
            return False
        self._recompute(costs)
        return True

    def _recompute(self, costs: list[Cost]) -> None:
        self._costs = costs
        self._priorities = self.priorities(self._wiring, costs)
        self.recomputed += 1


def waiting_since(operator: Schedulable) -> int:
    """The instant of the oldest element in the operator's queues; the last of all instants where none waits."""
    oldest = MAX_INSTANT
    for queue in operator.inputs:
        ts = queue.first_ts()
        if ts is not None and ts < oldest:
            oldest = ts
    return oldest
