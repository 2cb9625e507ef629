"""What `.schema 'FILE'` proposes: a declaration that reads the file, and why it is as it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
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
from minidsms.shell.main import main

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


@pytest.mark.parametrize(
    "form",
    [
        *(
            "%d.%m.%y",
            "%m/%d/%y %H:%M",
            "%Y/%m/%d",
            "%d-%m-%Y %H:%M:%S",
            "%m/%d/%Y %I:%M:%S %p",
            "%d %b %Y",
            "%b %d, %Y",
        ),
        *("%d/%b/%Y:%H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y%m%d", "%Y%m%d%H%M%S"),
    ],
)
def test_times_are_read_as_they_are_written(tmp_path: Path, form: str) -> None:
    path = tmp_path / "times.csv"
    times = [START + i * 86_400 + 79_500 for i in range(40)]
    path.write_text("at,v\n" + "".join(f'"{written(s, form)}",{i}\n' for i, s in enumerate(times)))
    with minidsms.connect() as db:
        db.execute(minidsms.declaration(path))
        q = db.query("SELECT at FROM times")
        db.run()
        wanted = [datetime.strptime(written(s, form), form).replace(tzinfo=UTC).timestamp() for s in times]
        assert [change.ts / 1000 for change in q.fetch()] == wanted


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


def test_files_that_are_no_utf8_are_told_how_to_be_converted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("at,name\n1,caf\xe9\n".encode("latin-1"))
    declaration, reasons = proposal_for(str(path))
    assert any(each.startswith("name: ") and "iconv -f WINDOWS-1252" in each for each in reasons)
    with minidsms.connect() as db:
        db.execute(declaration)
        with pytest.raises(Error, match=r"no UTF-8\nhelp: convert .* iconv -f WINDOWS-1252"):
            db.run()
    for encoding, name in (("latin-1", "WINDOWS-1252"), ("utf-16", "UTF-16")):
        path.write_bytes("at,stra\xdfe\n1,2\n".encode(encoding))
        with pytest.raises(Error, match=f"no UTF-8\nhelp: convert .* iconv -f {name}"):
            proposal_for(str(path))


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_rows_of_other_widths_beside_what_is_no_utf8_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("at,name\n1,caf\xe9\n2,\xe9,x\n3,b\n".encode("latin-1"))
    with minidsms.connect() as db:
        q = db.execute(f"{minidsms.declaration(path)}; SELECT name FROM t")
        db.run()
        assert [change.row for change in q.fetch()] == [("b",)]


@pytest.mark.parametrize(
    ("name", "start", "told"),
    [
        ("t.xlsx", b"PK\x03\x04\x14", "help: unpack it; a sheet of a workbook is saved as CSV"),
        ("t.zip", b"PK\x03\x04\x14", "help: unpack it"),
        ("t.db", b"SQLite format 3\x00", "help: CREATE RELATION R .* WITH .table = 'name'"),
        ("t.csv", b"PAR1\x15\x04", "help: end its name in .parquet"),
        ("t.csv", b"\x1f\x8b\x08", "help: end its name in .gz"),
        ("t.tsv", b"\x28\xb5\x2f\xfd", "help: end its name in .zst"),
        ("t.csv", b"PK\x03\x04\x14", "it is a zip archive"),
    ],
)
def test_files_that_are_no_text_are_told_by_their_beginning(tmp_path: Path, name: str, start: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(start + bytes(range(256)))
    with pytest.raises(Error, match=told):
        minidsms.declaration(tmp_path / name)
    if name != "t.db":
        with minidsms.connect() as db, pytest.raises(Error, match=told):
            db.execute(f"CREATE RELATION R (a INTEGER) FROM '{tmp_path / name}'")


def test_files_of_other_machines_are_not_looked_at() -> None:
    with pytest.raises(Error, match="only files of this machine"):
        minidsms.declaration("https://example.invalid/x.csv")


@pytest.mark.parametrize(
    ("header", "columns", "told"),
    [
        (" at , v ,w", "at INTEGER, v INTEGER, w TEXT", ""),
        (",at,w", "at INTEGER, w TEXT", "column 1 is left out: it has no name"),
        ("at,v,", "at INTEGER, v INTEGER", "column 3 is left out: it has no name"),
        ("at,2019,w", "at INTEGER, `2019` INTEGER, w TEXT", "WITH (header = FALSE)"),
    ],
)
def test_what_the_first_line_names_is_declared(tmp_path: Path, header: str, columns: str, told: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n1,2,x\n")
    declaration, reasons = proposal_for(str(path))
    assert f"({columns})" in declaration
    assert not reasons if not told else any(told in each for each in reasons)
    with minidsms.connect() as db:
        q = db.execute(f"{declaration}; SELECT * FROM t")
        db.run()
        assert len(q.fetch()) == 1


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


NAMES = (
    "select", "group", "symmetric", "1", " ", "a b", 'a"b', "a`b", "a'b", "a\nb", "a\x00b", "a--b", "/*", "x;y", "?",
    ":x", "*", "a.b", "ß", "日本", "\u2028", "\ufeffa",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_table_may_have_columns_of_any_name(name: str) -> None:
    table = pa.table({name: [5], "other": [6]})
    with minidsms.connect() as db:
        db.execute(minidsms.declaration(table, name))
        q = db.query("SELECT * FROM `" + name.replace("`", "``") + "`")
        db.push(name, table, ts=1)
        db.advance(1)
        assert q.snapshot() == [(5, 6)] and list(q.schema.names) == [name, "other"]


ODD = {
    "binary": (pa.array([b"x"]), None),
    "uuid": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16))), None),
    "map": (pa.array([[(1.5, 2)]], pa.map_(pa.float64(), pa.int64())), None),
    "clash": (pa.array([{"a": 1, "A": 2}]), None),
    "unnamed": (pa.array([{"": 1}]), None),
    "empty": (pa.array([{}], pa.struct([])), None),
    "inside": (pa.array([[b"x"]]), None),
    "time": (pa.array([3_600], pa.time32("s")), time(1)),
    "fixed": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [1, 2]),
    "view": (pa.array([[1, 2]], pa.list_view(pa.int64())), [1, 2]),
    "coded": (pa.array([7]).dictionary_encode(), 7),
    "runs": (pc.run_end_encode(pa.array([7])), 7),
    "json": (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])), "{}"),
    "large": (pa.array([2**64 - 1], pa.uint64()), Decimal(2**64 - 1)),
    "texts": (pa.array([["x"]], pa.list_(pa.large_string())), ["x"]),
}


@pytest.mark.parametrize("kind", ["table", "arrow"])
@pytest.mark.parametrize("name", ODD)
def test_what_no_type_holds_is_left_out_and_all_else_is_read(tmp_path: Path, name: str, kind: str) -> None:
    column, value = ODD[name]
    path, table = tmp_path / "t.arrow", pa.table({"at": [1], "v": column})
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    text = minidsms.declaration(path if kind == "arrow" else table, "T")
    assert ("-- v is left out: no type here holds " in text) == (value is None)
    with minidsms.connect() as db:
        db.execute(text)
        q = db.query("SELECT ISTREAM(*) FROM T [NOW]")
        if kind == "arrow":
            db.run()
        else:
            assert "; push the table without it\n" in text or value is not None
            db.push("T", table if value is not None else table.select(["at"]))
            db.advance(1)
        assert [row for _, _, row in q.fetch()] == [(1,) if value is None else (1, value)]


def test_columns_without_a_name_of_their_own_are_left_out(tmp_path: Path) -> None:
    table = pa.table([[1], [2], [3], [4]], names=["k", "a", "A", ""])
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    text = minidsms.declaration(path)
    assert 'column 3 is left out: "A" is the name of another one, too' in text and "column 4 is left out" in text
    with minidsms.connect() as db:
        db.execute(text)
        q = db.query("SELECT * FROM t")
        db.run()
        assert q.snapshot() == [(1,)]
    for none, reason in (
        (table.select([]), "it has none"),
        (table.select([1, 2]), "another one"),
        (table.select([3]), ""),
    ):
        with pytest.raises(Error, match=f"there is no column to declare: .*{reason}"):
            minidsms.declaration(none)


@pytest.mark.parametrize(
    ("row", "is_one"),
    [
        ("1577836800,01.02.2020", False),
        ("1577836800,1577836800123", False),
        ("1577836800123,1577836800", False),
        ("01.02.2020,2020-01-01T00:00:00", False),
        ("2020-01-01T00:00:00,01.02.2020", False),
        ("01.02.2020,02.02.2020", True),
        ("1577836800,1577836801", True),
        ("1577836800,2020-01-01T00:00:00", True),
        ("2020-01-01T00:00:00,1577836800", True),
    ],
)
def test_of_times_of_two_forms_the_second_are_none(tmp_path: Path, row: str, is_one: bool) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"at,t\n{row}\n{row}\n")
    text = minidsms.declaration(path)
    assert ("-- t: its times are written otherwise than those before, so it is " in text) == (not is_one)
    with minidsms.connect() as db:
        q = db.execute(f"{text}; SELECT at FROM t")
        db.run()
        assert len(q.fetch()) == 2


def test_a_name_of_a_file_may_stand_on_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf"a\nb","c ""d""\r\n"\r\n1,"x\ny"\r\nz,w\r\n')
    with minidsms.connect() as db:
        q = db.execute(f"{minidsms.declaration(path)}; SELECT * FROM t")
        assert list(q.schema.names) == ["a\nb", 'c "d"\r\n']
        db.run()
        assert sorted(q.snapshot()) == [("1", "x\ny"), ("z", "w")]
    path.write_text('"a,b\n1,2\n')  # a quote that nothing closes
    with minidsms.connect() as db, pytest.raises(Error, match='no column "b"'):
        db.execute(f"CREATE RELATION t (b INTEGER) FROM '{path}'")


@pytest.mark.parametrize("text", ["\n1,2\n3,4\n", "", "\ufeff\r\nk\n", "k,sign,Sign\n1,1,1\n", "k,TS,ts\na,1,1\n"])
def test_what_could_not_be_read_as_declared_is_not_proposed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(Error, match=r"first line is empty|it is empty|is the name of another one, too; the files of"):
        minidsms.declaration(path)


@pytest.mark.parametrize("values", [["1", "x", "3", "4"], [str(2**63 - 1)], [str(-(2**62))]])
def test_numbers_that_are_no_instants_are_not_taken_for_such(tmp_path: Path, values: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{text}\n" for text in ("timestamp", *values)))
    text = minidsms.declaration(path)
    assert "CREATE RELATION t (timestamp INTEGER)" in text
    with minidsms.connect() as db:
        db.execute(text)
        db.run()


@pytest.mark.parametrize(
    ("text", "line"),
    [('[{"at": 1},\n{"at": 2},\n{"at": 3}]', 1), ("\n [ \n{}]", 2), ("\n\n\n[{}]", 4), ("[", 1), ("\ufeff[{}]", 1)],
)
def test_an_array_of_objects_is_no_file_of_lines(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(Error, match=rf"a JSON array begins in line {line}\nhelp: .*jq -c"):
        proposal_for(str(path))
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION t (at INTEGER) FROM '{path}'")
        for _ in range(2):
            with pytest.raises(Error, match=rf"line {line}: (a JSON array begins|no JSON object)\nhelp: .*jq -c"):
                db.run()


@pytest.mark.parametrize("first", ["[INFO] began", "[1, 2]", "[]"])
def test_a_first_line_in_brackets_costs_that_line_alone(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(first + '\n{"at": 1}\n')
    with minidsms.connect() as db:
        q = db.execute(f"CREATE RELATION t (at INTEGER) FROM '{path}'; SELECT * FROM t")
        db.run()
        assert q.snapshot() == [(1,)] and db.stream_input("t").counters.rejected == 1


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


NESTED = [
    (['{"a": 1, "b": "x"}', '{"a": 2}', "null"], "STRUCT(a INTEGER, b TEXT)"),
    (['["x"]', "[]", "null"], "TEXT[]"),
    (['[{"p": 1}]', '[{"p": 1.5, "t": "2024-05-01T00:00:00"}]'], "STRUCT(p FLOAT, t TEXT)[]"),
    (['{"k": 1}', '{"l": 2}', "{}"], "MAP(TEXT, INTEGER)"),
    (['{"k": 1, "l": 2}', '{"l": 2}'], "STRUCT(k INTEGER, l INTEGER)"),
    (["[]", "[]"], "TEXT"),
    (["{}", "{}"], "TEXT"),
    (['{"a": null}', '{"a": []}'], "TEXT"),
    (['{"a": 1, "A": 2}', '{"a": 1}'], "TEXT"),
    (['{"": 1}', '{"": 2}'], "TEXT"),
    (["[" * 17 + "1" + "]" * 17], "TEXT"),
    (['{"a": 1}', '{"a": "x", "b": []}', "[1]"], "TEXT"),
]


@pytest.mark.parametrize("texts", [['{"a": 1}', '"x"', "5"], ["5", "[1]"], ['"x"', "true", "null"], ["1", '"y"']])
def test_a_json_column_of_several_types_is_proposed_as_text_that_says_what_it_refuses(
    tmp_path: Path, texts: list[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text("".join(f'{{"at": {i}, "p": {text}}}\n' for i, text in enumerate(texts)))
    declared, reasons = proposal_for(str(path))
    assert "(at INTEGER, p TEXT)" in declared
    assert any("rows with a number or a boolean are refused" in reason for reason in reasons)
    values = [json.loads(text) for text in texts]
    kept = [(i, None if v is None else v if isinstance(v, str) else texts[i]) for i, v in enumerate(values)]
    assert _read_as_proposed(path) == [row for row in kept if not isinstance(values[row[0]], int)]


def test_a_comma_behind_a_json_object_is_told_where_a_declaration_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('\n{"at": 1},\n{"at": 2}\n')
    with pytest.raises(Error, match="line 2: no JSON object, for a comma stands behind it"):
        proposal_for(str(path))


@pytest.mark.parametrize(("texts", "type_"), NESTED)
def test_what_is_nested_in_json_is_proposed_as_it_is_or_as_text_where_its_types_differ(
    tmp_path: Path, texts: list[str], type_: str
) -> None:
    path = tmp_path / "t.json"
    path.write_text("".join(f'{{"at": {i}, "p": {text}, "q": [1]}}\n' for i, text in enumerate(texts)))
    declared, reasons = proposal_for(str(path))
    assert f"(at INTEGER, p {type_}, q INTEGER[])" in declared
    why = "has no one type, so it is TEXT" if type_ == "TEXT" else f"p: {type_}, as in the first {len(texts)} rows"
    assert any(why in reason for reason in reasons)
    values = [json.loads(text) for text in texts]
    if type_ == "TEXT":
        assert _read_as_proposed(path) == [(i, str(text), [1]) for i, text in enumerate(texts)]
        return
    read = [row[1] for row in _read_as_proposed(path)]
    assert len(read) == len(values)
    for found, value in zip(read, values):
        if isinstance(value, dict):
            assert {k: v for k, v in found.items() if v is not None} == value
        elif not value or not isinstance(value[0], dict):
            assert found == value


def test_a_column_called_like_an_instant_whose_values_fall_is_told_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ts,v\n3,1\n5,2\n4,3\n")
    declared, reasons = proposal_for(str(path))
    assert declared.startswith("CREATE RELATION")
    assert any("ts: 4 stands behind 5" in each and "TIMESTAMP BY ts SLACK n" in each for each in reasons)


@pytest.mark.parametrize(
    ("values", "number"),
    [
        (["1.234,50", "12,00", "-7"], "CAST(REPLACE(REPLACE(v, '.', ''), ',', '.') AS FLOAT)"),
        (["1,234.50", "12.00", "-7"], "CAST(REPLACE(v, ',', '') AS FLOAT)"),
        (["1.234.567", "12", "-7"], "CAST(REPLACE(REPLACE(v, '.', ''), ',', '.') AS FLOAT)"),
    ],
)
def test_numbers_with_marks_between_thousands_are_texts_and_told(
    tmp_path: Path, values: list[str], number: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("k;v\n" + "".join(f"a;{value}\n" for value in values))
    declared, reasons = proposal_for(str(path))
    assert "v TEXT" in declared and any(number in each for each in reasons)
    with minidsms.connect() as db:
        db.execute(declared)
        q = db.query(f"SELECT {number} FROM t")
        db.run()
        plain = [
            v.replace(".", "").replace(",", ".") if number.count("REPLACE") == 2 else v.replace(",", "") for v in values
        ]
        assert sorted(q.snapshot()) == sorted((float(text),) for text in plain)


def test_iso_times_beside_those_of_another_form_are_texts_that_can_be_cast(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("at,iso\n01.02.2020 10:00,2020-02-01T10:00:00Z\n")
    declared, reasons = proposal_for(str(path))
    assert any("CAST(iso AS TIMESTAMP) reads ISO times" in each for each in reasons)
    with minidsms.connect() as db:
        db.execute(declared)
        q = db.query("SELECT at = CAST(iso AS TIMESTAMP) FROM t")
        db.run()
        assert [change.row for change in q.fetch()] == [(True,)]
        wrong = declared.replace("iso TEXT", "iso TIMESTAMP").replace("STREAM t", "STREAM u")
        with pytest.raises(Error, match=r"is of all times of a file: declare others TEXT"):
            db.execute(wrong), db.run()


@pytest.mark.parametrize("line", ["no JSON", '{"p": ' + "[" * 100_000, '{"p": ' + "9" * 5000 + "}"])
def test_a_line_that_cannot_be_read_is_an_error_that_tells_its_row(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(f'{{"p": {{"a": 1}}}}\n{{"p": {{"a": "x"}}}}\n{line}\n')
    with pytest.raises(minidsms.Error, match=r"in row 1|line 3: no JSON object"):
        proposal_for(str(path))


def _read_as_proposed(path: Path) -> list[tuple[Any, ...]]:
    with minidsms.connect() as db:
        db.execute(proposal_for(str(path))[0])
        found = db.query("SELECT ISTREAM(*) FROM t [NOW]")
        db.run()
        return [change.row for change in found.fetch()]


@pytest.mark.parametrize("pattern", ["", "/", "/*.csv"])
def test_of_a_folder_or_a_pattern_the_first_file_is_looked_at_and_all_are_declared(
    tmp_path: Path, pattern: str
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, second in (("a.csv", 1), ("b.csv", 2)):
        (folder / name).write_text(f"at,v\n2026-01-01 00:00:0{second},{second}\n")
    path = f"{folder}{pattern}"
    declaration, reasons = proposal_for(path)
    assert declaration.startswith("CREATE STREAM logs (at TIMESTAMP, v INTEGER)") and path in declaration
    [told] = reasons
    assert f"{folder / 'a.csv'} was looked at, the first of the files" in told
    with minidsms.connect() as db:
        db.execute(minidsms.declaration(path))
        q = db.query("SELECT v FROM logs")
        db.run()
        assert [row for _, _, row in q.fetch()] == [(1,), (2,)]


def test_a_pattern_that_fits_no_file_is_no_file_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(Error, match="no file fits"):
        minidsms.declaration(tmp_path / "*.csv")


def test_safe_mode_looks_at_no_file_that_a_link_in_an_allowed_folder_leads_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret.csv").write_text("at,v\n2026-01-01 00:00:01,1\n")
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "a.csv").symlink_to(tmp_path / "secret.csv")
    assert main(["--safe", "--allow", str(allowed), "-c", f".schema '{allowed}'"]) == 1
    assert "may not be touched" in capsys.readouterr().err
