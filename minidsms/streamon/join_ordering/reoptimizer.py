"""The Re-optimizer of join orders: takes, for each pipeline, the order of an ordering algorithm over logical filters.

Invariant: it proposes legal orders only, and none that would save a pipeline less than LEAST_GAIN, or the whole join
hardly anything: orders decide which caches there can be, and those that are used would be lost for it. Babu 2005,
sections 4.3.2 and 5.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from minidsms.joins.plan import Orders
from minidsms.streamon.contracts import OrderingAlgorithm
from minidsms.streamon.filter_ordering.neighbours import costs_of, neighbours
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_ordering.logical_filters import LogicalFilters

LEAST_GAIN = 0.03


class JoinOrderReoptimizer:
    """name: the algorithm's, as `SET filter_ordering` knows it.  filters, algorithms: by the input of the pipelines
    that have a choice; no algorithms as long as nothing is known.  weights: by input, the share of elements that enter.
    least: what other orders must save for an element of the join, on average.
    """

    def __init__(
        self,
        name: str,
        current: Orders,
        filters: Mapping[int, LogicalFilters],
        algorithms: dict[int, OrderingAlgorithm],
    ) -> None:
        self.name = name
        self.filters = filters
        self.algorithms = algorithms
        self.weights: dict[int, float] = dict.fromkeys(algorithms, 1.0)
        self.least = 0.0
        self.has_noticed = False
        """Conditions have changed since the last proposal, as far as anybody has told."""
        self._current = current

    def propose(self) -> Proposal[Orders] | None:
        """The algorithms' orders, where they are others and better than the present ones."""
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
        reason = f"{self.name}: other orders cost less" + (", after a change" if self.has_noticed else "")
        self.has_noticed = False
        return Proposal(proposed, reason, gain, self._considered(proposed, before, after))

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
