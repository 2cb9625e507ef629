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


_JSON = json.JSONDecoder(parse_constant=_no_number)


def _read(text: str) -> Any:
    """The document; FAILED where it is none."""
    if text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST:
        return FAILED
    try:
        return _JSON.decode(text)
    except ValueError:
        return FAILED


def is_json(text: str) -> bool:
    """The functions read the text."""
    return _read(text) is not FAILED


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


def _concat(*texts: str) -> Any:
    """Objects become one object, arrays one array; anything else is an element of it."""
    values = list(map(_read, texts))
    if FAILED in values:
        return FAILED
    if all(isinstance(value, dict) for value in values):
        return _written({name: inside for value in values for name, inside in value.items()})
    return _written([each for value in values for each in (value if isinstance(value, list) else [value])])


def _contains(text: str, wanted: Any) -> Any:
    found = _read(text)
    if found is FAILED or not isinstance(found, list):
        return found if found is FAILED else False
    return any(isinstance(v, bool) == isinstance(wanted, bool) and v == wanted for v in found)


def _parts(wanted: type, made: Callable[[Any], Any]) -> Callable[[str], Any]:
    """made: what is made of an object or array; anything else is NULL."""

    def function(text: str) -> Any:
        found = _read(text)
        if not isinstance(found, wanted):
            return FAILED if found is FAILED else None
        result = made(found)
        return FAILED if FAILED in result or any(FAILED in pair for pair in result if type(pair) is tuple) else result

    return function


def _of_document(types: Sequence[Type]) -> Signature | None:
    text, value = types
    fits = text in (_TEXT, Type.NULL) and value in (_TEXT, Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.NULL)
    return Signature((_TEXT, _TEXT if value is Type.NULL else value), Type.BOOLEAN) if fits else None


def _by_type(types: Sequence[Type]) -> None:
    """The binder casts its argument to TEXT."""


FUNCTIONS = (
    Function(
        "json_keys", 1, 1, fixed(_TEXT.list_type, _TEXT), "JSON as TEXT", "the names of an object's members, else NULL",
        (f"JSON_KEYS({_EXAMPLE})", "['id', 'tags']"),
        _parts(dict, lambda value: tuple(map(_readable, value))), can_fail=True,
    ),
    Function(
        "json_items", 1, 1, fixed(_TEXT.list_type, _TEXT), "JSON as TEXT", "an array's elements, as JSON, else NULL",
        ("""JSON_ITEMS('[1, "a"]')""", """['1', '"a"']"""),
        _parts(list, lambda value: tuple(map(_written, value))), can_fail=True,
    ),
    Function(
        "json_records", 1, 1, fixed(Type.map(_TEXT, _TEXT), _TEXT), "JSON as TEXT",
        "the MAP from the names of an object's members to what they hold, as JSON, else NULL",
        (f"JSON_RECORDS({_EXAMPLE})", """{'id': '7', 'tags': '["a","b"]'}"""),
        _parts(dict, lambda value: tuple((_readable(n), _written(value[n])) for n in sorted(value))), can_fail=True,
    ),
    Function(
        "json_concat", 1, None, fixed(_TEXT, _TEXT), "JSON as TEXT",
        "objects as one object, of members of one name the last; else all elements, and what is no array, as one array",
        ("""JSON_CONCAT('[1]', '{"a": 2}')""", """'[1,{"a":2}]'"""), _concat, can_fail=True,
    ),
    Function(
        "json_array_contains", 2, 2, _of_document, "JSON as TEXT, and TEXT, a number or BOOLEAN",
        "whether an array has the value as an element", ("JSON_ARRAY_CONTAINS('[1, 2]', 2)", "true"), _contains,
        can_fail=True,
    ),
    Function(
        "to_json", 1, 1, _by_type, "anything", "the value as JSON", ("TO_JSON(['a'])", """'["a"]'"""),
    ),
    _row(
        "json_extract", _TEXT, "the value at a path, as JSON; also `j -> 'tags'`", ", '$.tags'", """'["a","b"]'""",
        _found(_written),
    ),
    _row(
        "json_extract_string", _TEXT, "the value at a path, as text; null is NULL; also `j ->> 'tags'`",
        ", '$.tags[0]'", "'a'", _found(lambda value: None if value is None else _plain(value)),
    ),
    _row(
        "json_value", _TEXT, "the string, number or truth value at a path, as text; NULL for all else", ", 'id'", "'7'",
        _found(lambda value: None if value is None or isinstance(value, dict | list) else _plain(value)),
    ),
    _row("json_exists", Type.BOOLEAN, "whether there is a value at the path", ", '$.name'", "false", _exists),
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
        ("JSON_VALID('{a: 1}')", "false"), is_json,
    ),
)  # fmt: skip
