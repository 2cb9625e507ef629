"""Content-Learns as a Profiler and a Re-optimizer of pipelined filters.

Profiler: the share P of the tuples goes to the profiled filter first and then along its route, apart from the tuples'
own way, and keeps W and S. Re-optimizer: when R tuples are there, the filter's classifier is tried: it stays unless a
tuple then costs more than while the filter was profiled, and the next filter's turn comes.

Invariant: of two stretches that are compared, neither is shorter than TRIED.  Content-Based Routing, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.classifiers import Classifier
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.routes import FilterPlan, Routes
from minidsms.expressions.value import Frame
from minidsms.streamon.content_routing.content_learns import ContentLearns
from minidsms.streamon.framework import Proposal

TRIED = 5_000
"""Tuples of a stretch: twice what R = 150 at P = 6 % takes."""

LEAST_GAIN = 0.03
"""Of the filters visited, what other orders have to save."""

NOISE = 0.02
"""By so much more a tuple may cost with a classifier that stays: where the other filters' classifiers tell enough, one
more changes nothing until they are profiled in turn.
"""
Spent = tuple[float, int]


class LearningProfiler:
    """filters: by number.  plan: gives the plan that runs."""

    def __init__(
        self,
        filters: Sequence[TupleFilter],
        attributes: Attributes,
        learns: ContentLearns,
        plan: Callable[[], FilterPlan],
    ) -> None:
        self._filters = filters
        self._attributes = attributes
        self._learns = learns
        self._plan = plan

    def statistics(self) -> Mapping[str, Any]:
        """W, and of each filter that has one its classifier with its gain ratio."""
        learns = self._learns
        told = {f: (str(c), learns.ratios[f]) for f, c in enumerate(learns.classifiers) if c is not None}
        return {"selectivities": tuple(learns.overall.tolist()), "classifiers": told}

    def profile(
        self, frame: Frame, rows: Int64Array | None, sampled: Int64Array, use_kernels: bool, passed: int = 0
    ) -> None:
        """Send sampled tuples to the profiled filter, and what it passes along their routes."""
        learns = self._learns
        part = frame.subset(sampled if rows is None else rows[sampled])
        first = learns.profiled
        kept = self._pass(first, part, None, use_kernels)
        if not learns.is_profiled():
            dropped = np.ones((part.n, 1), np.bool_)
            dropped[kept] = False
            learns.sample.take(part, dropped)
        for order, left in self._parts(part, kept):
            for number in order:
                if number != first and len(left):
                    left = self._pass(number, part, left, use_kernels)

    def _parts(self, part: Frame, rows: Int64Array) -> list[tuple[Sequence[int], Int64Array]]:
        plan = self._plan()
        if not isinstance(plan, Routes):
            return [(plan, rows)]
        from minidsms.streamon.content_routing.dividing import divided

        return list(zip(plan.orders, divided(plan, self._attributes, part, rows)))

    def _pass(self, number: int, part: Frame, rows: Int64Array | None, use_kernels: bool) -> Int64Array:
        """Evaluate a filter on rows; what it lets pass."""
        kept, _ = self._filters[number].narrow(part, rows, use_kernels)
        asked = np.arange(part.n) if rows is None else rows
        passes = np.zeros(part.n, np.bool_)
        passes[kept] = True
        classifier = self._learns.classifiers[number]
        cells = None if classifier is None else self._attributes.cells(classifier, part)[asked]
        self._learns.passed(number, cells, passes[asked])
        return kept


class LearnedReoptimizer:
    """spent: gives what the filters have cost, and for how many tuples."""

    name = "content"

    def __init__(self, learns: ContentLearns, spent: Callable[[], Spent], plan: FilterPlan) -> None:
        self._learns = learns
        self._spent = spent
        self._plan = plan
        self._began = spent()
        self._without: float | None = None

    def propose(self) -> Proposal[FilterPlan] | None:
        """What the matrices ask for now; on the way, a filter gets a classifier, keeps it or loses it."""
        learns = self._learns
        units, tuples = self._spent()
        passed = tuples - self._began[1]
        reason = "content: selectivities of classes have changed"
        if passed >= TRIED:
            cost = (units - self._began[0]) / passed
            if self._without is None and learns.is_profiled():
                classifier = learns.classify()
                if classifier is None:
                    self._next()
                else:
                    self._without = cost
                    self._began = units, tuples
                    reason = f"content: F{learns.profiled + 1} by {classifier}"
            elif self._without is not None:
                if cost > (1 + NOISE) * self._without:
                    learns.give_up()
                    reason = f"content: F{learns.profiled + 1} is no better for it"
                self._next()
        plan = learns.plan()
        present, wanted = learns.cost(self._plan), learns.cost(plan)
        if plan == self._plan or (
            _classifiers_of(plan) == _classifiers_of(self._plan) and wanted > (1 - LEAST_GAIN) * present
        ):
            return None
        return Proposal(plan, reason, 1 - wanted / present)

    def _next(self) -> None:
        self._without = None
        self._learns.next()
        self._began = self._spent()

    def adopt(self, plan: FilterPlan) -> None:
        """Another plan runs."""
        self._plan = plan


def _classifiers_of(plan: FilterPlan) -> tuple[Classifier, ...]:
    return plan.classifiers if isinstance(plan, Routes) else ()
