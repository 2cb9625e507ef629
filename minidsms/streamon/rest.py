"""How long whoever found nothing to change is left alone: each time twice as long, until something changes."""

from __future__ import annotations

REST, LONGEST_REST = 8_192, 65_536
"""Elements: of the first rest, and of the longest."""


class Rest:
    """How long who has nothing to do rests."""

    def __init__(self) -> None:
        self._length = REST

    def longer(self) -> int:
        """Elements to rest now; the next time it is longer."""
        length = self._length
        self._length = min(2 * length, LONGEST_REST)
        return length

    def wake(self) -> None:
        """Something has changed."""
        self._length = REST
