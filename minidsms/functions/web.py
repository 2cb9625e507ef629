"""Parts of web addresses, by the standard library's reading of them; NULL where a part is not there.

The names are ksqlDB's.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import Any

from minidsms.elements import Type
from minidsms.functions.function import Function, fixed

_TEXT = Type.TEXT
_ADDRESS = "'https://shop.example:8443/a/b?k=v%20w#top'"


def _part(read: Callable[[urllib.parse.SplitResult], Any]) -> Callable[[str], Any]:
    def part(text: str) -> Any:
        try:
            found = read(urllib.parse.urlsplit(text))
        except ValueError:
            return None
        return None if found == "" else found

    return part


def _parameter(text: str, name: str) -> Any:
    try:
        query = urllib.parse.urlsplit(text).query
    except ValueError:
        return None
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    return next((value for key, value in pairs if key == name), None)


def _row(part: str, read: Callable[[urllib.parse.SplitResult], Any], shown: str, result: Type = _TEXT) -> Function:
    name = f"url_extract_{part}"
    example = (f"{name.upper()}({_ADDRESS})", shown)
    return Function(
        name, 1, 1, fixed(result, _TEXT), "TEXT", f"the {part} of an address, or NULL", example, _part(read)
    )


FUNCTIONS = (
    _row("protocol", lambda url: url.scheme, "'https'"),
    _row("host", lambda url: url.hostname, "'shop.example'"),
    _row("port", lambda url: url.port, "8443", Type.INTEGER),
    _row("path", lambda url: url.path, "'/a/b'"),
    _row("query", lambda url: url.query, "'k=v%20w'"),
    _row("fragment", lambda url: url.fragment, "'top'"),
    Function(
        "url_extract_parameter",
        2,
        2,
        fixed(_TEXT, _TEXT),
        "two TEXT",
        "the first value of a parameter of an address, decoded, or NULL",
        (f"URL_EXTRACT_PARAMETER({_ADDRESS}, 'k')", "'v w'"),
        _parameter,
    ),
    Function(
        "url_encode",
        1,
        1,
        fixed(_TEXT, _TEXT),
        "TEXT",
        "the text encoded for an address: all but ASCII letters, digits, - _ . ~ as %XX",
        ("URL_ENCODE('v w/x')", "'v%20w%2Fx'"),
        lambda text: urllib.parse.quote(text, safe=""),
    ),
    Function(
        "url_decode",
        1,
        1,
        fixed(_TEXT, _TEXT),
        "TEXT",
        "the inverse of URL_ENCODE",
        ("URL_DECODE('v%20w')", "'v w'"),
        urllib.parse.unquote,
    ),
)
