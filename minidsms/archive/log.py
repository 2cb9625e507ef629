"""The commit log of an archive: which files it holds, as numbered snapshots.

    Pos/_log/00000000000000000017.json      a manifest: what the commit of this number added and removed

A manifest is written aside, synced and renamed, or created as an object, so a commit is there as a whole or not at all,
and whoever reads the log sees whole commits only. It carries a checksum. One in `WHOLE` of them lists everything, so
that a reader takes few; those that nobody needs any more are removed then. Of older commits some remain known: how far
they reached.

Invariant: a file is of the archive if and only if the last snapshot names it; arrivals only grow from commit to commit,
so what an earlier snapshot held is what arrived below its `arrivals`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from minidsms.archive.statistics import Statistics
from minidsms.archive.storage import storage_of
from minidsms.cql.errors import Error

FOLDER = "_log"
WHOLE = 64
"""One in so many manifests lists everything."""

_NAME = re.compile(r"(\d{20})\.json")
_TRIES = 5


@dataclass(frozen=True)
class Origin:
    """Where rows of an ingest came from. name: what tells a raw file from others and from its earlier contents, or what
    a table is called.  rows, rejected: how many it had, and how many of them could not be read.
    """

    name: str
    rows: int = 0
    rejected: int = 0


@dataclass(frozen=True)
class Mark:
    """A commit that is remembered. number: of its snapshot.  at_ms: when, milliseconds since 1970 UTC.  arrivals: all
    elements below are in this snapshot.  batch, origins: of the ingest that made it.
    """

    number: int
    at_ms: int
    arrivals: int
    batch: str | None = None
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Commit:
    """What a commit changes. what: archive, ingest, write, compact, expire, or begin for the first.

    added, removed: paths in the archive's folder.  batch, origins: the ingest's, and what it has read.  statistics: of
    what has been added, as far as they are known.  kept: by the id of a recorder that is kept by a folder, how many of
    its elements are there now.
    """

    what: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    arrivals: int = 0
    batch: str | None = None
    origins: tuple[Origin, ...] = ()
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """What the archive holds as of a commit. statistics: of files, as far as they are known.  kept: as in `Commit`, of
    all.
    """

    number: int = -1
    files: frozenset[str] = frozenset()
    marks: tuple[Mark, ...] = field(default=())
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def arrivals(self) -> int:
        """All elements have arrivals below."""
        return self.marks[-1].arrivals if self.marks else 0

    @property
    def batches(self) -> frozenset[str]:
        """The ingests that have been committed."""
        return frozenset(mark.batch for mark in self.marks if mark.batch is not None)

    @property
    def inputs(self) -> frozenset[str]:
        """The raw files that have been ingested."""
        return frozenset(origin.name for mark in self.marks for origin in mark.origins)

    def after(self, commit: Commit, at_ms: int) -> Snapshot:
        """The next snapshot."""
        arrivals = max(self.arrivals, commit.arrivals)
        mark = Mark(self.number + 1, at_ms, arrivals, commit.batch, commit.origins)
        files = (self.files - set(commit.removed)) | set(commit.added)
        known = {**self.statistics, **commit.statistics}
        statistics = {path: known[path] for path in known if path in files}
        return Snapshot(mark.number, files, (*self.marks, mark), statistics, {**self.kept, **commit.kept})


def read_snapshot(folder: str) -> Snapshot | None:
    """The last snapshot of the archive in a folder; None where it has no log. Error where the log is damaged."""
    place = os.path.join(folder, FOLDER)
    for _ in range(_TRIES):
        numbers = _numbers(place)
        if not numbers:
            return None
        last = max(numbers)
        with contextlib.suppress(FileNotFoundError):  # its writer went on and removed what nobody needs
            return _folded(place, last)
    raise Error(f"{place}: the manifest before {last} is missing\nhelp: restore it from a copy of the archive")


def publish(folder: str, before: Snapshot, commit: Commit) -> Snapshot:
    """Make a commit, behind the last; the new snapshot. Raises OSError, and then nothing has been committed:
    FileExistsError where somebody else has made a commit of this number, but InDoubtError where nobody knows.
    """
    at_ms = max(_now_ms(), before.marks[-1].at_ms if before.marks else 0)  # clocks may be set back
    after = before.after(commit, at_ms)
    content: dict[str, Any] = {
        "number": after.number,
        "at_ms": at_ms,
        "what": commit.what,
        "arrivals": after.arrivals,
        "added": list(commit.added),
        "removed": list(commit.removed),
        "batch": commit.batch,
        "origins": list(map(astuple, commit.origins)),
        "statistics": _told(commit.statistics),
        "kept": dict(commit.kept),
        "token": secrets.token_hex(8),  # no two commits are the same, whoever makes them
    }
    if after.number % WHOLE == 0:
        after = replace(after, marks=_kept(after.marks, after.number - WHOLE))
        content["all"] = {
            "files": sorted(after.files),
            "marks": list(map(astuple, after.marks)),
            "statistics": _told(after.statistics),
            "kept": dict(after.kept),
        }
    place = os.path.join(folder, FOLDER)
    storage = storage_of(place)
    storage.make_folder(place)
    storage.create(_path(place, after.number), _sealed(content))
    if after.number % WHOLE == 0:
        _remove(place, after.number - WHOLE)
    return after


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _kept(marks: Iterable[Mark], since: int) -> tuple[Mark, ...]:
    """Which commits stay known: all since then, before that every `WHOLE`-th and those of ingests."""
    return tuple(m for m in marks if m.number >= since or m.number % WHOLE == 0 or m.batch is not None)


def _remove(place: str, below: int) -> None:
    for number in _numbers(place):
        if number < below:
            with contextlib.suppress(OSError):
                storage_of(place).remove(_path(place, number))


def _numbers(place: str) -> list[int]:
    try:
        names = [entry.name for entry in storage_of(place).entries(place)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Error(f"cannot read the log {place!r}: {error.strerror or error}") from None
    return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]


def _path(place: str, number: int) -> str:
    return os.path.join(place, f"{number:020}.json")


def _folded(place: str, last: int) -> Snapshot:
    snapshot = Snapshot()
    numbers = range(last - last % WHOLE, last + 1)
    for number, content in zip(numbers, _read_all(place, numbers)):
        try:
            if number % WHOLE == 0:
                every = content["all"]
                marks = tuple(_mark(*m) for m in every["marks"])
                there = dict(every.get("kept", {}))
                snapshot = Snapshot(number, frozenset(every["files"]), marks, _statistics(every), there)
                continue
            added, removed = tuple(content["added"]), tuple(content["removed"])
            origins = tuple(Origin(*origin) for origin in content["origins"])
            known = _statistics(content)
            what, arrivals, batch = content["what"], content["arrivals"], content["batch"]
            commit = Commit(what, added, removed, arrivals, batch, origins, known, dict(content.get("kept", {})))
            snapshot = snapshot.after(commit, content["at_ms"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Error(f"{_path(place, number)}: no manifest of an archive ({str(error)[:200]})") from None
    return snapshot


def _told(statistics: Mapping[str, Statistics]) -> dict[str, Any]:
    return {path: known.to_json() for path, known in statistics.items()}


def _statistics(content: Mapping[str, Any]) -> dict[str, Statistics]:
    """Those of a manifest; earlier versions wrote none."""
    return {path: Statistics.from_json(known) for path, known in content.get("statistics", {}).items()}


def _mark(number: int, at_ms: int, arrivals: int, batch: str | None, origins: Iterable[Iterable[Any]]) -> Mark:
    return Mark(number, at_ms, arrivals, batch, tuple(Origin(*origin) for origin in origins))


def _sealed(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True)
    return f'{{"checksum": "{zlib.crc32(text.encode()):08x}",\n"commit": {text}}}\n'.encode()


def _read_all(place: str, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The contents of manifests. FileNotFoundError where one is missing, Error where one is damaged."""
    paths = [_path(place, number) for number in numbers]
    try:
        texts = storage_of(place).read_all(paths)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Error(f"{place}: cannot be read: {str(error)[:200]}") from None
    return [_unsealed(path, text, number) for path, text, number in zip(paths, texts, numbers)]


def _unsealed(path: str, sealed: bytes, number: int) -> dict[str, Any]:
    """The inverse of `_sealed`. Error where the manifest is damaged."""
    try:
        data = json.loads(sealed)
        content: dict[str, Any] = data["commit"]
        text = json.dumps(content, sort_keys=True)
        if data["checksum"] != f"{zlib.crc32(text.encode()):08x}" or content["number"] != number:
            raise ValueError("its checksum is wrong")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise Error(f"{path}: cannot be read: {str(error)[:200]}") from None
    return content
