"""What an archive is: a folder with a metadata file and Parquet files of elements, partitioned by time.

    data/                              a folder of archives, each named after its stream, relation or query
        Pos/                           an archive (a name that is no plain word is percent-encoded)
            _archive.json              format and its version, name, kind, time unit, partition, columns
            _log/                      which files it holds: `archive.log`
            part=2013-01-01/           the elements of a day: those with one ts // partition_ticks
                1356998400000_1356999999999_0_4711_9f3a1c.parquet

A file's name says first ts, last ts, first arrival, last arrival, and a token that makes it unique. Every file has
the columns `_ts` (int64), `_arrival` (int64), `_sign` (int8), then the data columns under their `field` names, and is
sorted by (_ts, _arrival). Files of a partition may overlap in time; none crosses a partition. Partitions that are no
days are numbered. In archives of version 1 all are, in folders `_part=15706`, and the metadata are `archive.json`.

Types on disk: INTEGER int64; FLOAT double, never NaN nor -0.0; BOOLEAN boolean; TEXT string; TIMESTAMP, INTERVAL and
`_ts` int64, in ticks of the archive's time unit (TIMESTAMP and `_ts` since 1970 UTC); NULL int64, always null. So
every reader of Parquet sees the same numbers, whatever the unit.

`_arrival` is one sequence for the whole connection: (_ts, _arrival) is the order of docs/semantics T3. A relation's
elements are its changes. Invariant: a file under a name that ends in `.parquet` is whole; names with a leading dot
are nobody's business but the writer's, and other readers of Parquet pass over those with a leading underscore.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from minidsms.archive import unlogged
from minidsms.archive.atomic import sync_folder, write_bytes
from minidsms.archive.log import read_snapshot
from minidsms.cql.errors import Error, one_line, quoted
from minidsms.elements import Field, Schema, Type
from minidsms.settings import UNIT_NS

FORMAT = "minidsms-archive"
VERSION = 2
_METADATA = {1: "archive.json", 2: "_archive.json"}
_PARTITION = {1: "_part", 2: "part"}
OWN_COLUMNS = ("_ts", "_arrival", "_sign")
DAY_NS = 86_400_000_000_000

ARROW_TYPES = {Type.FLOAT: pa.float64(), Type.BOOLEAN: pa.bool_(), Type.TEXT: pa.string()}
_FILE = re.compile(r"(-?\d+)_(-?\d+)_(\d+)_(\d+)_[0-9a-f]+\.parquet")


@dataclass(frozen=True)
class Metadata:
    """What the metadata file says.

    kind: "stream" (every sign is +1) or "relation" (changes).  schema: names may repeat, as in a query's result.
    timestamp_by, key: column positions, as declared.
    """

    name: str
    kind: str
    time_unit: str
    schema: Schema
    partition_ticks: int
    timestamp_by: int | None = None
    key: tuple[int, ...] = ()
    version: int = VERSION

    @property
    def tick_ns(self) -> int:
        """Nanoseconds in a tick."""
        return UNIT_NS[self.time_unit]

    @property
    def fields(self) -> tuple[str, ...]:
        """The data columns' names in the files: the schema's, made unique whatever their case."""
        taken = set(OWN_COLUMNS) | {_PARTITION[self.version]}
        fields = []
        for name in self.schema.names:
            field, n = name, 2
            while field.lower() in taken:
                field, n = f"{name}_{n}", n + 1
            taken.add(field.lower())
            fields.append(field)
        return tuple(fields)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns of every file."""
        own = [pa.field("_ts", pa.int64()), pa.field("_arrival", pa.int64()), pa.field("_sign", pa.int8())]
        types = [ARROW_TYPES.get(t, pa.int64()) for t in self.schema.types]
        return pa.schema([*own, *[pa.field(f, t) for f, t in zip(self.fields, types)]])

    def to_json(self) -> str:
        """The text of the metadata file."""
        columns = [{"name": c.name, "type": c.type.value, "field": f} for c, f in zip(self.schema, self.fields)]
        return json.dumps(
            {
                "format": FORMAT,
                "version": self.version,
                "name": self.name,
                "kind": self.kind,
                "time_unit": self.time_unit,
                "partition_ticks": self.partition_ticks,
                "timestamp_by": self.timestamp_by,
                "key": list(self.key),
                "columns": columns,
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str, where: str) -> Metadata:
        """The inverse of `to_json`. Error, naming `where`, for anything else."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError(f"the format is {data['format']!r}")
            if data["version"] not in _METADATA:
                raise Error(f"{where}: version {data['version']} of the format; this minidsms reads up to {VERSION}")
            schema = Schema(tuple(Field(str(c["name"]), Type(c["type"])) for c in data["columns"]))
            by, key = data["timestamp_by"], tuple(int(k) for k in data["key"])
            read = cls(
                str(data["name"]),
                str(data["kind"]),
                str(data["time_unit"]),
                schema,
                int(data["partition_ticks"]),
                None if by is None else int(by),
                key,
                int(data["version"]),
            )
            if (
                read.kind not in ("stream", "relation")
                or read.time_unit not in UNIT_NS
                or not 0 < read.partition_ticks < 2**63
            ):
                raise ValueError("a value out of its range")
            return read
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Error(f"{where}: no metadata of an archive ({str(error)[:200]})") from None


@dataclass(frozen=True)
class ArchiveFile:
    """A Parquet file: its path and the ranges, both ends included, that its name tells."""

    path: str
    first_ts: int
    last_ts: int
    first_arrival: int
    last_arrival: int


@dataclass(frozen=True)
class Archive:
    """An archive that exists: its folder and what its metadata say."""

    folder: str
    metadata: Metadata

    def files(self, from_: int | None = None, to: int | None = None) -> list[ArchiveFile]:
        """The files that may hold elements with from_ <= ts <= to, ordered by first ts, then first arrival: those of
        the last snapshot.
        """
        found = [
            file
            for file in self._all_files()
            if (to is None or file.first_ts <= to) and (from_ is None or file.last_ts >= from_)
        ]
        return sorted(found, key=lambda f: (f.first_ts, f.first_arrival, f.path))

    def _all_files(self) -> list[ArchiveFile]:
        snapshot = read_snapshot(self.folder)
        if snapshot is None:
            return unlogged.files(self)
        return [file_of(os.path.join(self.folder, name)) for name in snapshot.files]

    def partition_of(self, file: ArchiveFile) -> int:
        """The number of the partition that a file is of."""
        return file.first_ts // self.metadata.partition_ticks

    def partitions(self) -> list[int]:
        """The numbers of the partitions, ascending."""
        return sorted({self.partition_of(file) for file in self._all_files()})

    def partition_folder(self, partition: int) -> str:
        """Where a partition's files lie."""
        metadata = self.metadata
        name = str(partition)
        if metadata.version > 1 and metadata.partition_ticks * metadata.tick_ns == DAY_NS:
            with contextlib.suppress(OverflowError):
                name = str(date(1970, 1, 1) + timedelta(days=partition))
        return os.path.join(self.folder, f"{_PARTITION[metadata.version]}={name}")


@contextlib.contextmanager
def readable(folder: str) -> Iterator[None]:
    """A folder of an archive is read; Error where it cannot be, or what stands in it is damaged."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise Error(f"cannot read the archive {folder!r}: {str(error)[:200]}") from None


def is_partition(name: str) -> bool:
    """Whether a folder of this name is a partition's."""
    return name.startswith(tuple(f"{prefix}=" for prefix in _PARTITION.values()))


def has_ranges(name: str) -> bool:
    """Whether a file's name tells its ranges, as the names that writers here give do."""
    return _FILE.fullmatch(name) is not None


def file_of(path: str) -> ArchiveFile:
    """A file of an archive: what its name tells, or its footer. Error where neither does."""
    match = _FILE.fullmatch(os.path.basename(path).removeprefix(".").removesuffix(".part"))
    return footer_ranges(path) if match is None else ArchiveFile(path, *map(int, match.groups()))


def footer_ranges(path: str) -> ArchiveFile:
    """A file that another writer (Spark) has named: its footer tells the ranges."""
    from pyarrow import parquet

    try:
        footer = parquet.read_metadata(path)
        columns = [(name, footer.schema.names.index(name)) for name in ("_ts", "_arrival")]
    except Exception as error:
        raise Error(f"{path}: it cannot be read as a file of an archive: {str(error)[:200]}") from None
    ranges = []
    for name, at in columns:
        groups = [footer.row_group(i).column(at).statistics for i in range(footer.num_row_groups)]
        if any(s is None or not s.has_min_max for s in groups):
            raise Error(f"{path}: the file lacks statistics of {one_line(name)}")
        ranges += [min((s.min for s in groups), default=0), max((s.max for s in groups), default=-1)]
    return ArchiveFile(path, *ranges)


def file_name(first_ts: int, last_ts: int, first_arrival: int, last_arrival: int) -> str:
    """A new file's name."""
    return f"{first_ts}_{last_ts}_{first_arrival}_{last_arrival}_{secrets.token_hex(4)}.parquet"


def default_partition_ticks(tick_ns: int) -> int:
    """A day, or 1,000 ticks where a day has fewer."""
    return max(DAY_NS // tick_ns, 1000)


def local(folder: str) -> str:
    """A folder of archives as a path: `file:` URLs are taken too. Error for a URL of any other kind."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", folder):
        return folder
    parts = urlsplit(folder)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise Error(
            f"{folder!r}: archives lie in folders of a file system, not at {parts.scheme}: addresses\n"
            "help: name a path or a file: URL; what lies elsewhere must be mounted"
        )
    return unquote(parts.path)


def folder_name(name: str) -> str:
    """The folder of an archive in its folder of archives."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def create(folder: str, metadata: Metadata) -> Archive:
    """Make the archive `metadata.name` in a folder of archives, or open it where it is there with the same columns.

    Error where it is there and is another, or the folder cannot be written.
    """
    folder = local(folder)
    place = os.path.join(folder, folder_name(metadata.name))
    if _metadata_file(place) is not None:
        there = open_archive(place)
        for what in ("kind", "time_unit"):
            old, new = getattr(there.metadata, what), getattr(metadata, what)
            if old != new:
                raise Error(f"{place}: there is an archive, and its {what.replace('_', ' ')} is {old}, not {new}")
        if there.metadata.schema != metadata.schema:
            raise Error(f"{place}: there is an archive with other columns\nhelp: it has {there.metadata.schema}")
        return there
    try:
        os.makedirs(place, exist_ok=True)
        write_bytes(os.path.join(place, _METADATA[VERSION]), metadata.to_json().encode())
        sync_folder(folder)
    except OSError as error:
        raise Error(f"cannot write the archive {place!r}: {error.strerror or error}") from None
    return Archive(place, metadata)


def open_archive(place: str) -> Archive:
    """The archive in its own folder. Error where there is none."""
    path = _metadata_file(place) or os.path.join(place, _METADATA[VERSION])
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be read"
        raise Error(f"{place!r} is no archive: {os.path.basename(path)}: {reason}") from None
    return Archive(place, Metadata.from_json(text, path))


def archives_in(folder: str) -> list[Archive]:
    """The archives of a folder, ordered by name; the folder itself where it is an archive. Error where there is no
    such folder.
    """
    folder = local(folder)
    if _metadata_file(folder) is not None:
        return [open_archive(folder)]
    try:
        places = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise Error(f"cannot read the folder {folder!r}: {error.strerror or error}") from None
    return [open_archive(place) for place in places if _metadata_file(place) is not None]


def _metadata_file(place: str) -> str | None:
    """The metadata file of an archive in its own folder; None where there is none."""
    paths = [os.path.join(place, name) for name in reversed(_METADATA.values())]
    return next((path for path in paths if os.path.exists(path)), None)


def find(folder: str, name: str) -> Archive:
    """The archive of the stream, relation or query of this name, whatever its case. Error where there is none."""
    archives = archives_in(folder)
    for archive in archives:
        if archive.metadata.name.lower() == name.lower():
            return archive
    names = ", ".join(one_line(a.metadata.name) for a in archives)
    there = f"there are: {names}" if archives else "there is none at all"
    raise Error(f"{folder!r} has no archive {quoted(name)}; {there}")


def columns_of(archive: Archive, names: Sequence[str] | None = None) -> list[Any]:
    """The fields of data columns by name, all of them by default."""
    metadata = archive.metadata
    if names is None:
        return list(metadata.fields)
    by_name = {name.lower(): field for name, field in zip(metadata.schema.names, metadata.fields)}
    return [by_name[name.lower()] for name in names]
