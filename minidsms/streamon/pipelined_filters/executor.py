"""The Executor of pipelined filters: runs them in the present order, each on what those before it let pass.

Invariant: the plan is a permutation of the filters' numbers; which rows come out does not depend on it
(docs/semantics R4).  Babu 2005, figure 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from minidsms.compile_time import wall_ns
from minidsms.elements import Int64Array
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.predicate import narrow_by
from minidsms.expressions.value import Frame
from minidsms.streamon.contracts import Order


class FilterExecutor:
    """filters: by number.  reached: (n + 1,) tuples that reached each place of the present order, and its end, since it
    is the order. time_ns, tuples, evaluations: since the beginning.  first: filters of the condition before these.
    """

    def __init__(self, filters: Sequence[TupleFilter], measures_time: bool, first: int = 0) -> None:
        self.filters = tuple(filters)
        self.first = first
        self.reached = [0] * (len(self.filters) + 1)
        self.time_ns = 0
        self.tuples = 0
        self.evaluations = 0
        self._measures_time = measures_time
        self._plan: Order = tuple(range(len(self.filters)))

    @property
    def plan(self) -> Order:
        """The order."""
        return self._plan

    def switch(self, plan: Order) -> None:
        """Take another order."""
        self.evaluations += sum(self.reached[:-1])
        self._plan = tuple(plan)
        self.reached = [0] * len(self.reached)

    def is_legal(self, plan: object) -> bool:
        """Any permutation is."""
        return isinstance(plan, tuple) and sorted(plan) == list(range(len(self.filters)))

    def random_plan(self, rng: Random) -> Order:
        """Any permutation."""
        order = list(range(len(self.filters)))
        rng.shuffle(order)
        return tuple(order)

    def plan_text(self, plan: Order) -> str:
        """F2, F1, F3: the filters by number, counted from 1 as in the query."""
        return ", ".join(f"F{self.first + number + 1}" for number in plan)

    def spent(self) -> tuple[float, int]:
        """Nanoseconds, or filters evaluated where time is not measured, and tuples."""
        units = self.time_ns if self._measures_time else self.evaluations + sum(self.reached[:-1])
        return float(units), self.tuples

    def run(
        self, frame: Frame, rows: Int64Array | None, use_kernels: bool
    ) -> tuple[Int64Array | None, Int64Array | None]:
        """As `narrow_by`, in the present order."""
        start = wall_ns()
        result = narrow_by(self.filters, self._plan, frame, rows, use_kernels, self.reached)
        self.time_ns += wall_ns() - start
        self.tuples += frame.n if rows is None else len(rows)
        return result
