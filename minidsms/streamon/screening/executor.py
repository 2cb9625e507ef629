"""Runs a screen's first level by the present sequence. Lee and Lee 2012, section 5.1."""

from __future__ import annotations

from random import Random

from minidsms.screens.homes import HomeLists
from minidsms.screens.level import Level
from minidsms.screens.sequence import Homes, Sequence

ScreenPlan = Sequence | Homes


class SequenceExecutor:
    """names: of the producer's columns. The cost unit is a column looked at, as in the paper; of home lists a word of
    bitmaps.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self.level: Level | None = None
        """The one that runs."""
        self._units = self._rows = 0

    def take(self, level: Level | None) -> None:
        """Another level is the first: it goes on in the order of the last one where it has the same columns."""
        if level is self.level:
            return
        before = self.level
        if before is not None:
            self._units, self._rows = self._units + _units(before), self._rows + before.rows
            if level is not None and _are_alike(level, before):
                level.follow(Sequence(before.plan.order))
        self.level = level

    @property
    def plan(self) -> ScreenPlan:
        return Sequence(()) if self.level is None else self.level.plan

    def switch(self, plan: ScreenPlan) -> None:
        assert self.level is not None
        self.level.follow(plan)

    def is_legal(self, plan: object) -> bool:
        if self.level is None:
            return False
        if isinstance(self.level.constructs, HomeLists):
            return self.level.constructs.is_legal(plan)
        if not isinstance(plan, Sequence):
            return False
        columns, regions = len(self.level.domains.columns), self.level.domains.size
        arrows = all(0 <= r < regions and 0 <= c < columns for r, c in plan.arrows)
        return sorted(plan.order) == list(range(columns)) and arrows

    def random_plan(self, rng: Random) -> ScreenPlan:
        if self.level is None:
            return Sequence(())
        constructs = self.level.constructs
        if isinstance(constructs, HomeLists):
            return Homes(tuple(rng.choice(constructs.columns_of(j)) for j in range(len(self.level.boxes))))
        columns, regions = len(self.level.domains.columns), self.level.domains.size
        order = rng.sample(range(columns), columns)
        at = rng.sample(range(regions), rng.randrange(regions + 1))
        return Sequence(tuple(order), tuple((r, rng.randrange(columns)) for r in sorted(at)))

    def plan_text(self, plan: ScreenPlan) -> str:
        return "" if self.level is None else plan.text([self._names[c] for c in self.level.domains.columns])

    def spent(self) -> tuple[float, int]:
        level = self.level
        return self._units + (0 if level is None else _units(level)), self._rows + (0 if level is None else level.rows)


def _units(level: Level) -> int:
    return level.words if isinstance(level.constructs, HomeLists) else level.looked


def _are_alike(level: Level, other: Level) -> bool:
    """The order of one's columns can be that of the other's."""
    both = isinstance(level.plan, Sequence) and isinstance(other.plan, Sequence)
    return both and level.domains.columns == other.domains.columns
