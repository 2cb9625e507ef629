"""Answers in files: what is written reads back equal, whole or not at all, and however it was cut into batches."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error
from minidsms.sinks.opening import open_sink

DECLARED = "CREATE STREAM S (a INTEGER, b FLOAT, d TEXT, e BOOLEAN, t TIMESTAMP, i INTERVAL)"
ROWS: list[tuple[Any, ...]] = [
    (1, 0.1, "plain", True, 0, 5),
    (None, None, None, None, None, None),
    (-(2**63) + 1, 1e300, 'quoted "x", and\nmore', False, 1_500, -5),
    (2, 1e-7, "", True, 10**12, 0),
    (3, float("inf"), " blank ", False, 1, 1),
    (4, 1 / 3, "esc\x1b[31m \u00fc \U0001f600", True, 1, 1),
]


def write(path: Path, format: str | None = None, rows_per_push: int = 100, rows: list[tuple[Any, ...]] = ROWS) -> int:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        query = db.query("SELECT ISTREAM(*) FROM S")
        sink = open_sink(str(path), format)
        db.add_sink(query, sink)
        for start in range(0, len(rows), rows_per_push):
            part = rows[start : start + rows_per_push]
            db.push("S", part, ts=[start + i for i in range(len(part))])
        db.advance(10**6)
        assert query.fetch() == []
        assert not path.exists()
    return sink.rows


def test_csv_reads_back_and_tells_null_from_the_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    assert write(path) == len(ROWS)
    lines = path.read_text()
    assert lines.startswith("_ts,_sign,a,b,d,e,t,i\n0,1,1,0.1,plain,true,1970-01-01 00:00:00.000Z,5\n1,1,,,,,,\n")
    assert '3,1,2,1e-7,"",true,' in lines
    read = list(csv.reader(lines.splitlines(keepends=True)))[1:]
    assert [row[4] for row in read] == [row[2] or "" for row in ROWS]
    assert [float(row[3]) for row in read if row[3]] == [row[1] for row in ROWS if row[1] is not None]


def test_csv_without_texts_that_need_quotes_is_written_alike(tmp_path: Path) -> None:
    # Two ways of writing stand behind the format; a row looks the same on either.
    plain = [row for row in ROWS if row[2] in ("plain", None)]
    write(tmp_path / "plain.csv", rows=plain)
    write(tmp_path / "quoted.csv", rows=[*plain, ROWS[2]])
    assert (tmp_path / "quoted.csv").read_text().startswith((tmp_path / "plain.csv").read_text())


def test_json_lines_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    write(path)
    read = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    assert [(r["a"], r["b"], r["d"], r["e"], r["i"]) for r in read] == [(*row[:4], row[5]) for row in ROWS]
    assert list(read[0]) == ["_ts", "_sign", "a", "b", "d", "e", "t", "i"]
    assert (read[0]["_ts"], read[0]["_sign"], read[0]["t"]) == (0, 1, "1970-01-01 00:00:00.000Z")


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_columnar_files_read_back(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path)
    if name.endswith("parquet"):
        table = pyarrow.parquet.read_table(path)
    else:
        table = pa.ipc.open_file(path).read_all()
    assert table.column_names == ["_ts", "_sign", "a", "b", "d", "e", "t", "i"]
    for name_, i in (("a", 0), ("b", 1), ("d", 2), ("e", 3)):
        assert table[name_].to_pylist() == [row[i] for row in ROWS]


def test_stream_lines_have_six_digits_and_one_row_each(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    write(path, "stream")
    lines = path.read_text().split("\n")
    assert lines[0] == "[0]:+:1, 0.1, plain, true, 0, 5"
    assert lines[1] == "[1]:+:NULL, NULL, NULL, NULL, NULL, NULL"
    assert lines[2] == '[2]:+:-9223372036854775807, 1e+300, quoted "x", and\\nmore, false, 1500, -5'
    assert lines[5].startswith("[5]:+:4, 0.333333, esc\\x1b[31m ")


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.parquet", "x.arrow"])
def test_bytes_do_not_depend_on_batches(name: str, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    write(tmp_path / "one" / name, rows_per_push=1)
    write(tmp_path / "many" / name)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_a_relation_is_written_with_its_signs(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        db.execute(f"CREATE QUERY q AS SELECT * FROM S [ROWS 1] INTO '{path}'")
        db.push("S", [(1,), (2,)], ts=[0, 1])
        db.advance(1)
        db.execute("DROP QUERY q")
        assert path.read_text() == "_ts,_sign,a\n0,1,1\n1,-1,1\n1,1,2\n"


def test_a_written_relation_is_read_as_that_relation(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER, d TEXT)")
        db.execute(f"CREATE QUERY q AS SELECT * FROM S [ROWS 1] INTO '{path}'")
        db.push("S", [(1, ""), (2, None)], ts=[0, 1])
        db.advance(1)
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (a INTEGER, d TEXT) FROM '{path}'")
        query = db.query("SELECT * FROM R")
        db.run()
        assert [tuple(c) for c in query.fetch()] == [(0, 1, (1, "")), (1, -1, (1, "")), (1, 1, (2, None))]


def test_run_puts_the_file_in_its_place_when_all_has_been_read(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("t,a\n1,1\n2,2\n")
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (t INTEGER, a INTEGER) TIMESTAMP BY t FROM '{tmp_path}/in.csv'")
        db.execute(f"CREATE QUERY q AS SELECT ISTREAM(a) FROM S INTO '{tmp_path}/out.csv'")
        db.run()
        assert (tmp_path / "out.csv").read_text() == "_ts,_sign,a\n1,1,1\n2,1,2\n"


def test_a_discarded_sink_leaves_what_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("before")
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        query = db.query("SELECT ISTREAM(a) FROM S")
        db.add_sink(query, open_sink(str(path)))
        db.push("S", (1,), ts=0)
        query.discard_sink()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["x.csv"]


def test_a_place_that_cannot_be_written_leaves_no_query(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        with pytest.raises(CqlError, match=r"there is no folder .*\n(.*\n)*help: mkdir -p ") as caught:
            db.execute(f"CREATE QUERY q AS SELECT * FROM S INTO '{tmp_path}/none/x.csv'")
        assert caught.value.position == (1, 1)
        with pytest.raises(Error, match="is a folder"):
            db.execute(f"CREATE QUERY q AS SELECT * FROM S INTO '{tmp_path}' FORMAT csv")
        with pytest.raises(Error, match="cannot be told"):
            db.execute(f"CREATE QUERY q AS SELECT * FROM S INTO '{tmp_path}/x'")
        assert db.queries == {}


def test_the_format_of_the_prototype_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (a INTEGER); CREATE QUERY q AS SELECT * FROM S INTO '{path}' FORMAT stream")
        db.push("S", [(1,), (2,)], ts=[1, 2])
    assert path.read_text().split() == ["[1]:+:1", "[2]:+:2"]


def test_two_queries_do_not_share_a_file(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        db.execute(f"CREATE QUERY q AS SELECT * FROM S INTO '{tmp_path}/x.csv'")
        with pytest.raises(Error, match="query q writes"):
            db.execute(f"CREATE QUERY r AS SELECT * FROM S INTO '{tmp_path}/x.csv'")
        assert list(db.queries) == ["q"]


def test_texts_are_written_before_their_codes_are_reclaimed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (d TEXT)")
        db.execute(f"CREATE QUERY q AS SELECT ISTREAM(d) FROM S INTO '{path}'")
        for start in range(0, 250_000, 50_000):
            db.push("S", {"d": [f"t{start + i}" for i in range(50_000)]}, ts=list(range(start, start + 50_000)))
        assert len(db.dictionary) < 250_000
    assert [line.split(",")[2] for line in path.read_text().split("\n")[1:-1]] == [f"t{i}" for i in range(250_000)]


def test_infinities_within_nested_values_are_numbers_of_json_and_texts_stay(tmp_path: Path) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (a STRUCT(x FLOAT, t TEXT), l FLOAT[], m MAP(TEXT, FLOAT))")
    db.query("SELECT ISTREAM(*) FROM S").into(tmp_path / "s.jsonl")
    row = ({"x": float("inf"), "t": 'a "Infinity\\'}, [float("-inf"), 1.0], {"Infinity": float("-inf")})
    db.push("S", row, ts=1)
    db.advance(1)
    db.close()
    text = (tmp_path / "s.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"_ts": 1, "_sign": 1, "a": row[0], "l": row[1], "m": row[2]}
