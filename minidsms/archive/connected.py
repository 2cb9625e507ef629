"""The part of a connection that has to do with archives: which streams, relations and queries are written where.

The archiver is made with the first archive; a connection without archives pays for one comparison per push.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from minidsms.cql.errors import Error
from minidsms.settings import interval_ticks

if TYPE_CHECKING:
    from minidsms.archive.archiver import Archiver
    from minidsms.archive.recorder import Recorder
    from minidsms.connection import Connection
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput
    from minidsms.query import Query


class Archiving:
    """What `Connection` can do with archives."""

    archiver: Archiver | None = None

    def archive(self, name: str, folder: str | None, partition: int | None = None, is_new: bool = False) -> None:
        """Write what a stream, relation or query brings from now on into a folder of archives; None: no longer.

        The archive is the folder's subfolder named like the stream; one that is there is continued where it has the
        same columns. partition: ticks of a partition of a new archive (default: a day, at least 1,000 ticks). A
        relation's archive begins with its present rows; is_new: a query's with all its answers that nobody has taken.
        Error where the folder cannot be written, or another writer
        has the archive.  docs/archives.md.
        """
        db = cast("Connection", self)
        with db.lock:
            db._check()
            target = _target(db, name)
            if folder is None:
                self.stop_archiving(target)
            elif not folder.strip():
                raise Error("ARCHIVE names no folder")
            elif target.recorder is not None:
                raise Error(f"{name} is archived already, in {target.recorder.archive.folder!r}")
            else:
                _attach(db, target, os.path.abspath(folder), partition, is_new)

    def flush(self) -> None:
        """Return when all that has been pushed before is in the archives, on disk. Error where it cannot be written."""
        if self.archiver is not None:
            self.archiver.flush()

    def stop_archiving(self, target: StreamInput | RelationInput | Query | None) -> None:
        """Write what waits of one stream, relation or query, and archive it no longer."""
        if target is not None and target.recorder is not None and self.archiver is not None:
            recorder, target.recorder = target.recorder, None
            self.archiver.detach(recorder)

    def close_archives(self) -> None:
        """Write what waits and stop the archiver."""
        if self.archiver is not None:
            self.archiver.close()


def _target(db: Connection, name: str) -> StreamInput | RelationInput | Query:
    """The stream, relation or query of this name."""
    if name.lower() in db.queries:
        if db.catalog.kind_of(name) is not None:
            raise Error(f"{name} is a query and a {db.catalog.kind_of(name)}; give the query another name")
        return db.queries[name.lower()]
    return db.stream_input(name)


def _attach(
    db: Connection, target: StreamInput | RelationInput | Query, folder: str, partition: int | None, is_new: bool
) -> None:
    from minidsms.archive.archiver import Archiver
    from minidsms.archive.format import Metadata, create, default_partition_ticks
    from minidsms.archive.recorder import Recorder
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput

    if partition is not None and partition < 1:
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
    if archive.metadata.kind == "relation" and archive.partitions():
        _check_continued(target, archive.folder)
    if db.archiver is None:
        db.archiver = Archiver(db.settings["archive_rows"], _seconds(db.settings["archive_interval"], db.tick_ns))
        # A program that ends without closing the connection still finds everything on disk.
        weakref.finalize(db, db.archiver.close)
    recorder = Recorder(db.archiver, archive, db.dictionary, _progress(target))
    db.archiver.attach(recorder)
    recorder.must_resume = archive.metadata.kind == "relation" and bool(archive.partitions())
    _begin(target, recorder, is_new)
    target.recorder = recorder


def _seconds(interval: int | str, tick_ns: int) -> float:
    ticks_ns = 1 if isinstance(interval, str) and " " in interval else tick_ns
    return interval_ticks(interval, 1) * ticks_ns / 1e9


def _check_continued(target: StreamInput | RelationInput | Query, place: str) -> None:
    """A relation's archive can be continued only by who knows its rows."""
    from minidsms.inputs.relation_input import RelationInput

    if not isinstance(target, RelationInput) or target.store.size:
        raise Error(
            f"{place!r} holds the changes of an earlier run, which these would not follow\nhelp: name another folder"
        )


def _progress(target: StreamInput | RelationInput | Query) -> Callable[[], int | None]:
    """What gives the greatest closed instant. It holds no connection: the archiver outlives it."""
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput

    if isinstance(target, StreamInput):
        stream = target
        return lambda: stream.progress
    if isinstance(target, RelationInput):
        return lambda: None
    network = target.network
    return lambda: network.progress


def _begin(target: StreamInput | RelationInput | Query, recorder: Recorder, is_new: bool) -> None:
    """A relation's archive begins with the rows that are there."""
    from minidsms.inputs.relation_input import RelationInput
    from minidsms.inputs.stream_input import StreamInput

    if isinstance(target, RelationInput):
        if not recorder.must_resume:
            recorder.add_batch(target.present())
    elif not isinstance(target, StreamInput):
        for batch in target.delivered(is_new):
            recorder.add_batch(batch)
