"""Durations and points in time as a text writes them, in ticks (docs/semantics T1, R4).

Invariant: what does not fit int64 is refused, and what does not fall on a tick, unless it is asked to be floored.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation

from minidsms.counted import counted
from minidsms.elements import INT64_MAX, INT64_MIN

UNIT_NS = {
    "nanosecond": 1,
    "microsecond": 1_000,
    "millisecond": 1_000_000,
    "second": 1_000_000_000,
    "minute": 60 * 1_000_000_000,
    "hour": 3600 * 1_000_000_000,
    "day": 86400 * 1_000_000_000,
    "week": 7 * 86400 * 1_000_000_000,
}
"""Nanoseconds of each unit, by its singular."""

_ISO = re.compile(
    r"\s*([+-]?\d{4,18})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]\s*(\d{1,2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9})\d*)?)?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?\s*",
    re.IGNORECASE | re.ASCII,
)


class NotATime(ValueError):
    """A text that is no time, or falls between ticks, or outside int64; the message says which."""

    hint = ""


class BetweenTicks(NotATime):
    """A time that falls between two ticks."""

    hint = "ticks are shorter in minidsms.connect(time_unit='us'), or 'ns'"


class BeyondTicks(NotATime):
    """A time outside int64."""


def duration_ticks(number: str, unit: str | None, tick_ns: int) -> int:
    """Ticks of `10`, `10,000` (ticks already) or `2 Minutes`; units are singular or plural, in any case.

    >>> duration_ticks("2", "Minutes", 1_000_000)
    120000
    """
    written = number if unit is None else f"{number} {unit}"
    try:
        value = Decimal(number.replace(",", "").replace("_", "").strip())
    except InvalidOperation:
        raise NotATime(f'"{number}" is not a number') from None
    # A Decimal with a huge exponent would be written out digit by digit.
    if not value.is_finite() or abs(value.adjusted()) > 40 or len(value.as_tuple().digits) > 60:
        raise NotATime(f"{written} does not fit the range of time")
    numerator, denominator = value.as_integer_ratio()
    if unit is not None:
        name = unit.lower()
        scale = UNIT_NS.get(name, UNIT_NS.get(name.removesuffix("s")))
        if scale is None:
            raise NotATime(f'"{unit}" is not a unit of time')
        numerator *= scale
        denominator *= tick_ns
    ticks, rest = divmod(numerator, denominator)
    if rest:
        raise BetweenTicks(f"{written} does not fall on a tick of {tick_words(tick_ns)}")
    return _fitting(ticks, written)


def iso_ticks(text: str, tick_ns: int, is_floored: bool = False) -> int:
    """Ticks since 1970 UTC of an ISO date or time; without an offset it is UTC. A year may have a sign and more digits.
    is_floored: a time between two ticks is the first of them.

    >>> iso_ticks("1970-01-02 00:00:00.5", 1_000_000)
    86400500
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise NotATime(f"'{text}' is not an ISO time")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        eras, of_era = divmod(int(year) - 2000, 400)  # after 400 years the calendar repeats
        days = (datetime.date(2000 + of_era, int(month), int(day)) - datetime.date(1970, 1, 1)).days + eras * 146_097
        clock = datetime.time(int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError as problem:
        raise NotATime(f"'{text}' is not an ISO time: {problem}") from None
    seconds = days * 86400 + clock.hour * 3600 + clock.minute * 60 + clock.second
    if offset and offset not in "zZ":
        digits = offset[1:].replace(":", "").ljust(4, "0")
        shift = int(digits[:2]) * 3600 + int(digits[2:]) * 60
        seconds -= shift if offset[0] == "+" else -shift
    ns = seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))
    ticks, rest = divmod(ns, tick_ns)
    if rest and not is_floored:
        raise BetweenTicks(f"'{text}' does not fall on a tick of {tick_words(tick_ns)}")
    return _fitting(ticks, f"'{text}'")


def tick_words(tick_ns: int) -> str:
    """The length of a tick in words.

    >>> tick_words(1_000_000)
    '1 millisecond'
    """
    for name, ns in reversed(UNIT_NS.items()):
        if tick_ns % ns == 0:
            count = tick_ns // ns
            return counted(count, name)
    return f"{tick_ns} nanoseconds"


def _fitting(ticks: int, written: str) -> int:
    if not INT64_MIN <= ticks <= INT64_MAX:
        raise BeyondTicks(f"{written} does not fit the range of time")
    return ticks
