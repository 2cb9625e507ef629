"""Whether the inputs of a join bring other shares of its elements than they used to: a burst, or the end of one.

Invariant: shares that have shifted are the usual ones from then on.
"""

from __future__ import annotations

from collections.abc import Sequence

SHIFT = 0.5
"""A share of itself by which that of an input differs when it has shifted."""
MATTERS = 0.05
"""Of the elements, what an input brings that matters."""


class ArrivalShares:
    """Compares counts over a while with those of the whiles before."""

    def __init__(self) -> None:
        self._usual: list[float] = []

    def have_shifted(self, counts: Sequence[int]) -> bool:
        """counts: elements of each input since this was last asked; they should be some thousands."""
        total = sum(counts)
        if not total:
            return False
        usual = self._usual
        if not usual:
            self._usual = [count / total for count in counts]
            return False
        # A plain loop over a few numbers: it runs in between all the time.
        least, matters = 1 - SHIFT, MATTERS * total
        for count, share in zip(counts, usual):
            expected = share * total
            if (count < least * expected and expected > matters) or (expected < least * count and count > matters):
                self._usual = [count / total for count in counts]
                return True
        return False
