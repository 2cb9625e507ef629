"""The calendar parts of a TIMESTAMP as arithmetic on its ticks: any int64, proleptic Gregorian, UTC.

Spark's own dates end at the year 9999; ours do not (docs/semantics R4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.spark.computed import NotExpressibleError

if TYPE_CHECKING:
    from pyspark.sql import Column

_SECOND_NS = 10**9
_DAY_NS = 86_400 * _SECOND_NS
_DAYS_PER_ERA = 146_097
PARTS = ("year", "month", "day", "hour", "minute", "second", "dayofweek")


def _quotient(a: Column, b: int) -> Column:
    """floor(a / b) of a bigint by a positive number, without overflow."""
    divisor = F.lit(b).cast("bigint")
    down = F.when(a % divisor < F.lit(0), F.lit(1)).otherwise(F.lit(0)).cast("bigint")
    return F.call_function("div", a, divisor) - down


def _rest(a: Column, b: int) -> Column:
    return F.pmod(a, F.lit(b).cast("bigint"))


def part(name: str, ticks: Column, tick_ns: int) -> Column:
    """The part of this name; dayofweek is 0 on Sundays."""
    if _DAY_NS % tick_ns or (_SECOND_NS % tick_ns and tick_ns % _SECOND_NS):
        raise NotExpressibleError(f"the calendar in ticks of {tick_ns} ns")
    if name in ("hour", "minute", "second"):
        of_day = _rest(ticks, _DAY_NS // tick_ns)
        if tick_ns <= _SECOND_NS:
            of_day = _quotient(of_day, _SECOND_NS // tick_ns)
        else:
            of_day = of_day * F.lit(tick_ns // _SECOND_NS)
        if name == "hour":
            return _quotient(of_day, 3600)
        return _rest(_quotient(of_day, 60), 60) if name == "minute" else _rest(of_day, 60)
    days = _quotient(ticks, _DAY_NS // tick_ns)
    if name == "dayofweek":
        return _rest(_rest(days, 7) + F.lit(4), 7)  # 1970-01-01 was a Thursday
    # Years are counted from March inside an era of 400 years, so that the leap day comes last.
    shifted = _rest(days, _DAYS_PER_ERA) + F.lit(719_468)
    era = _quotient(days, _DAYS_PER_ERA) + _quotient(shifted, _DAYS_PER_ERA)
    of_era = _rest(shifted, _DAYS_PER_ERA)
    leap = _quotient(of_era, 1460) - _quotient(of_era, 36_524) + _quotient(of_era, 146_096)
    year = _quotient(of_era - leap, 365)
    of_year = of_era - (year * F.lit(365) + _quotient(year, 4) - _quotient(year, 100))
    from_march = _quotient(of_year * F.lit(5) + F.lit(2), 153)
    if name == "day":
        return of_year - _quotient(from_march * F.lit(153) + F.lit(2), 5) + F.lit(1)
    month = F.when(from_march < F.lit(10), from_march + F.lit(3)).otherwise(from_march - F.lit(9))
    if name == "month":
        return month
    return year + era * F.lit(400) + F.when(month <= F.lit(2), F.lit(1)).otherwise(F.lit(0))
