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
from typing import Any

from minidsms.counted import counted
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.printer import print_text

Parameters = Sequence[Any] | Mapping[str, Any]

_SKIPPED = r"""'[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` | --[^\n]* | \#[^\n]* | /\*.*?\*/"""
_BEFORE_ROWS = re.compile(r"(?<![\w.])(?:IN|VALUES)\s*\Z", re.IGNORECASE)
_PARAMETER = re.compile(rf"{_SKIPPED} | (?P<place>\?) | \$(?P<name>[^\W\d]\w*)", re.VERBOSE | re.DOTALL)


def cut(text: str) -> tuple[list[str], list[re.Match[str]]]:
    """What stands before, between and behind the parameters, and these; their group `name` is None for a `?`."""
    found = [match for match in _PARAMETER.finditer(text) if match.group("place") or match.group("name")]
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)], found


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
        raise CqlError(f"the text has no parameter ${unused[0]}", text)
    return _filled(text, between, found, [values[match.group("name").lower()] for match in found])


def _filled(text: str, between: list[str], found: list[re.Match[str]], values: list[Any]) -> str:
    parts, has_row = [between[0]], False
    for match, value, behind in zip(found, values, between[1:], strict=True):
        before = parts[-1]
        has_row = (has_row and before.strip() == ",") or _BEFORE_ROWS.search(before) is not None
        try:
            parts += [literal(value, has_row), behind]
        except Error as error:
            raise CqlError(str(error), text, match.span()) from None
    return "".join(parts)


def literal(value: Any, is_row: bool = False) -> str:
    """A value as CQL writes it. Raises Error for what CQL has no literal for.  is_row: lists are rows, as tuples are.

    >>> literal(None), literal(True), literal(-3), literal("a'b"), literal((1, 2)), literal([1, 2])
    ('NULL', 'TRUE', '(-3)', "'a''b'", '(1, 2)', '[1, 2]')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()  # numpy's
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return print_text(value)
        case int() | float() | decimal.Decimal():
            return _number(value)
        case dt.datetime():
            moment = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return f"TIMESTAMP '{moment.replace(tzinfo=None).isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time() if value.tzinfo is None:
            return f"TIME '{value.isoformat()}'"
        case dt.timedelta():
            micros = value // dt.timedelta(microseconds=1)
            return f"({'-' if micros < 0 else ''}INTERVAL '{abs(micros)}' MICROSECOND)"
        case list() | tuple():
            inner = ", ".join(literal(each, is_row) for each in value)
            if isinstance(value, list) and not is_row:
                return f"[{inner}]"
            if not value:
                raise Error("an empty list has no literal: x IN () is never true")
            return f"({inner})"
    raise Error(f"a parameter cannot be a {type(value).__name__}")


def _number(value: float | decimal.Decimal) -> str:
    if math.isnan(value):
        raise Error(f"CQL has no literal for {value!r}; None is NULL")
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS FLOAT)"
    shown = format(value, "f") if isinstance(value, decimal.Decimal) else repr(value)
    if isinstance(value, decimal.Decimal) and "." not in shown and abs(value) >= 1 << 63:
        shown = f"DECIMAL '{shown}'"  # bare it would be an INTEGER
    return f"({shown})" if shown.startswith("-") else shown
