"""CAST. What can fail: FLOAT to INTEGER out of range, and TEXT that cannot be read (docs/semantics R4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from minidsms.cql.times import NotATime, iso_ticks
from minidsms.dictionary import TextDictionary
from minidsms.elements import Type
from minidsms.expressions.text import CodeTable
from minidsms.expressions.timestamps import iso_of_ticks
from minidsms.expressions.value import INT64_MAX, INT64_MIN, Value, finish
from minidsms.functions.function import FAILED

_INTEGER_TEXT = re.compile(r"\s*[+-]?[0-9]+\s*")
_FLOAT_TEXT = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE | re.ASCII
)
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
    whole = np.trunc(a.values)
    outside = ~((whole >= -(2.0**63)) & (whole < 2.0**63))
    return finish(np.where(outside, 0.0, whole).astype(np.int64), a.valid, a.failed, bad=outside)


def _to_text(source: Type, dictionary: TextDictionary, tick_ns: int) -> Callable[[Value], Value]:
    """Each distinct value of the chunk is written once."""

    def write(value: Any) -> str:
        if source is Type.FLOAT:
            return repr(value)
        if source is Type.BOOLEAN:
            return "true" if value else "false"
        return iso_of_ticks(value, tick_ns) if source is Type.TIMESTAMP else str(value)

    def apply(a: Value) -> Value:
        distinct, inverse = np.unique(a.values, return_inverse=True)
        codes = np.array([dictionary.code(write(v)) for v in distinct.tolist()], np.int64)
        return finish(codes[inverse.reshape(-1)], a.valid, a.failed)

    return apply


def cast(source: Type, target: Type, dictionary: TextDictionary, tick_ns: int) -> Callable[[Value], Value]:
    """The conversion of a column; every pair the binder lets through has one."""
    is_coded = source.is_coded or target.is_coded
    if source is target or (source.dtype == target.dtype and not is_coded):
        return _identity
    if source is Type.NULL:
        return lambda a: Value(a.values.astype(target.dtype), a.valid, a.failed)
    if source.element is not None:
        return _identity  # its text is its form as TEXT
    if target is Type.TEXT:
        return _to_text(source, dictionary, tick_ns)
    if source is Type.TEXT:
        readers: dict[Type, Callable[[str], Any]] = {
            Type.INTEGER: read_integer,
            Type.INTERVAL: read_integer,
            Type.FLOAT: read_float,
            Type.TIMESTAMP: lambda text: read_timestamp(text, tick_ns),
            Type.BOOLEAN: lambda text: {"true": True, "false": False}.get(text.strip().lower(), FAILED),
        }
        return CodeTable(dictionary, readers[target], target)
    if target is Type.FLOAT:
        return _to_float
    if target is Type.BOOLEAN:
        return _to_boolean
    return _float_to_integer if source is Type.FLOAT else _to_integer
