"""What is shown of instants to whoever prints rows and changes: times, where the stream has times."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import minidsms
from minidsms import Change
from minidsms.operators.range_window import RangeWindow

TEN = 1767261600000
FAR = [-62_198_755_200_001, -62_135_596_800_001, 253_402_300_800_000, 10**15, -(10**15), 0]
"""In the years -2, 0, 10000, 33658, -29719 and 1970."""


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("format", ["csv", "json", "parquet", "arrow"])
def test_instants_of_all_years_are_read_from_where_they_were_written(tmp_path: Path, format: str, count: int) -> None:
    file = tmp_path / f"a.{format}"
    values = FAR * count
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TIMESTAMP)")
        db.query("SELECT t FROM S").into(file)
        cast = db.query("SELECT RSTREAM(CAST(CAST(t AS TEXT) AS TIMESTAMP)) FROM S [NOW]")
        db.push("S", {"t": values}, ts=range(len(values)))
        db.advance(len(values))
        assert [row for _, _, row in cast.fetch()] == [(value,) for value in values]
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (_ts INTEGER, t TIMESTAMP) TIMESTAMP BY _ts FROM '{file}'")
        q = db.query("SELECT t FROM S")
        db.run()
        assert [row for _, _, row in q.fetch()] == [(value,) for value in values]


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "arrow"])
def test_so_are_instants_in_lists_and_structs(tmp_path: Path, format: str) -> None:
    columns, file = "l TIMESTAMP[], s STRUCT(a TIMESTAMP), m MAP(TEXT, TIMESTAMP[])", tmp_path / f"a.{format}"
    rows = [([value, None], {"a": value}, {"k": [value], "n": None}) for value in FAR]
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S ({columns})")
        db.query("SELECT l, s, m FROM S").into(file)
        db.push("S", rows, ts=range(len(rows)))
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (_ts INTEGER, {columns}) TIMESTAMP BY _ts FROM '{file}'")
        q = db.query("SELECT l, s, m FROM S")
        db.run()
        assert [row for _, _, row in q.fetch()] == rows


def test_a_text_between_two_ticks_is_floored_in_every_year() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TIMESTAMP)")
        q = db.query("SELECT t FROM S")
        db.push(
            "S", [("10000-01-01 00:00:00.0005",), ("-0001-01-01 00:00:00.0005",), ("1969-12-31 23:59:59.9995",)], ts=0
        )
        assert [row for _, _, row in q.fetch()] == [(253_402_300_800_000,), (-62_198_755_200_000,), (-1,)]


def test_a_row_without_an_instant_may_hold_a_time_that_python_has_not(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"t":"2000-01-01 00:00:00Z"}\n{"ts":1,"t":"0000-01-01 00:00:00Z"}\n{"t":"0000-01-01 00:00:00Z"}\n')
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (ts INTEGER, t TIMESTAMP) TIMESTAMP BY ts FROM '{file}'")
        q = db.query("SELECT YEAR(t) FROM S")
        db.run()
        assert [row for _, _, row in q.fetch()] == [(0,)] and db.stream_input("S").counters.rejected == 2


def test_changes_and_rows_show_times_and_hold_ticks() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at; CREATE STREAM T (v INTEGER)")
        q, r = db.query("SELECT at, v FROM S"), db.query("SELECT MAX(at) AS last FROM S [ROWS 2]")
        plain = db.query("SELECT v FROM T")
        db.push("S", [(TEN, 1), (TEN + 1500, None)])
        db.push("T", (1,), ts=TEN)
        db.advance(TEN + 2000)
        first, second = q.fetch()
        assert repr(first) == "Change(ts=2026-01-01 10:00:00, sign=1, row=(2026-01-01 10:00:00, 1))"
        assert str(second.row) == "(2026-01-01 10:00:01.5, None)" and str(r.snapshot()) == "[(2026-01-01 10:00:01.5,)]"
        assert first == (TEN, 1, (TEN, 1)) and first.ts == TEN and first.row.at == TEN
        assert pickle.loads(pickle.dumps(first)) == first and isinstance(first, Change)
        assert repr(plain.fetch()) == f"[Change(ts={TEN}, sign=1, row=(1,))]"
        assert isinstance(first.row, tuple) and hash(first) == hash(tuple(first))


def test_a_window_whose_rows_have_their_instants_keeps_no_rows_of_its_own() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT k, ts FROM S [RANGE 3] WHERE k <> 2998")
        for ts in range(1500):
            db.push("S", (ts,), ts=ts)
            db.advance(ts)
        db.push("S", {"k": range(1500, 3000)}, ts=range(1500, 3000))
        db.advance(2999)
        assert sorted(q.snapshot()) == [(2997, 2997), (2999, 2999)]
        assert [row for _, _, row in q.fetch()[-2:]] == [(2996, 2996), (2999, 2999)]
        (window,) = (each for each in q.network.operators if isinstance(each, RangeWindow))
        assert window.stub.own_store is None
