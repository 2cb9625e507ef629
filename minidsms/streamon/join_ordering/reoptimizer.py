"""The Re-optimizer of join orders: takes, for each pipeline, the order of an ordering algorithm over logical filters.

Where steps compare several inputs, what they cost depends on the index and on all inputs visited before, not on what
drops an element alone: there orders are those of least cost in the model by which trees, caches and indexes are
weighed.

Invariant: it proposes legal orders only, and none that would save a pipeline less than LEAST_GAIN, or the whole join
hardly anything: orders decide which caches there can be, and those that are used would be lost for it. Babu 2005,
sections 4.3.2 and 5.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from minidsms.joins.logical_filters import LogicalFilters
from minidsms.joins.plan import Orders
from minidsms.joins.tree import flat
from minidsms.streamon.contracts import OrderingAlgorithm
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_trees.pipelines import JoinPipelines
from minidsms.streamon.neighbours import costs_of, neighbours

LEAST_GAIN = 0.03
LEAST_MODELLED_GAIN = 0.1
"""Where samples of joins of inputs tell."""


class JoinOrderReoptimizer:
    """name: the algorithm's, as `SET filter_ordering` knows it.  filters, algorithms: by the input of the pipelines
    that have a choice; no algorithms as long as nothing is known.  weights: by input, the share of elements that enter.
    least: what other orders must save for an element of the join, on average.  pipelines: of a join whose orders are
    modelled.
    """

    def __init__(
        self,
        name: str,
        current: Orders,
        filters: Mapping[int, LogicalFilters],
        algorithms: dict[int, OrderingAlgorithm],
        pipelines: JoinPipelines | None = None,
    ) -> None:
        self.name = name
        self._pipelines = pipelines
        self.filters = filters
        self.algorithms = algorithms
        self.weights: dict[int, float] = dict.fromkeys(algorithms, 1.0)
        self.least = 0.0
        self.has_noticed = False
        """Conditions have changed since the last proposal, as far as anybody has told."""
        self._current = current

    def propose(self) -> Proposal[Orders] | None:
        """The algorithms' orders, or those of least cost, where they are others and better than the present ones."""
        if self._pipelines is not None:
            return self._modelled(self._pipelines)
        orders = list(self._current)
        before = after = 0.0
        for i, algorithm in self.algorithms.items():
            filters = self.filters[i]
            joins = filters.joins(algorithm.order)
            old = algorithm.expected_cost(filters.filters(self._current[i]))
            if old is None:
                continue
            new = old
            if joins != self._current[i]:
                cost = algorithm.expected_cost(filters.filters(joins))
                if cost is not None and cost < old * (1 - LEAST_GAIN):
                    orders[i], new = joins, cost
            before += self.weights[i] * old
            after += self.weights[i] * new
        proposed = tuple(orders)
        if proposed == self._current or before - after < self.least:
            return None
        gain = 1 - after / before if before > 0 else None
        return Proposal(proposed, self._reason(self.name), gain, self._considered(proposed, before, after))

    def _reason(self, by: str) -> str:
        after, self.has_noticed = ", after a change" if self.has_noticed else "", False
        return f"{by}: other orders cost less{after}"

    def _modelled(self, pipelines: JoinPipelines) -> Proposal[Orders] | None:
        present, model = pipelines.costs(is_present=True), pipelines.costs(is_present=False)
        tree = flat(len(self._current))
        orders = model.orders()
        before, after = min(each.of(tree, self._current) for each in (present, model)), model.of(tree, orders)
        if orders == self._current or after >= before * (1 - LEAST_MODELLED_GAIN) or before - after < self.least:
            return None
        plans = {self._current: before, orders: after}
        for i, order in enumerate(self._current):
            plan = (*orders[:i], order, *orders[i + 1 :])
            plans.setdefault(plan, model.of(tree, plan))
        return Proposal(orders, self._reason("c_d"), 1 - after / before, list(plans.items()))

    def _considered(self, proposed: Orders, before: float, after: float) -> list[tuple[Orders, float]]:
        """The present plan and the proposed one, which cost so much, and those with another order of one pipeline."""
        plans: dict[Orders, float] = {self._current: before, proposed: after}
        for i, algorithm in self.algorithms.items():
            filters = self.filters[i]
            own = filters.filters(proposed[i])
            known = dict(costs_of(algorithm, [filters.filters(filters.joins(each)) for each in neighbours(own)]))
            its = known.get(own)
            if its is None:
                continue
            for order, other in known.items():
                plan = (*proposed[:i], filters.joins(order), *proposed[i + 1 :])
                plans.setdefault(plan, after + self.weights[i] * (other - its))
        return list(plans.items())

    def adopt(self, plan: Orders) -> None:
        """Other orders run."""
        for i, algorithm in self.algorithms.items():
            filters = self.filters[i]
            if plan[i] != self._current[i] and filters.joins(algorithm.order) != plan[i]:
                algorithm.adopt(filters.filters(plan[i]))
        self._current = plan
