"""The part of a connection that has to do with archives: which streams, relations and queries are written where.

The archiver is made with the first archive; a connection without archives pays for one comparison per push.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from minidsms.cql.errors import Error, one_line
from minidsms.engine.database import Database
from minidsms.process.interrupts import held, let_through
from minidsms.settings import interval_ticks
from minidsms.statements.arguments import name_of, path_of

if TYPE_CHECKING:
    from minidsms.archive.backfill import Past
    from minidsms.archive.format import Archive, AsOf
    from minidsms.archive.recorder import Recorder
    from minidsms.archive.replay import Replaying
    from minidsms.archive.replay_source import ReplaySource
    from minidsms.connection import Connection
    from minidsms.elements import Schema
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput
    from minidsms.query import Query
    from minidsms.settings import Settings
    from minidsms.sources.source import Source

_LOOK_S = 0.1
"""Who waits for the end of a replay looks so often whether there was an interrupt."""


class Archiving(Database):
    """What `Connection` can do with archives."""

    kept_pasts: Mapping[str, Past] | None = None
    """By input, in lower case: what the query WITH BACKFILL begins with that is being registered; None: archives."""

    def __init__(self, clock: Callable[[], int] | None = None, **options: Any) -> None:
        self.replaying: Replaying | None = None
        super().__init__(clock, **options)
        self._replay_ended = threading.Condition(self.lock.inner)

    def archive(
        self, name: str, folder: str | os.PathLike[str] | None, partition: int | None = None, is_new: bool = False
    ) -> None:
        """Write what a stream, relation or query brings from now on into a folder of archives; None: no longer.

        The archive is the folder's subfolder named like the stream; one that is there is continued where it has the
        same columns. partition: ticks of a partition of a new archive (default: a day, at least 1,000 ticks). A
        relation's archive begins with its present rows; is_new: a query's with all its answers that nobody has taken.
        Error where the folder cannot be written, or another writer has the archive.  docs/archives.md.
        """
        from minidsms.archive.storage import absolute

        db = cast("Connection", self)
        with db.lock:
            db._check()
            target = target_of(db, name_of(name))
            folder = None if folder is None else path_of(folder)
            if folder is None:
                self.stop_archiving(target)
            elif not folder.strip():
                raise Error("ARCHIVE names no folder")
            elif not db.safety.allows(folder):
                db.safety.check_path(folder)
            elif target.recorder is not None:
                raise Error(f"{one_line(name)} is archived already, in {target.recorder.archive.folder!r}")
            else:
                _attach(db, target, absolute(folder), partition, is_new)

    def check_archive_instead_of(self, query: Query, folder: str, name: str, kind: str, schema: Schema) -> None:
        """Error where a query of this kind and columns that takes the place of another one cannot be archived there."""
        from minidsms.archive.format import Metadata, create, default_partition_ticks, going_on
        from minidsms.archive.recorder import is_written_to
        from minidsms.archive.storage import absolute, storage_of

        db = cast("Connection", self)
        if not folder.strip():
            raise Error("ARCHIVE names no folder")
        if not db.safety.allows(folder):
            db.safety.check_path(folder)
        folder = absolute(folder)
        ticks = default_partition_ticks(db.tick_ns)
        metadata = Metadata(name, kind, db.settings["time_unit"], schema, ticks)
        found = going_on(folder, metadata)
        archive = create(folder, metadata) if found is None else found[0]
        written = () if db.archiver is None else db.archiver.recorders()
        recorder = query.recorder
        if recorder in written and is_written_to(recorder, archive.folder):
            self.flush()
        else:
            storage_of(archive.folder).lock(archive.folder).release()
        if kind == "relation" and archive.partitions():
            _check_continued(query, archive.folder)

    def recorded(
        self, archive: Archive, target: StreamInput | RelationInput | Query, progress: Callable[[], int | None]
    ) -> Recorder:
        """What records into an archive from now on. Error where another writer has it."""
        from minidsms.archive.recorder import Recorder

        assert self.archiver is not None
        recorder = Recorder(self.archiver, archive, self.dictionary, progress)
        self.archiver.attach(recorder)
        try:
            recorder.must_resume = archive.metadata.kind == "relation" and bool(archive.partitions())
        except BaseException:
            self.archiver.forget(recorder)
            raise
        return recorder

    def flush(self) -> None:
        """Return when all that has been pushed before is in the archives, on disk. Error where it cannot be written."""
        cast("Connection", self).check_process()
        if self.archiver is not None:
            with held:
                self.archiver.flush()

    def replay(
        self,
        folder: str | os.PathLike[str],
        names: Sequence[str] | None = None,
        *,
        from_: int | str | None = None,
        to: int | str | None = None,
        speed: float | None = None,
        engine: str = "local",
        push_down: bool = True,
        follow: bool = False,
        as_of: AsOf | None = None,
        progress: Callable[[float], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> int:
        """Push the elements of archives, in the order of event time; returns how many were pushed.

        folder: an archive, or a folder of archives; names: which streams and relations (default: all that are
        declared). from_, to: instants, both included; a relation is replayed from its beginning.  speed: times real
        time (default: as fast as can be).  engine: "local" (pyarrow) or "spark".  push_down: leave out rows and columns
        that no registered query needs.  follow: then go on with what the archives' writers add, until `stop()` is true.
        as_of: the archives as they were behind a commit: its number, or a time (of the wall; ISO text or datetime).
        progress: called now and then with the fraction done.

        The streams go on afterwards: pushes of other threads wait for the end of the replay and follow without a seam.
        Error where archive and declaration do not fit; DataError and LateElementError as `push` raises them.
        """
        from minidsms.archive.replay import Options, Replay

        db = cast("Connection", self)
        folder = path_of(folder)
        with db.lock:
            db._check()
            db.safety.check_place(folder)
            if engine != "local":
                db.safety.check_spark()
            ends = [None if ts is None else db._instant("replay", ts) for ts in (from_, to)]
        if isinstance(names, str):
            raise Error(f"names is a list of names, such as [{names!r}]")
        names = None if names is None else list(map(name_of, names))
        if speed is not None and not (isinstance(speed, int | float) and 0 < speed < math.inf):
            raise Error("speed is a number above 0: how many times faster than real time")
        if follow and as_of is not None:
            raise Error("a replay as_of an earlier commit has an end; leave out follow")
        options = Options(ends[0], ends[1], speed, engine, push_down, follow, as_of)
        return Replay(db, folder, names, options, progress, stop).run()

    def replay_span(
        self, target: StreamInput | RelationInput, archive: Archive, told: Mapping[str, Any], end: int
    ) -> tuple[int, int]:
        """The arrivals between which a replay up to an arrival reads: where it is gone on with, only a part of them.
        told: what is replayed.
        """
        return 0, end

    def begin_replay(
        self,
        target: StreamInput | RelationInput,
        told: Mapping[str, Any],
        arrivals: tuple[int, int],
        source: ReplaySource,
    ) -> None:
        """An archive is going to be replayed between two arrivals."""

    def finish_replay(self, sources: Sequence[tuple[Source, StreamInput | RelationInput]]) -> None:
        """What was to be replayed together has been."""

    def heartbeat(self, stream: StreamInput, ts: int) -> None:
        """A heartbeat of a stream that is being replayed."""
        db = cast("Connection", self)
        with db.lock:
            db._check()
            stream.heartbeat(ts)
            told = db._step(stream.definition.name.lower())
        if told:
            db._callbacks.tell()

    def await_replay(self, name: str | None) -> None:
        """Wait, with the lock, until a replay into this stream or relation (None: into any) has ended."""
        while self.replaying is not None and (name is None or name in self.replaying.names):
            if self.replaying.thread == threading.get_ident():
                target = "a stream" if name is None else one_line(name)
                raise Error(f"{target} is being replayed; push and advance when the replay has ended")
            self._replay_ended.wait(_LOOK_S)
            let_through()

    def end_replay(self) -> None:
        """Let the pushes that wait go on. Called with the lock."""
        self.replaying = None
        self._replay_ended.notify_all()

    def check_registration(self, streams: Iterable[str], with_history: bool) -> None:
        """Error where a query that begins now would miss what a replay leaves out for want of a reader."""
        from minidsms.inputs.stream_input import StreamInput

        db = cast("Connection", self)
        for name in streams:
            if self.replaying is not None and self.replaying.pushes_down and name.lower() in self.replaying.names:
                raise Error(
                    f"{name} is being replayed with only what the queries registered before need\n"
                    "help: register the query before the replay, or replay with push_down=False"
                )
            stream = db.stream_input(name)
            if with_history and isinstance(stream, StreamInput) and stream.lacks_rows():
                raise lacking("WITH HISTORY", name)

    def close_archives(self) -> None:
        """Write what waits and stop the archiver."""
        if self.archiver is not None:
            self.archiver.close()


def lacking(what: str, stream: str) -> Error:
    """Why a query cannot begin with what came of a stream."""
    return Error(
        f"{what}: {stream} was replayed with only what the queries registered before need\n"
        "help: replay with push_down=False"
    )


def target_of(db: Connection, name: str) -> StreamInput | RelationInput | Query:
    """The stream, relation or query of this name."""
    if name.lower() in db.queries:
        if db.catalog.kind_of(name) is not None:
            kind = db.catalog.kind_of(name)
            raise Error(f"{one_line(name)} is a query and a {kind}; give the query another name")
        return db.queries[name.lower()]
    return db.stream_input(name)


def is_archived_in(query: Query, folder: str) -> bool:
    """Whether a query writes its archive of a folder of archives. Error where that is lost."""
    from minidsms.archive.format import folder_name
    from minidsms.archive.recorder import is_written_to
    from minidsms.archive.storage import absolute

    return is_written_to(query.recorder, os.path.join(absolute(folder), folder_name(query.name)))


def _attach(
    db: Connection, target: StreamInput | RelationInput | Query, folder: str, partition: int | None, is_new: bool
) -> None:
    from minidsms.archive.archiver import Archiver
    from minidsms.archive.format import Metadata, create, default_partition_ticks
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput

    if partition is not None and not (isinstance(partition, int) and partition >= 1):
        raise Error("partition is a number of ticks, at least 1")
    ticks = partition or default_partition_ticks(db.tick_ns)
    unit = db.settings["time_unit"]
    if isinstance(target, StreamInput):
        definition = target.definition
        if definition.is_system:
            raise Error(f"{definition.name} is written by the engine; archive a query over it")
        by = definition.timestamp_by
        metadata = Metadata(definition.name, "stream", unit, target.schema, ticks, by, definition.key)
    elif isinstance(target, RelationInput):
        declared = target.definition
        metadata = Metadata(declared.name, "relation", unit, target.schema, ticks, None, declared.key)
    else:
        metadata = Metadata(target.name, target.kind, unit, target.schema, ticks)
    archive = create(folder, metadata)
    if isinstance(target, StreamInput | RelationInput):
        _check_not_read(db, target, archive.folder)
    if archive.metadata.kind == "relation" and archive.partitions() and not db.is_replayed:
        _check_continued(target, archive.folder)
    if db.archiver is None:
        interval_s = _seconds(db.settings["archive_interval"], db.tick_ns)
        db.archiver = Archiver(db.settings["archive_rows"], interval_s, _retention(db.settings, db.tick_ns))
        weakref.finalize(db, db.archiver.let_go).atexit = False
    recorder = db.recorded(archive, target, _progress(target))
    try:
        if not isinstance(target, StreamInput | RelationInput):
            target.stand_alone()
        begin(target, recorder, is_new)
    except BaseException:
        db.archiver.forget(recorder)
        raise
    target.recorder = recorder


def _check_not_read(db: Connection, target: StreamInput | RelationInput, place: str) -> None:
    """Error where archives are being read into an input that is to be archived: some of it would be written again, or
    without what nobody needs.
    """
    from minidsms.archive.replay_source import ReplaySource
    from minidsms.archive.storage import is_same

    name = target.definition.name
    if db.replaying is not None and name.lower() in db.replaying.names:
        raise Error(f"{one_line(name)} is being replayed\nhelp: archive it before the replay, or behind it")
    for source in db.reading.of(target):
        if isinstance(source, ReplaySource) and is_same(source.path, place):
            hint = "leave FROM out, and db.replay(..) what is there"
            raise Error(
                f"{one_line(name)} is read FROM {place!r}, and what is there would be written again\nhelp: {hint}"
            )


def _seconds(interval: int | str, tick_ns: int) -> float:
    ticks_ns = 1 if isinstance(interval, str) and " " in interval else tick_ns
    return interval_ticks(interval, 1) * ticks_ns / 1e9


def _retention(settings: Settings, tick_ns: int) -> Callable[[], int | None]:
    """What gives archive_retention in ticks. It holds no connection: the archiver outlives it."""

    def ticks() -> int | None:
        kept = settings["archive_retention"]
        return None if kept is None else interval_ticks(kept, tick_ns)

    return ticks


def _check_continued(target: StreamInput | RelationInput | Query, place: str) -> None:
    """A relation's archive can be continued only by who knows its rows."""
    from minidsms.inputs.relation_input import RelationInput

    if not isinstance(target, RelationInput) or target.store.size:
        first = "archive it while it has no rows, then db.replay(..); or " if isinstance(target, RelationInput) else ""
        reason = f"{place!r} holds the changes of an earlier run, which these would not follow"
        raise Error(f"{reason}\nhelp: {first}name another folder")


def _progress(target: StreamInput | RelationInput | Query) -> Callable[[], int | None]:
    """What gives the greatest closed instant, while the target is there: the archiver outlives the connection."""
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput

    if isinstance(target, RelationInput):
        return lambda: None
    told = weakref.ref(target if isinstance(target, StreamInput) else target.network)

    def progress() -> int | None:
        there = told()
        return None if there is None else there.progress

    return progress


def begin(target: StreamInput | RelationInput | Query, recorder: Recorder, is_new: bool) -> None:
    """A relation's archive begins with the rows that are there."""
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput

    if isinstance(target, RelationInput):
        if not recorder.must_resume:
            recorder.add_batch(target.present())
    elif not isinstance(target, StreamInput):
        for batch in target.delivered(is_new):
            recorder.add_batch(batch)
