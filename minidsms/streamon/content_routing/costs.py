"""What it costs to divide a chunk by route.

Measured on one core, in ns: a bucket of each tuple, the counting sort and putting the survivors in order again; and
every part calls every filter, which costs the same however few its tuples are.
Invariant: where time is not measured, dividing a tuple costs as much as a filter does, 1, and nothing else counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Dividing:
    """measures_time: else it costs 1 a tuple.  calls_by_part: each part calls its filters by itself.

    tuple_ns: per tuple, for the sort there and back.  classifier_ns: per tuple and classifier.  part_ns: a filter, on
    one part more: a vectorised user function, its argument gathered, and what passes.  least: chunks below are never
    divided, where time counts.
    """

    measures_time: bool
    calls_by_part: ClassVar[bool] = True
    tuple_ns: ClassVar[float] = 4.0
    classifier_ns: ClassVar[float] = 2.5
    part_ns: ClassVar[float] = 20_000.0
    least: ClassVar[int] = 2_000

    def of_tuple(self, classifiers: int) -> float:
        """Per tuple."""
        return self.tuple_ns + self.classifier_ns * classifiers if self.measures_time else 1.0

    def of_calls(self, calls: int, rows: float) -> float:
        """Per tuple of a chunk of so many, for calls of filters."""
        return self._of_parts(calls) / max(rows, 1.0) if self.measures_time else 0.0

    def least_rows(self, calls: int, saved: float, classifiers: int) -> int:
        """Of a chunk that is worth dividing, where so much is saved per tuple before dividing."""
        left = saved - self.of_tuple(classifiers)
        if not self.measures_time or left <= 0:
            return 1
        return max(self.least, math.ceil(self._of_parts(calls) / left))

    def _of_parts(self, calls: int) -> float:
        return self.part_ns * (calls if self.calls_by_part else 1)
