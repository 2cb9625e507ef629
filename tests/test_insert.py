"""Rows written out: INSERT INTO, INSERT OR REPLACE, SELECT without FROM, VALUES."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import CqlError, QueryError


@pytest.fixture
def db() -> Iterator[Connection]:
    with minidsms.connect() as db:
        db.execute("""
            CREATE STREAM S (k TEXT, v INTEGER); CREATE STREAM T (at TIMESTAMP, x FLOAT) TIMESTAMP BY at;
            CREATE RELATION R (id INTEGER, n TEXT) KEY (id); CREATE RELATION Q (id INTEGER)
        """)
        yield db


def test_rows_are_pushed_with_their_instants_and_without_a_column_it_is_null(db: Connection) -> None:
    q = db.query("SELECT k, v FROM S")
    assert db.execute("INSERT INTO S (ts, k, v) VALUES (1, 'a', 1 + 1), (2, LOWER('B'), NULL)") == 2
    db.execute("INSERT INTO S (v, ts) VALUES (-3, 4)")
    assert [(ts, row) for ts, _, row in q.fetch()] == [(1, ("a", 2)), (2, ("b", None)), (4, (None, -3))]


def test_a_decimal_without_digits_behind_the_point_counts(db: Connection) -> None:
    q = db.query("SELECT v FROM S")
    for value in (Decimal(7), Decimal("1E+2"), Decimal(2**62), Decimal("-0")):
        db.execute("INSERT INTO S (ts, v) VALUES (?, ?)", [Decimal(1), value])
    assert [(ts, row) for ts, _, row in q.fetch()] == [(1, (7,)), (1, (100,)), (1, (2**62,)), (1, (0,))]
    for refused in (Decimal("7.0"), Decimal(2**63)):
        with pytest.raises(CqlError, match="INTEGER"):
            db.execute("INSERT INTO S (ts, v) VALUES (1, ?)", [refused])


def test_times_are_read_from_texts(db: Connection) -> None:
    q = db.query("SELECT x FROM T")
    db.execute("INSERT INTO T VALUES ('1970-01-01 00:00:01', 1), (TIMESTAMP '1970-01-01 00:00:02', 2.5)")
    assert [(ts, row) for ts, _, row in q.fetch()] == [(1000, (1.0,)), (2000, (2.5,))]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT INTO X VALUES (1)", 'no stream or relation "X"'),
        ("INSERT INTO Q VALUES (1, 2)", "a row has 2 values, not 1"),
        ("INSERT INTO R (id, id) VALUES (1, 2)", '"id" stands twice'),
        ("INSERT INTO R (id, m) VALUES (1, 2)", 'R has no "m"'),
        ("INSERT INTO R VALUES ('x', 'y')", "TEXT cannot stand where INTEGER is wanted"),
        ("INSERT INTO Q VALUES (CAST('x' AS INTEGER))", "cannot be read as INTEGER"),
        ("INSERT INTO Q VALUES ((SELECT v FROM S))", "only constants"),
        ("INSERT OR REPLACE INTO Q VALUES (1)", "no KEY"),
        ("INSERT OR REPLACE INTO S VALUES ('a', 1)", "is a stream"),
        ("INSERT INTO S SELECT k, v FROM S", "VALUES (..)"),
        ("INSERT INTO q1 VALUES (1)", '"q1" is a query: its rows come from what it reads'),
        ("SELECT v", "a column needs FROM"),
        ("VALUES (1), (2, 3)", "a row has 2 values, not 1"),
    ],
)
def test_what_cannot_be_inserted_is_told_and_changes_nothing(db: Connection, statement: str, reason: str) -> None:
    relations = db.query("SELECT id FROM R"), db.query("SELECT id FROM Q")
    with pytest.raises(minidsms.Error) as caught:
        db.execute(statement)
    db.advance(10**15)
    assert reason in str(caught.value)
    assert all(query.snapshot() == [] for query in relations)


def test_constants_are_a_table_at_once(db: Connection) -> None:
    table = db.execute("SELECT 1 + 2, UPPER('a') AS u, TIMESTAMP '2026-01-01 10:00:00' AS t")
    assert table.columns == ("1 + 2", "u", "t") and list(table) == [(3, "A", "2026-01-01 10:00:00")]
    table = db.execute("VALUES (1, 'a'), (2, NULL)")
    assert table.columns == ("column1", "column2") and list(table) == [(1, "a"), (2, None)]


def test_an_interval_is_a_number_of_ticks_at_once_as_in_every_answer(db: Connection) -> None:
    assert list(db.execute("SELECT INTERVAL '1' DAY AS day, [INTERVAL '2' SECOND] AS l")) == [(86_400_000, [2_000])]


ORDERS = [
    "k",
    "k DESC, name",
    "name NULLS FIRST, 1",
    "k % 2, -k NULLS FIRST",
    "name DESC NULLS FIRST, k DESC",
    "LENGTH(name)",
]


@pytest.mark.parametrize("order", ORDERS)
def test_order_by_sorts_the_rows_of_an_answer_given_at_once(db: Connection, order: str) -> None:
    rows = [(k * 7 % 11 if k % 4 else None, None if k % 5 == 1 else "abcba"[k % 5] * (k % 3 + 1)) for k in range(40)]
    values = ", ".join(f"({'NULL' if k is None else k}, {'NULL' if n is None else repr(n)})" for k, n in rows)
    query = f"SELECT name, k FROM (VALUES {values}) AS t (k, name) ORDER BY {order}"
    # Rows equal in all keys are sorted by value, column by column, NULL first (R6).
    wanted = duckdb.sql(f"{query}, name NULLS FIRST, k NULLS FIRST").fetchall()
    assert list(db.execute(query)) == wanted
    assert list(db.execute(f"{query} LIMIT 7 OFFSET 3")) == wanted[3:10]


def test_order_by_sorts_what_with_values_and_select_without_from_give(db: Connection) -> None:
    assert list(db.execute("VALUES (1), (3), (2) ORDER BY 1 DESC")) == [(3,), (2,), (1,)]
    assert list(db.execute("SELECT UNNEST([3, 1, 2]) AS v ORDER BY v LIMIT 2")) == [(1,), (2,)]
    assert list(db.execute("WITH t (x) AS (VALUES (1), (2)) SELECT -x AS y FROM t ORDER BY x DESC")) == [(-2,), (-1,)]
    assert list(db.execute("SELECT k, COUNT(*) FROM (VALUES (1), (2), (2)) t (k) GROUP BY k ORDER BY 2 DESC")) == [
        (2, 2), (1, 1)
    ]  # fmt: skip
    series = "FROM GENERATE_SERIES(1, 4) AS i"
    assert list(db.execute(f"SELECT ISTREAM(i) {series} ORDER BY i % 2, i")) == [(2,), (4,), (1,), (3,)]
    assert list(db.execute(f"SELECT DISTINCT ON (i % 2) i {series} ORDER BY i % 2, i DESC")) == [(4,), (3,)]
    assert list(db.execute(f"SELECT DISTINCT ON (m) i % 2 AS m, i {series} ORDER BY 1 DESC, i")) == [(1, 1), (0, 2)]
    for text in (
        "SELECT v FROM S ORDER BY v",
        "VALUES (1) UNION (VALUES (2) ORDER BY 1)",
        "CREATE VIEW W AS VALUES (1) ORDER BY 1",
    ):
        with pytest.raises(CqlError, match=r"a relation has no order[^$]*LIMIT n keeps its first n rows"):
            db.execute(text)


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("VALUES (1), (3), (2) ORDER BY 1 DESC", "ORDER BY 1 DESC"),
        ("SELECT DISTINCT ON (m) i % 2 AS m, i FROM RANGE(5) AS r (i) ORDER BY m, i DESC", "ORDER BY m, i DESC"),
    ],
)
def test_explain_shows_order_by_without_limit_where_it_may_stand(db: Connection, query: str, written: str) -> None:
    plan = [line.strip() for (line,) in db.execute(f"EXPLAIN {query}")]
    text = " ".join(plan[1 : plan.index("Logical plan")])
    assert text.endswith(written)
    assert any(line.startswith("Sort by ") for line in plan)
    assert list(db.execute(text)) == list(db.execute(query))
    with pytest.raises(CqlError, match="a relation has no order"):
        db.execute("EXPLAIN SELECT v FROM S ORDER BY v")


def test_a_query_over_rows_written_out_is_answered_at_once(db: Connection) -> None:
    db.execute("CREATE VIEW W (k, name) AS VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    table = db.execute("SELECT name, k FROM W WHERE k <> 2 ORDER BY k DESC LIMIT 1")
    assert table.columns == ("name", "k") and list(table) == [(None, 3)]
    assert list(db.execute("SELECT COUNT(*), MAX(W.k) FROM W, (VALUES (1), (2)) AS u(k)")) == [(6, 3)]
    assert list(db.execute("SELECT k FROM (VALUES (5), (3)) AS v(k) QUALIFY ROW_NUMBER() OVER (ORDER BY k) = 1")) == [
        (3,)
    ]
    elements = db.execute("SELECT e FROM (SELECT 1) AS one, UNNEST(GENERATE_SERIES(1, 3)) AS t(e) WHERE e <> 2")
    assert list(elements) == [(1,), (3,)] and not db.queries
    with pytest.raises(QueryError, match="at most one is allowed"):
        db.execute("SELECT (SELECT k FROM W) FROM (SELECT 1)")
    for text in ("SELECT * FROM W", "SELECT k FROM W ORDER BY k", "VALUES (2), (1) ORDER BY 1"):
        with pytest.raises(CqlError, match=r"never changes(.|\n)*execute\(\) gives the rows at once"):
            db.query(text)


def test_a_replaced_row_leaves_as_its_successor_enters_whatever_changed_the_relation_before(db: Connection) -> None:
    q = db.query("SELECT id, n FROM R")
    rng, present = random.Random(1), dict[int | None, str | None]()
    for ts in range(1, 60):
        key = rng.choice([None, 1, 2, 3])
        if rng.random() < 0.3:
            if key in present:
                db.push("R", [(key, present.pop(key))], ts=ts, sign=-1)
            else:
                present[key] = "pushed"
                db.push("R", [(key, "pushed")], ts=ts)
        else:
            rows = [(rng.choice([None, 1, 2, 3]), rng.choice(["a", "b", None])) for _ in range(3)]
            present.update(rows)
            assert db.upsert("R", rows, ts=ts) == 3
        db.advance(ts)
        assert sorted(q.snapshot(), key=str) == sorted(present.items(), key=str)


def test_several_rows_of_one_key_leave_together(db: Connection) -> None:
    db.push("R", [(1, "a"), (1, "b")], ts=1)
    q = db.query("SELECT id, n FROM R")
    db.upsert("R", [(1, "c")], ts=2)
    db.advance(2)
    assert q.snapshot() == [(1, "c")]


def test_a_folder_keeps_what_was_inserted_and_replaced_once(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "kept") as db:
        db.execute("CREATE RELATION R (id INTEGER, n TEXT) KEY (id); CREATE STREAM S (v INTEGER)")
        db.query("SELECT id, n FROM R", "r")
        db.execute(
            "INSERT INTO R (ts, id, n) VALUES (1, 1, 'a'); INSERT OR REPLACE INTO R (ts, id, n) VALUES (2, 1, 'b')"
        )
        assert list(db.execute("SELECT n + 1 FROM (VALUES (1)) AS t(n)")) == [(2,)]
        db.execute("CREATE VIEW Names (id, n) AS VALUES (2, 'two')")
        db.query("SELECT R.n, Names.n FROM R, Names WHERE R.id = Names.id", "named")
    with minidsms.connect(tmp_path / "kept") as db:
        db.upsert("R", [(2, "c")], ts=3)
        db.advance(3)
        assert sorted(db.queries["r"].snapshot()) == [(1, "b"), (2, "c")]
        assert db.queries["named"].snapshot() == [("c", "two")]


def test_pairs_are_counted_once_and_none_with_a_null(db: Connection) -> None:
    q = db.query("SELECT COUNT(DISTINCT k, v) AS n FROM S")
    db.push("S", [("a", 1), ("a", 1), ("a", 2), ("b", 1), (None, 1), ("1", None)], ts=1)
    db.advance(1)
    assert q.snapshot() == [(3,)]
