"""Round robin: every operator with work gets the same quantum, in turn. Babu 2005, section 2.3.2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.scheduler.scheduler import BLOCKED, DONE, IDLE, Schedulable, is_ready, run_a_stalled_one


class RoundRobin:
    """quantum: elements per turn."""

    name = "round_robin"

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.least = quantum + 1
        self._next = 0

    def run(self, operators: Iterable[Schedulable]) -> None:
        """Run the operators until none has work. They are gone through again and again, and may be others each time."""
        while True:
            is_left = ran = False
            quantum = self.quantum
            for operator in operators:
                turn = operator.take_turn(quantum)
                if turn == IDLE:
                    continue
                if turn != DONE:
                    is_left = True
                if turn != BLOCKED:
                    ran = True
            # Producers stand before consumers: where nobody kept work for another turn, one turn was enough.
            if not is_left:
                return
            if not ran:
                run_a_stalled_one(list(operators), self.quantum)

    def choose(self, operators: Sequence[Schedulable]) -> Schedulable | None:
        """The next ready operator behind the one chosen last; None when none is ready."""
        for i in range(len(operators)):
            position = (self._next + i) % len(operators)
            if is_ready(operators[position]):
                self._next = position + 1
                return operators[position]
        return None
