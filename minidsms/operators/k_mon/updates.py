"""Whether the keys of relations let rows go: not while most of what goes comes back for their updates.

A row that comes back was written to a file, found, and read. Where more come back than are new among those that go, the
side is left open for a while, so that rows wait in memory as without; each time that this turns out to be so again, it
is tried half as often. Looked at whenever rows go; answers depend on none of it.
"""

from __future__ import annotations

_ENOUGH = 1024
"""Rows that go, or come back, before anything is said."""
_FIRST_REST, _LONGEST_REST = 4, 512
"""For how many times that rows could go a side is left open."""


class Updates:
    """sides: those of relations, by number."""

    def __init__(self, sides: list[int]) -> None:
        self._came_back = dict.fromkeys(sides, 0)
        self._written = dict.fromkeys(sides, 0)
        self._rest = dict.fromkeys(sides, 0)
        self._length = dict.fromkeys(sides, _FIRST_REST)

    def came_back(self, side: int, rows: int) -> None:
        """So many rows that had met a row of this side's relation came back for another of its key."""
        if side in self._came_back:
            self._came_back[side] += rows

    def open_sides(self, written: int) -> list[int]:
        """The sides to be left open now. written: rows that have gone, ever."""
        for side, came_back in self._came_back.items():
            if self._rest[side]:
                self._rest[side] -= 1
                if not self._rest[side]:
                    self._begin(side, written)
                continue
            gone = written - self._written[side]
            if max(gone, came_back) < _ENOUGH:
                continue
            if 2 * came_back > gone:
                self._rest[side] = self._length[side]
                self._length[side] = min(2 * self._length[side], _LONGEST_REST)
            else:
                self._length[side] = _FIRST_REST
            self._begin(side, written)
        return [side for side, rest in self._rest.items() if rest]

    def _begin(self, side: int, written: int) -> None:
        self._came_back[side], self._written[side] = 0, written
