"""What stands in JSON documents, by definition: a value is written part by part, a path is read sign by sign."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from minidsms.testing.definition_library import Failure


def _read(text: str) -> Any:
    def refuse(word: str) -> None:
        raise Failure(word)

    try:
        value = json.JSONDecoder(parse_constant=refuse).decode(text)
    except (ValueError, RecursionError):
        raise Failure("no document") from None
    level = [value]
    for _ in range(200):
        lists = [each for each in level if isinstance(each, list)]
        dicts = [each for each in level if isinstance(each, dict)]
        level = [each for part in (*lists, *(d.values() for d in dicts)) for each in part]
    if any(isinstance(each, list | dict) for each in level):
        raise Failure("too deep")
    return value


def _steps(path: str | int) -> Iterator[str | int]:
    if isinstance(path, int) or path[:1] != "$":
        yield path
        return
    rest = path[1:]
    while rest:
        if rest[0] == "[":
            place, _, rest = rest[1:].partition("]")
            yield int(place)
        elif rest[1] == '"':
            name, _, rest = rest[2:].partition('"')
            yield name
        else:
            name = ""
            rest = rest[1:]
            while rest and rest[0] not in ".[":
                name, rest = name + rest[0], rest[1:]
            yield name


def _at(text: str, path: str | int) -> list[Any]:
    """The value at the path, alone in a list, or nothing."""
    value = _read(text)
    for step in _steps(path):
        places = range(-len(value), len(value)) if isinstance(value, list) else ()
        if step in (value if isinstance(value, dict) else places):
            value = value[step]
        else:
            return []
    return [value]


def _json(value: Any) -> str:
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case dict():
            return "{" + ",".join(f"{_json(k)}:{_json(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_json, value)) + "]"
        case str():
            return '"' + "".join(map(_character, value)) + '"'
        case float() if math.isinf(value):
            raise Failure("too large")
    return repr(value)


def _character(c: str) -> str:
    if 0xD800 <= ord(c) < 0xE000:
        raise Failure("half a character")
    if c in '"\\':
        return "\\" + c
    short = dict(zip("\b\t\n\f\r", "btnfr"))
    return c if ord(c) >= 32 else f"\\{short[c]}" if c in short else f"\\u{ord(c):04x}"


def _text(value: Any) -> str:
    shown = _json(value)
    return value if isinstance(value, str) else shown


def _of(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda text, path="$": next(map(function, _at(text, path)), None)


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else "BOOLEAN"
    return {"dict": "OBJECT", "list": "ARRAY", "str": "STRING"}.get(type(value).__name__, "NUMBER")


def _valid(text: str) -> bool:
    try:
        _read(text)
    except Failure:
        return False
    return True


def _whole(text: str, kind: type, made: Callable[[Any], Any]) -> Any:
    value = _read(text)
    return made(value) if isinstance(value, kind) else None


def _has(values: list[Any], wanted: Any) -> bool:
    if isinstance(wanted, bool | str):
        return any(type(v) is type(wanted) and v == wanted for v in values)
    return any(not isinstance(v, bool | str) and v == wanted for v in values)


def _concat(*texts: str) -> str:
    values = [_read(text) for text in texts]
    merged: dict[str, Any] = {}
    for value in values:
        if not isinstance(value, dict):
            return _json([e for v in values for e in (v if isinstance(v, list) else [v])])
        merged |= value
    return _json(merged)


OF_DOCUMENTS: dict[str, Callable[..., Any]] = {
    "json_extract": _of(_json),
    "json_extract_string": _of(lambda value: None if value is None else _text(value)),
    "json_value": _of(lambda value: _text(value) if isinstance(value, str | int | float) else None),
    "json_exists": lambda text, path: len(_at(text, path)) == 1,
    "json_type": _of(_kind),
    "json_array_length": _of(lambda value: len(value) if isinstance(value, list) else None),
    "json_valid": _valid,
    "json_keys": lambda text: _whole(text, dict, lambda value: tuple(map(_text, value))),
    "json_items": lambda text: _whole(text, list, lambda value: tuple(map(_json, value))),
    "json_records": lambda text: _whole(
        text, dict, lambda value: tuple(sorted((_text(n), _json(v)) for n, v in value.items()))
    ),
    "json_concat": _concat,
    "json_array_contains": lambda text, wanted: _whole(text, list, lambda v: _has(v, wanted)) or False,
}
"""Functions of JSON documents, by name."""
