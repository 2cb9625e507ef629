"""What every entity has told: a bounded series of instants and values for each property, from its beginning.

Where a series is full every second point is dropped, so it reaches back to its beginning at half the resolution.
Invariant: what is held is bounded by MOST_POINTS, MOST_SERIES and MOST_HELD, however long the engine runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

MOST_POINTS = 600
"""Of a series."""
MOST_SERIES = 4000
MOST_HELD = 400_000
"""Points of all series: where there are many, each has fewer."""

_FROM_NOTHING = {
    "elements_in", "elements_out", "elements", "nbytes", "waiting", "changes", "decisions", "time_ns", "total_ns",
}  # fmt: skip
"""What is 0 at the beginning, of a connection that goes on where another ended too."""

Key = tuple[str, str, str]
"""kind, entity, property, as in SysStream."""


class Series:
    """times: seconds since the connection began, increasing.  values: NaN where nothing was told.

    >>> series = Series()
    >>> for i in range(1000):
    ...     series.add(float(i), i * 2.0)
    >>> series.times[0], len(series.times) <= MOST_POINTS, series.values[-1]
    (0.0, True, 1996.0)
    """

    __slots__ = ("_every", "_skipped", "times", "values")

    def __init__(self) -> None:
        self.times = array("d")
        self.values = array("d")
        self._every = 1
        self._skipped = 0

    def add(self, at_s: float, value: float, most: int = MOST_POINTS) -> None:
        """One more point, of `most`; of a long series only each so manieth is kept."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        while len(self.times) >= most:
            self.times, self.values = self.times[::2], self.values[::2]
            self._every *= 2
        self.times.append(at_s)
        self.values.append(value)


class AllSeries:
    """The series of every property of every entity there is."""

    def __init__(self) -> None:
        self._series: dict[Key, Series] = {}
        self._told: set[tuple[str, str]] = set()

    def add(self, at_s: float, told: Iterable[tuple[Key, float]], began: Callable[[str], float]) -> None:
        """What was told at one time, of all there is; what is told no more is forgotten. began: when an entity did."""
        most = min(MOST_POINTS, MOST_HELD // max(1, len(self._series)))
        present = set()
        for key, value in told:
            present.add(key[:2])
            series = self._series.get(key)
            if series is None:
                if len(self._series) >= MOST_SERIES:
                    continue
                series = self._series[key] = Series()
                since = began(key[1])
                if since < at_s and key[2] in _FROM_NOTHING:
                    series.add(since, 0.0)
            series.add(at_s, value, most)
        self._forget(self._told - present)
        self._told = present

    def of(self, key: Key) -> Series:
        """The series of a key; an empty one where nothing has been told."""
        return self._series.get(key) or Series()

    def _forget(self, gone: set[tuple[str, str]]) -> None:
        for key in [key for key in self._series if key[:2] in gone] if gone else ():
            del self._series[key]
