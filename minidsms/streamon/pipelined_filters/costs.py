"""What a filter costs per tuple: its slope, for a call costs something however few its tuples are.

A filter is timed on some tuples and on some more; the difference is what the tuples cost. It is done seldom: a
filter's time changes less often than its drop rate. Where tuples come in small batches there is no slope to see, and
the time of a profile, over its tuples, is what counts.
Invariant: where time is not measured, every filter costs 1.  Babu 2005, section 4.3.1, "Processing-Time Estimates".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.value import Frame
from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.contracts import Float64Array

FEW, MANY, MOST = 128, 1024, 8192
"""Tuples of the timings: FEW and MANY, and MOST where there are as many. A call takes some 15 us, a tuple some ns."""
LONG_NS = 60_000
"""A filter that takes this long is not timed on more tuples: the call counts for little in it."""
TOO_LONG_NS = 240_000
"""A filter that takes this long on FEW tuples is timed on these alone."""
LEAST_SLOPE = 0.25
"""Of the time of the longer call by its tuples, what the slope is at least: less is noise."""
FIRST_PAUSE, EVERY = 16, 64
"""Profiles between two timings, at first and then."""
REPEATED = 3
"""Of so many evaluations the fastest counts: the first meets caches that are empty, and the processor is rarely alone.
"""
ALIKE = 0.25
"""A new figure that differs less from the one known is noise."""
LEAST_NS = 0.05


class FilterCosts:
    """values: (n,) ns per tuple (1 each where time is not measured), NaN where unknown."""

    def __init__(self, filters: Sequence[TupleFilter], measures_time: bool) -> None:
        self._filters = filters
        self._measures_time = measures_time
        self._until_next = 0
        self._pause = FIRST_PAUSE
        self._has_slopes = False
        self.values: Float64Array = np.full(len(filters), np.nan if measures_time else 1.0)

    def calibrate(self, frame: Frame, rows: Int64Array | None, use_kernels: bool) -> None:
        """Time every filter, if it is time to and there are tuples enough."""
        entering = frame.n if rows is None else len(rows)
        if not self._measures_time or entering < MANY:
            return
        self._until_next -= 1
        if self._until_next > 0:
            return
        self._until_next = self._pause
        self._pause = min(4 * self._pause, EVERY)

        def first(count: int) -> Frame:
            return frame.first(count) if rows is None else frame.subset(rows[:count])

        for number, cost in enumerate(_slopes(self._filters, first, min(entering, MOST), use_kernels)):
            self._take(number, max(cost, LEAST_NS))
        self._has_slopes = True

    def observe(self, number: int, time_ns: int, tuples: int) -> None:
        """A profile evaluated a filter on so many tuples; it counts as long as there is nothing better."""
        if self._measures_time and not self._has_slopes and tuples:
            known = self.values[number]
            seen = max(time_ns / tuples, LEAST_NS)
            self.values[number] = seen if np.isnan(known) else 0.9 * known + 0.1 * seen

    def _take(self, number: int, cost: float) -> None:
        known = self.values[number]
        if not self._has_slopes or abs(cost - known) > ALIKE * known:
            self.values[number] = cost


def _slopes(filters: Sequence[TupleFilter], first: Callable[[int], Frame], most: int, use_kernels: bool) -> list[float]:
    """Nanoseconds a tuple, from FEW tuples and more, until they take long enough to tell.  first: gives so many.

    Filters are timed by turns, so that what slows the processor for a while slows all of them.
    """
    of_few, of_more = [math.inf] * len(filters), [math.inf] * len(filters)
    more = [min(MANY, most)] * len(filters)
    for turn in range(REPEATED):
        for i, each in enumerate(filters):
            if turn < 2 or of_few[i] <= TOO_LONG_NS:
                of_few[i] = min(of_few[i], _time(each, first(FEW), use_kernels))
            if turn == 1 and of_more[i] < LONG_NS:
                more[i], of_more[i] = most, math.inf
            if of_few[i] <= TOO_LONG_NS:
                of_more[i] = min(of_more[i], _time(each, first(more[i]), use_kernels))
    return [
        few / FEW if time_ns == math.inf else max((time_ns - few) / (count - FEW), LEAST_SLOPE * time_ns / count)
        for few, time_ns, count in zip(of_few, of_more, more)
    ]


def _time(each: TupleFilter, part: Frame, use_kernels: bool) -> int:
    """Nanoseconds of an evaluation; columns that must be gathered are in it."""
    start = thread_ns()
    each.narrow(part, None, use_kernels)
    return thread_ns() - start
