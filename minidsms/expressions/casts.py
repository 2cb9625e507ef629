"""CAST. What can fail: FLOAT to INTEGER out of range, and TEXT that cannot be read (docs/semantics R4)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.cql.times import NotATime, iso_ticks
from minidsms.elements import INT64_MAX, INT64_MIN, Type
from minidsms.expressions import decimals
from minidsms.expressions.text import CodeTable, per_combination
from minidsms.expressions.timestamps import day, iso_of_ticks
from minidsms.expressions.value import FEW, Value, extent, finish, full
from minidsms.functions.function import FAILED
from minidsms.inputs.values import ValueRefused, decimal_of_text, inner_reader
from minidsms.values.coded import DAY_US, FIRST_DAY, LAST_DAY, as_text, fitted
from minidsms.values.dictionary import TextDictionary
from minidsms.values.types import FALSE_WORDS, TRUE_WORDS

_INTEGER_TEXT = re.compile(r"\s*[+-]?[0-9]+\s*")
_FLOAT_TEXT = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE | re.ASCII
)
_TRUTHS = dict.fromkeys(TRUE_WORDS, True) | dict.fromkeys(FALSE_WORDS, False)
_UNITS = {10**9: "s", 10**6: "ms", 10**3: "us", 1: "ns"}
"""Arrow's, by nanoseconds of a tick."""
_MOST_DIGITS = 400
"""A longer number is not read: reading takes time quadratic in its length."""


def read_integer(text: str) -> Any:
    """The int64 a text spells, or FAILED."""
    if len(text) > _MOST_DIGITS or _INTEGER_TEXT.fullmatch(text) is None:
        return FAILED
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else FAILED


def read_float(text: str) -> Any:
    """The float a text spells (NaN stands for NULL), or FAILED."""
    if len(text) > _MOST_DIGITS or _FLOAT_TEXT.fullmatch(text) is None:
        return FAILED
    return float(text) + 0.0


def read_timestamp(text: str, tick_ns: int) -> Any:
    """The tick of an ISO text, or FAILED; a time between two ticks cannot be read."""
    try:
        return iso_ticks(text, tick_ns)
    except NotATime:
        return FAILED


def _identity(a: Value) -> Value:
    return a


def _to_float(a: Value) -> Value:
    return Value(a.values.astype(np.float64), a.valid, a.failed)


def _to_integer(a: Value) -> Value:
    return Value(a.values.astype(np.int64), a.valid, a.failed)


def _to_boolean(a: Value) -> Value:
    return Value(a.values != 0, a.valid, a.failed)


def _float_to_integer(a: Value) -> Value:
    """Toward zero; fails outside int64. 2.0**63 is the first float that does not fit; -(2.0**63) does."""
    values = a.values
    least, greatest = extent(values)
    if least >= -(2.0**63) and greatest < 2.0**63:
        return Value(values.astype(np.int64), a.valid, a.failed)
    whole = np.trunc(values)
    outside = ~((whole >= -(2.0**63)) & (whole < 2.0**63))
    return finish(np.where(outside, 0.0, whole).astype(np.int64), a.valid, a.failed, bad=outside)


def writer(source: Type, tick_ns: int) -> Callable[[Any], str]:
    """What writes a value of a type as TEXT."""
    if source is Type.FLOAT:
        return repr
    if source is Type.BOOLEAN:
        return lambda value: "true" if value else "false"
    if source is Type.TIMESTAMP:
        return lambda value: iso_of_ticks(value, tick_ns)
    return str if source.is_basic else lambda value: as_text(value, source)


def _converted(value: Any, source: Type, target: Type, tick_ns: int) -> Any:
    """A value, perhaps None, of one type as one of another, or FAILED: all but what columns do at once."""
    if value is None or source is target:
        return value
    if target is Type.TEXT:
        return writer(source, tick_ns)(value)
    if source is Type.TEXT:
        return _read(value, target, tick_ns)
    if source.is_nested:
        return _converted_parts(value, source, target, tick_ns)
    if target.kind == "DECIMAL":
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        found = fitted(exact, target) if exact.is_finite() else None
        return FAILED if found is None else found
    if target is Type.BOOLEAN:
        return value != 0
    if target is Type.FLOAT:
        return float(value)
    whole = int(value) if not isinstance(value, float) or math.isfinite(value) else INT64_MAX + 1
    return whole if INT64_MIN <= whole <= INT64_MAX else FAILED


def _converted_parts(value: Any, source: Type, target: Type, tick_ns: int) -> Any:
    if source.kind == "MAP":
        inside = source.fields[1][1], target.fields[1][1]
        found = [(k, _converted(v, *inside, tick_ns)) for k, v in value]
        return FAILED if any(v is FAILED for _, v in found) else tuple(found)
    pairs = zip(*(t.fields or (("", t.element),) * len(value) for t in (source, target)))
    parts = tuple(_converted(v, s, t, tick_ns) for v, ((_, s), (_, t)) in zip(value, pairs))
    return FAILED if FAILED in parts else parts


def _read(text: str, target: Type, tick_ns: int) -> Any:
    """The value that a text spells, or FAILED."""
    match target.kind:
        case "INTEGER" | "INTERVAL":
            return read_integer(text)
        case "FLOAT":
            return read_float(text)
        case "TIMESTAMP":
            return read_timestamp(text, tick_ns)
        case "BOOLEAN":
            return _TRUTHS.get(text.strip().lower(), FAILED)
        case "DECIMAL":
            exact = decimal_of_text(text)
            fits = None if exact is None else fitted(exact, target)
            return FAILED if fits is None else fits
    try:
        found = inner_reader(target, tick_ns)(text)
    except ValueRefused:
        return FAILED
    return FAILED if found is None else found


def or_null(convert: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """NULL where the conversion fails; what has failed before stays so."""

    def apply(a: Value) -> Value:
        found = convert(a)
        return Value(found.values, found.valid, a.failed)

    return apply


def _date_to_timestamp(tick_ns: int) -> Callable[[Value], Value]:
    """Midnight, UTC."""

    def apply(a: Value) -> Value:
        exact = a.values.astype(object) * (DAY_US * 1000) // tick_ns
        outside = np.array((exact < INT64_MIN) | (exact > INT64_MAX), np.bool_)
        return finish(np.where(outside, 0, exact).astype(np.int64), a.valid, a.failed, bad=outside)

    return apply


def _timestamp_to_date(tick_ns: int) -> Callable[[Value], Value]:
    """The day, UTC."""

    def apply(a: Value) -> Value:
        days = day(a.values, tick_ns)
        return finish(days.copy(), a.valid, a.failed, bad=(days < FIRST_DAY) | (days > LAST_DAY))

    return apply


def _time_to_ticks(tick_ns: int) -> Callable[[Value], Value]:
    """Since midnight, floored."""
    return lambda a: Value(a.values * 1000 // tick_ns, a.valid, a.failed)


def _to_time(tick_ns: int) -> Callable[[Value], Value]:
    """The time of the day, UTC, that is so far from a midnight."""

    def apply(a: Value) -> Value:
        exact = a.values.astype(object) * tick_ns // 1000 % DAY_US
        return finish(exact.astype(np.int64), a.valid, a.failed)

    return apply


def _texts(values: pa.Array, source: Type, tick_ns: int) -> pa.Array | None:
    """The texts of INTEGERs, INTERVALs and TIMESTAMPs as `writer` writes them; None where Arrow writes others."""
    if source is not Type.TIMESTAMP:
        return values.cast(pa.string())
    import pyarrow.compute as pc  # a tenth of the time until a first answer, which seldom needs it

    ticks = values.to_numpy()
    unit = _UNITS.get(tick_ns)
    days = day(ticks, tick_ns)
    if unit is None or not len(ticks) or days.min() < FIRST_DAY or days.max() > LAST_DAY:
        return None
    texts = values.cast(pa.timestamp(unit)).cast(pa.string())
    return texts if unit == "s" else pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")


def _column_writer(source: Type, dictionary: TextDictionary, tick_ns: int) -> Callable[[Value], Value | None]:
    """CAST to TEXT of a whole column, None where it is to be done value by value."""

    def apply(a: Value) -> Value | None:
        if len(a.values) <= FEW:
            return None
        coded = pa.array(a.values, mask=None if a.valid is None else ~full(a.valid, len(a.values))).dictionary_encode()
        texts = _texts(coded.dictionary, source, tick_ns)
        if texts is None:
            return None
        codes = dictionary.encode(pa.DictionaryArray.from_arrays(coded.indices, texts))
        return finish(codes.values, a.valid, a.failed)

    return apply


def _by_values(source: Type, target: Type, dictionary: TextDictionary, tick_ns: int) -> Callable[[Value], Value]:
    """From or to what is coded: of different values, and between numbers of columns where that is sure."""
    convert = (
        writer(source, tick_ns) if target is Type.TEXT else lambda value: _converted(value, source, target, tick_ns)
    )
    combined = per_combination(convert, [source], dictionary, target)
    of_columns = decimals.cast(source, target)
    if target is Type.TEXT and source in (Type.INTEGER, Type.INTERVAL, Type.TIMESTAMP):
        of_columns = _column_writer(source, dictionary, tick_ns)

    def apply(a: Value) -> Value:
        found = None if of_columns is None else of_columns(a)
        return combined([a]) if found is None else found

    return apply


def cast(source: Type, target: Type, dictionary: TextDictionary, tick_ns: int) -> Callable[[Value], Value]:
    """The conversion of a column; every pair the binder lets through has one."""
    if source is target or (
        source.dtype == target.dtype and source.is_basic and target.is_basic and Type.TEXT not in (source, target)
    ):
        return _identity
    if source is Type.NULL:
        return lambda a: Value(a.values.astype(target.dtype), a.valid, a.failed)
    if source.is_nested and target is Type.TEXT:
        return _identity  # its text is its form as TEXT
    if source.is_coded and source.kind != "DECIMAL":
        return CodeTable(dictionary, lambda value: _converted(value, source, target, tick_ns), target, source)
    if source.is_coded or target.is_coded:
        return _by_values(source, target, dictionary, tick_ns)
    special = {
        (Type.DATE, Type.TIMESTAMP): _date_to_timestamp,
        (Type.TIMESTAMP, Type.DATE): _timestamp_to_date,
        (Type.TIMESTAMP, Type.TIME): _to_time,
        (Type.INTERVAL, Type.TIME): _to_time,
        (Type.TIME, Type.TIMESTAMP): _time_to_ticks,
        (Type.TIME, Type.INTERVAL): _time_to_ticks,
    }.get((source, target))
    if special is not None:
        return special(tick_ns)
    if target is Type.FLOAT:
        return _to_float
    if target is Type.BOOLEAN:
        return _to_boolean
    return _float_to_integer if source is Type.FLOAT else _to_integer
