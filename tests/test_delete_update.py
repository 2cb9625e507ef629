"""DELETE and UPDATE of relations, beside those of SQLite."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import CqlError, LateElementError


@pytest.fixture
def db() -> Iterator[Connection]:
    with minidsms.connect() as db:
        db.execute("""
            CREATE STREAM S (k TEXT, v INTEGER); CREATE RELATION Q (id INTEGER, at TIMESTAMP);
            CREATE RELATION R (id INTEGER, n TEXT, p DECIMAL(6, 2)); CREATE VIEW V AS SELECT id FROM R
        """)
        yield db


CONDITIONS = (
    "a = 1", "a <> b", "a IS NULL", "b > 1 OR t = 'x'", "t LIKE '%y%'", "NOT (a = b)", "a IN (1, 2)",
    "a IN (SELECT a FROM Other)", "NOT EXISTS (SELECT * FROM Other o WHERE o.a = b)", "b >= (SELECT MAX(b) FROM Rel)",
    "a + b > (SELECT COUNT(*) FROM Other)", "a NOT IN (SELECT b FROM Other WHERE b > 1)", "a BETWEEN 0 AND b",
)  # fmt: skip
ASSIGNMENTS = (
    "a = b", "a = a + 1", "a = NULL", "a = b, b = a", "t = t || 'y'", "t = 'x', a = 3", "b = (SELECT MAX(a) FROM Rel)",
    "b = CASE WHEN a = 1 THEN 5 ELSE b END", "a = (SELECT COUNT(*) FROM Other o WHERE o.a = Rel.b)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_statements_do_what_they_do_in_sqlite(seed: int) -> None:
    rng = random.Random(seed)
    with minidsms.connect() as db, sqlite3.connect(":memory:") as other:
        for name in ("Rel", "Other"):
            db.execute(f"CREATE RELATION {name} (a INTEGER, b INTEGER, t TEXT)")
            other.execute(f"CREATE TABLE {name} (a INTEGER, b INTEGER, t TEXT)")
        q = db.query("SELECT a, b, t FROM Rel")
        shown: Counter[object] = Counter()
        for instant in range(30):
            kind = rng.random()
            name = rng.choice(("Rel", "Rel", "Other"))
            if kind < 0.4:
                rows = [
                    (rng.choice((None, 0, 1, 2, 3)), rng.randrange(4), rng.choice((None, "x", "yx")))
                    for _ in range(rng.randrange(1, 5))
                ]
                db.push(name, rows, ts=instant)
                other.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
            else:
                where = rng.choice(("", *(f" WHERE {c}" for c in rng.sample(CONDITIONS, 4))))
                set_ = rng.choice(ASSIGNMENTS)
                text = f"DELETE FROM Rel{where}" if kind < 0.6 and where else f"UPDATE Rel SET {set_}{where}"
                db.advance(instant - 1)
                assert db.execute(text) == other.execute(text).rowcount, text
            db.advance(instant)
            for _, sign, row in q.fetch():
                shown[row] += sign
            assert +shown == Counter(other.execute("SELECT a, b, t FROM Rel").fetchall()) == shown - Counter()


def test_changes_are_made_at_the_first_open_instant_and_deletions_come_first(db: Connection) -> None:
    q = db.query("SELECT id, n FROM R")
    db.push("R", [(1, "a", None), (2, "b", None)], ts=3)
    db.advance(9)
    assert db.execute("UPDATE R AS r SET n = UPPER(r.n), id = r.id WHERE r.id < 2") == 1
    assert db.execute("DELETE FROM R WHERE id = 2") == 1
    assert db.execute("DELETE FROM R WHERE id = 2") == 0
    db.advance(10)
    changes = [(ts, sign, row) for ts, sign, row in q.fetch()]
    assert changes[:2] == [(3, 1, (1, "a")), (3, 1, (2, "b"))]
    assert changes[2:] == [(10, -1, (1, "a")), (10, -1, (2, "b")), (10, 1, (1, "A"))]
    with pytest.raises(LateElementError):
        db.push("R", [(5, "e", None)], ts=9)


def present(db: Connection, columns: str) -> list[object]:
    """What a query that begins now shows of R."""
    q = db.query(f"SELECT {columns} FROM R")
    db.advance(1000 + len(db.queries))
    rows = [row if len(row) > 1 else row[0] for _, _, row in q.fetch()]
    q.close()
    return rows


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1.005", "1.01"), ("p * 1.255", "12.55"), ("7", "7.00"), ("NULL", None), ("1e0 / 3", "0.33")],
)
def test_numbers_are_rounded_to_the_places_of_a_decimal(db: Connection, value: str, expected: str | None) -> None:
    db.push("R", (1, "a", Decimal("10.00")))
    assert db.execute(f"UPDATE R SET p = {value}") == 1
    assert present(db, "p") == [None if expected is None else Decimal(expected)]


def test_a_decimal_without_digits_behind_the_point_counts(db: Connection) -> None:
    db.push("R", (1, "a", None))
    q = db.query("SELECT id FROM R")
    for ts, value in enumerate((Decimal(7), Decimal("1E+2"), Decimal(-(2**63)), Decimal("-0"))):
        assert db.execute("UPDATE R SET id = ?", [value]) == 1
        db.advance(ts)
        assert q.snapshot() == [(int(value),)]
    for refused in (Decimal("7.0"), Decimal(2**63)):
        with pytest.raises(CqlError, match="INTEGER"):
            db.execute("UPDATE R SET id = ?", [refused])


def test_texts_are_read_as_times_and_columns_may_be_called_as_keywords(db: Connection) -> None:
    q = db.query("SELECT at FROM Q")
    db.execute("INSERT INTO Q VALUES (1, 0); UPDATE Q SET at = '1970-01-01 00:00:01' WHERE id = 1")
    db.advance(5)
    assert [row for _, _, row in q.fetch()] == [(1000,)]
    db.execute("CREATE RELATION U (set INTEGER, update INTEGER, delete TEXT); INSERT INTO U VALUES (1, 2, 'a')")
    assert db.execute("UPDATE U u SET set = u.update, `delete` = delete || 'b' WHERE update = 2") == 1
    assert db.execute("DELETE FROM U AS delete WHERE delete.set = 2 AND delete.delete = 'ab'") == 1


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM X", 'no relation "X"'),
        ("UPDATE S SET v = 1", "S is a stream"),
        ("DELETE FROM V", "V is a view"),
        ("DELETE FROM R WHERE id IN (SELECT v FROM S [ROWS 3])", "S is a stream"),
        ("UPDATE R SET m = 1", 'there is no column "m"'),
        ("UPDATE R SET id = 1, ID = 2", '"ID" is given two values'),
        ("UPDATE R SET id = 'a'", "TEXT cannot stand where INTEGER is wanted"),
        ("UPDATE R SET id = 2.5", "FLOAT cannot stand where INTEGER is wanted"),
        ("UPDATE R SET id = MAX(id)", "write a subquery: id = "),
        ("DELETE FROM R WHERE n", "WHERE needs a condition"),
        ("DELETE FROM R WHERE MAX(id) = 1", "aggregate"),
        ("DELETE R WHERE id = 1", "expected FROM"),
        ("UPDATE R SET id = q.id FROM Q q WHERE q.id = R.id", "the values come from subqueries"),
        ("DELETE FROM R USING Q WHERE Q.id = R.id", "the other relation stands in the condition"),
        ("TRUNCATE R", "DELETE FROM R takes out all rows"),
        ("DELETE FROM R WHERE id = 1 RETURNING id", "a query tells every change"),
        ("UPDATE R SET id = 1 RETURNING id", "a query tells every change"),
        ("DELETE FROM R ORDER BY id LIMIT 1", "WHERE k IN (SELECT k FROM .. ORDER BY v LIMIT 3)"),
        ("UPDATE R SET (id, n) = (1, 'a')", "each column has its value"),
        ("EXPLAIN DELETE FROM R WHERE id = 1", "EXPLAIN shows the plan of a query"),
        ("DELETE", "DELETE FROM R WHERE k = 2"),
        ("UPDATE R", "UPDATE R SET a = 1 WHERE k = 2"),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(db: Connection, statement: str, reason: str) -> None:
    db.push("R", (1, "a", None))
    with pytest.raises(CqlError) as caught:
        db.execute(statement)
    assert reason in str(caught.value)
    assert present(db, "id") == [1]


def test_a_row_that_fails_leaves_all_as_they_were(db: Connection) -> None:
    db.push("R", [(1, "1", None), (2, "b", None)])
    for text in ("UPDATE R SET id = CAST(n AS INTEGER)", "DELETE FROM R WHERE CAST(n AS INTEGER) = 1"):
        with pytest.raises(CqlError, match="cannot be read as INTEGER"):
            db.execute(text)
    with pytest.raises(CqlError, match="DECIMAL"):
        db.execute("UPDATE R SET p = 1e9")
    assert sorted(present(db, "id, n")) == [(1, "1"), (2, "b")]


def test_a_callback_defers_the_change_until_it_has_returned(db: Connection) -> None:
    counts: list[int] = []
    db.query("SELECT k FROM S").on_change(lambda change: counts.append(db.execute("DELETE FROM R WHERE id = 1")))
    db.push("R", [(1, "a", None), (2, "b", None)], ts=0)
    db.push("S", ("a", 1), ts=0)
    db.advance(1)
    assert counts == [0] and present(db, "id") == [2]


def test_keyed_rows_are_replaced_behind_a_change(db: Connection) -> None:
    db.execute("CREATE RELATION K (id INTEGER, n TEXT) KEY (id); INSERT OR REPLACE INTO K VALUES (1, 'a'), (2, 'b')")
    db.execute("UPDATE K SET id = 3 WHERE id = 1; DELETE FROM K WHERE id = 2")
    q = db.query("SELECT id, n FROM K")
    db.execute("INSERT OR REPLACE INTO K VALUES (1, 'x'), (3, 'y'), (2, 'z')")
    db.advance(5)
    assert sorted(row for _, _, row in q.fetch()) == [(1, "x"), (2, "z"), (3, "y")]


def test_a_key_is_no_more_enforced_than_by_insert(db: Connection) -> None:
    queries = "SELECT id, n FROM {}", "SELECT RSTREAM(v, n) FROM S [NOW], {} AS r, Q WHERE v = r.id AND r.id = Q.id"
    db.execute("CREATE RELATION K (id INTEGER, n TEXT) KEY (id); CREATE RELATION P (id INTEGER, n TEXT)")
    keyed, plain = [[db.query(text.format(name)) for text in queries] for name in "KP"]
    db.push("Q", (7, 0), ts=0)
    for name in "KP":
        db.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (2, 'c'); UPDATE {name} SET id = 7 WHERE n < 'c'")
    db.push("S", ("a", 7), ts=1)
    db.advance(1)
    changes = [[Counter(q.fetch()) for q in of] for of in (keyed, plain)]
    assert changes[0] == changes[1] and len(changes[0][1]) == 2
    db.execute("INSERT OR REPLACE INTO K VALUES (7, 'd')")
    db.advance(5)
    assert sorted(keyed[0].snapshot()) == [(2, "c"), (7, "d")]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_folder_keeps_the_changes_and_not_the_statement(tmp_path: Path, checkpoint: bool) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE RELATION R (id INTEGER, n TEXT); CREATE RELATION Q (id INTEGER)")
        db.execute("CREATE QUERY q AS SELECT id, n FROM R")
        db.push("R", [(1, "a"), (2, "b"), (3, "c")], ts=1)
        db.push("Q", (2,), ts=1)
        db.advance(1)
        db.execute("UPDATE R SET n = 'm' WHERE id IN (SELECT id FROM Q); DELETE FROM R WHERE id = 1; DELETE FROM Q")
        if checkpoint:
            db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        db.advance(5)
        assert Counter((row, sign) for _, sign, row in db.queries["q"].fetch()) == Counter(
            [((1, "a"), 1), ((2, "b"), 1), ((3, "c"), 1), ((2, "b"), -1), ((2, "m"), 1), ((1, "a"), -1)]
        )
        assert db.execute("UPDATE R SET id = id + 1") == 2


def test_an_archive_gets_the_changes(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (id INTEGER) ARCHIVE '{tmp_path / 'a'}'; INSERT INTO R VALUES (1), (2)")
        db.execute("UPDATE R SET id = 9 WHERE id = 2")
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (id INTEGER) FROM '{tmp_path / 'a'}' FORMAT archive")
        q = db.query("SELECT id FROM R")
        db.run()
        assert Counter((row, sign) for _, sign, row in q.fetch()) == Counter([((1,), 1), ((9,), 1)])


def test_statements_stand_in_parameters_and_print_as_they_were_written(db: Connection) -> None:
    from minidsms.cql.parser import parse
    from minidsms.cql.printer import print_statement

    db.push("R", [(1, "a", None), (2, "it's", None)])
    assert db.execute("UPDATE R SET n = ? WHERE n = ?", ["x", "it's"]) == 1
    for text in (
        "DELETE FROM R",
        "DELETE FROM R AS x WHERE x.a = 1 AND b IN (SELECT b FROM Q)",
        "UPDATE `select` SET `from` = 1, b = (SELECT MAX(a) FROM R) WHERE b IS NULL OR NOT a",
    ):
        (tree,) = parse(text)
        assert parse(print_statement(tree)) == [tree]


def test_there_may_be_more_rows_than_a_queue_holds() -> None:
    with minidsms.connect(queue_size=1000, batch_size=100) as db:
        db.execute("CREATE RELATION R (a INTEGER); CREATE RELATION Q (a INTEGER)")
        for n in (1000, 2500):
            db.push("R", {"a": list(range(n))})
            db.push("Q", {"a": list(range(0, n, 5))})
            assert db.execute("UPDATE R SET a = a + 1 WHERE a IN (SELECT a FROM Q)") == n // 5
            assert db.execute("DELETE FROM R") == n
            assert db.execute("DELETE FROM Q WHERE a >= 0") == n // 5


def test_other_relations_are_read_as_they_are(db: Connection) -> None:
    db.push("R", [(1, "a", None), (2, "b", None), (3, "c", None)], ts=1)
    db.push("Q", [(1, 0), (2, 0)], ts=5)
    assert db.execute("DELETE FROM R WHERE id NOT IN (SELECT id FROM Q)") == 1
    db.push("Q", (2, 0), ts=9, sign=-1)
    assert db.execute("UPDATE R SET n = (SELECT COUNT(*) || 'x' FROM Q)") == 2
    assert sorted(present(db, "id, n")) == [(1, "1x"), (2, "1x")]


def test_a_function_may_not_use_the_connection_and_a_callback_reads_what_is_there(db: Connection) -> None:
    db.create_function("pushes", lambda v: db.push("R", (v, "p", None)), ["INTEGER"], "INTEGER")
    db.push("R", [(1, "a", None)], ts=0)
    with pytest.raises(CqlError, match="must not use the connection"):
        db.execute("DELETE FROM R WHERE pushes(id) = 1")

    def changes(change: object) -> None:
        db.execute("CREATE RELATION Later (id INTEGER)")
        db.execute("INSERT INTO Later VALUES (1); DELETE FROM R WHERE id IN (SELECT id FROM Later)")

    db.query("SELECT k FROM S").on_change(changes)
    db.push("S", ("a", 1), ts=0)
    db.advance(1)
    assert present(db, "id") == []


def test_a_folder_has_synced_the_changes_when_the_statement_returns(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db", durability="sync") as db:
        db.execute("CREATE RELATION R (id INTEGER); INSERT INTO R VALUES (1), (2)")
        for text in ("UPDATE R SET id = id + 1", "DELETE FROM R"):
            assert db.execute(text) == 2
            assert db.log is not None and db.log.is_synced
