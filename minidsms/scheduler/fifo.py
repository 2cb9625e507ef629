"""FIFO: the element that came first is processed first, as far as it goes. Babu 2005, section 2.3.2."""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.elements import MAX_INSTANT
from minidsms.operators.operator import Operator
from minidsms.scheduler.scheduler import run_a_stalled_one


class Fifo:
    """quantum: elements per turn."""

    name = "fifo"

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum

    def run(self, operators: Sequence[Operator]) -> None:
        while True:
            chosen: Operator | None = None
            oldest = MAX_INSTANT
            for operator in operators:
                if not operator.is_ready():
                    continue
                waiting = [ts for queue in operator.inputs if (ts := queue.first_ts()) is not None]
                ts = min(waiting, default=MAX_INSTANT)
                # Among equals the operator nearest to the output: it finishes what is begun.
                if chosen is None or ts <= oldest:
                    chosen, oldest = operator, ts
            if chosen is not None:
                chosen.run(self.quantum)
            elif not run_a_stalled_one(operators, self.quantum):
                return
