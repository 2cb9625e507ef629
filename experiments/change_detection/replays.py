"""Orderings with fixed windows, and with detectors, over the same profile tuples: tables 1 to 3.

A filter takes 10 microseconds per tuple, as in the paper; what the monitoring and ordering of filters takes is measured
as processor time. Their sum is the total cost. An ordering sees BULK profile tuples at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.change_detection.streams import SHARE, Stream
from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.settings import DETECTORS
from minidsms.streamon.change_detection.detectors import detectors
from minidsms.streamon.change_detection.monitored import Monitored
from minidsms.streamon.contracts import OrderingAlgorithm
from minidsms.streamon.filter_ordering.a_greedy import AGreedy
from minidsms.streamon.filter_ordering.profile_window import reaching_by_position

WINDOWS = (41, 250, 1500, 3000, 6345, 34_473, 106_652)
"""Profile tuples: those of the paper."""
WATCHED_WINDOW = 1000
FILTER_S = 10e-6
BULK = 20
CLOSE = 1.05
"""An order has been found when it costs at most so many times the best."""


@dataclass
class Replay:
    """Of one contestant over one stream. reoptimized: how often the order changed, and justified: to one that costs
    less under the condition that it came in.  processing_s, monitoring_s: see
    above.  oracle_s: processing in the best order of each condition.  delays: tuples from each change until an order
    is found, the whole period where none is.  told: changes told, None without detectors.
    """

    reoptimized: int
    processing_s: float
    monitoring_s: float
    oracle_s: float
    delays: list[int]
    told: int | None
    justified: int = 0

    @property
    def total_s(self) -> float:
        """Processing and monitoring."""
        return self.processing_s + self.monitoring_s


def contestants(filters: int) -> dict[str, Callable[[], OrderingAlgorithm]]:
    """A-Greedy with each window that the number of filters lets one wait for, and with each detector."""
    most = {64: 3000, 256: 250}.get(filters, 106_652)
    found: dict[str, Callable[[], OrderingAlgorithm]] = {
        f"window {w:,}": partial(AGreedy, filters, window=w) for w in WINDOWS if w <= most
    }

    def watched(name: str, always: bool = False) -> OrderingAlgorithm:
        window = min(WATCHED_WINDOW, most)
        return Monitored(AGreedy(filters, window=window), partial(detectors, name), window, analyses_always=always)

    found |= {f"A-Greedy* / {name}": partial(watched, name) for name in DETECTORS}
    found["A-Greedy + cusum (auto)"] = partial(watched, "cusum", True)
    return found


def replay(stream: Stream, make: Callable[[], OrderingAlgorithm]) -> Replay:
    """Run one over the stream."""
    drops, best = stream.drops()
    algorithm = make()
    costs = np.ones(stream.filters)
    result = Replay(0, 0.0, 0.0, 0.0, [], None)
    evaluated_by: dict[tuple[int, Order], float] = {}
    ends = np.cumsum(stream.phases).tolist()
    for phase, (order, end) in enumerate(zip(best, ends)):
        part = drops[end - stream.phases[phase] : end]
        settled = part[len(part) // 2 :]
        found = None
        for start in range(0, len(part), BULK):
            rows = part[start : start + BULK]
            result.processing_s += _seconds(rows, algorithm.order)
            result.oracle_s += _seconds(rows, order)
            if found is None:
                key = phase, algorithm.order
                if key not in evaluated_by:
                    evaluated_by[key] = _seconds(settled, algorithm.order) / _seconds(settled, order)
                found = start * SHARE if evaluated_by[key] <= CLOSE else None
            profiled = rows[rows.any(axis=1)]
            if len(profiled):
                before, began = algorithm.order, time.process_time()
                changed = algorithm.observe(profiled, costs)
                result.monitoring_s += time.process_time() - began
                result.reoptimized += changed is not None
                if changed is not None:
                    result.justified += _seconds(settled, changed) < _seconds(settled, before)
        if phase:
            result.delays.append(len(part) * SHARE if found is None else found)
    if isinstance(algorithm, Monitored):
        result.told = algorithm.changes
    return result


def _seconds(rows: BoolArray, order: Order) -> float:
    """Of the tuples that these stand for, in an order."""
    return FILTER_S * SHARE * float(reaching_by_position(rows, order)[:-1].sum())
