"""The Executor of a join's routes: a join whose elements take different orders by what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from minidsms.expressions.attributes import Attributes
from minidsms.joins.join import Join
from minidsms.joins.logical_filters import random_order
from minidsms.joins.plan import JoinRoutes
from minidsms.streamon.content_routing.random_routes import random_routes
from minidsms.streamon.meter import JoinExecutor, Meter


class RoutesExecutor(JoinExecutor):
    """attributes: of the inputs whose rows may be told apart.  meter: of the join."""

    def __init__(self, join: Join, attributes: Mapping[int, Attributes], meter: Meter) -> None:
        super().__init__(join, join.names, meter)
        self.attributes = attributes

    @property
    def plan(self) -> JoinRoutes:
        """Of the inputs whose elements are divided."""
        return self.join.plan.routes

    def switch(self, plan: JoinRoutes) -> None:
        """Divide by these from the next part on."""
        self.join.take_routes(plan)

    def is_legal(self, plan: object) -> bool:
        """Routes of inputs that have attributes, in legal orders."""
        if not isinstance(plan, tuple) or not all(i in self.attributes for i, _ in plan):
            return False
        return self.join.is_legal(replace(self.join.plan, routes=plan))

    def random_plan(self, rng: Random) -> JoinRoutes:
        """Any of some inputs, or none."""
        graph, chosen = self.join.graph, [i for i in sorted(self.attributes) if rng.random() < 0.7]
        return tuple(
            (i, random_routes(self.attributes[i], rng, lambda i=i: random_order(graph, i, rng)))  # type: ignore[misc]
            for i in chosen
        )

    def plan_text(self, plan: JoinRoutes) -> str:
        """R by k: 3 orders; or none."""
        return "; ".join(self.told(i, plan) for i, _ in plan) or "no routes"

    def told(self, i: int, plan: JoinRoutes) -> str:
        """R by k: 3 orders."""
        routes = dict(plan)[i]
        return f"{self.names[i]} by {', '.join(map(str, routes.classifiers))}: {len(routes.orders)} orders"
