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
`_ts` int64, in ticks of the archive's time unit (TIMESTAMP and `_ts` since 1970 UTC); NULL int64, always null; DECIMAL,
DATE, TIME (microseconds), LIST, STRUCT and MAP Parquet's own, of these within. So every reader of Parquet sees the same
values, whatever the unit.

A declaration with more columns, or with FLOAT for INTEGER, changes the metadata and no file: what a file lacks is NULL.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from minidsms.archive import unlogged
from minidsms.archive.atomic import sync_folder
from minidsms.archive.log import Mark, read_snapshot
from minidsms.archive.progress import Progress, read_progress, write_progress
from minidsms.archive.statistics import Statistics
from minidsms.archive.storage import is_address, located, storage_of, write_bytes
from minidsms.cql.errors import Error, one_line, quoted, saying
from minidsms.cql.times import NotATime, iso_ticks
from minidsms.cql.words import TICK_NS
from minidsms.elements import Field, Schema, Type
from minidsms.values.arrow_types import stored_type

FORMAT = "minidsms-archive"
VERSION = 2
_METADATA = {1: "archive.json", 2: "_archive.json"}
_PARTITION = {1: "_part", 2: "part"}
OWN_COLUMNS = ("_ts", "_arrival", "_sign")
DAY_NS = 86_400_000_000_000

_FILE = re.compile(r"(-?\d+)_(-?\d+)_(\d+)_(\d+)_[0-9a-f]+\.parquet")


@dataclass(frozen=True)
class Metadata:
    """What the metadata file says.

    kind: "stream" (every sign is +1) or "relation" (changes).  schema: names may repeat, as in a query's result.
    timestamp_by, key: column positions, as declared.  earlier: schemas that files may still have.  id: tells it from
    an archive that has been in the same place before; "" where an earlier version made it.
    """

    name: str
    kind: str
    time_unit: str
    schema: Schema
    partition_ticks: int
    timestamp_by: int | None = None
    key: tuple[int, ...] = ()
    version: int = VERSION
    earlier: tuple[Schema, ...] = ()
    id: str = ""

    @property
    def tick_ns(self) -> int:
        """Nanoseconds in a tick."""
        return TICK_NS[self.time_unit]

    @property
    def fields(self) -> tuple[str, ...]:
        """The data columns' names in the files: the schema's, made unique whatever their case."""
        return self._fields(self.schema)

    def _fields(self, schema: Schema) -> tuple[str, ...]:
        return schema.unique_names((*OWN_COLUMNS, _PARTITION[self.version]))

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns of every new file."""
        return self._arrow(self.schema)

    @property
    def arrow_schemas(self) -> list[pa.Schema]:
        """The columns that a file may have: those of new ones first."""
        return [self._arrow(schema) for schema in (self.schema, *self.earlier)]

    def _arrow(self, schema: Schema) -> pa.Schema:
        own = [pa.field("_ts", pa.int64()), pa.field("_arrival", pa.int64()), pa.field("_sign", pa.int8())]
        types = map(stored_type, schema.types)
        return pa.schema([*own, *[pa.field(f, t) for f, t in zip(self._fields(schema), types)]])

    @property
    def has_widened(self) -> bool:
        """Whether a file may have whole numbers where others have FLOAT."""
        now = self.arrow_schema
        return any(now.field(f.name).type != f.type for schema in self.arrow_schemas for f in schema)

    def evolved(self, declared: Metadata) -> Metadata | None:
        """These metadata with the columns of a declaration that has more, or FLOAT for INTEGER; None for any other."""
        for schema in (self.schema, declared.schema):
            if len({name.lower() for name in schema.names}) < len(schema):
                return None
        types = dict(zip(declared.fields, declared.schema.types))
        for name, type_ in zip(self.fields, self.schema.types):
            if types.get(name) is not type_ and (type_, types.get(name)) != (Type.INTEGER, Type.FLOAT):
                return None
        earlier = (self.schema, *self.earlier)
        by, key = declared.timestamp_by, declared.key
        return replace(self, schema=declared.schema, timestamp_by=by, key=key, earlier=earlier)

    def to_json(self) -> str:
        """The text of the metadata file."""
        columns = [{"name": c.name, "type": str(c.type), "field": f} for c, f in zip(self.schema, self.fields)]
        earlier = [[{"name": c.name, "type": str(c.type)} for c in schema] for schema in self.earlier]
        return json.dumps(
            {
                "format": FORMAT,
                "version": self.version,
                "id": self.id,
                "name": self.name,
                "kind": self.kind,
                "time_unit": self.time_unit,
                "partition_ticks": self.partition_ticks,
                "timestamp_by": self.timestamp_by,
                "key": list(self.key),
                "columns": columns,
                "earlier": earlier,
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
            schema = _schema(data["columns"])
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
                tuple(map(_schema, data.get("earlier", ()))),
                str(data.get("id", "")),
            )
            if (
                read.kind not in ("stream", "relation")
                or read.time_unit not in TICK_NS
                or not 0 < read.partition_ticks < 2**63
            ):
                raise ValueError("a value out of its range")
            return read
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Error(f"{where}: no metadata of an archive ({str(error)[:200]})") from None


def _schema(columns: Sequence[Any]) -> Schema:
    return Schema(tuple(Field(str(c["name"]), _type(c["type"])) for c in columns))


def _type(name: object) -> Type:
    """The type of a column of an archive."""
    from minidsms.cql.parser import parse_type

    try:
        return Type.NULL if name == Type.NULL.name else parse_type(str(name))
    except Error:
        raise ValueError(f"{name!r} is no type") from None


@dataclass(frozen=True)
class ArchiveFile:
    """A Parquet file: its path and the ranges, both ends included, that its name tells. statistics: what the log tells
    of its columns; None: nothing.
    """

    path: str
    first_ts: int
    last_ts: int
    first_arrival: int
    last_arrival: int
    statistics: Statistics | None = field(default=None, compare=False)


AsOf = int | str | datetime
"""Which commit of an archive: its number, or the last at a time (ISO text; without an offset it is UTC)."""


@dataclass(frozen=True)
class Archive:
    """An archive that exists: its folder and what its metadata say.

    end_arrival: only elements with arrivals below are seen, as they were at an earlier commit; None: all.  pinned: the
    files are these, whatever has been committed since; None: those of the last snapshot.
    """

    folder: str
    metadata: Metadata
    end_arrival: int | None = None
    pinned: tuple[ArchiveFile, ...] | None = None

    def pin(self) -> Archive:
        """The archive with the files that it has now: whoever reads them later gets these elements, or an error."""
        return replace(self, pinned=in_time_order(self._seen_files()))

    def as_of(self, when: AsOf | None) -> Archive:
        """The archive as it was behind a commit, less what retention has removed since. Error where the log does not
        know.
        """
        if when is None:
            return self
        snapshot = read_snapshot(self.folder)
        if snapshot is None or not snapshot.marks:
            raise Error(f"{self.folder!r} has no log, so nothing is known of earlier commits")
        return replace(self, end_arrival=_arrivals(self.folder, snapshot.marks, when))

    def files(self, from_: int | None = None, to: int | None = None) -> list[ArchiveFile]:
        """The files that may hold elements with from_ <= ts <= to, ordered by first ts, then first arrival: those of
        the last snapshot, or of the one that was pinned.
        """
        found = [
            file
            for file in self._seen_files()
            if (to is None or file.first_ts <= to) and (from_ is None or file.last_ts >= from_)
        ]
        return list(in_time_order(found))

    def _seen_files(self) -> list[ArchiveFile]:
        """All files, with the ranges of what is seen of them."""
        if self.pinned is not None:
            return list(self.pinned)
        if self.end_arrival is None:
            return self._all_files()
        from minidsms.archive.files import ranges_below

        before = [file for file in self._all_files() if file.first_arrival < self.end_arrival]
        seen = [f if f.last_arrival < self.end_arrival else ranges_below(f, self.end_arrival) for f in before]
        return [file for file in seen if file is not None]

    def _all_files(self) -> list[ArchiveFile]:
        snapshot = read_snapshot(self.folder)
        if snapshot is None:
            return unlogged.files(self)
        known = snapshot.statistics
        return [replace(file_of(os.path.join(self.folder, n)), statistics=known.get(n)) for n in snapshot.files]

    @property
    def identity(self) -> str:
        """What tells it from other archives that are, or have been, in the same place; "" where nothing does."""
        if self.metadata.id:
            return self.metadata.id
        snapshot = read_snapshot(self.folder)
        return str(snapshot.marks[0].at_ms) if snapshot is not None and snapshot.marks else ""

    @property
    def progress(self) -> Progress | None:
        """What the last writer said, None where it said nothing. Error where that is damaged."""
        return read_progress(self.folder, self.metadata.version)

    def tell_progress(self, progress: Progress) -> None:
        """Replace what was said before. Raises OSError."""
        write_progress(self.folder, self.metadata.version, progress)

    @property
    def reached(self) -> int:
        """No later element has an arrival below."""
        snapshot, progress = read_snapshot(self.folder), self.progress
        ends = [file.last_arrival + 1 for file in self._all_files()] if snapshot is None else [snapshot.arrivals]
        return max((*ends, 0 if progress is None else progress.arrivals), default=0)

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


def _arrivals(folder: str, marks: Sequence[Mark], when: AsOf) -> int:
    """How far the archive reached at a commit."""
    if isinstance(when, bool) or not isinstance(when, int | str | datetime):
        raise Error(f"as_of is the number of a commit, an ISO time or a datetime, not {type(when).__name__}")
    if isinstance(when, int):
        for mark in marks:
            if mark.number == when:
                return mark.arrivals
        raise Error(
            f"{folder!r}: the log knows no commit {when}; the last is {marks[-1].number}\n"
            "help: minidsms archive inspect --log shows those that it knows"
        )
    if isinstance(when, datetime):
        when = (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).isoformat()
    try:
        at_ms = iso_ticks(when, 1) // 1_000_000
    except NotATime as error:
        raise Error(
            f"as_of: {error}\nhelp: give a time such as 2013-01-31T12:00:00, or the number of a commit"
        ) from None
    before = [mark for mark in marks if mark.at_ms <= at_ms]
    if not before and (marks[0].number > 0 or marks[0].arrivals):
        raise Error(f"{folder!r}: the log does not reach back to {when}")
    return before[-1].arrivals if before else 0


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


def partition_folders(folder: str) -> list[str]:
    """The folders of the partitions of an archive in its own folder."""
    with readable(folder):
        found = storage_of(folder).entries(folder)
    return [os.path.join(folder, entry.name) for entry in found if entry.is_folder and is_partition(entry.name)]


def has_ranges(name: str) -> bool:
    """Whether a file's name tells its ranges, as the names that writers here give do."""
    return _FILE.fullmatch(name) is not None


def file_of(path: str) -> ArchiveFile:
    """A file of an archive: what its name tells, or its footer. Error where neither does."""
    match = _FILE.fullmatch(os.path.basename(path).removeprefix(".").removesuffix(".part"))
    if match is None:
        return footer_ranges(path)
    first_ts, last_ts, first_arrival, last_arrival = map(int, match.groups())
    return ArchiveFile(path, first_ts, last_ts, first_arrival, last_arrival)


def footer_ranges(path: str) -> ArchiveFile:
    """A file that another writer (Spark) has named: its footer tells the ranges."""
    from pyarrow import parquet

    try:
        inside, system = storage_of(path).arrow(path)
        footer = parquet.read_metadata(inside, filesystem=system)
        columns = [(name, footer.schema.names.index(name)) for name in ("_ts", "_arrival")]
    except Exception as error:
        raise Error(f"{path}: it cannot be read as a file of an archive: {str(error)[:200]}") from None
    ranges: list[int] = []
    for name, at in columns:
        groups = [footer.row_group(i).column(at).statistics for i in range(footer.num_row_groups)]
        if any(s is None or not s.has_min_max for s in groups):
            raise Error(f"{path}: the file lacks statistics of {one_line(name)}")
        ranges += [min((s.min for s in groups), default=0), max((s.max for s in groups), default=-1)]
    first_ts, last_ts, first_arrival, last_arrival = ranges
    return ArchiveFile(path, first_ts, last_ts, first_arrival, last_arrival)


def in_time_order(files: Iterable[ArchiveFile]) -> tuple[ArchiveFile, ...]:
    """Files by first ts, then first arrival."""
    return tuple(sorted(files, key=lambda f: (f.first_ts, f.first_arrival, f.path)))


def file_name(first_ts: int, last_ts: int, first_arrival: int, last_arrival: int) -> str:
    """A new file's name."""
    return f"{first_ts}_{last_ts}_{first_arrival}_{last_arrival}_{secrets.token_hex(4)}.parquet"


def default_partition_ticks(tick_ns: int) -> int:
    """A day, or 1,000 ticks where a day has fewer."""
    return max(DAY_NS // tick_ns, 1000)


def folder_name(name: str) -> str:
    """The folder of an archive in its folder of archives."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def create(folder: str, metadata: Metadata) -> Archive:
    """Make the archive `metadata.name` in a folder of archives, or open it where it is there with the same columns.

    Where the columns are those that are there and more, or FLOAT for INTEGER, the archive has them from now on.
    Error where it is there and is another, or the folder cannot be written.
    """
    folder = located(folder)
    place = os.path.join(folder, folder_name(metadata.name))
    found = going_on(folder, metadata)
    if found is not None:
        there, evolved = found
        return there if evolved == there.metadata else _evolve(there.folder, folder, metadata)
    with saying(f"cannot write the archive {place!r}"):
        metadata = replace(metadata, id=secrets.token_hex(8))
        storage_of(place).make_folder(place)
        write_bytes(os.path.join(place, _METADATA[VERSION]), metadata.to_json().encode())
        if not is_address(folder):
            sync_folder(folder)
    return Archive(place, metadata)


def going_on(folder: str, metadata: Metadata) -> tuple[Archive, Metadata] | None:
    """(the archive that `create` opens, what it is to be from then on); None where none is there. Error where that is
    another.
    """
    place = os.path.join(folder, folder_name(metadata.name))
    there = _opened(place)
    if there is None:
        return None
    for what in ("kind", "time_unit"):
        old, new = getattr(there.metadata, what), getattr(metadata, what)
        if old != new:
            raise Error(f"{place}: there is an archive, and its {what.replace('_', ' ')} is {old}, not {new}")
    if there.metadata.schema == metadata.schema:
        return there, there.metadata
    evolved = there.metadata.evolved(metadata)
    if evolved is None:
        hint = "columns may be added, and INTEGER may become FLOAT"
        has = one_line(str(there.metadata.schema))
        raise Error(f"{there.folder}: there is an archive with other columns\nhelp: it has {has}; {hint}")
    return there, evolved


def _evolve(place: str, folder: str, metadata: Metadata) -> Archive:
    """Give the archive in `place` the columns of what it is to be."""
    lock = storage_of(place).lock(place)
    try:
        found = going_on(folder, metadata)  # another process may have added some since
        assert found is not None
        there, evolved = found
        if evolved != there.metadata:
            write_bytes(os.path.join(place, _METADATA[evolved.version]), evolved.to_json().encode())
    except OSError as error:
        raise Error(f"cannot write the archive {place!r}: {error.strerror or error}") from None
    finally:
        lock.release()
    return Archive(place, evolved)


def archives_in(folder: str, as_of: AsOf | None = None) -> list[Archive]:
    """The archives of a folder, ordered by name; the folder itself where it is an archive. as_of: at which commit.

    Error where there is no such folder.
    """
    folder = located(folder)
    whole = _opened(folder)
    if whole is not None:
        return [whole.as_of(as_of)]
    with saying(f"cannot read the folder {folder!r}"):
        found = storage_of(folder).entries(folder)
        places = sorted(os.path.join(folder, entry.name) for entry in found if entry.is_folder)
    there = [archive for place in places if (archive := _opened(place)) is not None]
    if isinstance(as_of, int) and len(there) > 1:
        named = f"name one archive, such as {there[0].folder!r}, or a time"
        raise Error(f"every archive numbers its commits itself\nhelp: {named}")
    return [archive.as_of(as_of) for archive in there]


def _opened(place: str) -> Archive | None:
    """The archive in its own folder; None where there is none. Error where it cannot be read."""
    for name in reversed(_METADATA.values()):
        path = os.path.join(place, name)
        try:
            text = storage_of(path).read(path).decode()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except UnicodeDecodeError:
            raise Error(f"{place!r} is no archive: {name}: it cannot be read") from None
        except OSError as error:
            raise Error(f"cannot read {place!r}: {str(error)[:200]}") from None
        return Archive(place, Metadata.from_json(text, path))
    return None


def find(folder: str, name: str, as_of: AsOf | None = None) -> Archive:
    """The archive of the stream, relation or query of this name, whatever its case. Error where there is none."""
    archives = archives_in(folder)
    for archive in archives:
        if archive.metadata.name.lower() == name.lower():
            return archive.as_of(as_of)
    names = ", ".join(one_line(a.metadata.name) for a in archives)
    there = f"there are: {names}" if archives else "there is none at all"
    raise Error(f"{folder!r} has no archive {quoted(name)}; {there}")
