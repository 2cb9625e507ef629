"""DECIMAL, DATE, TIME, lists, structs and maps in archives: what is read is what was pushed, or answered."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms.archive import files
from minidsms.archive.format import find
from tests.types.test_values import COLUMNS, EXPRESSIONS, ROWS

QUERY = "SELECT *, price * 2 AS twice, near.x AS x FROM S [RANGE 2] WHERE price > -1.0 OR day IS NULL"


def _declared(db: Any, more: str = "", kind: str = "STREAM") -> None:
    db.execute(f"CREATE {kind} S ({COLUMNS}){more}")


def _answer(query: Any) -> list[Any]:
    return [(change.ts, change.sign, change.row) for change in query.fetch()]


@pytest.fixture(scope="module")
def archived(tmp_path_factory: Any) -> tuple[str, list[Any]]:
    """A folder with a stream's archive, and what a query gave that ran meanwhile."""
    folder = str(tmp_path_factory.mktemp("archives"))
    with minidsms.connect() as db:
        _declared(db)
        db.archive("S", folder, partition=4)
        query = db.query(QUERY)
        for ts, row in enumerate(ROWS, 1):
            db.push("S", row, ts=ts)
        db.push("S", ROWS * 3, ts=[4, 4, 5, 5, 6, 7, 8, 9, 9])
        db.advance(9)
        return folder, _answer(query)


@pytest.mark.parametrize("way", ["replay", "FROM"])
def test_values_come_back_from_an_archive_as_they_went_in(archived: tuple[str, list[Any]], way: str) -> None:
    folder, live = archived
    assert len(live) > 10
    with minidsms.connect() as db:
        _declared(db, f" FROM '{folder}' FORMAT archive" if way == "FROM" else "")
        query = db.query(QUERY)
        if way == "FROM":
            db.run()
        else:
            db.replay(folder)
        db.advance(9)
        assert _answer(query) == live


def test_a_new_query_reads_what_was_before_from_an_archive(archived: tuple[str, list[Any]]) -> None:
    folder, live = archived
    with minidsms.connect() as db:
        _declared(db)
        db.archive("S", folder)
        db.execute(f"CREATE QUERY later AS {QUERY} BACKFILL FROM '{folder}'")
        db.advance(9)
        assert _answer(db.queries["later"]) == live


def test_a_relation_goes_on_from_its_archive(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        _declared(db, kind="RELATION")
        db.archive("S", str(tmp_path))
        db.push("S", ROWS, ts=1)
        db.push("S", ROWS[:1], ts=2, sign=[-1])
    with minidsms.connect() as db:
        _declared(db, kind="RELATION")
        db.archive("S", str(tmp_path))
        db.replay(str(tmp_path))
        db.push("S", [ROWS[1]], ts=3, sign=[-1])
        query = db.query("SELECT * FROM S")
        db.advance(4)
        assert query.snapshot() == [ROWS[2]]


def test_the_answers_of_queries_are_archived_as_they_are_fetched(tmp_path: Path) -> None:
    """The same expressions whose answers are compared with the definition."""
    with minidsms.connect() as db:
        db.execute("CREATE STREAM Sb (k INTEGER, v INTEGER, t TEXT)")
        queries = {}
        for i, expression in enumerate(EXPRESSIONS):
            queries[f"q{i}"] = db.query(f"SELECT ISTREAM({expression} AS c) FROM Sb [RANGE 2]", name=f"q{i}")
            db.archive(f"q{i}", str(tmp_path))
        for ts, row in enumerate([(1, 2, "2024-01-02"), (2, None, None), (3, 7, "aXb")], 1):
            db.push("Sb", row, ts=ts)
        db.advance(5)
        db.flush()
        told = 0
        for name, query in queries.items():
            try:
                table = query.fetch_arrow()
            except minidsms.QueryError:  # a row on which it fails; there are cases of these elsewhere
                continue
            archive = find(str(tmp_path), name)
            read = pa.concat_tables(files.read(archive)) if len(table) else archive.metadata.arrow_schema.empty_table()
            wanted = (
                table["c"].cast(read.schema.field("c").type) if not pa.types.is_string(table["c"].type) else table["c"]
            )
            assert read["c"].to_pylist() == wanted.to_pylist(), query.text
            told += len(table) > 0
        assert told > 30


def test_other_readers_of_parquet_see_their_own_types(archived: tuple[str, list[Any]]) -> None:
    table = pa.concat_tables(files.read(find(archived[0], "S")))
    row = table.to_pylist()[0]
    assert row["price"] == Decimal("123456789012345678901234567890123456.78") and row["stock"] == [
        ("a", None),
        ("b", 2),
    ]
    assert row["near"] == {"x": 1, "y z": [1.5, None]} and row["at"] == 52_200_000_001
