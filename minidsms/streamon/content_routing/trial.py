"""Do routes pay by the clock? The cheapest chunk under them against the cheapest before.

The processor is rarely alone, and a chunk that was interrupted tells nothing: so the least of a few counts, not their
mean. Routes pass with the first chunk that is as cheap as one before, and fail when many in turn are dearer.
Invariant: a verdict is given once for each change of plan, and none where nothing ran before.
"""

from __future__ import annotations

CHUNKS = 4
"""Before, of which the cheapest counts."""
TRIED = 12
"""Dearer chunks in turn by which routes fail."""
LEAST = 0.5
"""Of a usual chunk: smaller ones are dearer by the tuple, whatever the plan."""
WORSE = 0.03
"""The share by which tuples must have become dearer."""


class RouteTrial:
    """Costs are per tuple, of the last chunks before routes."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._before: float | None = None
        self._dearer = 0

    def begin(self) -> None:
        """Routes run from now on, instead of an order."""
        self._before = min(self._costs, default=None)
        self._costs, self._dearer = [], 0

    def end(self) -> None:
        """Another plan runs, which is not on trial."""
        self._before = None
        self._costs = []

    def has_failed(self, cost: float) -> bool:
        """A chunk cost so much a tuple; whether that tells that the routes do not pay."""
        if self._before is None:
            self._costs = [*self._costs[1 - CHUNKS :], cost]
            return False
        self._dearer += 1
        has_passed = cost <= (1 + WORSE) * self._before
        failed = not has_passed and self._dearer >= TRIED
        if has_passed or failed:
            self._before = None
        return failed
