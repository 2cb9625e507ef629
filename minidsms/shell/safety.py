"""Safe mode: no file outside the folders allowed, nothing from outside but files, no code of the user's.

Invariant: what a statement or command wants to touch is checked here before it is done, by where it really is (links
followed); a clause that names a place and is not known here is refused. Safe mode is set when the shell starts; there
is no way to leave it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error

if TYPE_CHECKING:
    from minidsms.cql import syntax

_SCHEMES = ("tcp:", "udp:", "unix:", "kafka:", "http:", "https:", "ftp:", "s3:", "gs:", "hdfs:", "spark:")
_KNOWN = frozenset(
    {
        "CreateStream",
        "CreateRelation",
        "CreateView",
        "CreateQuery",
        "Drop",
        "AlterQuery",
        "AlterStream",
        "Show",
        "Describe",
        "Explain",
        "SetSetting",
        "QueryStatement",
    }
)
"""Statements whose clauses are known."""
_NO_PLACES = frozenset({"name", "format", "kind", "action", "setting", "value", "what", "target"})
"""Clauses that name no place; every other text of a statement does, until it stands here."""
_STANDARD = ("-", "stdin", "stdin:", "stdout", "stdout:")


class Safety:
    """What may be touched. folders: where files may be, in safe mode."""

    def __init__(self, is_safe: bool, folders: Sequence[str] = ()) -> None:
        self._is_safe = is_safe
        self._folders = tuple(os.path.realpath(os.path.expanduser(folder)) for folder in folders)

    @property
    def is_safe(self) -> bool:
        """Whether safe mode is on."""
        return self._is_safe

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders files may be in, in safe mode."""
        return self._folders

    def allows(self, path: str) -> bool:
        """A file or folder may be read and written there."""
        if not self._is_safe:
            return True
        if "\0" in path:
            return False
        place = os.path.realpath(os.path.expanduser(path))
        return any(os.path.commonpath((place, folder)) == folder for folder in self._folders)

    def check_path(self, path: str) -> None:
        """Error where a file there may not be touched."""
        if self.allows(path):
            return
        allowed = f"allowed are files in {', '.join(self._folders)}" if self._folders else "no folder is allowed"
        raise Error(f"safe mode: {path!r} may not be touched; {allowed}\nhelp: minidsms --safe --allow FOLDER")

    def check_place(self, place: str) -> None:
        """Error where a source or sink there is no file that may be touched: a socket, a broker, a wrong folder."""
        if not self._is_safe or place.lower() in _STANDARD:
            return
        if "://" in place or place.lower().startswith(_SCHEMES):
            raise Error(f"safe mode: {place!r} is no file, and only files may be touched")
        self.check_path(place)

    def check_statement(self, statement: syntax.Statement) -> None:
        """Error where a statement touches what may not be touched."""
        if not self._is_safe:
            return
        from minidsms.cql import syntax

        if type(statement).__name__ not in _KNOWN:
            raise Error("safe mode: it is not known what this statement touches")
        for f in fields(statement):
            value = getattr(statement, f.name)
            if isinstance(value, syntax.Source):
                self.check_place(value.path)
                self._check_options(value.options)
            elif f.name == "options":
                self._check_options(value)
            elif isinstance(value, str) and (f.name not in _NO_PLACES or _looks_like_a_place(value)):
                self.check_place(value)

    def _check_options(self, options: Sequence[syntax.Option]) -> None:
        for option in options:
            if isinstance(option.value, str) and _looks_like_a_place(option.value):
                self.check_place(option.value)


def _looks_like_a_place(value: str) -> bool:
    return "/" in value or os.sep in value
