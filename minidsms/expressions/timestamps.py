"""TIMESTAMP: its calendar parts, and its ISO text (`cql.times` reads one).

Ticks count from 1970-01-01T00:00:00 UTC; the calendar is the proleptic Gregorian one, without leap seconds.

Invariant: nothing overflows, whatever the int64 and the tick; days before 1970 count downward (floor division).
docs/semantics T1, R4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidsms.elements import INT64_MIN, Int64Array
from minidsms.expressions.value import FEW, Value, finish
from minidsms.functions.months import are_known, first_days, months_of, remainder
from minidsms.values.coded import FIRST_DAY, LAST_DAY, date_of

_SECOND_NS = 10**9
_DAY_NS = 86_400 * _SECOND_NS
_DAYS_PER_ERA = 146_097
"""400 years: after it the calendar repeats."""


def _floor_scale(ticks: Int64Array, tick_ns: int, unit_ns: int) -> Int64Array:
    """floor(ticks * tick_ns / unit_ns), exactly."""
    if unit_ns % tick_ns == 0:
        return ticks // (unit_ns // tick_ns)
    exact = ticks.astype(object) * tick_ns // unit_ns
    return exact.astype(np.int64) if tick_ns <= unit_ns else exact


def day(ticks: Int64Array, tick_ns: int) -> Int64Array:
    """Days since 1970."""
    return _floor_scale(ticks, tick_ns, _DAY_NS)


def _second_of_day(ticks: Int64Array, tick_ns: int) -> Int64Array:
    if tick_ns >= _SECOND_NS and tick_ns % _SECOND_NS == 0 and _DAY_NS % tick_ns == 0:
        return ticks % (_DAY_NS // tick_ns) * (tick_ns // _SECOND_NS)
    return _floor_scale(ticks, tick_ns, _SECOND_NS) % 86_400


def civil(days: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(year, month, day of month) of days since 1970-01-01.

    Years are counted from March inside an era of 400 years, so that the leap day comes last
    (H. Hinnant, "chrono-compatible low-level date algorithms").
    """
    # 0000-03-01 is 719468 days before 1970; added after the split, so that no int64 day overflows.
    shifted = days % _DAYS_PER_ERA + 719_468
    era = days // _DAYS_PER_ERA + shifted // _DAYS_PER_ERA
    of_era = shifted % _DAYS_PER_ERA
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * month_from_march + 2) // 5 + 1
    month = np.where(month_from_march < 10, month_from_march + 3, month_from_march - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def _year(days: Int64Array) -> Any:
    return months_of(days) // 12 + 1970 if are_known(days) else civil(days)[0]


def _month(days: Int64Array) -> Any:
    return remainder(months_of(days), 12) + 1 if are_known(days) else civil(days)[1]


def _day(days: Int64Array) -> Any:
    return days - first_days(months_of(days)) + 1 if are_known(days) else civil(days)[2]


def _clock(ticks: Int64Array, tick_ns: int, unit_s: int, whole: int) -> Any:
    """How many units of so many seconds have passed, of those that make a whole."""
    if unit_s * _SECOND_NS % tick_ns == 0:
        return remainder(ticks // (unit_s * _SECOND_NS // tick_ns), whole)
    return _second_of_day(ticks, tick_ns) // unit_s % whole


_PARTS: dict[str, Callable[[Int64Array, int], Any]] = {
    "year": lambda ticks, tick_ns: _year(day(ticks, tick_ns)),
    "month": lambda ticks, tick_ns: _month(day(ticks, tick_ns)),
    "day": lambda ticks, tick_ns: _day(day(ticks, tick_ns)),
    "hour": lambda ticks, tick_ns: _clock(ticks, tick_ns, 3600, 24),
    "minute": lambda ticks, tick_ns: _clock(ticks, tick_ns, 60, 60),
    "second": lambda ticks, tick_ns: _clock(ticks, tick_ns, 1, 60),
    # 1970-01-01 was a Thursday; the remainder is taken first, or the last days would overflow.
    "dayofweek": lambda ticks, tick_ns: remainder(remainder(day(ticks, tick_ns), 7) + 4, 7),
}


def part(name: str, tick_ns: int) -> Callable[[Value], Value] | None:
    """The function year, month, day, hour, minute, second or dayofweek (0 is Sunday); None for other names."""
    function = _PARTS.get(name)
    if function is None:
        return None

    def apply(a: Value) -> Value:
        values = np.asarray(function(a.values, tick_ns), np.int64)
        return finish(values, a.valid, a.failed)

    return apply


def floored(step: int) -> Callable[[Value], Value]:
    """Instants as the beginnings of their steps of so many ticks, for functions that do not look inside these: fewer
    are different. Few instants, and those near the least int64, stay as they are.
    """

    def apply(a: Value) -> Value:
        if len(a.values) <= FEW or a.values.min() < INT64_MIN + step:
            return a
        return Value(a.values - a.values % step, a.valid, a.failed)

    return apply


def within_dates(function: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """The function of days, which fails where its result is no DATE."""

    def apply(a: Value, b: Value) -> Value:
        found = function(a, b)
        outside = (found.values < FIRST_DAY) | (found.values > LAST_DAY)
        if found.valid is not None:
            outside &= found.valid
        return finish(found.values.copy(), found.valid, found.failed, bad=outside) if outside.any() else found

    return apply


def iso_of_ticks(ticks: int, tick_ns: int) -> str:
    """The ISO text of an instant, UTC, with as many decimals as it needs.

    >>> iso_of_ticks(1500, 1_000_000)
    '1970-01-01 00:00:01.5'
    """
    seconds, fraction = divmod(ticks * tick_ns, _SECOND_NS)
    days, of_day = divmod(seconds, 86_400)
    text = f"{iso_of_day(days)} {of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
    return text + (f".{fraction:09d}".rstrip("0") if fraction else "")


def iso_of_day(day: int) -> str:
    """The ISO text of a day since 1970, of any year."""
    if FIRST_DAY <= day <= LAST_DAY:
        return str(date_of(day))
    year, month, of_month = (int(part[0]) for part in civil(np.array([day], object)))
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{of_month:02d}"
