"""Classifiers: functions from an attribute of a tuple to one of a few buckets.

Bucket 0 is NULL's, so that a classifier of d buckets has d - 1 for values. Invariant: a classifier is a value, and the
same tuple has the same bucket as long as texts are compared by what they say, not by their codes.
Content-Based Routing, section 4.1, "partitioning functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from minidsms.elements import Type

MOST_BUCKETS = 250


class Reading(Enum):
    """How an attribute is read."""

    VALUE = "value"
    """INTEGER by remainder, so that neighbours never share a bucket; TEXT by a hash of the text; BOOLEAN."""
    RANGE = "range"
    """Between quantiles of a sample."""
    HOUR = "hour"
    """Of the day, UTC."""
    WEEKDAY = "weekday"
    """From Monday."""


READINGS = {
    Type.INTEGER: (Reading.VALUE, Reading.RANGE),
    Type.FLOAT: (Reading.RANGE,),
    Type.TEXT: (Reading.VALUE,),
    Type.BOOLEAN: (Reading.VALUE,),
    Type.TIMESTAMP: (Reading.HOUR, Reading.WEEKDAY),
    Type.INTERVAL: (Reading.RANGE,),
}
"""The partitioning functions tried for each type; none for others."""


@dataclass(frozen=True)
class Classifier:
    """column: of the tuple; name: the column's.  buckets: d, 2 to MOST_BUCKETS.  bounds: between ranges, ascending, at
    most d - 2.
    """

    column: int
    name: str
    reading: Reading
    buckets: int
    bounds: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.name if self.reading in (Reading.VALUE, Reading.RANGE) else f"{self.reading.value}({self.name})"
