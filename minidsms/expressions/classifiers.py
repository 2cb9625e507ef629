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
    """INTEGER by remainder, so that neighbours never share a bucket; TEXT and nested types by a hash; BOOLEAN."""
    RANGE = "range"
    """Between quantiles of a sample."""
    HOUR = "hour"
    """Of the day; of a TIMESTAMP in UTC."""
    WEEKDAY = "weekday"
    """From Monday."""


_READINGS = {
    "INTEGER": (Reading.VALUE, Reading.RANGE),
    "FLOAT": (Reading.RANGE,),
    "DECIMAL": (Reading.RANGE,),
    "BOOLEAN": (Reading.VALUE,),
    "TIMESTAMP": (Reading.HOUR, Reading.WEEKDAY),
    "DATE": (Reading.WEEKDAY, Reading.RANGE),
    "TIME": (Reading.HOUR, Reading.RANGE),
    "INTERVAL": (Reading.RANGE,),
    "NULL": (),
}


def readings_of(type_: Type) -> tuple[Reading, ...]:
    """The partitioning functions that are tried for a type; TEXT and nested ones have the one of their values."""
    return _READINGS.get(type_.kind, (Reading.VALUE,))


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
