"""Times as text and back, by a pattern, in UTC.

Three ways of writing a pattern are read: strftime's (`%Y-%m-%d`), PostgreSQL's for TO_CHAR (`YYYY-MM-DD HH24:MI`) and
Java's, as ksqlDB has it (`yyyy-MM-dd HH:mm`). Each becomes a tuple of fields and texts; a pattern with a field that is
not known is refused when the query is read. Years are those from 1 to 9999.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable
from typing import Any

from minidsms.elements import Type
from minidsms.functions.calendar import DAY_NAMES, MONTH_NAMES
from minidsms.functions.function import FAILED, Function, fixed

_SECOND_NS = 10**9
_DAY_NS = 86_400 * _SECOND_NS
_EPOCH, _LAST_DAY = datetime.date(1970, 1, 1).toordinal(), datetime.date.max.toordinal()

# What a field of a pattern is: the expression that reads it.  "f3" is a fraction of three digits.
_READ = {
    "year": r"(\d{4})",
    "year2": r"(\d{2})",
    "month": r"(\d{1,2})",
    "day": r"(\d{1,2})",
    "day of year": r"(\d{1,3})",
    "hour": r"(\d{1,2})",
    "hour12": r"(\d{1,2})",
    "minute": r"(\d{1,2})",
    "second": r"(\d{1,2})",
    "half": r"([AaPp][Mm])",
    "month name": f"({'|'.join(MONTH_NAMES)})",
    "month short": f"({'|'.join(name[:3] for name in MONTH_NAMES)})",
    "day name": f"({'|'.join(DAY_NAMES)})",
    "day short": f"({'|'.join(name[:3] for name in DAY_NAMES)})",
    "offset": r"(Z|[+-]\d{2}:?\d{2})",
    **{f"f{digits}": rf"(\d{{{digits}}})" for digits in range(1, 10)},
}

_STRFTIME = {
    "%Y": "year", "%y": "year2", "%m": "month", "%d": "day", "%j": "day of year", "%H": "hour", "%I": "hour12",
    "%M": "minute", "%S": "second", "%p": "half", "%B": "month name", "%b": "month short", "%A": "day name",
    "%a": "day short", "%z": "offset", "%f": "f6", "%g": "f3", "%n": "f9",
}  # fmt: skip
_POSTGRES = {
    "YYYY": "year", "YY": "year2", "MM": "month", "DDD": "day of year", "DD": "day", "HH24": "hour", "HH12": "hour12",
    "HH": "hour12", "MI": "minute", "SS": "second", "AM": "half", "PM": "half", "MS": "f3", "US": "f6",
    "Month": "month name", "Mon": "month short", "Day": "day name", "Dy": "day short",
}  # fmt: skip
_JAVA = {
    "yyyy": "year", "yy": "year2", "MMMM": "month name", "MMM": "month short", "MM": "month", "DDD": "day of year",
    "dd": "day", "HH": "hour", "hh": "hour12", "mm": "minute", "ss": "second", "a": "half", "EEEE": "day name",
    "EEE": "day short", "XXX": "offset", **{"S" * digits: f"f{digits}" for digits in range(1, 10)},
}  # fmt: skip


class _Unknown(ValueError):
    """A field of a pattern that is none."""


Parts = tuple[tuple[bool, str], ...]
"""(is a field, its name or the text)."""


def _parsed(pattern: str, fields: dict[str, str], lexeme: str) -> Parts:
    """lexeme: what is a field if it is known and wrong if it is not."""
    parts = []
    end = 0
    for found in re.finditer(f"(?P<field>{lexeme})|'(?P<text>[^']*)'", pattern):
        parts.append((False, pattern[end : found.start()]))
        end = found.end()
        word = found["field"]
        if word is None:
            # A text stands in quotes; two quotes are one.
            parts.append((False, found["text"] or "'"))
        elif word == "%%":
            parts.append((False, "%"))
        elif word in fields:
            parts.append((True, fields[word]))
        else:
            raise _Unknown(f'the pattern has "{word}", which is no field; fields are {", ".join(fields)}')
    parts.append((False, pattern[end:]))
    return tuple(part for part in parts if part[1])


@functools.lru_cache(maxsize=256)
def _strftime_parts(pattern: str) -> Parts:
    return _parsed(pattern, _STRFTIME, r"%.|%$")


@functools.lru_cache(maxsize=256)
def _postgres_parts(pattern: str) -> Parts:
    known = "|".join(sorted(_POSTGRES, key=len, reverse=True))
    return _parsed(pattern, _POSTGRES, rf"{known}|[A-Za-z]+")


@functools.lru_cache(maxsize=256)
def _java_parts(pattern: str) -> Parts:
    return _parsed(pattern, _JAVA, r"(?P<letter>[A-Za-z])(?P=letter)*")


def _check(parts: Callable[[str], Parts]) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        try:
            parts(value)
        except _Unknown as problem:
            return str(problem)
        return None

    return check


# --------------------------------------------------------------------------------------------------------- writing


_Field = tuple[str, Callable[[datetime.date, int], Any]]

_WRITTEN: dict[str, _Field] = {
    "year": ("%04d", lambda date, ns: date.year),
    "year2": ("%02d", lambda date, ns: date.year % 100),
    "month": ("%02d", lambda date, ns: date.month),
    "day": ("%02d", lambda date, ns: date.day),
    "day of year": ("%03d", lambda date, ns: date.timetuple().tm_yday),
    "hour": ("%02d", lambda date, ns: ns // (3_600 * _SECOND_NS)),
    "hour12": ("%02d", lambda date, ns: (ns // (3_600 * _SECOND_NS) + 11) % 12 + 1),
    "minute": ("%02d", lambda date, ns: ns // (60 * _SECOND_NS) % 60),
    "second": ("%02d", lambda date, ns: ns // _SECOND_NS % 60),
    "half": ("%s", lambda date, ns: "PM" if ns >= _DAY_NS // 2 else "AM"),
    "month name": ("%s", lambda date, ns: MONTH_NAMES[date.month - 1]),
    "month short": ("%.3s", lambda date, ns: MONTH_NAMES[date.month - 1]),
    "day name": ("%s", lambda date, ns: DAY_NAMES[date.weekday()]),
    "day short": ("%.3s", lambda date, ns: DAY_NAMES[date.weekday()]),
    "offset": ("%s", lambda date, ns: "+00:00"),
    **{f"f{digits}": (f"%.{digits}s", lambda date, ns: f"{ns % _SECOND_NS:09d}") for digits in range(1, 10)},
}
"""How a field is written, and what, of the day and the nanosecond of the day."""


_GRAINS_NS = {
    "hour": 3_600 * _SECOND_NS,
    "hour12": 3_600 * _SECOND_NS,
    "minute": 60 * _SECOND_NS,
    "second": _SECOND_NS,
    "half": _DAY_NS // 2,
    **{f"f{digits}": 10 ** (9 - digits) for digits in range(1, 10)},
}
"""The steps of time in which a field changes; others do with the day."""


def _grain(parts: Callable[[str], Parts]) -> Callable[[str], int]:
    """The finest of a pattern."""
    return lambda pattern: min(
        (_GRAINS_NS.get(text, _DAY_NS) for is_field, text in parts(pattern) if is_field), default=_DAY_NS
    )


@functools.lru_cache(maxsize=256)
def _writing(parts: Parts) -> tuple[str, tuple[Callable[[datetime.date, int], Any], ...]]:
    """What all fields are put into, and the fields."""
    form = "".join(_WRITTEN[text][0] if is_field else text.replace("%", "%%") for is_field, text in parts)
    return form, tuple(_WRITTEN[text][1] for is_field, text in parts if is_field)


def _format(parts: Callable[[str], Parts]) -> Callable[..., Any]:
    def write(ticks: int, pattern: str, *, tick_ns: int) -> Any:
        days, ns = divmod(ticks * tick_ns, _DAY_NS)
        if not 1 <= days + _EPOCH <= _LAST_DAY:
            return FAILED
        date = datetime.date.fromordinal(days + _EPOCH)
        form, fields = _writing(parts(pattern))
        return form % tuple([field(date, ns) for field in fields])

    return write


# --------------------------------------------------------------------------------------------------------- reading


@functools.lru_cache(maxsize=256)
def _reader(parts: Parts) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """What reads a text, and the fields of its groups."""
    expression = "".join(_READ[text] if is_field else re.escape(text) for is_field, text in parts)
    return re.compile(expression, re.IGNORECASE | re.ASCII), tuple(text for is_field, text in parts if is_field)


def _date(found: dict[str, str]) -> datetime.date:
    """Raises ValueError for a day that is none."""
    year = int(found.get("year", 1970))
    if "year2" in found:
        year = int(found["year2"]) + (2000 if int(found["year2"]) < 69 else 1900)
    if "day of year" in found:
        date = datetime.date(year, 1, 1) + datetime.timedelta(int(found["day of year"]) - 1)
        if date.year != year:
            raise ValueError("no such day of the year")
        return date
    month = int(found.get("month", 1))
    for field in ("month name", "month short"):
        if field in found:
            month = [name[: len(found[field])].lower() for name in MONTH_NAMES].index(found[field].lower()) + 1
    return datetime.date(year, month, int(found.get("day", 1)))


def _clock_ns(found: dict[str, str]) -> int:
    """Nanoseconds since midnight, UTC. Raises ValueError."""
    hour = int(found.get("hour", 0))
    if "hour12" in found:
        hour = int(found["hour12"])
        if not 1 <= hour <= 12:
            raise ValueError("no such hour")
        hour = hour % 12 + (12 if found.get("half", "am").lower() == "pm" else 0)
    clock = datetime.time(hour, int(found.get("minute", 0)), int(found.get("second", 0)))
    ns = (clock.hour * 3_600 + clock.minute * 60 + clock.second) * _SECOND_NS
    ns += sum(int(digits.ljust(9, "0")) for field, digits in found.items() if re.fullmatch("f[1-9]", field))
    offset = found.get("offset", "Z")
    if offset not in "Zz":
        minutes = int(offset[1:3]) * 60 + int(offset[-2:])
        ns -= (minutes if offset[0] == "+" else -minutes) * 60 * _SECOND_NS
    return ns


def _parse(parts: Callable[[str], Parts], unreadable: Any) -> Callable[..., Any]:
    """unreadable: what a text gives that does not fit the pattern, or falls between two ticks."""

    def read(text: str, pattern: str, *, tick_ns: int) -> Any:
        expression, fields = _reader(parts(pattern))
        match = expression.fullmatch(text.strip())
        if match is None:
            return unreadable
        found = dict(zip(fields, match.groups()))
        try:
            ns = (_date(found).toordinal() - _EPOCH) * _DAY_NS + _clock_ns(found)
        except ValueError:
            return unreadable
        ticks, rest = divmod(ns, tick_ns)
        return unreadable if rest or not -(2**63) <= ticks < 2**63 else ticks

    return read


_AT = "TIMESTAMP '2013-05-31 14:35:07.250'"


def _writer(name: str, parts: Callable[[str], Parts], kind: str, pattern: str, shown: str) -> Function:
    return Function(
        name, 2, 2, fixed(Type.TEXT, Type.TIMESTAMP, Type.TEXT), "TIMESTAMP and a pattern",
        f"the instant as text, by a pattern of {kind}", (f"{name.upper()}({_AT}, '{pattern}')", shown),
        _format(parts), literals={1: _check(parts)}, can_fail=True, in_ticks=True,
        grain_ns=_grain(parts),
    )  # fmt: skip


def _parser(
    name: str, parts: Callable[[str], Parts], text: str, pattern: str, unreadable: Any, summary: str
) -> Function:
    call = f"CAST({name.upper()}('{text}', '{pattern}') AS TEXT)"
    return Function(
        name, 2, 2, fixed(Type.TIMESTAMP, Type.TEXT, Type.TEXT), "TEXT and a pattern", summary,
        (call, "'2013-05-31 14:35:00'"),
        _parse(parts, unreadable), literals={1: _check(parts)}, can_fail=unreadable is FAILED, in_ticks=True,
    )  # fmt: skip


FUNCTIONS = (
    _writer("strftime", _strftime_parts, "strftime", "%d.%m.%Y %H:%M", "'31.05.2013 14:35'"),
    _writer("to_char", _postgres_parts, "PostgreSQL", "DD Mon YYYY HH24:MI:SS.MS", "'31 May 2013 14:35:07.250'"),
    _writer("format_timestamp", _java_parts, "Java", "yyyy-MM-dd''T''HH:mm:ss.SSS", "'2013-05-31T14:35:07.250'"),
    _parser(
        "strptime", _strftime_parts, "31.05.2013 14:35", "%d.%m.%Y %H:%M", FAILED,
        "the instant in a text, by a pattern of strftime; fails if the text does not fit",
    ),
    _parser(
        "try_strptime", _strftime_parts, "31.05.2013 14:35", "%d.%m.%Y %H:%M", None,
        "as STRPTIME, but NULL where the text does not fit",
    ),
    _parser(
        "parse_timestamp", _java_parts, "31/05/2013 02:35 pm", "dd/MM/yyyy hh:mm a", FAILED,
        "the instant in a text, by a pattern of Java; fails if the text does not fit",
    ),
    _parser(
        "from_char", _postgres_parts, "31.05.2013 14:35", "DD.MM.YYYY HH24:MI", FAILED,
        "the instant in a text, by a pattern of PostgreSQL; fails if the text does not fit; also"
        " TO_TIMESTAMP(text, pattern)",
    ),
)  # fmt: skip
