"""Round robin: every operator with work gets the same quantum, in turn. Babu 2005, section 2.3.2."""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.operators.operator import Operator
from minidsms.scheduler.scheduler import run_a_stalled_one


class RoundRobin:
    """quantum: elements per turn."""

    name = "round_robin"

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum

    def run(self, operators: Sequence[Operator]) -> None:
        while True:
            ran = False
            for operator in operators:
                if operator.is_ready():
                    operator.run(self.quantum)
                    ran = True
            if not ran and not run_a_stalled_one(operators, self.quantum):
                return
