"""Chain: the operator whose chain reduces what is queued fastest; within a chain the oldest element first.

Invariant: without a bound, no ready operator belongs to a steeper chain than the one that runs. With a bound, whoever
has waited longer goes first, the oldest of all before the others. Babu 2005, sections 2.3.2 and 2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minidsms.elements import MAX_INSTANT
from minidsms.scheduler.by_priority import ByPriority, waiting_since
from minidsms.scheduler.chains import chain_slopes
from minidsms.scheduler.scheduler import Schedulable, is_ready, run_a_stalled_one
from minidsms.scheduler.statistics import Cost
from minidsms.scheduler.wiring import Wiring


class Chain(ByPriority):
    """quantum: elements per turn.

    latency_bound: ticks an element may wait before it goes before all younger ones, or None.  now: the present tick;
    without it the greatest instant any operator has reached, so that decisions are the same whenever a stream is
    replayed.
    """

    name = "chain"

    def __init__(self, quantum: int, latency_bound: int | None = None, now: Callable[[], int] | None = None) -> None:
        super().__init__(quantum)
        self.latency_bound = latency_bound
        self.now = now
        if latency_bound is not None:
            self.least = 0  # every element counts

    def priorities(self, wiring: Wiring, costs: Sequence[Cost]) -> list[float]:
        """The slope of each operator's chain, in elements per nanosecond."""
        return chain_slopes(wiring, costs)

    def run(self, operators: Sequence[Schedulable]) -> None:
        if self.latency_bound is None:
            super().run(operators)
            return
        # Who is overdue depends on the time, not on the neighbours alone: all are looked at for each choice.
        while True:
            operator = self.choose(operators)
            if operator is not None:
                operator.run(self.quantum)
            elif not run_a_stalled_one(operators, self.quantum):
                return

    def choose(self, operators: Sequence[Schedulable]) -> Schedulable | None:
        overdue = self._overdue(operators)
        return super().choose(operators) if overdue is None else overdue

    def _overdue(self, operators: Sequence[Schedulable]) -> Schedulable | None:
        """The ready operator with the oldest element, if that has waited too long."""
        if self.latency_bound is None:
            return None
        latest = self.now() if self.now is not None else max((op.progress for op in operators), default=0)
        oldest, chosen = min(latest - self.latency_bound, MAX_INSTANT), None
        for operator in operators:
            ts = waiting_since(operator)
            # Of one instant the operator nearest to the output, which stands behind the others.
            if (ts < oldest or (chosen is not None and ts == oldest)) and is_ready(operator):
                oldest, chosen = ts, operator
        return chosen
