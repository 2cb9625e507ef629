"""The ready operators of one run, the best one first.

Whether an operator is ready, and how good it is, changes only when it or a neighbour has run; so after each run these
few are looked at again, and a choice costs O(log n) where looking at every operator would cost O(n).

Invariant: `pop` gives the operator that looking at all of them would give.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from minidsms.scheduler.scheduler import Schedulable, is_ready
from minidsms.scheduler.wiring import Wiring

Key = tuple[float, int, int]
"""Less priority, then since when the oldest element waits, then less position: the least is the best."""


class Agenda:
    """key: of the operator at a position; it may depend on the operator's own queues only."""

    def __init__(
        self, operators: Sequence[Schedulable], wiring: Wiring, key: Callable[[Schedulable, int], Key]
    ) -> None:
        self._operators = operators
        self._wiring = wiring
        self._key = key
        self._keys: list[Key | None] = [None] * len(operators)
        self._heap: list[Key] = []
        self.look_at_all()

    def look_at_all(self) -> None:
        """Begin anew: priorities have changed, or operators have run unseen."""
        self._heap = []
        for i, operator in enumerate(self._operators):
            key = self._key(operator, i) if is_ready(operator) else None
            self._keys[i] = key
            if key is not None:
                self._heap.append(key)
        heapq.heapify(self._heap)

    def pop(self) -> int | None:
        """The best position, or None. It is off the agenda until it is looked at."""
        while self._heap:
            key = heapq.heappop(self._heap)
            position = -key[2]
            # An entry that no longer says what was last seen has been replaced by another.
            if self._keys[position] == key:
                self._keys[position] = None
                return position
        return None

    def look_around(self, position: int) -> None:
        """The operator there has run: its own work, its readers' and the room its producers have are others now."""
        self._look_at(position)
        for neighbour in self._wiring.consumers[position]:
            self._look_at(neighbour)
        for neighbour in self._wiring.producers[position]:
            self._look_at(neighbour)

    def _look_at(self, position: int) -> None:
        operator = self._operators[position]
        key = self._key(operator, position) if is_ready(operator) else None
        if key != self._keys[position]:
            self._keys[position] = key
            if key is not None:
                heapq.heappush(self._heap, key)
