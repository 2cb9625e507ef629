"""The Re-optimizer of join trees: the best of all, by the sizes and rates of now; and back again where it is not.

What a tree is thought to cost is an estimate, what it did cost is known: after a switch the work per element is
compared with that before, and a tree that costs more is given up, and not tried again for a while, each time longer.
Invariant: it proposes legal trees only, and none that would save less than LEAST_GAIN.  Babu 2005, section 5.8.4.
"""

from __future__ import annotations

from collections.abc import Callable

from minidsms.operators.join_graph import Orders
from minidsms.operators.join_tree import Tree
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_trees.costs import ALIKE, ENTERING, MEASURED, TreeCosts
from minidsms.streamon.join_trees.executor import TreeExecutor
from minidsms.streamon.join_trees.profiler import JoinTreeProfiler

LEAST_GAIN = 0.15
WORSE = 0.05
"""A share by which a tree costs more than the one before it where it is given up."""
ENOUGH = 8_192
"""Elements over which costs are compared."""
LEAST_BAN = 200_000
"""Elements for which a tree that was given up is not tried again, the first time."""


class TreeReoptimizer:
    """deletes: elements that leave are joined too.  enters: the inputs are streams with ranges, and only what enters
    them is joined.  expected: what the present tree is thought to cost, or None."""

    def __init__(
        self,
        executor: TreeExecutor,
        profiler: JoinTreeProfiler,
        deletes: bool,
        enters: bool,
        saving: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """saving: of caches, which the flat tree may have."""
        self._executor = executor
        self._saving = saving
        self._enters = enters
        self._profiler = profiler
        self._deletes = deletes
        self._banned: dict[Tree, tuple[int, int]] = {}
        self._trial: tuple[Tree, float] | None = None
        self._proposed: Tree | None = None
        self._mark = executor.spent()
        self.expected: float | None = None

    def propose(self) -> Proposal[Tree] | None:
        """Another tree that is better by enough, or the one before where the present one has turned out worse."""
        executor = self._executor
        if self._trial is not None:
            before, old_cost = self._trial
            cost = self._cost()
            if cost is None:
                return None
            self._trial = None
            if cost > old_cost * (1 + WORSE):
                self._ban(executor.plan)
                return Proposal(before, f"it cost {100 * (cost / old_cost - 1):.0f} % more than the one before", None)
        tree, cost, present = self.best()
        self.expected = present
        if tree == executor.plan or cost > present * (1 - LEAST_GAIN) or self._is_banned(tree):
            return None
        known = self._cost()
        self._trial = None if known is None else (executor.plan, known)
        self._proposed = tree
        return Proposal(tree, "exhaustive search: the best tree costs less", 1 - cost / present)

    def best(self) -> tuple[Tree, float, float]:
        """The best tree, what it is thought to cost, and what the present one is."""
        executor, profiler = self._executor, self._profiler
        join = executor.join
        unit = ALIKE if not executor.measures_time else ENTERING if self._enters else MEASURED
        costs = TreeCosts(join.graph, profiler.sizes.of, profiler.rates, self._deletes, unit, self._saving())
        orders: Orders = join.orders
        tree, cost = costs.best(orders, executor.binary)
        return tree, cost, costs.of(executor.plan, orders)

    def adopt(self, plan: Tree) -> None:
        """Another tree runs."""
        if plan != self._proposed:
            self._trial = None
        self._mark = self._executor.spent()

    def start_over(self) -> None:
        """The costs of now count from here."""
        self._mark = self._executor.spent()

    @property
    def is_on_trial(self) -> bool:
        """The present tree has to show that it costs less than the one before."""
        return self._trial is not None

    def _cost(self) -> float | None:
        """Units per element since the last switch, or the last look; None of too few."""
        units, elements = self._executor.spent()
        if elements - self._mark[1] < ENOUGH:
            return None
        return (units - self._mark[0]) / (elements - self._mark[1])

    def _ban(self, tree: Tree) -> None:
        length = 2 * self._banned[tree][1] if tree in self._banned else LEAST_BAN
        self._banned[tree] = self._executor.spent()[1] + length, length

    def _is_banned(self, tree: Tree) -> bool:
        return tree in self._banned and self._executor.spent()[1] < self._banned[tree][0]
