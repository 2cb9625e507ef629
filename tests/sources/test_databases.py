"""Tables of SQLite and DuckDB databases as relations and streams."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import minidsms

duckdb = pytest.importorskip("duckdb")

ROWS = [(1, "ann", 1.5, 1), (2, None, None, 0), (3, "x'y", 2.0, None)]
TABLE = "CREATE TABLE customers (id INTEGER, name VARCHAR, spent DOUBLE, active BOOLEAN)"


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"shop.{request.param}"
    opened: Any
    if request.param == "sqlite":
        opened = sqlite3.connect(path)
    else:
        opened = duckdb.connect(str(path))
    opened.execute(TABLE)
    opened.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", ROWS)
    opened.execute('CREATE TABLE "odd ""name" ("at" VARCHAR, v INTEGER)')
    opened.executemany(
        'INSERT INTO "odd ""name" VALUES (?, ?)', [("2026-01-01 10:00:00", 1), ("2026-01-01 10:00:01", 2)]
    )
    opened.commit()
    opened.close()
    return path


def test_a_table_is_a_relation(database: Path) -> None:
    with minidsms.connect() as db:
        columns = "active BOOLEAN, NAME TEXT, id INTEGER, spent FLOAT"
        db.execute(f"CREATE RELATION C ({columns}) FROM '{database}' WITH (table = 'Customers')")
        q = db.query("SELECT id, name, spent, active FROM C")
        db.run()
        db.advance(0)
        assert sorted(q.snapshot()) == [(1, "ann", 1.5, True), (2, None, None, False), (3, "x'y", 2.0, None)]


def test_a_table_with_instants_is_a_stream_whatever_it_is_called(database: Path) -> None:
    with minidsms.connect() as db:
        source = f"""FROM '{database}' WITH (table = 'odd "name')"""
        db.execute(f"CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at {source}")
        q = db.query("SELECT v FROM S")
        db.run()
        assert [(ts - 1767261600000, row) for ts, _, row in q.fetch()] == [(0, (1,)), (1000, (2,))]


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ("id INTEGER", "", "not said which table"),
        ("id INTEGER", "WITH (table = 'x.csv')", "no table 'x.csv'"),
        ("age INTEGER", "WITH (table = 'customers')", 'no column "age"'),
        ("name INTEGER", "WITH (table = 'customers')", "column 'name'"),
    ],
)
def test_what_does_not_fit_is_told(database: Path, columns: str, options: str, reason: str) -> None:
    (database.parent / "x.csv").write_text("id\n1\n")
    with minidsms.connect() as db, pytest.raises(minidsms.Error) as caught:
        db.execute(f"CREATE RELATION C ({columns}) FROM '{database}' {options}")
        db.query("SELECT * FROM C")
        db.run()
    assert reason in str(caught.value)


@pytest.mark.parametrize("name", ["none.sqlite", "bad.sqlite", "bad.duckdb"])
def test_what_is_no_database_is_told(tmp_path: Path, name: str) -> None:
    if name.startswith("bad"):
        (tmp_path / name).write_text("no database " * 100)
    with minidsms.connect() as db, pytest.raises(minidsms.Error, match=r"no file|cannot read"):
        db.execute(f"CREATE RELATION C (id INTEGER) FROM '{tmp_path / name}'")


def asked(database: Path, *statements: str) -> list[Any]:
    """Carry out statements in a transaction of another connection, once nobody reads; the rows of the last."""
    while True:
        try:
            opened: Any = sqlite3.connect(database) if database.suffix == ".sqlite" else duckdb.connect(str(database))
            break
        except duckdb.Error:
            continue
    with contextlib.closing(opened):
        found = [opened.execute(statement).fetchall() for statement in ("BEGIN", *statements)]
        opened.execute("COMMIT")
    rows: list[Any] = found[-1]
    return rows


def test_a_table_that_is_followed_changes_the_relation(database: Path) -> None:
    """Equal rows are counted, an update is one step, and what a transaction did comes at one instant."""
    with minidsms.connect() as db:
        columns = "id INTEGER, name TEXT, spent FLOAT, active BOOLEAN"
        options = "table = 'customers', follow = true, poll = 0.01 SECONDS"
        db.execute(f"CREATE RELATION C ({columns}) FROM '{database}' WITH ({options})")
        q, total = db.query("SELECT id, name, spent, active FROM C"), db.query("SELECT COUNT(*), SUM(id) FROM C")

        def follow(rows: list[Any]) -> None:
            while Counter(q.snapshot()) != Counter(rows):
                assert db.run_some()
            assert total.snapshot() == [(len(rows), sum(row[0] for row in rows) if rows else None)]

        follow(ROWS)
        same = "customers VALUES (3, 'x''y', 2.0, NULL)"
        steps = [
            ("UPDATE customers SET name = 'ann b.' WHERE id = 1", "DELETE FROM customers WHERE id = 2"),
            (
                "INSERT INTO customers VALUES (3, 'x''y', 2.0, NULL)",
                "INSERT INTO customers VALUES (9, 'n', 0.5, 1)",
            ),
            ("DELETE FROM customers WHERE id = 3", f"INSERT INTO {same}"),
            ("DELETE FROM customers",),
        ]
        for step in steps:
            asked(database, *step)
            follow(asked(database, "SELECT * FROM customers"))
        seen = [row for _, sign, row in total.fetch() if sign > 0]
        assert seen == [(3, 6), (2, 4), (4, 16), (3, 13), (0, None)]


def test_a_folder_goes_on_with_what_differs_from_what_the_relation_holds(database: Path, tmp_path: Path) -> None:
    options = "WITH (table = 'customers', follow = true, poll = 0.01 SECONDS)"
    with minidsms.connect() as db, pytest.raises(minidsms.Error, match="are a relation's"):
        db.execute(f"CREATE STREAM S (id INTEGER) FROM '{database}' {options}")
    for kept in ("id > 0", "id <> 2", "id = 3"):
        asked(database, f"DELETE FROM customers WHERE NOT ({kept})", "SELECT 1")
        with minidsms.connect(tmp_path / "folder") as db:
            db.execute(f"CREATE RELATION IF NOT EXISTS C (id INTEGER, name TEXT) FROM '{database}' {options}")
            db.execute("CREATE QUERY IF NOT EXISTS q AS SELECT id FROM C")
            while sorted(db.queries["q"].snapshot()) != sorted(asked(database, "SELECT id FROM customers")):
                assert db.run_some()
            signs = [sign for _, sign, _ in db.queries["q"].fetch()]
            assert signs == [1] * 3 if kept == "id > 0" else [-1]
