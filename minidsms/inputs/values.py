"""One Python value to what a column of a type stores.

Invariant: a value is taken as it is or refused with a reason; nothing is guessed. A bool is no number, 1.0 is no
INTEGER, a number is no TEXT. None, NaN, NaT and NA are NULL; -0.0 becomes 0.0. Times that fall between ticks are
floored. docs/semantics R4.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from minidsms.cql.times import BeyondTicks, NotATime, iso_ticks
from minidsms.elements import INT64_MAX, INT64_MIN, Type
from minidsms.values.coded import DAY_US, FIRST_DAY, LAST_DAY, day_of, fitted, microseconds_of, text_of

_DECIMAL_TEXT = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,17})?\s*", re.ASCII)
_WHOLE_TEXT = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_LONG_EXPONENT = re.compile("(?<=[eE])([+-]?)0*[0-9]{18,}")
_BEYOND, _COARSER = "a time outside the range of 64-bit ticks", "connect with a coarser time_unit"
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
            f"{show(value)} cannot be read as INTEGER", hint="write int(value), or declare the column BOOLEAN"
        )
    if is_integer(value):
        return integer_value(int(value))
    hint = ""
    if isinstance(value, float | np.floating):
        hint = "write int(value), or declare the column FLOAT"
    elif isinstance(value, str):
        hint = "write int(value), or declare the column TEXT"
    raise ValueRefused(f"{show(value)} cannot be read as INTEGER", hint=hint)


def float_value(value: Any) -> float | None:
    """A FLOAT: a float, an int, or numpy's; NaN is NULL and -0.0 is 0.0."""
    if type(value) is float:
        return value + 0.0 if value == value else None
    if is_null(value):
        return None
    if isinstance(value, bool | np.bool_):
        raise ValueRefused(
            f"{show(value)} cannot be read as FLOAT", hint="write float(value), or declare the column BOOLEAN"
        )
    if is_integer(value) or isinstance(value, float | np.floating | Decimal):
        try:
            return float_value(float(value))
        except OverflowError:
            raise ValueRefused(f"{show(value)} is outside the range of FLOAT") from None
    hint = "write float(value), or declare the column TEXT" if isinstance(value, str) else ""
    raise ValueRefused(f"{show(value)} cannot be read as FLOAT", hint=hint)


def boolean_value(value: Any) -> bool | None:
    """A BOOLEAN: True or False, Python's or numpy's."""
    if value is True or value is False:
        return bool(value)
    if is_null(value):
        return None
    if isinstance(value, np.bool_):
        return bool(value)
    hint = "write bool(value), or declare the column INTEGER" if isinstance(value, int | np.integer) else ""
    raise ValueRefused(f"{show(value)} cannot be read as BOOLEAN", hint=hint)


def text_value(value: Any) -> str | None:
    """A TEXT: a str."""
    if type(value) is str:
        return value
    if is_null(value):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    hint = "write str(value)"
    if isinstance(value, bytes | bytearray):
        hint = "decode it first: value.decode()"
    elif isinstance(value, dict | list):
        hint = "write json.dumps(value), or declare what is nested: STRUCT(a INTEGER, b TEXT), TEXT[]"
    raise ValueRefused(f"{show(value)} cannot be read as TEXT", hint=hint)


def scaled(value: int, unit: tuple[int, int], tick_ns: int) -> int:
    """Ticks of so many units, floored; ValueRefused outside int64."""
    ticks = value * unit[0] // (unit[1] * tick_ns)
    if not INT64_MIN <= ticks <= INT64_MAX:
        raise ValueRefused(_BEYOND, hint=_COARSER)
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
    hint = ""
    if isinstance(value, float | np.floating):
        hint = "give ticks as an int, or a datetime: datetime.datetime.fromtimestamp(seconds, datetime.UTC)"
    raise ValueRefused(f"{show(value)} cannot be read as TIMESTAMP", hint=hint)


def _nanoseconds(elapsed: datetime.timedelta) -> int:
    """pandas' Timedelta, a subclass, also has nanoseconds."""
    whole = (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
    return whole * 1_000 + int(getattr(elapsed, "nanoseconds", 0))


def _read_iso(text: str, tick_ns: int) -> int:
    try:
        return iso_ticks(text, tick_ns, is_floored=True)
    except BeyondTicks:
        raise ValueRefused(_BEYOND, hint=_COARSER) from None
    except NotATime:
        hint = "write it like 2024-05-01T12:00:00Z"
        raise ValueRefused(f"{show(text)} cannot be read as TIMESTAMP", hint=hint) from None


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
    raise ValueRefused(f"{show(value)} cannot be read as INTERVAL", hint=hint)


def date_value(value: Any) -> int | None:
    """A DATE in days since 1970: a date, an ISO text, an int (days already), or datetime64 of whole days."""
    if is_null(value):
        return None
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in ("D", "W", "M", "Y"):
        value = int(value.astype("datetime64[D]").astype(np.int64))
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return day_of(value)
    if isinstance(value, str):
        try:
            return day_of(datetime.date.fromisoformat(value.strip()))
        except ValueError:
            raise ValueRefused(f"{show(value)} cannot be read as DATE", hint="write it like 2024-05-01") from None
    if is_integer(value) and FIRST_DAY <= int(value) <= LAST_DAY:
        return int(value)
    hint = "write value.date(), or declare the column TIMESTAMP" if isinstance(value, datetime.datetime) else ""
    raise ValueRefused(f"{show(value)} cannot be read as DATE", hint=hint)


def time_value(value: Any) -> int | None:
    """A TIME in microseconds since midnight: a time without a zone, an ISO text, or an int."""
    if is_null(value):
        return None
    if isinstance(value, str):
        try:
            value = datetime.time.fromisoformat(value.strip())
        except ValueError:
            raise ValueRefused(f"{show(value)} cannot be read as TIME", hint="write it like 14:30:00") from None
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return microseconds_of(value)
    if is_integer(value) and 0 <= int(value) < DAY_US:
        return int(value)
    raise ValueRefused(f"{show(value)} cannot be read as TIME")


def decimal_value(value: Any, type_: Type) -> Decimal | None:
    """A DECIMAL: a Decimal, an int or a text that spells one, with no more digits behind the point than the type has;
    a float is the shortest decimal that reads back equal, rounded half away from zero.
    """
    if is_null(value) or (isinstance(value, Decimal) and value.is_nan()):
        return None
    is_float = isinstance(value, float | np.floating)
    exact: Decimal | None = None
    if isinstance(value, Decimal):
        exact = value
    elif is_integer(value) or is_float:
        exact = Decimal(repr(float(value))) if is_float else Decimal(int(value))
    elif isinstance(value, str):
        exact = decimal_of_text(value)
    if exact is None or not exact.is_finite():
        raise ValueRefused(f"{show(value)} cannot be read as DECIMAL")
    found = fitted(exact, type_)
    if found is None:
        raise ValueRefused(f"{show(value)} does not fit {type_}")
    if not is_float and found != exact:
        hint = "round it before, or declare more digits behind the point"
        raise ValueRefused(f"{show(value)} has more than {type_.scale} digits behind the point", hint=hint)
    return found


def decimal_of_text(text: str) -> Decimal | None:
    """The number that a text spells, with all its digits; None where it spells none."""
    return Decimal(text.strip()) if _DECIMAL_TEXT.fullmatch(text) else None


def _exact(number: str) -> Decimal:
    """A number of JSON; an exponent beyond those of Decimals is the last of them, which is as far from every type."""
    try:
        return Decimal(number)
    except InvalidOperation:
        return Decimal(_LONG_EXPONENT.sub(rf"\g<1>{'9' * 17}", number))


EXACT_JSON = json.JSONDecoder(parse_float=_exact)
"""Reads numbers with a point or an exponent as Decimals."""


def nested_value(value: Any, type_: Type, tick_ns: int) -> Any:
    """A list, STRUCT or MAP, as `minidsms.values.coded` has them in Python; a text is read as JSON (`of_fields`).

    A STRUCT is a dict, in which a name may be missing, or a tuple of all values; a MAP a dict, or pairs.
    """
    if is_null(value):
        return None
    if isinstance(value, str):
        try:
            value = of_fields(EXACT_JSON.decode(value), type_)
        except (ValueError, RecursionError):
            raise ValueRefused(f"{show(value)} cannot be read as {type_.kind}", hint="a text is read as JSON") from None
        return nested_value(value, type_, tick_ns)
    readers = [inner_reader(t, tick_ns) for _, t in type_.fields]
    if type_.element is not None:
        if isinstance(value, list | tuple | np.ndarray):
            reader = inner_reader(type_.element, tick_ns)
            return tuple(reader(v) for v in value)
    elif type_.kind == "STRUCT":
        if isinstance(value, Mapping):
            return tuple(r(v) for r, v in zip(readers, _by_name(value, type_)))
        if isinstance(value, list | tuple) and len(value) == len(readers):
            return tuple(r(v) for r, v in zip(readers, value))
    elif isinstance(value, Mapping | list | tuple):
        pairs = list(value.items() if isinstance(value, Mapping) else value)
        if all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
            key, inside = readers
            found = [(key(_key(k, type_)), inside(v)) for k, v in pairs]
            if len({k for k, _ in found} - {None}) == len(found):
                return tuple(sorted(found, key=itemgetter(0)))
            raise ValueRefused(f"{show(value)}: the keys of a MAP are different, and none is NULL")
    raise ValueRefused(f"{show(value)} cannot be read as {type_}")


def _key(key: Any, type_: Type) -> Any:
    """JSON has texts for keys."""
    is_number = type_.fields[0][1] is Type.INTEGER and isinstance(key, str) and _WHOLE_TEXT.fullmatch(key)
    return int(key) if is_number else key


def _by_name(value: Mapping[Any, Any], type_: Type) -> list[Any]:
    """A dict's values in the order of the fields, NULL for what it lacks; a name that is unknown is refused."""
    names = {name.lower(): i for i, (name, _) in enumerate(type_.fields)}
    found: list[Any] = [None] * len(names)
    for name, part in value.items():
        place = names.get(name.lower()) if isinstance(name, str) else None
        if place is None:
            raise ValueRefused(f"{show(name)} is no field of {type_}", hint="leave it out, or give a text of JSON")
        found[place] = part
    return found


def of_fields(value: Any, type_: Type) -> Any:
    """A value of JSON without the members that are no fields of its STRUCT: they are ignored, as in JSON lines those
    beyond the columns are. What is of another type than declared stays as it is.
    """
    if type_.element is not None:
        return [of_fields(v, type_.element) for v in value] if isinstance(value, list) else value
    if not isinstance(value, dict | list) or not type_.fields:
        return value
    if type_.kind == "STRUCT":
        if isinstance(value, list):  # of all its values
            is_whole = len(value) == len(type_.fields)
            return [of_fields(v, t) for v, (_, t) in zip(value, type_.fields)] if is_whole else value
        types = {name.lower(): t for name, t in type_.fields}
        return {k: of_fields(v, types[k.lower()]) for k, v in value.items() if k.lower() in types}
    inside = type_.fields[1][1]
    if isinstance(value, list):  # of pairs
        return [[p[0], of_fields(p[1], inside)] if isinstance(p, list) and len(p) == 2 else p for p in value]
    return {k: of_fields(v, inside) for k, v in value.items()}


@lru_cache(maxsize=256)
def inner_reader(type_: Type, tick_ns: int) -> Callable[[Any], Any]:
    """Of what stands in other values: as `value_reader`, before it is coded."""
    if type_.is_nested:
        return lambda value: nested_value(value, type_, tick_ns)
    if type_.kind == "DECIMAL":
        return lambda value: decimal_value(value, type_)
    return value_reader(type_, tick_ns)


def null_value(value: Any) -> None:
    """A column of the type NULL takes nothing else."""
    if not is_null(value):
        raise ValueRefused(f"{show(value)} in a column that is always NULL")


def value_reader(type_: Type, tick_ns: int) -> Callable[[Any], Any]:
    """The function that reads one value of the type: to the stored scalar (the dictionary's text of what is coded), or
    None for NULL.
    """
    if type_.is_coded and type_ is not Type.TEXT:
        inner = inner_reader(type_, tick_ns)

        def read(value: Any) -> str | None:
            found = inner(value)
            return None if found is None else text_of(found, type_)

        return read
    if type_ is Type.TIMESTAMP:
        return lambda value: timestamp_value(value, tick_ns)
    if type_ is Type.INTERVAL:
        return lambda value: interval_value(value, tick_ns)
    return {
        Type.INTEGER: integer_value,
        Type.FLOAT: float_value,
        Type.BOOLEAN: boolean_value,
        Type.TEXT: text_value,
        Type.DATE: date_value,
        Type.TIME: time_value,
        Type.NULL: null_value,
    }[type_]
