"""The calendar: truncation, parts, distances and shifts of TIMESTAMPs, in UTC (docs/semantics T1, R4).

An instant is split into its day and the ticks of the day; days are numpy's datetime64, whose months and years are those
of the proleptic Gregorian calendar. Instants more than ten million years away fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Type
from minidsms.functions.function import FAILED, Arrays, Function, Signature, fixed, one_of
from minidsms.functions.months import first_days, months_of, remainder

_TEXT, _INTEGER, _FLOAT, _TIMESTAMP, _INTERVAL = Type.TEXT, Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL

_SECOND_NS = 10**9
_DAY_NS = 86_400 * _SECOND_NS
_FAR_DAYS = 3_652_425_000
"""Ten million years."""

_CLOCK = {
    "microsecond": 1_000,
    "millisecond": 1_000_000,
    "second": _SECOND_NS,
    "minute": 60 * _SECOND_NS,
    "hour": 3_600 * _SECOND_NS,
}
"""Units of constant length within a day, in nanoseconds."""
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
DAYS_AND_MORE = ("day", "week", *_MONTHS)
UNITS = (*_CLOCK, *DAYS_AND_MORE)
"""The units of the calendar, shortest first."""

_unit = one_of(UNITS, "a unit")


def _days(ticks: Any, tick_ns: int) -> tuple[Any, Any]:
    """(days since 1970, where they are near enough to be counted with; 0 where not)."""
    days = ticks // (_DAY_NS // tick_ns) if tick_ns <= _DAY_NS else ticks * (tick_ns // _DAY_NS)
    if len(days) and days.min() >= -_FAR_DAYS and days.max() <= _FAR_DAYS:
        return days, np.ones(1, np.bool_)
    near = (days >= -_FAR_DAYS) & (days <= _FAR_DAYS)
    return np.where(near, days, 0), near


def _ticks(days: Any, near: Any, tick_ns: int) -> Arrays:
    """The first instant of each day; fails far away, and where a tick is longer than the day wants."""
    per_day = max(_DAY_NS // tick_ns, 1)
    most = (2**63 - 1) // per_day
    if near.all() and len(days) and -most <= days.min() and days.max() <= most:
        return Arrays(days * per_day)
    fits = near & (np.abs(days) <= most)
    return Arrays(np.where(fits, days, 0) * per_day, bad=~fits)


def _date_trunc(unit: str, ticks: Any, *, tick_ns: int) -> Arrays:
    unit = unit.lower()
    if unit in _CLOCK:
        length = _CLOCK[unit] // tick_ns
        return Arrays(ticks) if length <= 1 else Arrays(values := ticks // length * length, bad=values > ticks)
    days, near = _days(ticks, tick_ns)
    if unit == "week":
        days = days - remainder(days + 3, 7)
    elif unit != "day":
        months = months_of(days)
        # Decades and the like count from the year 0, not from 1970.
        since_zero = months + 1970 * 12
        days = first_days(since_zero // _MONTHS[unit] * _MONTHS[unit] - 1970 * 12)
    return _ticks(days, near, tick_ns)


def _time_bucket(width: Any, ticks: Any, origin: Any = None, *, tick_ns: int) -> Arrays:
    """Buckets begin at the origin, by default Monday, 2000-01-03; NULL where the width is not positive."""
    start = origin if origin is not None else np.array([10_959 * _DAY_NS // tick_ns], np.int64)
    safe = np.where(width > 0, width, 1)
    # The rest of the difference without the difference, which might not fit.
    rest = remainder(ticks, safe) - start % safe
    rest += np.where(rest < 0, safe, 0)
    values = ticks - rest
    return Arrays(values, bad=values > ticks, null=np.broadcast_to(width <= 0, np.shape(values)))


def _of_days(function: Callable[[Any], Any]) -> Callable[..., Arrays]:
    """A part that depends on the day alone."""

    def part(ticks: Any, *, tick_ns: int) -> Arrays:
        days, near = _days(ticks, tick_ns)
        return Arrays(function(days), bad=~near)

    return part


def _quarter(days: Any) -> Any:
    return remainder(months_of(days), 12) // 3 + 1


def _day_of_year(days: Any) -> Any:
    return days - first_days(months_of(days) // 12 * 12) + 1


def _week(days: Any) -> Any:
    """ISO 8601: weeks begin on Mondays, the first one holds the year's first Thursday."""
    thursday = days - remainder(days + 3, 7) + 3
    return (_day_of_year(thursday) - 1) // 7 + 1


def _iso_year(days: Any) -> Any:
    return months_of(days - remainder(days + 3, 7) + 3) // 12 + 1970


def _units(ticks: Any, tick_ns: int, unit_ns: int) -> Any:
    return ticks if tick_ns == unit_ns else ticks * tick_ns // unit_ns


def _within(unit_ns: int, whole_ns: int) -> Callable[..., Any]:
    """How many units have passed of the whole (the minute), as DuckDB's `millisecond` counts them."""

    def part(ticks: Any, *, tick_ns: int) -> Any:
        if whole_ns % tick_ns:
            return ticks * 0
        return _units(remainder(ticks, whole_ns // tick_ns), tick_ns, unit_ns)

    return part


def _epoch(ticks: Any, *, tick_ns: int) -> Any:
    return ticks * (tick_ns / _SECOND_NS) if tick_ns >= _SECOND_NS else ticks / (_SECOND_NS / tick_ns)


def _epoch_ms(ticks: Any, *, tick_ns: int) -> Arrays:
    if tick_ns == 1_000_000:
        return Arrays(ticks)
    if tick_ns < 1_000_000:
        return Arrays(ticks // (1_000_000 // tick_ns))
    return _times(ticks, tick_ns // 1_000_000)


def _times(values: Any, factor: int) -> Arrays:
    most = (2**63 - 1) // factor
    fits = (values >= -most) & (values <= most)
    return Arrays(np.where(fits, values, 0) * factor, bad=~fits)


def _last_day(ticks: Any, *, tick_ns: int) -> Arrays:
    days, near = _days(ticks, tick_ns)
    return _ticks(first_days(months_of(days) + 1) - 1, near, tick_ns)


def _boundaries(unit: str, ticks: Any, tick_ns: int) -> tuple[Any, Any]:
    """(how many boundaries of the unit lie between some fixed instant and this one, where that can be counted)."""
    if unit in _CLOCK:
        return ticks // (_CLOCK[unit] // tick_ns), np.ones(1, np.bool_)
    days, near = _days(ticks, tick_ns)
    if unit == "day":
        return days, near
    if unit == "week":
        return (days + 3) // 7, near
    return (months_of(days) + 1970 * 12) // _MONTHS[unit], near


def _date_diff(unit: str, start: Any, end: Any, *, tick_ns: int) -> Arrays:
    unit = unit.lower()
    if unit in _CLOCK and tick_ns >= _CLOCK[unit]:
        # Every tick is a boundary, or several.
        return _ticks_between(start, end, tick_ns // _CLOCK[unit])
    (first, knows), (last, knows_too) = (_boundaries(unit, t, tick_ns) for t in (start, end))
    values = last - first
    wrapped = ((last ^ first) & (last ^ values)) < 0
    return Arrays(values, bad=wrapped | ~(knows & knows_too))


def _ticks_between(start: Any, end: Any, factor: int) -> Arrays:
    """(end - start) * factor; fails where it does not fit."""
    distance = end - start
    wrapped = ((end ^ start) & (end ^ distance)) < 0
    found = _times(np.where(wrapped, 0, distance), factor)
    return Arrays(found.values, bad=wrapped | found.bad)


def _timestampdiff(unit: str, start: Any, end: Any, *, tick_ns: int) -> Arrays:
    """Whole units from start to end, negative where end is earlier."""
    unit = unit.lower()
    length = _CLOCK.get(unit) or {"day": _DAY_NS, "week": 7 * _DAY_NS}.get(unit)
    if length is not None and tick_ns >= length:
        return _ticks_between(start, end, tick_ns // length)
    if length is not None:
        # The distance itself might not fit: quotients and rests are taken apart.
        whole = length // tick_ns
        values, rest = end // whole - start // whole, end % whole - start % whole
        return Arrays(values - ((values > 0) & (rest < 0)) + ((values < 0) & (rest > 0)))
    (first, near), (last, near_too) = (_days(t, tick_ns) for t in (start, end))
    months = months_of(last) - months_of(first)
    # A month is whole where the day and the clock of the later one have been reached.
    reached = _since_month(last, end, tick_ns) - _since_month(first, start, tick_ns)
    last_days = first_days(months_of(last) + 1) - 1 == last
    short = (months > 0) & (reached < 0) & ~(last_days & _is_clock_reached(start, end, tick_ns))
    months = months - short + ((months < 0) & (reached > 0))
    span = _MONTHS[unit]
    values = months // span
    return Arrays(values + ((months < 0) & (values * span != months)), bad=~(near & near_too))


def _since_month(days: Any, ticks: Any, tick_ns: int) -> Any:
    per_day = max(_DAY_NS // tick_ns, 1)
    return (days - first_days(months_of(days))) * per_day + ticks % per_day


def _is_clock_reached(start: Any, end: Any, tick_ns: int) -> Any:
    per_day = max(_DAY_NS // tick_ns, 1)
    return end % per_day >= start % per_day


def _timestampadd(unit: str, count: Any, ticks: Any, *, tick_ns: int) -> Arrays:
    """A day that the month has not becomes its last one."""
    unit = unit.lower()
    length = _CLOCK.get(unit) or {"day": _DAY_NS, "week": 7 * _DAY_NS}.get(unit)
    if length is not None:
        if length < tick_ns:
            # A part of a tick is no instant.
            whole, rest = count // (tick_ns // length), count % (tick_ns // length)
            moved = ticks + whole
            return Arrays(moved, bad=(rest != 0) | (((ticks ^ moved) & (whole ^ moved)) < 0))
        step = _times(count, length // tick_ns)
        moved = ticks + step.values
        return Arrays(moved, bad=step.bad | (((ticks ^ moved) & (step.values ^ moved)) < 0))
    days, near = _days(ticks, tick_ns)
    near = near & (np.abs(count.astype(np.float64)) <= _FAR_DAYS // 366 // _MONTHS[unit] * 12)
    months = months_of(days)
    later = months + np.where(near, count, 0) * _MONTHS[unit]
    day = np.minimum(days - first_days(months), first_days(later + 1) - first_days(later) - 1)
    first = _ticks(first_days(later) + day, near, tick_ns)
    per_day = max(_DAY_NS // tick_ns, 1)
    return Arrays(first.values + ticks % per_day, bad=first.bad)


DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _dayname(ticks: int, *, tick_ns: int) -> str:
    return DAY_NAMES[(ticks * tick_ns // _DAY_NS + 3) % 7]


def _monthname(ticks: int, *, tick_ns: int) -> Any:
    days, near = _days(np.array([ticks], np.int64), tick_ns)
    return MONTH_NAMES[int(months_of(days)[0]) % 12] if near[0] else FAILED


def _to_timestamp(seconds: Any, *, tick_ns: int) -> Arrays:
    """An instant so many seconds after 1970 began; to the nearest tick."""
    ticks = np.rint(seconds * (_SECOND_NS / tick_ns) if tick_ns <= _SECOND_NS else seconds / (tick_ns / _SECOND_NS))
    fits = np.abs(ticks) < 2.0**63
    return Arrays(np.where(fits, ticks, 0.0).astype(np.int64), bad=~fits)


def _bucket_types(types: Sequence[Type]) -> Signature | None:
    wanted = (_INTERVAL, _TIMESTAMP, _TIMESTAMP)[: len(types)]
    # A number is an interval in ticks, as in a window.
    are_instants = all(t in (_TIMESTAMP, Type.DATE, Type.NULL) for t in types[1:])
    return Signature(wanted, _TIMESTAMP) if types[0] in (_INTERVAL, _INTEGER, Type.NULL) and are_instants else None


def _epoch_types(types: Sequence[Type]) -> Signature | None:
    return Signature((_INTERVAL,), _FLOAT) if types[0] is _INTERVAL else fixed(_FLOAT, _TIMESTAMP)(types)


_PART_TYPES = fixed(_INTEGER, _TIMESTAMP)
_AT = "TIMESTAMP '2013-05-31 14:35:07.250'"


def _part(
    name: str, function: Callable[..., Any], summary: str, shown: str,
    types: Callable[[Sequence[Type]], Signature | None] = _PART_TYPES, takes: str = "TIMESTAMP",
) -> Function:  # fmt: skip
    example = (f"{name.upper()}({_AT})", shown)
    return Function(name, 1, 1, types, takes, summary, example, of_arrays=function, can_fail=True, in_ticks=True)


def _of_unit(
    name: str, params: tuple[Type, ...], result: Type, function: Callable[..., Any], summary: str, call: str, shown: str
) -> Function:
    count = len(params) + 1
    types = fixed(result, _TEXT, *params)
    takes = "a unit, " + " and ".join(str(p) for p in params)
    return Function(
        name, count, count, types, takes, summary, (call, shown),
        of_arrays=function, literals={0: _unit}, can_fail=True, in_ticks=True,
    )  # fmt: skip


_PARTS = (
    _part("quarter", _of_days(_quarter), "1 to 4", "2"),
    _part("week", _of_days(_week), "the week of the year (ISO 8601)", "22"),
    _part("isoyear", _of_days(_iso_year), "the year that the week belongs to (ISO 8601)", "2013"),
    _part("isodow", _of_days(lambda days: remainder(days + 3, 7) + 1), "the day of the week, Monday is 1", "5"),
    _part("dayofyear", _of_days(_day_of_year), "1 to 366", "151"),
    _part("millisecond", _within(1_000_000, 60 * _SECOND_NS), "milliseconds of the minute", "7250"),
    _part("microsecond", _within(1_000, 60 * _SECOND_NS), "microseconds of the minute", "7250000"),
    _part(
        "epoch", _epoch, "seconds since 1970; of an INTERVAL, its seconds", "1370010907.25",
        _epoch_types, "TIMESTAMP or INTERVAL",
    ),
    _part("epoch_ms", _epoch_ms, "milliseconds since 1970", "1370010907250"),
)  # fmt: skip

FUNCTIONS = (
    _of_unit(
        "date_trunc", (_TIMESTAMP,), _TIMESTAMP, _date_trunc,
        f"the beginning of the unit ({', '.join(UNITS)}) that holds the instant; weeks begin on Mondays",
        f"CAST(DATE_TRUNC('hour', {_AT}) AS TEXT)", "'2013-05-31 14:00:00'",
    ),
    Function(
        "time_bucket", 2, 3, _bucket_types, "INTERVAL, TIMESTAMP and optionally TIMESTAMP",
        "the beginning of the bucket of this width that holds the instant; buckets are counted from an origin, by "
        "default Monday, 2000-01-03",
        (f"CAST(TIME_BUCKET(15 MINUTES, {_AT}) AS TEXT)", "'2013-05-31 14:30:00'"),
        of_arrays=_time_bucket, can_fail=True, in_ticks=True,
    ),
    _of_unit(
        "date_diff", (_TIMESTAMP, _TIMESTAMP), _INTEGER, _date_diff,
        "the number of unit boundaries between two instants",
        f"DATE_DIFF('hour', TIMESTAMP '2013-05-31 12:59', {_AT})", "2",
    ),
    _of_unit(
        "timestampdiff", (_TIMESTAMP, _TIMESTAMP), _INTEGER, _timestampdiff,
        "the number of whole units from the first instant to the second",
        f"TIMESTAMPDIFF(HOUR, TIMESTAMP '2013-05-31 12:59', {_AT})", "1",
    ),
    _of_unit(
        "timestampadd", (_INTEGER, _TIMESTAMP), _TIMESTAMP, _timestampadd,
        "the instant this many units later; a day that the month does not have becomes its last",
        f"CAST(TIMESTAMPADD(MONTH, 1, {_AT}) AS TEXT)", "'2013-06-30 14:35:07.25'",
    ),
    *_PARTS,
    Function(
        "last_day", 1, 1, fixed(_TIMESTAMP, _TIMESTAMP), "TIMESTAMP", "the beginning of the month's last day",
        (f"CAST(LAST_DAY({_AT}) AS TEXT)", "'2013-05-31 00:00:00'"),
        of_arrays=_last_day, can_fail=True, in_ticks=True,
    ),
    Function(
        "dayname", 1, 1, fixed(_TEXT, _TIMESTAMP), "TIMESTAMP", "Monday to Sunday",
        (f"DAYNAME({_AT})", "'Friday'"), _dayname, in_ticks=True,
        grain_ns=lambda: _DAY_NS,
    ),
    Function(
        "monthname", 1, 1, fixed(_TEXT, _TIMESTAMP), "TIMESTAMP", "January to December",
        (f"MONTHNAME({_AT})", "'May'"), _monthname, can_fail=True, in_ticks=True,
        grain_ns=lambda: _DAY_NS,
    ),
    Function(
        "to_timestamp", 1, 1, fixed(_TIMESTAMP, _FLOAT), "INTEGER or FLOAT",
        "the instant this many seconds after the beginning of 1970, to the nearest tick",
        ("CAST(TO_TIMESTAMP(1370010907.25) AS TEXT)", "'2013-05-31 14:35:07.25'"),
        of_arrays=_to_timestamp, can_fail=True, in_ticks=True,
    ),
)  # fmt: skip

PARTS = {
    "dow": "dayofweek",
    "doy": "dayofyear",
    "milliseconds": "millisecond",
    "microseconds": "microsecond",
    **{name: name for name in ("year", "month", "day", "hour", "minute", "second", "dayofweek")},
    **{f.name: f.name for f in _PARTS},
}
"""What DATE_PART and EXTRACT call a part: the function that gives it."""

TAKE_A_UNIT = frozenset({"date_part", *(f.name for f in FUNCTIONS if 0 in f.literals)})
"""The functions whose first argument may be the bare name of a unit."""
