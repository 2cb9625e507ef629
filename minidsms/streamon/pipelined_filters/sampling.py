"""When tuples are profiled: seldom where that changes nothing, at once where the streams have changed.

A profile costs per call as well as per tuple, so tuples are profiled in bulk: their share p of what passes adds up to a
credit, which is spent on one chunk when it suffices. At first a whole profile window is taken; then, while profiles
leave the order as it is, the share is halved, down to a trickle. What execution counts anyway, the drop rate at each
place, tells a change at once: then a whole window is taken from the next chunk, or less where older profile tuples are
discarded. Where chunks are so small that the calls of a profile take longer than the chunk, a window is taken as fast
as the loop's budget allows.
Invariant: with a share that was given, it is kept to, whatever happens.
Babu 2005, section 4.3.1 (drop-profiling probability) and 4.3.4 (run-time overhead).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minidsms.elements import Int64Array

BULK = 256
"""Tuples worth a profile of their own, where a chunk has as many."""
FASTEST, SLOWEST = 4, 32
"""The share p is divided by the first while the order changes, and by up to the second while it does not: in columns a
tuple passes in some ns, and p is meant for some us.
"""
FORGETTING = 0.95
"""Of the largest chunk, per chunk since."""
LEAST_PATIENCE, MOST_PATIENCE = 131_072, 2_097_152
"""Tuples for which a change is not looked at, after one that did not change the order."""
BURST_SHARE = 4
"""A burst takes at most one in so many tuples of a chunk."""


class SamplingSchedule:
    """rate: p.  is_given: keep to it.  window: tuples of a burst."""

    def __init__(self, rate: float, is_given: bool, window: int, seed: int) -> None:
        self.rate = rate
        self.slowdown = 1 if is_given else FASTEST
        self._is_given = is_given
        self._window = window
        self._credit = 0.0 if is_given else float(window)
        self._rng = np.random.default_rng(seed)
        self._is_burst = not is_given
        self._patience = 0
        self._deaf_for = 0
        self._usual = 0.0
        self._allowed = 0.0

    def due(self, tuples: int, is_affordable: Callable[[float], bool]) -> Int64Array | None:
        """Of the next `tuples` tuples, the positions to profile, ascending; None for none.

        is_affordable: asked how urgent it is, from 0 to 1; whether profiling has taken a small share of the time up to
        now. Else only a burst is profiled, and only from chunks that are worth a profile of their own.
        """
        self._deaf_for -= tuples
        self._credit += tuples * self.rate / self.slowdown
        # Small chunks among large ones are not worth a call.
        self._usual = max(tuples, FORGETTING * self._usual)
        if self._credit < max(1.0, min(BULK, self._usual)):
            return None
        count = min(int(self._credit), tuples)
        if not self._is_given:
            self._allowed = min(self._allowed, tuples) + tuples / BURST_SHARE
            count = min(count, int(self._allowed))
            is_bulk = self._is_burst and tuples >= BULK
            if not count or not (is_bulk or is_affordable(float(self._is_burst))):
                self._credit = min(self._credit, float(self._window))
                return None
            self._allowed -= count
        # What a small chunk cannot give is taken from the next ones, but not hoarded.
        self._credit = min(self._credit - count, float(self._window))
        step = tuples / count
        return ((np.arange(count) + self._rng.random(count)) * step).astype(np.int64)

    def profiled(self, has_changed: bool) -> None:
        """A profile was taken; did the order change?"""
        if self._is_given:
            return
        if has_changed:
            self.slowdown = FASTEST
            self._patience = 0
        else:
            self.slowdown = min(2 * self.slowdown, SLOWEST)
            if self._is_burst:
                self._patience = min(max(2 * self._patience, LEAST_PATIENCE), MOST_PATIENCE)
                self._deaf_for = self._patience
        self._is_burst = self._credit >= 1

    def ask_for(self, tuples: int) -> None:
        """So many are wanted at once."""
        if not self._is_given:
            self._is_burst = True
            self._credit = max(self._credit, float(tuples))

    @property
    def is_deaf(self) -> bool:
        """It does not hurry: its rate was given, or changes before this one did not matter to the order."""
        return self._is_given or self._deaf_for > 0

    def hurry(self, tuples: int | None = None, is_sure: bool = False) -> bool:
        """The streams have changed: profile so many tuples, a window unless told, as soon as possible; whether that
        will be done.

        Changes that did not matter to the order make deaf for a while. is_sure: to all but this one, which was found in
        the profile itself.
        """
        if self._is_given or (self.is_deaf and not is_sure):
            return False
        self._is_burst = True
        self._credit = float(min(self._window, tuples or self._window))
        return True
