"""What it costs to divide a chunk by route.

Measured on one core, in ns: a bucket of each tuple, the counting sort and putting the survivors in order again; and
every part calls every filter, which costs the same however few its tuples are.
Invariant: where time is not measured, dividing a tuple costs as much as a filter does, 1, and nothing else counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

DIVIDING_NS = 4.0
"""Per tuple, for the sort there and back."""
CLASSIFYING_NS = 2.5
"""Per tuple and classifier."""
CALL_NS = 20_000.0
"""A filter, on one part more: a vectorised user function, its argument gathered, and what passes."""
LEAST_ROWS = 2_000
"""Chunks below are never divided, where time counts."""


@dataclass(frozen=True)
class Dividing:
    """measures_time: else it costs 1 a tuple.  calls_by_part: each part calls its filters by itself."""

    measures_time: bool
    calls_by_part: ClassVar[bool] = True

    def of_tuple(self, classifiers: int) -> float:
        """Per tuple."""
        return DIVIDING_NS + CLASSIFYING_NS * classifiers if self.measures_time else 1.0

    def of_calls(self, calls: int, rows: float) -> float:
        """Per tuple of a chunk of so many, for calls of filters."""
        return CALL_NS * calls / max(rows, 1.0) if self.measures_time else 0.0

    def least_rows(self, calls: int, saved: float, classifiers: int) -> int:
        """Of a chunk that is worth dividing, where so much is saved per tuple before dividing."""
        left = saved - self.of_tuple(classifiers)
        if not self.measures_time or left <= 0:
            return 1
        return max(LEAST_ROWS, math.ceil(CALL_NS * calls / left))
