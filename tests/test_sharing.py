"""Operators that serve several queries: which they are, and that nobody notices (docs/design, points 3 and 10)."""

from __future__ import annotations

from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import QueryError
from minidsms.operators.operator import Operator
from minidsms.query import Query


def connected(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, w INTEGER)")
    db.execute("CREATE RELATION R (k INTEGER, name TEXT)")
    return db


def operators_of(query: Query) -> dict[str, Operator]:
    return {op.name: op for op in query.network.operators}


def shared(a: Query, b: Query) -> set[str]:
    """The kinds of the operators that two queries have in common."""
    ours = {id(op) for op in a.network.operators}
    return {op.name for op in b.network.operators if id(op) in ours}


def answers(query: Query) -> list[tuple[int, int, tuple[Any, ...]]]:
    return [tuple(change) for change in query.fetch()]


JOIN = "SELECT ISTREAM(S.v, COUNT(*)) FROM S [RANGE 5], T [RANGE 3] WHERE S.k = T.k AND v > 1 GROUP BY S.v"


def test_equal_queries_share_everything_but_their_output() -> None:
    db = connected()
    a, b = db.query(JOIN), db.query(JOIN)
    assert len(a.network.operators) == len(b.network.operators)
    assert [op.name for op in b.network.operators if op not in a.network.operators] == ["Output"]
    db.push("S", [(1, 2), (1, 3)], ts=1)
    db.push("T", [(1, 7)], ts=1)
    db.advance(20)
    assert sorted(answers(a)) == sorted(answers(b)) == [(1, 1, (2, 1)), (1, 1, (3, 1))]


def test_queries_with_one_window_and_different_groups_share_the_window() -> None:
    db = connected()
    a = db.query("SELECT k, SUM(v) FROM S [RANGE 5] GROUP BY k")
    b = db.query("SELECT k, MAX(v) FROM S [RANGE 5] GROUP BY k")
    c = db.query("SELECT k, MAX(v) FROM S [RANGE 6] GROUP BY k")
    assert {"Stream", "RangeWindow"} <= shared(a, b)
    assert "Aggregate" not in shared(a, b)
    assert "RangeWindow" not in shared(a, c)
    assert "Stream" in shared(a, c)


def test_a_view_that_two_queries_use_runs_once() -> None:
    db = connected()
    db.execute("CREATE VIEW V AS SELECT k, SUM(v) AS s FROM S [RANGE 5] GROUP BY k")
    a = db.query("SELECT ISTREAM(s) FROM V WHERE s > 3")
    b = db.query("SELECT ISTREAM(k) FROM V WHERE s < 3")
    assert "Aggregate" in shared(a, b)


def test_names_do_not_keep_queries_apart_unless_a_failure_would_tell_them() -> None:
    db = connected()
    a = db.query("SELECT x.v FROM S [RANGE 5] x WHERE x.v > 1")
    b = db.query("SELECT y.v FROM S [RANGE 5] y WHERE y.v > 1")
    assert "Select" in shared(a, b)
    c = db.query("SELECT * FROM (SELECT SUM(v) AS x FROM S [RANGE 5]) t WHERE x + 1 > 1")
    d = db.query("SELECT * FROM (SELECT SUM(v) AS y FROM S [RANGE 5]) t WHERE y + 1 > 1")
    assert "Aggregate" in shared(c, d)
    assert "Select" not in shared(c, d)


@pytest.mark.parametrize("setting", ["filter_ordering = static", "change_detection = off", "routing = off"])
def test_filters_that_are_ordered_in_other_ways_are_not_shared(setting: str) -> None:
    db = connected()
    of_two, of_one = "SELECT k FROM S WHERE k < 5 AND v < 5", "SELECT k FROM S WHERE k < 5"
    first, alone = db.query(of_two), db.query(of_one)
    db.execute(f"SET {setting}")
    second, third = db.query(of_two), db.query(of_two)
    assert "Select" not in shared(first, second) and "Select" in shared(second, third)
    assert "Select" in shared(alone, db.query(of_one)), "one filter has no order"


def test_constants_of_different_types_are_different() -> None:
    db = connected()
    a = db.query("SELECT ISTREAM(k, 1) FROM S")
    b = db.query("SELECT ISTREAM(k, TRUE) FROM S")
    db.push("S", [(5, 0)], ts=1)
    db.advance(1)
    assert answers(a) == [(1, 1, (5, 1))]
    assert answers(b)[0][2][1] is True


def test_a_query_fails_alone_with_an_operator_above_what_it_shares() -> None:
    db = connected()
    good = db.query("SELECT k, v FROM S [RANGE 5]")
    bad = db.query("SELECT k, v * 9000000000000000000 FROM S [RANGE 5]")
    assert "RangeWindow" in shared(good, bad)
    db.push("S", [(1, 1)], ts=1)
    db.push("S", [(1, 2)], ts=2)
    db.push("S", [(1, 3)], ts=3)
    db.advance(3)
    assert bad.failure is not None and bad.failure[0] == 2
    assert answers(good) == [(1, 1, (1, 1)), (2, 1, (1, 2)), (3, 1, (1, 3))]
    assert answers(bad) == [(1, 1, (1, 9000000000000000000))]
    with pytest.raises(QueryError):
        bad.fetch()
    assert good.network.group is not None
    assert "Project" not in {op.name for op in good.network.group.operators}
    db.push("S", [(1, 4)], ts=4)
    db.advance(4)
    assert answers(good) == [(4, 1, (1, 4))]


def test_a_failed_query_can_still_be_explained() -> None:
    db = connected()
    db.query("SELECT k, v FROM S [RANGE 5]")
    bad = db.query("SELECT k, v * 9000000000000000000 FROM S [RANGE 5]")
    db.push("S", [(1, 2)], ts=2)
    db.advance(3)
    assert "Failed at 2" in bad.explain(analyze=True)
    assert "RangeWindow" in bad.explain(analyze=True, format="mermaid")
    assert bad.operator_tree().inputs
    assert bad.stats()["failure"] == bad.failure


def test_a_failed_query_that_is_paused_or_set_stays_failed() -> None:
    db = connected()
    good = db.query("SELECT k, v FROM S [RANGE 5]")
    bad = db.query("SELECT k, v * 9000000000000000000 FROM S [RANGE 5]")
    db.push("S", [(1, 2)], ts=2)
    db.advance(3)
    bad.pause()
    bad.set("batch_size", 3)
    bad.resume()
    db.push("S", [(1, 1)], ts=4)
    db.advance(4)
    assert bad.state == "failed" and bad.failure is not None and bad.failure[0] == 2
    assert [row for _, _, row in answers(good)] == [(1, 2), (1, 1)]
    bad.close()
    good.close()
    assert not db.groups.all and not db.stream_store("S")[0]._readers


def test_all_queries_above_a_failing_operator_fail_and_no_other() -> None:
    db = connected()
    text = "SELECT k, SUM(v * 9000000000000000000) FROM S [RANGE 5] GROUP BY k"
    bad, worse, good = db.query(text), db.query(text), db.query("SELECT k, SUM(v) FROM S [RANGE 5] GROUP BY k")
    db.push("S", [(1, 1)], ts=1)
    db.push("S", [(1, 2)], ts=2)
    db.advance(2)
    assert bad.failure == worse.failure and bad.failure is not None and bad.failure[0] == 2
    assert good.failure is None
    late = db.query(text)
    db.push("S", [(1, 1)], ts=3)
    db.advance(3)
    assert late.failure is None
    assert [row for _, _, row in answers(late)] == [(1, 9000000000000000000)]


def test_dropping_a_query_frees_what_only_it_used() -> None:
    db = connected()
    small = db.query("SELECT k, v FROM S [RANGE 5] WHERE v > 0")
    large = db.query("SELECT k, COUNT(*) FROM S [RANGE 5000] GROUP BY k")
    group = small.network.group
    assert group is not None and group is large.network.group
    for ts in range(2000):
        db.push("S", [(1, 1)], ts=ts)
    db.advance(1999)
    store = db.stream_store("S")[0]
    assert len(store) == 2000
    before = len(group.operators)
    large.close()
    assert len(group.operators) < before
    assert {id(op) for op in group.operators} == {id(op) for op in small.network.operators}
    assert len(store) == 5
    assert all(any(queue.producer is op for op in group.operators) for o in group.operators for queue in o.inputs)
    assert sum(len(op.outputs) for op in group.operators) == sum(len(op.inputs) for op in group.operators)
    small.close()
    assert not group.operators and not db.groups.all
    assert len(store) == 0


def test_a_late_query_starts_from_an_empty_window_beside_the_full_one() -> None:
    db = connected()
    early = db.query("SELECT COUNT(*) FROM S [RANGE 10]")
    db.push("S", [(1, 1)], ts=1)
    db.advance(1)
    late = db.query("SELECT COUNT(*) FROM S [RANGE 10]")
    assert shared(early, late) & {"Stream", "RangeWindow"} == {"Stream"}
    assert "Began after instant 1, from empty; 2 of its 6 operators ran already" in late.explain()
    assert "Began" not in early.explain()
    db.push("S", [(1, 1)], ts=2)
    db.advance(2)
    assert early.snapshot() == [(2,)]
    assert late.snapshot() == [(1,)]


def test_a_late_query_shares_filters_and_what_nothing_has_come_into() -> None:
    db = connected()
    early = db.query("SELECT ISTREAM(k) FROM S WHERE v > 5 AND v + 1 > 0")
    narrow = db.query("SELECT k, COUNT(*) FROM S [RANGE 10] WHERE v > 100 GROUP BY k")
    db.push("S", [(1, 6)], ts=1)
    db.advance(1)
    assert {"Stream", "Select"} <= shared(early, db.query("SELECT ISTREAM(k) FROM S WHERE v > 5 AND v + 1 > 0"))
    twin = db.query("SELECT k, COUNT(*) FROM S [RANGE 10] WHERE v > 100 GROUP BY k")
    assert "Aggregate" in shared(narrow, twin)
    db.push("S", [(1, 200)], ts=2)
    db.advance(2)
    assert narrow.snapshot() == twin.snapshot() == [(1, 1)]


def test_elements_of_an_open_instant_are_not_for_a_query_registered_after_them() -> None:
    db = connected()
    early = db.query("SELECT k, v FROM S [RANGE 10]")
    db.push("S", [(1, 1)], ts=5)
    late = db.query("SELECT k, v FROM S [RANGE 10]")
    assert "Stream" not in shared(early, late)
    db.push("S", [(2, 2)], ts=5)
    db.advance(5)
    assert [row for _, _, row in answers(early)] == [(1, 1), (2, 2)]
    assert [row for _, _, row in answers(late)] == [(2, 2)]


def test_a_late_query_reads_the_rows_a_relation_has() -> None:
    db = connected()
    text = "SELECT R.name, S.v FROM R, S [RANGE 10] WHERE R.k = S.k"
    early, twin = db.query(text), db.query(text)
    assert "Relation" in shared(early, twin)
    db.push("R", [(1, "a")], ts=1, sign=+1)
    db.push("S", [(1, 1)], ts=2)
    db.advance(2)
    late = db.query(text)
    assert "Relation" not in shared(early, late)
    db.push("S", [(1, 3)], ts=3)
    db.advance(3)
    assert [row for _, _, row in answers(late)] == [("a", 3)]
    assert sorted(early.snapshot()) == sorted(twin.snapshot()) == [("a", 1), ("a", 3)]


def test_with_history_a_query_starts_from_the_present_content() -> None:
    db = connected()
    early = db.query("SELECT k, v FROM S [RANGE 10]")
    db.push("S", [(1, 1)], ts=1)
    db.advance(1)
    late = db.execute("CREATE QUERY late AS SELECT k, v FROM S [RANGE 10] WITH HISTORY")
    assert late.snapshot() == early.snapshot() == [(1, 1)]
    assert "Began after instant 1, with what the stores still held" in late.explain()
    db.advance(11)
    assert late.snapshot() == early.snapshot() == []


def test_with_history_a_query_begins_with_the_same_rows_whether_queries_share_or_not() -> None:
    db = connected(sharing="off")
    early = [db.query(f"SELECT k, v FROM S [RANGE {size}]") for size in (3, 10, 5)]
    for ts in range(1, 9):
        db.push("S", [(1, ts)], ts=ts)
    db.advance(8)
    assert rows_held(db) == 0
    late = db.execute("CREATE QUERY late AS SELECT k, v FROM S [RANGE 10] WITH HISTORY")
    assert sorted(late.snapshot()) == sorted(early[1].snapshot()) == [(1, ts) for ts in range(1, 9)]
    db.advance(14)
    assert late.snapshot() == early[1].snapshot()
    assert rows_held(db) == 0


def test_a_self_join_reads_its_stream_and_equal_windows_once() -> None:
    db = connected()
    q = db.query("SELECT a.v, b.v FROM S [RANGE 3] a, S [RANGE 3] b WHERE a.k = b.k")
    assert [op.name for op in q.network.operators].count("Stream") == 1
    db.push("S", [(1, 1)], ts=1)
    db.push("S", [(1, 2)], ts=2)
    db.advance(2)
    assert sorted(q.snapshot()) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    db.advance(4)
    assert sorted(q.snapshot()) == [(2, 2)]


def test_rows_under_a_semijoin_on_an_expression_are_not_taken_for_its_result() -> None:
    db = connected()
    q = db.query("SELECT * FROM (SELECT DISTINCT k FROM S [RANGE 10]) d WHERE k + 1 IN (SELECT k FROM T [RANGE 10])")
    db.push("S", [(1, 0), (5, 0)], ts=1)
    db.push("T", [(2, 0)], ts=1)
    db.advance(1)
    assert q.snapshot() == [(1,)]


def test_a_plan_that_is_refused_midway_leaves_nothing_behind() -> None:
    db = connected()
    q = db.query("SELECT k, v FROM S [RANGE 10]")
    group = q.network.group
    assert group is not None
    readers, operators = len(db.stream_store("S")[0]._readers), len(group.operators)
    db.execute("EXPLAIN SELECT k, SUM(v) FROM S [RANGE 10] GROUP BY k")
    assert len(db.stream_store("S")[0]._readers) == readers
    assert len(group.operators) == operators
    assert sum(len(op.outputs) for op in group.operators) == sum(len(op.inputs) for op in group.operators)


def test_without_sharing_every_query_has_its_own_operators() -> None:
    db = connected(sharing="off")
    a, b = db.query(JOIN), db.query(JOIN)
    assert shared(a, b) == set()


def rows_held(db: minidsms.Connection) -> int:
    return len(db.stream_store("S")[0])


def test_sharing_is_switched_while_windows_are_full() -> None:
    db = connected()
    texts = [
        JOIN,
        "SELECT k, SUM(v), MAX(v) FROM S [RANGE 7] GROUP BY k",
        "SELECT DISTINCT v FROM S [ROWS 3]",
        "SELECT a.v, b.v FROM S [RANGE 5] a, S [RANGE 5] b WHERE a.k = b.k AND a.v <> b.v",
    ]
    queries = [db.query(text) for text in (*texts, *texts)]
    alone = [minidsms.connect() for _ in texts]
    singles = []
    for other, text in zip(alone, texts):
        other.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, w INTEGER)")
        singles.append(other.query(text))
    for ts in range(60):
        if ts % 7 == 3:
            db.execute(f"SET sharing = {'off' if ts % 2 else 'on'}")
        for each in (db, *alone):
            each.push("S", [(ts % 3, ts % 4), (1, ts % 5)], ts=ts)
            each.push("T", [(ts % 3, ts)], ts=ts)
    for each in (db, *alone):
        each.advance(100)
    for i, single in enumerate(singles):
        expected = sorted(answers(single))
        assert expected
        assert sorted(answers(queries[i])) == expected
        assert sorted(answers(queries[i + len(texts)])) == expected


def test_switching_off_gives_each_query_its_operators_and_rows_and_on_takes_them_back() -> None:
    db = connected()
    a, b = db.query("SELECT k, v FROM S [RANGE 100]"), db.query("SELECT k, v FROM S [RANGE 100]")
    for ts in range(50):
        db.push("S", [(1, ts)], ts=ts)
    db.advance(49)
    assert rows_held(db) == 50
    db.execute("SET sharing = off")
    db.advance(49)
    assert shared(a, b) == set()
    assert rows_held(db) == 0
    db.push("S", [(2, 2)], ts=60)
    db.advance(60)
    db.execute("SET sharing = on")
    assert shared(a, b) == {op.name for op in a.network.operators} - {"Output"}
    assert rows_held(db) == 51
    assert len(a.snapshot()) == len(b.snapshot()) == 51
    db.advance(110)
    assert sorted(a.snapshot()) == sorted(b.snapshot()) == sorted([(1, ts) for ts in range(11, 50)] + [(2, 2)])
    assert [c.ts for c in a.fetch()] == [c.ts for c in b.fetch()]


class Total:
    def __init__(self) -> None:
        self.total = 0

    def add(self, value: int) -> None:
        self.total += value

    def remove(self, value: int) -> None:
        self.total -= value

    def result(self) -> int:
        return self.total


class Attached(Total):
    """A state that has no copy."""

    def __deepcopy__(self, memo: object) -> Attached:
        raise TypeError("attached to something outside")


@pytest.mark.parametrize("cls", [Total, Attached])
def test_user_aggregates_are_divided_where_they_can_be_copied(cls: type) -> None:
    db = connected()
    db.create_aggregate("TOTAL", cls, ["INTEGER"], "INTEGER")
    a, b = [db.query("SELECT k, TOTAL(v) FROM S [RANGE 100] GROUP BY k") for _ in range(2)]
    assert "Aggregate" in shared(a, b)
    db.push("S", [(1, 1), (1, 2)], ts=1)
    db.advance(1)
    db.execute("SET sharing = off")
    assert ("Aggregate" in shared(a, b)) is (cls is Attached)
    db.push("S", [(1, 3)], ts=2)
    db.advance(2)
    db.execute("SET sharing = on")
    db.push("S", [(1, 4)], ts=3)
    db.advance(3)
    assert a.snapshot() == b.snapshot() == [(1, 10)]
    if cls is Attached:
        with pytest.raises(minidsms.Error, match="cannot be parted"):
            a.pause()
        assert a.state == "running"


def test_a_query_that_is_paused_leaves_the_others_running() -> None:
    db = connected()
    a, b = [db.query("SELECT k, SUM(v) FROM S [RANGE 100] GROUP BY k") for _ in range(2)]
    db.push("S", [(1, 1)], ts=1)
    db.advance(1)
    a.pause()
    assert shared(a, b) == set()
    db.push("S", [(1, 2)], ts=2)
    db.advance(2)
    assert b.snapshot() == [(1, 3)]
    assert a.snapshot() == [(1, 1)]
    c = db.query("SELECT k, SUM(v) FROM S [RANGE 100] GROUP BY k")
    a.resume()
    db.push("S", [(1, 4)], ts=3)
    db.advance(3)
    assert a.snapshot() == b.snapshot() == [(1, 7)]
    assert c.snapshot() == [(1, 4)]


@pytest.mark.parametrize(
    "aggregate",
    [
        "MEDIAN(v)", "MODE(v)", "ARG_MAX(v, v)", "STRING_AGG(CAST(v AS TEXT), ',')", "REGR_SXX(v, v)", "BIT_OR(v)",
        "VAR_POP(v)",
    ],
)  # fmt: skip
def test_a_query_that_is_paused_takes_its_values_with_it(aggregate: str) -> None:
    db = connected()
    a, b = [db.query(f"SELECT k, {aggregate} FROM S [RANGE 100] GROUP BY k") for _ in range(2)]
    db.push("S", [(1, 1), (1, 1)], ts=1)
    db.advance(1)
    assert "Aggregate" in shared(a, b)
    a.pause()
    assert shared(a, b) == set()
    before = a.snapshot()
    db.push("S", [(1, 2), (1, 2), (1, 2)], ts=2)
    db.advance(2)
    assert b.snapshot() != before == a.snapshot()
    a.resume()
    assert a.snapshot() == b.snapshot()


def test_a_query_with_settings_of_its_own_has_operators_of_its_own() -> None:
    db = connected()
    a, b = [db.query("SELECT k, SUM(v) FROM S [RANGE 100] GROUP BY k") for _ in range(2)]
    db.push("S", [(1, 1)], ts=1)
    db.execute("ALTER QUERY q1 SET batch_size = 1")
    assert shared(a, b) == set()
    db.push("S", [(1, 2), (1, 3)], ts=2)
    db.advance(2)
    assert a.snapshot() == b.snapshot() == [(1, 6)]


def bytes_held(db: minidsms.Connection) -> int:
    """Of the stream's store and the operators."""
    return db.stream_store("S")[0].nbytes + sum(group.nbytes for group in db.groups.all)


def push_ten_thousand(db: minidsms.Connection) -> None:
    for first in range(0, 10_000, 500):
        instants = list(range(first, first + 500))
        db.push("S", [(ts, ts) for ts in instants], ts=instants)
    db.advance(9_999)


def test_a_hundred_windows_of_different_sizes_hold_the_rows_of_the_largest() -> None:
    db = connected()
    largest = db.query("SELECT * FROM S [RANGE 10000]")
    push_ten_thousand(db)
    alone = bytes_held(db)
    largest.close()
    db = connected()
    for size in range(100, 10_001, 100):
        db.query(f"SELECT * FROM S [RANGE {size}]")
    push_ten_thousand(db)
    assert rows_held(db) == 10_000
    assert bytes_held(db) == alone
    db.execute("SET sharing = off")
    db.advance(9_999)
    assert bytes_held(db) > 20 * alone
    db.execute("SET sharing = on")
    db.advance(9_999)
    assert rows_held(db) == 10_000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM S [RANGE 100]",
        "SELECT a.v, b.v FROM S [RANGE 10] AS a, S [RANGE 10] AS b WHERE a.v = b.v",
        "SELECT a.v, b.w FROM S [RANGE 10] AS a, T [RANGE 10] AS b WHERE a.v = b.w",
        "SELECT v FROM S [PARTITION BY k ROWS 1] WHERE v < 0",
    ],
)
def test_rows_that_a_query_keeps_for_itself_go_with_its_windows(query: str) -> None:
    db = connected(sharing="off")
    q = db.query(query)
    for start in range(0, 400_000, 20_000):
        ts = range(start, start + 20_000)
        db.push("S", [(t % 7, t) for t in ts], ts=list(ts))
        if " T " in query:
            db.push("T", [(t % 7, t) for t in ts], ts=list(ts))
        db.advance(start + 19_999)
        q.fetch()
    kept = [s.own_store for op in q.network.operators for s in op.synopses() if type(s).__name__ == "OwnRows"]
    assert kept and all(len(store) < 50_000 for store in kept)
