"""Values of parameters written into a text: `?` in their order, `$name` by name.

What comes out is a text that stands for itself: it can be shown, kept and sent elsewhere, and errors have their place
in it. A value becomes a literal and nothing else, whatever it holds.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from minidsms.counted import counted
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.printer import print_text
from minidsms.cql.words import UNITS
from minidsms.values.types import MOST_DIGITS

Parameters = Sequence[Any] | Mapping[str, Any]

_SKIPPED = r"""'[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` | --[^\n]* | \#[^\n]* | /\*.*?\*/"""
_TEXT_OR_COMMENT = re.compile(_SKIPPED, re.VERBOSE | re.DOTALL)
_BEFORE_VALUES = re.compile(r"(?<![\w.])VALUES\s*\Z", re.IGNORECASE)
_BEHIND_IN = re.compile(r"(?P<rows>\)\s*(?:NOT\s+)?)?(?<![\w.])IN\s*\Z", re.IGNORECASE)
_BEFORE_COUNTS = re.compile(r"(?<![\w.])(?:RANGE|ROWS|SLIDE|HOP|TUMBLE|EVERY|SESSION|LIMIT|OFFSET)\s*\Z", re.IGNORECASE)
_BEHIND_COUNTS = re.compile(rf"\s*(?P<unit>(?:{'|'.join(UNITS)})S?)\b|\s*(?:PRECEDING|FOLLOWING)\b", re.IGNORECASE)
_FINE = ("ns", "ps", "fs", "as")
_NO_NAN = "CQL has no literal for NaN; None is NULL"
_TOO_FINE = "a time finer than a microsecond has no literal"
_PARAMETER = re.compile(rf"{_SKIPPED} | (?P<place>\?) | \$(?P<name>[^\W\d]\w*)", re.VERBOSE | re.DOTALL)


def cut(text: str) -> tuple[list[str], list[re.Match[str]]]:
    """What stands before, between and behind the parameters, and these; their group `name` is None for a `?`."""
    found = [match for match in _PARAMETER.finditer(text) if match.group("place") or match.group("name")]
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)], found


class Place(NamedTuple):
    """Where a parameter stands.

    levels: of how many levels its lists are rows, `(a, b, ..)`, and not lists of CQL: of one behind IN and VALUES, of
    two where rows are looked for, else of none.  is_count: it is a window's length, the number of LIMIT or the end of a
    frame, which are written bare.  has_unit: a unit of time stands behind it.
    """

    levels: int
    is_count: bool = False
    has_unit: bool = False

    def written(self, value: Any) -> str:
        """A value as CQL writes it here."""
        match value:
            case decimal.Decimal() if self.is_count and (digits := _digits(decimal.Decimal(value))) and value >= 0:
                return digits
            case dt.timedelta() if self.is_count and not self.has_unit and value >= dt.timedelta(0):
                return f"{_micros(value)} MICROSECONDS"
        return literal(value, self.levels)


def places(between: Sequence[str]) -> list[Place]:
    """Where each parameter stands. between: as of `cut`."""
    found, has_values = [], False
    for part, behind in pairwise(between):
        before = _TEXT_OR_COMMENT.sub(lambda found: " " if found[0][0] in "-#/" else found[0], part)
        has_values = (has_values and before.strip() == ",") or _BEFORE_VALUES.search(before) is not None
        behind_in = _BEHIND_IN.search(before)
        levels = int(has_values) if behind_in is None else 1 + (behind_in["rows"] is not None)
        end = _BEHIND_COUNTS.match(behind)
        is_count = end is not None or _BEFORE_COUNTS.search(before) is not None
        found.append(Place(levels, is_count, end is not None and end["unit"] is not None))
    return found


def written(text: str, values: Parameters | None) -> str:
    """The text with each parameter's value in its place. Raises CqlError where one is missing, or too many are given.

    values: None, bool, int, float, str, Decimal, datetime, date, time, timedelta; a list of them, or a numpy array, is
    `(a, b, ..)` behind IN and VALUES, else the list `[a, b, ..]`; a tuple is `(a, b, ..)`.

    >>> written("SELECT k FROM S WHERE t = ? AND k IN ?", ["it's", (1, 2)])
    "SELECT k FROM S WHERE t = 'it''s' AND k IN (1, 2)"
    >>> written("SELECT k FROM S WHERE k = ANY(?)", [[1, 2]])
    'SELECT k FROM S WHERE k = ANY([1, 2])'
    >>> written("SELECT k FROM S WHERE v > $most", {"most": -1.5})
    'SELECT k FROM S WHERE v > (-1.5)'
    """
    if values is None:
        return text
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | Mapping):
        raise Error("params takes a list of the values for ?, or a dict for $name")
    between, found = cut(text)
    if isinstance(values, Mapping):
        return _by_name(text, between, found, {str(name).lower(): value for name, value in values.items()})
    named = next((match for match in found if match.group("name")), None)
    if named is not None:
        hint = f"params={{'{named.group('name')}': ..}}"
        raise CqlError("a parameter with a name needs a dict of values", text, named.span(), hint=hint)
    if len(found) != len(values):
        place = found[len(values)].span() if len(found) > len(values) else None
        given = f"{counted(len(values), 'value')} {'is' if len(values) == 1 else 'are'} given"
        raise CqlError(f"the text has {len(found)} ?, and {given}", text, place)
    return _filled(text, between, found, list(values))


def _by_name(text: str, between: list[str], found: list[re.Match[str]], values: dict[str, Any]) -> str:
    used = set()
    for match in found:
        name = match.group("name")
        if name is None:
            raise CqlError("a dict has values for $name, and this is ?", text, match.span(), hint="params=[..]")
        if name.lower() not in values:
            there = ", ".join(values) or "nothing"
            raise CqlError(f"there is no value for ${name}", text, match.span(), f"given are: {there}")
        used.add(name.lower())
    unused = [name for name in values if name not in used]
    if unused:
        forms = (f":{unused[0]}", f"%({unused[0]})s", f"{{{unused[0]}}}")
        written = next((form for form in forms if form in text.lower()), "")
        hint = f"write ${unused[0]}, not {written}" if written else ""
        raise CqlError(f"the text has no parameter ${unused[0]}", text, hint=hint)
    return _filled(text, between, found, [values[match.group("name").lower()] for match in found])


def _filled(text: str, between: list[str], found: list[re.Match[str]], values: list[Any]) -> str:
    parts = [between[0]]
    for match, value, place, behind in zip(found, values, places(between), between[1:], strict=True):
        try:
            parts += [place.written(value), behind]
        except Error as error:
            raise CqlError(str(error), text, match.span()) from None
    return "".join(parts)


def literal(value: Any, levels: int = 0) -> str:
    """A value as CQL writes it. Raises Error for what CQL has no literal for.  levels: on which lists are rows, as
    tuples are on all.

    >>> literal(None), literal(True), literal(-3), literal("a'b"), literal((1, 2)), literal([1, 2])
    ('NULL', 'TRUE', '(-3)', "'a''b'", '(1, 2)', '[1, 2]')
    """
    if hasattr(value, "tolist"):
        value = _in_micros(value).tolist()  # numpy's
    match value:
        case None:
            return "NULL"
        case _ if type(value).__name__ in ("NAType", "NaTType"):
            return "NULL"  # pandas'
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return print_text(str.__str__(value))
        case decimal.Decimal():
            return _decimal(decimal.Decimal(value))  # whatever its class makes of it
        case int():
            return _signed(int.__repr__(value))
        case float():
            return _float(float(value))
        case dt.datetime():
            return f"TIMESTAMP '{_iso(_utc(value))}'"
        case dt.date():
            return f"DATE '{dt.date.isoformat(value)}'"
        case dt.time() if value.tzinfo is None:
            return f"TIME '{dt.time.isoformat(value)}'"
        case dt.timedelta():
            micros = _micros(value)
            return f"({'-' if micros < 0 else ''}INTERVAL '{abs(micros)}' MICROSECOND)"
        case list() | tuple():
            inner = ", ".join(literal(each, max(0, levels - 1)) for each in value)
            if isinstance(value, list) and not levels:
                return f"[{inner}]"
            if not value:
                raise Error("an empty list has no literal: x IN () is never true")
            return f"({inner})"
    raise Error(f"a parameter cannot be a {type(value).__name__}")


def _in_micros(value: Any) -> Any:
    """Times of numpy that it would give as numbers of nanoseconds, in microseconds."""
    is_time = isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "mM"
    if not is_time or np.datetime_data(value.dtype)[0] not in _FINE:
        return value
    micros = value.astype(f"{value.dtype.kind}8[us]")
    if not np.array_equal(micros.astype(value.dtype), value, equal_nan=True):
        raise Error(_TOO_FINE)
    return micros


def _micros(value: dt.timedelta) -> int:
    if getattr(value, "nanoseconds", 0):  # pandas'
        raise Error(_TOO_FINE)
    return dt.timedelta.__floordiv__(value, dt.timedelta(microseconds=1))


def _digits(value: decimal.Decimal) -> str | None:
    """Its digits, or None where it has more than a DECIMAL may have."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or max(len(digits) + max(exponent, 0), -exponent) > MOST_DIGITS:
        return None
    return format(value, "f")


def _decimal(value: decimal.Decimal) -> str:
    """A DECIMAL, or a FLOAT where it has more digits."""
    if value.is_nan():
        raise Error(_NO_NAN)
    digits = _digits(value)
    return _float(float(value)) if digits is None else f"DECIMAL '{digits}'"


def _iso(value: dt.datetime) -> str:
    """A datetime without a zone, whatever its class makes of it; pandas' have nanoseconds."""
    nanos = int(getattr(value, "nanosecond", 0))
    text = dt.datetime.isoformat(value, " ", "microseconds" if nanos else "auto")
    return f"{text}{nanos:03d}" if nanos else text


def _utc(value: dt.datetime) -> dt.datetime:
    """The wall clock of UTC at this time; Error where it shows no year of 1 to 9999."""
    try:
        return value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise Error(f"{value.isoformat(sep=' ')} is beyond the years 1 to 9999 in UTC") from None


def _float(value: float) -> str:
    if math.isnan(value):
        raise Error(_NO_NAN)
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS FLOAT)"
    return _signed(repr(value))


def _signed(shown: str) -> str:
    return f"({shown})" if shown.startswith("-") else shown
