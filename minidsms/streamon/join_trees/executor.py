"""The Executor of join trees: an XJoin that takes the tree of the plan, and fills its subresults from the windows.

Invariant: the plan is a legal tree in normal form; what the join puts out does not depend on it (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from minidsms.joins.join import Join
from minidsms.joins.plan import Tree
from minidsms.joins.tree import MOST_SEARCHED, all_trees, flat, is_binary, normal, random_tree, tree_text
from minidsms.streamon.meter import JoinExecutor, Meter


class TreeExecutor(JoinExecutor):
    """names: of the inputs.  binary: only trees of two-way joins are plans.  meter: of the join; it takes its
    time or, without measures_time, counts steps.
    """

    def __init__(self, join: Join, names: Sequence[str], binary: bool, meter: Meter, measures_time: bool) -> None:
        super().__init__(join, names, meter)
        self.binary = binary
        self.measures_time = measures_time
        self._all: tuple[Tree, ...] | None = None

    @property
    def plan(self) -> Tree:
        """The tree that runs."""
        return self.join.tree

    @property
    def all_plans(self) -> tuple[Tree, ...]:
        """Every plan, where they are few enough to be looked at; else none."""
        if self._all is None:
            graph = self.join.graph
            is_few = graph.n <= MOST_SEARCHED and graph.is_connected
            self._all = tuple(all_trees(graph, self.binary)) if is_few else ()
        return self._all

    def switch(self, plan: Tree) -> None:
        """Take another tree."""
        self.join.take_tree(plan)

    def is_legal(self, plan: object) -> bool:
        """A tree in normal form, without Cartesian products that can be avoided, and binary where it has to be."""
        return self.join.is_legal_tree(plan) and (not self.binary or is_binary(plan))

    def random_plan(self, rng: Random) -> Tree:
        """Any plan, each as likely as another where all are known."""
        if self.all_plans:
            return rng.choice(self.all_plans)
        graph = self.join.graph
        return normal(random_tree(graph, rng, self.binary)) if graph.is_connected else flat(graph.n)

    def plan_text(self, plan: Tree) -> str:
        """((R, S), T)"""
        return tree_text(plan, self.names)
