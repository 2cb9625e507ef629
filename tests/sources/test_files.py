"""Files as sources: every format gives the same rows, malformed rows are counted with their line, errors name the
file."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

import minidsms
from minidsms.cql.errors import Error
from minidsms.elements import Schema, Type
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources import json_rows
from minidsms.sources.blocks import Block, BlockReader, Marks
from minidsms.sources.csv_rows import CsvRows
from minidsms.sources.json_rows import JsonRows
from minidsms.sources.opening import open_source
from minidsms.sources.text_file import CsvSource, JsonSource

SCHEMA = Schema.of(("at", Type.TIMESTAMP), ("v", Type.FLOAT), ("name", Type.TEXT))
ROWS = [(1, 1.5, "a"), (2, None, "b, c"), (3, 2.0, None)]
CSV = 'name,extra,At,V\na,9,1,1.5\n"b, c",9,2,\n,9,3,2.0\n'
fuzzed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(source: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in source.read() for row in batch.to_pylist()]


def reasons(source: Any) -> list[str]:
    return [reason for _, reason in source.rejected]


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"at": [1, 2, 3], "V": [1.5, None, 2.0], "extra": [9, 9, 9], "Name": ["a", "b, c", None]})


def write(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".json":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif path.suffix == ".arrow":
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".ipc":
        with ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(CSV.encode()))
    else:
        path.write_text(CSV)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.json", "x.parquet", "x.arrow", "x.ipc"])
def test_every_format_gives_the_same_rows(tmp_path: Path, table: pa.Table, name: str) -> None:
    path = tmp_path / name
    write(path, table)
    source = open_source(str(path), None, SCHEMA)
    assert rows_of(source) == ROWS
    assert source.bytes_read == source.bytes_total > 0
    assert source.rejected.count == 0


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.parquet", "x.arrow"])
def test_the_content_tells_the_format_where_the_name_does_not(tmp_path: Path, table: pa.Table, name: str) -> None:
    write(tmp_path / name, table)
    (tmp_path / name).rename(tmp_path / "data")
    assert rows_of(open_source(str(tmp_path / "data"), None, SCHEMA)) == ROWS


def test_stream_data_files_carry_ts_and_sign_beside_the_columns(tmp_path: Path) -> None:
    schema = Schema.of(("A", Type.INTEGER), ("D", Type.TEXT))
    (tmp_path / "s.data").write_text("i,i,c4\n1,5,ab\n2,6,\n")
    (tmp_path / "r.data").write_text("i,b,i,c4\n1,+,5,ab\n2,-,5,ab\n")
    assert rows_of(open_source(str(tmp_path / "s.data"), None, schema)) == [(5, "ab", 1), (6, "", 2)]
    relation = open_source(str(tmp_path / "r.data"), None, schema, relation=True)
    assert rows_of(relation) == [(5, "ab", 1, "+"), (5, "ab", 2, "-")]


@pytest.mark.parametrize("line", ["i,i", "i,i,c4,i", "i,c4,i"])
def test_stream_data_whose_types_do_not_fit_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.data").write_text(line + "\n")
    with pytest.raises(Error, match="first line"):
        open_source(str(tmp_path / "s.data"), "stream", Schema.of(("A", Type.INTEGER), ("D", Type.TEXT)))


def test_a_missing_file_folder_column_or_format_is_an_error_with_a_hint(tmp_path: Path, table: pa.Table) -> None:
    with pytest.raises(Error, match=r"no file .*nothing.csv(.|\n)*help"):
        open_source(str(tmp_path / "nothing.csv"), None, SCHEMA)
    with pytest.raises(Error, match="folder"):
        open_source(str(tmp_path), None, SCHEMA)
    with pytest.raises(Error):
        open_source("a\0b", None, SCHEMA)
    write(tmp_path / "x.csv", table)
    with pytest.raises(Error, match=r'no column "vv"(.|\n)*did you mean "V"'):
        open_source(str(tmp_path / "x.csv"), None, Schema.of(("vv", Type.INTEGER)))
    with pytest.raises(Error, match="formats are"):
        open_source(str(tmp_path / "x.csv"), "xml", SCHEMA)
    (tmp_path / "empty").write_text("")
    with pytest.raises(Error, match="FORMAT"):
        open_source(str(tmp_path / "empty"), None, SCHEMA)
    for name in ("bad.parquet", "bad.arrow", "bad.csv.gz"):
        (tmp_path / name).write_bytes(b"PAR1 nonsense")
        with pytest.raises(Error, match="bad"):
            rows_of(open_source(str(tmp_path / name), None, SCHEMA))


@pytest.mark.parametrize("names", ["ts,k,sign", "_ts,k,_sign"])
def test_a_relation_finds_its_ts_and_sign_columns(tmp_path: Path, names: str) -> None:
    (tmp_path / "r.csv").write_text(f"{names}\n1,7,+\n2,7,-1\n")
    source = open_source(str(tmp_path / "r.csv"), None, Schema.of(("k", Type.INTEGER)), relation=True)
    assert [tuple(row.items()) for batch in source.read() for row in batch.to_pylist()] == [
        (("k", 7), ("_ts", 1), ("_sign", "+")),
        (("k", 7), ("_ts", 2), ("_sign", "-1")),
    ]


def test_malformed_csv_rows_are_kept_with_their_line_and_do_not_stop_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'at,v,name\n1,1,a\nx,1,b\n\n2,1\n3,nope,c\n4,1,"q\nr"\n5,1,\xff\n6,1,d,9\n7,,z')
    source = open_source(str(path), None, SCHEMA)
    assert rows_of(source) == [(1, 1.0, "a"), (4, 1.0, "q\nr"), (7, None, "z")]
    assert [reason.split("line ")[1].split(":")[0] for reason in reasons(source)] == ["3", "5", "6", "9", "10"]
    assert str(path) in reasons(source)[0]


def test_an_unclosed_quote_costs_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('at,v,name\n1,1,a\n2,1,"open\n3,1,c\n4,1,d\n')
    source = open_source(str(path), None, SCHEMA)
    assert [row[0] for row in rows_of(source)] == [1, 3, 4]
    assert source.rejected.count == 1


def test_an_empty_csv_field_is_null_and_a_quoted_one_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('at,v,name\n1,,\n2,"",""\n')
    assert rows_of(open_source(str(tmp_path / "x.csv"), None, SCHEMA)) == [(1, None, None), (2, None, "")]


def test_iso_times_are_read_in_csv_and_json(tmp_path: Path) -> None:
    schema = Schema.of(("at", Type.TIMESTAMP))
    texts = ["2024-05-01T12:00:00Z", "2024-05-01 12:00:00.5", "2024-05-01T12:00:00.123456789Z", "2024-05-01"]
    for end in ("", "never"):
        lines = texts + ([end] if end else [])
        (tmp_path / "x.csv").write_text("at\n" + "".join(f"{t}\n" for t in lines))
        (tmp_path / "x.json").write_text("".join(json.dumps({"at": t}) + "\n" for t in lines))
        for name in ("x.csv", "x.json"):
            source = open_source(str(tmp_path / name), None, schema)
            (batch,) = source.read()
            ns = batch.column(0).cast(pa.timestamp("ns", "UTC")).cast(pa.int64()).to_pylist()
            first = 1_714_564_800 * 10**9
            assert ns == [first, first + 5 * 10**8, first + 123_456_789, first - 12 * 3600 * 10**9]
            assert source.rejected.count == len(lines) - 4


def test_malformed_json_lines_are_kept_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    deep = "[" * 50_000
    lines = ['{"at":1,"v":1}', "nonsense", '{"at":2,"v":"x"}', "", "[1]", '{"at":3,"name":"c"}', deep, '{"at":"x"}']
    path.write_text("\n".join(lines))
    source = open_source(str(path), None, SCHEMA)
    assert rows_of(source) == [(1, 1.0, None), (3, None, "c")]
    assert [reason.split("line ")[1].split(":")[0] for reason in reasons(source)] == ["2", "3", "5", "7", "8"]


def test_a_comma_behind_a_json_object_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"at":1},\n{"at":2} , \nx,\n{"at":3}')
    source = open_source(str(path), None, SCHEMA)
    assert rows_of(source) == [(3, None, None)]
    commas = ["a comma stands behind it" in reason for reason in reasons(source)]
    assert commas == [True, True, False]


BEYOND = [
    ("STRUCT(x INTEGER)", '{"y": [1], "X": 1, "": {}}', {"x": 1}),
    ("STRUCT(x INTEGER)[]", '[{"y": 2}, null, {"x": 1, "y": {"x": 2}}]', [{"x": None}, None, {"x": 1}]),
    ("MAP(TEXT, STRUCT(x INTEGER))", '{"y": {"x": 1, "y": 2}}', {"y": {"x": 1}}),
    ("STRUCT(s STRUCT(x INTEGER), l INTEGER[])", '{"s": {"x": 1, "l": 2}, "l": [1]}', {"s": {"x": 1}, "l": [1]}),
    ("STRUCT(s STRUCT(x INTEGER), l INTEGER[])", '[{"x": 1, "y": 2}, [1]]', {"s": {"x": 1}, "l": [1]}),
    ("MAP(TEXT, STRUCT(x INTEGER))", '[["y", {"x": 1, "y": 2}]]', {"y": {"x": 1}}),
]


@pytest.mark.parametrize(("type_", "text", "value"), BEYOND)
def test_members_beyond_the_fields_of_a_struct_are_ignored_as_those_beyond_columns(
    tmp_path: Path, type_: str, text: str, value: object
) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"n": {text}, "more": 1}}\n{{"n": null}}\n{{"n": 7}}\n')
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (n {type_}) FROM '{path}'; CREATE STREAM S (n {type_})")
        q = db.query("SELECT n FROM R")
        db.run()
        assert sorted((row[0] for row in q.snapshot()), key=str) == sorted([value, None], key=str)
        assert db.stream_input("R").counters.rejected == 1
        with pytest.raises(Error, match=r"is no field of|cannot be read as"):
            db.push("S", [(json.loads(text),), ({"more": 1},)], ts=1)


@pytest.mark.parametrize(("type_", "text", "value"), BEYOND)
def test_they_are_ignored_wherever_a_text_is_read_as_json(tmp_path: Path, type_: str, text: str, value: object) -> None:
    quoted = text.replace('"', '""')
    (tmp_path / "x.csv").write_text(f'n\n"{quoted}"\n')
    (tmp_path / "x.json").write_text(json.dumps({"n": text}))
    with minidsms.connect() as db:
        for name, origin in (("A", "x.csv"), ("B", "x.json")):
            db.execute(f"CREATE RELATION {name} (n {type_}) FROM '{tmp_path / origin}'")
        db.execute(f"CREATE RELATION C (n {type_}); CREATE STREAM D (j TEXT)")
        q = db.query("SELECT n FROM A UNION ALL SELECT n FROM B UNION ALL SELECT n FROM C")
        cast = db.query(f"SELECT CAST(j AS {type_}) FROM D")
        db.run()
        db.push("C", [(text,)], ts=0)
        db.execute(f"INSERT INTO C VALUES ('{text}')")
        db.push("D", [(text,)], ts=0)
        db.advance(0)
        assert [row[0] for row in q.snapshot()] == [value] * 4
        assert [change.row[0] for change in cast.fetch()] == [value]


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("bad", [[], ["x"]])
@pytest.mark.parametrize("near", [[], ["2024-01-01 00:00:00.000000001Z"]])
def test_instants_of_all_years_are_read_also_beside_one_that_is_none(
    tmp_path: Path, form: str, bad: list[str], near: list[str]
) -> None:
    path = tmp_path / f"x.{form}"
    times = ["0001-01-01 00:00:00Z", *bad, "1970-01-01 00:00:00.001Z", *near, "9999-12-31 23:59:59.999Z"]
    rows = [json.dumps({"at": i, "t": time}) if form == "json" else f"{i},{time}" for i, time in enumerate(times)]
    path.write_text("\n".join(([] if form == "json" else ["at,t"]) + rows))
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, t TIMESTAMP) TIMESTAMP BY at FROM '{path}'")
        query = db.query("SELECT ISTREAM(t) FROM S [NOW]")
        db.run()
        found = [change.row[0] for change in query.fetch()]
        assert found == [-62135596800000, 1, *([1704067200000] * len(near)), 253402300799999]
        assert len(db.stream_input("S").rejected) == len(bad)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ laws

FOUR = Schema.of(("i", Type.INTEGER), ("f", Type.FLOAT), ("b", Type.BOOLEAN), ("t", Type.TEXT))
field = st.sampled_from(
    ["", "0", "-7", "1.5", "true", "x", '"', '""', '"a"', '"a\nb"', '"x,y"', 'a"b', " 3 ", "+4", "1e3", "nan", "\r"]
) | st.text(st.sampled_from('ab,"\n\r 1.é'), max_size=4)


@fuzzed
@given(st.lists(st.lists(field, min_size=3, max_size=5), max_size=12), st.integers(1, 40))
@example([["", "", "", '"a\n', "\nb"]], 3)
@example([["", '"a\nb"', '"a\nb"'], ["", "", ""]], 1)
def test_blocks_cut_anywhere_give_the_same_rows(tmp_path: Path, lines: list[list[str]], size: int) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"i,f,b,t\n" + "\n".join(map(",".join, lines)).encode())
    whole, cut = CsvSource(str(path), FOUR), CsvSource(str(path), FOUR, block_bytes=size)
    # As text: a FLOAT may be NaN here still.
    assert repr(rows_of(cut)) == repr(rows_of(whole))
    assert list(cut.rejected) == list(whole.rejected)


@fuzzed
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.booleans(),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1),
        ),
        max_size=10,
    ),
    st.booleans(),
)
def test_what_csv_writers_write_is_read_back_also_beside_a_bad_row(
    tmp_path: Path, rows: list[tuple[Any, ...]], with_bad_row: bool
) -> None:
    path = tmp_path / "x.csv"
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(FOUR.names)
    for i, f, b, t in rows:
        writer.writerow([i, None if f is None else repr(f), None if b is None else str(b).lower(), t])
    if with_bad_row:
        writer.writerow(["bad", 1, "true", "x"])
    path.write_bytes(text.getvalue().encode())
    source = CsvSource(str(path), FOUR)
    # A line of empty fields only is a row of NULLs.
    assert rows_of(source) == rows
    assert source.rejected.count == int(with_bad_row)


NUMBERS = [
    "7", "+7", "-7", "-007", "0x10", "-0x1", "0X1F", "1_000", "1e3", "7.0", ".5", "5.", "+.5", "+-7", "--7", "++7", "+",
    "inf", "-Infinity", "nan", "NaN", "1e400", "0b1", "7L", "x", "9223372036854775808", " 7 ", "+ 7",
]  # fmt: skip


TRUTHS = ["true", "T", "Yes", "YES", "yEs", " y ", "1", "FALSE", "f", "No", "n", "0", "tRUE", "ye", "on", "2", "true1"]


@pytest.mark.parametrize("neighbours", ["", "x,x,x,0x0\n", "1,1,true,0x0\n", "1,1,1,\n"])
@pytest.mark.parametrize("text", [*NUMBERS, *TRUTHS])
def test_csv_reads_numbers_and_truths_as_cast_does(tmp_path: Path, text: str, neighbours: str) -> None:
    path = tmp_path / "x.csv"
    for column, type_ in enumerate((Type.INTEGER, Type.FLOAT, Type.BOOLEAN)):
        fields = ["1", "1", "1", "end"]
        fields[column] = text
        path.write_text(f"i,f,b,t\n{neighbours}{','.join(fields)}\n")
        schema = Schema.of(("i", Type.INTEGER), ("f", Type.FLOAT), ("b", Type.BOOLEAN), ("t", Type.TEXT))
        found = [row[column] for row in rows_of(CsvSource(str(path), schema)) if row[3] == "end"]
        try:
            cast = list(minidsms.connect().execute(f"SELECT CAST('{text}' AS {type_})").rows[0])
        except minidsms.Error:
            cast = []
        assert [None if value != value else value for value in found] == cast  # NaN becomes NULL as it is pushed


@fuzzed
@given(st.lists(st.tuples(field, field, field), min_size=1, max_size=6))
def test_a_row_is_read_the_same_beside_good_and_bad_neighbours(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    schema = Schema(FOUR.fields[:3])
    plain = [row for row in rows if not any(c in '"\n\r,' for text in row for c in text) and any(row)]
    path = tmp_path / "x.csv"
    alone = []
    for row in plain:
        path.write_bytes(b"i,f,b\n" + ",".join(row).encode() + b"\n")
        alone += rows_of(CsvSource(str(path), schema))
    path.write_bytes(b"i,f,b\n" + "\n".join(map(",".join, [*plain, ("bad", "", "")])).encode())
    assert repr(rows_of(CsvSource(str(path), schema))) == repr(alone)


@fuzzed
@given(
    st.lists(
        st.lists(st.sampled_from(["1", "-2", "x", "", '""', '"a,b"', "2013-01-01", "é", "2013-02-30 1:2"]), max_size=5),
        max_size=9,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_lines_read_at_once_are_the_rows_and_rejects_read_one_by_one(rows: list[list[str]], end: str) -> None:
    schema = Schema.of(("i", Type.INTEGER), ("t", Type.TEXT), ("at", Type.TIMESTAMP))
    block = Block("".join(",".join(row) + end for row in rows).encode(), 2)
    reader = CsvRows("x.csv", schema, RejectedRows())
    reader.take_header(b"t,i,other,at", False)
    lines, fields, rejects = reader._fields_one_by_one(block)
    batch, rejected = reader._batch_of(lambda: lines, fields, rejects)
    for are_typed in (True, False):
        try:
            at_once = reader._parse(block, are_typed)
        except (pa.ArrowInvalid, UnicodeError):
            # Of the typed, because of the integer; of both where no row is a row.
            is_typed_text = are_typed and any(len(row) == 4 and row[1] not in ("1", "-2", "") for row in rows)
            assert is_typed_text or not any(any(row) and len(row) == 4 for row in rows)
        else:
            assert (at_once[0].to_pylist(), at_once[1]) == (batch.to_pylist(), rejected)


json_value = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([1]) | st.just({"i": 1})
)


@fuzzed
@given(
    st.lists(st.dictionaries(st.sampled_from(["i", "F", "b", "t", "x"]), json_value) | st.just("broken"), max_size=8),
    st.integers(1, 60),
)
def test_json_blocks_cut_anywhere_give_the_same_rows(tmp_path: Path, objects: list[Any], size: int) -> None:
    path = tmp_path / "x.json"
    path.write_text("".join(o + "\n" if isinstance(o, str) else json.dumps(o) + "\n" for o in objects))
    whole, cut = JsonSource(str(path), FOUR), JsonSource(str(path), FOUR, block_bytes=size)
    count = len(rows_of(whole)) + whole.rejected.count
    assert len(rows_of(cut)) + cut.rejected.count == count == len(objects)


@fuzzed
@given(st.lists(st.sampled_from(["broken", "", "1", "x", "2013-01-01", "2013-01-01T00:00:00.000000001Z"]), max_size=9))
def test_json_lines_read_in_parts_are_the_rows_and_rejects_read_line_by_line(values: list[str]) -> None:
    block = Block("".join(f'{{"at": "{v}", "i": 1}}\n' if v != "broken" else f"{v}\n" for v in values).encode(), 2)
    reader = JsonRows("x.json", Schema.of(("at", Type.TIMESTAMP), ("i", Type.INTEGER)), RejectedRows())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "_FEW", 1)
        batch, rejects = reader.parse(block)
    careful, rejected = reader._salvage(block)
    assert [row["i"] for row in batch.to_pylist()] == [row["i"] for row in careful.to_pylist()] and rejects == rejected
    if careful.num_rows:
        instants = [each.column(0).cast(pa.timestamp("ns", "UTC")) for each in (batch, careful)]
        assert instants[0].equals(instants[1])


NESTED = {
    text: text
    for text in (
        "{}",
        "[ ]",
        '{"a" : 1.10, "t":[-0.0,1e5,"}\\"]"]}',
        '[{"a":null} , 12345678901234567890.123, {"a": 1, "a":2}]',
        '{"\\u0061\\ud800":"ü😀"}',
        "[" * 200 + "]" * 200,
    )
} | {"null": None, '"{}"': "{}", '"a\\"b"': 'a"b'}
"""What stands in JSON, and the TEXT it is."""
NO_TEXTS = ("1", "true", "[NaN]", '{"a": -Infinity}', "[" * 201 + "]" * 201, '["\\ud8')


@fuzzed
@given(
    st.lists(st.tuples(st.sampled_from([*NESTED, *NO_TEXTS]), st.sampled_from(['"t"', ' "\\u0074" '])), max_size=9),
    st.booleans(),
    st.sampled_from([1, 40, 1 << 20]),
)
def test_what_is_nested_in_json_is_a_text_as_it_is_written(
    tmp_path: Path, values: list[tuple[str, str]], exact: bool, size: int
) -> None:
    path = tmp_path / "x.json"
    lines = [f' {{"i": {i}, "t": 1,{name}: {text} , "x": [{text}] }}' for i, (text, name) in enumerate(values)]
    path.write_text("".join(f"{line}\n" for line in ['{"i": -1, "t": "a"}', *lines]))
    schema = Schema.of(("i", Type.INTEGER), ("t", Type.TEXT), *([("d", Type.decimal(9, 2))] if exact else []))
    source = JsonSource(str(path), schema, block_bytes=size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "_FEW", 1)
        found = [row[:2] for row in rows_of(source)]
    assert found == [(-1, "a")] + [(i, NESTED[text]) for i, (text, _) in enumerate(values) if text in NESTED]
    assert source.rejected.count == sum(text in NO_TEXTS for text, _ in values)


@fuzzed
@given(st.binary(max_size=200), st.sampled_from(["csv", "json", "parquet", "arrow", "stream", None]))
def test_whatever_a_file_holds_only_our_errors_escape(tmp_path: Path, content: bytes, format: str | None) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    try:
        rows_of(open_source(str(path), format, FOUR))
    except Error as error:
        assert str(path) in str(error)
    path.write_bytes(b"i,f,b,t\n" + content)
    rows_of(open_source(str(path), "csv", FOUR))
    path.write_bytes(b'{"i":1}\n' + content)
    rows_of(open_source(str(path), "json", FOUR))


@pytest.mark.parametrize("content", [b'null{"i":1}\xed\xa0\x80', b'null/\n\t ]}{"i":1}', b'{"i":1}\n null\x00'])
def test_a_null_that_is_no_row_is_rejected_instead_of_ending_the_process(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"i":7}\n' + content)
    source = JsonSource(str(path), FOUR)
    assert rows_of(source)[0][0] == 7
    assert source.rejected.count >= 1
    path.write_bytes(content)
    assert len(rows_of(JsonSource(str(path), FOUR))) <= 1


@fuzzed
@given(st.binary(max_size=60).map(lambda b: b.replace(b"x", b'"').replace(b"y", b"\n")), st.integers(1, 9))
def test_every_byte_is_in_one_block(tmp_path: Path, content: bytes, size: int) -> None:
    reader = BlockReader("x", io.BytesIO(content), Marks(), size)
    blocks = list(reader.blocks())
    assert b"".join(block.data for block in blocks) == content
    line = 1
    for block in blocks:
        assert block.first_line == line
        line += block.data.count(b"\n")


def test_a_large_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    n = 300_000
    path.write_text("i,f,b,t\n" + "".join(f"{i},1.5,true,text {i % 10}\n" for i in range(n)))
    source = CsvSource(str(path), FOUR, block_bytes=1 << 20)
    sizes, total = [], 0
    for batch in source.read():
        sizes.append(batch.num_rows)
        total += int(np.sum(batch.column(0).to_numpy()))
    assert len(sizes) > 5 and sum(sizes) == n and total == n * (n - 1) // 2


def test_run_refuses_an_end_that_is_no_instant(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,v\n1,2\n")
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{tmp_path / 's.csv'}'")
    with pytest.raises(minidsms.DataError, match="cannot be read as TIMESTAMP"):
        db.run(until="soon")  # type: ignore[arg-type]


def test_a_json_text_that_is_no_unicode_is_a_rejected_row(tmp_path: Path) -> None:
    lines = ['{"ts": 1, "k": "\\ud800"}', "no JSON", '{"ts": 2, "k": "b"}']
    (tmp_path / "s.json").write_text("\n".join(lines))
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (ts INTEGER, k TEXT) TIMESTAMP BY ts FROM '{tmp_path / 's.json'}'")
    q = db.query("SELECT ISTREAM(k) FROM S [NOW]")
    db.run()
    assert [c.row for c in q.fetch()] == [("b",)]


@pytest.mark.parametrize("error", [OSError(9, "Bad file descriptor"), ValueError("I/O operation on closed file")])
@pytest.mark.parametrize("name", ["a.csv", "a.arrow"])
def test_how_much_has_been_read_is_told_while_the_file_is_closed(tmp_path: Path, name: str, error: Exception) -> None:
    path = tmp_path / name
    if name == "a.csv":
        path.write_text(CSV)
    else:
        table = pa.table({"at": [1], "v": [1.5], "name": ["a"]})
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table)

    class Closing:
        closed = False  # as a moment before

        def tell(self) -> int:
            raise error

        def close(self) -> None:
            pass

    source: Any = open_source(str(path), None, SCHEMA)
    place = "_file" if name == "a.csv" else "_opened"
    source.close()
    setattr(source, place, dataclasses.replace(getattr(source, place), raw=Closing()))
    assert source.bytes_read == source.bytes_total


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError()])
def test_a_file_that_cannot_be_parsed_to_its_end_has_not_ended(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.csv").write_text("ts,v\n1,1\n2,2\n")
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{tmp_path / 's.csv'}'")
        q = db.query("SELECT v FROM S")

        def refuse(*arguments: object, **options: object) -> NoReturn:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr("pyarrow.csv.read_csv", refuse)
            with pytest.raises((Error, MemoryError)):
                db.run()
        with pytest.raises(Error, match=r"cannot be read: Too many open files|what follows is not known"):
            db.run()
        assert q.fetch() == []
