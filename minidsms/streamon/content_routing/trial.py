"""Do routes pay by the clock? The cheapest chunks under them against the cheapest before.

The processor is rarely alone, and a chunk that was interrupted tells nothing: so the least of a few counts, not their
mean. Invariant: a verdict is given once for each change of plan, and none where nothing ran before.
"""

from __future__ import annotations

CHUNKS = 4
"""Of each side."""
LEAST = 0.5
"""Of a usual chunk: smaller ones are dearer by the tuple, whatever the plan."""
WORSE = 0.03
"""The share by which tuples must have become dearer."""


class RouteTrial:
    """Costs are per tuple, of the last chunks under the present plan."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._before: float | None = None

    def begin(self) -> None:
        """Routes run from now on, instead of an order."""
        self._before = min(self._costs, default=None)
        self._costs = []

    def end(self) -> None:
        """Another plan runs, which is not on trial."""
        self._before = None
        self._costs = []

    def has_failed(self, cost: float) -> bool:
        """A chunk cost so much a tuple; whether that tells that the routes do not pay."""
        self._costs = [*self._costs[1 - CHUNKS :], cost]
        if self._before is None or len(self._costs) < CHUNKS:
            return False
        failed = min(self._costs) > (1 + WORSE) * self._before
        self._before = None
        return failed
