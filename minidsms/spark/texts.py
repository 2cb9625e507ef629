"""Functions of TEXT and CASTs from and to it, as Spark columns (docs/semantics R4).

Positions count characters from 1, never bytes; LIKE has no escape character unless one is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.cql.times import NotATime, iso_ticks
from minidsms.elements import Type
from minidsms.spark.computed import Computed, NotExpressibleError, any_failed, fails, finite, long, no_value

if TYPE_CHECKING:
    from pyspark.sql import Column

_FAR = 2**62
"""Beyond every position: two of them add up without overflow."""
_MOST = 2**31 - 1
"""The longest text Spark has."""
_INTEGER = r"\A[\s\x85\xa0]*[+-]?[0-9]{1,400}[\s\x85\xa0]*\z"
_FLOAT = r"\A(?i)[\s\x85\xa0]*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)[\s\x85\xa0]*\z"


def _clamped(value: Column) -> Column:
    inside = F.when(value > long(_FAR), long(_FAR)).when(value < long(-_FAR), long(-_FAR))
    return inside.otherwise(value)


def _substring(text: Column, start: Column, length: Column | None = None) -> Column:
    """The characters at start to start + length - 1, as far as there are any."""
    first = _clamped(start)
    begin = F.greatest(first, long(1))
    begin_at = F.least(begin, long(_MOST)).cast("int")
    if length is None:
        return F.call_function("substring", text, begin_at, F.when(start.isNotNull(), F.lit(_MOST)))
    end = first + _clamped(length)
    size = F.least(F.greatest(end - begin, long(0)), long(_MOST)).cast("int")
    # greatest and least pass over NULL, substring does not.
    known = start.isNotNull() & length.isNotNull()
    return F.when(known, F.call_function("substring", text, begin_at, size))


def _pattern(pattern: str, escape: str) -> str:
    """The regular expression of a LIKE pattern."""
    parts, i = [], 0
    while i < len(pattern):
        character = pattern[i]
        if escape and character == escape and i + 1 < len(pattern):
            i += 1
            parts.append(re.escape(pattern[i]))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        i += 1
    return rf"\A(?s:{''.join(parts)})\z"


def _like(expr: bound.Call, args: list[Computed]) -> Column:
    pattern = expr.args[1]
    escape = expr.args[2] if len(expr.args) > 2 else bound.Literal(Type.TEXT, "")
    if isinstance(pattern, bound.Literal) and isinstance(escape, bound.Literal):
        if pattern.value is None or escape.value is None:
            return no_value(Type.BOOLEAN)
        return args[0].value.rlike(_pattern(str(pattern.value), str(escape.value)))
    if not isinstance(escape, bound.Literal) or escape.value != "":
        raise NotExpressibleError("LIKE with an escape character and a pattern that differs from row to row")
    backslash = F.lit("\\")
    return F.like(args[0].value, F.replace(args[1].value, backslash, F.concat(backslash, backslash)))


_FUNCTIONS: dict[str, Callable[..., Column]] = {
    "||": F.concat,
    "concat": F.concat,
    "upper": F.upper,
    "lower": F.lower,
    "length": lambda text: F.char_length(text).cast("bigint"),
    "substring": _substring,
    "trim": F.trim,
    "ltrim": F.ltrim,
    "rtrim": F.rtrim,
    "replace": F.replace,
    "starts_with": F.startswith,
}


def text_function(expr: bound.Call, args: list[Computed]) -> Computed | None:
    """A function of TEXT, or None where it is none."""
    if expr.function == "like":
        return Computed(_like(expr, args), any_failed(args))
    function = _FUNCTIONS.get(expr.function)
    return None if function is None else Computed(function(*(a.value for a in args)), any_failed(args))


# ----------------------------------------------------------------------------------------------------------- CAST


def _unreadable(expr: bound.Cast, text: Computed, condition: Column) -> Column:
    told = F.concat(F.lit("'"), F.substring(text.value, 1, 60), F.lit(f"' cannot be read as {expr.type}"))
    return fails(expr, condition, (text,), told)


def from_text(expr: bound.Cast, text: Computed, tick_ns: int) -> Computed:
    """CAST of a TEXT to INTEGER, FLOAT or TIMESTAMP."""
    present = text.value.isNotNull()
    if expr.type is Type.TIMESTAMP:
        if not isinstance(expr.arg, bound.Literal):
            raise NotExpressibleError("CAST of TEXT to TIMESTAMP")
        try:
            return Computed(long(iso_ticks(str(expr.arg.value), tick_ns)), text.failed)
        except NotATime:
            return Computed(long(0), _unreadable(expr, text, present))
    if expr.type is Type.FLOAT:
        reads = text.value.rlike(_FLOAT) & (F.char_length(text.value) <= F.lit(400))
        value = F.when(reads, F.regexp_replace(text.value, r"[\s\x85\xa0]", "").try_cast("double"))
        return Computed(finite(value), _unreadable(expr, text, present & ~reads))
    if expr.type in (Type.INTEGER, Type.INTERVAL):
        reads = text.value.rlike(_INTEGER) & (F.char_length(text.value) <= F.lit(400))
        value = F.when(reads, F.regexp_replace(text.value, r"[\s\x85\xa0]", "").try_cast("bigint"))
        return Computed(value, _unreadable(expr, text, present & value.isNull()))
    raise NotExpressibleError(f"CAST of TEXT to {expr.type}")


def to_text(expr: bound.Cast, arg: Computed) -> Computed:
    """CAST to TEXT of what Spark writes as we do: integers in decimal, `true` and `false`."""
    if expr.arg.type is Type.FLOAT:
        raise NotExpressibleError("CAST of FLOAT to TEXT")
    if expr.arg.type is Type.TIMESTAMP:
        raise NotExpressibleError("CAST of TIMESTAMP to TEXT")
    return Computed(arg.value.cast("string"), arg.failed)
