"""Replay: archives into the live engine, in the order of event time, and then on with what is live.

Several archives are read at once, a block each; the block that begins earliest goes next (`sources.driver`). A
relation's changes go before the streams reach their instants. The streams are not ended: behind the last element they
have exactly the progress they would have had live, so that whatever is pushed next follows without a seam; pushes that
come while the replay runs wait for its end.

Invariant: rows and columns that no query needs are not read, but their instants pass all the same: the answers, and
which instants are closed at the end, do not depend on what was pushed down.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from minidsms.archive.declaring import check_fits
from minidsms.archive.demand import Demand, demand, everything
from minidsms.archive.format import Archive, AsOf, archives_in
from minidsms.archive.progress import Progress
from minidsms.archive.recorder import Recorder, is_written_to
from minidsms.archive.replay_source import GivenSource, ReplaySource, Span, Tables, local_tables
from minidsms.archive.storage import absolute
from minidsms.cql.errors import Error, quoted
from minidsms.elements import MAX_INSTANT
from minidsms.inputs.conversion import FIRST_INSTANT, LAST_INSTANT
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.process.interrupts import held, let_through
from minidsms.sources.driver import SourceDriver
from minidsms.sources.driver_entry import Entry

if TYPE_CHECKING:
    from minidsms.connection import Connection

POLL_S = 0.2
_SLICE_S = 0.01


@dataclass(frozen=True)
class Options:
    """How to replay: see `Connection.replay`."""

    from_: int | None = None
    to: int | None = None
    speed: float | None = None
    engine: str = "local"
    push_down: bool = True
    follow: bool = False
    as_of: AsOf | None = None


@dataclass(eq=False)
class Replaying:
    """A replay that is under way: which inputs it feeds, and from which thread."""

    names: frozenset[str]
    pushes_down: bool
    thread: int = field(default_factory=threading.get_ident)


class ReplayDriver(SourceDriver):
    """Drives archives into inputs that go on afterwards."""

    def __init__(self, entries: Sequence[tuple[ReplaySource | GivenSource, StreamInput | RelationInput]]) -> None:
        super().__init__(entries)
        self._read: dict[StreamInput, int] = {}

    def _finish(self, entry: Entry) -> None:
        """An archive has been read; its input goes on, from the archive's last instant."""
        if isinstance(entry.target, StreamInput) and isinstance(entry.source, ReplaySource | GivenSource):
            last = entry.source.last_ts
            if last is not None:
                self._read[entry.target] = last

    def step(self, until: int | None = None, refused: Callable[[], None] = lambda: None) -> bool:
        """Push one more block, and bring the streams that have been read to their last instant, though not past
        changes of relations that are still to be made.
        """
        went_on = super().step(until, refused)
        relations = [e for e in self._entries if isinstance(e.target, RelationInput) and not e.ended]
        if all(e.batch is not None for e in relations):
            open_ = min((e.begins - 1 for e in relations), default=MAX_INSTANT)
            for stream, last in list(self._read.items()):
                stream.pass_by(min(last, open_))
                if last <= open_:
                    del self._read[stream]
        return went_on

    def _push(self, entry: Entry, limit: int) -> None:
        """Push the block; then tell the other streams how far they are, as what they lack may have been left out."""
        super()._push(entry, limit)
        if not isinstance(entry.target, StreamInput) or entry.target.greatest_ts is None:
            return
        # Up to here the changes of relations have been made.
        reached = entry.target.greatest_ts
        for other in self._entries:
            if other is not entry and other.batch is not None and isinstance(other.target, StreamInput):
                other.target.pass_by(min(other.begins - 1, reached))


class Replay:
    """One replay of some archives into the inputs of a connection.

    progress: called with the fraction done.  stop: asked between blocks; a replay that follows goes on until it says
    so.  clock, sleep: of the wall, for speed.
    """

    def __init__(
        self,
        db: Connection,
        folder: str,
        names: Sequence[str] | None,
        options: Options,
        progress: Callable[[float], Any] | None = None,
        stop: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._db = db
        self._options = options
        self._progress = progress or (lambda fraction: None)
        self._stop = stop or (lambda: False)
        self._clock = clock
        self._sleep = sleep
        self._pairs = _pairs(db, folder, names, options.as_of)
        self._tables = _tables(options.engine)
        self.rows = 0
        self._own: list[Recorder] = []
        """Those that write the archives that are replayed."""
        self._lacking: set[StreamInput] = set()
        """Streams of which rows or columns are left out."""
        self._is_whole = False
        """All that the archives hold has been replayed."""

    def run(self) -> int:
        """Replay to the end (or until told to stop); how many rows were pushed."""
        with held:
            self._begin()
            try:
                self._replay()
            finally:
                self._end()
        return self.rows

    def _replay(self) -> None:
        with self._db.lock:
            told = self._progresses() if self._options.follow else [None] * len(self._pairs)
            spans = [
                self._db.replay_span(target, archive, self._told(archive), end)
                for (archive, target), end in zip(self._pairs, self._settled(told, [0] * len(told)))
            ]
        has_ended = self._drive(spans)
        self._is_whole = has_ended and self._options.to is None and self._options.as_of is None
        self._progress(1.0)
        if self._options.follow and has_ended:
            self._follow([end for _, end in spans])

    def _told(self, archive: Archive) -> dict[str, Any]:
        """What is replayed, as a folder keeps it."""
        options = self._options
        as_of = None if options.as_of is None else str(options.as_of)
        told = {"folder": absolute(archive.folder), "first": options.from_, "last": options.to, "as_of": as_of}
        return {**told, "id": archive.identity}

    def _first(self, target: StreamInput | RelationInput) -> int | None:
        """A relation is replayed from its beginning, so that it has its rows."""
        return self._options.from_ if isinstance(target, StreamInput) else None

    # --------------------------------------------------------------------------------------------- begin and end

    def _begin(self) -> None:
        db = self._db
        if db.archiver is not None:
            db.archiver.flush()
        with db.lock:
            if db.replaying is not None:
                raise Error("a replay is under way already; replay several archives at once, or one after the other")
            own = [t for archive, t in self._pairs if is_written_to(t.recorder, archive.folder)]
            for target in own:
                _check_replayed_once(target)
            # Kept: a link, or the working folder, may be another one at the end.
            self._own = [target.recorder for target in own if target.recorder is not None]
            for recorder in self._own:
                recorder.is_suspended = True  # what is replayed is in the archive already
            db.replaying = Replaying(
                frozenset(t.definition.name.lower() for _, t in self._pairs), self._options.push_down
            )

    def _end(self) -> None:
        db = self._db
        with db.lock:
            for recorder in self._own:
                recorder.is_suspended = False
                recorder.must_resume = recorder.must_resume and not self._is_whole
            for stream in self._lacking:
                if stream.greatest_ts is not None:
                    stream.incomplete_until = stream.greatest_ts
            db.end_replay()

    # --------------------------------------------------------------------------------------------------- driving

    def _drive(self, arrivals: Sequence[tuple[int, int]]) -> bool:
        """Read these parts of the archives, from an arrival up to another one; whether all has been read."""
        db = self._db
        with db.lock:
            sources = [
                (self._source(archive, target, *between), target)
                for (archive, target), between in zip(self._pairs, arrivals)
            ]
            # Streams first: where the process ends amid this, a relation is not to be behind them.
            for (archive, target), between, (source, _) in zip(self._pairs, arrivals, sources):
                db.begin_replay(target, self._told(archive), between, source)
        driver = ReplayDriver([*sources])
        pace = self._pace([source for source, _ in sources])
        before = self._taken()
        until = None
        try:
            while not self._stop():
                let_through()
                if self._options.speed is not None:
                    until = next(pace)
                if db.drive(driver, until):
                    self._progress(driver.fraction)
                elif driver.has_ended:
                    break
                else:
                    # The next elements' time has not come, or a stream is paused.
                    self._sleep(_SLICE_S)
            if driver.has_ended:
                db.finish_replay(sources)
        finally:
            for source, _ in sources:
                source.close()
        self.rows += self._taken() - before
        return driver.has_ended

    def _source(self, archive: Archive, target: StreamInput | RelationInput, first: int, end: int) -> ReplaySource:
        span = Span(self._first(target), self._options.to, first, end)
        by = target.definition.timestamp_by if isinstance(target, StreamInput) else None
        wanted = self._demand(target)
        # A folder may have begun this replay in an earlier process, with less.
        begun_with_less = target.journal is not None and self._options.push_down
        if isinstance(target, StreamInput) and (begun_with_less or wanted != everything(target.schema)):
            self._lacking.add(target)
        return ReplaySource(archive, target.schema, span, wanted, self._tables, by)

    def _taken(self) -> int:
        return sum(target.counters.accepted for _, target in self._pairs)

    def _pace(self, sources: Sequence[ReplaySource]) -> Iterator[int]:
        """The instant that may be reached by now, at `speed` times real time."""
        firsts = [ts for s in sources if s.is_stream and (ts := s.first_ts()) is not None]
        first = min(firsts, default=0)
        speed = self._options.speed or 1.0
        begun = self._clock()
        while True:
            yield first + int((self._clock() - begun) * speed * 1e9 / self._db.tick_ns)

    def _demand(self, target: StreamInput | RelationInput) -> Demand:
        """What is read of an archive: for a relation, and where rows are archived again, everything."""
        archived = target.recorder is not None and not target.recorder.is_suspended
        if not self._options.push_down or isinstance(target, RelationInput) or archived:
            return everything(target.schema)
        name = target.definition.name
        queries = self._db.queries
        return demand([queries[q].logical for q in self._db.readers_of(name)], name)

    def _follow(self, ends: list[int]) -> None:
        """Read what the archives' writers add, until told to stop."""
        while not self._stop():
            let_through()
            # Read once: what is closed by then is in files by then.
            told = self._progresses()
            grown = self._settled(told, ends)
            if grown != ends:
                if not self._drive(list(zip(ends, grown))):
                    return
                ends = grown
            for (_, target), progress in zip(self._pairs, told):
                if isinstance(target, StreamInput) and progress is not None and progress.closed is not None:
                    self._db.heartbeat(target, self._closed(target, progress.closed))
            self._sleep(POLL_S)

    def _progresses(self) -> list[Progress | None]:
        """What the archives' writers say."""
        return [archive.progress for archive, _ in self._pairs]

    def _settled(self, told: Sequence[Progress | None], before: Sequence[int]) -> list[int]:
        """By archive, the arrival below which everything is in files. told: by its writer; None: it is complete as it
        is.  before: what was settled.

        A writer commits what relations have before any of its archives tells how far it is, so that this holds for the
        relations, too. They are read as far: streams must not pass by instants at which a relation changes.
        """
        most = max((progress.arrivals for progress in told if progress is not None), default=0)
        settled = []
        for (archive, target), progress, end in zip(self._pairs, told, before):
            if progress is None:
                end = end or _committed(archive)
            elif isinstance(target, StreamInput) or most <= end:
                end = max(end, progress.arrivals)
            else:
                end = max(end, progress.arrivals, min(most, _committed(archive)))
            settled.append(end)
        return settled

    def _closed(self, target: StreamInput, closed: int) -> int:
        """Up to which instant nothing more comes. Of a stream that has ended windows are not drained."""
        if closed >= LAST_INSTANT:
            closed = FIRST_INSTANT + 1 if target.greatest_ts is None else target.greatest_ts
        return closed if self._options.to is None else min(closed, self._options.to)


def _check_replayed_once(target: StreamInput | RelationInput) -> None:
    """Error where a replay into a relation has ended before all of its archive was there: another one begins anew, but
    in a folder, which knows how far it was.
    """
    recorder = target.recorder
    if recorder is None or not recorder.must_resume or target.journal is not None:
        return
    if isinstance(target, RelationInput) and target.store.size:
        raise Error(
            f"{target.definition.name} has rows of a replay that did not bring all of its archive; it would have them "
            "twice\nhelp: replay the streams alone (names=[..]), or all into a new connection"
        )


def _committed(archive: Archive) -> int:
    """The arrival below which everything is that has been committed."""
    return max((f.last_arrival + 1 for f in archive.files()), default=0)


def _tables(engine: str) -> Tables:
    if engine == "local":
        return local_tables
    if engine == "spark":
        from minidsms.spark.reading import spark_tables

        return spark_tables
    raise Error(f"no replay engine {quoted(engine)}; there are: local, spark")


def _pairs(
    db: Connection, folder: str, names: Sequence[str] | None, as_of: AsOf | None
) -> list[tuple[Archive, StreamInput | RelationInput]]:
    """The archives of a folder with the inputs of their names, streams before relations: what is read of an archive
    that is being written holds the relations' changes up to the streams' last elements.
    """
    archives = {a.metadata.name.lower(): a for a in archives_in(folder, as_of)}
    declared = {i.definition.name.lower(): i for i in db.inputs}
    chosen = [n for n in declared if n in archives] if names is None else list(dict.fromkeys(n.lower() for n in names))
    for name in chosen:
        if name not in archives:
            there = ", ".join(a.metadata.name for a in archives.values()) or "none"
            raise Error(f"{folder!r} has no archive {quoted(name)}; there are: {there}")
        if name not in declared:
            raise Error(
                f'no stream or relation "{name}" has been declared\nhelp: its archive has '
                f"{archives[name].metadata.schema}"
            )
    if not chosen:
        there = ", ".join(a.metadata.name for a in archives.values()) or "none"
        raise Error(f"no stream or relation is named like an archive of {folder!r}; its archives are: {there}")
    chosen.sort(key=lambda name: isinstance(declared[name], RelationInput))
    for name in chosen:
        target = declared[name]
        kind = "stream" if isinstance(target, StreamInput) else "relation"
        check_fits(archives[name], target.definition.name, kind, target.schema, db.settings["time_unit"])
    return [(archives[name], declared[name]) for name in chosen]
