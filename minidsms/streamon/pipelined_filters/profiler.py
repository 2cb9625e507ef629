"""The Profiler of pipelined filters: makes profile tuples in bulk.

A profile tuple is a sampled tuple that some filter drops, with what the other filters say of it, as far as the
ordering algorithm asks. Where tuples may be routed by content, all that were sampled are kept apart with their
attributes. Invariant: the samples are evaluated apart from the tuples' own way through the filters, and
change nothing there.  Babu 2005, section 4.3.1, figure 4.3; 4.4 and 4.6 for what Sweep and LocalSwaps leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.routes import Order
from minidsms.expressions.value import Frame
from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.contracts import Evaluate, KnowsChanges, OrderingAlgorithm, Wanted
from minidsms.streamon.pipelined_filters.costs import FilterCosts

KEPT = 4_096
"""Profile tuples of which it is known where in the stream they came."""
Observe = Callable[[Frame, BoolArray], None]
"""Takes tuples, and (m, n), True where the filter drops the tuple."""


class FilterProfiler:
    """profiled: tuples evaluated for the profile since the beginning.  observe: is shown them all; the algorithm then
    asks for all filters.  watch: knows of changes.
    """

    def __init__(
        self,
        filters: Sequence[TupleFilter],
        algorithm: OrderingAlgorithm,
        costs: FilterCosts,
        observe: Observe | None = None,
        watch: KnowsChanges | None = None,
    ) -> None:
        self.profiled = 0
        self._filters = filters
        self._algorithm = algorithm
        self._watch = watch
        self._costs = costs
        self._observe = observe
        self._shown = 0
        self._places: Int64Array = np.zeros(0, np.int64)
        """Of the last profile tuples shown: which tuples of the stream they are, counted from 0."""

    def statistics(self) -> Mapping[str, Any]:
        """Order, conditional drop rates and costs by place, tuples in the window."""
        told = self._algorithm.describe()
        known: dict[str, Any] = {
            "order": told.order,
            "drop_rates": told.drop_rates,
            "costs": told.costs,
            "profile_tuples": told.profiled,
        }
        change = None if self._watch is None else self._watch.last_change
        if change is not None:
            since = change.since if change.is_counted else self._place(change.since)
            rates = f"{_share(change.before)} -> {_share(change.after)}"
            known["changed"] = f"{change.rate} {rates} since {since:,}"
        return known

    def _place(self, number: int) -> int:
        """Which tuple of the stream a profile tuple is; of one not yet taken the last known, of a forgotten one the
        first.
        """
        kept = len(self._places)
        return int(self._places[min(max(number - (self._shown - kept), 0), kept - 1)]) if kept else 0

    def profile(
        self, frame: Frame, rows: Int64Array | None, sampled: Int64Array, use_kernels: bool, passed: int = 0
    ) -> None:
        """Evaluate sampled tuples and show them to the algorithm.

        rows: what enters the filters, as in `narrow_by`.  sampled: positions among those.  passed: tuples before these.
        """
        algorithm = self._algorithm
        self._costs.calibrate(frame, rows, use_kernels)
        part = frame.subset(sampled if rows is None else rows[sampled])
        drops = self._evaluate(part, algorithm.wanted(), algorithm.order, use_kernels)
        if self._observe is not None:
            self._observe(part, drops)
        profiled = np.flatnonzero(drops.any(axis=1))
        if len(profiled):
            self._shown += len(profiled)
            self._places = np.concatenate((self._places, passed + sampled[profiled]))[-KEPT:]
            algorithm.observe(drops[profiled], self._costs.values)
        self.profiled += part.n

    def _evaluate(self, part: Frame, wanted: Wanted, order: Order, use_kernels: bool) -> BoolArray:
        """(m, n), True where the filter drops the tuple; False where it was not asked."""
        drops = np.zeros((part.n, len(self._filters)), np.bool_)
        if wanted.evaluate is Evaluate.ALL:
            for number in range(len(self._filters)):
                self._ask(number, part, None, use_kernels, drops)
            return drops
        if wanted.evaluate is Evaluate.ONE:
            self._ask(wanted.filter, part, None, use_kernels, drops)
        rows: Int64Array | None = None
        for place, number in enumerate(order):
            if number == wanted.filter:
                passing = ~drops[:, number]
                kept = np.flatnonzero(passing) if rows is None else rows[passing[rows]]
                rows = kept
            else:
                before = np.arange(part.n) if rows is None else rows
                rows = self._ask(number, part, rows, use_kernels, drops)
                if wanted.evaluate is Evaluate.NEXT and place + 1 < len(order):
                    fell = before[drops[before, number]]
                    if len(fell):
                        self._ask(order[place + 1], part, fell, use_kernels, drops)
            if not len(rows):
                break
        return drops

    def _ask(
        self, number: int, part: Frame, rows: Int64Array | None, use_kernels: bool, drops: BoolArray
    ) -> Int64Array:
        """Evaluate a filter on rows of the part; notes what it drops, gives what it lets pass."""
        start = thread_ns()
        kept, _ = self._filters[number].narrow(part, rows, use_kernels)
        asked = part.n if rows is None else len(rows)
        self._costs.observe(number, thread_ns() - start, asked)
        if rows is None:
            drops[:, number] = True
        else:
            drops[rows, number] = True
        drops[kept, number] = False
        return kept


def _share(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.2f}"
