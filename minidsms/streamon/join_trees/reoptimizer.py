"""The Re-optimizer of join trees: the best of all, by the sizes and rates of now; and back again where it is not.

Pipelines count as what they may be: with caches in them, or over an index of the patterns that their steps probe.

What a tree is thought to cost is an estimate, what it did cost is known: after a switch the work per element is
compared with that before, and a tree that costs more is given up, and not tried again for a while, each time longer.
Invariant: it proposes legal trees only, and none that would save less than LEAST_GAIN.  Babu 2005, section 5.8.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from minidsms.joins.plan import Orders, Tree
from minidsms.joins.tree import flat
from minidsms.streamon.bans import Bans
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_trees.costs import TreeCosts
from minidsms.streamon.join_trees.executor import TreeExecutor
from minidsms.streamon.join_trees.pipelines import JoinPipelines
from minidsms.streamon.join_trees.profiler import JoinTreeProfiler

LEAST_GAIN = 0.1
WORSE = 0.05
"""A share by which a tree costs more than the one before it where it is given up."""
ENOUGH = 8_192
"""Elements over which costs are compared."""
LEAST_BAN = 200_000
"""Elements for which a tree that was given up is not tried again, the first time."""
MEMORY = 0.5
"""Of the error known of a kind's model, what stays when it is seen anew."""
MOST_TOLD = 32
"""Trees up to which a proposal tells what each costs: those of four inputs."""
FORGETTING = 0.1
"""Of what the models of kinds that do not run err more than that of the one which does, at each look."""


class Kind(Enum):
    """Of plans, as far as models of cost may err by different factors."""

    PIPELINES = "MJoin"
    INDEXED = "with patterns"
    CACHES = "with caches"
    TREE = "tree"


class TreeReoptimizer:
    """deletes: elements that leave are joined too.  unit: what steps cost.  expected: what plans are thought to cost,
    by kind; measured: what the present one did; both when last looked at.
    """

    def __init__(
        self,
        executor: TreeExecutor,
        profiler: JoinTreeProfiler,
        deletes: bool,
        pipelines: JoinPipelines,
    ) -> None:
        self._executor = executor
        self._pipelines = pipelines
        self.unit = pipelines.unit
        self._profiler = profiler
        self._deletes = deletes
        self._bans: Bans[tuple[Tree, Kind]] = Bans(LEAST_BAN)
        self._trial: tuple[Tree, float] | None = None
        self._proposed: Tree | None = None
        self._mark = executor.spent()
        self._is_new = False
        self._errors: dict[Kind, float] = {}
        self.expected: dict[Kind, float] = {}
        self.best_tree: Tree | None = None
        self._expected: Callable[[Tree], float] = lambda tree: math.nan
        self.measured: float | None = None

    def propose(self) -> Proposal[Tree] | None:
        """Another tree that is better by enough, or the one before where the present one has turned out worse."""
        executor = self._executor
        tree, cost, present = self.best()
        known = self._cost()
        if self._trial is not None:
            before, old_cost = self._trial
            if known is None:
                return None
            self._trial = None
            if known > old_cost * (1 + WORSE):
                self._bans.ban((executor.plan, self._kind()), executor.spent()[1])
                return Proposal(before, f"it cost {100 * (known / old_cost - 1):.0f} % more than the one before", None)
        if tree == executor.plan or cost >= present * (1 - LEAST_GAIN) or self._is_banned(tree):
            return None
        self._trial = (executor.plan, known) if known else None
        self._proposed = tree
        plans = executor.all_plans
        compared = plans if len(plans) <= MOST_TOLD else (executor.plan, tree)
        considered = [(each, self._expected(each)) for each in compared]
        return Proposal(tree, "exhaustive search: the best tree costs less", 1 - cost / present, considered)

    def best(self) -> tuple[Tree, float, float]:
        """The best tree, what it is thought to cost, and what the present one is.

        What a kind of plan costs more than its model says is learned while it runs. One that has not run is taken to
        err as the present one does.
        """
        executor, profiler = self._executor, self._profiler
        join = executor.join
        known = join.graph, profiler.sizes.of, profiler.rates, self._deletes, self.unit
        costs, saving = TreeCosts(*known), self._pipelines.saved_by_caches
        by_patterns = TreeCosts(*known, by_patterns=True)
        pipelines = flat(join.graph.n)
        orders: Orders = join.orders
        if self._pipelines.are_modelled:
            # Pipelines take their best orders sooner or later, and at once where a tree has gone.
            orders = (by_patterns if self._pipelines.may_be_indexed else costs).orders()
        cached = TreeCosts(*known, saving, self._pipelines.is_indexed)
        best_tree, best_cost = costs.best(orders, executor.binary, keeps=True)
        models = {
            Kind.PIPELINES: costs.of(pipelines, orders),
            Kind.INDEXED: by_patterns.of(pipelines, orders),
            Kind.CACHES: cached.of(pipelines, join.orders),
            Kind.TREE: best_cost,
        }
        kind = self._kind()
        of_kind = {Kind.INDEXED: by_patterns, Kind.CACHES: cached}.get(kind, costs)
        model = of_kind.of(executor.plan, join.orders)
        error = self._learn(kind, model)
        self.best_tree = best_tree
        self.expected = {k: models[k] * self._errors.get(k, error) for k in Kind}
        tree_error = self._errors.get(Kind.TREE, error)
        flat_cost = min(self.expected[k] for k in (*self.open_kinds(), Kind.PIPELINES))
        present = model * error if kind is Kind.TREE else min(model * error, flat_cost)
        self._expected = lambda tree: flat_cost if tree == pipelines else costs.of(tree, orders) * tree_error
        if executor.binary or self.expected[Kind.TREE] < flat_cost:
            return best_tree, self.expected[Kind.TREE], present
        return pipelines, flat_cost, present

    def _kind_of(self, tree: Tree) -> Kind:
        """Of a plan that could run."""
        if tree != flat(self._executor.join.graph.n):
            return Kind.TREE
        if self._pipelines.saved_by_caches:
            return Kind.CACHES
        return Kind.INDEXED if self._pipelines.may_be_indexed else Kind.PIPELINES

    def _kind(self) -> Kind:
        """Of the plan that runs."""
        if self._executor.plan != flat(self._executor.join.graph.n):
            return Kind.TREE
        if self._pipelines.has_caches:
            return Kind.CACHES
        return Kind.INDEXED if self._pipelines.is_indexed else Kind.PIPELINES

    def open_kinds(self) -> list[Kind]:
        """Of pipelines, those that the join may run as."""
        if self._executor.binary:
            return []
        indexed = [Kind.INDEXED] if self._pipelines.may_be_indexed else []
        return [Kind.PIPELINES, *indexed, *([Kind.CACHES] if self._pipelines.saved_by_caches else [])]

    def _learn(self, kind: Kind, model: float) -> float:
        """The factor by which the plan that runs costs more than its model says; 1 where time is not measured."""
        if not self._executor.measures_time:
            return 1.0
        self.measured = self._cost()
        if self.measured is not None and model > 0:
            seen = self.measured / model
            error = MEMORY * self._errors.get(kind, seen) + (1 - MEMORY) * seen
            self._errors[kind] = error
            for other, its in self._errors.items():
                self._errors[other] = its + FORGETTING * (error - its)
        return self._errors.get(kind, 1.0)

    def adopt(self, plan: Tree) -> None:
        """Another tree runs."""
        if plan != self._proposed:
            self._trial = None
        self._is_new = True
        self._mark = self._executor.spent()

    def pass_on(self) -> None:
        """Some thousand elements have passed; those that come first under a new tree are not counted."""
        if self._is_new:
            self.start_over()

    def forget(self) -> None:
        """Conditions have changed: costs count from here, and no tree is on trial."""
        self.start_over()
        self._trial = None

    def start_over(self) -> None:
        """The costs of now count from here."""
        self._is_new = False
        self._mark = self._executor.spent()

    @property
    def is_on_trial(self) -> bool:
        """The present tree has to show that it costs less than the one before."""
        return self._trial is not None

    def _cost(self) -> float | None:
        """Units per element since the last switch or look; None of too few elements."""
        units, elements = self._executor.spent()
        if elements - self._mark[1] < ENOUGH:
            return None
        return (units - self._mark[0]) / (elements - self._mark[1])

    def _is_banned(self, tree: Tree) -> bool:
        return self._bans.is_banned((tree, self._kind_of(tree)), self._executor.spent()[1])
