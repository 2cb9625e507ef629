"""The last elements of an answer, kept for who looks on while somebody else takes the answers.

Invariant: what is kept is bounded, and a batch costs as much as noting it: nothing is cut or decoded before somebody
looks.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minidsms.elements import Batch


KEPT = 1000
"""Elements, at least, once there were so many."""


class Newest:
    """The elements of one query."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._n = 0

    def add(self, batch: Batch) -> None:
        """Take what has been delivered."""
        self._batches.append(batch)
        self._n += len(batch)
        while self._n - len(self._batches[0]) >= KEPT:
            self._n -= len(self._batches.popleft())

    def batches(self) -> list[Batch]:
        """What is kept, oldest first."""
        return list(self._batches)

    def last(self, n: int) -> list[Batch]:
        """The last n of them, at most KEPT."""
        found: list[Batch] = []
        n = min(n, KEPT)
        for batch in reversed(self._batches):
            if n <= 0:
                break
            found.insert(0, batch.slice(max(0, len(batch) - n), len(batch)))
            n -= len(batch)
        return found
