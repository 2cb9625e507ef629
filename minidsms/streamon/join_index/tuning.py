"""When the access patterns of which inputs are assessed, and which rows take a new configuration.

Time goes by in windows of requests, of all inputs together. At the end of each the inputs that were assessed get the
configuration that their counts ask for, and it is said who is assessed next:

    continuous  every input, always
    periodic    every input, in one window of so many
    triggered   the input whose requests have changed most since the window before, if by much
    hybrid      the same; where none has, the one that was not assessed for longest, in one window of so many

In the first window, in which nothing is known yet, that is every input.

Works, Rundensteiner and Agu 2012 (AMRI), sections 7 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from minidsms.streamon.join_index.selection import UnitCosts, Workload, dependent_costs

CHANGED = 0.2
"""Share by which an input's requests have changed when it is worth assessing."""


class Tuning:
    """n: inputs.  every: of so many windows one is for the periodic schedules.  assessed: inputs counted now."""

    def __init__(self, schedule: str, n: int, every: int = 2) -> None:
        self._schedule = schedule
        self._n = n
        self._every = every
        self._windows = 0
        self._waiting = list(range(n))
        self._before: Sequence[int] | None = None
        self.assessed = frozenset(range(n))

    def end(self, requests: Sequence[int]) -> frozenset[int]:
        """A window is over, in which each input had so many requests: whose counts are complete."""
        complete = self.assessed
        self._windows += 1
        self.assessed = self._next(requests)
        self._before = list(requests)
        return complete

    def _next(self, requests: Sequence[int]) -> frozenset[int]:
        if self._schedule == "continuous":
            return frozenset(range(self._n))
        is_due = self._windows % self._every == 0
        if self._schedule == "periodic":
            return frozenset(range(self._n)) if is_due else frozenset()
        chosen = self._changed(requests)
        if chosen is None and self._schedule == "hybrid" and is_due:
            chosen = self._waiting[0]
        if chosen is None:
            return frozenset()
        self._waiting.remove(chosen)
        self._waiting.append(chosen)
        return frozenset([chosen])

    def _changed(self, requests: Sequence[int]) -> int | None:
        """The input whose requests have changed most; None where none has by much."""
        if self._before is None:
            return None
        changes = [abs(now - before) / max(before, 1) for now, before in zip(requests, self._before)]
        most = max(range(self._n), key=lambda i: changes[i])
        return most if changes[most] > CHANGED else None


def migrating(
    method: str,
    partitions: Mapping[int, tuple[tuple[int, ...], int, float]],
    best: tuple[int, ...],
    workload: Workload,
    costs: UnitCosts,
    inserted: float = 1.0,
) -> list[int]:
    """The partitions whose rows are to be stored under the best configuration.

    partitions: by number its configuration, its rows, and what share of the while its rows are still there.
    workload: of the while.  inserted: what storing a row at an address takes, or removing it.
    """
    others = [number for number, (bits, _, _) in partitions.items() if bits != best]
    if method == "nothing":
        return []
    if method == "all":
        return others
    moved = []
    for number in others:
        bits, rows, remaining = partitions[number]
        asked = Workload(0.0, workload.requests * remaining, rows, workload.frequencies)
        now, then = dependent_costs(np.array([bits, best], np.int64), asked, costs)
        hashing = costs.hashed * (sum(b > 0 for b in bits) + sum(b > 0 for b in best))
        if now > then + rows * (hashing + 2 * inserted):
            moved.append(number)
    return moved
