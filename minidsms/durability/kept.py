"""What a durable connection does not keep yet is refused, with a word on what to do instead.

Invariant: what is not refused comes back when the folder is opened again.
"""

from __future__ import annotations

from typing import Any

from minidsms.cql import syntax
from minidsms.cql.errors import CqlError, Error

_WITHOUT = "a connection with a folder does not keep {} yet\nhelp: {}"
_NO_FOLDER = "connect() without a folder"
_WAYS = {
    "BACKFILL": "db.replay(folder) pushes what the archives hold, for queries registered before",
}
_SETTINGS = {
    "load_shedding": ("none", "random"),
    "k_mon": ("exact",),
}
"""The values that are kept, of settings by which an answer may depend on the memory or the time it took."""


def not_kept(what: str) -> Error:
    """The error that refuses it."""
    return Error(_WITHOUT.format(what, _WAYS[what]))


def check_setting(name: str, value: Any) -> None:
    """Error where answers would depend on what is not kept. value: in its proper form."""
    kept = _SETTINGS.get(name.lower())
    if kept is not None and value not in kept:
        raise Error(
            f"{name} = {value!r}: a connection with a folder does not keep answers that depend on memory or time yet\n"
            f"help: leave it at {kept[0] or 'none'!r}, or use {_NO_FOLDER}"
        )


def check_statement(statement: syntax.Statement, text: str) -> None:
    """CqlError where a statement asks for what is not kept."""
    match statement:
        case syntax.CreateQuery():
            what = "BACKFILL" if statement.backfill is not None else None
        case _:
            return
    if what is not None:
        raise CqlError(str(not_kept(what)), text, statement.span)
