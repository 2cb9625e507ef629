"""Instants as texts. Arrow writes those of the years 1 to 9999; of a far year it writes 16 bits, and no time of day.

Invariant: an instant has one text, whether it is written with many others or alone.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.expressions.timestamps import iso_of_day
from minidsms.values.coded import DAY_US, FIRST_DAY, LAST_DAY

DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Behind the point of a second."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def instant_text(ticks: int, unit: str) -> str:
    """The text of an instant, in UTC. unit: of Arrow.

    >>> instant_text(1, "ms"), instant_text(2**60, "ms")
    ('1970-01-01 00:00:00.001Z', '36536598-01-28 21:54:06.976Z')
    """
    a_second = 10 ** DIGITS[unit]
    day, rest = divmod(ticks, 86_400 * a_second)
    return f"{iso_of_day(day)} {time_text(rest, a_second, DIGITS[unit])}Z"


def offset_text(ticks: int, unit: str) -> str:
    """The text of an instant inside a nested value: as Python writes a datetime, where there is one.

    >>> offset_text(1, "ms"), offset_text(2**60, "ms")
    ('1970-01-01 00:00:00.001000+00:00', '36536598-01-28 21:54:06.976+00:00')
    """
    micros, rest = divmod(ticks * 1_000_000, 10 ** DIGITS[unit])
    if rest or not FIRST_DAY * DAY_US <= micros < (LAST_DAY + 1) * DAY_US:
        return f"{instant_text(ticks, unit)[:-1]}+00:00"
    return str(_EPOCH + dt.timedelta(microseconds=micros))


def time_text(count: int, a_second: int, digits: int) -> str:
    """A time of day, counted in parts of a second."""
    seconds, part = divmod(count, a_second)
    behind = f".{part:0{digits}d}" if digits else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{behind}"


def far_as_texts(array: Any) -> Any:
    """An array of instants; their texts, where one is of another year. NULL stays NULL."""
    unit = array.type.unit
    a_day = 86_400 * 10 ** DIGITS[unit]
    ticks = array.cast(pa.int64())
    ends = pc.min_max(ticks).as_py()
    if ends["min"] is None or (ends["min"] >= FIRST_DAY * a_day and ends["max"] < (LAST_DAY + 1) * a_day):
        return array
    return pa.array([None if t is None else instant_text(t, unit) for t in ticks.to_pylist()], pa.large_string())
