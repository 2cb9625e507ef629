"""What `.schema 'FILE'` proposes: a declaration that reads the file, and why it is as it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import ipc, parquet

import minidsms
from minidsms.cql.errors import Error
from minidsms.shell import column_guesses
from minidsms.shell.file_schema import proposal_for

START = 1_767_225_600
SECONDS = [START + i * 3 - (7 if i % 50 == 9 else 0) for i in range(200)]
"""Out of order by four seconds."""


def written(seconds: int, form: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


@pytest.mark.parametrize(
    ("header", "rows", "columns", "options", "reason"),
    [
        (
            "at,v",
            [f"{s},{i}" for i, s in enumerate(SECONDS)],
            "at TIMESTAMP, v INTEGER",
            "epoch = 'seconds'",
            "since 1970",
        ),
        (
            "ts,v",
            [f"{s}.25,{i}" for i, s in enumerate(SECONDS)],
            "ts TIMESTAMP, v INTEGER",
            "epoch = 'seconds'",
            "since 1970",
        ),
        (
            "time;x",
            [f"{written(s, '%d.%m.%Y %H:%M:%S')};{i},5" for i, s in enumerate(SECONDS)],
            "time TIMESTAMP, x FLOAT",
            "delimiter = ';', time_format = '%d.%m.%Y %H:%M:%S', decimal_comma = TRUE",
            "'0,5' is a number with a comma",
        ),
        (
            "day|v",
            [f"{written(s, '%Y-%m-%dT%H:%M:%S')}|{i if i != 7 else 'n/a'}" for i, s in enumerate(SECONDS)],
            "day TIMESTAMP, v INTEGER",
            "delimiter = '|'",
            "199 of 200 values are a whole number; 'n/a' is none",
        ),
    ],
)
def test_the_proposal_reads_the_file_and_says_why(
    tmp_path: Path, header: str, rows: list[str], columns: str, options: str, reason: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    declaration, reasons = proposal_for(str(path))
    assert declaration.startswith(f"CREATE STREAM log ({columns})") and f"WITH ({options})" in declaration
    assert "SLACK 4 SECONDS\nLATE DROP" in declaration
    assert any(reason in each for each in reasons) and any(each.startswith("SLACK: ") for each in reasons)
    with minidsms.connect() as db:
        db.execute(declaration)
        q = db.query("SELECT ts FROM log")
        db.run()
        bad = db.stream_input("log").counters.rejected
        assert bad == any("n/a" in row for row in rows) and not db.warnings
        assert len(q.fetch()) == len(rows) - bad


def test_what_has_no_instants_is_a_relation(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,age\nann,31\nbob,\n")
    declaration, reasons = proposal_for(str(path))
    assert declaration.startswith("CREATE RELATION people (name TEXT, age INTEGER)")
    assert any("no column looks like an instant" in each for each in reasons)


def test_of_two_ways_to_read_a_day_both_are_named(tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("day,v\n01/02/2026,1\n03/02/2026,2\n")
    declaration, reasons = proposal_for(str(path))
    assert "time_format = '%d/%m/%Y'" in declaration and any("%m/%d/%Y fit as well" in each for each in reasons)


def test_a_column_of_texts_is_given_up_where_too_many_values_are_strange() -> None:
    """Of a column of texts as many values are looked at as may be strange in a column of another type, not all."""
    calls = 0

    def cast(texts: Any) -> Any:
        nonlocal calls
        calls += 1
        return pc.cast(texts, pa.int64())

    read = column_guesses._tried(pa.array([f"/page/{i}" for i in range(20_000)]), cast)
    assert read.null_count == len(read) == 20_000 and calls < 5_000
    mixed = [str(i) if i % 100 else "-" for i in range(20_000)]
    assert column_guesses._tried(pa.array(mixed), cast).null_count == 200


def test_one_strange_value_of_a_short_file_is_a_mistake_and_more_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "at,v,w\n2026-01-01 00:00:01,1,1\n2026-01-01 00:00:02,2,2\nyesterday,3,x\n2026-01-01 00:00:04,n,y\n"
    )
    declaration, reasons = proposal_for(str(path))
    assert declaration.startswith("CREATE STREAM t (at TIMESTAMP, v INTEGER, w TEXT)\nTIMESTAMP BY at")
    assert reasons == [
        "at: 3 of 4 values are an ISO time; 'yesterday' is none, and its row is left out",
        "v: 3 of 4 values are a whole number; 'n' is none, and its row is left out",
        "w: 2 of 4 values are a whole number; 'x' is none: too many to leave out, so it is TEXT",
    ]


def test_instants_may_have_zones_and_columns_no_values_or_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = b"2026-01-01T00:00:01Z,,a", b"2026-01-01T00:00:02.123456Z,,\xff", b"2026-01-01T01:00:03+01:00,,b", b"?,,c"
    path.write_bytes(b"\n".join([b"at,v,w", *rows, b""]))
    declaration, _ = proposal_for(str(path))
    assert declaration.startswith("CREATE STREAM t (at TIMESTAMP, v TEXT, w TEXT)\nTIMESTAMP BY at\nFROM")
    with minidsms.connect() as db:
        q = db.execute(f"{declaration}; SELECT w FROM t")
        db.run()
        assert [row for _, _, row in q.fetch()] == [("a",), ("b",)]
    path.write_bytes("at,v\n1,2\n".encode("utf-16"))
    with pytest.raises(Error, match="no UTF-8\nhelp: convert the file"):
        proposal_for(str(path))


def test_a_program_gets_the_proposal_as_a_statement_with_its_reasons(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("at,group,v\n2026-01-01 00:00:01,a,1\n2026-01-01 00:00:02,b,x\n2026-01-01 00:00:03,c,3\n")
    text = minidsms.declaration(path, name="Readings")
    assert text.startswith("-- v: 2 of 3 values are a whole number; 'x' is none, and its row is left out\nCREATE")
    with minidsms.connect() as db:
        db.execute(text)
        q = db.query("SELECT `group` FROM Readings")
        db.run()
        assert [row for _, _, row in q.fetch()] == [("a",), ("c",)]
        [(line, reason)] = db.stream_input("Readings").rejected
        assert repr(db.stream_input("Readings").rejected) == repr([(line, reason)]) and "'x'" in reason
    for wrong in (5, tmp_path / "none.csv"):
        with pytest.raises(Error, match=r"a path, or a table|no file"):
            minidsms.declaration(wrong)


def test_a_table_is_declared_by_its_types() -> None:
    table = pa.table({"at": pa.array([2000, 1000], pa.timestamp("ms")), "k": ["a", "b"], "v": [1.5, None]})
    text = minidsms.declaration(table, "Pos")
    assert text.endswith(
        "CREATE STREAM Pos (at TIMESTAMP, k TEXT, v FLOAT)\nTIMESTAMP BY at\nSLACK 1000 MILLISECONDS\nLATE DROP"
    )
    with minidsms.connect() as db:
        db.execute(text)
        assert db.push("Pos", table) == 2
    assert "CREATE RELATION data (k TEXT)" in minidsms.declaration(table.select(["k"]))


@pytest.mark.parametrize("kind", ["json", "parquet", "arrow"])
def test_files_that_have_types_are_read_as_proposed(tmp_path: Path, kind: str) -> None:
    path, columns = tmp_path / f"t.{kind}", {"at": [1, 2], "k": ["a", None], "v": [0.5, 1.5]}
    if kind == "json":
        path.write_text("".join(json.dumps(dict(zip(columns, row))) + "\n" for row in zip(*columns.values())))
    elif kind == "parquet":
        parquet.write_table(pa.table(columns), path)
    else:
        with ipc.new_file(path, pa.table(columns).schema) as file:
            file.write_table(pa.table(columns))
    assert _read_as_proposed(path) == list(zip(*columns.values()))


def test_what_is_nested_in_parquet_is_proposed_as_it_is(tmp_path: Path) -> None:
    path, rows = tmp_path / "t.parquet", [(1, ["a"], {"x": 1, "y": [0.5]}, {"k": 2}, Decimal("1.50"))]
    kinds = [
        pa.int64(), pa.large_list(pa.string()), pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float64()))]),
        pa.map_(pa.string(), pa.int64()), pa.decimal128(9, 2),
    ]  # fmt: skip
    values = [1, ["a"], {"x": 1, "y": [0.5]}, [("k", 2)], Decimal("1.50")]
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds)]
    parquet.write_table(pa.table(arrays, ["at", "l", "s", "m", "d"]), path)
    assert _read_as_proposed(path) == rows


def test_what_is_nested_in_json_is_proposed_as_text_also_where_its_types_change(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    texts = '{"a": 1}', '{"a": "x", "b": []}', "[1]"
    path.write_text("".join(f'{{"at": {i}, "p": {text}}}\n' for i, text in enumerate(texts)))
    assert _read_as_proposed(path) == list(enumerate(texts))


@pytest.mark.parametrize("line", ["no JSON", '{"p": ' + "[" * 100_000, '{"p": ' + "9" * 5000 + "}"])
def test_a_line_that_cannot_be_read_is_an_error_that_tells_its_row(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(f'{{"p": {{"a": 1}}}}\n{{"p": {{"a": "x"}}}}\n{line}\n')
    with pytest.raises(minidsms.Error, match="in row 1"):
        proposal_for(str(path))


def _read_as_proposed(path: Path) -> list[tuple[Any, ...]]:
    with minidsms.connect() as db:
        db.execute(proposal_for(str(path))[0])
        found = db.query("SELECT ISTREAM(*) FROM t [NOW]")
        db.run()
        return [change.row for change in found.fetch()]
