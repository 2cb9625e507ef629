"""Runs a screen's first level by the present sequence. Lee and Lee 2012, section 5.1."""

from __future__ import annotations

from random import Random

from minidsms.screens.level import Level
from minidsms.screens.sequence import Sequence


class SequenceExecutor:
    """names: of the producer's columns. The cost unit is a column looked at, as in the paper."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._level: Level | None = None
        self._units = self._rows = 0

    def take(self, level: Level | None) -> None:
        """Another level is the first: it goes on in the order of the last one where it has the same columns."""
        if level is self._level:
            return
        before = self._level
        if before is not None:
            self._units, self._rows = self._units + before.looked, self._rows + before.rows
            if level is not None and level.constructs.columns == before.constructs.columns:
                level.follow(Sequence(before.sequence.order))
        self._level = level

    @property
    def level(self) -> Level | None:
        """The one that runs."""
        return self._level

    @property
    def plan(self) -> Sequence:
        return Sequence(()) if self._level is None else self._level.sequence

    def switch(self, plan: Sequence) -> None:
        assert self._level is not None
        self._level.follow(plan)

    def is_legal(self, plan: object) -> bool:
        if self._level is None or not isinstance(plan, Sequence):
            return False
        columns, regions = len(self._level.constructs.columns), len(self._level.constructs.bits)
        arrows = all(0 <= r < regions and 0 <= c < columns for r, c in plan.arrows)
        return sorted(plan.order) == list(range(columns)) and arrows

    def random_plan(self, rng: Random) -> Sequence:
        if self._level is None:
            return Sequence(())
        columns, regions = len(self._level.constructs.columns), len(self._level.constructs.bits)
        order = rng.sample(range(columns), columns)
        at = rng.sample(range(regions), rng.randrange(regions + 1))
        return Sequence(tuple(order), tuple((r, rng.randrange(columns)) for r in sorted(at)))

    def plan_text(self, plan: Sequence) -> str:
        return "" if self._level is None else plan.text([self._names[c] for c in self._level.constructs.columns])

    def spent(self) -> tuple[float, int]:
        level = self._level
        return self._units + (0 if level is None else level.looked), self._rows + (0 if level is None else level.rows)
