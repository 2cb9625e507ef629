"""What stands nested in a JSON object, as it is written."""

from __future__ import annotations

import json
import re

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
