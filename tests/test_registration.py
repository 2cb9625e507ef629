"""What a query sees that is registered while data flows (docs/semantics T7), and what dropping one leaves."""

from __future__ import annotations

import pytest

import minidsms
from minidsms import CqlError


@pytest.fixture
def db() -> minidsms.Connection:
    connection = minidsms.connect()
    connection.execute(
        "CREATE STREAM S (k INTEGER) SLACK 5; CREATE STREAM T (k INTEGER); CREATE RELATION R (k INTEGER, n TEXT)"
    )
    return connection


def rows(query: minidsms.Query) -> list[tuple[int, int, tuple[object, ...]]]:
    return [(c.ts, c.sign, c.row) for c in query.fetch()]


def test_elements_that_wait_for_slack_when_a_query_starts_are_not_for_it(db: minidsms.Connection) -> None:
    db.push("S", [(1,), (2,), (3,)], ts=[10, 12, 12])
    query = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(4,), (5,), (6,)], ts=[12, 11, 30])
    db.advance(40)
    assert rows(query) == [(11, 1, (5,)), (12, 1, (4,)), (30, 1, (6,))]


def test_a_window_of_a_late_query_begins_empty(db: minidsms.Connection) -> None:
    early = db.query("SELECT COUNT(*) FROM T [RANGE 10]")
    db.push("T", [(1,), (2,)], ts=[1, 2])
    late = db.query("SELECT COUNT(*) FROM T [RANGE 10]")
    db.push("T", (3,), ts=3)
    db.advance(3)
    assert early.snapshot() == [(3,)]
    assert late.snapshot() == [(1,)]


def test_a_late_query_sees_the_present_rows_of_a_relation_at_its_first_instant(db: minidsms.Connection) -> None:
    db.query("SELECT * FROM T [NOW], R")
    db.push("R", [(1, "a"), (2, "b")], ts=[0, 1])
    db.push("R", (1, "a"), ts=2, sign=-1)
    db.advance(7)
    late = db.query("SELECT n, T.k FROM T [RANGE 10], R")
    db.push("T", (9,), ts=8)
    db.push("R", (3, "c"), ts=9)
    db.advance(9)
    assert rows(late) == [(8, 1, ("b", 9)), (9, 1, ("c", 9))]


def test_a_present_row_and_a_change_of_the_same_instant_are_one_instant(db: minidsms.Connection) -> None:
    db.push("R", [(0, "d"), (1, "a")], ts=[5, 12])
    late = db.query("SELECT T.k FROM T LEFT JOIN R ON T.k <> R.k")
    db.push("T", (3,), ts=6)
    db.push("R", (0, "d"), ts=12, sign=-1)
    db.advance(20)
    assert rows(late) == [(6, 1, (3,))]


def test_a_change_at_a_closed_instant_is_refused_and_changes_nothing(db: minidsms.Connection) -> None:
    query = db.query("SELECT * FROM T [NOW], R")
    db.advance(5)
    with pytest.raises(minidsms.LateElementError):
        db.push("R", (1, "a"), ts=5)
    db.push("R", (1, "b"), ts=6)
    db.push("T", (1,), ts=6)
    db.advance(6)
    assert rows(query) == [(6, 1, (1, 1, "b"))]


def test_dropping_a_query_frees_what_only_it_needed(db: minidsms.Connection) -> None:
    small = db.query("SELECT * FROM T [ROWS 10]")
    large = db.query("SELECT * FROM T [ROWS 5000]")
    db.push("T", {"k": list(range(20_000))}, ts=list(range(20_000)))
    held = len(db.stream_input("T").store)
    assert 5_000 <= held < 6_000
    large.close()
    assert len(db.stream_input("T").store) < 100
    small.close()
    assert len(db.stream_input("T").store) == 0


def test_a_query_that_fails_keeps_the_answers_before_and_leaves_the_others_running(db: minidsms.Connection) -> None:
    failing = db.query("SELECT ISTREAM(k + 1) FROM T")
    sound = db.query("SELECT ISTREAM(k) FROM T")
    db.push("T", [(1,), (2**63 - 1,), (3,)], ts=[1, 2, 3])
    db.advance(3)
    assert rows(failing) == [(1, 1, (2,))]
    with pytest.raises(minidsms.QueryError, match=r"at instant 2: .*\+ 1"):
        failing.fetch()
    assert len(rows(sound)) == 3


def test_a_stream_that_is_read_cannot_be_dropped(db: minidsms.Connection) -> None:
    query = db.query("SELECT * FROM T [NOW]", name="reader")
    with pytest.raises(CqlError, match="read by query reader"):
        db.execute("DROP STREAM T")
    query.close()
    db.execute("DROP STREAM T")
    with pytest.raises(minidsms.Error, match="no stream or relation"):
        db.push("T", (1,), ts=1)


def test_callbacks_may_push_and_what_they_push_comes_in_turn(db: minidsms.Connection) -> None:
    seen: list[object] = []
    first = db.query("SELECT ISTREAM(k) FROM T")
    db.execute("CREATE STREAM U (k INTEGER)")
    second = db.query("SELECT ISTREAM(k) FROM U")
    first.on_change(lambda change: db.push("U", change.row, ts=change.ts))
    second.on_change(lambda change: seen.append(change.row))
    db.push("T", [(1,), (2,)], ts=[1, 2])
    db.advance(5)
    assert seen == [(1,), (2,)]


def test_a_late_query_with_history_begins_with_what_windows_still_hold(db: minidsms.Connection) -> None:
    early = db.query("SELECT COUNT(*) FROM T [RANGE 10]")
    db.push("T", [(1,), (2,), (3,)], ts=[1, 12, 14])
    db.advance(15)
    late = db.execute("CREATE QUERY late AS SELECT k FROM T [RANGE 10] WITH HISTORY")
    assert rows(late) == [(15, 1, (2,)), (15, 1, (3,))]
    db.push("T", (4,), ts=16)
    db.advance(22)
    assert rows(late) == [(16, 1, (4,)), (22, -1, (2,))]
    assert early.snapshot() == [(2,)]


def test_a_late_stream_with_history_says_nothing_of_closed_instants(db: minidsms.Connection) -> None:
    db.query("SELECT COUNT(*) FROM T [RANGE 10]")
    db.push("T", [(1,), (2,)], ts=[1, 5])
    db.advance(6)
    late = db.execute("CREATE QUERY late AS RSTREAM (SELECT COUNT(*) FROM T [RANGE 10]) WITH HISTORY")
    assert rows(late) == []
    db.push("T", (3,), ts=7)
    db.advance(11)
    assert rows(late) == [(7, 1, (3,)), (11, 1, (2,))]


def test_history_without_a_window_that_holds_anything_is_empty(db: minidsms.Connection) -> None:
    db.push("T", (1,), ts=1)
    late = db.execute("CREATE QUERY late AS SELECT k FROM T [RANGE 10] WITH HISTORY")
    db.advance(2)
    assert rows(late) == []
    assert db.warnings == [
        "WITH HISTORY finds nothing of T: no RANGE or ROWS window of another query holds elements of it; "
        "BACKFILL reads the past from an archive"
    ]
    db.push("T", (2,), ts=3)
    db.execute("CREATE QUERY later AS SELECT k FROM T [RANGE 10] WITH HISTORY")
    assert len(db.warnings) == 1  # `late` holds some


def test_a_failed_query_holds_no_rows_back() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER); CREATE STREAM T (v INTEGER); CREATE RELATION R (v INTEGER, n TEXT)")
    texts = [
        "SELECT SUM(v * 9223372036854775807) FROM S [RANGE 10]",
        "SELECT S.v * 9223372036854775807 FROM S [ROWS 5], T [RANGE 10] WHERE S.v = T.v",
        "SELECT n FROM S [PARTITION BY v ROWS 2], R WHERE S.v = R.v AND S.v * 9223372036854775807 > 5",
        "RSTREAM (SELECT CAST(n AS INTEGER) FROM R, S [NOW] WHERE S.v = R.v)",
    ]
    failing = [db.query(text) for text in texts]
    going_on = db.query("SELECT COUNT(*) FROM S [RANGE 10]")
    db.push("R", [(i, f"n{i}") for i in range(10)], ts=0)
    for i in range(1, 200):
        values = {"v": [j % 10 for j in range(1000)]}
        db.push("S", values, ts=i)
        db.push("T", values, ts=i)
        db.push("R", (i, f"m{i}"), ts=i + 1)
        going_on.fetch()
    assert all(q.failure is not None for q in failing)
    assert db.nbytes < 4_000_000
    assert going_on.snapshot() == [(10_000,)]
    for q in failing:
        assert q.stats()["failure"] == q.failure
        q.explain(analyze=True)
        if q.kind == "relation":
            q.fetch() if q.stats()["waiting"] else None
            with pytest.raises(minidsms.QueryError):
                q.snapshot()
        q.close()


def test_queries_are_found_by_their_name_in_any_case(db: minidsms.Connection) -> None:
    query = db.query("SELECT k FROM S [NOW]", "Latest")
    assert db.queries["Latest"] is db.queries["latest"] is db.queries.get("LATEST") is query
    assert "Latest" in db.queries and "other" not in db.queries and db.queries.get("Other") is None
    with pytest.raises(KeyError, match="other"):
        db.queries["Other"]
    query.close()
    assert not db.queries
