"""Safe mode: no file outside the folders allowed, nothing from outside but files, no other program.

A connection has one `Safety`, which the shell asks, too. Invariant: what a statement, a call or a command wants to
touch is checked here before it is done, by where it really is (links followed); a clause that names a place and is not
known here is refused. There is no way to leave safe mode, nor to allow more once it is on.  docs/security.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from minidsms.cql.errors import Error, shown

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
        "AddColumn",
        "Delete",
        "Update",
        "Show",
        "Describe",
        "Explain",
        "SetSetting",
        "QueryStatement",
        "Insert",
    }
)
"""Statements whose clauses are known."""
_NO_PLACES = frozenset({"name", "format", "kind", "action", "setting", "value", "what", "target"})
"""Clauses that name no place; every other text of a statement does, until it stands here."""
_ADDRESS = re.compile(r"file:|[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
_STANDARD = ("-", "stdin", "stdin:", "stdout", "stdout:")
STANDARD = "-"
"""Among the folders allowed: the standard input and output."""
_FILE_OPTIONS = frozenset({"schema", "descriptors"})
"""Options that name files."""

_ALLOWING = "minidsms.connect(safe=True, allowed_paths=[FOLDER]), minidsms --safe --allow FOLDER"


class Safety:
    """What may be touched. folders: where files may be, in safe mode; "-" among them allows the standard streams, and
    an address such as https://host/folder what is below it.
    """

    def __init__(self, is_safe: bool, folders: Sequence[str] = ()) -> None:
        self._is_safe = is_safe
        self._is_standard_allowed = STANDARD in folders
        self._addresses = tuple(f for f in folders if "://" in f)
        own = (f for f in folders if f != STANDARD and f not in self._addresses)
        self._folders = tuple(os.path.realpath(os.path.expanduser(f)) for f in own)

    def switch_on(self) -> None:
        """From now on, for good."""
        self._is_safe = True

    @property
    def is_safe(self) -> bool:
        """Whether safe mode is on."""
        return self._is_safe

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders files may be in, in safe mode, and the addresses below which may be read."""
        return *self._folders, *self._addresses

    def allows(self, path: str) -> bool:
        """A file or folder may be read and written there."""
        if not self._is_safe:
            return True
        if "\0" in path or _ADDRESS.match(path):  # no path: it is resolved elsewhere
            return False
        place = os.path.realpath(os.path.expanduser(path))
        return any(os.path.commonpath((place, folder)) == folder for folder in self._folders)

    def check_path(self, path: str) -> None:
        """Error where a file there may not be touched."""
        matching = glob.glob(path, recursive=True) if self._is_safe and glob.has_magic(path) else []
        if all(map(self.allows, [path, *matching])):
            return
        allowed = f"allowed are files in {', '.join(self._folders)}" if self._folders else "no folder is allowed"
        raise Error(f"safe mode: {shown(path)} may not be touched; {allowed}\nhelp: {_ALLOWING}")

    def check_place(self, place: str) -> None:
        """Error where a source or sink there is no file that may be touched: a socket, a broker, a wrong folder."""
        if not self._is_safe:
            return
        is_standard = place.lower() in _STANDARD
        if is_standard and self._is_standard_allowed:
            return
        if any(_is_below(place, address) for address in self._addresses):
            return
        if is_standard or "://" in place or place.lower().startswith(_SCHEMES):
            allowed = f"files and what is below {', '.join(self._addresses)}" if self._addresses else "files"
            raise Error(f"safe mode: {shown(place)} is no file, and only {allowed} may be touched")
        self.check_path(place)

    def check_source(self, place: str) -> None:
        """Error where a source there is none that may be read, or a file of its folder leads out of it."""
        self.check_place(place)
        if self._is_safe and os.path.isdir(place):
            from minidsms.sources.files import LOCAL

            for path in LOCAL.named(place) or ():
                self.check_path(path)

    def check_spark(self) -> None:
        """Error where another program would be started, or spoken with."""
        if self._is_safe:
            raise Error("safe mode: Spark is another program, and none may be started")

    def check_statement(self, statement: syntax.Statement) -> None:
        """Error where a statement touches what may not be touched."""
        if not self._is_safe:
            return
        from minidsms.cql import syntax

        if type(statement).__name__ not in _KNOWN:
            raise Error("safe mode: it is not known what this statement touches")
        if isinstance(statement, syntax.Explain) and statement.format == "spark":
            self.check_spark()
        for f in fields(statement):
            value = getattr(statement, f.name)
            if isinstance(value, syntax.Source):
                self.check_source(value.path)
                self._check_options(value.options)
            elif f.name == "options":
                self._check_options(value)
            elif isinstance(value, str) and (f.name not in _NO_PLACES or _looks_like_a_place(value)):
                self.check_place(value)

    def _check_options(self, options: Sequence[syntax.Option]) -> None:
        for option in options:
            if "." in option.name:
                raise Error(f"safe mode: {option.name} may lead elsewhere, and is left to the program")
            if isinstance(option.value, str) and (
                option.name.lower() in _FILE_OPTIONS or _looks_like_a_place(option.value)
            ):
                self.check_place(option.value)


def _is_below(place: str, address: str) -> bool:
    """An address is another one, or below it.

    >>> _is_below("https://a.org/data/x.csv", "https://a.org/data")
    True
    >>> [_is_below(f"https://a.org{rest}", "https://a.org/data") for rest in ("/data2", "/data/../x", "/data/%2e%2e/x")]
    [False, False, False]
    """
    try:
        asked, allowed = urlsplit(place), urlsplit(address)
    except ValueError:
        return False
    if asked.query and asked.scheme not in ("http", "https"):  # of PostgreSQL it may name another server
        return False
    if any(c in place for c in "\\\n\r\t") or {"..", "."} & set(unquote(asked.path).split("/")):
        return False
    folder = allowed.path.rstrip("/")
    is_there = (asked.scheme, asked.netloc.lower()) == (allowed.scheme, allowed.netloc.lower())
    return is_there and (asked.path == folder or asked.path.startswith(folder + "/"))


def _looks_like_a_place(value: str) -> bool:
    return "/" in value or os.sep in value
