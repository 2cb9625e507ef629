"""BACKFILL: a query's past from archives, then its present from the live streams, without a gap or a duplicate.

The query reads inputs of its own: twins of the streams and relations it names, filled from the archives and from then
on with everything that their live inputs take in (`StreamStore.mirrors`). No other query sees the past.

Invariant: at the seam the twins hold what the live stores have held and the archives hold, each element once. So a
stream may have taken elements before only if it is archived where the past is read from; a relation's rows must be
those its archive ends with. Everything happens under the connection's lock: nothing comes in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from minidsms.archive.declaring import check_fits
from minidsms.archive.demand import Demand, demand
from minidsms.archive.format import Archive, archives_in
from minidsms.archive.horizon import horizon
from minidsms.archive.replay import ReplayDriver
from minidsms.archive.replay_source import ReplaySource, Span, local_tables
from minidsms.cql.errors import Error, quoted
from minidsms.elements import MIN_INSTANT, Batch, Int64Array, row_words
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.limits.allowance import TOO_MANY_ANSWERS
from minidsms.operators.operator import Failure
from minidsms.plan.physical import Inputs

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.cql.bound import Node
    from minidsms.engine.engine import Group, InputProgress, RelationProgress
    from minidsms.query import Query
    from minidsms.synopses.relation_store import RelationStore
    from minidsms.synopses.stream_store import StreamStore


@dataclass
class _Twin:
    """A live input, its archive (a relation may lack one), and the query's own input beside it."""

    live: StreamInput | RelationInput
    archive: Archive | None
    own: StreamInput | RelationInput

    @property
    def first_ts(self) -> int | None:
        """The least instant of the archive."""
        files = [] if self.archive is None else self.archive.files()
        return min((f.first_ts for f in files), default=None)

    @property
    def last_ts(self) -> int | None:
        """The greatest instant of the archive."""
        files = [] if self.archive is None else self.archive.files()
        return max((f.last_ts for f in files), default=None)


class Backfill:
    """The past of one query: `inputs` for its planner, `deliver` between it and the query, then `run`.

    folder: a folder of archives.  engine: "local", or "spark", which computes the answers; then only what the windows
    still hold is read here.
    """

    def __init__(self, db: Connection, folder: str, streams: tuple[str, ...], relations: tuple[str, ...], engine: str):
        self._db = db
        self._folder = folder
        self._on_spark = engine == "spark"
        self._is_muted = self._on_spark
        db.flush()
        archives = {a.metadata.name.lower(): _as_it_is(a) for a in archives_in(folder)}
        self._twins = {n.lower(): _twin(db, folder, n, archives.get(n.lower())) for n in (*streams, *relations)}

    @property
    def inputs(self) -> Inputs:
        """What the query's plan is to be connected to."""
        twins = self._twins
        none: Int64Array = np.zeros(0, np.int64)

        def stream(name: str) -> tuple[StreamStore, InputProgress, Int64Array]:
            own = cast(StreamInput, twins[name.lower()].own)
            return own.store, own, none

        def relation(name: str) -> tuple[RelationStore, RelationProgress]:
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
        if self._on_spark:
            self._answer_on_spark(query, group, group.progress)
            self._is_muted = False
        self._join(group, query)
        self._step(query, group)

    # --------------------------------------------------------------------------------------------------- feeding

    def _seam(self) -> int:
        """The instant that the past is closed up to; no more than an estimate where streams are uneven."""
        ends = []
        for twin in self._twins.values():
            if isinstance(twin.live, StreamInput):
                last = twin.last_ts
                fresh_end = MIN_INSTANT if last is None else last - 1
                ends.append(fresh_end if twin.live.greatest_ts is None else twin.live.progress)
        return min(ends, default=MIN_INSTANT)

    def _feed(self, query: Query, group: Group, seam: int) -> None:
        """Push the archives into the twins, and answer."""
        first = min((ts for t in self._twins.values() if (ts := t.first_ts) is not None), default=0)
        reach = horizon(query.logical) if self._on_spark else None
        from_ = None if reach is None or seam == MIN_INSTANT else max(seam - reach, MIN_INSTANT)
        pairs = []
        for name, twin in self._twins.items():
            if twin.archive is None:
                _insert_present(twin, first)
                continue
            is_stream = isinstance(twin.own, StreamInput)
            span = Span(from_ if is_stream else None, None, 0, 2**62)
            needed = _demand(query.logical, name, twin)
            pairs.append((ReplaySource(twin.archive, twin.own.schema, span, needed, local_tables), twin.own))
        driver = ReplayDriver([*pairs])
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
                _check_same_rows(live, cast(RelationInput, own), self._folder)
                continue
            assert isinstance(own, StreamInput)
            if live.greatest_ts is None:
                if own.greatest_ts is not None:
                    own.advance(own.greatest_ts - 1)
                continue
            own.advance(live.progress)
            if own.waiting != live.waiting:
                raise Error(
                    f"BACKFILL: the archive of {live.definition.name} goes on behind what the stream has taken\n"
                    "help: replay the archive into the stream first, so that the two agree"
                )

    def _join(self, group: Group, query: Query) -> None:
        """From now on what the live inputs take in, no earlier than the past ends, comes to the twins, too."""
        live = {id(t.own): t.live for t in self._twins.values()}
        for twin in self._twins.values():
            last = twin.own.greatest_ts
            if isinstance(twin.live, StreamInput):
                if last is not None and twin.live.greatest_ts is None:
                    twin.live.advance(last - 1)
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
        is_archived_there = live.recorder is not None and live.recorder.archive.folder == archive.folder
        if live.greatest_ts is not None and not is_archived_there:
            raise Error(
                f"BACKFILL: {name} has taken elements that are not in the archive, so the past would have a gap\n"
                f"help: create the query before the first element comes, or the stream with ARCHIVE {folder!r}"
            )
        return _Twin(live, archive, StreamInput(live.definition, db.dictionary, db.tick_ns))
    if archive is not None:
        check_fits(archive, name, "relation", live.schema, unit)
    return _Twin(live, archive, RelationInput(live.definition, db.dictionary, db.tick_ns, lambda: MIN_INSTANT))


def _demand(root: Node, name: str, twin: _Twin) -> Demand:
    width = len(twin.own.schema)
    if isinstance(twin.own, RelationInput):
        return Demand(frozenset(range(width)), None)
    needed = demand([root], name, width)
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
