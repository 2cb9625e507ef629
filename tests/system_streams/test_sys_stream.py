"""SysStream: what the engine tells of itself. docs/sys-stream.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms.elements import Schema, Type


class Clock:
    """A clock that is set."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock(10_000)


@pytest.fixture
def db(clock: Clock) -> minidsms.Connection:
    db = minidsms.connect(clock=clock)
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
    return db


def told(query: minidsms.Query) -> dict[tuple[str, str, str], tuple[int | None, float | None]]:
    """The rows fetched from a query over all columns, by (kind, entity, property)."""
    return {(c.row[2], c.row[1], c.row[3]): (c.row[4], c.row[5]) for c in query.fetch()}


def test_a_source_tells_its_rate_per_second_of_the_clock(db: minidsms.Connection, clock: Clock) -> None:
    q = db.query("SELECT * FROM SysStream")
    clock.now += 2000
    db.push("S", [(1, 1)] * 30, ts=5)
    rows = told(q)
    assert rows["source", "S", "accepted"] == (30, None)
    assert rows["source", "S", "rate"] == (None, 15.0)


def test_an_operator_tells_selectivity_and_elements(db: minidsms.Connection, clock: Clock) -> None:
    db.query("SELECT k FROM S WHERE v > 1", name="f")
    q = db.query("SELECT * FROM SysStream")
    clock.now += 1000
    db.push("S", {"k": [1, 2, 3, 4], "v": [1, 2, 1, 1]}, ts=5)
    rows = told(q)
    select = next(name for kind, name, _ in rows if kind == "operator" and name.endswith("Select"))
    assert rows["operator", select, "elements_in"] == (4, None)
    assert rows["operator", select, "elements_out"] == (1, None)
    assert rows["operator", select, "selectivity"] == (None, 0.25)
    assert any(kind == "queue" and select in name for kind, name, _ in rows)


def test_a_publication_is_closed_at_once_and_comes_once_an_interval(db: minidsms.Connection, clock: Clock) -> None:
    q = db.query("SELECT ISTREAM(ts) FROM SysStream [NOW] WHERE kind = 'connection'")
    db.advance(1)
    assert q.fetch() == []
    clock.now += 999
    db.advance(2)
    assert q.fetch() == []
    clock.now += 1
    db.advance(3)
    db.advance(4)
    assert [c.row for c in q.fetch()] == [(11_000,)]
    db.execute("SET sys_interval = 200")
    clock.now += 200
    db.advance(5)
    assert [c.ts for c in q.fetch()] == [11_200]


def test_an_interval_may_be_written_with_a_unit(db: minidsms.Connection, clock: Clock) -> None:
    db.execute("SET sys_interval = '2 SECONDS'")
    q = db.query("SELECT ts FROM SysStream WHERE kind = 'connection'")
    for _ in range(4):
        clock.now += 1000
        db.advance(clock.now)
    assert [c.ts for c in q.fetch()] == [12_000, 14_000]


def test_a_windowed_aggregate_over_it_is_exact(db: minidsms.Connection, clock: Clock) -> None:
    q = db.query(
        "SELECT COUNT(*), MAX(ival) FROM SysStream [RANGE 3 SECONDS] WHERE kind = 'source' AND property = 'accepted' "
        "AND entity = 'S'"
    )
    for i in range(6):
        clock.now += 1000
        db.push("S", [(1, 1)] * 10, ts=i)
    assert q.snapshot() == [(3, 60)]


def test_nobody_listens_and_nothing_is_published_or_held(db: minidsms.Connection, clock: Clock) -> None:
    # The texts of what was told may stay in the dictionary until it is swept.
    before = db.nbytes - db.dictionary.nbytes
    q = db.query("SELECT * FROM SysStream [RANGE 1 HOUR]", name="q")
    clock.now += 1000
    db.advance(1)
    assert db.nbytes - db.dictionary.nbytes > before
    q.close()
    assert db.nbytes - db.dictionary.nbytes == before
    assert not db.system_streams.is_read
    clock.now += 1000
    db.advance(2)
    later = db.query("SELECT * FROM SysStream WHERE kind = 'source'")
    clock.now += 500
    db.advance(3)
    assert later.fetch() == []


def test_queries_over_it_do_not_feed_it(db: minidsms.Connection, clock: Clock) -> None:
    counts = []
    for i in range(3):
        db.query("SELECT ISTREAM(entity, SUM(fval)) FROM SysStream [RANGE 1 MINUTE] GROUP BY entity", name=f"m{i}")
    q = db.query("SELECT COUNT(*) FROM SysStream [NOW]")
    for _ in range(10):
        clock.now += 1000
        db.advance(clock.now)
        counts.append(q.snapshot()[0][0])
    assert max(counts[1:]) - min(counts[1:]) <= 20
    assert max(counts) < 1000


def test_a_stall_names_the_stream_that_holds_time_back(db: minidsms.Connection, clock: Clock) -> None:
    db.execute("CREATE STREAM T (k INTEGER)")
    j = db.query("SELECT S.k FROM S [RANGE 5], T [RANGE 5] WHERE S.k = T.k", name="j")
    q = db.query("SELECT * FROM SysStream WHERE kind = 'stall'")
    db.advance(100, "T")
    clock.now += 1000
    db.push("S", [(1, 1)] * 3, ts=[200, 300, 400])
    assert told(q) == {("stall", "j", "T"): (3, 300.0)}
    assert "held back by stream T" in j.explain(analyze=True)
    db.advance(400, "T")
    clock.now += 1000
    db.advance(401)
    assert told(q) == {}
    assert "held back" not in j.explain(analyze=True)


def test_a_clock_that_is_set_back_does_not_silence_it(db: minidsms.Connection, clock: Clock) -> None:
    q = db.query("SELECT ts FROM SysStream WHERE kind = 'connection'")
    clock.now = 20_000
    db.advance(1)
    clock.now = 5_000
    db.advance(2)
    clock.now = 6_000
    db.advance(3)
    assert [c.ts for c in q.fetch()] == [20_000, 20_001, 20_002]


def test_a_publication_without_room_is_left_out(db: minidsms.Connection, clock: Clock) -> None:
    q = db.query("SELECT * FROM SysStream")
    db.set("memory_limit", 1000)
    clock.now += 1000
    db.advance(1)
    assert q.fetch() == []
    db.set("memory_limit", None)
    clock.now += 1000
    db.advance(2)
    assert q.fetch() != []


@pytest.mark.parametrize(
    "statement",
    ["CREATE STREAM sysstream (a INTEGER)", "DROP STREAM SysStream", "CREATE VIEW SYSSTREAM AS SELECT * FROM S"],
)
def test_its_name_is_taken(db: minidsms.Connection, statement: str) -> None:
    with pytest.raises(minidsms.CqlError, match=r"already|written by the engine"):
        db.execute(statement)


def test_nobody_else_writes_it_or_moves_its_time(db: minidsms.Connection, clock: Clock) -> None:
    for _ in range(2):
        with pytest.raises(minidsms.Error, match="written by the engine"):
            db.push("SysStream", (1, "a", "b", "c", 1, 1.0))
        with pytest.raises(minidsms.Error, match=r"written by the engine|takes no heartbeats"):
            db.advance(5, "SysStream")
        q = db.query("SELECT * FROM SysStream")
    db.advance(10**15)
    clock.now += 1000
    db.advance(10**15 + 1)
    assert {c.ts for c in q.fetch()} == {11_000}


def test_the_catalogue_knows_it(db: minidsms.Connection) -> None:
    assert [name for name, _ in db.execute("DESCRIBE SysStream")] == [
        "ts", "entity", "kind", "property", "ival", "fval",
    ]  # fmt: skip
    assert db.execute("SHOW SYSTEM").rows[0][2] == 0
    q = db.query("SELECT * FROM SysStream")
    assert db.execute("SHOW SYSTEM").rows[0][2] == 1
    assert [row[0] for row in db.execute("SHOW STREAMS")] == ["S"]
    q.close()
    with pytest.raises(minidsms.CqlError, match='did you mean "SysStream"'):
        db.query("SELECT * FROM SysStreem")


def test_explaining_a_query_over_it_does_not_open_it(db: minidsms.Connection) -> None:
    db.execute("EXPLAIN SELECT * FROM SysStream")
    assert not db.system_streams.is_read


class _Log:
    """A publisher of records as they come."""

    name = "SysLog"
    is_prompt = True
    schema = Schema.of(("ts", Type.TIMESTAMP), ("note", Type.TEXT))

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.is_open = False

    def begin(self, now: int) -> None:
        self.is_open = True

    def end(self) -> None:
        self.is_open = False

    def is_due(self, now: int) -> bool:
        return bool(self.notes)

    def columns(self, now: int) -> Mapping[str, Sequence[Any]]:
        notes, self.notes = self.notes, []
        return {"note": notes}


def test_another_part_of_the_engine_publishes_the_same_way(db: minidsms.Connection, clock: Clock) -> None:
    log = _Log()
    db.add_system_stream(log)
    log.notes.append("before")
    db.advance(1)
    q = db.query("SELECT note FROM SysLog")
    assert log.is_open
    db.advance(2)
    log.notes += ["a", "b"]
    db.advance(3)
    assert [(c.ts, c.row[0]) for c in q.fetch()] == [(10_000, "before"), (10_001, "a"), (10_001, "b")]
    q.close()
    assert not log.is_open


def test_decisions_are_told_when_taken_and_again_when_measured(db: minidsms.Connection, clock: Clock) -> None:
    log = db.streamon.plan_log
    log.add(1, ("early", "1", "t"), "nobody listens", ("a", "b"))
    q = db.query("SELECT number, instant, query, new_plan, expected_gain, measured_gain FROM SysDecisions")
    first = log.add(50, ("q", "q.2 Select", "filter ordering"), "drifted", ("1, 2", "2, 1"), expected_gain=0.25)
    log.add(60, ("q", "q.2 Select", "filter ordering"), "drifted", ("2, 1", "1, 2"))
    db.advance(1)
    assert [c.row for c in q.fetch()] == [(2, 50, "q", "2, 1", 0.25, None), (3, 60, "q", "1, 2", None, None)]
    db.advance(2)
    assert q.fetch() == []
    first.measured_gain = 0.2
    db.advance(3)
    db.advance(4)
    assert [c.row for c in q.fetch()] == [(2, 50, "q", "2, 1", 0.25, 0.2)]


def test_an_operator_that_serves_several_queries_is_told_once(db: minidsms.Connection, clock: Clock) -> None:
    for name in ("a", "b"):
        db.query("SELECT k FROM S WHERE v > 1", name=name)
    q = db.query("SELECT entity FROM SysStream WHERE kind = 'operator' AND property = 'elements_in'")
    clock.now += 1000
    db.advance(1)
    entities = [c.row[0] for c in q.fetch()]
    assert len(entities) == len(set(entities))
    assert [name for name in entities if "Select" in name and not name.startswith(q.name)] == ["a.2 Select"]
    assert sum(name.startswith("b.") for name in entities) == 1


def test_a_screen_tells_its_filters_and_what_they_drop(db: minidsms.Connection, clock: Clock) -> None:
    for i in range(9):
        db.query(f"SELECT ISTREAM(k) FROM S WHERE v = {i}")
    system = db.query("SELECT * FROM SysStream")
    db.push("S", [(1, 3), (2, 100), (3, 4), (4, 200)], ts=1)
    clock.now += 1000
    db.push("S", [(1, 300)], ts=2)
    rows = told(system)
    of_screen = {
        name: value for (kind, entity, name), value in rows.items() if (kind, entity) == ("screen", "q1.1 Stream")
    }
    assert of_screen["filters"] == of_screen["queries"] == (9, None) and of_screen["elements_out"] == (2, None)
    assert of_screen["columns_a_row"] == (None, 1.0) and of_screen["dropped"] == (None, 0.6)
    assert rows["adaptation", "q1.1 Stream: screening", "changes"] == (0, None)


def test_an_adaptive_operator_tells_how_often_conditions_and_its_plan_have_changed(clock: Clock) -> None:
    n = 30_000
    with minidsms.connect(clock=clock, cost_model="fixed", profile_rate=1.0) as db:
        db.execute("CREATE STREAM T (a INTEGER, b INTEGER)")
        db.query("SELECT a FROM T WHERE b = 0 AND a = 0", name="f")
        q = db.query("SELECT * FROM SysStream")
        for turn in range(2):
            for start in range(0, n, 1000):
                drops = [1] * 9 + [0]
                columns = {"ab"[turn]: drops * 100, "ba"[turn]: [1 - x for x in drops] * 100}
                db.push("T", columns, ts=list(range(turn * n + start, turn * n + start + 1000)))
        clock.now += 1000
        db.advance(2 * n)
        rows = told(q)
        decisions = len(db.queries["f"].decisions())
    (place,) = {name for kind, name, _ in rows if kind == "adaptation"}
    assert place.startswith("f.") and place.endswith("Select: filter ordering")
    assert decisions == 2
    assert rows["adaptation", place, "decisions"] == (decisions, None)
    assert (rows["adaptation", place, "changes"][0] or 0) >= 1
    rates = [rows["adaptation", place, f"drop_rate of F{i}"][1] for i in (1, 2)]
    assert rates == [1.0, 0.9] or rates == [0.9, 1.0]


def test_a_clock_that_fails_stops_publications_and_no_push() -> None:
    told: list[Any] = [10_000]

    def clock() -> Any:
        return told[0] if told[0] != "broken" else 1 // 0

    with minidsms.connect(clock=clock) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        system = db.query("SELECT ival FROM SysStream WHERE entity = 'S' AND property = 'accepted'")
        q = db.query("SELECT k FROM S")
        for ts, told[0] in enumerate(("broken", None, "x", 1.5, True, 2**80, -(2**80))):
            assert db.push("S", (ts,), ts=ts) == 1
        assert len(q.fetch()) == 7 and system.fetch() == []
        told[0] = 12_000
        db.process()
        assert [change.row for change in system.fetch()] == [(7,)]


def test_nothing_else_writes_it(db: minidsms.Connection) -> None:
    table = {"ts": [1], "entity": ["a"], "kind": ["b"], "property": ["c"], "ival": [1], "fval": [1.0]}
    db.query("SELECT * FROM SysStream")
    for call in (
        lambda: db.feed("SysStream", pa.table(table)),
        lambda: db.pause("SysStream"),
        lambda: db.execute("INSERT INTO SysStream (ival) VALUES (1)"),
        lambda: db.push("SysStream", table),
    ):
        with pytest.raises(minidsms.Error, match="SysStream is written by the engine"):
            call()  # type: ignore[no-untyped-call]
    db.run()
