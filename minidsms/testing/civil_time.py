"""The parts of an instant in the Gregorian calendar, and its ISO text: plain arithmetic, for the definition."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

DAY_NS = 86_400 * 10**9


def civil(day: int) -> tuple[int, int, int]:
    """(year, month, day) of any day since 1970 in the Gregorian calendar, which repeats every 400 years."""
    era, rest = divmod(day + date(1970, 1, 1).toordinal() - 1, 146_097)
    found = date.fromordinal(rest + 1)
    return found.year + 400 * era, found.month, found.day


CALENDAR: dict[str, Callable[[int], int]] = {
    "year": lambda ns: civil(ns // DAY_NS)[0],
    "month": lambda ns: civil(ns // DAY_NS)[1],
    "day": lambda ns: civil(ns // DAY_NS)[2],
    "hour": lambda ns: ns // (3_600 * 10**9) % 24,
    "minute": lambda ns: ns // (60 * 10**9) % 60,
    "second": lambda ns: ns // 10**9 % 60,
    "dayofweek": lambda ns: (ns // DAY_NS + 4) % 7,
}


def iso_text(ns: int) -> str:
    """Date and time, with as many decimals as the instant has, in UTC."""
    fraction = f".{ns % 10**9:09d}".rstrip("0") if ns % 10**9 else ""
    clock = ":".join(f"{CALENDAR[unit](ns):02d}" for unit in ("hour", "minute", "second"))
    year, month, day = civil(ns // DAY_NS)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d} " + clock + fraction
