"""JSON documents, kept as text: what stands at a path.

A path is a literal: `'$.a[0]."b c"'`, counted from 0 or from the end by negative numbers, or the name of a member, or
the number of an element. A text that is no JSON is a failure; a path that leads nowhere is NULL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from minidsms.elements import Type
from minidsms.functions.function import FAILED, Function, Signature, fixed

_TEXT = Type.TEXT
_STEP = re.compile(r'\.([^\W\d]\w*|"(?:[^"\\]|\\.)*")|\[(-?[0-9]{1,9})\]')
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_DEEPEST = 200
"""How deep a document may nest; the reader's own bound depends on who calls it."""
_NOWHERE = object()
_EXAMPLE = """'{"id": 7, "tags": ["a", "b"]}'"""


@lru_cache(maxsize=256)
def _steps(path: str | int) -> tuple[str | int, ...] | None:
    """The members and elements a path goes through; None where it is no path."""
    if isinstance(path, int) or not path.startswith("$"):
        return (path,)
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name, place = found.groups()
        try:
            steps.append(int(place) if name is None else json.loads(name) if name[0] == '"' else name)
        except ValueError:
            return None
        at = found.end()
    return tuple(steps)


def _path(value: Any) -> str | None:
    if isinstance(value, bool | float) or _steps(value) is None:
        return "a path is like '$.a[0]', or the name of a member, or the number of an element"
    return None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _read(text: str) -> Any:
    """The document; FAILED where it is none."""
    if text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST:
        return FAILED
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError:
        return FAILED


def _depth(text: str) -> int:
    """How deep brackets and braces nest, outside strings."""
    depth = deepest = 0
    for mark in _MARKS.findall(text):
        depth += mark in ("[", "{")
        depth -= mark in ("]", "}")
        deepest = max(deepest, depth)
    return deepest


def _at(text: str, path: str | int) -> Any:
    """What stands there, _NOWHERE or FAILED."""
    found = _read(text)
    for step in _steps(path) or ():
        if isinstance(step, str) and isinstance(found, dict):
            found = found.get(step, _NOWHERE)
        elif isinstance(step, int) and isinstance(found, list) and -len(found) <= step < len(found):
            found = found[step]
        elif found is not FAILED:
            return _NOWHERE
    return found


def _written(value: Any) -> Any:
    """A value as JSON; a number beyond all FLOATs fails."""
    try:
        return _readable(json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
    except ValueError:
        return FAILED


def _readable(text: str) -> Any:
    """The text; half a character, which JSON can name, fails."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return FAILED
    return text


def _plain(value: Any) -> Any:
    """A value as text: strings without quotes."""
    return _readable(value) if isinstance(value, str) else _written(value)


def _found(show: Callable[[Any], Any]) -> Callable[..., Any]:
    """show: what is made of what stands at the path."""

    def function(text: str, path: str | int = "$") -> Any:
        value = _at(text, path)
        return value if value is FAILED else None if value is _NOWHERE else show(value)

    return function


_KINDS = {dict: "OBJECT", list: "ARRAY", str: "STRING", bool: "BOOLEAN", int: "NUMBER", float: "NUMBER"}


def _exists(text: str, path: str | int) -> Any:
    value = _at(text, path)
    return value if value is FAILED else value is not _NOWHERE


def _resolve(result: Type) -> Callable[[Sequence[Type]], Signature | None]:
    def resolve(types: Sequence[Type]) -> Signature | None:
        if types[0] not in (_TEXT, Type.NULL) or any(t not in (_TEXT, Type.INTEGER, Type.NULL) for t in types[1:]):
            return None
        return Signature((_TEXT, *(_TEXT if t is Type.NULL else t for t in types[1:])), result)

    return resolve


def _row(
    name: str, result: Type, summary: str, arguments: str, value: str, show: Callable[..., Any], least: int = 2
) -> Function:
    example = (f"{name.upper()}({_EXAMPLE}{arguments})", value)
    takes = "JSON as TEXT, and a path"
    return Function(name, least, 2, _resolve(result), takes, summary, example, show, literals={1: _path}, can_fail=True)


FUNCTIONS = (
    _row(
        "json_extract", _TEXT, "what stands at a path, as JSON; also `j -> 'tags'`", ", '$.tags'", """'["a","b"]'""",
        _found(_written),
    ),
    _row(
        "json_extract_string", _TEXT, "what stands at a path, as text, null as NULL; also `j ->> 'tags'`",
        ", '$.tags[0]'", "'a'", _found(lambda value: None if value is None else _plain(value)),
    ),
    _row(
        "json_value", _TEXT, "the string, number or truth value at a path, as text; NULL for all else", ", 'id'", "'7'",
        _found(lambda value: None if value is None or isinstance(value, dict | list) else _plain(value)),
    ),
    _row("json_exists", Type.BOOLEAN, "whether the path leads somewhere", ", '$.name'", "false", _exists),
    _row(
        "json_type", _TEXT, "OBJECT, ARRAY, STRING, NUMBER, BOOLEAN or NULL, of the document or at a path", ", 'id'",
        "'NUMBER'", _found(lambda value: _KINDS.get(type(value), "NULL")), 1,
    ),
    _row(
        "json_array_length", Type.INTEGER, "how many elements an array has, of the document or at a path; else NULL",
        ", 'tags'", "2", _found(lambda value: len(value) if isinstance(value, list) else None), 1,
    ),
    Function(
        "json_valid", 1, 1, fixed(Type.BOOLEAN, _TEXT), "TEXT", "whether the text is JSON that nests at most 200 deep",
        ("JSON_VALID('{a: 1}')", "false"), lambda text: _read(text) is not FAILED,
    ),
)  # fmt: skip
