"""The functions of `minidsms.functions` by definition: one value at a time, plain arithmetic, numbers without bounds.

Nothing is shared with the functions that the engine runs. A function raises `Failure` where it has no value.
"""

from __future__ import annotations

import binascii
import hashlib
import itertools
import math
import re
import urllib.parse
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from fractions import Fraction
from typing import Any

from minidsms.testing.civil_time import civil

SECOND = 10**9
DAY = 86_400 * SECOND
_ERA = 146_097
"""Days of 400 years, after which the calendar repeats."""
_CLOCK = {"microsecond": 10**3, "millisecond": 10**6, "second": SECOND, "minute": 60 * SECOND, "hour": 3_600 * SECOND}
_LENGTH = {**_CLOCK, "day": DAY, "week": 7 * DAY}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_FAR = 3_652_425_000


class Failure(Exception):
    """A function has no value for its arguments."""


# ----------------------------------------------------------------------------------------------------------- texts


def _pad(text: str, length: int, fill: str, on_left: bool) -> str:
    if length > 1_000_000:
        raise Failure("too long")
    missing = max(length - len(text), 0)
    padding = "".join(itertools.islice(itertools.cycle(fill), missing)) if fill else ""
    kept = text[: max(length, 0)]
    return padding + kept if on_left else kept + padding


def _repeat(text: str, times: int) -> str:
    if len(text) * times > 1_000_000:
        raise Failure("too long")
    return "".join(itertools.repeat(text, max(times, 0))) if text else ""


def _chr(code: int) -> str:
    if code == 0 or 0xD800 <= code <= 0xDFFF:
        raise Failure("no character")
    try:
        return chr(code)
    except (ValueError, OverflowError):
        raise Failure("no character") from None


def _initcap(text: str) -> str:
    result = ""
    for i, character in enumerate(text):
        begins = i == 0 or not text[i - 1].isalnum()
        result += character.upper() if begins and character.isalnum() else character.lower()
    return result


def _split_part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator) if separator else list(text)
    if number < 0:
        parts, number = parts[::-1], -number
    return dict(enumerate(parts, 1)).get(number, "")


def _translate(text: str, old: str, new: str) -> str:
    return "".join(c if c not in old else new[old.index(c) : old.index(c) + 1] for c in text)


def _flags(options: str) -> int:
    of = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
    return sum(int(of[o]) for o in set(options) if o in of)


def _extract(text: str, pattern: str, group: int = 0, options: str = "") -> str:
    found = re.search(pattern, text, _flags(options))
    return (found.group(group) or "") if found and group <= len(found.groups()) else ""


def _replace(text: str, pattern: str, new: str, options: str = "") -> str:
    def written(found: re.Match[str]) -> str:
        def escaped(e: re.Match[str]) -> str:
            if not e[1].isdigit():
                return e[1]
            return (found.group(int(e[1])) or "") if int(e[1]) <= len(found.groups()) else ""

        return re.sub(r"\\(.)", escaped, new, flags=re.DOTALL)

    return re.sub(pattern, written, text, count=0 if "g" in options else 1, flags=_flags(options))


def _of_address(part: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return getattr(urllib.parse.urlsplit(text), part) or None
        except ValueError:
            return None

    return read


def _parameter(text: str, name: str) -> str | None:
    try:
        query = urllib.parse.urlsplit(text).query
    except ValueError:
        return None
    return urllib.parse.parse_qs(query, keep_blank_values=True).get(name, [None])[0]


# --------------------------------------------------------------------------------------------------------- numbers


def _real(function: Callable[..., float]) -> Callable[..., float]:
    """The function; NaN where it is not defined, an infinity where it is too large."""

    def value(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf if function is not math.sinh or args[0] > 0 else -math.inf

    return value


def _cube_root(x: float) -> float:
    """The float whose cube is nearest."""
    root = math.cbrt(x)
    if not 1e-250 < abs(x) < math.inf:
        return root
    # glibc may be four floats off.
    near = (root + i * math.ulp(root) for i in range(-5, 6))
    return min(near, key=lambda r: abs(Fraction(r) ** 3 - Fraction(x)))


def _cot(x: float) -> float:
    return math.nan if x == 0 else 1 / math.tan(x)


def _log(base: float, x: float | None = None) -> float:
    if x is None:
        return math.log10(base)
    return math.nan if base == 1 else math.log(x) / math.log(base)


def _trunc(x: Any, places: int = 0) -> Any:
    if isinstance(x, int):
        unit = 10 ** min(max(-places, 0), 30)
        return abs(x) // unit * unit * (1 if x >= 0 else -1)
    scale = 10.0 ** min(abs(places), 308)
    scaled = x * scale if places >= 0 else x / scale
    if not math.isfinite(scaled) or abs(scaled) >= 2.0**52:
        return x
    return math.trunc(scaled) / scale if places >= 0 else math.trunc(scaled) * scale


# ----------------------------------------------------------------------------------------------------------- times


def _day(year: int, month: int, day: int) -> int:
    era, year = divmod(year - 1, 400)
    return date(year + 1, month, day).toordinal() - date(1970, 1, 1).toordinal() + era * _ERA


def _near(ticks: int, tick: int) -> tuple[int, int]:
    """(day, nanosecond of the day)."""
    day, ns = divmod(ticks * tick, DAY)
    if abs(day) > _FAR:
        raise Failure("too far away")
    return day, ns


def _first_of_month(months: int) -> int:
    """The first day of a month, counted from January of the year 0."""
    return _day(months // 12, months % 12 + 1, 1)


def _ticks(ns: int, tick: int) -> int:
    if ns % tick:
        raise Failure("between two ticks")
    return ns // tick


def _date_trunc(unit: str, ticks: int, tick: int) -> int:
    unit = unit.lower()
    if unit in _CLOCK:
        return ticks if tick >= _CLOCK[unit] else ticks * tick // _CLOCK[unit] * _CLOCK[unit] // tick
    day, _ = _near(ticks, tick)
    if unit == "week":
        day -= (day + 3) % 7
    elif unit != "day":
        year, month, _ = civil(day)
        day = _first_of_month((year * 12 + month - 1) // _MONTHS[unit] * _MONTHS[unit])
    return _ticks(day * DAY, tick)


def _time_bucket(width: int, ticks: int, origin: int | None = None, *, tick: int) -> int | None:
    start = _day(2000, 1, 3) * DAY // tick if origin is None else origin
    return None if width <= 0 else start + (ticks - start) // width * width


def _months_of(ticks: int, tick: int) -> int:
    year, month, _ = civil(_near(ticks, tick)[0])
    return year * 12 + month - 1


def _date_diff(unit: str, start: int, end: int, tick: int) -> int:
    unit = unit.lower()
    if unit in _CLOCK:
        return end * tick // _CLOCK[unit] - start * tick // _CLOCK[unit]
    if unit in ("day", "week"):
        first, last = _near(start, tick)[0], _near(end, tick)[0]
        return last - first if unit == "day" else (last + 3) // 7 - (first + 3) // 7
    return _months_of(end, tick) // _MONTHS[unit] - _months_of(start, tick) // _MONTHS[unit]


def _timestampdiff(unit: str, start: int, end: int, tick: int) -> int:
    unit = unit.lower()
    if unit in _LENGTH:
        distance = (end - start) * tick
        return abs(distance) // _LENGTH[unit] * (1 if distance >= 0 else -1)
    if end < start:
        return -_whole_months(end, start, unit, tick, False)
    return _whole_months(start, end, unit, tick, True)


def _whole_months(start: int, end: int, unit: str, tick: int, from_start: bool) -> int:
    """The most units that, added to the earlier instant (or taken from the later one), do not pass the other."""
    months = _months_of(end, tick) - _months_of(start, tick)
    if from_start:
        # A day that a month has not is its last.
        while months > 0 and _shifted(start, months, tick) > end * tick:
            months -= 1
    else:
        day, ns = _near(start, tick)
        late, late_ns = _near(end, tick)
        behind = (civil(late)[2], late_ns) < (civil(day)[2], ns)
        months -= behind and months > 0
    return months // _MONTHS[unit]


def _shifted(ticks: int, months: int, tick: int) -> int:
    """Nanoseconds of the instant so many months later."""
    day, ns = _near(ticks, tick)
    year, month, of_month = civil(day)
    later = year * 12 + month - 1 + months
    first = _first_of_month(later)
    return (first + min(of_month - 1, _first_of_month(later + 1) - first - 1)) * DAY + ns


def _timestampadd(unit: str, count: int, ticks: int, tick: int) -> int:
    unit = unit.lower()
    if unit in _LENGTH:
        return _ticks(ticks * tick + count * _LENGTH[unit], tick)
    if abs(count) > _FAR // 366 // _MONTHS[unit] * 12:
        raise Failure("too far away")
    return _ticks(_shifted(ticks, count * _MONTHS[unit], tick), tick)


def _of_day(function: Callable[[int], Any]) -> Callable[[int, int], Any]:
    return lambda ticks, tick: function(_near(ticks, tick)[0])


def _day_of_year(day: int) -> int:
    return day - _day(civil(day)[0], 1, 1) + 1


def _iso(day: int) -> tuple[int, int, int]:
    shifted = (day + date(1970, 1, 1).toordinal() - 1) % _ERA + _ERA + 1
    found = date.fromordinal(shifted).isocalendar()
    return civil(day - (day + 3) % 7 + 3)[0], found.week, found.weekday


def _last_day(ticks: int, tick: int) -> int:
    return _ticks((_first_of_month(_months_of(ticks, tick) + 1) - 1) * DAY, tick)


def _to_timestamp(seconds: float, tick: int) -> int:
    if not math.isfinite(seconds):
        raise Failure("no instant")
    return round(seconds * (SECOND / tick) if tick <= SECOND else seconds / (tick / SECOND))


_CODES = {
    "yyyy": "%Y", "YYYY": "%Y", "yy": "%y", "YY": "%y", "MMMM": "%B", "Month": "%B", "MMM": "%b", "Mon": "%b",
    "MM": "%m", "DDD": "%j", "dd": "%d", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%H", "hh": "%I", "mm": "%M",
    "MI": "%M", "ss": "%S", "SSS": "%3", "SS": "%S", "MS": "%3", "AM": "%p", "PM": "%p", "a": "%p", "EEEE": "%A",
    "Day": "%A", "EEE": "%a", "Dy": "%a",
}  # fmt: skip
"""Fields of PostgreSQL's and Java's patterns; %3 is a fraction of three digits. HH is a field of Java's here."""


def _strftime_pattern(pattern: str) -> str:
    """A pattern of the other two kinds as one of strftime."""
    if "%" in pattern:
        return pattern
    fields = "|".join(sorted(_CODES, key=len, reverse=True))
    return re.sub(f"'([^']*)'|{fields}", lambda found: found[1] if found[1] is not None else _CODES[found[0]], pattern)


def _format(ticks: int, pattern: str, tick: int) -> str:
    day, ns = divmod(ticks * tick, DAY)
    try:
        at = datetime(1970, 1, 1) + timedelta(days=day, microseconds=ns // 1000)
    except OverflowError:
        raise Failure("no year") from None
    # %Y is not padded everywhere, and %3 is our own.
    codes = _strftime_pattern(pattern).replace("%Y", f"{at.year:04d}").replace("%3", f"{at.microsecond // 1000:03d}")
    return at.strftime(codes)


def _parse(text: str, pattern: str, tick: int) -> int:
    try:
        at = datetime.strptime(text.strip(), _strftime_pattern(pattern))
    except ValueError:
        raise Failure("unreadable") from None
    return _ticks((at - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000, tick)


def _try_parse(text: str, pattern: str, tick: int) -> int | None:
    try:
        return _parse(text, pattern, tick)
    except Failure:
        return None


def _zone(name: str) -> tzinfo:
    return datetime.strptime(name, "%z").tzinfo or UTC if name[0] in "+-" else zoneinfo.ZoneInfo(name)


def _convert(ticks: int, source: str, target: str, tick: int) -> int:
    seconds, ns = divmod(ticks * tick, SECOND)
    try:
        wall = datetime(1970, 1, 1, tzinfo=_zone(source)) + timedelta(seconds=seconds)
        there = wall.astimezone(UTC).astimezone(_zone(target)).replace(tzinfo=None)
    except (OverflowError, ValueError):
        raise Failure("no year") from None
    return _ticks((there - datetime(1970, 1, 1)) // timedelta(seconds=1) * SECOND + ns, tick)


def _fail() -> Any:
    raise Failure("no value")


def _natural(n: int) -> int:
    return n if n >= 0 else _fail()


def _instr(text: str, part: str, start: int = 1, occurrence: int = 1) -> int:
    if start == 0 or occurrence < 1:
        return 0
    places = [i + 1 for i in range(len(text) + 1) if text[i:].startswith(part)]
    last = len(text) + 1 + start
    places = [p for p in places if p >= start] if start > 0 else [p for p in reversed(places) if p <= last]
    return places[occurrence - 1] if occurrence <= len(places) else 0


def _overlay(text: str, new: str, start: int, count: int | None = None) -> str:
    if start < 1:
        raise Failure("no place")
    end = start + (len(new) if count is None else count)
    before = "".join(c for i, c in enumerate(text, 1) if i < start)
    return before + new + "".join(c for i, c in enumerate(text, 1) if i >= end)


def _class_of(c: str) -> int:
    return 0 if c.isupper() else 1 if c.islower() else 2 if c.isdigit() else 3


def _masked(text: str, places: range) -> str:
    return "".join("Xxn-"[_class_of(c)] if i in places else c for i, c in enumerate(text))


def _pairs(text: str) -> range:
    if len(text) % 2 or any(c not in "0123456789abcdefABCDEF" for c in text):
        raise Failure("no bytes")
    return range(0, len(text), 2)


def _decoded(read: Callable[[], bytes]) -> str:
    try:
        return read().decode()
    except ValueError:
        raise Failure("no text") from None


def _extract_all(text: str, pattern: str, group: int = 0, options: str = "") -> tuple[str, ...]:
    matches = list(re.finditer(pattern, text, _flags(options)))
    return tuple(m.group(group) or "" for m in matches if group <= len(m.groups()))


def _split_by(text: str, pattern: str, options: str = "") -> tuple[str, ...]:
    parts = [""]
    cuts = {m.start(): m.end() for m in re.finditer(pattern, text, _flags(options)) if m.group()}
    i = 0
    while i < len(text):
        if i in cuts:
            parts.append("")
            i = cuts[i]
        else:
            parts[-1] += text[i]
            i += 1
    return tuple(parts)


def _width_bucket(x: float, low: float, high: float, count: int) -> int:
    if not 0 < count < 2**52 or low == high or not (math.isfinite(low) and math.isfinite(high - low)):
        raise Failure("no buckets")
    share = (x - low) / (high - low)
    if share < 0:
        return 0
    return count + 1 if share >= 1 else min(math.floor(share * count), count - 1) + 1


def _distance(lat: float, lon: float, lat2: float, lon2: float, unit: str = "km") -> float:
    if not all(map(math.isfinite, (lat, lon, lat2, lon2, lat2 - lat, lon2 - lon))):
        return math.nan
    a, b = math.radians(lat), math.radians(lat2)
    across = math.radians(lon2 - lon)
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(across / 2) ** 2
    return (6371.0 if unit.lower() == "km" else 3959.0) * 2 * math.asin(math.sqrt(min(h, 1.0)))


OF_VALUES: dict[str, Callable[..., Any]] = {
    "instr": _instr,
    "overlay": _overlay,
    "mask": lambda text, *new: "".join((list(new) + list("Xxn-")[len(new) :])[_class_of(c)] for c in text),
    "mask_left": lambda text, n: _masked(text, range(_natural(n))),
    "mask_right": lambda text, n: _masked(text, range(len(text) - _natural(n), len(text))),
    "mask_keep_left": lambda text, n: _masked(text, range(_natural(n), len(text))),
    "mask_keep_right": lambda text, n: _masked(text, range(len(text) - _natural(n))),
    "elt": lambda n, *texts: dict(enumerate(texts, 1)).get(n),
    "field": lambda text, *others: next((i for i, t in enumerate(others, 1) if t == text and t is not None), 0),
    "hex": lambda text: "".join(f"{byte:02X}" for byte in text.encode()),
    "unhex": lambda text: _decoded(lambda: bytes(int(text[i : i + 2], 16) for i in _pairs(text))),
    "to_base64": lambda text: binascii.b2a_base64(text.encode(), newline=False).decode(),
    "from_base64": lambda text: _decoded(lambda: binascii.a2b_base64(text.encode(), strict_mode=True)),
    "to_hex": lambda n: hex(n if n >= 0 else 2**64 + n)[2:],
    "octet_length": lambda text: sum(1 for _ in text.encode()),
    "regexp_extract_all": _extract_all,
    "regexp_split_to_array": _split_by,
    "regexp_count": lambda text, pattern, options="": len([*re.finditer(pattern, text, _flags(options))]),
    "sha224": lambda text: hashlib.sha224(text.encode()).hexdigest(),
    "sha384": lambda text: hashlib.sha384(text.encode()).hexdigest(),
    "sha512": lambda text: hashlib.sha512(text.encode()).hexdigest(),
    "asinh": _real(math.asinh),
    "acosh": _real(math.acosh),
    "atanh": _real(math.atanh),
    "width_bucket": _width_bucket,
    "geo_distance": _distance,
    "factorial": lambda n: math.factorial(n) if 0 <= n <= 20 else _fail(),
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
    "bitnot": lambda a: -1 - a,
    "bitshiftleft": lambda a, n: ((a << n) + 2**63) % 2**64 - 2**63 if 0 <= n < 64 else _fail(),
    "bitshiftright": lambda a, n: a // 2**n if 0 <= n < 64 else _fail(),
    "contains": lambda text, part: part in text,
    "ends_with": lambda text, part: text[len(text) - len(part) :] == part if len(part) <= len(text) else False,
    "initcap": _initcap,
    "lpad": lambda text, length, fill=" ": _pad(text, length, fill, True),
    "rpad": lambda text, length, fill=" ": _pad(text, length, fill, False),
    "repeat": _repeat,
    "reverse": lambda text: "".join(reversed(text)),
    "left": lambda text, n: "".join(c for i, c in enumerate(text) if i < (n if n >= 0 else len(text) + n)),
    "right": lambda text, n: "".join(c for i, c in enumerate(text) if i >= (len(text) - n if n >= 0 else -n)),
    "split_part": _split_part,
    "translate": _translate,
    "chr": _chr,
    "ascii": lambda text: ord(text[0]) if text else 0,
    "regexp_matches": lambda text, pattern, options="": re.search(pattern, text, _flags(options)) is not None,
    "regexp_full_match": lambda text, pattern, options="": re.fullmatch(pattern, text, _flags(options)) is not None,
    "regexp_extract": _extract,
    "regexp_replace": _replace,
    "md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
    "sha1": lambda text: hashlib.sha1(text.encode()).hexdigest(),
    "sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "url_extract_protocol": _of_address("scheme"),
    "url_extract_host": _of_address("hostname"),
    "url_extract_port": _of_address("port"),
    "url_extract_path": _of_address("path"),
    "url_extract_query": _of_address("query"),
    "url_extract_fragment": _of_address("fragment"),
    "url_extract_parameter": _parameter,
    "url_encode": lambda text: urllib.parse.quote(text, safe=""),
    "url_decode": urllib.parse.unquote,
    "pi": lambda: math.pi,
    "sin": _real(math.sin),
    "cos": _real(math.cos),
    "tan": _real(math.tan),
    "cot": _real(_cot),
    "asin": _real(math.asin),
    "acos": _real(math.acos),
    "atan": _real(math.atan),
    "sinh": _real(math.sinh),
    "cosh": _real(math.cosh),
    "tanh": _real(math.tanh),
    "degrees": _real(math.degrees),
    "radians": _real(math.radians),
    "cbrt": _cube_root,
    "log2": _real(math.log2),
    "atan2": _real(math.atan2),
    "log": _real(_log),
    "trunc": _trunc,
    "gcd": math.gcd,
}
"""Functions of values, by name."""

OF_TIMES: dict[str, Callable[..., Any]] = {
    "date_trunc": _date_trunc,
    "time_bucket": lambda *args: _time_bucket(*args[:-1], tick=args[-1]),
    "date_diff": _date_diff,
    "timestampdiff": _timestampdiff,
    "timestampadd": _timestampadd,
    "quarter": _of_day(lambda day: (civil(day)[1] + 2) // 3),
    "week": _of_day(lambda day: _iso(day)[1]),
    "isoyear": _of_day(lambda day: _iso(day)[0]),
    "isodow": _of_day(lambda day: _iso(day)[2]),
    "dayofyear": _of_day(_day_of_year),
    "millisecond": lambda ticks, tick: ticks * tick % (60 * SECOND) // 10**6,
    "microsecond": lambda ticks, tick: ticks * tick % (60 * SECOND) // 10**3,
    "epoch": lambda ticks, tick: ticks * tick / SECOND,
    "epoch_ms": lambda ticks, tick: ticks * tick // 10**6,
    "last_day": _last_day,
    "dayname": lambda ticks, tick: f"{date(1970, 1, 5) + timedelta((ticks * tick // DAY + 3) % 7):%A}",
    "monthname": lambda ticks, tick: f"{date(1970, civil(_near(ticks, tick)[0])[1], 1):%B}",
    "to_timestamp": _to_timestamp,
    "strftime": _format,
    "to_char": _format,
    "format_timestamp": _format,
    "strptime": _parse,
    "try_strptime": _try_parse,
    "parse_timestamp": _parse,
    "from_char": _parse,
    "convert_tz": _convert,
}
"""Functions of times, by name; the last argument is the length of a tick in nanoseconds."""
