"""A connection that a folder keeps: what it is told goes to the log first, and from there to the engine.

Invariants: a call that has returned is in the log, and on disk as `durability` says; one that raises has left nothing
there. After a call that was cut short on its way through the engine, the log alone knows what is true: the connection
takes nothing more until the folder is opened again.  docs/durability.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from minidsms.archive.connected import target_of
from minidsms.archive.recorder import Recorder
from minidsms.archive.storage import local
from minidsms.connection import Connection
from minidsms.cql import syntax
from minidsms.cql.errors import Error
from minidsms.cql.parameters import Parameters, written
from minidsms.cql.parser import parse
from minidsms.durability.backup import copy, sizes_of
from minidsms.durability.checkpoints import Checkpoints
from minidsms.durability.folder import check_outside, check_setting
from minidsms.durability.history import KeptHistory
from minidsms.durability.kept_archives import KeptArchives, KeptRecorder
from minidsms.durability.kept_files import KeptFiles, answers_wait
from minidsms.durability.kept_sources import SourceToCome, address_of
from minidsms.durability.kept_statements import KeptStatements
from minidsms.durability.log import Log
from minidsms.durability.log_writer import LogWriter, Taking
from minidsms.durability.owned_folder import OwnedFolder
from minidsms.durability.places import place_of
from minidsms.durability.recovery import replay
from minidsms.durability.segments import sync_segments
from minidsms.elements import Schema, Type
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.settings import SETTINGS, checked
from minidsms.statements.arguments import name_of, path_of, query_name_of, text_of, types_of
from minidsms.statements.query_each import QueryEach

if TYPE_CHECKING:
    from minidsms.archive.format import Archive
    from minidsms.archive.replay_source import ReplaySource
    from minidsms.engine.running_query import RunningQuery
    from minidsms.query import Query
    from minidsms.sinks.sink import Sink
    from minidsms.sources.driver import SourceDriver
    from minidsms.sources.live_lines import LiveLines
    from minidsms.sources.source import Source

_OF_PROCESS = ("safe", "allowed_paths")
"""Settings that each connection to a folder is given anew: they say what its process may do."""
_ARCHIVES = "a connection that a folder keeps writes archives"


class DurableConnection(Connection):
    """See `minidsms.connect`. folder: made where it is not there."""

    journal: LogWriter

    def __init__(self, folder: str, clock: Callable[[], int] | None = None, **options: Any) -> None:
        self._begin(folder)
        given = {name.lower(): checked(name, value) for name, value in options.items()}
        for name, value in given.items():
            check_setting(name, value)
        kept = {n: v for n, v in given.items() if v != SETTINGS[n].default and n not in _OF_PROCESS}
        self.owned = OwnedFolder(self.folder, kept)
        try:
            settings = self.owned.metadata.settings
            super().__init__(clock=clock, allowed_paths=given.get("allowed_paths", ()), **settings)
            self._recover(given)
            if self.owned.damage:
                self.warnings.append(self.owned.damage)
        except BaseException:
            self.files.leave()
            if getattr(self, "archiver", None) is not None:
                self.archiver.give_up()  # type: ignore[union-attr]
            if self.log is not None:
                self.log.abandon()
            self.owned.lock.release()
            raise

    def _begin(self, folder: str) -> None:
        """What there is before the log is read."""
        self.folder = os.path.abspath(local(os.fsdecode(folder), "a connection is kept"))
        self.is_replayed = True
        self.files = KeptFiles()
        self.journal = LogWriter(self)
        self.archives = KeptArchives()
        self.checkpoints = Checkpoints(self)
        self.statements = KeptStatements(self)
        self.history = KeptHistory(self)
        self.copying = threading.RLock()
        """Held while the files of the log must stay; before `lock`."""

    def _recover(self, given: dict[str, Any]) -> None:
        """Carry out what the log says, then change the settings that this time are given otherwise."""
        place = self.owned.log_place
        dropped = replay(self, place)
        self.is_replayed = False
        self._hold_limits()
        self.system_streams.begin_anew()
        self.warnings[:] = self.archives.lost.values()  # others are of calls that have told them
        self.owned.raise_version()
        log = Log(place, self.settings["durability"], self.owned.lock)
        if log.removed_bytes:
            self.warnings.append(
                f"{self.folder}: {log.removed_bytes} bytes at the end of the log, no whole entries, were removed: "
                "what had not been synced when a process ended, or what was synced last, damaged"
            )
        if dropped is not None:
            log.retract_last(dropped)
        self._go_on_in(log)
        self._go_on_with_files()
        self._go_on_with_sources()
        if given.get("safe") == "on":
            super().set("safe", "on")
        for name, value in given.items():
            if self.settings[name] != value and name not in _OF_PROCESS:
                if not SETTINGS[name].live:
                    raise Error(f"{name} = {self.settings[name]!r} in the folder '{self.folder}', and stays so")
                self.set(name, value)
        self.checkpoints.every(self.settings.checkpoint_s)

    def _hold_limits(self) -> None:
        """From now on limits hold."""
        for query in self.queries.values():
            query.apply_settings()
        self.admission.look()

    def _go_on_in(self, log: Log) -> None:
        """From now on everything goes to this log."""
        self.journal.log = self.archives.log = log
        for each in self.inputs:
            if each.journal is not None:
                each.journal.log = log

    # ---------------------------------------------------------------------------------------------------- the log

    @property
    def log(self) -> Log | None:
        """None while it is carried out."""
        return self.journal.log

    def _check(self) -> None:
        super()._check()
        if self.journal.is_astray:  # asked of every push
            self.journal.check()

    def position(self, name: str) -> int:
        """How many elements of a stream or relation are on disk, those that LATE DROP has dropped among them: where a
        client goes on. Syncs the log, whatever `durability` says.
        """
        with self.lock:
            self._check()
            target = self.stream_input(name)
            if isinstance(target, StreamInput) and target.is_system:
                raise Error(f"{name} is written by the engine, and nobody's to go on with")
            if self.log is not None:
                self.log.sync()
            assert target.journal is not None
            return int(target.journal.position)

    def checkpoint(self) -> None:
        """Leave out of the log what matters to no query any more, so that the folder is small and opens soon.

        Takes as long as reading the log does, and then as opening the folder will; other calls go on meanwhile. Error
        where it cannot be made; then nothing has changed. Not for a callback.
        """
        if self._callbacks.are_calling():
            raise Error("a callback cannot make a checkpoint\nhelp: make it when the call that it was told by is done")
        self.checkpoints.make()

    @contextlib.contextmanager
    def settled(self) -> Iterator[int]:
        """Other calls wait, all that has come has been processed and told; gives the number of entries."""
        with self._callbacks.held(), self.lock:
            self._check()
            self.journal.append(kind="process")
            self.settle()
            self.journal.mark(is_forced=True)
            assert self.log is not None
            yield self.log.next

    @property
    def entries(self) -> int:
        """How many entries the log has that stay there: an interrupted fetch takes back the last one."""
        with self.lock:
            return 0 if self.log is None else max(0, self.log.next - 1)

    @property
    def is_calling(self) -> bool:
        """A callback is at work, for which others wait."""
        return self._callbacks.are_calling()

    @property
    def log_folder(self) -> str:
        """Where the log is."""
        assert self.log is not None
        return self.log.folder

    def switch_to(self, log: Log, made: dict[str, Any], before: dict[str, Any]) -> Log:
        """Let a checkpoint be the log, which holds all that the log does, on disk; the log there was, to be retired.
        The lock is held. made, before: see `OwnedFolder.switch_to`.  Raises OSError.
        """
        try:
            self.owned.switch_to(log, made, before)
        except OSError:
            if not self.owned.is_as_known:
                self.journal.go_astray()
            raise
        left = self.log
        assert left is not None
        log.durability = self.settings["durability"]
        self._go_on_in(log)
        self.checkpointed_s = made["at_s"]
        return left

    def show_checkpoints(self) -> tuple[tuple[Any, ...], ...]:
        return self.checkpoints.table()

    def backup(self, folder: str | os.PathLike[str]) -> None:
        """Copy what there is now into a new folder, which opens like this one; other calls go on meanwhile. Error where
        the copy cannot be written; then nothing is left of it.
        """
        with self.copying:
            with self.lock:
                self._check()
                assert self.log is not None
                self.log.sync()
                files, metadata = sizes_of(self.log.folder), self.owned.metadata
            copy(files, metadata, path_of(folder))

    # ------------------------------------------------------------------------------------------------- statements

    def execute(self, cql: str, params: Parameters | None = None) -> Any:
        result = super().execute(cql, params)
        self.statements.make_wanted()
        return result

    sql = execute

    def _run(self, text: str) -> Any:
        result: Any = None
        for statement in parse(text):
            result = self.statements.carry_out(statement, text)
        return result

    @contextlib.contextmanager
    def replacing(self, query: Query, sink: Sink | None, statement: syntax.CreateQuery, text: str) -> Iterator[None]:
        replacing = self.statements.replacing if self.journal.begins_entries else super().replacing
        with replacing(query, sink, statement, text):
            yield

    def try_sink(self, sink: Sink, schema: Schema, instead_of: RunningQuery) -> None:
        if not self.files.is_reading:
            super().try_sink(sink, schema, instead_of)

    def query(self, cql: str, name: str | None = None, params: Parameters | None = None) -> Query:
        with self.lock:
            self._check()
            text, name = written(text_of(cql), params), self.next_name() if name is None else query_name_of(name)
            with self.journal.entry("query", cql=text, name=name):
                query = super().query(text, name)
            self.lock.undo_on_error(query.close)  # here interrupts may come out, not where it was made
            return query

    def create_function(
        self,
        name: str,
        fn: Callable[..., Any],
        arg_types: Sequence[str | Type],
        type: str | Type,
        vectorized: bool = False,
        fixed: bool = False,
    ) -> None:
        place = place_of(fn, f"function {name}")
        types = types_of(arg_types)
        given: dict[str, Any] = {"arg_types": list(map(str, types)), "type": str(type)}
        given |= {"vectorized": vectorized, "fixed": fixed}
        with self.lock, self.journal.entry("function", name=name, place=place, **given):
            super().create_function(name, fn, types, type, vectorized, fixed)

    def create_aggregate(
        self, name: str, cls: Callable[[], Any], arg_types: Sequence[str | Type], type: str | Type
    ) -> None:
        place = place_of(cls, f"aggregate {name}")
        types = types_of(arg_types)
        given: dict[str, Any] = {"arg_types": list(map(str, types)), "type": str(type)}
        with self.lock, self.journal.entry("aggregate", name=name, place=place, **given):
            super().create_aggregate(name, cls, types, type)

    def set(self, name: str, value: Any) -> None:
        value = checked(name, value)
        check_setting(name, value)
        with self.lock, self.journal.entry("setting", name=name, value=value):
            if self.log is not None:
                self.owned.lock.check()
            before = self.settings[name.lower()]
            super().set(name, value)
            if self.log is not None:
                self.log.durability = self.settings["durability"]
                try:
                    self.checkpoints.every(self.settings.checkpoint_s)
                except Error:
                    super().set(name, before)
                    raise

    # ---------------------------------------------------------------------------------------------------- elements

    def push(self, name: str, data: Any, ts: Any = None, sign: Any = None, block: bool = True) -> int:
        with Taking(self.journal):
            return super().push(name, data, ts, sign, block)

    def change_relation(self, name: str, change: Callable[[RelationInput], int]) -> int:
        with Taking(self.journal):
            return super().change_relation(name, change)

    def advance(self, ts: int, stream: str | None = None) -> None:
        with Taking(self.journal):
            super().advance(ts, stream)

    def process(self) -> None:
        with Taking(self.journal):
            super().process()

    def finish_unfed(self) -> list[str]:
        with Taking(self.journal):
            return super().finish_unfed()

    def _step(self, name: str | None) -> bool:
        has_news = super()._step(name)
        self._release_answers()
        if has_news:
            self.journal.commit()  # before callbacks are told
        return has_news

    def _drain(self) -> None:
        if self.log is not None and any(q.sink is not None and q.is_waiting for q in self.outward.values()):
            self.log.commit()
        try:
            super()._drain()
        except BaseException:
            # A file that has missed something is cut off at its mark when the folder is opened again; an entry that has
            # brought answers does not count, and they come again.
            if self.journal.is_amid or any(q.sink is None and q in self.files for q in self.outward.values()):
                self.journal.go_astray()
            raise
        finally:
            for query in list(self.outward.values()):
                if query.sink is not None and query not in self.files and not self.journal.is_astray:
                    self.journal.note_taken(query, query.position)
        self.journal.mark(is_forced=False)

    # ----------------------------------------------------------------------------------------------------- sources

    def opened(self, opening: Callable[[], Source | LiveLines], path: str) -> Source | LiveLines:
        return SourceToCome(opening, path) if self.log is None else opening()

    def feed(self, name: str, source: Any, format: str | None = None, **options: Any) -> Any:
        place = address_of(name, source, options)
        with self.lock, self.journal.entry("feed", to=name_of(name), place=place, format=format, options=options):
            return super().feed(name, place, format, **options)

    def drive(self, driver: SourceDriver, until: int | None = None, waits: bool = True) -> bool:
        with Taking(self.journal):
            if self._is_left:
                self.process()  # else nothing says that the step does
            return super().drive(driver, until, waits)

    def _go_on_with_sources(self) -> None:
        """Open the sources that have not ended, where they were left."""
        for each in self.inputs:
            for kept in each.journal.sources if each.journal is not None else ():
                to_come: SourceToCome = kept.source
                if not kept.has_ended and kept.replay is None:
                    self.warnings += to_come.open(each.definition.name, kept, partial(_held, each))
                    self.reading.open_again(to_come, kept.source)

    # -------------------------------------------------------------------------------------------- what is not kept

    def gather_history(self, streams: Iterable[str]) -> None:
        super().gather_history(streams)
        self.history.gather()

    def add_sink(self, query: RunningQuery, sink: Sink) -> None:
        if self.files.is_reading:
            self.files.wait(query, sink)
        elif not self.files.can_keep(sink):
            super().add_sink(query, sink)
            self.journal.note_taken(query, query.position)
        else:
            try:
                super().add_sink(query, self.files.begin(query, sink))
            except BaseException:
                self.files.forget(query.name.lower())
                raise

    def first_mark(self, query: RunningQuery, sink: Sink, options: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.files.can_keep(sink):
            return None
        try:
            json.dumps(options)
        except TypeError as error:
            raise Error(f"an option of the sink {sink.path!r} cannot be kept: {error}") from None
        if query.sink is not None:
            self.end_sink(query)
        return self.files.first_mark(query.name, sink, query.position)

    def _go_on_with_files(self) -> None:
        """Let the files of queries that have ended take their places, and the others write behind their marks."""
        self.warnings += self.files.end_all(self.journal.note_ended)
        for query, sink in self.files.go_on(self):
            try:
                super().add_sink(query, sink)
            except Error as error:
                self.files.give_up(query.name.lower())
                self.warnings.append(answers_wait(query, error))

    def query_each(self, template: str, table: str, name: str | None = None) -> QueryEach:
        """As in a connection without a folder; called again with what the folder keeps, it gives that."""
        with self.lock:
            self._check()
            there = next((e for e in self.rules if e.name.lower() == (name or name_of(table)).lower()), None)
            if there is None:
                with self.journal.entry(
                    "rules", template=text_of(template), table=name_of(table), name=name, decimals=True
                ):
                    return super().query_each(template, table, name)
            if (there.template, there.table.lower()) == (text_of(template), name_of(table).lower()):
                return there
            raise Error(f"the folder has other queries of a table named {there.name!r}: {there.template}")

    @property
    def rules(self) -> list[QueryEach]:
        """The tables' queries that are followed."""
        return [each for each in self._each if not each.closed]

    def replay(self, folder: str | os.PathLike[str], names: Sequence[str] | None = None, **options: Any) -> int:
        """As in a connection without a folder; called again with the same after a crash, it goes on where it was.

        All rows and columns are pushed, whatever `push_down` says: queries to come may read them in the log.
        """
        return super().replay(folder, names, **{**options, "push_down": False})

    def replay_span(
        self, target: StreamInput | RelationInput, archive: Archive, told: Mapping[str, Any], end: int
    ) -> tuple[int, int]:
        assert target.journal is not None
        if target.journal.has_left_another(told):
            self.warnings.append(
                f"{archive.folder!r} is another archive than the one that was being replayed into "
                f"{target.definition.name} when the process ended; this one is replayed from its beginning"
            )
        return target.journal.replay_span(archive, told, end)

    def begin_replay(
        self,
        target: StreamInput | RelationInput,
        told: Mapping[str, Any],
        arrivals: tuple[int, int],
        source: ReplaySource,
    ) -> None:
        name, (begin, end) = target.definition.name, arrivals
        journal = target.journal
        assert journal is not None
        kept = journal.replayed(told)
        if begin == end:
            return
        if kept is None or kept.has_ended:
            replay = {**told, "begin": begin, "end": end}
            if target.recorder is not None and target.recorder.is_suspended:
                replay["own"] = True
            with self.journal.entry("replay", to=name, **replay):
                kept = journal.replay(replay)
        kept.source = source
        if kept.until.at is not None:
            source.go_on(kept.until.at)

    def finish_replay(self, sources: Sequence[tuple[Source, StreamInput | RelationInput]]) -> None:
        of = [(target, target.journal.of(source)) for source, target in sources if target.journal is not None]
        there = [(target.definition.name, kept) for target, kept in of if kept is not None and not kept.has_ended]
        if not there:
            return
        with self.lock, self.journal.entry("replayed", ended=[(name, kept.number) for name, kept in there]):
            for _, kept in there:
                kept.has_ended = True

    def heartbeat(self, stream: StreamInput, ts: int) -> None:
        with Taking(self.journal):
            super().heartbeat(stream, ts)

    # ---------------------------------------------------------------------------------------------------- archives

    def archive(
        self, name: str, folder: str | os.PathLike[str] | None, partition: int | None = None, is_new: bool = False
    ) -> None:
        folder = None if folder is None else path_of(folder)
        with self.lock:
            self._check()
            if not self.journal.begins_entries:
                self._archive(name, folder, partition, is_new)
                return
            what = "query" if name_of(name).lower() in self.queries else "to"
            told: dict[str, Any] = {what: name, "folder": folder and os.path.abspath(local(folder, _ARCHIVES))}
            told |= {"partition": partition, "archive": self.archives.new_id()}
            with self.journal.entry("archive", **told):
                self._archive(name, folder, partition, is_new)

    def _archive(self, name: str, folder: str | None, partition: int | None, is_new: bool) -> None:
        if folder is None:
            super().archive(name, folder)
            target_of(self, name).recorder = None
            return
        if not self.is_replayed:
            check_outside(local(folder, _ARCHIVES))
            super().archive(name, folder, partition, is_new)
            return
        try:
            if not self.archives.are_written:
                raise Error("it is another connection's")
            sync_segments(self.owned.log_place)
            super().archive(name, folder, partition, is_new)
        except Error as error:
            self.archives.lose(self, name, error, is_new)

    def recorded(
        self, archive: Archive, target: StreamInput | RelationInput | Query, progress: Callable[[], int | None]
    ) -> Recorder:
        return self.archives.recorder(self, archive, target, progress)

    def _release_answers(self) -> None:
        """Let the archives of queries have what has come, a step being over."""
        if self.archiver is None or self.journal.is_astray:
            return
        for query in self.queries.values():
            if isinstance(query.recorder, KeptRecorder):
                query.recorder.release()

    def flush(self) -> None:
        with self.lock:
            self._release_answers()
        super().flush()

    def stop_archiving(self, target: StreamInput | RelationInput | RunningQuery | None) -> None:
        if target is not None and isinstance(target.recorder, KeptRecorder) and not self.journal.is_astray:
            target.recorder.release()
        if target is not None:
            name = target.definition.name if isinstance(target, StreamInput | RelationInput) else target.name
            self.archives.lost.pop(name.lower(), None)
        super().stop_archiving(target)

    # ------------------------------------------------------------------------------------------------------- ends

    def abandon(self) -> None:
        self.checkpoints.abandon()
        self.files.leave()
        super().abandon()
        if self.log is not None:
            self.log.abandon()
        self.owned.lock.release()

    def _end(self) -> None:
        """Its queries go on when the folder is opened again."""
        self.checkpoints.close()
        with self.lock:
            if self._closed:
                return
            try:
                if not self.journal.is_astray and not self.journal.is_ending:
                    for query in self.queries.values():
                        query.end_loops()
                    self.journal.mark(is_forced=True)
            finally:  # also where nothing more can be written: the folder is to be opened again
                self.journal.is_ending = True
                self.files.leave()
                super()._end()

    def _let_go(self) -> None:
        try:
            if self.log is not None:
                self.log.close()
        finally:
            self.owned.lock.release()


def _held(target: StreamInput | RelationInput) -> list[Any]:
    """The rows of a relation."""
    assert isinstance(target, RelationInput)
    return target.converter.rows(target.present().columns)
