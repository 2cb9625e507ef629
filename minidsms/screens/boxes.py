"""The boxes of many filters, and which of them a row lies in: levels of constructs that are built as boxes come.

Invariant: a row is found with exactly those boxes that it lies in and that have been added and not removed.
Lee and Lee 2012; docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minidsms.elements import Batch, BoolArray, Int64Array, Type
from minidsms.screens.asc import Constructs
from minidsms.screens.box import Box
from minidsms.screens.level import Found, Level
from minidsms.values.dictionary import TextDictionary

MOST = 16_384
"""Boxes of a level: bitmaps grow with their square, where every box has constants of its own."""
_MERGED = 4
"""Levels are made one when there are more, or the later ones have a quarter of the boxes, or a quarter has gone."""


class Boxes:
    """types: of the columns that the boxes speak of. A box has a number, which is given again when it has gone."""

    def __init__(self, types: Sequence[Type]) -> None:
        self.levels: list[Level] = []
        self.found = Found()
        self._types = tuple(types)
        self._boxes: list[Box | None] = []
        self._places: list[tuple[Level, int] | None] = []
        self._free: list[int] = []
        self._fresh: dict[int, None] = {}
        self._present = 0

    def __len__(self) -> int:
        return self._present

    @property
    def end(self) -> int:
        """Every number is below it."""
        return len(self._boxes)

    def add(self, box: Box) -> int:
        """One more box, found from the next `settle` on; its number."""
        if self._free:
            number = self._free.pop()
            self._boxes[number] = box
        else:
            number = len(self._boxes)
            self._boxes.append(box)
            self._places.append(None)
        self._fresh[number] = None
        self._present += 1
        return number

    def remove(self, number: int) -> None:
        """A box has gone."""
        place = self._places[number]
        if place is None:
            del self._fresh[number]
        else:
            place[0].strike(place[1])
        self._boxes[number] = self._places[number] = None
        self._free.append(number)
        self._present -= 1

    def settle(self) -> bool:
        """Build the tables of what has come; whether there was anything to do. MemoryError, and nothing has changed."""
        if not self._fresh and not any(level.gone for level in self.levels):
            return False
        young = sum(len(level.boxes) for level in self.levels if len(level.boxes) < MOST) + len(self._fresh)
        gone = sum(level.gone for level in self.levels)
        kept, fresh = self.levels, list(self._fresh)
        if len(self.levels) >= _MERGED + len(self) // MOST or _MERGED * max(young, gone) > len(self):
            kept, fresh = [], [number for number, box in enumerate(self._boxes) if box is not None]
        built = []
        for start in range(0, len(fresh), MOST):
            part = fresh[start : start + MOST]
            built.append((part, Level([box for n in part if (box := self._boxes[n]) is not None], part, self._types)))
        self._fresh, self.levels = {}, [*kept, *(level for _, level in built)]
        for part, level in built:
            for place, number in enumerate(part):
                self._places[number] = level, place
        return True

    def look_up(
        self,
        batch: Batch,
        dictionary: TextDictionary,
        passed: Callable[[Int64Array, BoolArray, int], object],
    ) -> Found:
        """The pairs of a row and a box's number, those of each box in ascending row; good until the next call.

        passed: is told of the keys of the first level's columns, which are not NULL, and of the first row's instant.
        """
        self.found.count = 0
        for level in self.levels:
            keys, present = level.run(batch, dictionary, self.found)
            if level is self.levels[0]:
                passed(keys, present, int(batch.ts[0]))
        return self.found

    @property
    def finds_by_row(self) -> bool:
        """All pairs are found in ascending row."""
        return len(self.levels) < 2 and all(isinstance(level.constructs, Constructs) for level in self.levels)

    @property
    def columns(self) -> set[int]:
        """The columns that any of them asks."""
        return {column for level in self.levels for column in level.domains.columns}

    @property
    def nbytes(self) -> int:
        """Bytes of regions and bitmaps."""
        return sum(level.constructs.nbytes for level in self.levels)
