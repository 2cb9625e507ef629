"""Forced switching, for tests: every k-th tuple another legal plan, or a given one, whatever the statistics say.

Invariant: with one seed and one order of tuples the switches are the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from minidsms.operators.adaptivity import SharedByCopies

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, eq=False)
class ForcedSwitching(SharedByCopies):
    """What is asked for. every: tuples between switches, at least 1.  plan: the one to switch to and away from, or
    None for random ones.
    """

    every: int
    seed: int = 0
    plan: Any = None

    def begin(self, technique: str) -> Forcing:
        """The switching of one place."""
        return Forcing(self, Random(self.seed ^ zlib.crc32(technique.encode())))


class Forcing:
    """Counts the tuples of one place. left: tuples until the next switch."""

    def __init__(self, of: ForcedSwitching, rng: Random) -> None:
        self.of = of
        self.left = of.every
        self._rng = rng

    def count(self, tuples: int) -> bool:
        """Tuples have passed; whether the plan is to be switched now."""
        self.left -= tuples
        if self.left > 0:
            return False
        self.left = self.of.every
        return True

    def next_plan(self, random_plan: Callable[[Random], P]) -> P:
        """The given plan, else any."""
        return random_plan(self._rng) if self.of.plan is None else self.of.plan
