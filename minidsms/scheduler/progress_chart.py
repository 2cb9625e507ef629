"""Progress charts: how an element shrinks as it goes through the operators of a path, and the chains this gives.

A chart starts at (0, 1): no time spent, one element. Each operator is a step to (time spent so far, what is left of the
element); behind the last one nothing is left in the system. A chain is a block of consecutive operators that belongs to
one segment of the chart's lower envelope.

Invariant: along a path the slopes of the chains fall, and every operator belongs to one chain.
What `chains` does for whole plans is, on a path, this. Babu 2005, section 2.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.scheduler.statistics import Cost

LEAST = 1e-6
"""An operator that lets nothing pass counts as if it let this pass: what stands behind it still has an order."""
LARGEST = 1e100
"""An element that has grown so much grows no further: the figures stay finite on the longest path."""


@dataclass(frozen=True)
class Chain:
    """The operators [start, stop) of a path, and how fast they reduce what is queued: elements per nanosecond."""

    start: int
    stop: int
    slope: float


class ProgressChart:
    """costs: of the operators of a path, leaf first; the last one's output leaves the system.

    points: (time, size) after 0, 1, 2, .. operators.

    >>> halves = ProgressChart([Cost(0.9, 1.0), Cost(1.0, 1 / 0.9), Cost(0.0, 1 / 0.9)])
    >>> [(round(time, 1), round(size, 1)) for time, size in halves.points]
    [(0.0, 1.0), (1.0, 0.9), (2.0, 0.9), (3.0, 0.0)]
    >>> [(chain.start, chain.stop, round(chain.slope, 2)) for chain in halves.chains()]
    [(0, 3, 0.33)]
    """

    def __init__(self, costs: Sequence[Cost]) -> None:
        self._costs = costs
        time, size = 0.0, 1.0
        self.points = [(time, size)]
        for cost in costs[:-1]:
            time += size * cost.time_ns
            size = min(size * cost.selectivity, LARGEST)
            self.points.append((time, size))
        if costs:
            self.points.append((time + size * costs[-1].time_ns, 0.0))

    def chains(self) -> list[Chain]:
        """The segments of the lower envelope: from each one's end the steepest block that follows.

        Of equally steep blocks the longest is taken, so that a straight run is one chain.
        """
        found: list[Chain] = []
        start = 0
        while start < len(self._costs):
            stop, slope = self._steepest_from(start)
            found.append(Chain(start, stop, slope))
            start = stop
        return found

    def _steepest_from(self, start: int) -> tuple[int, float]:
        """Where the steepest block from here ends, and its slope.

        An element that arrives here counts as a whole one: this stretches both axes alike, and the figures behind an
        operator that lets hardly anything pass stay exact.
        """
        time, size = 0.0, 1.0
        stop, steepest = start, 0.0
        for end in range(start + 1, len(self._costs) + 1):
            cost = self._costs[end - 1]
            time += size * cost.time_ns
            size = min(size * max(cost.selectivity, LEAST), LARGEST) if end < len(self._costs) else 0.0
            slope = (1.0 - size) / time
            if stop == start or slope >= steepest:
                stop, steepest = end, slope
        return stop, steepest
