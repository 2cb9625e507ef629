"""ALTER: adjusting what runs never changes an answer. docs/statements/alter.md."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error, LateElementError
from minidsms.testing.compare import difference_of, run_definition, run_together
from minidsms.testing.generators import random_company


def connection(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER)")
    return db


def pausing(seed: int) -> Any:
    """Pauses and resumes queries at random, and resumes all of them in the end."""
    rng = Random(seed)

    def before(db: Any, call: int, queries: list[Any]) -> None:
        for query in queries:
            if rng.random() < 0.4:
                rng.choice([query.pause, query.resume])()
        if rng.random() < 0.3:
            name, values = rng.choice([("batch_size", [1, 2, 100]), ("queue_size", [1, 5, 1000]), ("quantum", [1, 9])])
            for query in queries[:1]:
                query.set(name, rng.choice(values))
        for query in queries if call == calls["all"] else ():
            query.resume()

    calls = {"all": -1}
    before.calls = calls  # type: ignore[attr-defined]
    return before


@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
def test_pauses_do_not_change_an_answer(batch_size: int) -> None:
    for seed in range(81_000 + batch_size % 7, 81_004 + batch_size % 7):
        cases = random_company(seed)
        try:
            expected = [run_definition(case) for case in cases]
        except CqlError:
            continue
        before = pausing(seed)
        before.calls["all"] = len(cases[0].feed)
        answers = run_together(cases, {}, before=before, batch_size=batch_size)
        for case, by_definition, actual in zip(cases, expected, answers):
            assert difference_of(by_definition, actual) == "", f"seed {seed}\n{case}"


def test_a_paused_query_answers_nothing_and_catches_up() -> None:
    db = connection()
    q = db.query("SELECT ISTREAM(k, COUNT(*)) FROM S [RANGE 5] GROUP BY k", name="q")
    db.execute("ALTER QUERY q PAUSE")
    assert q.state == "paused" and "paused" in repr(q)
    for ts in range(5):
        db.push("S", (1, ts), ts=ts)
    assert q.fetch() == []
    assert q.stats()["operators"][0]["waiting"] == 5
    db.execute("ALTER QUERY q RESUME")
    assert [(c.ts, c.row) for c in q.fetch()] == [(ts, (1, ts + 1)) for ts in range(4)]
    assert q.state == "running"


def test_what_waits_for_a_paused_query_counts_as_memory() -> None:
    db = connection()
    q = db.query("SELECT k FROM S WHERE v > 3")
    db.push("S", {"k": [0] * 100_000, "v": [0] * 100_000}, ts=range(100_000))
    processed = db.nbytes
    q.pause()
    db.push("S", {"k": [0] * 500_000, "v": [0] * 500_000}, ts=range(100_000, 600_000))
    assert db.nbytes > processed + 300_000 * 24
    limit = db.nbytes + 1000
    db.execute(f"SET memory_limit = {limit}")
    n = 600_000
    with pytest.raises(minidsms.MemoryLimitError):
        while n < 10**7:
            db.push("S", {"k": [0] * 100_000, "v": [0] * 100_000}, ts=range(n, n + 100_000))
            n += 100_000
    assert db.nbytes <= limit
    q.resume()
    db.push("S", {"k": [0] * 1000, "v": [0] * 1000}, ts=range(n, n + 1000))


def test_a_pause_is_of_one_query_only() -> None:
    db = connection()
    paused, other = db.query("SELECT k FROM S"), db.query("SELECT k FROM S")
    paused.pause()
    db.push("S", (1, 1), ts=1)
    db.advance(1)
    assert paused.fetch() == [] and len(other.fetch()) == 1


def test_a_pause_parts_queries_that_share_aggregates_and_first_rows() -> None:
    texts = (
        "SELECT k, ARG_MIN(v, v) AS least FROM S [RANGE 5] GROUP BY k",
        "SELECT k, v, window_end FROM S [HOP 4 EVERY 2] ORDER BY v LIMIT 1",
        "SELECT k, window_start, COUNT(*) AS n FROM S [SESSION 3 PARTITION BY k] GROUP BY k, window_start",
    )
    for text in texts:
        with minidsms.connect() as db:
            db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
            running, paused = db.query(text), db.query(text, name="paused")
            db.push("S", [(1, 2), (1, 1), (2, 5)], ts=[1, 2, 2])
            db.execute("ALTER QUERY paused PAUSE")
            db.push("S", [(1, 0), (2, 1)], ts=[3, 4])
            db.advance(20)
            db.execute("ALTER QUERY paused RESUME")
            db.advance(21)
            assert paused.fetch() == running.fetch() != []


def test_an_instant_closed_during_a_pause_is_closed_for_relations_too() -> None:
    outcomes = []
    for pauses in (False, True):
        db = connection()
        db.execute("CREATE RELATION R (k INTEGER)")
        q = db.query("SELECT S.k FROM S [RANGE 5], R WHERE S.k = R.k")
        if pauses:
            q.pause()
        db.push("S", (1, 1), ts=100)
        with pytest.raises(LateElementError):
            db.push("R", (1,), ts=50)
        db.push("R", (1,), ts=100)
        q.resume()
        db.advance(110)
        outcomes.append(q.fetch())
    assert outcomes[0] == outcomes[1] != []


def test_callbacks_are_told_after_resume_and_may_resume() -> None:
    db = connection()
    q = db.query("SELECT k FROM S", name="q")
    told: list[int] = []
    q.on_change(lambda change: told.append(change.row[0]))
    other = db.query("SELECT COUNT(*) FROM T [NOW]")
    other.on_change(lambda change: q.resume())
    q.pause()
    db.push("S", [(1, 1), (2, 2)], ts=[1, 2])
    assert told == []
    db.execute("ALTER QUERY q RESUME")
    assert told == [1, 2]
    db.execute("ALTER QUERY q PAUSE")
    db.push("S", (3, 1), ts=10)
    assert told == [1, 2]
    db.push("T", (1,), ts=1)
    db.advance(20)
    assert told == [1, 2, 3]


def test_settings_of_a_query_are_shown_and_given_up() -> None:
    db = connection()
    q = db.query("SELECT k, COUNT(*) FROM S [RANGE 5] GROUP BY k", name="q")
    db.execute("ALTER QUERY q SET queue_size = 10; ALTER QUERY q SET quantum = 3; ALTER QUERY Q SET batch_size = 2")
    assert str(q.settings) == "queue_size = 10, quantum = 3, batch_size = 2"
    assert db.execute("SHOW QUERIES").rows[0][2:4] == ("running", "queue_size = 10, quantum = 3, batch_size = 2")
    assert {queue.bound for op in q.network.operators for queue in op.inputs} == {10}
    db.execute("ALTER QUERY q SET queue_size = default")
    assert {queue.bound for op in q.network.operators for queue in op.inputs} == {db.settings["queue_size"]}
    db.execute("SET queue_size = 77")
    assert {queue.bound for op in q.network.operators for queue in op.inputs} == {77}
    q.set("queue_size", 5)
    db.execute("SET queue_size = 78")
    assert {queue.bound for op in q.network.operators for queue in op.inputs} == {5}


def test_a_quantum_bounds_what_an_operator_takes_in_a_turn() -> None:
    db = connection()
    q = db.query("SELECT k FROM S [RANGE 5] WHERE v >= 0")
    q.set("quantum", 10)
    db.push("S", {"k": range(1000), "v": range(1000)}, ts=range(1000))
    output = q.network.operators[-1]
    assert output.counters.runs >= output.counters.elements_in / 10
    assert len(q.fetch()) == 999 + 994


@pytest.mark.parametrize(
    ("statement", "reason", "caret"),
    [
        ("ALTER QUERY nobody PAUSE", 'no query "nobody"', "nobody"),
        ("ALTER QUERY q SET batch_siez = 3", 'did you mean "batch_size"', "batch_siez"),
        ("ALTER QUERY q SET time_unit = s", "setting of the connection", "time_unit"),
        ("ALTER QUERY q SET batch_size = 0", "at least 1", "batch_size"),
        ("ALTER STREAM nobody PAUSE", 'no stream "nobody"', "nobody"),
        ("ALTER STREAM nobody PAUSE", "^ there are: S, T", "nobody"),
        ("ALTER STREAM S PAUSE", "no source to pause", "S"),
        ("ALTER STREAM Kept ADD COLUMN n INTEGER", "it is a relation, whose columns stay", "Kept"),
        ("ALTER QUERY q STOP", "STOP", "STOP"),
        ("ALTER VIEW v PAUSE", "VIEW", "VIEW"),
    ],
)
def test_an_alter_that_cannot_be_carried_out_says_why_and_where(statement: str, reason: str, caret: str) -> None:
    db = connection()
    db.execute("CREATE RELATION Kept (k INTEGER)")
    db.query("SELECT k FROM S", name="q")
    with pytest.raises(CqlError) as raised:
        db.execute(statement)
    shown = str(raised.value)
    assert reason in shown
    line, under = shown.splitlines()[1:3]
    start = under.index("^")
    assert line[start : start + under.count("^")].startswith(caret)


def test_a_source_is_paused_and_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,k\n" + "".join(f"{i},{i % 3}\n" for i in range(100)))
    db = connection()
    db.execute(f"CREATE STREAM A (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{path}'")
    q = db.query("SELECT k FROM A")
    db.execute("ALTER STREAM a PAUSE")
    db.run()
    assert q.fetch() == []
    db.resume("A")
    db.run()
    assert len(q.fetch()) == 100


def test_a_sink_stays_open_while_its_query_is_paused(tmp_path: Path) -> None:
    source, target = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_text("ts,k\n1,1\n2,2\n")
    db = connection()
    db.execute(f"CREATE STREAM A (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{source}'")
    q = db.execute(f"CREATE QUERY q AS SELECT k FROM A INTO '{target}'")
    q.pause()
    db.run()
    assert not target.exists()
    q.resume()
    db.run()
    assert len(target.read_text().splitlines()) == 3


def test_only_sources_are_paused_from_python_too() -> None:
    db = connection()
    with pytest.raises(Error, match="no source"):
        db.pause("S")
    with pytest.raises(Error, match="no stream or relation"):
        db.resume("nobody")


def test_show_queries_says_why_a_query_has_failed() -> None:
    db = connection()
    db.query("SELECT k * 9223372036854775807 AS x FROM S", name="q")
    db.push("S", (5, 1), ts=5)
    db.advance(9)
    state = db.execute("SHOW QUERIES").rows[0][2]
    assert state == "failed at 5: k * 9223372036854775807: INTEGER overflow for 5, 9223372036854775807"
