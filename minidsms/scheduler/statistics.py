"""Selectivity and time per element of operators, from their counters, smoothed.

Invariant: the figures are quotients of sums in which every reading of the counters weighs half of the next one, so they
follow a change within a few readings and do not jump where few elements passed. Babu 2005, section 2.3.2.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.scheduler.scheduler import Schedulable

_KEPT = 0.5
_MOVED = 0.2
"""A figure that differs by more than this share from the one last used has changed (Babu 2005, section 5.5.5)."""


@dataclass(frozen=True)
class Cost:
    """selectivity: elements put out per element taken.  time_ns: per element taken."""

    selectivity: float
    time_ns: float

    def has_moved(self, since: Cost) -> bool:
        """It differs by more than a fifth."""
        return _differ(self.selectivity, since.selectivity) or _differ(self.time_ns, since.time_ns)


def _differ(now: float, then: float) -> bool:
    return abs(now - then) > _MOVED * max(abs(then), 1e-9)


class Statistics:
    """One operator's."""

    __slots__ = ("_in", "_out", "_seen", "_time")

    def __init__(self) -> None:
        self._seen = (0.0, 0.0, 0.0)
        self._in = self._out = self._time = 0.0

    def read(self, operator: Schedulable) -> Cost | None:
        """Add what the counters say since the last reading; None as long as no element has passed."""
        counters = operator.counters
        now = (counters.elements_in, counters.elements_out, counters.time_ns)
        if now[0] > self._seen[0]:
            self._in = _KEPT * self._in + now[0] - self._seen[0]
            self._out = _KEPT * self._out + now[1] - self._seen[1]
            self._time = _KEPT * self._time + now[2] - self._seen[2]
            self._seen = now
        if self._in <= 0:
            return None
        return Cost(self._out / self._in, max(self._time / self._in, 1e-3))


class Measurements:
    """The statistics of all operators a scheduler has met; those of operators that are gone go with them.

    complete: at the last reading, elements had passed every operator.
    """

    def __init__(self) -> None:
        self.complete = False
        self._known: weakref.WeakKeyDictionary[Schedulable, Statistics] = weakref.WeakKeyDictionary()

    def read(self, operators: Sequence[Schedulable]) -> list[Cost]:
        """The costs now. An operator nothing has passed yet is taken to be fast and to let nothing through: it is soon
        tried, and then known; one believed slow might never be.
        """
        costs = [self._known.setdefault(operator, Statistics()).read(operator) for operator in operators]
        times = [cost.time_ns for cost in costs if cost is not None]
        self.complete = len(times) == len(costs)
        unknown = Cost(0.0, min(times, default=1.0))
        return [unknown if cost is None else cost for cost in costs]
