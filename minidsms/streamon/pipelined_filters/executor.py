"""The Executor of pipelined filters: runs them in the present order, each on what those before it let pass; or, with
routes, each class of tuples in the order of its own.

Invariant: every order is a permutation of the filters' numbers; which rows come out depends neither on it nor on the
routes (docs/semantics R4).  Babu 2005, figure 4.1; Content-Based Routing, section 4.2.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from minidsms.counted import counted
from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.predicate import joint_of, narrow_by
from minidsms.expressions.routes import FilterPlan, Order, Routes, usual_order
from minidsms.expressions.value import Frame
from minidsms.process.side_by_side import Dividing, side_by_side, usable_threads
from minidsms.streamon.content_routing.random_routes import random_routes
from minidsms.streamon.processor_clock import ProcessorClock

LEAST_ROWS = 8_192
"""Rows of a range that a thread is given, ..."""
WORTH_NS = 100_000
"""... and time that they are expected to take: handing it over takes some 30 us."""


@dataclass
class Part:
    """Tuples that take one order. reached: (n + 1,) how many reached each place, and the end, since the plan runs."""

    order: Order
    reached: list[int]

    @classmethod
    def of(cls, order: Order) -> Part:
        """Of an order, nothing counted."""
        return cls(order, [0] * (len(order) + 1))


class FilterExecutor:
    """filters: by number.  attributes: of the tuples, None where they are never routed.  parts: with routes one for
    each order, then the one of tuples that are not divided; else this one only.

    tuples, evaluations: since the beginning.  first: filters of the condition before these.  threads: how many may
    work at once, or 'auto'.
    """

    def __init__(
        self,
        filters: Sequence[TupleFilter],
        measures_time: bool,
        first: int = 0,
        attributes: Attributes | None = None,
        threads: Callable[[], int | str] = lambda: 1,
    ) -> None:
        self.filters = tuple(filters)
        self._joint = joint_of(filters)
        self._may_divide = all(each.is_thread_safe for each in filters)
        self._threads = threads
        self._dividing = Dividing()
        self.first = first
        self.tuples = 0
        self.evaluations = 0
        self._clock = ProcessorClock() if measures_time else None
        self._attributes = attributes
        self.plan: FilterPlan = tuple(range(len(self.filters)))
        """The order, or the routes."""
        self._routes: Routes | None = None
        self.parts: tuple[Part, ...] = (Part.of(usual_order(self.plan)),)

    def switch(self, plan: FilterPlan) -> None:
        """Take another order, or other routes."""
        self.evaluations += self._evaluations_of_plan()
        self.plan = plan if isinstance(plan, Routes) else tuple(plan)
        self._routes = plan if isinstance(plan, Routes) else None
        routed = plan.orders if isinstance(plan, Routes) else ()
        self.parts = tuple(Part.of(order) for order in (*routed, usual_order(self.plan)))

    def is_legal(self, plan: object) -> bool:
        """Any permutation is, and any routes by attributes of the tuples through permutations."""
        if not isinstance(plan, Routes):
            return isinstance(plan, tuple) and sorted(plan) == list(range(len(self.filters)))
        attributes = self._attributes
        return (
            attributes is not None
            and plan.is_whole
            and all(attributes.has(each) for each in plan.classifiers)
            and all(self.is_legal(order) for order in (plan.order, *plan.orders))
        )

    def random_plan(self, rng: Random) -> FilterPlan:
        """Any permutation; one time in two, where tuples can be told apart, random routes."""
        n = len(self.filters)
        if n > 1 and self._attributes is not None and self._attributes.readings() and rng.random() < 0.5:
            return random_routes(self._attributes, rng, lambda: tuple(rng.sample(range(n), n)), True)
        return tuple(rng.sample(range(n), n))

    def plan_text(self, plan: FilterPlan) -> str:
        """F2, F1, F3: the filters by number, counted from 1 as in the query; or what routes go by."""
        if isinstance(plan, Routes):
            names = ", ".join(map(str, plan.classifiers))
            return f"by {names}: {counted(len(plan.orders), 'order')}"
        return ", ".join(f"F{self.first + number + 1}" for number in plan)

    def spent(self) -> tuple[float, int]:
        """Nanoseconds, or filters evaluated where time is not measured, and tuples."""
        units = self.evaluations + self._evaluations_of_plan() if self._clock is None else self._clock.ns
        return float(units), self.tuples

    @property
    def time_ns(self) -> int:
        """Of all threads, since the beginning; 0 where time is not measured."""
        return 0 if self._clock is None else self._clock.ns

    def _evaluations_of_plan(self) -> int:
        return sum(sum(part.reached[:-1]) for part in self.parts)

    def run(
        self, frame: Frame, rows: Int64Array | None, use_kernels: bool
    ) -> tuple[Int64Array | None, Int64Array | None]:
        """As `narrow_by`, by the present plan."""
        in_question, clock, routes = frame.n if rows is None else len(rows), self._clock, self._routes
        is_timed = clock is not None and clock.start(in_question)
        if routes is not None and in_question >= routes.least:
            result = self._run_routed(routes, frame, rows, use_kernels)
        else:
            part, ranges = self.parts[-1], 1
            if rows is None and in_question >= 2 * LEAST_ROWS:
                ranges = self._ranges(frame)
            if ranges > 1:
                result = self._run_large(part, frame, use_kernels, ranges)
            else:
                result = narrow_by(self.filters, part.order, frame, rows, use_kernels, part.reached, self._joint)
        if is_timed:
            clock.stop()  # type: ignore[union-attr]
        self.tuples += in_question
        return result

    def _run_routed(
        self, routes: Routes, frame: Frame, rows: Int64Array | None, use_kernels: bool
    ) -> tuple[Int64Array | None, Int64Array | None]:
        from minidsms.streamon.content_routing.dividing import divided, narrow_by_routes

        assert self._attributes is not None
        parts = divided(routes, self._attributes, frame, rows)
        reached = [part.reached for part in self.parts]
        return narrow_by_routes(self.filters, routes, parts, frame, use_kernels, reached, self._joint)

    def _ranges(self, frame: Frame) -> int:
        """Into how many ranges of rows a chunk is worth dividing."""
        ranges = frame.n // LEAST_ROWS
        if not self._may_divide:
            return 1
        if self._clock is not None:
            expected_ns = frame.n * self._clock.ns // self.tuples if self.tuples else 0
            ranges = min(ranges, expected_ns // WORTH_NS)
        return min(ranges, usable_threads(self._threads())) if ranges > 1 else 1

    def _run_large(
        self, part: Part, frame: Frame, use_kernels: bool, ranges: int
    ) -> tuple[Int64Array | None, Int64Array | None]:
        """Of all rows of a chunk, which is worth dividing, if anybody has time for the ranges."""
        divides = self._clock is None or self._threads() != "auto" or self._dividing.pays()
        began = time.perf_counter_ns()
        if divides:
            result = self._run_ranges(part, frame, use_kernels, ranges)
        else:
            result = narrow_by(self.filters, part.order, frame, None, use_kernels, part.reached, self._joint)
        self._dividing.took(divides, (time.perf_counter_ns() - began) / frame.n)
        return result

    def _run_ranges(
        self, part: Part, frame: Frame, use_kernels: bool, ranges: int
    ) -> tuple[Int64Array | None, Int64Array | None]:
        """Each thread takes a range of the rows through all filters; what passes is put together in the rows' order."""
        ends = [frame.n * i // ranges for i in range(ranges + 1)]
        reached = [[0] * len(part.reached) for _ in range(ranges)]
        spent_ns = [0] * ranges
        caller = threading.get_ident()

        def narrow(i: int) -> tuple[Int64Array | None, Int64Array | None]:
            began = time.thread_time_ns()
            range_ = frame.slice(ends[i], ends[i + 1])
            found = narrow_by(self.filters, part.order, range_, None, use_kernels, reached[i], self._joint)
            if threading.get_ident() != caller:  # whose time its clock takes
                spent_ns[i] = time.thread_time_ns() - began
            return found

        found = side_by_side(narrow, ranges)
        for counts in reached:
            for place, count in enumerate(counts):
                part.reached[place] += count
        if self._clock is not None:
            self._clock.ns += sum(spent_ns)
        failed = [(wrong, ends[i]) for i, (_, wrong) in enumerate(found) if wrong is not None]
        return _moved([(rows, ends[i]) for i, (rows, _) in enumerate(found)]), _moved(failed) if failed else None


def _moved(parts: Sequence[tuple[Int64Array | None, int]]) -> Int64Array:
    """Rows of ranges, one range after the other, as rows of the chunk in which each begins so far down."""
    given = [(rows, start) for rows, start in parts if rows is not None]
    moved = np.empty(sum(len(rows) for rows, _ in given), np.int64)
    at = 0
    for rows, start in given:
        np.add(rows, start, out=moved[at : at + len(rows)])
        at += len(rows)
    return moved
