"""The one sense of change: what something usually is, and whether it is so no more.

Whatever execution counts anyway is looked at in the same way: drop rates of filters by place, shares of elements that
inputs bring, work per element of a join, what caches save and pipelines spend. Each is a ratio of two counters, over
a while, against that of the while it was first known, under one condition (a plan: another plan has other ratios).
What counts as a change is a value, the `Tolerance`.

Invariant: the usual ratio stays until a change, so that slow drift adds up against it; then the new one is the usual.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """By how much two values may differ and still be the same.

    absolute: by this.  relative: by this share of the larger one, or of `floor` if that is more.  matters: the larger
    one must be above this for any difference to count.  sure: shares of so many trials differ by so many standard
    deviations of chance.
    """

    absolute: float = 0.0
    relative: float = 0.0
    floor: float = 0.0
    matters: float = 0.0
    sure: float = 0.0

    def change(self, before: float, after: float, of_before: float = 0, of_after: float = 0) -> float:
        """The share of the larger one by which they differ, 0 where that does not matter. of_before, of_after: trials,
        where values are shares of them.
        """
        difference = abs(before - after)
        if difference <= self.absolute:
            return 0.0
        larger = max(abs(before), abs(after))
        scale = max(larger, self.floor)
        if difference <= self.relative * scale or larger <= self.matters:
            return 0.0
        if self.sure:
            if not of_before or not of_after:
                return 0.0
            of = of_before + of_after
            mean = (before * of_before + after * of_after) / of
            variance = max(mean * (1 - mean), 1 / of) * (1 / of_before + 1 / of_after)
            if difference * difference <= self.sure * self.sure * variance:
                return 0.0
        return difference / scale


SHARES = Tolerance(relative=0.5, matters=0.05)
"""Of inputs in the elements of a join: a burst, or its end. What brings less than a twentieth does not matter."""


class Usual:
    """enough: of the first ratio's denominator, from which a while is compared.  restarts: counters begin at 0 again
    under each condition; else they go on.

    ratios: the usual ones under the present condition; None while nothing is known.  moved: of the last change, which
    ratio changed most, what it was, what it is, and over how many trials of the first one.
    """

    def __init__(self, tolerance: Tolerance, enough: int, restarts: bool = False) -> None:
        self.ratios: list[float] | None = None
        self.moved = (0, 0.0, 0.0, 0)
        self._tolerance = tolerance
        self._enough = max(enough, 1)
        self._restarts = restarts
        self._condition: Hashable = None
        self._of: list[int] = []
        self._counted: tuple[Sequence[int], Sequence[int]] = ((), ())

    def is_known(self, condition: Hashable) -> bool:
        """There are usual ratios under this condition."""
        return self.ratios is not None and condition == self._condition

    def begin(self, condition: Hashable, counts: Sequence[int], of: Sequence[int]) -> None:
        """It is known that things have changed: what is usual is what is counted from here on."""
        self._condition, self.ratios, self._counted = condition, None, (counts, of)

    def is_due(self, condition: Hashable, trials: int) -> bool:
        """Whether `change` has anything to look at. trials: the total of the first ratio."""
        return condition != self._condition or trials - self._counted[1][0] >= self._enough

    def change(self, condition: Hashable, counts: Sequence[int], of: Sequence[int]) -> float:
        """The largest change that matters, as a share, of the ratios counts / of over the while since this was last
        answered; 0 for none, and while the while is short.

        counts, of: totals, as many as there are ratios.
        """
        if condition != self._condition or len(counts) != len(self._counted[0]):
            nothing = (0,) * len(counts)
            self.begin(condition, *((nothing, nothing) if self._restarts else (counts, of)))
        before, of_before = self._counted
        if of[0] - of_before[0] < self._enough:
            return 0.0
        passed = [now - then for now, then in zip(of, of_before)]
        ratios = [(now - then) / n if n else 0.0 for now, then, n in zip(counts, before, passed)]
        self._counted = (counts, of)
        usual = self.ratios
        if usual is None:
            self.ratios, self._of = ratios, passed
            return 0.0
        tolerance = self._tolerance
        changes = list(map(tolerance.change, usual, ratios, self._of, passed))
        change = max(changes)
        if change:
            at = changes.index(change)
            self.moved = at, usual[at], ratios[at], passed[0]
            self.ratios, self._of = ratios, passed
        return change
