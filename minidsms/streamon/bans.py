"""Plans that were tried in vain, and how long each is left alone: each time twice as long.

Costs are estimates, and what was measured is one stretch of the streams: neither refutes a plan for ever.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)


class Bans(Generic[P]):
    """first: elements of a plan's first ban.  most: after so many bans they grow no longer; None: always."""

    def __init__(self, first: int, most: int | None = None) -> None:
        self._first = first
        self._most = most
        self._until: dict[P, int] = {}
        self._times: dict[P, int] = {}

    def ban(self, plan: P, now: int) -> None:
        """It was given up, after so many elements."""
        times = self._times.get(plan, 0) + 1
        self._times[plan] = times if self._most is None else min(times, self._most)
        self._until[plan] = now + self._first * 2 ** (self._times[plan] - 1)

    def is_banned(self, plan: P, now: int) -> bool:
        """It is left alone."""
        return now < self._until.get(plan, now)

    def times(self, plan: P) -> int:
        """How often it was tried in vain."""
        return self._times.get(plan, 0)

    def clear(self) -> None:
        """Conditions have changed: nothing is held against any plan."""
        self._until.clear()
        self._times.clear()
