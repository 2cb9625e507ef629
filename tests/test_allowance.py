"""What a call may take while operators are at work: `memory_limit`, `statement_timeout` and `answer_limit` end the
query that asks for more; the connection and its other queries go on. docs/overload.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import CqlError, MemoryLimitError, QueryError
from minidsms.joins import answer
from minidsms.limits import allowance, memory
from minidsms.limits.allowance import Allowance
from minidsms.machine_code import compile_time
from minidsms.machine_code.compile_time import COMPILED

LIMIT = 4_000_000


def connection(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (k INTEGER, a INTEGER, t TEXT); CREATE STREAM T (k INTEGER, b INTEGER, t TEXT)")
    db.execute("CREATE STREAM Other (x INTEGER)")
    return db


def push_equal_rows(db: minidsms.Connection, n: int, ts: Any) -> None:
    texts = [f"{i:05d}" for i in range(n)]
    db.push("S", {"k": np.zeros(n, np.int64), "a": np.arange(n), "t": texts}, ts=ts)
    db.push("T", {"k": np.zeros(n, np.int64), "b": np.arange(n), "t": texts}, ts=ts)
    db.advance(int(np.max(ts)) + 1)


def is_alive(db: minidsms.Connection, query: minidsms.Query) -> bool:
    """Another query of the connection answers still."""
    before = query.results
    db.push("Other", (1,), ts=10**6 + before)
    db.advance(10**6 + before)
    return query.results > before


@pytest.mark.parametrize(
    "cql",
    [
        "SELECT ISTREAM(S.a, T.b) FROM S, T WHERE S.k = T.k",
        "SELECT S.a, T.b FROM S [RANGE 9], T [RANGE 9] WHERE S.k = T.k",
        "SELECT COUNT(*) FROM S, T WHERE S.k = T.k",
        "SELECT COUNT(*), SUM(S.a) FROM S, T",
        "SELECT DISTINCT S.a, T.b FROM S, T WHERE S.k = T.k",
        "SELECT S.a, T.b, COUNT(*) FROM S, T WHERE S.k = T.k GROUP BY S.a, T.b",
        "SELECT ISTREAM(S.a, T.b, U.a) FROM S, T, S U WHERE S.k = T.k AND T.k = U.k",
        "SELECT S.a, T.b FROM S LEFT JOIN T ON S.k = T.k",
        "SELECT S.a FROM S, T WHERE S.k = T.k UNION SELECT T.b FROM S, T WHERE S.k = T.k",
        "SELECT ISTREAM(S.a, T.b) FROM S [RANGE 9], T [RANGE 9] WHERE S.a < T.b",
        "SELECT ISTREAM(S.t || T.t) FROM S, T WHERE S.k = T.k",
        "SELECT ISTREAM(LPAD(t, 5000, t)) FROM S",
        "SELECT a, " + ", ".join(f"SUM(k + {i})" for i in range(200)) + " FROM S GROUP BY a",
        "SELECT a, " + ", ".join(f"MAX(DISTINCT t || '{i}')" for i in range(60)) + " FROM S GROUP BY a",
    ],
)
def test_a_query_whose_answer_at_an_instant_passes_memory_limit_fails_alone(cql: str) -> None:
    db = connection(memory_limit=LIMIT)
    big, other = db.query(cql), db.query("SELECT x FROM Other")
    push_equal_rows(db, 1000, ts=5)
    assert big.state == "failed"
    assert big.closed_until == 4
    with pytest.raises(QueryError, match="more than the memory_limit of 4,000,000"):
        while big.fetch():
            pass
    big.close()
    assert db.nbytes < LIMIT
    assert is_alive(db, other)


@pytest.mark.parametrize("plan", ["join_plan = 'xjoin'", "caching = 'global'", "state_reduction = 'k-mon'"])
def test_every_way_of_joining_keeps_to_memory_limit(plan: str) -> None:
    db = connection(memory_limit=LIMIT)
    db.execute(f"SET {plan}")
    other = db.query("SELECT x FROM Other")
    big = db.query("SELECT S.a, T.b, U.a FROM S [RANGE 9], T [RANGE 9], S [RANGE 9] U WHERE S.k = T.k AND T.k = U.k")
    push_equal_rows(db, 300, ts=5)
    assert big.state == "failed"
    big.close()
    assert is_alive(db, other)


@pytest.mark.parametrize(
    "cql",
    [
        "SELECT S.a, T.b FROM S [RANGE 9], T [RANGE 9] WHERE S.k = T.k",
        "SELECT S.a, T.b, COUNT(*) FROM S, T WHERE S.k = T.k GROUP BY S.a, T.b",
    ],
)
def test_a_memory_limit_of_its_own_ends_a_query_amidst_a_call_and_no_other(cql: str) -> None:
    db = connection()
    big, same = db.query(cql), db.query("SELECT S.a, T.b FROM S [RANGE 9], T [RANGE 9] WHERE S.k = T.k")
    db.execute(f"ALTER QUERY {big.name} SET memory_limit = {LIMIT}")
    small = db.query("SELECT a FROM S [ROWS 5]")
    small.set("memory_limit", LIMIT)
    push_equal_rows(db, 1000, ts=5)
    assert big.state == "failed"
    with pytest.raises(QueryError, match="more than its memory_limit of 4,000,000"):
        while big.fetch():
            pass
    assert (same.state, small.state) == ("running", "running")
    assert len(small.snapshot()) == 5


def test_what_was_answered_before_the_limit_stands() -> None:
    cql = "SELECT RSTREAM(a) FROM S"
    db, unlimited = connection(memory_limit=LIMIT), connection()
    q, whole = db.query(cql), unlimited.query(cql)
    for each in (db, unlimited):
        each.push("S", {"k": [0] * 1000, "a": range(1000), "t": [None] * 1000}, ts=list(range(1000)))
    assert q.state == "failed"
    assert q.failure is not None
    assert 100 < q.failure[0] < 1000
    expected = sorted(change for change in whole.fetch() if change.ts < q.failure[0])
    assert sorted(change for change in q.fetch() if change.ts < q.failure[0]) == expected


def test_a_failed_query_shared_with_no_other_takes_no_operator_of_another_with_it() -> None:
    db = connection(memory_limit=LIMIT)
    big = db.query("SELECT COUNT(*) FROM S, T WHERE S.k = T.k")
    small = db.query("SELECT COUNT(*) FROM S [ROWS 5], T [ROWS 5] WHERE S.k = T.k")
    push_equal_rows(db, 1000, ts=5)
    assert (big.state, small.state) == ("failed", "running")
    assert small.snapshot() == [(25,)]


def test_no_element_is_taken_unasked_after_memory_limit_is_set_below_what_is_held() -> None:
    db = connection()
    db.query("SELECT COUNT(DISTINCT x) FROM Other [RANGE UNBOUNDED]")
    db.push("Other", {"x": np.arange(200_000)}, ts=0)
    db.push("Other", (0,), ts=1)
    db.set("memory_limit", db.memory.nbytes // 2)
    with pytest.raises(MemoryLimitError):
        db.push("Other", (0,), ts=1)


def test_texts_are_counted_and_given_back() -> None:
    db = connection(memory_limit=LIMIT)
    q = db.query("SELECT a, t FROM S [ROWS 1]")
    for i in range(30):
        db.push("S", (0, i, f"{i}" * 200_000), ts=i)
        q.fetch()
    assert q.state == "running"
    with pytest.raises(minidsms.Error, match="memory_limit"):
        db.push("S", [(0, i, f"{i:07d}" * 30_000) for i in range(50)], ts=50)
    db.push("S", (0, 1, "short"), ts=60)
    db.advance(60)
    assert q.fetch()[-1].row == (1, "short")


def test_statement_timeout_ends_the_query_that_takes_too_long() -> None:
    db = connection(statement_timeout="20 MILLISECONDS")
    slow, other = db.query("SELECT COUNT(*) FROM S, T, S U, T V"), db.query("SELECT x FROM Other")
    push_equal_rows(db, 300, ts=5)
    assert slow.state == "failed"
    with pytest.raises(QueryError, match=r"longer than the statement_timeout of 0\.02 seconds"):
        slow.fetch()
    db.execute("SET statement_timeout = none")
    assert is_alive(db, other)


class Last:
    """A user aggregate: the value that came last. calls: of `result`."""

    calls = 0

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int) -> None:
        self.values.append(value)

    def remove(self, value: int) -> None:
        self.values.remove(value)

    def result(self) -> int:
        Last.calls += 1
        return self.values[-1]


LONG_WORK = (
    "SELECT ARRAY_AGG(a ORDER BY a) FROM S [ROWS 50]",
    "SELECT k, STRING_AGG(t, ',') FROM S GROUP BY k",
    "SELECT HISTOGRAM(a) FROM S [RANGE 50]",
    "SELECT a, HISTOGRAM(k) FROM S [RANGE 50] GROUP BY a",
    "SELECT NEWEST(a) FROM S",
    "SELECT a, ARRAY_AGG(t) OVER (ORDER BY ts ROWS 5 PRECEDING) FROM S",
    "SELECT a, NEWEST(a) OVER (ORDER BY a ROWS 5 PRECEDING) FROM S [RANGE 500]",
    "SELECT ONCE(a) AS x FROM S",
    "SELECT a FROM S [RANGE 50] WHERE ONCE(a) > 5",
    "SELECT LPAD(t, 5, t) || a AS x, REPEAT(t, a % 5) AS y FROM S",
    "SELECT UPPER(t) AS x FROM S",
    "SELECT LIST_SORT([a, k]) AS x FROM S",
)


@pytest.mark.parametrize("cql", LONG_WORK)
@pytest.mark.parametrize("at_once", [False, True])
def test_statement_timeout_is_seen_amid_a_batch(cql: str, at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, calls, n = count(), count(), 3000
    monkeypatch.setattr(allowance, "monotonic", lambda: next(looks) / 1000)  # a look at the clock takes a millisecond
    db = connection(statement_timeout="60 MILLISECONDS")
    db.create_function("ONCE", lambda a: next(calls) and a, ["INTEGER"], "INTEGER")
    db.create_aggregate("NEWEST", Last, ["INTEGER"], "INTEGER")
    Last.calls = 0
    slow, other = db.query(cql), db.query("SELECT x FROM Other")
    rows = {"k": np.arange(n) % 3, "a": np.arange(n), "t": [f"{i:04d}" for i in range(n)]}
    db.push("S", rows, ts=np.full(n, 5) if at_once else np.arange(n))
    db.advance(n)
    if not (at_once and cql.startswith(LONG_WORK[:5])):  # then they have few answers, or none is long
        assert slow.state == "failed"
        assert "longer than the statement_timeout" in str(slow.failure)
    assert max(Last.calls, next(calls)) < 500
    db.execute("SET statement_timeout = none")
    assert is_alive(db, other)


def test_the_time_in_which_kernels_are_compiled_is_not_a_querys(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    clock = SimpleNamespace(perf_counter_ns=lambda: now[0], thread_time_ns=lambda: now[0])
    monkeypatch.setattr(compile_time, "time", clock)
    db = connection(statement_timeout="1 HOUR")

    def takes_hours(k: int) -> int:
        with COMPILED.counted() if k else nullcontext():
            now[0] += 2 * 3600 * 10**9
        return k

    before = COMPILED.wall_ns, COMPILED.thread_ns
    db.create_function("TAKES_HOURS", takes_hours, ["INTEGER"], "INTEGER")
    query = db.query("SELECT TAKES_HOURS(k) AS x FROM S")
    db.push("S", [(1, 2, "a"), (2, 3, "b")], ts=5)
    db.advance(5)
    assert query.results == 2
    db.push("S", [(0, 2, "a"), (0, 3, "b")], ts=6)
    db.advance(6)
    assert query.state == "failed"
    COMPILED.wall_ns, COMPILED.thread_ns = before


def test_answer_limit_ends_a_query_whose_answers_nobody_fetches_between_two_instants() -> None:
    db = connection(answer_limit=10)
    q = db.query("SELECT ISTREAM(x) FROM Other")
    for ts in range(4):
        db.push("Other", [(ts,)] * 4, ts=[ts] * 4)
    assert q.state == "failed"
    assert [change.ts for change in q.fetch()] == [0] * 4 + [1] * 4
    with pytest.raises(QueryError, match="answer_limit"):
        q.fetch()


def test_answer_limit_ends_a_query_with_a_past_from_archives_between_two_instants(tmp_path: Path) -> None:
    db = minidsms.connect(answer_limit=10)
    db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
    for ts in range(6):
        db.push("S", [(ts,)] * 4, ts=[ts] * 4)
    q = db.execute(f"CREATE QUERY q AS SELECT ISTREAM(v) FROM S [RANGE 2] BACKFILL FROM '{tmp_path}'")
    assert q.failure == (2, allowance.TOO_MANY_ANSWERS)
    assert [change.ts for change in q.fetch()] == [0] * 4 + [1] * 4


def test_answer_limit_counts_what_waits_only() -> None:
    db = connection(answer_limit=10)
    q = db.query("SELECT ISTREAM(x) FROM Other")
    told: list[Any] = []
    db.query("SELECT ISTREAM(x) FROM Other").on_change(told.append)
    for ts in range(40):
        db.push("Other", (ts,), ts=ts)
        q.fetch()
    assert q.state == "running"
    assert len(told) >= 39


@pytest.mark.parametrize("value", ["'5'", "5", "'0 SECONDS'", "'soon'"])
def test_statement_timeout_is_a_length_of_time(value: str) -> None:
    with pytest.raises(CqlError, match=r"statement_timeout|length of time|unit"):
        connection().execute(f"SET statement_timeout = {value}")


def rules(db: minidsms.Connection, n: int) -> list[minidsms.Query]:
    """So many queries that a screen would run, each with a filter of its own that all rows pass."""
    return [db.query(f"SELECT ISTREAM(a) FROM S WHERE k > {-1 - i}") for i in range(n)]


def fill(db: minidsms.Connection, n: int, ts: int) -> None:
    db.push("S", {"k": np.zeros(n, np.int64), "a": np.arange(n), "t": ["x"] * n}, ts=ts)


def test_queries_run_by_a_screen_keep_to_memory_limit_and_others_go_on() -> None:
    db = connection(memory_limit=LIMIT)
    queries, other = rules(db, 400), db.query("SELECT x FROM Other")
    fill(db, 10, ts=1)
    db.advance(1)
    assert all(query.network.folding is not None and query.network.folding.is_folded for query in queries)
    fill(db, 8000, ts=5)
    db.advance(6)
    assert {query.state for query in queries} == {"failed"}
    with pytest.raises(QueryError, match=r"Screen was stopped: .* more than the memory_limit of 4,000,000"):
        while queries[7].fetch():
            pass
    assert [change.row for change in queries[8].fetch()][:10] == [(i,) for i in range(10)]
    for query in queries:
        query.close()
    assert db.nbytes < LIMIT
    assert is_alive(db, other)
    again = rules(db, 9)
    fill(db, 3, ts=10**7)
    assert [[change.row for change in query.fetch()] for query in again] == [[(0,), (1,), (2,)]] * 9


def test_answer_limit_holds_for_queries_that_a_screen_would_run() -> None:
    db = connection()
    queries = rules(db, 9)
    fill(db, 4, ts=1)
    db.execute("SET answer_limit = 10")
    queries += rules(db, 3)
    for ts in range(2, 6):
        fill(db, 4, ts=ts)
        queries[3].fetch()
    assert [query.state for query in queries].count("failed") == 11
    assert queries[3].state == "running"
    with pytest.raises(QueryError, match="answer_limit"):
        while queries[0].fetch():
            pass


def test_a_query_whose_state_finds_no_memory_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    query, other = db.query("SELECT k, COUNT(*) FROM S [RANGE 5] GROUP BY k"), db.query("SELECT k FROM S [RANGE 5]")
    aggregate = next(op for op in query.network.operators if op.name == "Aggregate")

    def no_memory(batches: object, until: int) -> None:
        raise MemoryError

    monkeypatch.setattr(aggregate, "process", no_memory)
    db.push("S", [(1,), (2,)], ts=[1, 2])
    db.advance(2)
    assert query.failure == (1, "Aggregate was stopped: the system has no memory left")
    assert [change.row for change in other.fetch()] == [(1,), (2,)]


def test_what_is_answered_before_a_query_is_stopped_behind_a_full_queue_is_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time an operator asks whether it may hold more it may not, in turn; none may be taken unasked."""
    monkeypatch.setattr(memory, "_STATE_PER_INPUT", 2**62)
    take = Allowance.take
    for at in count():
        asked = count()

        def taking(self: Allowance, nbytes: int, at: int = at, asked: Iterator[int] = asked) -> None:
            if next(asked) == at:
                raise MemoryLimitError("no more")
            take(self, nbytes)

        monkeypatch.setattr(Allowance, "take", taking)
        db = connection(queue_size=1, memory_limit="1 GB")
        query = db.query("DSTREAM (SELECT x FROM Other [RANGE 5])")
        db.push("Other", [(1,), (2,), (3,)], ts=[1, 2, 4])
        db.advance(20)
        if query.failure is None:
            break
        expected = [(ts + 5, x) for ts, x in ((1, 1), (2, 2), (4, 3)) if ts + 5 < query.failure[0]]
        assert [(c.ts, *c.row) for c in (query.fetch() if expected else ())] == expected, at
    assert at > 5


@pytest.mark.parametrize(
    "cql",
    [
        "SELECT a FROM S [RANGE 5000]",
        "SELECT ISTREAM(a) FROM S [RANGE 5000]",
        "SELECT a, COUNT(*), SUM(a) FROM S GROUP BY a",
        "SELECT DISTINCT a, k + a FROM S",
        "SELECT a, LAG(a) OVER (ORDER BY ts) FROM S [RANGE 3000]",
        "SELECT S.a, U.a FROM S [RANGE 900], S [RANGE 900] U WHERE S.k = U.k",
    ],
)
def test_what_may_be_taken_unasked_is_counted(cql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are refused no earlier than where all that is held is added up each time, and soon after."""
    refused = []
    for per_input in (16, 2**62):
        monkeypatch.setattr(memory, "_STATE_PER_INPUT", per_input)
        with connection(memory_limit=300_000) as db:
            query = db.query(cql)
            with pytest.raises(MemoryLimitError, match="300,000"):
                for i in range(10_000):
                    db.push("S", (0, i, "t"), ts=i)
                    db.advance(i)
            assert query.failure is None
            refused.append(query.results)
    assert refused[1] <= refused[0] <= 1.04 * refused[1]


COMPARING = (
    "SELECT COUNT(*) FROM S, T WHERE S.k = T.k AND S.a = T.b - 9999",
    "SELECT COUNT(*) FROM S, T, S U WHERE S.k = T.k AND T.k = U.k AND U.a = T.b - 9999",
    "SELECT ISTREAM(S.a) FROM S [RANGE 9], T [RANGE 9], S [RANGE 9] U WHERE S.k = T.k AND T.k = U.k AND T.b = -U.a",
)
ALONG_A_TREE = "SELECT COUNT(*) FROM T, S, S U WHERE S.k = T.k AND T.t = U.t AND U.a > 9999"
"""Joins that look at many pairs of 300 equal rows, and give none."""


@pytest.mark.parametrize(
    ("cql", "plan"),
    [
        *product(COMPARING, ("join_plan = 'xjoin'", "caching = 'global'", "join_plan = 'mjoin'")),
        (ALONG_A_TREE, "state_reduction = 'swj'"),
        (ALONG_A_TREE, "state_reduction = 'k-mon'"),
        (COMPARING[0], "state_reduction = 'k-mon'"),
    ],
)
def test_statement_timeout_ends_a_join_that_compares_for_long_and_finds_nothing(
    cql: str, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()
    monkeypatch.setattr(answer, "MOST_INSPECTED", 500)
    monkeypatch.setattr(allowance, "monotonic", lambda: next(looks) / 1000)  # a look at the clock takes a millisecond
    db = connection(statement_timeout="60 MILLISECONDS")
    db.execute(f"SET {plan}; SET join_index = hash")
    slow, other = db.query(cql), db.query("SELECT x FROM Other")
    push_equal_rows(db, 300, ts=5)
    assert slow.state == "failed"
    db.execute("SET statement_timeout = none")
    assert is_alive(db, other)
