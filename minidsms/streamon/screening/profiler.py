"""What is known of the rows that a screen has seen lately: the regions in which some of them lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.screens.homes import HomeLists
from minidsms.screens.level import Level
from minidsms.streamon.screening.arranging import Window

ROWS = 1024
"""Rows remembered."""


class RegionProfiler:
    """Remembers every n-th row, so that the window spans about one rearrangement period; none is left out by what it
    passes. period: rows that the window is to span.
    """

    def __init__(self, period: int) -> None:
        self._every = max(1, period // ROWS)
        self._level: Level | None = None
        self._regions = np.zeros((0, 0), np.int32)
        self._rows = 0
        self._skip = 0

    def observe(self, level: Level, keys: Int64Array, present: BoolArray) -> None:
        """Rows have passed the level."""
        n = keys.shape[1]
        if level is not self._level:
            self._level, self._rows = level, 0
            self._regions = np.zeros((len(level.domains.columns), ROWS), np.int32)
        first = self._skip
        self._skip = (first - n) % self._every
        chosen = np.arange(first, n, self._every)[-ROWS:]
        if not len(chosen):
            return
        found = level.domains.regions_of(keys[:, chosen], present[:, chosen])
        self._regions[:, (self._rows + np.arange(len(chosen))) % ROWS] = found
        self._rows += len(chosen)

    @property
    def window(self) -> Window:
        """The regions of the rows remembered, (p, rows)."""
        return self._regions[:, : min(self._rows, ROWS)]

    def statistics(self) -> Mapping[str, Any]:
        level = self._level
        if level is None or not level.rows:
            return {}
        if isinstance(level.constructs, HomeLists):
            return {"words_a_row": level.words / level.rows}
        return {"columns_a_row": level.looked / level.rows, "dropped": level.dropped / level.rows}
