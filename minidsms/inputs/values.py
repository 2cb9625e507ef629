"""One Python value to what a column of a type stores.

Invariant: a value is taken as it is or refused with a reason; nothing is guessed. A bool is no number, 1.0 is no
INTEGER, a number is no TEXT. None, NaN, NaT and NA are NULL; -0.0 becomes 0.0. Times that fall between ticks are
floored. docs/semantics R4.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np

from minidsms.cql.times import NotATime, iso_ticks
from minidsms.elements import Type

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

UNIT_NS: dict[str, tuple[int, int]] = {
    "W": (604_800_000_000_000, 1),
    "D": (86_400_000_000_000, 1),
    "h": (3_600_000_000_000, 1),
    "m": (60_000_000_000, 1),
    "s": (1_000_000_000, 1),
    "ms": (1_000_000, 1),
    "us": (1_000, 1),
    "ns": (1, 1),
    "ps": (1, 1_000),
    "fs": (1, 1_000_000),
    "as": (1, 1_000_000_000),
}
"""Nanoseconds of numpy's and Arrow's time units, as fractions."""


class ValueRefused(Exception):
    """A value that does not fit its column; whoever knows the column and the row turns it into a DataError."""

    def __init__(self, reason: str, row: int | None = None, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.hint = hint


def show(value: object) -> str:
    """A value as an error shows it: short, printable, with its type."""
    try:
        text = " ".join(map(str.strip, ascii(value).splitlines()))
    except Exception:
        text = "a value that cannot be shown"
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} ({type(value).__name__})"


def is_null(value: Any) -> bool:
    """None, NaN, NaT, NA and a masked entry stand for NULL."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))
    )


def is_integer(value: Any) -> bool:
    """An int or numpy integer that counts something: no bool, and no timedelta64, which numpy counts among its
    integers."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def integer_value(value: Any) -> int | None:
    """An INTEGER: an int or numpy integer within int64."""
    if type(value) is int:
        if INT64_MIN <= value <= INT64_MAX:
            return value
        raise ValueRefused(f"{show(value)} is outside the range of INTEGER (64 bits)")
    if is_null(value):
        return None
    if isinstance(value, bool | np.bool_):
        raise ValueRefused(
            f"a BOOLEAN is no INTEGER: {show(value)}", hint="write int(value), or declare the column BOOLEAN"
        )
    if is_integer(value):
        return integer_value(int(value))
    hint = ""
    if isinstance(value, float | np.floating):
        hint = "write int(value), or declare the column FLOAT"
    elif isinstance(value, str):
        hint = "write int(value), or declare the column TEXT"
    raise ValueRefused(f"{show(value)} is no INTEGER", hint=hint)


def float_value(value: Any) -> float | None:
    """A FLOAT: a float, an int, or numpy's; NaN is NULL and -0.0 is 0.0."""
    if type(value) is float:
        return value + 0.0 if value == value else None
    if is_null(value):
        return None
    if isinstance(value, bool | np.bool_):
        raise ValueRefused(
            f"a BOOLEAN is no FLOAT: {show(value)}", hint="write float(value), or declare the column BOOLEAN"
        )
    if is_integer(value) or isinstance(value, float | np.floating):
        try:
            return float_value(float(value))
        except OverflowError:
            raise ValueRefused(f"{show(value)} is outside the range of FLOAT") from None
    hint = "write float(value), or declare the column TEXT" if isinstance(value, str) else ""
    raise ValueRefused(f"{show(value)} is no FLOAT", hint=hint)


def boolean_value(value: Any) -> bool | None:
    """A BOOLEAN: True or False, Python's or numpy's."""
    if value is True or value is False:
        return bool(value)
    if is_null(value):
        return None
    if isinstance(value, np.bool_):
        return bool(value)
    hint = "write bool(value), or declare the column INTEGER" if isinstance(value, int | np.integer) else ""
    raise ValueRefused(f"{show(value)} is no BOOLEAN", hint=hint)


def text_value(value: Any) -> str | None:
    """A TEXT: a str."""
    if type(value) is str:
        return value
    if is_null(value):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    hint = "decode it first: value.decode()" if isinstance(value, bytes | bytearray) else "write str(value)"
    raise ValueRefused(f"{show(value)} is no TEXT", hint=hint)


def scaled(value: int, unit: tuple[int, int], tick_ns: int) -> int:
    """Ticks of so many units, floored; ValueRefused outside int64."""
    ticks = value * unit[0] // (unit[1] * tick_ns)
    if not INT64_MIN <= ticks <= INT64_MAX:
        raise ValueRefused("a time outside the range of 64-bit ticks", hint="connect with a coarser time_unit")
    return ticks


def timestamp_value(value: Any, tick_ns: int) -> int | None:
    """A TIMESTAMP in ticks: an int (ticks already), a datetime or date (naive ones are UTC), datetime64, or an ISO
    text."""
    if is_integer(value):
        return integer_value(value)
    if is_null(value):
        return None
    if isinstance(value, datetime.datetime):
        elapsed = value - (_EPOCH if value.tzinfo is None or value.utcoffset() is None else _EPOCH_UTC)
        if isinstance(elapsed, datetime.timedelta):
            return scaled(_nanoseconds(elapsed), (1, 1), tick_ns)
    elif isinstance(value, datetime.date):
        return scaled(value.toordinal() - _EPOCH.toordinal(), UNIT_NS["D"], tick_ns)
    elif isinstance(value, np.datetime64):
        name, step = np.datetime_data(value.dtype)
        if name in ("Y", "M") and abs(int(value.astype(np.int64))) * step < 10**9:
            name, step, value = "D", 1, value.astype("datetime64[D]")
        if name in UNIT_NS:
            return scaled(int(value.astype(np.int64)) * step, UNIT_NS[name], tick_ns)
    elif isinstance(value, str):
        return _read_iso(value, tick_ns)
    hint = "give ticks as an int" if isinstance(value, float | np.floating) else ""
    raise ValueRefused(f"{show(value)} is no TIMESTAMP", hint=hint)


def _nanoseconds(elapsed: datetime.timedelta) -> int:
    """pandas' Timedelta, a subclass, also has nanoseconds."""
    whole = (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
    return whole * 1_000 + int(getattr(elapsed, "nanoseconds", 0))


def _read_iso(text: str, tick_ns: int) -> int:
    try:
        return iso_ticks(text, tick_ns)
    except NotATime:
        # It may only fall between two ticks; in nanoseconds it then reads well.
        try:
            return iso_ticks(text, 1) // tick_ns
        except NotATime:
            hint = "write it like 2024-05-01T12:00:00Z"
            raise ValueRefused(f"{show(text)} is no TIMESTAMP", hint=hint) from None


def interval_value(value: Any, tick_ns: int) -> int | None:
    """An INTERVAL in ticks: an int (ticks already), a timedelta or timedelta64."""
    if is_integer(value):
        return integer_value(value)
    if is_null(value):
        return None
    if isinstance(value, datetime.timedelta):
        return scaled(_nanoseconds(value), (1, 1), tick_ns)
    if isinstance(value, np.timedelta64):
        name, step = np.datetime_data(value.dtype)
        if name in UNIT_NS:
            return scaled(int(value.astype(np.int64)) * step, UNIT_NS[name], tick_ns)
    hint = "give ticks as an int, or a datetime.timedelta" if isinstance(value, float | np.floating | str) else ""
    raise ValueRefused(f"{show(value)} is no INTERVAL", hint=hint)


def null_value(value: Any) -> None:
    """A column of the type NULL takes nothing else."""
    if not is_null(value):
        raise ValueRefused(f"{show(value)} in a column that is always NULL")


def value_reader(type_: Type, tick_ns: int) -> Callable[[Any], Any]:
    """The function that reads one value of the type; it gives the stored scalar (TEXT as str), or None for NULL."""
    if type_ is Type.TIMESTAMP:
        return lambda value: timestamp_value(value, tick_ns)
    if type_ is Type.INTERVAL:
        return lambda value: interval_value(value, tick_ns)
    return {
        Type.INTEGER: integer_value,
        Type.FLOAT: float_value,
        Type.BOOLEAN: boolean_value,
        Type.TEXT: text_value,
        Type.NULL: null_value,
    }[type_]
