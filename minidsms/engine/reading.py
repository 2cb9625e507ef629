"""The part of a connection that has to do with its sources: which there are, and how they are read.

Invariant: the engine's lock is held while a block is pushed, never while a live source is waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error
from minidsms.engine.database import Database
from minidsms.inputs.stream_input import StreamInput
from minidsms.operators.range_window import RangeWindow
from minidsms.plan.reading import end_of
from minidsms.statements.arguments import name_of

if TYPE_CHECKING:
    from minidsms.engine.group import Group
    from minidsms.engine.network import Network
    from minidsms.engine.running_query import RunningQuery
    from minidsms.sources.driver import SourceDriver
    from minidsms.sources.live_lines import LiveLines
    from minidsms.sources.source import Source


class ReadsSources(Database):
    """What `Connection` can do with sources."""

    def run(self, until: int | None = None, progress: Callable[[float], Any] | None = None) -> None:
        """Read the sources that streams and relations were declared FROM, to their end, to an instant, or until `stop`.

        Sinks of queries whose streams have all ended are closed: their files stand in their places.
        progress: called now and then with the fraction of the bounded sources that is done.
        """
        while not self.reading.take_stop() and self.run_some(until):
            if progress is not None:
                progress(self.reading.fraction)
        with self.lock:
            for query in list(self.queries.values()):
                if query.sink is not None and query.inputs_ended:
                    self.end_sink(query)
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
        with self.lock:
            self._check()
            return self.reading.driver

    def drive(self, driver: SourceDriver, until: int | None = None, waits: bool = True) -> bool:
        """Let a driver push one more block, and answer, or wait a moment where it reads live sources; False when its
        sources tell nothing more up to `until`. waits False: without waiting.
        """
        with self.lock:
            self._check()
            if self.archiver is not None:
                self.archiver.admit()
            instant = None if until is None else self._instant("run", until)
            went_on = driver.step(instant, self.memory.forget_refused)
            told = self._step(None)
            if not went_on and until is None and self.end_windows():
                told = self._step(None) or told
        if told:
            self._callbacks.tell()
        if went_on and waits:
            driver.wait()
        return went_on

    def stop(self) -> None:
        """Let `run` return; from any thread, callback or signal handler. What has been read is answered first."""
        self.reading.stop()

    def opened(self, opening: Callable[[], Source | LiveLines], path: str) -> Source | LiveLines:
        """The source that `opening` opens. path: as people name it."""
        return opening()

    def end_windows(self) -> bool:
        """`end_windows`."""
        has_any = end_windows(self)
        if has_any:
            self.journal.append(kind="windows")
        return has_any

    def end_sink(self, query: RunningQuery) -> None:
        """Nothing more comes of what a query reads: its file takes its place."""
        with self.journal.entry("call", query=query.name, method="close_sink", arguments=()):
            query.close_sink()

    def feed(self, name: str, source: Any, format: str | None = None, **options: Any) -> Any:
        """Give a stream or relation a source, as FROM does in its declaration; `run` reads it. Returns the source.

        source: a path or address, a table of pyarrow, polars or pandas, or an iterable of such tables. format, options:
        as FORMAT and WITH (..). Error where it cannot be opened.
        """
        from minidsms.sources.frames import is_generator, open_anything

        with self.lock:
            self._check()
            target = self.stream_input(name)
            if isinstance(target, StreamInput) and target.is_system:
                raise self._unknown(name)
            if isinstance(source, str | os.PathLike) and not is_generator(source):
                self.safety.check_source(os.fspath(source))
            path = source if isinstance(source, str) else f"the source of {target.definition.name}"
            opened = self.opened(lambda: open_anything(source, format, target, options), path)
            self.reading.add(opened, target)
            self.lock.undo_on_error(lambda: self.reading.take_back(opened))
            return opened

    @property
    def sources_read(self) -> float:
        """How much of the bounded sources has been read, 0 to 1."""
        return self.reading.fraction

    def pause(self, stream: str) -> None:
        """Stop reading the source of a stream until `resume`; Error where it has none."""
        self._source_of(stream).is_paused = True

    def resume(self, stream: str) -> None:
        """Go on reading the source of a stream."""
        self._source_of(stream).is_paused = False

    def _source_of(self, stream: str) -> StreamInput:
        """The input of a stream that has a source."""
        with self.lock:
            self._check()
            target = self._streams.get(name_of(stream).lower())
            if target is None or target.is_system:
                raise self._unknown(stream)
            if not self.reading.of(target):
                raise Error(f"stream {stream} has no source to pause: it takes what is pushed")
            return target


def end_windows(db: Database) -> bool:
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
