"""The Re-optimizer of pipelined filters whose tuples may be routed by content.

It asks the ordering algorithm for the order of tuples that are not told apart, and the sample for routes that cost less
than it. Routes that cost more than the plan before, by the clock, are left alone for a while, longer each time.

Invariant: routes are proposed only while they save more than dividing costs, on tuples they were not made from.
Content-Based Routing, sections 4.1 and 4.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from minidsms.elements import BoolArray
from minidsms.expressions.classifiers import Classifier
from minidsms.expressions.routes import FilterPlan, Order, Routes
from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.bans import Bans
from minidsms.streamon.content_routing.choosing import Choice, best_routes, cost_of_order, cost_of_routes, could_save
from minidsms.streamon.content_routing.costs import Dividing
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.content_routing.trial import LEAST, RouteTrial
from minidsms.streamon.framework import Proposal
from minidsms.streamon.pipelined_filters.costs import FilterCosts
from minidsms.streamon.pipelined_filters.reoptimizer import LEAST_GAIN, OrderReoptimizer

Spent = tuple[float, int]
FORGETTING = 0.95
"""Of the largest chunk, per chunk since."""
ENOUGH = 500
"""Tuples of a sample that says something."""
ANEW = 0.25
"""Routes are looked for again when so much of the sample is new."""
FIRST_NS = 30_000_000
"""Time spent in the filters before routes are looked for, which takes three and more, in ms."""
SHARE = 0.01
"""Of the time spent in the filters, what looking for routes takes."""


FIRST_BAN = 2_000_000
"""Tuples for which classifiers are left alone whose routes cost more than the plan before."""


class RoutedReoptimizer:
    """ordering: chooses the usual order.  spent: gives what filters have cost, in ns where time is measured, and for
    how many tuples.  rows: of a chunk, as they usually come.
    """

    def __init__(
        self,
        ordering: OrderReoptimizer,
        sample: Sample,
        costs: FilterCosts,
        spent: Callable[[], Spent],
        buckets: int,
        measures_time: bool,
    ) -> None:
        self.rows = 1.0
        self._spent = spent
        self._seen: Spent | None = None
        self._trial = RouteTrial()
        self._has_failed = False
        self._bans: Bans[tuple[Classifier, ...]] = Bans(FIRST_BAN)
        self._ordering = ordering
        self._sample = sample
        self._costs = costs
        self._buckets = buckets
        self._dividing = Dividing(measures_time)
        self._plan: FilterPlan = ordering.algorithm.order
        self._measures_time = measures_time
        self._looked_at = 0
        self._looking_ns = 0

    def enters(self, rows: int) -> None:
        """So many tuples come next."""
        self.rows = max(float(rows), FORGETTING * self.rows)

    def seen(self) -> bool:
        """A chunk has passed; whether it is time to look for routes, or to give up those that were tried."""
        if not len(self._sample) and not isinstance(self._plan, Routes):
            self._seen = None
            return False
        before, self._seen = self._seen, self._spent()
        if before is not None and self._measures_time:
            tuples = self._seen[1] - before[1]
            if tuples >= LEAST * self.rows:
                self._has_failed |= self._trial.has_failed((self._seen[0] - before[0]) / tuples)
        return self._has_failed or self._is_due()

    def is_promising(self, drops: BoolArray) -> bool:
        """The filters of these tuples cost enough for classes to matter, and chunks are long. drops: (m, n)."""
        if self._measures_time and self.rows < self._dividing.least:
            return False
        return could_save(drops, self._ordering.algorithm.order, self._costs.values, self._dividing)

    def _is_due(self) -> bool:
        sample = self._sample
        if len(sample) < ENOUGH or sample.taken - self._looked_at < ANEW * len(sample):
            return False
        time_ns, _ = self._spent()
        return not self._measures_time or (time_ns >= FIRST_NS and self._looking_ns <= SHARE * time_ns)

    def _look(self, usual: Order) -> Choice | None:
        start = thread_ns()
        self._looked_at = self._sample.taken
        found = best_routes(self._sample, usual, self._costs.values, self._dividing, self._buckets, self.rows)
        _, tuples = self._spent()
        is_banned = found is not None and self._bans.is_banned(_told_by(found.routes), tuples)
        self._looking_ns += thread_ns() - start
        return None if is_banned else found

    def propose(self) -> Proposal[FilterPlan] | None:
        """Routes, if they save enough; else what the ordering algorithm asks for."""
        ordered = self._ordering.propose()
        sample = self._sample
        costs = self._costs.values
        if len(sample) < ENOUGH or not (costs == costs).all():
            return self._unless_routed(ordered)
        usual: Order = self._ordering.algorithm.order
        if self._has_failed and isinstance(self._plan, Routes):
            self._bans.ban(_told_by(self._plan), self._spent()[1])
            return Proposal(usual, "content: routes cost more than they save", None)
        if not self._is_due():
            return self._unless_routed(ordered)
        choice = self._look(usual)
        present = self._plan
        if isinstance(present, Routes):
            cost = cost_of_routes(sample, present, costs, self._dividing, self.rows)
            if choice is None:
                return self._back_to(usual, cost)
            if choice.cost >= (1 - LEAST_GAIN) * cost:
                return None
            return Proposal(choice.routes, self._reason(choice.routes), 1 - choice.cost / cost)
        if choice is None or choice.cost >= (1 - LEAST_GAIN) * choice.usual_cost:
            return self._unless_routed(ordered)
        return Proposal(choice.routes, self._reason(choice.routes), 1 - choice.cost / choice.usual_cost)

    def _unless_routed(self, ordered: Proposal[FilterPlan] | None) -> Proposal[FilterPlan] | None:
        return None if isinstance(self._plan, Routes) else ordered

    def _back_to(self, usual: Order, cost: float) -> Proposal[FilterPlan] | None:
        alone = cost_of_order(self._sample, usual, self._costs.values)
        if alone >= cost:
            return None
        return Proposal(usual, f"{self._ordering.name}: routes by content no longer pay", 1 - alone / cost)

    def _reason(self, routes: Routes) -> str:
        return f"content: classes of {', '.join(map(str, routes.classifiers))} differ"

    def adopt(self, plan: FilterPlan) -> None:
        """Another plan runs."""
        self._has_failed = False
        if isinstance(plan, Routes) and not isinstance(self._plan, Routes):
            self._trial.begin()
        else:
            self._trial.end()
        self._plan = plan
        self._ordering.adopt(plan)

    def forget(self) -> None:
        """The streams have changed."""
        self._sample.forget()
        self._looked_at = self._sample.taken


def _told_by(routes: Routes) -> tuple[Classifier, ...]:
    """The attributes that routes go by, whatever the bounds of ranges are."""
    return tuple(replace(each, bounds=()) for each in routes.classifiers)
