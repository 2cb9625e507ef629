"""What declared keys do: a violation is reported with its rows, and where a join is not reduced EXPLAIN says why."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import minidsms
from minidsms.connection import Connection

JOIN = "SELECT ISTREAM(S.a, v, w) FROM S [RANGE 100], T [RANGE 100] WHERE S.a = T.a"


@pytest.fixture
def db() -> Iterator[Connection]:
    with minidsms.connect(state_reduction="k-mon") as connection:
        connection.execute("CREATE STREAM S (a INTEGER, v INTEGER)")
        connection.execute("CREATE STREAM T (a INTEGER, w TEXT) KEY (a)")
        connection.execute("CREATE RELATION R (a INTEGER) KEY (a)")
        yield connection


def test_rows_that_violate_a_key_are_named(db: Connection) -> None:
    q = db.query(JOIN)
    db.push("T", (1, "x"), ts=1)
    db.push("S", (1, 10), ts=2)
    db.push("T", (1, "y"), ts=3)
    db.advance(10)
    assert [change.row for change in q.fetch()] == [(1, 10, "x")]
    with pytest.raises(minidsms.QueryError, match=r"KEY of T is violated.*\(a 1; w 'x'\) at 1 and \(a 1; w 'y'\) at 3"):
        q.fetch()


def test_a_row_that_a_constraint_let_go_still_counts_against_its_key(db: Connection) -> None:
    q = db.query(JOIN)
    for n in range(3000):
        db.push("T", (n, "x"), ts=n // 50)
        db.push("S", (n, 1), ts=n // 50)
    assert "spilled" in q.explain(analyze=True)
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    assert join.describe().figures["spilled"] > 1000
    db.push("T", (2000, "again"), ts=60)
    db.advance(61)
    assert len(q.fetch()) == 3000
    with pytest.raises(minidsms.QueryError, match="KEY of T is violated"):
        q.fetch()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT S.a FROM S [RANGE 10], S [RANGE 5] AS U WHERE S.a = U.a", "no KEY is declared"),
        ("SELECT S.a FROM S [RANGE 10 SLIDE 5], T [RANGE 5] WHERE S.a = T.a", "a window slides"),
        ("SELECT S.a FROM S [PARTITION BY v ROWS 1], T [RANGE 5] WHERE S.a = T.a", "PARTITION BY"),
        ("SELECT S.a FROM S [RANGE 10], R WHERE S.a = R.a", "R is a relation"),
        ("SELECT S.a FROM S [RANGE 10], T [RANGE 5] WHERE S.a < T.a", "no equality connects"),
        ("SELECT S.a FROM S, T, T AS U WHERE S.a = T.a AND T.w = U.w AND S.v = U.a", "the joins form a cycle"),
    ],
)
def test_explain_says_why_a_join_is_not_reduced(db: Connection, query: str, reason: str) -> None:
    plan = db.query(query).explain()
    assert "KMonJoin" not in plan
    assert "Not reduced: " in plan
    assert reason in plan


def test_a_composite_key_needs_all_its_columns(db: Connection) -> None:
    db.execute("CREATE STREAM K (a INTEGER, b INTEGER, x INTEGER) KEY (a, b)")
    assert "S -> K" in db.query("SELECT ISTREAM(x) FROM S [RANGE 9], K WHERE S.a = K.a AND S.v = K.b").explain()
    assert "no KEY" in db.query("SELECT ISTREAM(x) FROM S [RANGE 9], K WHERE S.a = K.a").explain()


def test_queries_that_part_go_on_alike(db: Connection) -> None:
    q, r = db.query(JOIN), db.query(JOIN)
    for n in range(200):
        db.push("T", (n, "x"), ts=n)
        db.push("S", (n, 1), ts=n)
        if n == 100:
            db.execute("SET sharing = off")
    db.advance(300)
    assert q.fetch() == r.fetch()
    assert q.network is not r.network


def test_what_has_gone_leaves_no_files(db: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    q = db.query(JOIN)
    for n in range(5000):
        db.push("T", (n, "x"), ts=n // 100)
        db.push("S", (n, 1), ts=n // 100)
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    spill = join.reduction.spill  # type: ignore[attr-defined]
    assert spill.file_nbytes > 0
    assert not list(tmp_path.iterdir()), "files without a name go with the process, however it ends"
    q.close()
    assert spill.file_nbytes == 0


def test_constraints_are_not_used_while_plans_may_not_change(db: Connection) -> None:
    q = db.query(JOIN)
    (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
    db.execute("SET adaptive = off")
    for n in range(3000):
        db.push("T", (n, "x"), ts=n // 50)
        db.push("S", (n, 1), ts=n // 50)
    assert join.describe().figures["spilled"] == 0
    db.execute("SET adaptive = on")
    for n in range(3000, 4000):
        db.push("T", (n, "x"), ts=n // 50)
        db.push("S", (n, 1), ts=n // 50)
    assert join.describe().figures["spilled"] > 1000
