"""The Re-optimizer of a join's routes: classes whose orders save more than telling rows apart costs.

Invariant: routes are proposed only where they save a share of what an element of the join takes, on rows they were not
made from; those that were dearer by the clock are left alone for a while, longer each time.
Content-Based Routing, sections 4.1 and 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from minidsms.expressions.routes import Order, Routes
from minidsms.joins.logical_filters import LogicalFilters
from minidsms.joins.plan import JoinRoutes, Orders
from minidsms.streamon.bans import Bans
from minidsms.streamon.content_routing.choosing import Choice, best_routes, cost_of_order, cost_of_routes
from minidsms.streamon.content_routing.of_joins.costs import JoinDividing
from minidsms.streamon.content_routing.of_joins.executor import RoutesExecutor
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.contracts import Float64Array
from minidsms.streamon.framework import Proposal

ENOUGH = 500
"""Rows of a sample that says something."""
ANEW = 0.25
"""Routes are looked for again when so much of a sample is new."""
LEAST_GAIN = 0.01
"""Of what an element of the join takes, that other routes must save. Logical filters are timed while what they read is
in the cache, which in the join it often is not: the clock has the last word.
"""
MATTERS = 0.05
"""An input that brings less of the elements now does not."""
FIRST_BAN = 500_000
"""Elements for which the inputs of routes that did not pay are left alone."""


class RoutesReoptimizer:
    """filters, samples, costs: by input, as the profilers have them.  rows, weights: by input, of a part as they come,
    and the share of the elements.  element: what one takes under the present plan, 0 where it is not known.
    """

    def __init__(
        self,
        executor: RoutesExecutor,
        filters: Mapping[int, LogicalFilters],
        samples: Mapping[int, Sample],
        costs: Mapping[int, Float64Array],
        buckets: int,
        measures_time: bool,
    ) -> None:
        self.rows: Mapping[int, float] = {}
        self.weights: Mapping[int, float] = {}
        self.element = 0.0
        self._executor = executor
        self._filters = filters
        self._samples = samples
        self._costs = costs
        self._buckets = buckets
        self._dividing = JoinDividing(measures_time)
        self._looked_at = dict.fromkeys(samples, 0)
        self._known: dict[int, Routes] = {}
        self._bans: Bans[tuple[int, ...]] = Bans(FIRST_BAN)

    @property
    def is_due(self) -> bool:
        """Some sample has enough that is new."""
        return bool(self._due())

    def _due(self) -> list[int]:
        return [
            i
            for i, sample in self._samples.items()
            if len(sample) >= ENOUGH
            and sample.taken - self._looked_at[i] >= ANEW * len(sample)
            and self.weights.get(i, 0.0) >= MATTERS
        ]

    def propose(self) -> Proposal[JoinRoutes] | None:
        """Routes of the inputs whose samples tell something new, where they save enough."""
        orders: Orders = self._executor.join.plan.orders
        present = dict(self._executor.plan)
        wanted, found = dict(present), dict(self._known)
        saved = 0.0
        for i in self._due():
            sample, costs = self._samples[i], self._costs[i]
            self._looked_at[i] = sample.taken
            if not (costs == costs).all():
                continue
            usual = self._filters[i].filters(orders[i])
            rows = self.rows.get(i, 1.0)
            choice = best_routes(sample, usual, costs, self._dividing, self._buckets, rows)
            now = cost_of_order(sample, usual, costs)
            if i in present and i in self._known:
                now = cost_of_routes(sample, self._known[i], costs, self._dividing, rows)
            after = self._after(i, choice, sample, usual, costs)
            saved += self.weights.get(i, 0.0) * (now - after)
            wanted.pop(i, None)
            found.pop(i, None)
            if choice is not None and choice.cost <= after:
                wanted[i], found[i] = self._joining(i, choice.routes), choice.routes
        plan = tuple(sorted(wanted.items()))
        if plan == self._executor.plan or saved <= LEAST_GAIN * self.element or self._is_banned(plan):
            return None
        if not self._executor.is_legal(plan):  # of more pipelines than kernels tell apart
            return None
        self._known = found
        reason = "content: classes of rows differ" if plan else "content: routes no longer pay"
        return Proposal(plan, reason, saved / self.element if self.element else None)

    def _after(self, i: int, choice: Choice | None, sample: Sample, usual: Order, costs: Float64Array) -> float:
        """What a row of input i costs under the better of the routes found and no routes."""
        alone = cost_of_order(sample, usual, costs)
        return alone if choice is None else min(alone, choice.cost)

    def _joining(self, i: int, routes: Routes) -> Routes:
        """Routes to orders of logical filters as routes to orders of joins."""
        joins = self._filters[i].joins
        return replace(routes, order=joins(routes.order), orders=tuple(joins(order) for order in routes.orders))

    def _is_banned(self, plan: JoinRoutes) -> bool:
        return bool(plan) and self._bans.is_banned(_divided(plan), self._executor.spent()[1])

    def give_up(self) -> None:
        """The routes that run cost more than they save, by the clock."""
        self._bans.ban(_divided(self._executor.plan), self._executor.spent()[1])

    def adopt(self, plan: JoinRoutes) -> None:
        """Others run."""
        self._known = {i: routes for i, routes in self._known.items() if i in dict(plan)}


def _divided(plan: JoinRoutes) -> tuple[int, ...]:
    return tuple(i for i, _ in plan)
