"""What telling the rows of a join apart costs: a row is looked at once, and its route kept beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidsms.streamon.content_routing.costs import Dividing


@dataclass(frozen=True)
class JoinDividing(Dividing):
    """measures_time: else it costs 1 an element. Parts of an input run in one pass, and cost nothing of their own.

    tuple_ns: an element's route is written, and read again.  classifier_ns: the column is gathered, and its bucket
    found.  part_ns: of a part of the join's input, however few its elements are.
    """

    calls_by_part: ClassVar[bool] = False
    tuple_ns: ClassVar[float] = 3.0
    classifier_ns: ClassVar[float] = 6.0
    part_ns: ClassVar[float] = 40_000.0
    least: ClassVar[int] = 256
