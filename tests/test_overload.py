"""Overload: bounds hold to the element, what is shed is counted, and nothing is lost in silence. docs/overload.md."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error, MemoryLimitError, QueueFullError
from minidsms.inputs.stream_input import StreamInput
from minidsms.testing.compare import check
from minidsms.testing.generators import random_case


def connection(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER)")
    return db


def waiting(query: minidsms.Query) -> int:
    return query.figures()["input_waiting"]


@pytest.mark.parametrize("sharing", ["on", "off"])
@pytest.mark.parametrize("policy", ["random", "drop oldest"])
def test_ten_times_what_can_be_served_for_a_minute_holds_the_bound_to_the_element(policy: str, sharing: str) -> None:
    # A thousand elements a second come; the other stream's time, which they wait for, lets a hundred a second go.
    db = connection(queue_size=500, load_shedding=policy, sharing=sharing, seed=3)
    q = db.query("SELECT ISTREAM(S.v) FROM S [RANGE 10], T [RANGE 10]", name="q")
    pushed, most = 0, 0
    for second in range(60):
        for start in range(0, 1000, 125):
            ts = [1000 * second + start + i for i in range(125)]
            db.push("S", {"k": [0] * 125, "v": ts}, ts=ts)
            pushed += 125
            most = max(most, waiting(q))
        db.advance(100 * second, "T")
    assert most == 500
    passed_on = next(op["elements_in"] for op in q.stats()["operators"] if op["detail"] == "S")
    shed = q.stats()["shed"]["S"]
    assert passed_on + waiting(q) + shed == pushed
    assert shed == db.stream_input("S").counters.shed > 50_000
    row = next(row for row in db.execute("SHOW STREAMS") if row[0] == "S")
    assert row[-1] == shed
    assert f"Shed: {shed:,} elements of S" in q.explain(analyze=True)


def test_drop_oldest_answers_as_if_what_it_passed_over_had_never_come() -> None:
    cql = "SELECT k, COUNT(*), MAX(v) FROM S [RANGE 40] GROUP BY k"
    db, exact = connection(queue_size=30, load_shedding="drop oldest"), connection()
    q, expected = db.query(cql), exact.query(cql)
    held: list[int] = []
    for round_ in range(6):
        q.pause()
        for ts in range(100 * round_, 100 * round_ + 100):
            db.push("S", (ts % 3, ts), ts=ts)
        assert waiting(q) == 30
        q.resume()
        # The newest of a round is not closed when the pause ends: it waits, and is the oldest in the next.
        held += range(100 * round_ + 70, 100 * round_ + (100 if round_ == 5 else 99))
    db.advance(1000)
    exact.push("S", [(ts % 3, ts) for ts in held], ts=held)
    exact.advance(1000)
    assert sorted(q.fetch()) == sorted(expected.fetch())
    assert q.stats()["shed"] == {"S": 600 - len(held)}


@pytest.mark.parametrize("sharing", ["on", "off"])
def test_each_query_counts_what_it_has_passed_over_itself(sharing: str) -> None:
    db = connection(queue_size=5, load_shedding="drop oldest", sharing=sharing)
    queries = [db.query(f"SELECT v, {n} FROM S [RANGE 3]") for n in range(3)]
    db.push("S", [(0, v) for v in range(12)], ts=[1] * 12)
    db.advance(2)
    for q in queries:
        assert [c.row[0] for c in q.fetch()] == [7, 8, 9, 10, 11]
        assert q.stats()["shed"] == {"S": 7}


def test_drop_oldest_concerns_only_the_query_that_waits() -> None:
    db = connection(queue_size=10, load_shedding="drop oldest")
    slow, other = db.query("SELECT v FROM S", name="slow"), db.query("SELECT v FROM S", name="other")
    slow.pause()
    db.push("S", [(0, i) for i in range(100)], ts=range(100))
    assert other.stats()["shed"] == {} and slow.stats()["shed"] == {"S": 90}
    db.advance(100)
    slow.resume()
    assert [c.row[0] for c in slow.fetch()] == list(range(90, 100))
    assert len(other.fetch()) == 100


def test_random_thins_the_stream_evenly_and_by_the_seed() -> None:
    answers = []
    for seed in (1, 1, 2):
        db = connection(queue_size=1000, load_shedding="random", seed=seed)
        q = db.query("SELECT v FROM S")
        q.pause()
        for start in range(0, 4000, 50):
            db.push("S", [(0, i) for i in range(start, start + 50)], ts=range(start, start + 50))
        assert waiting(q) <= 1000
        q.resume()
        db.advance(5000)
        answers.append([c.row[0] for c in q.fetch()])
    assert answers[0] == answers[1] != answers[2]
    # Up to half the bound everything stays; from there on a falling share of what comes.
    assert answers[0][:500] == list(range(500))
    later = np.histogram(answers[0], bins=[500, 1000, 1500, 2000])[0]
    assert later[0] > later[1] > later[2] > 0


def test_what_is_shed_counts_for_time() -> None:
    db = connection(queue_size=1, load_shedding="random")
    q = db.query("SELECT COUNT(*) FROM S [RANGE 5]")
    slow = db.query("SELECT v FROM S")
    slow.pause()
    db.push("S", [(0, 1), (0, 2), (0, 3)], ts=[1, 2, 30])
    assert db.stream_input("S").counters.shed == 2
    db.advance(30)
    assert q.closed_until == 30 and q.snapshot() == [(0,)]


def test_without_shedding_nothing_is_lost_however_much_waits() -> None:
    db = connection(queue_size=10)
    q = db.query("SELECT ISTREAM(S.v) FROM S [RANGE 1], T [RANGE 1000] WHERE S.k = T.k")
    db.push("S", [(0, i) for i in range(1000)], ts=range(1000))
    assert waiting(q) == 1000 and q.stats()["shed"] == {}


def test_a_push_that_does_not_block_fills_the_queue_to_the_element_and_is_refused() -> None:
    db = connection(queue_size=100)
    q = db.query("SELECT v FROM S", name="q")
    for i in range(100):
        db.push("S", (0, i), ts=i, block=False)
    assert q.fetch() == [] and waiting(q) == 100
    with pytest.raises(QueueFullError, match="query q"):
        db.push("S", (0, 100), ts=100, block=False)
    with pytest.raises(QueueFullError):
        db.push("S", {"k": [0], "v": [1]}, ts=100, block=False)
    assert waiting(q) == 100 and db.stream_input("S").counters.accepted == 100
    db.process()
    db.advance(100)
    assert len(q.fetch()) == 100 and waiting(q) == 0
    with pytest.raises(QueueFullError):
        db.push("S", [(0, i) for i in range(101)], ts=range(101, 202), block=False)
    assert db.push("S", [(0, i) for i in range(101)], ts=range(101, 202)) == 101


def test_elements_left_to_be_processed_later_are_answered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    push = minidsms.Connection.push
    rng = Random(1)

    def lazily(db: minidsms.Connection, name: str, data: Any, ts: Any = None, sign: Any = None) -> int:
        taken = push(db, name, data, ts, sign, block=sign is not None)
        if rng.random() < 0.3:
            db.process()
        return taken

    monkeypatch.setattr(minidsms.Connection, "push", lazily)
    for seed in range(85_000, 85_012):
        check(random_case(seed), batch_size=1 + seed % 3)


def test_what_is_left_closes_instants_for_relations() -> None:
    db = connection()
    db.execute("CREATE RELATION R (k INTEGER)")
    db.query("SELECT S.k FROM S [RANGE 5], R WHERE S.k = R.k")
    db.push("S", (1, 1), ts=100, block=False)
    with pytest.raises(minidsms.LateElementError):
        db.push("R", (1,), ts=50)


def test_the_bound_in_bytes_counts_too() -> None:
    db = connection(queue_bytes=24 * 10)
    q = db.query("SELECT v FROM S")
    with pytest.raises(QueueFullError, match="bound of 10"):
        db.push("S", [(0, i) for i in range(11)], ts=range(11), block=False)
    db.execute(f"ALTER QUERY {q.name} SET queue_bytes = {24 * 11}")
    assert db.push("S", [(0, i) for i in range(11)], ts=range(11), block=False) == 11


def test_relations_have_no_queue() -> None:
    db = connection()
    db.execute("CREATE RELATION R (k INTEGER)")
    with pytest.raises(Error, match="for streams"):
        db.push("R", (1,), ts=1, block=False)


def fill_relation(db: minidsms.Connection, query: minidsms.Query) -> tuple[int, int]:
    """Insert rows into R until they are refused: how many there are, and the most bytes that were held after a push."""
    n = most = 0
    with pytest.raises(MemoryLimitError, match="push less at once"):
        while n < 10**5:
            db.push("R", {"k": range(n, n + 200), "v": range(200)}, ts=n)
            n += 200
            db.advance(n - 1)
            query.fetch()
            most = max(most, db.nbytes)
    return n, most


@pytest.mark.parametrize("limit", ["1 MB", "4 MB"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT ISTREAM(S.k, R.v) FROM S [NOW] JOIN R ON S.k = R.k",
        "SELECT x.k, y.v FROM R x JOIN R y ON x.k = y.k",
        "SELECT k % 1000, COUNT(*) FROM R GROUP BY k % 1000",
        "SELECT * FROM R",
    ],
)
def test_a_relation_is_refused_before_it_grows_far_beyond_the_memory_limit(query: str, limit: str) -> None:
    db = connection(memory_limit=limit)
    db.execute("CREATE RELATION R (k INTEGER, v INTEGER)")
    _, most = fill_relation(db, db.query(query))
    bound = db.settings["memory_limit"]
    assert bound // 2 < most <= bound + bound // 4


def test_rows_may_be_deleted_from_a_relation_that_has_no_room_for_more() -> None:
    db = connection(memory_limit="1 MB")
    db.execute("CREATE RELATION R (k INTEGER, v INTEGER)")
    q = db.query("SELECT * FROM R")
    n, _ = fill_relation(db, q)
    db.push("R", {"k": range(1000), "v": [i % 200 for i in range(1000)]}, ts=n, sign=-1)
    db.push("R", {"k": range(n, n + 200), "v": range(200)}, ts=n + 1)
    db.advance(n + 1)
    assert len(q.snapshot()) == n - 800


def test_the_memory_limit_counts_answers_that_nobody_fetches() -> None:
    db = connection(memory_limit="2 MB", batch_size=1000)
    q = db.query("SELECT k, v FROM S")
    limit, n = db.settings["memory_limit"], 0
    with pytest.raises(MemoryLimitError, match="fetch answers"):
        while n < 10**6:
            db.push("S", {"k": [0] * 1000, "v": [1] * 1000}, ts=range(n, n + 1000))
            n += 1000
            assert db.nbytes <= limit + 1000 * 33
    assert 50_000 < n < 100_000
    assert len(q.fetch()) >= n - 1
    db.push("S", {"k": [0] * 1000, "v": [1] * 1000}, ts=range(n, n + 1000))


@pytest.mark.parametrize("policy", ["random", "drop oldest"])
def test_the_memory_limit_is_held_by_shedding(policy: str) -> None:
    db = connection(memory_limit="1 MB", load_shedding=policy, batch_size=500)
    q = db.query("SELECT S.v FROM S [RANGE 100], T [RANGE 100] WHERE S.k = T.k", name="q")
    limit, pushed = db.settings["memory_limit"], 0
    for n in range(0, 200_000, 2000):
        db.push("S", {"k": [0] * 2000, "v": range(n, n + 2000)}, ts=range(n, n + 2000))
        pushed += 2000
        assert db.nbytes <= limit
    counters = db.stream_input("S").counters
    assert counters.shed > 100_000 and q.stats()["shed"]["S"] == counters.shed
    assert waiting(q) + counters.shed == pushed


def test_a_query_may_have_a_memory_limit_of_its_own() -> None:
    db = connection()
    q = db.query("SELECT k, v FROM S", name="q")
    db.execute("ALTER QUERY q SET memory_limit = '100 KB'")
    with pytest.raises(MemoryLimitError, match="query q holds"):
        for n in range(0, 100_000, 500):
            db.push("S", {"k": [0] * 500, "v": [1] * 500}, ts=range(n, n + 500))
    assert q.nbytes < 120_000
    db.push("T", (1,), ts=1)
    q.fetch()
    db.push("S", (1, 1), ts=10**6)
    db.execute("ALTER QUERY q SET memory_limit = default; SET load_shedding = 'drop oldest'")
    for n in range(10**6 + 1, 10**6 + 100_000, 5000):
        db.push("S", {"k": [0] * 5000, "v": [1] * 5000}, ts=range(n, n + 5000))
    assert q.stats()["shed"] == {}


def test_a_paused_query_sheds_what_passes_its_own_memory_limit() -> None:
    db = connection(load_shedding="drop oldest")
    q = db.query("SELECT k, v FROM S", name="q")
    q.set("memory_limit", "24 KB")
    q.pause()
    for n in range(0, 10_000, 100):
        db.push("S", {"k": [0] * 100, "v": [1] * 100}, ts=range(n, n + 100))
        assert q.nbytes <= 24 * 1024
    assert waiting(q) == 1024 and q.stats()["shed"] == {"S": 10_000 - 1024}


def test_relations_are_refused_beyond_the_limit_and_never_shed() -> None:
    db = connection(memory_limit="1 MB", load_shedding="random")
    db.execute("CREATE RELATION R (k INTEGER)")
    with pytest.raises(MemoryLimitError):
        for n in range(0, 10**6, 1000):
            db.push("R", [(i,) for i in range(n, n + 1000)], ts=1)


def test_sys_stream_tells_what_is_shed() -> None:
    now = [0]
    db = connection(queue_size=10, load_shedding="drop oldest", clock=lambda: now[0])
    q = db.query("SELECT v FROM S", name="q")
    log = db.query("SELECT entity, ival FROM SysStream WHERE property = 'shed' AND ival > 0")
    q.pause()
    now[0] = 1000
    db.push("S", [(0, i) for i in range(15)], ts=range(15))
    assert sorted(c.row for c in log.fetch()) == [("S", 5), ("q", 5)]


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CqlError, match="none, random, drop oldest"):
        connection().execute("SET load_shedding = newest")


@pytest.mark.parametrize("policy", ["random", "drop oldest"])
def test_where_nothing_overflows_answers_are_exact_under_every_policy(policy: str) -> None:
    for seed in range(84_000, 84_008):
        check(random_case(seed), batch_size=1 + seed % 3, load_shedding=policy, memory_limit="100 MB")


def test_random_pauses_under_shedding_leave_all_counts_balanced() -> None:
    rng = Random(5)
    db = connection(queue_size=20, load_shedding="drop oldest", batch_size=7)
    queries = [db.query("SELECT v FROM S"), db.query("SELECT v FROM S WHERE v >= 0"), db.query("SELECT k, v FROM S")]
    for ts in range(0, 3000, 10):
        for q in queries:
            rng.choice([q.pause, q.resume, lambda: None])()
        db.push("S", [(0, i) for i in range(ts, ts + 10)], ts=range(ts, ts + 10))
        assert all(waiting(q) <= 20 for q in queries)
    for q in queries:
        q.resume()
    db.advance(4000)
    for q in queries:
        rows = [c.row[-1] for c in q.fetch()]
        assert rows == sorted(rows) and len(rows) + q.stats()["shed"].get("S", 0) == 3000


@pytest.mark.parametrize(("priority", "least", "most"), [(1, 0.5, 2.0), (4, 2.5, 8.0)])
def test_where_memory_is_short_more_stays_for_a_query_of_a_higher_priority(
    priority: int, least: float, most: float
) -> None:
    db = minidsms.connect(load_shedding="drop oldest", memory_limit=2_000_000)
    db.execute("CREATE STREAM A (x INTEGER); CREATE STREAM B (x INTEGER)")
    db.execute("CREATE QUERY a AS SELECT x FROM A [RANGE 1 SECOND]; CREATE QUERY b AS SELECT x FROM B [RANGE 1 SECOND]")
    db.execute(f"ALTER QUERY a PAUSE; ALTER QUERY b PAUSE; ALTER QUERY b SET memory_priority = {priority}")
    for i in range(40):
        for name in "AB":
            db.push(name, {"x": range(i * 5000, i * 5000 + 5000)}, ts=i)
    kept = {name: 200_000 - db.queries[name].stats()["shed"][name.upper()] for name in "ab"}
    assert least <= kept["b"] / kept["a"] <= most
    assert db.nbytes <= 2_000_000


@pytest.mark.parametrize("value", [0, -1, "'much'", "none", 10_000_000])
def test_a_priority_is_a_number_above_nothing(value: object) -> None:
    db = connection()
    with pytest.raises(CqlError, match="give a number above 0, at most a million"):
        db.execute(f"SET memory_priority = {value}")


@pytest.mark.parametrize("rows", [(0, 1), [(0, 1), (0, 2), (0, 3)]])
def test_a_push_that_finds_no_memory_counts_nothing_as_shed(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    db = connection(queue_size=4, load_shedding="random", seed=1)
    q = db.query("SELECT ISTREAM(S.v) FROM S [RANGE 10], T [RANGE 10]")
    db.push("S", [(0, 0)] * 4, ts=[1] * 4)
    before = q.stats()["shed"].get("S", 0)
    n = 1 if isinstance(rows, tuple) else len(rows)
    with monkeypatch.context() as failing:
        failing.setattr(StreamInput, "begin", _no_memory)
        with pytest.raises(MemoryError):
            db.push("S", rows, ts=5 if n == 1 else [5] * n)
    assert q.stats()["shed"].get("S", 0) == before
    accepted = db.push("S", rows, ts=5 if n == 1 else [5] * n)
    assert q.stats()["shed"]["S"] == before + n - accepted > before


def _no_memory(*_: object) -> None:
    raise MemoryError
