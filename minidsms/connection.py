"""A connection: streams, relations, views and continuous queries, inside the application's process.

Invariant: a call that raises has changed nothing; when a call returns, every closed instant of every query has been
answered. One lock guards the engine; callbacks run outside it, and what they push is taken in turn.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from minidsms.answers.callbacks import Callbacks
from minidsms.answers.news import News
from minidsms.answers.results import ResultCodec
from minidsms.archive.connected import Archiving
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.cql.errors import ClosedError, Error, MemoryLimitError, one_line, quoted
from minidsms.cql.parameters import Parameters, written
from minidsms.dictionary import TextDictionary
from minidsms.elements import MIN_INSTANT, Int64Array, Schema, Type
from minidsms.engine.engine import Engine, Group, InputProgress, Network
from minidsms.engine.groups import Groups
from minidsms.engine.reading import ReadsSources, SourceList
from minidsms.inputs.conversion import FIRST_INSTANT, LAST_INSTANT, Converter
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.slack_buffer import Released
from minidsms.inputs.stream_input import StreamInput
from minidsms.limits.admission import Admission
from minidsms.limits.allowance import Allowance
from minidsms.limits.memory import MemoryAccount
from minidsms.plan.constants import Families
from minidsms.plan.templates import Templates
from minidsms.process import forking
from minidsms.process.behind import Behind
from minidsms.process.interrupts import EngineLock, breakable
from minidsms.process.safety import Safety
from minidsms.query import Change, Query
from minidsms.scheduler import Scheduler, scheduler_named
from minidsms.screens.screening import Screening
from minidsms.settings import UNIT_NS, Settings
from minidsms.statements import run as statements
from minidsms.statements.arguments import name_of, text_of
from minidsms.statements.registering import create_written, register_written
from minidsms.statements.rules import QueryEach
from minidsms.statements.user_definitions import define_aggregate, define_function
from minidsms.streamon.planning import AdaptivePlans
from minidsms.streamon.state_reduction import reduce_state
from minidsms.streamon.stream_monitor import StreaMon
from minidsms.synopses.relation_store import RelationStore
from minidsms.synopses.stream_store import StreamStore
from minidsms.system_streams import Publisher, SysDecisions, SysStream, SystemStreams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from minidsms.operators.screen import Screen
    from minidsms.sinks.sink import Sink
    from minidsms.sources.source import LiveSource, Source
    from minidsms.web.server import Visualizer


_NOT_LOGGED = contextlib.nullcontext()
_KEEPS_NOTHING = "a connection without a folder keeps nothing\nhelp: minidsms.connect(folder)"

MOST_NAMES = 30
"""Names that an error lists."""


def connect(folder: str | os.PathLike[str] | None = None, **options: Any) -> Connection:
    """Open a connection; options are settings (`SHOW SETTINGS`) and `clock`.

    folder: keeps what the connection is told, and gives it back when it is opened again (docs/durability.md); None: it
    stays in memory.
    time_unit: "ns", "us", "ms" (default), "s", "m", "h" or "d", the length of a tick.  scheduler, batch_size,
    queue_size, memory_limit, seed: see `minidsms.settings`.  clock: a function without arguments that gives the
    present tick, for streams without timestamps (default: the system's clock).

    >>> db = connect()
    >>> db.execute("CREATE STREAM Pos (car INTEGER, speed FLOAT)")
    >>> q = db.query("SELECT ISTREAM(car, AVG(speed)) FROM Pos [RANGE 30 SECONDS] GROUP BY car")
    >>> db.push("Pos", [(1, 50.0), (1, 60.0)], ts=[0, 1000])
    2
    >>> db.advance(1000)
    >>> q.fetch()
    [Change(ts=0, sign=1, row=(1, 50.0)), Change(ts=1000, sign=1, row=(1, 55.0))]
    """
    if folder is None:
        return Connection(**options)
    from minidsms.durability.connection import DurableConnection

    return DurableConnection(os.fspath(folder), **options)


PUBLIC = (
    "advance archive backup checkpoint close create_aggregate create_function execute feed flush offload on_change "
    "pause position process push queries query query_each replay resume run set settings sql stop ui warnings"
)
"""What `dir` shows of a connection."""


class Connection(Archiving, ReadsSources):
    """See `connect`. A context manager: leaving it closes the connection and its queries."""

    checkpointed_s: float | None = None
    """When `checkpoint` was done last, in seconds since 1970."""

    def __dir__(self) -> list[str]:
        """What docs/python-api.md lists; the rest is the engine's."""
        return PUBLIC.split()

    def __init__(self, clock: Callable[[], int] | None = None, **options: Any) -> None:
        if clock is not None and not callable(clock):
            raise Error("clock is a function without arguments that gives the present tick")
        self.settings = Settings(**options)
        self.safety = Safety(self.settings["safe"] == "on", self.settings["allowed_paths"])
        self.memory = MemoryAccount(self)
        self.behind = Behind()
        self.tick_ns = UNIT_NS[self.settings["time_unit"]]
        self.began_s = time.monotonic()
        self.lock = EngineLock()
        super().__init__()
        self.allowance = self.lock.working = Allowance(self.memory)
        self.dictionary = TextDictionary(self.allowance)
        self.catalog = Catalog(tick_ns=self.tick_ns, rstream_ticks=self.settings["rstream"] == "ticks")
        self.families = Families()
        self.templates = Templates(self.catalog, self.families)
        self.catalog.limits = self.settings.limits
        self.queries: dict[str, Query] = {}
        self.outward: dict[str, Query] = {}
        """The queries that have callbacks or a sink, or had."""
        self.admission = Admission(self, self.memory)
        self.warnings: list[str] = []
        self._clock = clock or (lambda: time.time_ns() // self.tick_ns)
        self._streams: dict[str, StreamInput] = {}
        self._relations: dict[str, RelationInput] = {}
        self.streamon = StreaMon(self.settings)
        self.memory.spare = lambda: reduce_state(
            chain.from_iterable(group.operators for group in self.groups.all), self.streamon.instant
        )
        self.adaptivity = AdaptivePlans(self.streamon, self.dictionary)
        screening = Screening(self.dictionary, self.settings, self.adaptivity)
        self.groups = Groups(self.settings["sharing"] == "on", screening, self.allowance)
        self._networks: dict[str, Network] = {}
        self.streamon.warn = self.warnings.append
        self.streamon.queries_of = lambda operator: [
            query.name for query in self.queries.values() if any(each is operator for each in query.network.operators)
        ]
        self._engine = Engine(self._scheduler(), self.settings["batch_size"])
        self.reading = SourceList(self.tick_ns, self.warnings.append)
        self.news = News(lambda: self.groups.all)
        self._callbacks = Callbacks(self.lock, lambda: list(self.outward.values()), self.news)
        self._each: list[QueryEach] = []
        self._is_stepping = False
        self._unnamed = 0
        self._closed = False
        self._visualizer: Visualizer | None = None
        self._is_told = False
        self._is_left = False
        self._opened_by = os.getpid()
        self._is_inherited = False
        forking.register(self)
        self.system_streams = SystemStreams(self._streams, self.dictionary, self.tick_ns, self._clock, self.admission)
        for publisher in (SysStream(self), SysDecisions(self.streamon.plan_log)):
            self.add_system_stream(publisher)

    # ---------------------------------------------------------------------------------------------- statements

    def execute(self, cql: str, params: Parameters | None = None) -> Any:
        """Run statements separated by `;`; returns what the last one gives: a Query, a `Table`, or None.

        params: the values of `?` in their order, or a dict of those of `$name`; a list or tuple stands behind IN.
        Raises CqlError with the place; the statements before it have been carried out.
        """
        with self.lock:
            self._check()
            result = self._run(written(text_of(cql), params))
            told, self._is_told = self._is_told, False
        if told:
            self._callbacks.tell()
        return result

    sql = execute

    def _run(self, text: str) -> Any:
        """Carry out the statements of a text; the last one's result."""
        return create_written(self, text) or statements.execute(self, text)

    def logged(self, kind: str, **fields: Any) -> contextlib.AbstractContextManager[None]:
        """What the context changes is kept where there is a folder for it (`minidsms.durability`)."""
        return _NOT_LOGGED

    def note_taken(self, query: Query, until: int) -> None:
        """Answers before this position of the query's need not be kept."""

    def position(self, name: str) -> int:
        """How many elements of a stream or relation a connection with a folder has on disk."""
        raise Error(_KEEPS_NOTHING)

    def checkpoint(self) -> None:
        """Make the folder of a connection smaller, and quicker to open."""
        raise Error(_KEEPS_NOTHING)

    def show_checkpoints(self) -> tuple[tuple[Any, ...], ...]:
        """The rows of SHOW CHECKPOINTS."""
        raise Error(_KEEPS_NOTHING)

    def backup(self, folder: str | os.PathLike[str]) -> None:
        """Copy the folder of a connection into a new one, while it is open."""
        raise Error(_KEEPS_NOTHING)

    def query(self, cql: str, name: str | None = None, params: Parameters | None = None) -> Query:
        """Register a query; it runs from now on. Without a name it gets one (q1, q2, ..). params: as in `execute`.

        >>> db = connect()
        >>> db.execute("CREATE STREAM Pos (car INTEGER, speed FLOAT)")
        >>> fast = db.query("SELECT car FROM Pos WHERE speed > ? AND car IN ?", params=[100, [1, 2, 3]])
        >>> fast.text
        'SELECT car FROM Pos WHERE speed > 100 AND car IN (1, 2, 3)'
        """
        with self.lock:
            self._check()
            if name is not None and not name_of(name):
                raise Error("the name of a query is empty; leave it out, and it gets one")
            text = written(text_of(cql), params)
            if name is None or name.lower() not in self.queries:
                query = register_written(self, text, name)
                if query is not None:
                    self.lock.undo_on_error(query.close)
                    return query
            query = statements.register_text(self, text, name)
            self.lock.undo_on_error(query.close)
            return query

    def query_each(self, template: str, table: str, name: str | None = None) -> QueryEach:
        """Register one query per row of a relation with a KEY, and follow its changes.

        template: CQL with `$column` where a row's value is to stand.  name: of the queries, with the row's key behind
        it (default: the table's).  Raises Error, and then nothing has been registered.

        >>> db = connect()
        >>> db.execute("CREATE STREAM Pos (car INTEGER, speed FLOAT)")
        >>> db.execute("CREATE RELATION Limits (who TEXT, most FLOAT) KEY (who)")
        >>> db.push("Limits", [("ann", 50.0), ("bob", 80.0)])
        2
        >>> alarms = db.query_each("SELECT ISTREAM(car) FROM Pos WHERE speed > $most", "Limits")
        >>> db.push("Pos", (7, 60.0), ts=1)
        1
        >>> alarms.fetch()
        [('ann', Change(ts=1, sign=1, row=(7,)))]
        """
        with self.lock:
            self._check()
            each = QueryEach(self, template, table, name)
            self._each.append(each)
            self.lock.undo_on_error(each.close)
            return each

    def on_change(
        self, fn: Callable[[list[tuple[Query, list[Change]]]], Any], wants: Callable[[Query], bool] | None = None
    ) -> Callable[..., Any]:
        """Call fn once a step with (query, changes) of every query that has something new, outside the engine's lock.

        wants: which queries; None: all. Those with callbacks or a sink of their own are left to these, and what fn is
        told is not fetched again. Usable as a decorator.
        """
        if not callable(fn):
            raise Error(f"on_change takes a function of a list, not {type(fn).__name__}")
        with self.lock:
            self._check()
            self.news.want(fn, wants or (lambda query: True))
        return fn

    def offload(
        self,
        query: Query | str,
        folder: str | None = None,
        at: Sequence[int] | None = None,
        until: int | None = None,
        by: str | None = None,
    ) -> DataFrame:
        """The answer of a query over archives, from Spark, as a Spark DataFrame (docs/spark.md).

        query: a registered one, its name, or CQL.  folder: of archives; None: where this connection archives what the
        query reads.  at, until, by, and what comes back: see `minidsms.spark.run`.
        """
        from minidsms.spark.running import offload

        self.safety.check_program("Spark")
        return offload(self, query, folder, at, until, by)

    def ui(self, port: int = 0, open_browser: bool = False) -> Visualizer:
        """Show the connection in a browser, as it runs: plans, decisions, figures, answers (docs/visualizer.md).

        port: on this machine's loopback; 0: a free one.  Returns what has the page's `url` and ends it by `stop`; it
        ends with the connection.  Called again, it gives the one there is.  Needs the extra minidsms[web].
        """
        with self.lock:
            self._check()
            shown = self._visualizer
        if shown is None or shown.is_over:
            from minidsms.web.server import Visualizer

            self._visualizer = shown = Visualizer(self, port).start()
        if open_browser:
            shown.open_browser()
        return shown

    def create_function(
        self,
        name: str,
        fn: Callable[..., Any],
        arg_types: Sequence[str | Type],
        type: str | Type,
        vectorized: bool = False,
        fixed: bool = False,
    ) -> None:
        """Make a Python function usable in CQL.

        fn takes one value per argument and returns one (None is NULL); vectorized: it takes and returns numpy arrays,
        one element per row. fixed: it must be evaluated where it was written among the filters. An exception in it is
        an error of the query that called it.
        """
        with self.lock:
            self._check()
            define_function(self.catalog, name, fn, arg_types, type, vectorized, fixed)
            self.templates.forget()

    def create_aggregate(
        self, name: str, cls: Callable[[], Any], arg_types: Sequence[str | Type], type: str | Type
    ) -> None:
        """Make a Python class usable as an aggregate: add(*values), remove(*values) and result().

        A group has one instance. Rows with a NULL argument are not added.
        """
        with self.lock:
            self._check()
            define_aggregate(self.catalog, name, cls, arg_types, type)

    # -------------------------------------------------------------------------------------------------- elements

    def push(self, name: str, data: Any, ts: Any = None, sign: Any = None, block: bool = True) -> int:
        """Push elements into a stream, or changes into a relation; returns how many were taken.

        data: a tuple (one row), a list of tuples or dicts, a dict of columns, or anything with `__arrow_c_stream__`
        (pyarrow, polars, pandas).  ts: an instant or one per row; without it the TIMESTAMP BY column, else the clock.
        sign: for relations, +1 (default), -1, or one per row.
        block: False leaves the elements to the next call that processes (`process`, `advance`, another push); where
        more would wait for a query than its queues may hold, it raises QueueFullError.
        Raises DataError, LateElementError or MemoryLimitError, and then nothing has changed.
        """
        try:
            return self._push(name, data, ts, sign, block)
        except MemoryLimitError:
            with self.lock:
                if not self._is_stepping:
                    self.memory.forget_refused()
            raise

    def _push(self, name: str, data: Any, ts: Any, sign: Any, block: bool) -> int:
        with self.lock:
            self._check()
            if self.archiver is not None:
                self.archiver.admit()
            key = name_of(name).lower()
            if self.replaying is not None:
                self.await_replay(key)
            stream = self._streams.get(key)
            if stream is not None:
                if sign is not None:
                    raise Error(f"{one_line(name)} is a stream; its elements have no sign")
                if self._callbacks.are_calling():
                    self._callbacks.defer(lambda: self.push(name, data, ts, block=block))
                    return 0
                if not block:
                    self._is_left = True
                    return stream.push(data, ts, refuse=lambda n: self.admission.refuse_full(stream, n))
                if type(data) is tuple:
                    taken = stream.push(data, ts)
                    told = self._step(key)
                else:
                    taken, told = self._push_columns(key, stream, data, ts)
            elif key in self._relations:
                if not block:
                    raise Error(f"{one_line(name)} is a relation; block=False is for streams, whose elements wait")
                if self._callbacks.are_calling():
                    self._callbacks.defer(lambda: self.push(name, data, ts, sign))
                    return 0
                relation = self._open_for_change(key)
                taken = relation.push(data, ts, 1 if sign is None else sign)
                told = self._step(key)
            else:
                raise self._unknown(name)
        if told:
            self._callbacks.tell()
        return taken

    def upsert(self, name: str, data: Any, ts: Any = None) -> int:
        """Put rows into a relation in the place of those with the same KEY; returns how many were given.

        data, ts: as for `push`; of rows with one key the last stays. Raises what `push` does, and Error where the
        relation has no KEY; then nothing has changed.
        """
        with self.lock:
            self._check()
            if self.archiver is not None:
                self.archiver.admit()
            key = name_of(name).lower()
            if self.replaying is not None:
                self.await_replay(key)
            if key not in self._relations:
                raise (
                    Error(f"{one_line(name)} is a stream: nothing is replaced there")
                    if key in self._streams
                    else (self._unknown(name))
                )
            if self._callbacks.are_calling():
                self._callbacks.defer(lambda: self.upsert(name, data, ts))
                return 0
            taken = self._open_for_change(key).upsert(data, ts)
            told = self._step(key)
        if told:
            self._callbacks.tell()
        return taken

    def _open_for_change(self, key: str) -> RelationInput:
        """The relation; what the elements left so far have closed is closed for the change."""
        if self._is_left:
            self._step(None)
        return self._relations[key]

    def _push_columns(self, key: str, stream: StreamInput, data: Any, ts: Any) -> tuple[int, bool]:
        """Push what may be much, part by part; how many were taken, and what `_step` says."""
        try:
            taken = stream.push(data, ts, self.settings["batch_size"], lambda: self._step_chunk(key, stream))
            return taken, self._step(key)
        finally:
            try:
                stream.store.keep()
            except MemoryError:
                self.admission.fail_readers(stream)

    def advance(self, ts: int, stream: str | None = None) -> None:
        """A heartbeat: no later element of the stream (default: of any) has a timestamp <= ts."""
        with self.lock:
            self._check()
            self.await_replay(stream if stream is None else name_of(stream).lower())
            if self._callbacks.are_calling():
                self._callbacks.defer(lambda: self.advance(ts, stream))
                return
            if stream is None:
                # Read once, before any input takes it: a call that raises changes nothing.
                ts = self._instant("advance", ts)
                self._advance_all(ts)
                self._engine.heartbeat = max(self._engine.heartbeat, int(ts))
                told = self._step(None)
            else:
                key = name_of(stream).lower()
                if key not in self._streams:
                    if key in self._relations:
                        raise Error(
                            f"{one_line(stream)} is a relation; relations hold no time back and take no heartbeats"
                        )
                    raise self._unknown(stream)
                self._streams[key].advance(ts)
                told = self._step(key)
        if told:
            self._callbacks.tell()

    def _advance_all(self, ts: int) -> None:
        """Time has come for every stream, or, with a MemoryError, for none."""
        begun: list[tuple[StreamInput, Released | None]] = []
        try:
            for each in self._streams.values():
                if not each.ended and not each.is_system:
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

    def process(self) -> None:
        """Process what is due: what a query that was paused has before it, what system streams owe."""
        with self.lock:
            self._check()
            if self._callbacks.are_calling():
                self._callbacks.defer(self.process)
                return
            self.settle()
            told, self._is_told = self._is_told, False
        if told:
            self._callbacks.tell()

    def settle(self) -> None:
        """`process`, but callbacks are told by the call that is under way, once it has released the lock."""
        self._is_told = self._step(None) or self._is_told

    # ---------------------------------------------------------------------------------- registration, by statements

    def add_stream(self, definition: StreamDef, source: Source | LiveSource | None = None) -> None:
        """Declare a stream."""
        key = definition.name.lower()
        self.catalog.streams[key] = definition
        self.templates.forget()
        self._streams[key] = StreamInput(definition, self.dictionary, self.tick_ns, self._clock, self.admission)
        if source is not None:
            self.reading.add(source, self._streams[key])

    def add_system_stream(self, publisher: Publisher) -> None:
        """Make a stream known that the engine writes itself (`minidsms.system_streams`)."""
        self.catalog.streams[publisher.name.lower()] = self.system_streams.add(publisher)

    def add_relation(self, definition: RelationDef, source: Source | LiveSource | None = None) -> None:
        """Declare a relation."""
        key = definition.name.lower()
        self.catalog.relations[key] = definition
        self.templates.forget()
        self._relations[key] = RelationInput(
            definition, self.dictionary, self.tick_ns, lambda: self._closed_for(key), self.admission.admit_bytes
        )
        if source is not None:
            self.reading.add(source, self._relations[key])

    def drop_input(self, name: str) -> None:
        """Forget a stream or relation that no query reads."""
        key = name.lower()
        target = self._streams.pop(key, None) or self._relations.pop(key, None)
        self.stop_archiving(target)
        self.catalog.streams.pop(key, None)
        self.catalog.relations.pop(key, None)
        self.templates.forget()
        if target is not None:
            self.reading.remove(target)

    def add_sink(self, query: Query, sink: Sink) -> None:
        """Let a query deliver into a sink instead of keeping its answers until they are fetched.

        The sink is opened now, and closed with the query, with the connection, or by `run` when all has been read.
        Raises Error where the place cannot be written; then nothing has changed.
        """
        with self.lock:
            self._check()
            place = os.path.realpath(sink.path)
            for other in self.queries.values():
                is_file = sink.path != "-" and "://" not in sink.path
                if other.sink is not None and is_file and os.path.realpath(other.sink.path) == place:
                    raise Error(f"query {other.name} writes {sink.path!r} already; give each query a file of its own")
            try:
                with breakable:
                    sink.open(query.schema, self.codec(query.schema))
                if query.sink is not None:
                    query.close_sink()
            except BaseException:
                sink.discard()
                raise
            query.set_sink(sink)

    def add_outward(self, query: Query) -> None:
        """A query is going to have a callback."""
        self.outward[query.name.lower()] = query

    def finish_unfed(self) -> list[str]:
        """End the streams that have no source, as nothing will come of them; their names."""
        with self.lock:
            self._check()
            done = [s for s in self._streams.values() if s.is_system or s.ended or self.reading.of(s)]
            unfed = [s for s in self._streams.values() if not any(s is d for d in done)]
            for stream in unfed:
                stream.finish()
            told = self._step(None)
            if self.end_windows():
                told = self._step(None) or told
        if told:
            self._callbacks.tell()
        return [stream.definition.name for stream in unfed]

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

    def relation_store(self, name: str) -> tuple[RelationStore, InputProgress]:
        """A relation's store and progress, for the planner."""
        relation = self._relations[name.lower()]
        return relation.store, relation

    def stream_input(self, name: str) -> StreamInput | RelationInput:
        """The input of a stream or relation: counters, rejected rows, progress."""
        key = name.lower()
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

    def start(self, query: Query, network: Network, group: Group, inputs: Sequence[str]) -> None:
        """Let a planned query run in a group; it answers the instants after those the group has closed."""
        key = query.name.lower()
        try:
            self.queries[key], self._networks[key] = query, network
            group.add(network)
            self.groups.add(group, inputs)
            self._process([group])
            self._rest()
        except BaseException:
            # It has never been there: what a plan has claimed of stores is given back.
            self.forget(query)
            if network.group is None:
                network.close()
            raise

    def adopt(self, query: Query, network: Network, group: Group) -> None:
        """Let a query that is folded already answer from now on: nothing waits for it."""
        self.queries[query.name.lower()] = query
        self._networks[query.name.lower()] = network
        group.add(network)

    def forget(self, query: Query) -> None:
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
            self.system_streams.close_unread(self.readers_of)

    def codec(self, schema: Any) -> ResultCodec:
        """A decoder of results of this connection."""
        return ResultCodec(schema, self.dictionary, self.tick_ns)

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

    # -------------------------------------------------------------------------------------------------- the engine

    def _step(self, name: str | None) -> bool:
        """Process what is due after news of one input (None: of any); whether callbacks have something to be told."""
        groups = self.groups.all if name is None else self.groups.reading(name)
        if name is None:
            self._is_left = False
        has_run = bool(groups) and self._process(groups)
        # Where nothing ran, stores have nothing to give up, but what comes into one that nobody reads.
        if has_run or name is None or not self.stream_input(name).store.is_read:
            self._rest(name)
        self.memory.sweep()
        if self.system_streams.is_read:
            for key in self.system_streams.publish():
                self._process(self.groups.reading(key))
                self._rest(key)
        for each in self._each:
            if each.has_news:
                each.follow()
        if not self.outward:
            return self.news.is_wanted
        self._drain()
        return self.news.is_wanted or any(q.callbacks() for q in self.outward.values())

    def _process(self, groups: Sequence[Group]) -> bool:
        """A step of the engine; whether anything was processed. A query that is interrupted midway has lost its place
        and fails; the others go on.
        """
        self._is_stepping = True
        self.allowance.begin()
        try:
            has_run = self._engine.step(groups)
            if self.admission.is_shedding:
                self.admission.shed_waiting(groups)
                has_run = True
            return has_run
        except BaseException as error:
            for group in groups:
                group.interrupt(type(error).__name__)
            raise
        finally:
            self._is_stepping = False
            self.allowance.end()

    def _drain(self) -> None:
        """Answers go to their sinks, the engine being at rest. Every sink gets its own before an error is raised."""
        failed: Exception | None = None
        for query in self.outward.values():
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
        self._free(stream)

    def _free(self, source: StreamInput | RelationInput) -> None:
        """The store gives up what nobody claims. Queries that claim what there is no room to keep end before it."""
        try:
            source.store.free()
        except MemoryError:
            assert isinstance(source, StreamInput)
            self.admission.fail_readers(source)

    def _rest(self, name: str | None = None) -> None:
        """The engine is at rest: stores give up what nobody claims, the dictionary what nobody holds."""
        if name is None:
            for source in self.inputs:
                self._free(source)
            groups: Iterable[Group] = self.groups.all
        else:
            self._free(self.stream_input(name))
            groups = self.groups.reading(name)
            for group in groups:
                # What one stream brings lets windows over the others go on, which may get nothing more themselves.
                for stream in group.streams if len(group.streams) > 1 else ():
                    if isinstance(stream, StreamInput):
                        self._free(stream)
        for group in groups:
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
        known = [one_line(i.definition.name) for i in self.inputs]
        more = ", .." if len(known) > MOST_NAMES else ""
        there = f"there are: {', '.join(known[:MOST_NAMES])}{more}" if known else "none has been created"
        return Error(f"no stream or relation {quoted(name)}; {there}")

    @property
    def is_closed(self) -> bool:
        """`close` has been called."""
        return self._closed

    def abandon(self) -> None:
        """In a child of fork(): the connection is its parent's. Here it is closed, and nothing of it touched."""
        self.began_s = time.monotonic()
        self.lock = EngineLock()
        self._closed, self._is_inherited, self._visualizer = True, True, None
        self.archiver = None
        for query in self.queries.values():
            query.abandon()

    def check_process(self) -> None:
        """ClosedError in a child of the process that opened the connection."""
        if self._is_inherited:
            raise forking.closed_here(self._opened_by)

    def _check(self) -> None:
        if self._closed:
            self.check_process()
            raise ClosedError("the connection has been closed")
        if self._is_stepping:
            raise Error("a user function or aggregate must not use the connection that calls it")

    # ------------------------------------------------------------------------------------------------------ ends

    def close(self) -> None:
        """Close every query and source. Closing twice is no error."""
        if self._visualizer is not None:
            self._visualizer.stop()  # before the lock is taken, for which its threads may wait
        with self.lock:
            if self._closed:
                return
            with contextlib.ExitStack() as closing:
                closing.callback(setattr, self, "_closed", True)
                closing.callback(self._callbacks.forget)
                closing.callback(self.behind.close)
                closing.callback(self.close_archives)
                for close in self.reading.closers:
                    closing.callback(close)
                # One sink that cannot be written must not keep the others from their ends.
                for query in list(self.queries.values()):
                    closing.callback(query.close)
            self.reading.sources = []

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._streams)} streams, {len(self.queries)} queries"
        return f"<minidsms connection, {state}>"


__all__ = ["Change", "Connection", "connect"]
