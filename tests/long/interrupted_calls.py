"""`python -m tests.long.interrupted_calls`: an interrupt before every line of every public call.

A call is made in a small world of streams, relations and queries, and SIGINT's handler runs before one of the lines
that the engine runs for it. Then the world goes on, and what it tells must be what one of two twins tells, without the
interrupt: that which made the call or that which did not. A call that gives something has not happened when it raises.
Whatever happened, all can be dropped and made anew, and nothing is left of what is gone: no operator, no reader of a
store, no thread, no open file, no handler.

With `twice`, two interrupts come at once: a query may then fail, and says so; the others are held to the same. With
`--folder` a folder keeps the connection, which is opened again behind the call: what it tells then is what a twin tells
that was opened again.

Every line at which an interrupt may come out, but those of `__del__`, where Python drops it, is interrupted, at its
first and its last turn in the call, and of those at which it waits one in so many: there it is only counted.
`--every`: all, at every turn.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pyarrow as pa

import minidsms
from minidsms.process.interrupts import are_held
from tests.long.fault_cases import open_files

_ENGINE = os.path.dirname(minidsms.__file__) + os.sep

DECLARATIONS = """
CREATE STREAM S (k INTEGER, t TEXT); CREATE STREAM T (k INTEGER, t TEXT); CREATE STREAM U (k INTEGER);
CREATE RELATION R (k INTEGER, t TEXT) KEY (k); CREATE RELATION Unread (k INTEGER);
CREATE VIEW V AS SELECT k FROM S [RANGE 10];
CREATE QUERY counts AS SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k;
CREATE QUERY filtered AS SELECT ISTREAM(k, t || 'x') FROM S WHERE k > 1;
CREATE QUERY joined AS SELECT S.k, R.t FROM S [RANGE 10], R WHERE S.k = R.k
"""


@dataclass
class World:
    """What a call is made in. told: what callbacks were told.  things: what was prepared.  kept: the connection's own
    folder, or None.
    """

    folder: str
    db: minidsms.Connection
    kept: str | None = None
    told: list[Any] = field(default_factory=list)
    things: dict[str, Any] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """A file of the world."""
        return os.path.join(self.folder, name)

    def tell(self, news: Any) -> None:
        """A callback."""
        self.told.append(news)

    def open_again(self) -> None:
        """Close the connection that a folder keeps, and open the folder again."""
        if self.kept is not None:
            self.db.close()
            self.db = minidsms.connect(self.kept)


@dataclass(frozen=True)
class Case:
    """call: the public call.  prepare: what is there before it.  gives: what it gives is lost when it raises.
    partly: what may have been done of several.  goes_on: the same call does what an interrupted one has left.
    """

    call: Callable[[World], Any]
    prepare: Callable[[World], Any] = lambda world: None
    gives: bool = False
    partly: Callable[[World], Any] | None = None
    goes_on: bool = False


def _execute(cql: str, prepare: str = "", gives: bool = False, parts: str = "") -> Case:
    def executing(cql: str) -> Callable[[World], Any]:
        return lambda world: world.db.execute(cql.replace("FOLDER", world.folder))

    return Case(executing(cql), executing(prepare), gives, executing(parts) if parts else None)


def _query(call: Callable[[minidsms.Query], Any], name: str = "counts", gives: bool = False) -> Case:
    return Case(lambda w: call(w.db.queries[name]), _something_waits, gives)


def _steps(*steps: Callable[[World], object]) -> Callable[[World], None]:
    """One after the other."""

    def prepare(world: World) -> None:
        for step in steps:
            step(world)

    return prepare


def _something_waits(world: World) -> None:
    world.db.push("S", [(1, "a"), (2, "b"), (2, "c")], ts=[11, 12, 12])
    world.db.advance(13)


def _write_csv(world: World) -> None:
    with open(world.path("in.csv"), "w", encoding="utf-8") as file:
        file.write("ts,k,t\n" + "".join(f"{ts},{ts % 3},t{ts}\n" for ts in range(14, 40)))


def _declare_source(world: World) -> None:
    _write_csv(world)
    path = world.path("in.csv")
    world.db.execute(f"CREATE STREAM F (ts INTEGER, k INTEGER, t TEXT) TIMESTAMP BY ts FROM '{path}'")
    world.db.query("SELECT k, t FROM F", name="fed").into(world.path("out.csv"))


def _archive_something(world: World) -> None:
    world.db.archive("S", world.path("archive"))
    _something_waits(world)


def _archive_elsewhere(world: World) -> None:
    with minidsms.connect() as other:
        other.execute("CREATE STREAM U (k INTEGER)")
        other.archive("U", world.path("archive"))
        other.push("U", [(i,) for i in range(20)], ts=list(range(14, 34)))
    world.db.query("SELECT k FROM U", name="of_u")


def _many_filters(world: World) -> None:
    for i in range(12):
        world.db.query(f"SELECT k FROM S WHERE k = {i}", name=f"f{i}")
    _something_waits(world)


def _rules(world: World) -> None:
    world.things["each"] = world.db.query_each("SELECT ISTREAM(k) FROM S WHERE k = $k", "R", "rule")
    _something_waits(world)


def _aggregate() -> type:
    class Total:
        """A sum."""

        def __init__(self) -> None:
            self.total = 0

        def add(self, value: int) -> None:
            """More."""
            self.total += value

        def remove(self, value: int) -> None:
            """Less."""
            self.total -= value

        def result(self) -> int:
            """The sum."""
            return self.total

    return Total


def _user_functions(world: World) -> None:
    world.db.create_function("twice", lambda k: 2 * k, ["INTEGER"], "INTEGER")
    world.db.create_aggregate("total", _aggregate(), ["INTEGER"], "INTEGER")
    world.db.query("SELECT twice(k), total(k) FROM S [RANGE 5] GROUP BY k", name="own")


_ROWS = [(1, "d"), (3, "e"), (4, None)]
_N_WAY = "SELECT S.k FROM S [RANGE 9], T [RANGE 9], R WHERE S.k = T.k AND T.k = R.k"

CASES: dict[str, Case] = {
    "connect": Case(lambda w: minidsms.connect().close()),
    "CREATE STREAM": _execute("CREATE STREAM New (k INTEGER) SLACK 5"),
    "CREATE STREAM FROM": Case(
        lambda w: w.db.execute(f"CREATE STREAM F (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{w.path('in.csv')}'"),
        _write_csv,
    ),
    "CREATE STREAM ARCHIVE": _execute("CREATE STREAM New (k INTEGER) ARCHIVE 'FOLDER/archive'"),
    "CREATE RELATION": _execute("CREATE RELATION New (k INTEGER) KEY (k)"),
    "CREATE VIEW": _execute("CREATE VIEW New AS SELECT k FROM S [ROWS 3]"),
    "CREATE QUERY": _execute("CREATE QUERY new AS SELECT DISTINCT t FROM S [ROWS 3]"),
    "CREATE QUERY of a join": _execute(f"CREATE QUERY new AS {_N_WAY}"),
    "CREATE QUERY WITH HISTORY": _execute("CREATE QUERY new AS SELECT k FROM S [RANGE 9] WITH HISTORY"),
    "CREATE QUERY INTO": _execute("CREATE QUERY new AS SELECT k FROM S INTO 'FOLDER/out.csv'"),
    "CREATE QUERY ARCHIVE": _execute("CREATE QUERY new AS SELECT k FROM S ARCHIVE 'FOLDER/archive'"),
    "several statements": _execute("CREATE STREAM N1 (k INTEGER); DROP STREAM U", parts="CREATE STREAM N1 (k INTEGER)"),
    "SELECT": _execute("SELECT MAX(k) FROM S [RANGE 5]"),
    "DROP STREAM": _execute("DROP STREAM U"),
    "DROP STREAM of a source": Case(
        lambda w: w.db.execute("DROP STREAM F"),
        _steps(
            _write_csv,
            lambda w: w.db.execute(
                f"CREATE STREAM F (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{w.path('in.csv')}'"
            ),
        ),
    ),
    "DROP RELATION": _execute("DROP RELATION Unread"),
    "DROP VIEW": _execute("DROP VIEW V"),
    "DROP QUERY": _execute("DROP QUERY counts"),
    "DROP QUERY of a file": _execute("DROP QUERY new", "CREATE QUERY new AS SELECT k FROM S INTO 'FOLDER/out.csv'"),
    "ALTER STREAM ADD COLUMN": _execute("ALTER STREAM U ADD COLUMN t TEXT", "CREATE QUERY of_u AS SELECT k FROM U"),
    "INSERT": _execute("INSERT INTO R VALUES (3, 'three'), (4, 'four')"),
    "CREATE VIEW of VALUES": _execute("CREATE VIEW New AS VALUES (1, 'one'), (2, 'two')"),
    "CREATE QUERY OVER": _execute("CREATE QUERY new AS SELECT k, LAG(t) OVER (PARTITION BY k ORDER BY ts) FROM S"),
    "push to OVER": Case(
        lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16]),
        lambda w: w.db.query("SELECT k, LAG(t) OVER (PARTITION BY k ORDER BY ts) FROM S", name="over"),
    ),
    "ALTER QUERY SET": _execute("ALTER QUERY counts SET batch_size = 2"),
    "ALTER QUERY PAUSE": _execute("ALTER QUERY counts PAUSE"),
    "ALTER QUERY RESUME": _execute("ALTER QUERY counts RESUME", "ALTER QUERY counts PAUSE"),
    "ALTER QUERY PIN PLAN": _execute("ALTER QUERY filtered PIN PLAN"),
    "SET sharing": _execute("SET sharing = off"),
    "SET scheduler": _execute("SET scheduler = fifo"),
    "SET memory_limit": _execute("SET memory_limit = '100 MB'"),
    "SHOW QUERIES": _execute("SHOW QUERIES", gives=True),
    "DESCRIBE": _execute("DESCRIBE S", gives=True),
    "EXPLAIN": _execute(f"EXPLAIN {_N_WAY}", gives=True),
    "EXPLAIN ANALYZE": _execute("EXPLAIN ANALYZE counts", gives=True),
    "query": Case(lambda w: w.db.query("SELECT MAX(k) FROM S [RANGE 10]", name="new"), gives=True),
    "query that shares": Case(
        lambda w: w.db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="new"), gives=True
    ),
    "query behind a screen": Case(
        lambda w: w.db.query("SELECT k FROM S WHERE k = 2", name="new"), _many_filters, gives=True
    ),
    "query_each": Case(lambda w: w.db.query_each("SELECT ISTREAM(k) FROM S WHERE k = $k", "R", "rule"), gives=True),
    "create_function": Case(lambda w: w.db.create_function("half", lambda k: k // 2, ["INTEGER"], "INTEGER")),
    "create_aggregate": Case(lambda w: w.db.create_aggregate("sums", _aggregate(), ["INTEGER"], "INTEGER")),
    "push a row": Case(lambda w: w.db.push("S", (2, "new"), ts=14)),
    "push rows": Case(lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16])),
    "push columns": Case(lambda w: w.db.push("S", {"k": [1, 3], "t": ["f", "g"]}, ts=[14, 15])),
    "push Arrow": Case(lambda w: w.db.push("S", pa.table({"k": [1, 3], "t": ["f", "g"]}), ts=[14, 15])),
    "push in parts": Case(
        lambda w: w.db.push("S", _ROWS * 3, ts=list(range(14, 23))), lambda w: w.db.set("batch_size", 2)
    ),
    "push without waiting": Case(lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16], block=False)),
    "push into a relation": Case(lambda w: w.db.push("R", [(3, "three"), (4, "four")], ts=14)),
    "push out of a relation": Case(lambda w: w.db.push("R", (1, "one"), ts=14, sign=-1)),
    "push to callbacks": Case(
        lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16]),
        _steps(
            lambda w: w.db.queries["filtered"].on_change(w.tell),
            lambda w: w.db.queries["counts"].into(w.path("out.jsonl")),
        ),
    ),
    "push to a callback of all": Case(
        lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16]),
        lambda w: w.db.on_change(lambda news: w.told.extend(change for _, changes in news for change in changes)),
    ),
    "push to a screen": Case(lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16]), _many_filters),
    "push to user functions": Case(lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16]), _user_functions),
    "push into rules": Case(lambda w: w.db.push("R", (3, "three"), ts=14), _rules),
    "push into an archive": Case(lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16]), _archive_something),
    "advance": Case(lambda w: w.db.advance(30)),
    "advance a stream": Case(lambda w: w.db.advance(30, "S")),
    "process": Case(lambda w: w.db.process(), lambda w: w.db.push("S", _ROWS, ts=[14, 15, 16], block=False)),
    "fetch": _query(lambda q: q.fetch(), gives=True),
    "fetch_arrow": _query(lambda q: q.fetch_arrow(), "filtered", gives=True),
    "fetch behind a screen": Case(lambda w: w.db.queries["f2"].fetch(), _many_filters, gives=True),
    "first of a loop": _query(lambda q: next(iter(q)), gives=True),
    "first of a loop behind a screen": Case(lambda w: next(iter(w.db.queries["f2"])), _many_filters, gives=True),
    "fetch of rules": Case(lambda w: w.things["each"].fetch(), _rules, gives=True),
    "fetch_arrow of rules": Case(lambda w: w.things["each"].fetch_arrow(), _rules, gives=True),
    "close rules": Case(lambda w: w.things["each"].close(), _rules),
    "snapshot": _query(lambda q: q.snapshot(), gives=True),
    "newest": _query(lambda q: q.newest(2), gives=True),
    "explain": _query(lambda q: q.explain(analyze=True), gives=True),
    "stats": _query(lambda q: q.stats(), gives=True),
    "Query.on_change": Case(lambda w: w.db.queries["filtered"].on_change(w.tell)),
    "Connection.on_change": Case(lambda w: w.db.on_change(lambda news: w.tell(len(news)))),
    "into": Case(lambda w: w.db.queries["counts"].into(w.path("out.csv")), _something_waits),
    "Query.set": _query(lambda q: q.set("batch_size", 1)),
    "pause": _query(lambda q: q.pause()),
    "resume": Case(
        lambda w: w.db.queries["counts"].resume(),
        _steps(lambda w: w.db.queries["counts"].pause(), _something_waits),
    ),
    "Query.close": _query(lambda q: q.close()),
    "Query.close behind a screen": Case(lambda w: w.db.queries["f3"].close(), _many_filters),
    "feed": Case(
        lambda w: w.db.feed("W", pa.table({"ts": [14, 15], "k": [1, 2]})),
        _steps(
            lambda w: w.db.execute("CREATE STREAM W (ts INTEGER, k INTEGER) TIMESTAMP BY ts"),
            lambda w: w.db.query("SELECT k FROM W", name="fed"),
        ),
        gives=True,
    ),
    "run": Case(lambda w: w.db.run(), _declare_source, goes_on=True),
    "archive": Case(lambda w: w.db.archive("S", w.path("archive"))),
    "archive no longer": Case(lambda w: w.db.archive("S", None), _archive_something),
    "flush": Case(lambda w: w.db.flush(), _archive_something),
    "replay": Case(lambda w: w.db.replay(w.path("archive"), ["U"]), _archive_elsewhere),
    "close": Case(lambda w: w.db.close(), _something_waits),
}


_NOT_KEPT = (
    "CREATE STREAM ARCHIVE", "CREATE QUERY WITH HISTORY", "CREATE QUERY ARCHIVE", "SET memory_limit", "query_each",
    "create_function", "create_aggregate", "push to callbacks", "push to user functions", "push into rules",
    "push to a callback of all", "push into an archive", "fetch of rules", "fetch_arrow of rules", "close rules",
    "into", "feed", "run", "archive", "archive no longer", "flush", "replay",
)  # fmt: skip
"""What a connection with a folder refuses, or needs more than the folder for when it is opened again."""
IN_FOLDER: dict[str, Case] = {name: case for name, case in CASES.items() if name not in _NOT_KEPT} | {
    "checkpoint": Case(lambda w: w.db.checkpoint(), _something_waits),
    "CHECKPOINT": _execute("CHECKPOINT"),
    "position": Case(lambda w: w.db.position("S"), _something_waits, gives=True),
}
"""Of a connection that a folder keeps."""


def _case(name: str, in_folder: bool) -> Case:
    return (IN_FOLDER if in_folder else CASES)[name]


# ------------------------------------------------------------------------------------------------------ worlds


@contextlib.contextmanager
def _world(case: Case, in_folder: bool) -> Iterator[World]:
    folder = tempfile.mkdtemp(prefix="minidsms-interrupts-")
    kept = f"{folder}.kept" if in_folder else None
    db = minidsms.connect(archive_rows=5) if kept is None else minidsms.connect(kept, durability="os")
    world = World(folder, db, kept)
    try:
        db.execute(DECLARATIONS)
        db.push("R", [(1, "one"), (2, "two")])
        db.push("S", [(1, "a"), (2, "b")], ts=[9, 10])
        db.push("T", [(1, "a"), (2, "b")], ts=[9, 10])
        case.prepare(world)
        yield world
    finally:
        world.db.close()
        for path in (folder, f"{folder}.kept"):
            shutil.rmtree(path, ignore_errors=True)


def _gone_on(world: World) -> dict[str, Any]:
    """What the world tells when it goes on, by the name of what tells it."""
    db = world.db
    try:
        inputs = {i.definition.name: len(i.definition.schema) for i in db.inputs if db.queries is not None}
        db.execute("SHOW QUERIES")
    except minidsms.ClosedError:
        return {"connection": "closed", "files": _files(world)}
    told: dict[str, Any] = {
        "inputs": inputs,
        "views": sorted(db.catalog.views),
        "functions": sorted([*db.catalog.functions, *db.catalog.aggregates]),
        "settings": {name: str(value) for name, value, *_ in db.execute("SHOW SETTINGS")},
        "sources": [(row[0], row[2]) for row in db.execute("SHOW SOURCES")],
    }
    for query in db.queries.values():
        if query.state == "paused":
            told[f"{query.name} before"] = "paused"
            query.resume()
    db.push("S", [(k, f"n{k}") for k in range(5)], ts=[40, 40, 41, 42, 43])
    db.push("T", [(k, f"n{k}") for k in range(5)], ts=[40, 40, 41, 42, 43])
    db.push("R", (0, "zero"), ts=44)
    if "U" in inputs:
        db.push("U", (8, *[None] * (inputs["U"] - 1)), ts=44)
    with contextlib.suppress(minidsms.DataError):  # of a source that was left, at every run
        db.run()
    db.advance(50)
    db.flush()
    for query in list(db.queries.values()):
        told[query.name] = _told_by(query)
        query.close()
    told["archived"] = {i.definition.name for i in db.inputs if i.recorder is not None}
    for name in told["archived"]:
        db.archive(name, None)
    told["callbacks"], told["files"] = sorted(map(repr, world.told)), _files(world)
    return told


def _told_by(query: minidsms.Query) -> Any:
    if query.failure is not None:
        return ("failed", query.failure)
    has_sink = query.sink is not None
    rows = sorted(query.snapshot(), key=repr) if query.kind == "relation" else None
    return query.results, None if has_sink else query.fetch(), rows, query.settings.own


def _files(world: World) -> dict[str, Any]:
    """The files of sinks with what they hold, and how many rows are in archives."""
    from minidsms.archive.files import read
    from minidsms.archive.format import archives_in

    found: dict[str, Any] = {}
    for name in sorted(os.listdir(world.folder)):
        path = world.path(name)
        if os.path.isdir(path):
            found[name] = {a.metadata.name: sum(len(t) for t in read(a)) for a in archives_in(path)}
        else:
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


def _check_nothing_left(world: World) -> None:
    """Everything can be dropped and made anew, and nothing is held."""
    db = world.db
    assert db.groups.all == [], "a group is left"
    assert not db.queries and not db._networks and not db.outward, "a query is left"
    for each in db.inputs:
        assert not each.store.is_read, f"the store of {each.definition.name} has a reader"
    for name in list(db.catalog.views):
        db.execute(f"DROP VIEW {name}")
    assert not [each for each in db._each if each.has_news], "rules are left behind their table"
    for rules in list(db._each):
        rules.close()
    for each in list(db.inputs):
        if not getattr(each, "is_system", False) and not getattr(each.definition, "is_system", False):
            kind = "STREAM" if each.definition.name.lower() in db.catalog.streams else "RELATION"
            db.execute(f"DROP {kind} {each.definition.name}")
    assert not db.reading.sources, "a source is left"
    db.execute(DECLARATIONS)
    db.push("S", [(1, "x"), (2, "y")], ts=[1, 2])
    db.advance(3)
    assert db.queries["filtered"].results == 1
    assert db.queries["counts"].results == 2


def _check_free(world: World) -> None:
    """Another thread gets the lock, and interrupts come again."""
    free: list[bool] = []
    lock = world.db.lock.inner

    def take() -> None:
        free.append(lock.acquire(timeout=60))
        if free[0]:
            lock.release()

    other = threading.Thread(target=take)
    other.start()
    other.join()
    assert free == [True], "the engine's lock is held"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the handler is not the program's"


# ------------------------------------------------------------------------------------------------------- lines


Place = tuple[str, int, int]
"""File, line, and which turn of it."""


def lines_of(call: Callable[[], object], at: Place | None = None, times: int = 1) -> list[tuple[str, int, bool]]:
    """Make the call, with a SIGINT before that line; the lines of the engine that ran, and whether interrupts were held
    there. Raises what the call raises.
    """
    lines: list[tuple[str, int, bool]] = []
    turns = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal turns
        name = frame.f_code.co_filename
        if not name.startswith(_ENGINE) or frame.f_code.co_name == "__del__":
            return None
        if event == "line":
            place = (name, frame.f_lineno)
            lines.append((*place, are_held()))
            if at is not None and place == at[:2]:
                turns += 1
                if turns == at[2]:
                    for _ in range(times):
                        # Of `raise_signal` the handler would be told that it came into this function.
                        handler = signal.getsignal(signal.SIGINT)
                        assert callable(handler)
                        handler(signal.SIGINT, frame)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines


def places(name: str, every: bool = False, in_folder: bool = False) -> tuple[list[Place], list[Place]]:
    """Where the call of a case can be interrupted: where an interrupt may come out, and where it waits."""
    case = _case(name, in_folder)
    with _world(case, in_folder) as world:
        lines = lines_of(lambda: case.call(world))
    turns = Counter(line[:2] for line in lines)
    held = {line[:2] for line in lines} - {line[:2] for line in lines if not line[2]}
    found = [(*line, turn) for line, n in turns.items() for turn in (range(1, n + 1) if every else sorted({1, n}))]
    return [place for place in found if place[:2] not in held], [place for place in found if place[:2] in held]


class Twins:
    """What a case's world tells without an interrupt: with the call, without it, and with a part of it."""

    def __init__(self, case: Case, in_folder: bool) -> None:
        self.in_folder = in_folder
        self.with_call = self._of(case, case.call)
        self.without = self._of(case, None)
        self.partly = None if case.partly is None else self._of(case, case.partly)

    def _of(self, case: Case, call: Callable[[World], Any] | None) -> dict[str, Any]:
        with _world(case, self.in_folder) as world:
            if call is not None:
                call(world)
            world.open_again()
            return _gone_on(world)

    def after(self, case: Case, raised: bool) -> list[dict[str, Any]]:
        """What may be told after a call."""
        if not raised or case.goes_on:
            return [self.with_call]
        if case.gives:
            return [self.without]
        return [t for t in (self.without, self.with_call, self.partly) if t is not None]


def interrupt(name: str, place: Place, twins: Twins, times: int = 1) -> bool:
    """Interrupt the call of a case once, and check; whether it raised. AssertionError where anything is wrong."""
    case = _case(name, twins.in_folder)
    raised = False
    try:
        with _world(case, twins.in_folder) as world:
            try:
                lines = lines_of(lambda: case.call(world), place, times)
                # How often a line runs depends on what plans have cost so far: a turn may not come.
                came = [line[:2] for line in lines].count(place[:2])
                assert came < place[2], "the interrupt was lost"
            except KeyboardInterrupt:
                raised = True
            if raised and case.goes_on:
                with contextlib.suppress(minidsms.Error):
                    case.call(world)
            world.open_again()
            _check_free(world)
            told = _gone_on(world)
            _check_told(told, twins.after(case, raised), times > 1)
            if "connection" not in told:
                _check_nothing_left(world)
    except Exception as error:
        where = f"{os.path.relpath(place[0], os.path.dirname(_ENGINE[:-1]))}:{place[1]}, turn {place[2]}"
        how = "raised" if raised else "went through"
        raise AssertionError(f"{name}, {where}, {how}: {type(error).__name__}: {error}") from error
    return raised


def _check_told(told: dict[str, Any], expected: Sequence[dict[str, Any]], may_fail: bool) -> None:
    """What is told is what one of the twins tells; of two interrupts at once queries may have failed."""
    if may_fail:
        failed = [n for n, v in told.items() if isinstance(v, tuple) and v and v[0] == "failed"]
        # A source that is left is not read any further, and what a sink would have been given waits to be fetched.
        touched = {*failed, "callbacks", "files", "sources", "fed"}
        touched |= {n for each in expected for n, v in each.items() if isinstance(v, tuple) and v[1] is None}
        told = {n: v for n, v in told.items() if n not in touched}
        expected = [{n: v for n, v in each.items() if n not in touched} for each in expected]
    if told not in expected:
        nearest = min(expected, key=lambda each: len(_differences(told, each)))
        raise AssertionError("; ".join(_differences(told, nearest)))


def _differences(told: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    names = sorted({*told, *expected})
    return [f"{n}: {told.get(n)} for {expected.get(n)}" for n in names if told.get(n) != expected.get(n)]


def run_case(
    name: str, every: bool = False, stride: int = 1, times: int = 1, in_folder: bool = False
) -> tuple[int, int]:
    """Interrupt the call of a case before one in so many of its lines, of those where interrupts wait one in 40 times
    so many; how many, and how often the call raised.
    """
    twins = Twins(_case(name, in_folder), in_folder)  # first: it loads what is loaded once
    outside, inside = places(name, every, in_folder)
    chosen = [*outside[::stride], *(inside if every else inside[:: 40 * stride])]
    threads, files = set(threading.enumerate()), open_files()
    raised = sum(interrupt(name, place, twins, times) for place in chosen)
    gc.collect()
    left = [t.name for t in threading.enumerate() if t.name.startswith("minidsms") and t not in threads]
    assert not left, f"{name}: threads are left: {left}"
    patience = time.monotonic() + 40  # what other tests have left in this process may renew a lease, and lets go of it
    while (opened := open_files() - files) and time.monotonic() < patience:
        time.sleep(0.1)
    assert not opened, f"{name}: files are left open: {opened}"
    return len(chosen), raised


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.interrupted_calls", description=__doc__)
    parser.add_argument("--case", choices=[*CASES, *IN_FOLDER], action="append", help="only this one")
    parser.add_argument("--every", action="store_true", help="every turn of a line, not only its first and last")
    parser.add_argument("--stride", type=int, default=1, help="one place in so many")
    parser.add_argument("--folder", action="store_true", help="a folder keeps the connection")
    options = parser.parse_args(arguments)
    # A shell lets what runs behind it ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = 0
    for name in options.case or (IN_FOLDER if options.folder else CASES):
        for times in (1, 2):
            try:
                done, raised = run_case(name, options.every, options.stride, times, options.folder)
                print(
                    f"{name}, interrupted {'once' if times == 1 else 'twice'}: {done} places, {raised} raised",
                    flush=True,
                )
            except AssertionError as error:
                failed += 1
                print(f"FAILED {error}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    # Under its own name: whether it is the engine that is interrupted is told by the name of the module.
    sys.exit(importlib.import_module("tests.long.interrupted_calls").main())
