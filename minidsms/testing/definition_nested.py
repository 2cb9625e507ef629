"""STRUCT, MAP, DECIMAL, DATE and TIME, by definition.

A STRUCT is a tuple of (name, value), a MAP a tuple of (key, value) sorted by the keys; a DECIMAL is a Decimal, a DATE a
`date`, a TIME a `time`: what rows show, but hashable.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from minidsms.testing.definition_library import Failure
from minidsms.values.types import Type

_FIRST = datetime.date(1970, 1, 1)
_MIDNIGHT = datetime.datetime(1970, 1, 1)


def literal(value: Any, type_: Type) -> Any:
    """What a literal of the bound tree stands for."""
    if value is None or type_ not in (Type.DATE, Type.TIME):
        return value
    if type_ is Type.DATE:
        return _FIRST + datetime.timedelta(days=value)
    return (_MIDNIGHT + datetime.timedelta(microseconds=value)).time()


def decimal(value: Fraction | int, type_: Type) -> Decimal:
    """A number as DECIMAL, half away from zero. Failure where it has too many digits."""
    digits = math.floor(abs(value) * 10**type_.scale + Fraction(1, 2))
    if digits >= 10**type_.digits:
        raise Failure(f"{value} does not fit {type_}")
    with localcontext(prec=100):
        return Decimal(digits if value > 0 else -digits).scaleb(-type_.scale)


def _rounded(value: Fraction, places: int = 0) -> Fraction:
    unit = Fraction(10) ** min(max(-places, -40), 40)
    return math.floor(abs(value) / unit + Fraction(1, 2)) * unit * (-1 if value < 0 else 1)


def _truncated(value: Fraction, places: int = 0) -> Fraction:
    unit = Fraction(10) ** min(max(-places, -40), 40)
    return math.trunc(value / unit) * unit


def _remainder(a: Fraction, b: Fraction) -> Fraction | None:
    return None if b == 0 else a - math.trunc(a / b) * b


OF_DECIMALS: dict[str, Callable[..., Fraction | int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": _remainder,
    "neg": lambda a: -a,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": _rounded,
    "trunc": _truncated,
}


def of_decimals(function: str, values: Sequence[Any], type_: Type) -> Decimal | None:
    """An operator of DECIMALs, in fractions."""
    found = OF_DECIMALS[function](*(Fraction(v) if isinstance(v, Decimal) else v for v in values))
    return None if found is None else decimal(found, type_)


def of_dates(function: str, a: Any, b: Any) -> Any:
    """`+` and `-` where one is a DATE: days later, earlier or between."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, datetime.date):
        return (a - b).days
    try:
        return a + datetime.timedelta(days=b if function == "+" else -b)
    except OverflowError:
        raise Failure("no DATE") from None


def cast(value: Any, source: Type, target: Type, tick_ns: int) -> Any:
    """CAST to BOOLEAN and where one of the types is not basic; Failure where it cannot be carried out."""
    if value is None or source is target:
        return value
    if target is Type.TEXT:
        return _text(value, source)
    if target is Type.BOOLEAN:
        return _truth(value) if isinstance(value, str) else value != 0
    if source is Type.TEXT:
        return _read(value, target, rounds=True)
    if source.element is not None and target.element is not None:
        return tuple(cast_any(v, source.element, target.element, tick_ns) for v in value)
    if source.fields:
        is_map, types = source.kind == "MAP", [*zip(source.fields, target.fields)]
        pairs = [types[1]] * len(value) if is_map else types
        return tuple((k if is_map else n, cast_any(v, s, t, tick_ns)) for (k, v), ((_, s), (n, t)) in zip(value, pairs))
    if target.kind == "DECIMAL":
        if isinstance(value, float) and not math.isfinite(value):
            raise Failure("no number")
        return decimal(Fraction(repr(value) if isinstance(value, float) else value), target)
    if source.kind == "DECIMAL":
        return float(value) if target is Type.FLOAT else int(value)
    if source is Type.TIME:
        since = datetime.datetime.combine(_FIRST, value) - _MIDNIGHT
        return since // datetime.timedelta(microseconds=1) * 1000 // tick_ns
    if source is Type.DATE:
        return (value - _FIRST).days * 86_400 * 10**9 // tick_ns
    microseconds = value * tick_ns // 1000
    if target is Type.TIME:
        return (_MIDNIGHT + datetime.timedelta(microseconds=microseconds % 86_400_000_000)).time()
    try:
        return _FIRST + datetime.timedelta(days=microseconds // 86_400_000_000)
    except OverflowError:
        raise Failure("no DATE") from None


def cast_any(value: Any, source: Type, target: Type, tick_ns: int) -> Any:
    """As CAST, of what stands in other values."""
    if value is None or target is Type.BOOLEAN or not (source.is_basic and target.is_basic):
        return cast(value, source, target, tick_ns)
    if target is Type.TEXT:
        return _text(value, source) if source in (Type.TEXT, Type.INTEGER, Type.FLOAT, Type.BOOLEAN) else None
    return float(value) if target is Type.FLOAT else int(value)


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"):
        raise Failure(f"{text} is no BOOLEAN")
    return word[0] in "ty1"


def _text(value: Any, type_: Type) -> str:
    if type_.is_nested:
        return json.dumps(_plain(value, type_), ensure_ascii=False)
    if type_.kind == "DECIMAL":
        return f"{value:f}"
    return value if isinstance(value, str) else json.dumps(value) if type_.is_basic else value.isoformat()


def _plain(value: Any, type_: Type) -> Any:
    if value is None or type_.is_basic:
        return value
    if type_.element is not None:
        return [_plain(v, type_.element) for v in value]
    if type_.fields:
        types = [t for _, t in type_.fields] if type_.kind == "STRUCT" else [type_.fields[1][1]] * len(value)
        return {str(k): _plain(v, t) for (k, v), t in zip(value, types)}
    return _text(value, type_)


def _read(text: str, target: Type, rounds: bool = False) -> Any:
    """rounds: a DECIMAL; a document in which one has more digits cannot be read."""
    try:
        if target is Type.DATE:
            return datetime.date.fromisoformat(text.strip())
        if target is Type.TIME:
            return datetime.time.fromisoformat(text.strip())
        if target.kind == "DECIMAL":
            exact = Fraction(text.strip())
            if not rounds and exact.denominator != 1 and (exact * 10**target.scale).denominator != 1:
                raise Failure("too many digits")
            return decimal(exact, target)
        return _built(json.loads(text, parse_float=_number), target)
    except (ValueError, TypeError, AttributeError, KeyError):
        raise Failure(f"{text} is no {target}") from None


def _number(text: str) -> Decimal:
    """A number of JSON. Exponents of more digits are as far from every type."""
    return Decimal(re.sub(r"(?<=[eE])([-+]?)0*[0-9]{5,}$", r"\g<1>9999", text))


def _built(value: Any, type_: Type) -> Any:
    """A value of JSON as one of the type."""
    if value is None:
        return None
    if type_.element is not None:
        if not isinstance(value, list):
            raise ValueError("no list")
        return tuple(_built(v, type_.element) for v in value)
    if type_.kind == "STRUCT":
        given = value if isinstance(value, dict) else dict(zip((n for n, _ in type_.fields), value, strict=True))
        if set(given) - {n for n, _ in type_.fields}:
            raise ValueError("unknown field")
        return tuple((n, _built(given.get(n), t)) for n, t in type_.fields)
    if type_.kind == "MAP":
        number = type_.fields[0][1] is Type.INTEGER
        return tuple(sorted((int(k) if number else k, _built(v, type_.fields[1][1])) for k, v in value.items()))
    if type_ is Type.FLOAT and isinstance(value, Decimal | int) and not isinstance(value, bool):
        return float(value)
    wanted: type = {"INTEGER": int, "TEXT": str, "BOOLEAN": bool}.get(type_.kind, str)
    if type(value) is wanted and type_.is_basic:
        return value
    return _read(str(value), type_) if type(value) in (str, Decimal, int) and not type_.is_basic else _refuse()


def _refuse() -> Any:
    raise ValueError("another type")


def _map(pairs: Sequence[tuple[Any, Any]]) -> Any:
    keys = [k for k, _ in pairs]
    if None in keys or len(set(keys)) < len(keys):
        raise Failure("a key is NULL or there twice")
    return tuple(sorted(pairs))


def _from_lists(keys: Sequence[Any], values: Sequence[Any]) -> Any:
    if len(keys) != len(values):
        raise Failure("lists of different lengths")
    return _map([*zip(keys, values)])


def _from_entries(entries: Sequence[Any]) -> Any:
    if None in entries:
        raise Failure("no pair")
    return _map([(key, value) for (_, key), (_, value) in entries])


def _concat(*maps: Sequence[tuple[Any, Any]]) -> Any:
    found: dict[Any, Any] = {}
    for pairs in maps:
        found.update(pairs)
    return tuple(sorted(found.items()))


def _split_to_map(text: str, between: str, inside: str) -> Any:
    found: dict[str, str] = {}
    for part in text.split(between) if between else [text]:
        at = part.find(inside) if inside else -1
        if at >= 0:
            found[part[:at]] = part[at + len(inside) :]
    return tuple(sorted(found.items()))


OF_NESTED: dict[str, Callable[..., Any]] = {
    "struct_extract": lambda struct, place: struct[place][1],
    "map": lambda *both: _map([*zip(both[::2], both[1::2])]),
    "map_from_lists": _from_lists,
    "map_extract": lambda pairs, key: next((v for k, v in pairs if k == key), None),
    "map_contains": lambda pairs, key: any(k == key for k, _ in pairs),
    "map_keys": lambda pairs: tuple(k for k, _ in pairs),
    "map_values": lambda pairs: tuple(v for _, v in pairs),
    "map_entries": lambda pairs: tuple((("key", k), ("value", v)) for k, v in pairs),
    "map_from_entries": _from_entries,
    "map_concat": _concat,
    "split_to_map": _split_to_map,
}
"""Functions of STRUCT and MAP, by name; STRUCT itself needs the names of its type."""
