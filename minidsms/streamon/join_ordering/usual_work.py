"""Whether a join does more or less for an element than it used to: then its plan is looked at again at once.

Invariant: work is compared under one plan only; another plan has other work.
"""

from __future__ import annotations

CHANGE = 0.25
"""A share by which the work per element changes where that matters ..."""
ENOUGH = 16_384
""".. over at least so many elements."""
LEAST = 0.1
"""Slots and tuples per element that matter."""


class UsualWork:
    """Slots inspected and tuples found per element under the present plan, against those of the time before."""

    def __init__(self) -> None:
        self._plan: object = None
        self._counted = (0, 0, 0)
        self._usual: tuple[float, float] | None = None

    def change(self, plan: object, work: tuple[int, int, int, int]) -> float:
        """The share by which they have changed, 0 where it does not matter. work: as `Reorderable.work`; asked often,
        it compares over ENOUGH elements at least.
        """
        counted = work[1], work[3], work[2]
        if plan != self._plan:
            self._plan, self._counted, self._usual = plan, counted, None
            return 0.0
        elements = counted[2] - self._counted[2]
        if elements < ENOUGH:
            return 0.0
        seen = (counted[0] - self._counted[0]) / elements, (counted[1] - self._counted[1]) / elements
        self._counted = counted
        usual = self._usual
        if usual is None:
            self._usual = seen
            return 0.0
        change = max(abs(a - b) / max(a, b, LEAST) for a, b in zip(seen, usual))
        if change <= CHANGE:
            return 0.0
        self._usual = seen
        return change
