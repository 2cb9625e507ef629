"""The months of days, and the days of months: by tables for the years 1600 to 2399, else by numpy's calendar.

Days and months count from January 1970, in the proleptic Gregorian calendar.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

FIRST_MONTH, LAST_MONTH = -370 * 12, 430 * 12 - 1
"""January 1600 and December 2399."""


@cache
def _tables() -> tuple[Any, Any]:
    """(the first day of each month, and of the one behind the last; the month of each day)."""
    starts = _day_of(np.arange(FIRST_MONTH, LAST_MONTH + 2))
    return starts, _month_of(np.arange(starts[0], starts[-1]))


def _month_of(days: Any) -> Any:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _day_of(months: Any) -> Any:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def are_known(days: Any) -> bool:
    """All these days stand in the tables."""
    starts, _ = _tables()
    return bool(days.dtype == np.int64 and len(days) and days.min() >= starts[0] and days.max() < starts[-1])


def months_of(days: Any) -> Any:
    """The month of each day."""
    if not are_known(days):
        return _month_of(days)
    starts, months = _tables()
    return months.take(days - starts[0])


def first_days(months: Any) -> Any:
    """The first day of each month."""
    if not (len(months) and months.min() >= FIRST_MONTH and months.max() <= LAST_MONTH):
        return _day_of(months)
    return _tables()[0].take(months - FIRST_MONTH)


def remainder(values: Any, divisor: Any) -> Any:
    """values % divisor, the divisors positive: division by one known number is faster than numpy's remainder."""
    return values - values // divisor * divisor
