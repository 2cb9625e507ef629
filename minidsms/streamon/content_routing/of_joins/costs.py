"""What telling the rows of a join apart costs: a row is looked at once, and its route kept beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from minidsms.streamon.content_routing.costs import Dividing

ROUTED_NS = 3.0
"""Of an element, whatever it is told apart by: its route is written, and read again."""
CLASSIFIED_NS = 6.0
"""Of an element and a classifier: the column is gathered, and its bucket found."""
PART_NS = 40_000.0
"""Of a part of the join's input, however few its elements are."""
LEAST_ROWS = 256
"""Elements of a part that are told apart."""


@dataclass(frozen=True)
class JoinDividing(Dividing):
    """measures_time: else it costs 1 an element. Parts of an input run in one pass, and cost nothing of their own."""

    calls_by_part: ClassVar[bool] = False

    def of_tuple(self, classifiers: int) -> float:
        return ROUTED_NS + CLASSIFIED_NS * classifiers if self.measures_time else 1.0

    def of_calls(self, calls: int, rows: float) -> float:
        return PART_NS / max(rows, 1.0) if self.measures_time else 0.0

    def least_rows(self, calls: int, saved: float, classifiers: int) -> int:
        left = saved - self.of_tuple(classifiers)
        if not self.measures_time or left <= 0:
            return 1
        return max(LEAST_ROWS, math.ceil(PART_NS / left))
