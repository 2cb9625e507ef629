"""The part of a connection that has to do with its sources: which there are, and how they are read.

Invariant: the engine's lock is held while a block is pushed, never while a live source is waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from minidsms.cql.errors import Error
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.operators.range_window import RangeWindow
from minidsms.plan.ending import end_of
from minidsms.statements.arguments import name_of

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.engine.engine import Group, Network
    from minidsms.query import Query
    from minidsms.sources.driver import SourceDriver
    from minidsms.sources.source import LiveSource, Source


class SourceList:
    """The sources of one connection. Its methods but `stop` are called under the engine's lock.

    sources: (source, input) pairs, in the order of their declaration.  warn: told of what may not have been meant.
    """

    def __init__(self, tick_ns: int, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.sources: list[tuple[Source | LiveSource, StreamInput | RelationInput]] = []
        self._tick_ns = tick_ns
        self._driver: SourceDriver | None = None
        self._is_stopped = False

    def add(self, source: Source | LiveSource, target: StreamInput | RelationInput) -> None:
        """One more source."""
        self.sources.append((source, target))
        if target.journal is not None:
            target.journal.attach(source)
        if self._driver is not None:
            self._driver.add(source, target)

    def open_again(self, before: Source | LiveSource, source: Source | LiveSource) -> None:
        """Let a source stand in the place of another, before anything is read."""
        assert self._driver is None
        self.sources = [(source if each is before else each, target) for each, target in self.sources]

    def remove(self, target: StreamInput | RelationInput) -> None:
        """Close and forget the sources of an input that is dropped."""
        for source in self.of(target):
            self.take_back(source)

    def take_back(self, source: Source | LiveSource) -> None:
        """Close and forget a source."""
        source.close()
        self.sources = [(s, t) for s, t in self.sources if s is not source]
        if self._driver is not None:
            self._driver.remove(source)

    def of(self, target: StreamInput | RelationInput) -> list[Source | LiveSource]:
        """The sources of an input."""
        return [source for source, its in self.sources if its is target]

    @property
    def driver(self) -> SourceDriver | None:
        """What reads the sources, or None where there are none."""
        if self._driver is None and self.sources:
            from minidsms.sources.driver import SourceDriver

            self._driver = SourceDriver(self.sources, tick_ns=self._tick_ns, warn=self._warn)
        return self._driver

    def stop(self) -> None:
        """Let `run` return after the block it is at; from any thread or signal handler."""
        # No lock and no event: a handler may interrupt the very code that holds them. Who waits looks again soon.
        self._is_stopped = True

    def take_stop(self) -> bool:
        """Whether somebody said stop; asking takes the word back."""
        was_stopped, self._is_stopped = self._is_stopped, False
        return was_stopped

    @property
    def fraction(self) -> float:
        """How much of the bounded sources has been read, 0 to 1."""
        return 0.0 if self._driver is None else self._driver.fraction

    @property
    def closers(self) -> list[Callable[[], None]]:
        """What closes each source."""
        return [source.close for source, _ in self.sources]


class ReadsSources:
    """What `Connection` can do with sources."""

    def run(self, until: int | None = None, progress: Callable[[float], Any] | None = None) -> None:
        """Read the sources that streams and relations were declared FROM, to their end, to an instant, or until `stop`.

        Sinks of queries whose streams have all ended are closed: their files stand in their places.
        progress: called now and then with the fraction of the bounded sources that is done.
        """
        db = _connection(self)
        while not db.reading.take_stop() and self.run_some(until):
            if progress is not None:
                progress(db.reading.fraction)
        with db.lock:
            for query in db.queries.values():
                if query.sink is not None and query.inputs_ended:
                    db.end_sink(query)
        if progress is not None:
            progress(1.0)

    def run_some(self, until: int | None = None) -> bool:
        """Read one more block of the sources, or wait a moment for live ones; False when they have ended (or passed
        `until`).
        """
        driver = self.source_driver
        return driver is not None and self.drive(driver, until)

    @property
    def source_driver(self) -> SourceDriver | None:
        """What reads the sources that streams and relations were declared FROM; None where there are none."""
        db = _connection(self)
        with db.lock:
            db._check()
            return db.reading.driver

    def drive(self, driver: SourceDriver, until: int | None = None, waits: bool = True) -> bool:
        """Let a driver push one more block, and answer, or wait a moment where it reads live sources; False when its
        sources tell nothing more up to `until`. waits False: without waiting.
        """
        db = _connection(self)
        with db.lock:
            db._check()
            if db.archiver is not None:
                db.archiver.admit()
            went_on = driver.step(None if until is None else db._instant("run", until))
            told = db._step(None)
            if not went_on and until is None and db.end_windows():
                told = db._step(None) or told
        if told:
            db._callbacks.tell()
        if went_on and waits:
            driver.wait()
        return went_on

    def stop(self) -> None:
        """Let `run` return; from any thread, callback or signal handler. What has been read is answered first."""
        _connection(self).reading.stop()

    def opened(self, opening: Callable[[], Source | LiveSource], path: str) -> Source | LiveSource:
        """The source that `opening` opens. path: as people name it."""
        return opening()

    def end_windows(self) -> bool:
        """`end_windows`."""
        return end_windows(_connection(self))

    def end_sink(self, query: Query) -> None:
        """Nothing more comes of what a query reads: its file takes its place."""
        query.close_sink()

    def feed(self, name: str, source: Any, format: str | None = None, **options: Any) -> Any:
        """Give a stream or relation a source, as FROM does in its declaration; `run` reads it. Returns the source.

        source: a path or address, a table of pyarrow, polars or pandas, or an iterable of such tables. format, options:
        as FORMAT and WITH (..). Error where it cannot be opened.
        """
        db = _connection(self)
        from minidsms.sources.frames import is_generator, open_anything

        with db.lock:
            db._check()
            target = db.stream_input(name)
            if isinstance(source, str | os.PathLike) and not is_generator(source):
                db.safety.check_place(os.fspath(source))
            path = source if isinstance(source, str) else f"the source of {target.definition.name}"
            opened = db.opened(lambda: open_anything(source, format, target, options), path)
            db.reading.add(opened, target)
            db.lock.undo_on_error(lambda: db.reading.take_back(opened))
            return opened

    @property
    def sources_read(self) -> float:
        """How much of the bounded sources has been read, 0 to 1."""
        return _connection(self).reading.fraction

    def pause(self, stream: str) -> None:
        """Stop reading the source of a stream until `resume`; Error where it has none."""
        self._source_of(stream).is_paused = True

    def resume(self, stream: str) -> None:
        """Go on reading the source of a stream."""
        self._source_of(stream).is_paused = False

    def _source_of(self, stream: str) -> StreamInput:
        """The input of a stream that has a source."""
        db = _connection(self)
        with db.lock:
            db._check()
            target = db._streams.get(name_of(stream).lower())
            if target is None:
                raise db._unknown(stream)
            if not db.reading.of(target):
                raise Error(f"stream {stream} has no source to pause: it takes what is pushed")
            return target


def end_windows(db: Connection) -> bool:
    """Let time go on, for queries whose sources have ended, to where their windows with SLIDE show the last of what
    came (docs/semantics T4); whether there was any.
    """
    ends: dict[int, int] = {}
    later: list[Network] = []
    for query in db.queries.values():
        network, group = query.network, query.network.group
        if group is None or not _slides(group) or query.failure is not None or not query.inputs_ended:
            continue
        greatest = max((s.greatest_ts for s in network.streams if s.greatest_ts is not None), default=None)
        if greatest is not None:
            end = end_of(query.logical, greatest)
            if end > max(greatest, group.ends_at):
                ends[id(network)] = end
                later.append(network)
    groups = {id(network.group): network.group for network in later}
    alike = {key for key, group in groups.items() if group and len({ends.get(id(n)) for n in group.networks}) == 1}
    for network in later:
        if id(network.group) not in alike:
            try:
                db.groups.part(network)
            except Error as error:
                db.warnings.append(f"the last window with SLIDE is not shown: {error}")
                continue
        assert network.group is not None
        network.group.ends_at = ends[id(network)]
    return bool(later)


def _slides(group: Group) -> bool:
    """A window in it is a RANGE with SLIDE."""
    return any(isinstance(operator, RangeWindow) and operator.slide is not None for operator in group.operators)


def _connection(part: ReadsSources) -> Connection:
    return cast("Connection", part)
