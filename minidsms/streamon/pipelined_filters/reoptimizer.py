"""The Re-optimizer of pipelined filters: takes the order of an ordering algorithm.

Invariant: it proposes only what the algorithm stands for, and nothing that would save less than LEAST_GAIN: few tuples
reach the last places, and what is known of them changes with every profile.  Babu 2005, section 4.3.2.
"""

from __future__ import annotations

from minidsms.expressions.routes import FilterPlan, usual_order
from minidsms.streamon.contracts import KnowsChanges, OrderingAlgorithm
from minidsms.streamon.framework import Proposal
from minidsms.streamon.neighbours import costs_of, neighbours

LEAST_GAIN = 0.03


class OrderReoptimizer:
    """name: the algorithm's, as `SET filter_ordering` knows it.  first: filters of the condition before these.
    watch: knows of changes.
    """

    def __init__(
        self, name: str, algorithm: OrderingAlgorithm, first: int = 0, watch: KnowsChanges | None = None
    ) -> None:
        self.name = name
        self.algorithm = algorithm
        self._current = algorithm.order
        self._first = first
        self._watch = watch
        self._changes = 0

    def propose(self) -> Proposal[FilterPlan] | None:
        """The algorithm's order, if it is another and better than the present one."""
        order = self.algorithm.order
        if order == self._current:
            return None
        before, after = (self.algorithm.expected_cost(o) for o in (self._current, order))
        gain = None if before is None or after is None or before <= 0 else 1 - after / before
        if gain is not None and gain < LEAST_GAIN:
            return None
        considered = costs_of(self.algorithm, [self._current, *neighbours(order)])
        return Proposal(order, f"{self.name}: another order costs less{self._after_change()}", gain, considered)

    def _after_change(self) -> str:
        """What has changed since the last proposal, if anything was found."""
        watch = self._watch
        if watch is None or watch.changes == self._changes:
            return ""
        self._changes = watch.changes
        change = watch.last_change
        return ", after a change" + ("" if change is None else f" of F{self._first + change.filter + 1}")

    def adopt(self, plan: FilterPlan) -> None:
        """Another order runs; of routes, that of tuples that are not told apart counts."""
        self._current = usual_order(plan)
        if self.algorithm.order != self._current:
            self.algorithm.adopt(self._current)
