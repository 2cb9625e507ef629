"""Tables of SQLite and DuckDB databases as relations and streams."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import minidsms

ROWS = [(1, "ann", 1.5, 1), (2, None, None, 0), (3, "x'y", 2.0, None)]
TABLE = "CREATE TABLE customers (id INTEGER, name VARCHAR, spent DOUBLE, active BOOLEAN)"


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"shop.{request.param}"
    opened: Any
    if request.param == "sqlite":
        opened = sqlite3.connect(path)
    else:
        opened = pytest.importorskip("duckdb").connect(str(path))
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
