"""A connection: streams, relations, views and continuous queries, inside the application's process.

Invariant: a call that raises has changed nothing; when a call returns, every closed instant of every query has been
answered. One lock guards the engine; callbacks run outside it, and what they push is taken in turn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any

from minidsms.archive.connected import Archiving
from minidsms.counted import counted
from minidsms.cql.errors import CqlError, Error, MemoryLimitError, one_line
from minidsms.cql.parameters import Parameters, written
from minidsms.elements import Type
from minidsms.engine.reading import ReadsSources
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.process import forking
from minidsms.process.interrupts import EngineLock
from minidsms.query import Change, Query
from minidsms.statements import run as statements
from minidsms.statements.arguments import name_of, path_of, query_name_of, text_of
from minidsms.statements.query_each import QueryEach
from minidsms.statements.registering import create_written, register_written
from minidsms.statements.user_definitions import define_aggregate, define_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from minidsms.cql.syntax import CreateQuery
    from minidsms.sinks.sink import Sink
    from minidsms.web.server import Visualizer

logging.getLogger("minidsms").addHandler(logging.NullHandler())  # records are for who listens
_KEEPS_NOTHING = "a connection without a folder keeps nothing\nhelp: minidsms.connect(folder)"


def connect(folder: str | os.PathLike[str] | None = None, **options: Any) -> Connection:
    """Open a connection; options are settings (`SHOW SETTINGS`) and `clock`.

    folder: keeps what the connection is told, and gives it back when it is opened again (docs/durability.md); None, or
    ":memory:": it stays in memory.
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
    if folder is None or folder == ":memory:":
        return Connection(**options)
    from minidsms.durability.connection import DurableConnection

    return DurableConnection(path_of(os.fsdecode(folder) if isinstance(folder, bytes) else folder), **options)


PUBLIC = (
    "advance archive backup checkpoint close create_aggregate create_function execute feed flush offload on_change "
    "pause position process push queries query query_each replay resume run set settings sql stop time ui upsert "
    "warnings"
)
"""What `dir` shows of a connection."""


class Connection(Archiving, ReadsSources):
    """See `connect`. A context manager: leaving it closes the connection and its queries."""

    checkpointed_s: float | None = None
    """When `checkpoint` was done last, in seconds since 1970."""

    queries: dict[str, Query]  # type: ignore[assignment]
    _visualizer: Visualizer | None = None

    def __init__(self, clock: Callable[[], int] | None = None, **options: Any) -> None:
        super().__init__(clock, **options)
        forking.register(self)

    def __dir__(self) -> list[str]:
        """What docs/python-api.md lists; the rest is the engine's."""
        return PUBLIC.split()

    # ---------------------------------------------------------------------------------------------- statements

    def execute(self, cql: str, params: Parameters | None = None) -> Any:
        """Run statements separated by `;`; returns what the last one gives: a Query, a `Table`, or None.

        params: the values of `?` in their order, or a dict of those of `$name`; a list or tuple stands behind IN.
        Raises CqlError with the place; the statements before it have been carried out.
        """
        try:
            with self.lock:
                self._check()
                result = self._run(written(text_of(cql), params))
                told, self._is_told = self._is_told, False
        except CqlError as error:  # what it says is of the text: the engine's frames would stand above it
            raise error.with_traceback(None) from error.__cause__
        if told:
            self._callbacks.tell()
        return result

    sql = execute

    def _run(self, text: str) -> Any:
        """Carry out the statements of a text; the last one's result."""
        return create_written(self, text) or statements.execute(self, text)

    def set(self, name: str, value: Any) -> None:
        """Change a setting, as SET does; takes effect at once."""
        with self.lock:
            self._check()
            super().set(name, value)

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
        try:
            with self.lock:
                self._check()
                if name is not None and not query_name_of(name):
                    raise Error("the name of a query is empty; leave it out, and it gets one")
                text = written(text_of(cql), params)
                query = None
                if name is None or name.lower() not in self.queries:
                    query = register_written(self, text, name)
                if query is None:
                    query = statements.register_text(self, text, name)
                self.lock.undo_on_error(query.close)
                return query
        except CqlError as error:
            raise error.with_traceback(None) from error.__cause__

    @contextlib.contextmanager
    def replacing(self, query: Query, sink: Sink | None, statement: CreateQuery, text: str) -> Iterator[None]:
        """A query ends, and the context makes the one that takes its place, as a statement of the text says. sink: the
        new one's.
        """
        query.close()
        yield

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
            return self.keep_each(QueryEach(self, template, table, name))

    def keep_each(self, each: QueryEach) -> QueryEach:
        """Let these queries be of the connection. The lock is held."""
        self._each.append(each)
        self.lock.undo_on_error(each.close)
        return each

    def on_change(
        self, fn: Callable[[list[tuple[Query, list[Change]]]], Any], wants: Callable[[Query], bool] | None = None
    ) -> Callable[..., Any]:
        """Call fn once a step with a list of (query, changes), of every query that has something new, outside the
        engine's lock.

        wants: which queries; None: all. Those with callbacks or a sink of their own are left to these, and what fn is
        told is not fetched again. Usable as a decorator.
        """
        if not callable(fn):
            raise Error(f"on_change takes a function of a list, not {type(fn).__name__}")
        if wants is not None and not callable(wants):
            raise Error(f"wants is a function of a query, not {type(wants).__name__}")
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

        self.safety.check_spark()
        return offload(self, query, folder, at, until, by)

    def ui(self, port: int = 0, open_browser: bool = False) -> Visualizer:
        """Show the connection in a browser, as it runs: plans, decisions, figures, answers (docs/visualizer.md).

        port: on this machine's loopback; 0: a free one.  Returns what has the page's `url` and ends it by `stop`; it
        ends with the connection.  Called again, it gives the one there is.  Needs the extra minidsms[web].
        """
        from minidsms.web.server import Visualizer

        with self.lock:
            self._check()
            shown = self._visualizer
            if shown is None or shown.is_over:
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
        (pyarrow, polars, pandas).  ts: an instant or one per row; without it the TIMESTAMP BY column, else the clock;
        of a relation the first instant that is still open.
        sign: for relations, +1 (default), -1, or one per row.
        block: False leaves the elements to the next call that processes (`process`, `advance`, another push); where
        more would wait for a query than its queues may hold, it raises QueueFullError.
        Raises DataError, LateElementError or MemoryLimitError, and then nothing has changed.
        """
        try:
            return self._push(name, data, ts, sign, block)
        except MemoryLimitError:
            self._forget_refused()
            raise

    def _forget_refused(self) -> None:
        """A call had no room for what it was given: what it has begun to take is forgotten."""
        with self.lock:
            if not self._is_stepping:
                self.memory.forget_refused()

    def _push(self, name: str, data: Any, ts: Any, sign: Any, block: bool) -> int:
        with self.lock:
            key = self._open_for_rows(name)
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
                row = stream.one_row(data, ts)
                if row is not None:
                    taken = stream.push_row(row, ts)
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
        return self.change_relation(name, lambda relation: relation.upsert(data, ts))

    def change_relation(self, name: str, change: Callable[[RelationInput], int]) -> int:
        """Let a relation be changed by what gives how many rows it has taken; returns that."""
        try:
            return self._change_relation(name, change)
        except MemoryLimitError:
            self._forget_refused()
            raise

    def _change_relation(self, name: str, change: Callable[[RelationInput], int]) -> int:
        with self.lock:
            key = self._open_for_rows(name)
            if key not in self._relations:
                if key in self._streams:
                    raise Error(f"{one_line(name)} is a stream: nothing is replaced there")
                raise self._unknown(name)
            if self._callbacks.are_calling():
                self._callbacks.defer(lambda: self.change_relation(name, change))
                return 0
            taken = change(self._open_for_change(key))
            told = self._step(key)
        if told:
            self._callbacks.tell()
        return taken

    def _open_for_rows(self, name: str) -> str:
        """The key of a stream or relation that rows are given to; waits until an archive takes them."""
        self._check()
        if self.archiver is not None:
            self.archiver.admit()
        key = name_of(name).lower()
        if self.replaying is not None:
            self.await_replay(key)
        return key

    def _open_for_change(self, key: str) -> RelationInput:
        """The relation; what the elements left so far have closed is closed for the change."""
        if self._is_left:
            self.journal.append(kind="process")  # the step comes before the change, and what is logged of its answers
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
        """A heartbeat: no later element of the stream or relation (default: of any) has a timestamp <= ts."""
        with self.lock:
            self._check()
            if self.replaying is not None:
                self.await_replay(stream if stream is None else name_of(stream).lower())
            if self._callbacks.are_calling():
                self._callbacks.defer(lambda: self.advance(ts, stream))
                return
            if stream is None:
                # Read once, before any input takes it: a call that raises changes nothing.
                ts = self._instant("advance", ts)
                self.journal.note_advance(ts, None)
                self._advance_all(ts)
                if ts > self._engine.heartbeat:
                    self._engine.heartbeat = ts
                told = self._step(None)
            else:
                key = name_of(stream).lower()
                target = self._streams.get(key) or self._relations.get(key)
                if target is None:
                    raise self._unknown(stream)
                ts = self._instant("advance", ts)
                self.journal.note_advance(ts, key)
                target.advance(ts)
                told = self._step(key)
        if told:
            self._callbacks.tell()

    def process(self) -> None:
        """Process what is due: what a query that was paused has before it, what system streams owe."""
        with self.lock:
            self._check()
            if self._callbacks.are_calling():
                self._callbacks.defer(self.process)
                return
            self.journal.append(kind="process")
            self.settle()
            told, self._is_told = self._is_told, False
        if told:
            self._callbacks.tell()

    def time(self, ticks: int) -> datetime:
        """The time that an instant or a value of type TIMESTAMP stands for: in UTC, whole microseconds.

        Error where the calendar does not reach.
        """
        try:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=index(ticks) * self.tick_ns // 1000)
        except TypeError:
            raise Error(f"ticks are a whole number, not {type(ticks).__name__}") from None
        except OverflowError:
            raise Error(f"{ticks} is no time: the calendar goes from the year 1 to 9999") from None

    # ---------------------------------------------------------------------------------- registration, by statements

    def finish_unfed(self) -> list[str]:
        """End the streams that have no source, as nothing will come of them; the names of those that had no element.

        Relations without a source have changed for the last time.
        """
        with self.lock:
            self._check()
            self.journal.append(kind="finish")
            done = [s for s in self._streams.values() if s.is_system or s.ended or self.reading.of(s)]
            unfed = [s for s in self._streams.values() if not any(s is d for d in done)]
            for stream in unfed:
                stream.finish()
            for relation in self._relations.values():
                if relation.last_ts is not None and not self.reading.of(relation):
                    relation.advance(relation.last_ts)
            told = self._step(None)
            if self.end_windows():
                told = self._step(None) or told
        if told:
            self._callbacks.tell()
        return [stream.definition.name for stream in unfed if not stream.counters.accepted]

    # -------------------------------------------------------------------------------------------------- the engine

    def abandon(self) -> None:
        """In a child of fork(): the connection is its parent's. Here it is closed, and nothing of it touched."""
        self.began_s = time.monotonic()
        self.lock = EngineLock()
        self._closed, self._is_inherited, self._visualizer = True, True, None
        self.archiver = None
        for query in self.queries.values():
            query.abandon()

    # ------------------------------------------------------------------------------------------------------ ends

    def close(self) -> None:
        """Close every query and source. Closing twice is no error."""
        self._stop_showing()  # before the lock is taken, for which its threads may wait
        try:
            self._end()
        finally:
            self._stop_showing()  # what another thread has shown meanwhile

    def _end(self) -> None:
        """Close what is not closed yet, but for the page."""
        with self.lock:
            if self._closed:
                return
            with contextlib.ExitStack() as closing:
                closing.callback(setattr, self, "_closed", True)  # last: who sees it may open the same files
                closing.callback(self._let_go)
                for stream in self._streams.values():
                    closing.callback(stream.release)
                for relation in self._relations.values():
                    closing.callback(relation.release)
                closing.callback(self._callbacks.forget)
                closing.callback(self.background.close)
                closing.callback(self.close_archives)
                for close in self.reading.closers:
                    closing.callback(close)
                # One sink that cannot be written must not keep the others from their ends.
                for query in list(self.queries.values()):
                    closing.callback(query.close)
            self.reading.sources = []

    def _stop_showing(self) -> None:
        if self._visualizer is not None:
            self._visualizer.stop()

    def _let_go(self) -> None:
        """Release what a closed connection holds of the machine; one in memory holds nothing."""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        streams, queries = counted(len(self._streams), "stream"), counted(len(self.queries), "query", "queries")
        state = "closed" if self._closed else f"{streams}, {queries}"
        return f"<minidsms connection, {state}>"


__all__ = ["Change", "Connection", "connect"]
