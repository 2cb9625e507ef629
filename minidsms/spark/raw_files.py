"""Which raw files an ingest reads: those that no earlier one has read, grouped by their form.

Files of one form have the same header line (csv) or schema (Parquet), and can be read together. A file is known by its
address and, where it lies on this machine, by its size and the time of its last change.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from minidsms.cql.errors import Error, shown
from minidsms.cql.masking import without_password

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RawFiles:
    """New files. files: with something in them, as Spark's readers take them.  by_form: the same, grouped.

    identities: by address, what the log remembers of all new files, empty ones too.  seen: how many there are that are
    not new.  options: for Spark's reader.
    """

    by_form: tuple[tuple[str, ...], ...]
    identities: Mapping[str, str]
    seen: int
    options: Mapping[str, str]

    @property
    def files(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(file for group in self.by_form for file in group)


def new_files(
    spark: SparkSession, places: list[str], format: str, options: Mapping[str, str], seen: Set[str]
) -> RawFiles:
    """The new files of places: files, folders or patterns. seen: identities of those that have been read."""
    chosen = {name: value for name, value in options.items() if name.lower() in _CHOOSING}
    listed = sorted(set(spark.read.options(**chosen).text(places).inputFiles()))
    identities = {file: identity(file) for file in listed}
    new = [file for file in listed if identities[file] not in seen and file not in seen]
    forms: dict[str, list[str]] = {}
    for file in new:
        form = _form(file, format, options)
        if form is not None:
            forms.setdefault(form, []).append(_SPECIAL.sub(r"\\\g<0>", unquote(file)))
    more = {"basePath": places[0]} if len(places) == 1 and os.path.isdir(places[0]) else {}
    by_form = tuple(tuple(group) for group in forms.values())
    return RawFiles(by_form, {address(f): identities[f] for f in new}, len(listed) - len(new), {**more, **options})


def known_files(places: Sequence[str], options: Mapping[str, str], seen: Set[str]) -> int | None:
    """How many files these places of this machine name, where an earlier ingest has read all of them; None where there
    are others, or only Spark can tell: starting it takes longer than all else.
    """
    if any(name.lower() in _CHOOSING for name in options) or "HADOOP_CONF_DIR" in os.environ:
        return None
    files: set[str] = set()
    for place in places:
        path = place.removeprefix("file://")
        found = glob.glob(os.path.abspath(path), include_hidden=True) if _PLAIN.fullmatch(path) else []
        if not found:
            return None
        for each in found:
            files |= {os.path.join(each, name) for name in os.listdir(each)} if os.path.isdir(each) else {each}
    if any(os.path.basename(file).startswith((".", "_")) or not os.path.isfile(file) for file in files):
        return None
    return len(files) if all(identity(f"file://{file}") in seen for file in files) else None


_PLAIN = re.compile(r"[\w./*?=+-]+", re.ASCII)
"""Paths and patterns that mean here what they mean to Spark."""
_CHOOSING = ("recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter", "ignoremissingfiles")
"""Options of Spark's readers that say which files are read."""


_SPECIAL = re.compile(r"[\[\]{}*?\\]")
"""Of patterns; a name that holds one is told by a backslash."""


def identity(file: str) -> str:
    """What tells a file from others and from its earlier contents."""
    path = _local(file)
    if path is None:
        return without_password(file)
    stat = os.stat(path)
    return f"{file}|{stat.st_size}|{stat.st_mtime_ns}"


def address(file: str) -> str:
    """One of those that a file has: Spark writes them in several ways."""
    return _local(file) or file


def _local(file: str) -> str | None:
    parts = urlsplit(file)
    return unquote(parts.path) if parts.scheme == "file" else None


def _form(file: str, format: str, options: Mapping[str, str]) -> str | None:
    """Equal for files that can be read together; None for a file without anything in it."""
    path = _local(file)
    if path is None:
        return file if format != "json" else ""
    if os.path.getsize(path) == 0:
        return None
    if format == "parquet":
        from pyarrow import ArrowException, parquet

        try:
            return str(parquet.read_schema(path).remove_metadata())
        except ArrowException as error:
            raise Error(f"{shown(path)} is no Parquet file: {str(error)[:200]}") from None
    if format == "csv" and options.get("header", "true").lower() == "true":
        with open(path, "rb") as raw:
            line = raw.readline().strip()
        try:
            return line.decode(options.get("encoding", "utf-8"), "replace") or file
        except LookupError as error:
            raise Error(f"option encoding: {error}") from None
    return ""
