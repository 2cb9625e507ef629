"""What stands nested in a JSON object: as it is written, and as far as it is declared."""

from __future__ import annotations

import json
import re
from typing import Any

from minidsms.elements import Type
from minidsms.functions.documents import is_json
from minidsms.inputs.values import ValueRefused

_MEMBER = re.compile(r'[ \t\n\r]*[{,][ \t\n\r]*"((?:[^"\\]|\\.)*)"[ \t\n\r]*:[ \t\n\r]*')
"""What begins an object's first member, or another behind it, up to its value."""
_JSON = json.JSONDecoder()


def members(line: str) -> dict[str, str]:
    """The values of an object as they are written, of one name the last. line: that of an object.

    Raises ValueError, or RecursionError, for some lines that are of none.
    """
    found, end = {}, 0
    while (match := _MEMBER.match(line, end)) is not None:
        start = match.end()
        _, end = _JSON.raw_decode(line, start)
        name = match[1] if "\\" not in match[1] else json.loads(f'"{match[1]}"')
        found[name] = line[start:end]
    return found


def nested_text(line: str, name: str) -> str:
    """An object or array that is the value of that name. line: of an object, which has been read.

    Raises ValueRefused for what the functions of JSON do not read: it nests too deep, or has NaN for a number.
    """
    try:
        found = members(line)[name]
    except RecursionError:
        found = ""
    if not is_json(found):
        raise ValueRefused("what is nested there is no JSON, or more than 200 deep")
    return found


def of_fields(value: Any, type_: Type) -> Any:
    """A value without the members that are no fields of its STRUCT: they are ignored, as members beyond the columns
    are. What is of another type than declared stays as it is.
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
