"""The streams, relations and running queries of a connection, and the step that answers what has come.

Invariant: its methods are called under the lock; between two steps the engine is at rest, and every closed instant of
every query has been answered.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from minidsms.answers.callbacks import Callbacks
from minidsms.answers.news import News
from minidsms.answers.results import ResultCodec
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.cql.errors import ClosedError, Error, one_line, quoted
from minidsms.cql.words import TICK_NS
from minidsms.elements import MIN_INSTANT, Batch, Int64Array, Schema
from minidsms.engine.by_name import ByName
from minidsms.engine.engine import Engine
from minidsms.engine.group import Group
from minidsms.engine.groups import Groups
from minidsms.engine.journal import Journal
from minidsms.engine.network import InputProgress, Network
from minidsms.engine.running_query import RunningQuery
from minidsms.inputs.conversion import FIRST_INSTANT, LAST_INSTANT, Converter
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.slack_buffer import Released
from minidsms.inputs.stream_input import StreamInput
from minidsms.limits.admission import Admission
from minidsms.limits.memory import MemoryAccount
from minidsms.past.past import Past
from minidsms.plan.constants import Families
from minidsms.plan.dividing import take_back_all
from minidsms.plan.templates import Templates
from minidsms.process.background import Background
from minidsms.process.interrupts import EngineLock, breakable
from minidsms.process.safety import Safety
from minidsms.scheduler import Scheduler, scheduler_named
from minidsms.screens.screening import Screening
from minidsms.settings import Settings
from minidsms.sinks.positioned_sink import PositionedSink
from minidsms.sinks.sink import asked_of
from minidsms.sources.source_list import SourceList
from minidsms.statements.arguments import name_of
from minidsms.streamon.planning import AdaptivePlans
from minidsms.streamon.stream_monitor import StreaMon
from minidsms.synopses.relation_store import RelationStore
from minidsms.synopses.stream_store import StreamStore
from minidsms.system_streams import Publisher, SysDecisions, SysStream, SystemStreams
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.archive.archiver import Archiver
    from minidsms.operators.screen import Screen
    from minidsms.sinks.sink import Sink
    from minidsms.sources.live_lines import LiveLines
    from minidsms.sources.source import Source
    from minidsms.statements.query_each import QueryEach


MOST_NAMES = 30
"""Names that an error lists."""


class Database:
    """What a connection is of. clock: gives the present tick, for streams without timestamps."""

    journal = Journal()
    """Is told of what changes, and keeps it where there is a folder."""
    is_replayed = False
    """What comes is carried out again, as a folder keeps it: what was refused then is not among it, and limits and what
    they did stand there.
    """

    def __init__(self, clock: Callable[[], int] | None = None, **options: Any) -> None:
        if clock is not None and not callable(clock):
            raise Error("clock is a function without arguments that gives the present tick")
        self.settings = Settings(**options)
        self.safety = Safety(self.settings["safe"] == "on", self.settings["allowed_paths"])
        self.memory = MemoryAccount(self)
        self.background = Background()
        self.tick_ns = TICK_NS[self.settings["time_unit"]]
        self.began_s = time.monotonic()
        self.lock = EngineLock()
        self.allowance = self.lock.working = self.memory.allowance
        self.dictionary = TextDictionary(self.allowance)
        self.catalog = Catalog(tick_ns=self.tick_ns, rstream_ticks=self.settings["rstream"] == "ticks")
        self.families = Families()
        self.templates = Templates(self.catalog, self.families)
        self.catalog.limits = self.settings.limits
        self.queries: dict[str, RunningQuery] = ByName()
        self.catalog.queries = self.queries
        self.outward: dict[str, RunningQuery] = {}
        """The queries that have callbacks or a sink, or had."""
        self.admission = Admission(self, self.memory)
        self.warnings: list[str] = []
        self._clock = clock or (lambda: time.time_ns() // self.tick_ns)
        self._streams: dict[str, StreamInput] = {}
        self._with_slack: list[StreamInput] = []
        self._relations: dict[str, RelationInput] = {}
        self.streamon = StreaMon(self.settings)
        self.memory.spare = self._spare_memory
        self.adaptivity = AdaptivePlans(self.streamon, self.dictionary)
        screening = Screening(self.dictionary, self.settings, self.adaptivity)
        self.groups = Groups(self.settings["sharing"] == "on", screening, self.allowance)
        self._networks: dict[str, Network] = {}
        self.streamon.warn = self.warnings.append
        self.streamon.queries_of = lambda operator: [
            query.name for query in self.queries.values() if any(each is operator for each in query.network.operators)
        ]
        self._engine = Engine(self._scheduler(), self.settings["batch_size"], self.streamon.threads)
        self.reading = SourceList(self.tick_ns, self.warnings.append)
        self.news = News(lambda: self.groups.all)
        self._callbacks = Callbacks(self.lock, lambda: list(self.outward.values()), self.news)
        self._each: list[QueryEach] = []
        self._is_stepping = False
        self._unnamed = 0
        self._closed = False
        self._is_told = False
        self._is_left = False
        self._opened_by = os.getpid()
        self._is_inherited = False
        """It is the parent's, of a fork()."""
        self.archiver: Archiver | None = None
        self.system_streams = SystemStreams(
            self._streams, self.dictionary, self.tick_ns, self._clock, self.admission, self._open_journal
        )
        for publisher in (SysStream(self), SysDecisions(self.streamon.plan_log)):
            self.add_system_stream(publisher)
        self.past = Past(self)

    def _spare_memory(self) -> bool:
        """Memory is short: let joins do without patterns, else without rows that no longer matter; whether any does."""
        from minidsms.streamon.join_index.adaptive_index import spare_index
        from minidsms.streamon.k_mon.adaptive_reduction import reduce_state

        operators = list(chain.from_iterable(group.operators for group in self.groups.all))
        return spare_index(operators, self.streamon.instant) or reduce_state(operators, self.streamon.instant)

    def _open_journal(self, target: StreamInput | RelationInput) -> None:
        """An input is new: it tells its elements, where they are kept."""
        is_relation = isinstance(target, RelationInput)
        target.journal = self.journal.of_input(target.definition.name, target.schema, self.dictionary, is_relation)

    def _advance_all(self, ts: int) -> None:
        """Time has come for every stream, or, with a MemoryError, for none."""
        if self._with_slack:
            self._release_all(ts)
        for each in self._streams.values():
            if ts > each.progress and not (each.ended or each.is_system):
                each.progress = ts

    def _release_all(self, ts: int) -> None:
        """What waits for slack in streams is stored, or, with a MemoryError, nothing of it."""
        begun: list[tuple[StreamInput, Released | None]] = []
        try:
            for each in self._with_slack:
                if not (each.ended or each.is_system):
                    begun.append((each, each.begin(ts)))
        except MemoryError:
            for each, released in begun:
                each.give_up(released)
            raise
        for each, released in begun:
            each.complete(ts, released)

    def _instant(self, call: str, ts: Any) -> int:
        """An instant as `push` would read it."""
        if type(ts) is int and FIRST_INSTANT < ts < LAST_INSTANT:
            return ts
        return Converter(call, Schema(()), self.dictionary, self.tick_ns).instant(ts)

    def settle(self, name: str | None = None) -> None:
        """`process`, but callbacks are told by the call that is under way, once it has released the lock. name: of the
        only input that has news.
        """
        self._is_told = self._step(name) or self._is_told

    def add_stream(self, definition: StreamDef, source: Source | LiveLines | None = None) -> None:
        """Declare a stream."""
        key = definition.name.lower()
        self.catalog.streams[key] = definition
        self.templates.forget()
        stream = StreamInput(definition, self.dictionary, self.tick_ns, self._clock, self.admission)
        self._streams[key] = stream
        self._open_journal(stream)
        if stream.has_slack:
            self._with_slack.append(stream)
        if source is not None:
            self.reading.add(source, stream)

    def widen_stream(self, definition: StreamDef) -> None:
        """A stream has more columns from now on, at its end (`StreamInput.widen`)."""
        key = definition.name.lower()
        self._streams[key].widen(definition)
        self.catalog.streams[key] = definition
        self.templates.forget()

    def add_system_stream(self, publisher: Publisher) -> None:
        """Make a stream known that the engine writes itself (`minidsms.system_streams`)."""
        self.catalog.streams[publisher.name.lower()] = self.system_streams.add(publisher)

    def add_relation(self, definition: RelationDef, source: Source | LiveLines | None = None) -> None:
        """Declare a relation."""
        key = definition.name.lower()
        self.catalog.relations[key] = definition
        self.templates.forget()
        self._relations[key] = relation = RelationInput(
            definition,
            self.dictionary,
            self.tick_ns,
            lambda: self._closed_for(key),
            self.admission.admit_changes,
            self._clock,
            lambda: any(group.is_of_relations for group in self.groups.reading(key)),
            lambda stream: any(stream in group.streams for group in self.groups.reading(key)),
        )
        self._open_journal(relation)
        if source is not None:
            self.reading.add(source, relation)

    def drop_input(self, name: str) -> None:
        """Forget a stream or relation that no query reads."""
        key = name.lower()
        target = self._streams.pop(key, None) or self._relations.pop(key, None)
        self._with_slack = [each for each in self._with_slack if each is not target]
        self.stop_archiving(target)
        self.catalog.streams.pop(key, None)
        self.catalog.relations.pop(key, None)
        self.templates.forget()
        if target is not None:
            self.reading.remove(target)

    def first_mark(self, query: RunningQuery, sink: Sink, options: Mapping[str, Any]) -> dict[str, Any] | None:
        """Where a sink begins that is gone on with when a folder is opened again; None for others. Error where it
        cannot be written.
        """
        return None

    def add_sink(self, query: RunningQuery, sink: Sink) -> None:
        """Let a query deliver into a sink instead of keeping its answers until they are fetched.

        The sink is opened now, and closed with the query, with the connection, or by `run` when all has been read.
        Raises Error where the place cannot be written; then nothing has changed.
        """
        with self.lock:
            self._check()
            self._check_alone(sink, self.queries.values())
            if isinstance(sink, PositionedSink):
                sink.position = query.position
            try:
                with breakable:
                    sink.open(query.schema, query.codec)
                if query.sink is not None:
                    query.close_sink()
            except BaseException:
                sink.discard()
                raise
            query.set_sink(sink)

    def try_sink(self, sink: Sink, schema: Schema, instead_of: RunningQuery) -> None:
        """Error where the place cannot be written by a query of this schema that takes another's place."""
        self._check_alone(sink, [query for query in self.queries.values() if query is not instead_of])
        before = instead_of.sink
        if sink.path != "-" and (before is None or os.path.realpath(before.path) != os.path.realpath(sink.path)):
            try:
                with breakable:
                    sink.open(schema, self.codec(schema))
            finally:
                sink.discard()

    def _check_alone(self, sink: Sink, queries: Iterable[RunningQuery]) -> None:
        """Error where one of the queries writes the same file, or an input is read from it and it would be replaced."""
        if sink.path == "-" or "://" in sink.path:
            return
        place = os.path.realpath(sink.path)
        if "append" not in (asked_of(sink) or ("", {}))[1]:
            for source, target in self.reading.sources:
                if os.path.realpath(source.path) == place:
                    reason = f"{target.definition.name} is read from {sink.path!r}, which the answers would replace"
                    raise Error(f"{reason}\nhelp: give them a file of their own")
        for other in queries:
            if other.sink is not None and os.path.realpath(other.sink.path) == place:
                raise Error(f"query {other.name} writes {sink.path!r} already; give each query a file of its own")

    def add_outward(self, query: RunningQuery) -> None:
        """A query is going to have a callback."""
        self.outward[query.name.lower()] = query

    def readers_of(self, name: str) -> list[str]:
        """The names of the queries that read a stream or relation."""
        groups = self.groups.reading(name.lower())
        return [q for q, network in self._networks.items() if any(network.group is group for group in groups)]

    def next_name(self) -> str:
        """A name for a query that was given none."""
        while True:
            self._unnamed += 1
            name = f"q{self._unnamed}"
            if name not in self.queries:
                return name

    def stream_store(self, name: str) -> tuple[StreamStore, InputProgress, Int64Array]:
        """A stream's store and progress and the instants of what waits for slack, for the planner."""
        stream = self._streams[name.lower()]
        return stream.store, stream, stream.waiting_instants()

    def gather_history(self, streams: Iterable[str]) -> None:
        """Let the stores of streams hold what a query WITH HISTORY begins with."""
        for name in streams:
            take_back_all(self.groups.all, self._streams[name.lower()].store)

    def relation_store(self, name: str) -> tuple[RelationStore, RelationInput]:
        """A relation's store and progress, for the planner."""
        relation = self._relations[name.lower()]
        return relation.store, relation

    def stream_input(self, name: str) -> StreamInput | RelationInput:
        """The input of a stream or relation: counters, rejected rows, progress."""
        key = name_of(name).lower()
        if key in self._streams:
            return self._streams[key]
        if key in self._relations:
            return self._relations[key]
        raise self._unknown(name)

    def relation_input(self, name: str) -> RelationInput:
        """The input of a relation that there is."""
        return self._relations[name.lower()]

    def frontier(self, streams: Iterable[str], relations: Iterable[str]) -> int:
        """The greatest instant closed for a query over these inputs."""
        of_streams, of_relations = (
            [self._streams[s.lower()] for s in streams],
            [self._relations[r.lower()] for r in relations],
        )
        return Group(of_streams, of_relations, False).frontier(self._engine.heartbeat)

    def start(self, query: RunningQuery, network: Network, group: Group, inputs: Sequence[str]) -> None:
        """Let a planned query run in a group; it answers the instants after those the group has closed."""
        key = query.name.lower()
        try:
            self.queries[key], self._networks[key] = query, network
            group.add(network)
            self.groups.add(group, inputs)
            self._process([group])
            self._rest(group=group)
            self.past.begin()
        except BaseException:
            # It has never been there: what a plan has claimed of stores is given back.
            self.forget(query)
            if network.group is None:
                network.close()
            raise

    def adopt(self, query: RunningQuery, network: Network, group: Group) -> None:
        """Let a query that is folded already answer from now on: nothing waits for it."""
        self.queries[query.name.lower()] = query
        self._networks[query.name.lower()] = network
        group.add(network)
        self.past.begin()

    def forget(self, query: RunningQuery) -> None:
        """Stop a query and free what only it used."""
        with self.lock:
            key = query.name.lower()
            if self.queries.get(key) is not query:
                return
            try:
                self.outward.pop(key, None)
                self.stop_archiving(query)
                network, _ = self._networks.pop(key, None), self.queries.pop(key)
                if network is not None and network.group is not None:
                    self.groups.remove(network)
            except BaseException:
                self._networks.pop(key, None)
                self.queries.pop(key, None)
                self.groups.keep(self._networks.values())
                raise
            self._rest()
            self.past.hasten()
            self.system_streams.close_unread(self.readers_of)
            self.journal.forget(query)

    def codec(self, schema: Schema, streams: Iterable[str] = ()) -> ResultCodec:
        """A decoder of results of this connection.  streams: those that the results are of."""
        has_times = any(self.catalog.streams[name.lower()].has_times for name in streams)
        return ResultCodec(schema, self.dictionary, self.tick_ns, has_times)

    def set(self, name: str, value: Any) -> None:
        """Change a setting; takes effect at once."""
        self.settings.set(name, value)
        self.templates.forget()
        if self.settings["safe"] == "on":
            self.safety.switch_on()
        self._engine.batch_size = self.settings["batch_size"]
        if name.lower() in ("scheduler", "chain_latency_bound", "quantum"):
            self._engine.scheduler = self._scheduler()
        self.catalog.rstream_ticks = self.settings["rstream"] == "ticks"
        self.catalog.limits = self.settings.limits
        for query in self.queries.values():
            query.apply_settings()
        self.admission.look()
        self.groups.switch(self.settings["sharing"] == "on")

    def _scheduler(self) -> Scheduler:
        """The scheduler that the settings name."""
        return scheduler_named(
            self.settings["scheduler"], self.settings["quantum"], self.settings["chain_latency_bound"]
        )

    def _step(self, name: str | None) -> bool:
        """Process what is due after news of one input (None: of any); whether callbacks have something to be told."""
        if name is None:
            groups: Sequence[Group] = self.groups.all
            self._is_left = False
            if groups:
                self._process(groups)
            self._rest()
        else:
            groups = self.groups.reading(name)
            target = self._streams.get(name) or self._relations[name]
            # Where nothing ran, stores have nothing to give up, but what comes into one that nobody reads.
            if (groups and self._process(groups)) or not target.store.is_read:
                self._rest_of(target, groups)
        if self.dictionary.nbytes:
            self.memory.sweep()
        if self._each:
            self._follow()  # before an entry of its own says what is measured
        if self.system_streams.is_read and self.journal.may_publish:
            for key in self.system_streams.publish():
                groups = self.groups.reading(key)
                self._process(groups)
                self._rest_of(self._streams[key], groups)
        if not self.outward:
            return self.news.is_wanted
        self._drain()
        return self.news.is_wanted or any(q.callbacks() for q in self.outward.values())

    def is_followed(self, name: str) -> bool:
        """Queries are registered for the rows of a relation."""
        return any(each.table.lower() == name.lower() for each in self._each)

    def unfollow(self, each: QueryEach) -> None:
        """It follows its table no longer."""
        self._each = [other for other in self._each if other is not each]

    def end_followed(self, query: RunningQuery, leave: Callable[[Sequence[Batch]], None]) -> None:
        """A query that was registered for a row is about to be closed. leave: lets answers wait all the same; those of
        a query with a sink go there.
        """
        self.journal.end(query, leave)
        if query.sink is None and query.is_waiting:
            leave(query.taken_batches())

    def _follow(self) -> None:
        """Let what follows a table do what its changes ask for."""
        with self.journal.following():
            for each in self._each:
                if each.has_news:
                    each.follow()

    def _process(self, groups: Sequence[Group]) -> bool:
        """A step of the engine; whether anything was processed. A query that is interrupted midway has lost its place
        and fails; the others go on.
        """
        if time.monotonic() >= self.past.due_s:
            self.past.look()
        allowance = self.allowance
        self._is_stepping = True
        if allowance.is_clocked:
            allowance.begin()
        else:
            allowance.is_at_work = True
            allowance.calls += 1
            allowance.began = allowance.left
        try:
            has_run = self._engine.step(groups)
            if self.admission.is_shedding:
                self.admission.shed_waiting(groups)
                has_run = True
            return has_run
        except BaseException as error:
            self.journal.cut_short(error)
            for group in groups:
                group.interrupt(type(error).__name__)
            raise
        finally:
            self._is_stepping = allowance.is_at_work = False
            if allowance.is_clocked:
                allowance.end()

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """Rows are computed beside the queries that run: what is called meanwhile must not use the connection."""
        self._is_stepping = True
        self.allowance.begin()
        try:
            yield
        finally:
            self._is_stepping = False
            self.allowance.end()

    def _drain(self) -> None:
        """Answers go to their sinks, the engine being at rest. Every sink gets its own before an error is raised."""
        failed: Exception | None = None
        for query in list(self.outward.values()):  # a function that takes tables may close queries
            if query.sink is not None:
                try:
                    query.drain()
                except Exception as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    def _step_chunk(self, name: str, stream: StreamInput) -> None:
        """Process a part of one push."""
        groups = self.groups.reading(name)
        if groups:
            self._process(groups)
            for group in groups:
                group.rest()
        self._free((stream,))

    def _free(self, sources: Iterable[StreamInput | RelationInput]) -> None:
        """The stores give up what nobody claims. Queries that claim what there is no room to keep end before it."""
        for source in sources:
            try:
                source.store.free()
            except MemoryError:
                assert isinstance(source, StreamInput)
                self.admission.fail_readers(source)

    def _rest(self, group: Group | None = None) -> None:
        """The engine is at rest: stores give up what nobody claims, those of a group's queries or all."""
        if group is None:
            self._free(self._streams.values())
            self._free(self._relations.values())
        else:
            self._free(s for s in (*group.streams, *group.relations) if isinstance(s, StreamInput | RelationInput))
        for each in self.groups.all if group is None else (group,):
            if each.stubs:
                each.rest()

    def _rest_of(self, source: StreamInput | RelationInput, groups: Iterable[Group]) -> None:
        """The same after news of one input. groups: that read it."""
        self._free((source,))
        for group in groups:
            # What one stream brings lets windows over the others go on, which may get nothing more themselves.
            if len(group.streams) > 1:
                self._free(stream for stream in group.streams if isinstance(stream, StreamInput))
            if group.stubs:
                group.rest()

    @property
    def nbytes(self) -> int:
        """Bytes held by streams, relations, operators and answers that have not been fetched."""
        return self.memory.nbytes

    @property
    def scheduler(self) -> Scheduler:
        """Which operator runs next."""
        return self._engine.scheduler

    @property
    def inputs(self) -> list[StreamInput | RelationInput]:
        """Every stream, then every relation."""
        return [*self._streams.values(), *self._relations.values()]

    @property
    def screens(self) -> list[Screen]:
        """What looks up many filters at once."""
        return [screen for group in self.groups.all for screen in group.screens]

    def _closed_for(self, relation: str) -> int:
        """The greatest instant closed for a query that reads the relation."""
        return max((g.closed(self._engine.heartbeat) for g in self.groups.reading(relation)), default=MIN_INSTANT)

    def _unknown(self, name: str) -> Error:
        if name.lower() in self.system_streams.definitions():
            return Error(f"{name} is written by the engine; declare a stream of your own to push into")
        for what, named in (("view", self.catalog.views), ("query", self.queries)):
            if name.lower() in named:
                return Error(f"{name} is a {what}, whose rows come from what it reads; push into a stream or relation")
        known = [one_line(i.definition.name) for i in self.inputs]
        more = ", .." if len(known) > MOST_NAMES else ""
        there = f"there are: {', '.join(known[:MOST_NAMES])}{more}" if known else "none has been created"
        return Error(f"no stream or relation {quoted(name)}; {there}")

    @property
    def is_closed(self) -> bool:
        """`close` has been called."""
        return self._closed

    def check_process(self) -> None:
        """ClosedError in a child of the process that opened the connection."""
        if self._is_inherited:
            raise ClosedError(
                f"the connection was opened by process {self._opened_by}, of which this is a fork; here it is closed\n"
                "help: connect in the child, or start it with spawn or forkserver"
            )

    def _check(self) -> None:
        if not (self._closed or self._is_stepping):
            return
        if self._closed:
            self.check_process()
            raise ClosedError("the connection has been closed")
        raise Error("a user function or aggregate must not use the connection that calls it")

    def stop_archiving(self, target: StreamInput | RelationInput | RunningQuery | None) -> None:
        """Write what waits of one stream, relation or query, and archive it no longer."""
        if target is not None and target.recorder is not None and self.archiver is not None:
            recorder, target.recorder = target.recorder, None
            self.archiver.detach(recorder)
