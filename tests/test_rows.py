"""Rows and instants as programs get them."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import minidsms
from minidsms.cql.errors import Error


class Reading(NamedTuple):
    car: int
    count: str


def test_values_of_a_row_have_the_names_of_its_columns() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (car INTEGER, count TEXT)")
    q = db.query('SELECT car, count, car + 1, car AS "from", car AS _own, count AS car FROM S [ROWS 2]')
    assert db.push("S", Reading(7, "a"), ts=1) == 1
    db.advance(1)
    (row,) = q.snapshot()
    assert row == (7, "a", 8, 7, 7, "a") and repr(row) == "(7, 'a', 8, 7, 7, 'a')"
    assert row.count == "a" and getattr(row, "from") == 7
    for name in ("car", "_own", "nothing"):  # two columns, none of the user's, no column
        with pytest.raises(AttributeError):
            getattr(row, name)
    assert row._asdict()["car + 1"] == 8
    (change,) = q.fetch()
    for copied in (pickle.loads(pickle.dumps(change)), copy.deepcopy(change)):
        assert copied == change and type(copied.row) is tuple
    assert list(pd.DataFrame([row]).columns) == ["car", "count", "car + 1", "from", "_own", "car"]


def test_rows_that_were_fetched_can_be_pushed() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (car INTEGER, count TEXT)")
    q = db.query("SELECT ISTREAM(*) FROM S")
    db.push("S", [Reading(1, "a"), Reading(2, "b")], ts=1)
    db.advance(1)
    rows = [change.row for change in q.fetch()]
    assert db.push("S", rows, ts=2) == 2 and db.push("S", rows[0], ts=3) == 1
    db.advance(3)
    assert [change.row for change in q.fetch()] == [*rows, rows[0]]


@pytest.mark.parametrize(
    ("by", "expected"),
    [("at TIMESTAMP", datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)), ("at INTEGER", 1767225601000)],
)
def test_instants_are_times_where_the_stream_has_times(by: str, expected: object) -> None:
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S ({by}, v INTEGER) TIMESTAMP BY at; CREATE VIEW W AS SELECT v FROM S [RANGE 5 SECONDS]")
    queries = [db.query(text) for text in ("SELECT v FROM S [NOW]", "SELECT ISTREAM(v) FROM W", "SELECT v FROM S")]
    db.push("S", (1767225601000, 1))
    db.advance(1767225601000)
    for q in queries:
        assert q.fetch_arrow()["_ts"].to_pylist()[0] == expected


def test_the_time_of_an_instant_is_in_utc_and_in_the_calendar() -> None:
    assert minidsms.connect(time_unit="ns").time(1767225601_000_001_999) == datetime(2026, 1, 1, 0, 0, 1, 1, tzinfo=UTC)
    assert minidsms.connect().time(-1000) == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    with pytest.raises(Error, match="no time"):
        minidsms.connect().time(1 << 60)


def test_snapshots_and_tables_of_statements_are_frames() -> None:
    """A snapshot stays what it was while the relation goes on, and is pushed by position, as any list."""
    with minidsms.connect() as db:
        more = "d DECIMAL(5, 2), l INTEGER[], m MAP(TEXT, INTEGER)) TIMESTAMP BY at"
        db.execute(f"CREATE STREAM S (at TIMESTAMP, k TEXT, {more}; CREATE STREAM T (at TIMESTAMP, other TEXT, {more}")
        q = db.query("SELECT * FROM S [ROWS 2]")
        empty = q.snapshot()
        rows = [(1000, "a", Decimal("1.50"), [1, None], {"x": 1}), (2000, None, None, None, None)]
        db.push("S", rows)
        db.advance(2000, "S")
        before, table = q.snapshot(), q.arrow()
        db.push("S", [(3000, "c", None, None, None)])
        db.advance(3000, "S")
        assert before == rows and before.arrow().equals(table)
        assert pa.RecordBatchReader.from_stream(before).read_all().equals(table)
        assert empty.arrow().schema == table.schema and len(empty.df()) == 0
        assert isinstance(before.df(), pd.DataFrame) and isinstance(before.pl(), pl.DataFrame)
        assert before.df()["at"].tolist() == [db.time(1000), db.time(2000)]
        assert type(pickle.loads(pickle.dumps(before))) is list and copy.copy(before) == rows
        assert db.push("T", before) == 2
        shown = db.sql("VALUES (1, 'a'), (2, NULL)")
        assert shown.df().to_dict("list") == {"column1": [1, 2], "column2": ["a", None]}
        assert db.sql("SHOW SETTINGS").pl().columns == ["setting", "value", "meaning"]


def test_times_of_seconds_are_those_of_polars_or_refused() -> None:
    with minidsms.connect(time_unit="s") as db:
        db.execute("CREATE STREAM S (t TIMESTAMP, i INTERVAL, l INTERVAL[], m MAP(TEXT, INTERVAL))")
        fits, does_not, nested = (db.query("SELECT t, i, l, m FROM S WHERE i = ?", params=[n]) for n in (5, 2**60, 6))
        db.push("S", [(5, 5, [7], {"a": 7}), (0, 2**60, None, None), (0, 6, [2**60], {})], ts=1)
        frame = fits.pl()
        assert [frame[name].to_physical().to_list() for name in ("t", "i", "l")] == [[5000], [5000], [[7000]]]
        for query in (does_not, nested):
            with pytest.raises(minidsms.Error, match="range of polars"):
                query.pl()
            assert len(query.arrow()) == 1


def test_what_pandas_cannot_hold_is_refused_and_waits_on() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TIMESTAMP, l TIMESTAMP[], s STRUCT(a TIMESTAMP))")
        held, q = db.query("SELECT t, l FROM S"), db.query("SELECT t, s FROM S")
        db.push("S", (2**60, [2**60], {"a": 2**60}), ts=1)
        assert held.df()["t"].astype("int64").to_list() == [2**60]
        with pytest.raises(minidsms.Error, match="pandas can hold"):
            q.df()
        assert q.pl()["t"].to_physical().to_list() == [2**60]
