"""The Profiler of join orders: asks, for sampled elements, every logical filter of their pipeline.

A profile tuple is a sampled element that some logical filter drops. Samples are probed for existence along each path,
apart from the join and compiled, right after the part of the stream they came in was joined: windows have moved on by
as much as they hold of the part, so elements are taken from its end where windows are shorter than the part.
Invariant: nothing of the join is changed by it.  Babu 2005, sections 4.3.1, 5.2.2 and 5.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.routes import Order
from minidsms.joins.graph import JoinGraph
from minidsms.joins.logical_filters import LogicalFilters
from minidsms.kernels.join_layout import NO_LIMIT
from minidsms.kernels.join_sampling import Sample, sample_pipeline
from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderingAlgorithm, Wanted
from minidsms.synopses.window_index import WindowIndex

MOST_INSPECTED = 10_000
"""Slots that are inspected to find out whether a logical filter drops one element."""
LEAST_NS = 0.5
ALIKE = 0.25
"""A cost that differs less from the one known is noise."""
REPEATED = 3
"""Of so many timings the shortest counts."""
FEW = 64
"""Samples from which their time says something."""
RECENT = 4
"""Samples come from the last part of a window, one in so many of its rows, where the windows are short."""


class JoinOrderProfiler:
    """names: of the inputs.  algorithms: by input, of the pipelines that have a choice; empty at first.

    costs: by input, ns of each logical filter per element (its steps where time is not measured).
    profiled: elements asked so far.
    """

    def __init__(
        self,
        graph: JoinGraph,
        index: WindowIndex,
        names: Sequence[str],
        filters: Mapping[int, LogicalFilters],
        algorithms: dict[int, OrderingAlgorithm],
        measures_time: bool,
    ) -> None:
        self.algorithms = algorithms
        self.profiled = 0
        self.inspected = 0
        self._index = index
        self._names = tuple(names)
        self._filters = filters
        self._measures_time = measures_time
        self._told: list[Callable[[int, Int64Array, BoolArray], None]] = []
        self._profiles: dict[int, int] = {}
        self._graph = graph
        self._find_paths()
        self.costs: dict[int, Float64Array] = {
            i: np.full(len(pipeline.paths), np.nan)
            if measures_time
            else np.array([float(len(p)) for p in pipeline.paths])
            for i, pipeline in filters.items()
        }

    def _find_paths(self) -> None:
        """The paths of the logical filters, over what the windows are indexed by."""
        configurations = self._index.configurations
        self._configurations = [list(each) for each in configurations]
        self._paths = {
            i: [self._graph.path(i, path, configurations=configurations) for path in pipeline.paths]
            for i, pipeline in self._filters.items()
        }

    def statistics(self) -> Mapping[str, Any]:
        """Of each pipeline with a choice, by its input's name: order, conditional drop rates and costs by place."""
        told: dict[str, Any] = {}
        for i, algorithm in self.algorithms.items():
            known = algorithm.describe()
            others = self._filters[i].others
            told[self._names[i]] = {
                "order": tuple(self._names[others[f]] for f in known.order),
                "drop_rates": known.drop_rates,
                "costs": known.costs,
                "profile_tuples": known.profiled,
            }
        return told

    def tell(self, of: Callable[[int, Int64Array, BoolArray], None]) -> None:
        """Give this, too, the input and slots of rows that were asked, and (filters, rows) which filters drop which."""
        self._told.append(of)

    def recent(self, arrived: Sequence[int]) -> float:
        """The share of a part's elements, from its end, that windows have not moved past since.

        arrived: insertions of each input in the part.
        """
        held = [len(window) for window in self._index.windows]
        shares = [rows / (RECENT * count) for rows, count in zip(held, arrived) if count]
        return min(1.0, *shares) if shares else 1.0

    def profile(self, i: int, slots: Int64Array) -> None:
        """Ask the logical filters of pipeline i about the rows in these slots of input i."""
        algorithm = self.algorithms[i]
        wanted = algorithm.wanted()
        if wanted.evaluate is Evaluate.NOTHING or not len(slots):
            return
        if self._configurations != self._index.configurations:
            self._find_paths()
        self._profiles[i] = self._profiles.get(i, 0) + (len(slots) >= FEW)
        drops = np.zeros((len(self._paths[i]), len(slots)), np.bool_)
        for f in range(len(drops)):
            self._ask(i, f, slots, drops[f])
        self.profiled += len(slots)
        for told in self._told:
            told(i, slots, drops)
        dropped = np.ascontiguousarray(drops.T[drops.any(axis=0)])
        if len(dropped):
            algorithm.observe(as_wanted(dropped, wanted, algorithm.order), self.costs[i])

    def _ask(self, i: int, f: int, slots: Int64Array, drops: BoolArray) -> None:
        path = self._paths[i][f]
        steps = len(path.steps)
        sample = Sample(np.zeros(steps + 1, np.int64), np.zeros(steps, np.int64), drops)
        arguments = (slots, i, path, self._index.bundle, sample, NO_LIMIT, MOST_INSPECTED)
        sample_pipeline(*arguments)
        self.inspected += int(sample.inspected.sum())
        if self._is_timing(i, slots):
            # Again, for at first the samples had to come into the cache.
            seen = max(min(_time(arguments) for _ in range(REPEATED)) / len(slots), LEAST_NS)
            known = self.costs[i][f]
            if not abs(seen - known) <= ALIKE * known:
                self.costs[i][f] = seen if np.isnan(known) else (known + seen) / 2

    def _is_timing(self, i: int, slots: Int64Array) -> bool:
        """Costs change less often than drop rates: they are taken at the profiles 1, 2, 4, 8, .. of a pipeline."""
        number = self._profiles.get(i, 0)
        return self._measures_time and len(slots) >= FEW and number & (number - 1) == 0


def _time(arguments: tuple[Any, ...]) -> int:
    """Nanoseconds that asking takes, of this thread: the processor is rarely alone."""
    start = thread_ns()
    sample_pipeline(*arguments)
    return thread_ns() - start


def as_wanted(drops: BoolArray, wanted: Wanted, order: Order) -> BoolArray:
    """What an algorithm asked for of profile tuples (m, n) on which all filters were evaluated.

    Beyond the first filter, in its order, that drops the tuple: none but the one wanted, or the next.
    """
    if wanted.evaluate is Evaluate.ALL:
        return drops
    in_order = drops[:, list(order)]
    first = in_order.argmax(axis=1)
    places = np.arange(drops.shape[1])
    asked = places[None, :] <= first[:, None] + (wanted.evaluate is Evaluate.NEXT)
    if wanted.evaluate is Evaluate.ONE:
        asked[:, order.index(wanted.filter)] = True
    shown = np.zeros_like(drops)
    shown[:, list(order)] = in_order & asked
    return shown
