"""Did it help? What the join spends per element under new caches, against what it spent before.

The cost model knows steps, not processors; where it is wrong, the caches are given up again. Elements that fill the
caches are not counted.

Invariant: a verdict is given once for each change of caches, and none where the plan changed before enough elements had
passed under both plans.
"""

from __future__ import annotations

ENOUGH = 8_000
"""Elements that each side of a comparison needs."""
FILLING = 10_000
"""Elements after a change that are left out."""
WORSE = 0.03
"""The share by which the join must have become dearer for its new caches to be given up."""

Spent = tuple[float, int]
"""Cost units and elements since the beginning."""


class Trial:
    """Compares two stretches of a join. now: what it has spent at the beginning."""

    def __init__(self, now: Spent) -> None:
        self._since = self._filled = now
        self._before: float | None = None

    @property
    def is_running(self) -> bool:
        """A verdict is due; until then the caches should stay."""
        return self._before is not None

    def begin(self, now: Spent) -> None:
        """The caches change."""
        elements = now[1] - self._since[1]
        self._before = (now[0] - self._since[0]) / elements if elements >= ENOUGH else None
        self._since = self._filled = now

    def end(self, now: Spent) -> None:
        """Nothing is compared any longer; what follows is what the next change is compared with."""
        self._before = None
        self._since = now

    def has_failed(self, now: Spent) -> bool:
        """The new caches have made the join dearer. Asked often."""
        elements = now[1] - self._since[1]
        if self._before is None:
            if elements >= 10 * ENOUGH:
                self._since = now
            return False
        if self._filled == self._since:
            if elements >= FILLING:
                self._filled = now
            return False
        counted = now[1] - self._filled[1]
        if counted < ENOUGH:
            return False
        after = (now[0] - self._filled[0]) / counted
        failed = after > (1 + WORSE) * self._before
        self.end(now)
        return failed
