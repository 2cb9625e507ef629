"""The Executor of join orders: an MJoin whose pipelines visit its windows in the orders of the plan.

Invariant: the plan is legal; what the join puts out does not depend on it (docs/semantics T5). Babu 2005, section
5.5.6.
"""

from __future__ import annotations

from random import Random

from minidsms.joins.logical_filters import random_order
from minidsms.joins.plan import Orders
from minidsms.streamon.meter import JoinExecutor


class OrderExecutor(JoinExecutor):
    """Its plans are the orders of all inputs."""

    @property
    def plan(self) -> Orders:
        """Of each input, the others in probing order."""
        return self.join.orders

    def switch(self, plan: Orders) -> None:
        """Take other orders."""
        self.join.reorder(plan)

    def is_legal(self, plan: object) -> bool:
        """One order of all the others for each input, with no Cartesian step that can be avoided."""
        return (
            isinstance(plan, tuple)
            and all(isinstance(order, tuple) and all(isinstance(j, int) for j in order) for order in plan)
            and self.join.is_legal(plan)
        )

    def random_plan(self, rng: Random) -> Orders:
        """Any legal orders."""
        graph = self.join.graph
        return tuple(random_order(graph, i, rng) for i in range(graph.n))

    def plan_text(self, plan: Orders) -> str:
        """R: S, T | S: R, T | T: S, R"""
        names = self.names
        return " | ".join(f"{names[i]}: {', '.join(names[j] for j in order)}" for i, order in enumerate(plan))
