"""The routes of one n-way join with their Executor, Profiler and Re-optimizer.

There is a choice where pipelines have several legal orders; rows are profiled for the orders, and tell of classes too.
Routes are on trial by the clock: what an element takes under them against what it took before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from minidsms.elements import Batch, Int64Array
from minidsms.expressions.attributes import Attributes
from minidsms.joins.plan import JoinRoutes
from minidsms.streamon.content_routing.of_joins.executor import RoutesExecutor
from minidsms.streamon.content_routing.of_joins.profiler import RouteProfiler
from minidsms.streamon.content_routing.of_joins.reoptimizer import RoutesReoptimizer
from minidsms.streamon.content_routing.trial import RouteTrial
from minidsms.streamon.join_ordering.adaptive_orders import AdaptiveOrders
from minidsms.streamon.join_watch import TICK, JoinWatch
from minidsms.streamon.loop import Budget, Loop

BUDGET = Budget(worth_ns=50_000_000)
INTERVALS = 4
"""Between looks, of which the cheapest says what an element takes: the processor is rarely alone."""
ALIKE = 0.05
"""By how much the share of an input in the elements of two intervals may differ."""


class AdaptiveRoutes:
    """orders: what adapts the orders of the same join.  attributes: by input, of rows that may be told apart.

    `watch` counts the join's elements, and asks.  See `Adapting`.
    """

    def __init__(self, watch: JoinWatch, orders: AdaptiveOrders, attributes: Mapping[int, Attributes]) -> None:
        self.due_at = 0
        self._watch = watch
        self._mark = (0.0, 0)
        self._arrived = list(watch.arrived)
        self._elements: deque[float] = deque(maxlen=INTERVALS)
        self._trial = RouteTrial()
        settings = watch.streamon.settings
        self.executor = RoutesExecutor(watch.join, attributes, watch)
        filters = {i: each for i, each in orders.filters.items() if i in attributes}
        known = {i: attributes[i] for i in filters}
        self.profiler = RouteProfiler(watch.join.index, known, {i: len(each.others) for i, each in filters.items()})
        orders.profiler.tell(self.profiler.take)
        measures_time = settings["cost_model"] == "measured"
        self.reoptimizer = RoutesReoptimizer(
            self.executor,
            filters,
            self.profiler.samples,
            orders.profiler.costs,
            settings["routing_buckets"],
            measures_time,
        )
        self.adaptation: Loop[JoinRoutes] = Loop(
            "join routing", watch.operator, self.executor, self.profiler, self.reoptimizer, watch.streamon, BUDGET
        )

    @property
    def has_choice(self) -> bool:
        """Rows of some input may be told apart."""
        return bool(self.executor.attributes)

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        elements = self._watch.elements
        self.due_at = elements + (TICK if self.adaptation.measures_time else 0)
        if not self.adaptation.is_free or not self._watch.join.uses_orders:
            self._trial.end()
            return
        units, since = self.executor.spent()[0] - self._mark[0], elements - self._mark[1]
        self._mark = self.executor.spent()
        arrived, self._arrived = self._arrived, list(self._watch.arrived)
        weights = {i: (n - arrived[i]) / max(1, since) for i, n in enumerate(self._arrived)}
        before, self.reoptimizer.weights = self.reoptimizer.weights, weights
        if any(abs(weight - before.get(i, 0.0)) > ALIKE for i, weight in weights.items()):
            # Elements of other inputs cost otherwise: nothing can be compared with what was before.
            self._elements.clear()
            self._trial.end()
        element = units / max(1, since)
        self._elements.append(element)
        if self.adaptation.measures_time and self._trial.has_failed(element) and self.executor.plan:
            self.reoptimizer.give_up()
            self.adaptation.take((), "content: routes cost more than they save")
            self._trial.end()
        elif self.reoptimizer.is_due and self._is_worth_it():
            self._reconsider(part, instant)

    def _is_worth_it(self) -> bool:
        if not self.adaptation.measures_time:
            return True
        is_known = len(self._elements) == INTERVALS
        return is_known and self.adaptation.is_worth_it() and self.adaptation.is_affordable()

    def _reconsider(self, part: Sequence[Batch | None], instant: int) -> None:
        reoptimizer, had_routes = self.reoptimizer, bool(self.executor.plan)
        reoptimizer.rows = {i: float(len(batch)) for i, batch in enumerate(part) if batch is not None}
        reoptimizer.element = min(self._elements) if self.adaptation.measures_time else 0.0
        with self.adaptation.deciding():
            has_changed = self.adaptation.reconsider(instant)
        if has_changed and self.executor.plan and not had_routes:
            self._trial.begin()
        elif has_changed:
            self._trial.end()

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        """See `Adapting.notice`. What was sampled before tells nothing of the work now."""
        if work_changed_by:
            for sample in self.profiler.samples.values():
                sample.forget()

    def describe(self) -> tuple[str, ...]:
        """A line for each input whose elements are divided, and each order with the share of a sample that takes it."""
        lines = []
        names = self.executor.names
        for i, routes in self.executor.plan:
            sample = self.profiler.samples.get(i)
            cells: Int64Array = np.zeros(0 if sample is None else len(sample), np.int64)
            for classifier in routes.classifiers:
                cells = cells * classifier.buckets + (0 if sample is None else sample.buckets(classifier))
            taken = np.bincount(np.frombuffer(routes.table, np.uint8)[cells], minlength=len(routes.orders))
            shares = 100 * taken / max(1, len(cells))
            told = [
                f"{', '.join(names[j] for j in order)} [{share:.1f} %]" for order, share in zip(routes.orders, shares)
            ]
            by = ", ".join(map(str, routes.classifiers))
            lines.append(f"{names[i]} routed by {by}, {len(told)} orders: {'; '.join(told)}")
        return tuple(lines)
