"""What every entity has told: a bounded series of instants and values for each property, from its beginning.

Of the time before it was first looked at only the beginning is known: totals and state began at 0, and a rate first
told is the mean since. Where a series is full every second point is dropped, so it reaches back to its beginning at
half the resolution.
Invariant: what is held is bounded by MOST_POINTS and MOST_SERIES, however long the engine runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

MOST_POINTS = 600
"""Of a series."""
MOST_SERIES = 4000

_FROM_NOTHING = {"elements_in", "elements_out", "elements", "nbytes", "waiting", "changes", "decisions"}
"""What is 0 at the beginning, of a connection that goes on where another ended too."""

Key = tuple[str, str, str]
"""kind, entity, property, as in SysStream."""


class Series:
    """times: seconds since the connection began, increasing.  values: NaN where nothing was told.  unseen: the first
    value is of the beginning, before anybody looked.

    >>> series = Series()
    >>> for i in range(1000):
    ...     series.add(float(i), i * 2.0)
    >>> series.times[0], len(series.times) <= MOST_POINTS, series.values[-1]
    (0.0, True, 1996.0)
    """

    __slots__ = ("_every", "_skipped", "times", "unseen", "values")

    def __init__(self) -> None:
        self.unseen = False
        self.times = array("d")
        self.values = array("d")
        self._every = 1
        self._skipped = 0

    def add(self, at_s: float, value: float) -> None:
        """One more point; of a long series only each so manieth is kept."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        if len(self.times) == MOST_POINTS:
            self.times, self.values = self.times[::2], self.values[::2]
            self._every *= 2
        self.times.append(at_s)
        self.values.append(value)


class Histories:
    """All series."""

    def __init__(self) -> None:
        self._series: dict[Key, Series] = {}

    def add(self, at_s: float, told: Iterable[tuple[Key, float]], began: Callable[[str], float]) -> None:
        """What was told at one time. began: when an entity did."""
        for key, value in told:
            series = self._series.get(key)
            if series is None:
                if len(self._series) >= MOST_SERIES:
                    continue
                series = self._series[key] = Series()
                since, at_first = began(key[1]), _at_first(key[2], value)
                if since < at_s and at_first is not None:
                    series.add(since, at_first)
                    series.unseen = True
            series.add(at_s, value)

    def series(self, key: Key) -> Series:
        """The series of a key; an empty one where nothing has been told."""
        return self._series.get(key) or Series()

    def forget(self, entities: Iterable[tuple[str, str]]) -> None:
        """Make room: these (kind, entity) are no more."""
        gone = set(entities)
        for key in [key for key in self._series if key[:2] in gone]:
            del self._series[key]


def _at_first(name: str, value: float) -> float | None:
    """What a property was when its entity began, told by its first value."""
    if name in _FROM_NOTHING:
        return 0.0
    return value if name.startswith("rate") else None
