"""Digests of texts, of their UTF-8, in lower-case hexadecimal digits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from minidsms.elements import Type
from minidsms.functions.function import Function, fixed


def _digest(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def _row(name: str, value: str) -> Function:
    return Function(
        name,
        1,
        1,
        fixed(Type.TEXT, Type.TEXT),
        "TEXT",
        f"the {name.upper()} of the text, in hexadecimal digits",
        (f"LEFT({name.upper()}('stream'), 8)", value),
        _digest(name),
    )


FUNCTIONS = (
    _row("md5", "'f7b44cfa'"),
    _row("sha1", "'c82e3d72'"),
    _row("sha224", "'d9c2289a'"),
    _row("sha256", "'dca83e71'"),
    _row("sha384", "'b07cf281'"),
    _row("sha512", "'e1b98d20'"),
)
