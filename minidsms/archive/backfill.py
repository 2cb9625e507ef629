"""BACKFILL: a query's past from archives, then its present from the live streams, without a gap or a duplicate.

The query reads inputs of its own: twins of the streams and relations it names, filled from the archives and from then
on with everything that their live inputs take in (`StreamStore.mirrors`). No other query sees the past.

Invariant: at the seam the twins hold what the live stores have held and the archives hold, each element once. So a
stream may have taken elements before only if it is archived where the past is read from; a relation's rows must be
those its archive ends with. Everything happens under the connection's lock: nothing comes in between.

In a connection with a folder the past comes from its log (`Archiving.kept_pasts`), into which it has been copied from
the archives (`durability/history.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from minidsms.archive.connected import lacking
from minidsms.archive.declaring import check_fits
from minidsms.archive.demand import Demand, demand, everything
from minidsms.archive.format import Archive, archives_in
from minidsms.archive.horizon import horizon
from minidsms.archive.recorder import is_written_to
from minidsms.archive.replay import ReplayDriver
from minidsms.archive.replay_source import GivenSource, ReplaySource, Span, local_tables
from minidsms.cql.errors import Error, quoted
from minidsms.elements import MIN_INSTANT, Batch, Int64Array, Schema, row_words
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.limits.allowance import TOO_MANY_ANSWERS
from minidsms.operators.operator import Failure
from minidsms.plan.physical import Inputs

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.cql.bound import Node
    from minidsms.engine.group import Group
    from minidsms.engine.network import InputProgress
    from minidsms.query import Query
    from minidsms.synopses.relation_store import RelationStore
    from minidsms.synopses.stream_store import StreamStore


@dataclass(frozen=True)
class Past:
    """What an archive holds: its least and its greatest instant, and what gives its elements.

    source: the columns and rows that are needed, of streams from an instant on (None: all).
    """

    first_ts: int | None
    last_ts: int | None
    source: Callable[[Demand, int | None], ReplaySource | GivenSource]


@dataclass
class _Twin:
    """A live input, its past (a relation may lack one), and the query's own input beside it."""

    live: StreamInput | RelationInput
    past: Past | None
    own: StreamInput | RelationInput


class Backfill:
    """The past of one query: `inputs` for its planner, `deliver` between it and the query, then `run`.

    folder: a folder of archives.  engine: "local", or "spark", which computes the answers; then only what the windows
    still hold is read here.
    """

    def __init__(self, db: Connection, folder: str, streams: tuple[str, ...], relations: tuple[str, ...], engine: str):
        self._db = db
        self._folder = folder
        kept = db.kept_pasts
        self._on_spark = engine == "spark" and kept is None
        self._is_muted = self._on_spark
        names = {n.lower(): n for n in (*streams, *relations)}
        if kept is not None:
            self._twins = {key: _Twin(db.stream_input(n), kept.get(key), _own(db, n)) for key, n in names.items()}
            return
        db.flush()
        streams_first = sorted(archives_in(folder), key=lambda a: a.metadata.kind == "relation")  # as `replay` does
        archives = {a.metadata.name.lower(): _as_it_is(a) for a in streams_first}
        self._twins = {key: _twin(db, folder, n, archives.get(key)) for key, n in names.items()}

    @property
    def inputs(self) -> Inputs:
        """What the query's plan is to be connected to."""
        twins = self._twins
        none: Int64Array = np.zeros(0, np.int64)

        def stream(name: str) -> tuple[StreamStore, InputProgress, Int64Array]:
            own = cast(StreamInput, twins[name.lower()].own)
            return own.store, own, none

        def relation(name: str) -> tuple[RelationStore, RelationInput]:
            own = cast(RelationInput, twins[name.lower()].own)
            return own.store, own

        return Inputs(stream, relation)

    def deliver(self, to: Callable[[Batch], int | None]) -> Callable[[Batch], int | None]:
        """Where the plan's results go: to the query, unless Spark gives those of the past."""

        def take(batch: Batch) -> int | None:
            return None if self._is_muted else to(batch)

        return take

    def run(self, query: Query) -> None:
        """Answer the past, and let the query go on with what is live. Error where there is no seam."""
        group = query.network.group
        assert group is not None
        group.is_apart = True  # others must not join: its stores are the query's own
        seam = self._seam()
        self._feed(query, group, seam)
        self._close_past()
        self._step(query, group)
        query.past_until, query.began_with_archives = group.progress, True
        if self._on_spark:
            self._answer_on_spark(query, group, group.progress)
            self._is_muted = False
        self._join(group, query)
        group.is_behind = False
        self._step(query, group)

    # --------------------------------------------------------------------------------------------------- feeding

    @property
    def begins(self) -> int:
        """The least instant of the past."""
        pasts = (twin.past for twin in self._twins.values())
        return min((p.first_ts for p in pasts if p is not None and p.first_ts is not None), default=0)

    def pasts(self, logical: Node, from_: int | None = None) -> Iterator[tuple[str, Past, ReplaySource | GivenSource]]:
        """(name in lower case, past, what gives as much of it as a plan needs) of the inputs that have one. from_: of
        streams the elements from this instant on.
        """
        for name, twin in self._twins.items():
            if twin.past is not None:
                is_stream = isinstance(twin.own, StreamInput)
                yield name, twin.past, twin.past.source(_demand(logical, name, twin), from_ if is_stream else None)

    @property
    def moves(self) -> dict[str, int]:
        """By input, in lower case: the instant up to which a stream that has taken nothing is told to have come, or
        that of the last change which a relation is to have made.
        """
        found = {}
        for name, twin in self._twins.items():
            last = None if twin.past is None else twin.past.last_ts
            if isinstance(twin.live, StreamInput):
                if last is not None and twin.live.greatest_ts is None:
                    found[name] = last - 1
                continue
            if twin.past is None and twin.live.store.size:
                last = self.begins
            if last is not None:
                found[name] = last
        return found

    def _seam(self) -> int:
        """The instant that the past is closed up to; no more than an estimate where streams are uneven."""
        ends = []
        for twin in self._twins.values():
            if isinstance(twin.live, StreamInput):
                last = None if twin.past is None else twin.past.last_ts
                fresh_end = MIN_INSTANT if last is None else last - 1
                ends.append(fresh_end if twin.live.greatest_ts is None else twin.live.progress)
        return min(ends, default=MIN_INSTANT)

    def _feed(self, query: Query, group: Group, seam: int) -> None:
        """Push the archives into the twins, and answer."""
        reach = horizon(query.logical) if self._on_spark else None
        from_ = None if reach is None or seam == MIN_INSTANT else max(seam - reach, MIN_INSTANT)
        for twin in self._twins.values():
            if twin.past is None:
                _insert_present(twin, self.begins)
        driver = ReplayDriver([(source, self._twins[n].own) for n, _, source in self.pasts(query.logical, from_)])
        while driver.step(None):
            self._step(query, group)

    def _step(self, query: Query, group: Group) -> None:
        self._db._process([group])
        group.rest()
        for twin in self._twins.values():
            twin.own.store.free()
        query.drain()

    def _close_past(self) -> None:
        """Bring the twins to where the live inputs are. Error where those hold something else."""
        for twin in self._twins.values():
            live, own = twin.live, twin.own
            if isinstance(live, RelationInput):
                if not self._db.is_replayed:
                    _check_same_rows(live, cast(RelationInput, own), self._folder)
                continue
            assert isinstance(own, StreamInput)
            if live.greatest_ts is None:
                if own.greatest_ts is not None:
                    own.advance(own.greatest_ts - 1)
                continue
            own.advance(live.progress)
            if self._db.is_replayed:
                continue
            if live.lacks_waiting_rows():
                raise lacking("BACKFILL", live.definition.name)
            last = None if twin.past is None else twin.past.last_ts
            if own.waiting != live.waiting or (last is not None and last > live.greatest_ts):
                raise Error(
                    f"BACKFILL: the archive of {live.definition.name} goes on behind what the stream has taken\n"
                    "help: replay the archive into the stream first, so that the two agree"
                )

    def _join(self, group: Group, query: Query) -> None:
        """From now on what the live inputs take in, no earlier than the past ends, comes to the twins, too."""
        live = {id(t.own): t.live for t in self._twins.values()}
        moves = self.moves
        for name, twin in self._twins.items():
            last = moves.get(name)
            if isinstance(twin.live, StreamInput):
                if last is not None:
                    twin.live.advance(last)
                twin.live.store.mirrors.append(cast(StreamInput, twin.own).store)
            else:
                if last is not None:
                    twin.live.last_ts = last if twin.live.last_ts is None else max(last, twin.live.last_ts)
                twin.live.store.mirrors.append(cast(RelationInput, twin.own).store)
        for holder in (group, query.network):
            holder.streams = [live[id(s)] for s in holder.streams]
            holder.relations = [cast(RelationInput, live[id(r)]) for r in holder.relations]

    # ----------------------------------------------------------------------------------------------------- Spark

    def _answer_on_spark(self, query: Query, group: Group, until: int) -> None:
        """Let Spark compute the answers up to an instant, and deliver them."""
        from minidsms.inputs.arrays import ColumnReader
        from minidsms.spark.running import prepare

        if until == MIN_INSTANT:
            return
        frame = prepare(query.expanded, self._folder, self._db.catalog).frame(until=until)
        reader = ColumnReader(self._db.dictionary, self._db.tick_ns)
        table = frame.orderBy("_ts", "_sign").toArrow().combine_chunks()
        instants, signs = (table.column(i).to_numpy() for i in (0, 1))
        start, refused = 0, None
        while start < len(table) and refused is None:
            last = instants[min(start + _BATCH_ROWS, len(table)) - 1]
            end = int(np.searchsorted(instants, last, side="right"))  # an instant is delivered whole
            part = table.slice(start, end - start)
            columns = [reader.read(part.column(i + 2), t) for i, t in enumerate(query.schema.types)]
            ts, sign = instants[start:end].astype(np.int64), signs[start:end].astype(np.int8)
            refused, start = query.deliver(Batch(ts, sign, columns)), end
            query.drain()
        if refused is not None:
            group.fail(query.network, Failure(refused, TOO_MANY_ANSWERS))


_BATCH_ROWS = 65_536


def _as_it_is(archive: Archive) -> Archive:
    """The archive with what it holds now: another process may write to it while it is read, file by file."""
    return replace(archive, end_arrival=max((f.last_arrival + 1 for f in archive.files()), default=0))


def _twin(db: Connection, folder: str, name: str, archive: Archive | None) -> _Twin:
    live = db.stream_input(name)
    unit = db.settings["time_unit"]
    if isinstance(live, StreamInput):
        if live.definition.is_system:
            raise Error(f"BACKFILL: {name} is written by the engine; it has no past")
        if archive is None:
            raise Error(f"BACKFILL: {folder!r} has no archive {quoted(name)}")
        check_fits(archive, name, "stream", live.schema, unit)
        if live.greatest_ts is not None and not is_written_to(live.recorder, archive.folder):
            raise Error(
                f"BACKFILL: {name} has taken elements that are not in the archive, so the past would have a gap\n"
                f"help: create the query before the first element comes, or the stream with ARCHIVE {folder!r}"
            )
    elif archive is not None:
        check_fits(archive, name, "relation", live.schema, unit)
    by = live.definition.timestamp_by if isinstance(live, StreamInput) else None
    return _Twin(live, None if archive is None else _past(archive, live.schema, by), _own(db, name))


def _own(db: Connection, name: str) -> StreamInput | RelationInput:
    """An input like a live one."""
    live = db.stream_input(name)
    if isinstance(live, StreamInput):
        return StreamInput(live.definition, db.dictionary, db.tick_ns)
    return RelationInput(live.definition, db.dictionary, db.tick_ns, lambda: MIN_INSTANT)


def _past(archive: Archive, schema: Schema, timestamp_by: int | None) -> Past:
    files = archive.files()
    first, last = min((f.first_ts for f in files), default=None), max((f.last_ts for f in files), default=None)

    def source(needed: Demand, from_: int | None) -> ReplaySource:
        return ReplaySource(archive, schema, Span(from_, None, 0, 2**62), needed, local_tables, timestamp_by)

    return Past(first, last, source)


def _demand(root: Node, name: str, twin: _Twin) -> Demand:
    if isinstance(twin.own, RelationInput):
        return everything(twin.own.schema)
    needed = demand([root], name)
    waits = isinstance(twin.live, StreamInput) and twin.live.waiting > 0  # then as many must wait in the archive
    return replace(needed, condition=None) if waits else needed


def _insert_present(twin: _Twin, first: int) -> None:
    """A relation without an archive has had its present rows all the time."""
    live, own = cast(RelationInput, twin.live), cast(RelationInput, twin.own)
    present = live.present()
    if len(present):
        own.store.append(np.full(len(present), first, np.int64), None, present.columns)
        own.last_ts = first


def _check_same_rows(live: RelationInput, own: RelationInput, folder: str) -> None:
    """The relation holds the rows that its archive ends with."""

    def rows(of: RelationInput) -> Int64Array:
        words = row_words(of.present().columns)
        return words[np.lexsort(words.T)] if len(words) else words

    if live.store.size != own.store.size or not np.array_equal(rows(live), rows(own)):
        name = live.definition.name
        raise Error(
            f"BACKFILL: {name} has other rows than its archive ends with\n"
            f"help: db.replay({folder!r}, names=[{name!r}]) first gives it those"
        )
