"""CSV files that are not written as usual, and files that are not what was declared."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from math import floor
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import CqlError
from minidsms.elements import Schema, Type
from minidsms.sources.csv_form import USUAL
from minidsms.sources.text_file import CsvSource

ROWS = [
    ("1767225600", "1,5", "a"),
    ("1767225601", "-2", '"x;y"'),
    ("1767225602", "", "-"),
    ("1767225603", "3,25", '"-"'),
    ("1767225604", '"4,5"', '"two\nlines"'),
]
READ = [(0, 1.5, "a"), (1000, -2.0, "x;y"), (2000, None, None), (3000, 3.25, "-"), (4000, 4.5, "two\nlines")]
FORM = "delimiter = '{}', decimal_comma = true, null = '-', epoch = 'seconds'"


def answer(
    path: Path, text: str, options: str, columns: str = "at TIMESTAMP, x FLOAT, t TEXT"
) -> tuple[list[Any], Any]:
    """What is read of a file, and the connection's warnings."""
    path.write_text(text)
    with minidsms.connect() as db:
        written = f"WITH ({options})" if options else ""
        db.execute(f"CREATE STREAM S ({columns}) TIMESTAMP BY at FROM '{path}' {written}")
        q = db.query("SELECT * FROM S")
        db.run()
        return [row for _, _, row in q.fetch()], db.warnings


@pytest.mark.parametrize("delimiter", [";", "|", "tab"])
@pytest.mark.parametrize("broken", ["", "x{d}1{d}b\n", "x{d}1\n", "1767225600{d}1.5{d}b\n", '1767225700{d}1{d}"open'])
def test_a_row_is_read_alike_whether_its_neighbours_can_be_read_or_not(
    tmp_path: Path, delimiter: str, broken: str
) -> None:
    mark = "\t" if delimiter == "tab" else delimiter
    text = "".join(mark.join(fields).replace("x;y", f"x{mark}y") + "\n" for fields in ROWS)
    rows, _ = answer(tmp_path / "f.csv", f"at{mark}x{mark}t\n{text}{broken.format(d=mark)}", FORM.format(delimiter))
    assert [(at - 1767225600000, x, t) for at, x, t in rows] == [
        (at, x, t if t is None else t.replace("x;y", f"x{mark}y")) for at, x, t in READ
    ]


@pytest.mark.parametrize(
    "header", ["at,x,t", "AT , X,t ", "\ufeffat,x,t", '\ufeff"at",x,"t"', ",at,,x,t", "t2,at,t2,x,t"]
)
def test_a_column_is_found_whatever_its_case_spaces_and_quotes(tmp_path: Path, header: str) -> None:
    fields = {"at": "1", "x": "2", "t": "a"}
    names = [name.strip(' "\ufeff').lower() for name in header.split(",")]
    rows, _ = answer(
        tmp_path / "f.csv", header + "\n" + ",".join(fields.get(name, "0") for name in names) + "\n", "quote = '\"'"
    )
    assert rows == [(1, 2.0, "a")]


def test_a_name_of_the_declaration_may_have_outer_spaces_and_none_stands_twice(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    declare = f"CREATE STREAM S (at INTEGER, ` my col ` INTEGER) TIMESTAMP BY at FROM '{file}'"
    with minidsms.connect() as db:
        for header, rows in (('at," my col "', [(7,)]), ("at,My Col", [(7,)]), ("at,my col, MY COL ", None)):
            file.write_text(f"{header}\n1,7{',8' if rows is None else ''}\n")
            if rows is None:
                with pytest.raises(minidsms.Error, match="two columns are named"):
                    db.execute(declare)
                    db.run()
                continue
            db.execute(declare)
            q = db.query("SELECT ` my col ` FROM S")
            db.run()
            assert [row for _, _, row in q.fetch()] == rows
            q.close()
            db.execute("DROP STREAM S")


@pytest.mark.parametrize("text", ["2024-5-1 10:00:00.123456789", "2024-05-01 10:00:00,123456789", "2024-05-01 1"])
@pytest.mark.parametrize("before", ["", "1,2024-05-01\n"])
def test_a_time_is_read_as_push_reads_it(tmp_path: Path, text: str, before: str) -> None:
    (file := tmp_path / "f.csv").write_text(f'at,t\n{before}1,"{text}"\n')
    with minidsms.connect(time_unit="ns") as db:
        db.execute(f"CREATE STREAM F (at INTEGER, t TIMESTAMP) TIMESTAMP BY at FROM '{file}'")
        db.execute("CREATE STREAM P (t TIMESTAMP)")
        read, pushed = db.query("SELECT t FROM F"), db.query("SELECT t FROM P")
        db.run()
        db.push("P", (text,), ts=1)
        assert read.fetch()[-1].row == pushed.fetch()[-1].row


def test_without_a_header_the_columns_are_those_of_the_declaration(tmp_path: Path) -> None:
    rows, _ = answer(
        tmp_path / "f.csv",
        "01.02.2026 10:00,1,a\nno time,2,b\n01.02.2026 10:01,2,b\n",
        "header = false, time_format = '%d.%m.%Y %H:%M'",
    )
    assert rows == [(1769940000000, 1.0, "a"), (1769940060000, 2.0, "b")]


@pytest.mark.parametrize("time", ["", " %H:%M", " %H:%M:%S.%f"])
def test_a_year_of_two_digits_is_none_of_four(tmp_path: Path, time: str) -> None:
    at = time.replace("%H", "10").replace("%M", "00").replace("%S.%f", "01.5")
    text = f"at,x,t\n01.02.0999{at},1,a\n01.02.26{at},2,b\n01.02.2026{at},3,c\n"
    rows, _ = answer(tmp_path / "f.csv", text, f"time_format = '%d.%m.%Y{time}'")
    assert [t for _, _, t in rows] == ["a", "c"]
    rows, _ = answer(tmp_path / "f.csv", text, f"time_format = '%d.%m.%y{time}'")
    assert [t for _, _, t in rows] == ["b"]


@pytest.mark.parametrize("broken", ["", "x,1,b\n", "'1,1,b\n"])
def test_quotes_are_those_that_are_said_or_none(tmp_path: Path, broken: str) -> None:
    text = "at,x,t\n1,1,'it''s, so'\n2,2,\"\n3,3,'two\nlines'\n" + broken
    rows, _ = answer(tmp_path / "f.csv", text, "quote = ''''")
    assert rows == [(1, 1.0, "it's, so"), (2, 2.0, '"'), (3, 3.0, "two\nlines")]
    rows, _ = answer(tmp_path / "f.csv", f"at,x,t\n1,1,'a\n2,2,\"b\n{broken}", "quote = 'none'")
    assert rows == [(1, 1.0, "'a"), (2, 2.0, '"b')]


@pytest.mark.parametrize("first", ["", "A,B,C,D\n"])
def test_columns_are_named_by_the_declaration_in_place_of_the_file(tmp_path: Path, first: str) -> None:
    options = "names = 't, other, at, x', null = 'NA, -'" + (", header = true" if first else "")
    rows, _ = answer(tmp_path / "f.csv", f"{first}a,9,1,2\nNA,9,2,-\n", options)
    assert rows == [(1, 2.0, "a"), (2, None, None)]


def test_lines_that_come_are_written_as_the_options_of_files_say(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("01.02.2026;1,5;'a;b'\n_heartbeat;1769990399999\n02.02.2026;NA;'c'\n")
    form = "header = false, delimiter = ';', quote = '''', decimal_comma = true, null = 'NA', time_format = '%d.%m.%Y'"
    with minidsms.connect() as db:
        source = f"FROM '{path}' WITH (follow = true, stop_after = 0 SECONDS, {form})"
        db.execute(f"CREATE STREAM S (at TIMESTAMP, x FLOAT, t TEXT) TIMESTAMP BY at {source}")
        q = db.query("SELECT x, t FROM S")
        db.run()
        assert [tuple(row) for _, _, row in q.fetch()] == [(1.5, "a;b"), (None, "c")]


def test_times_with_fractions_of_a_second_are_read_by_their_format(tmp_path: Path) -> None:
    text = "at,x,t\n01.02.2026 10:00:00.25,1,a\nno time,2,b\n01.02.2026 10:00:01.5,3,c\n"
    rows, _ = answer(tmp_path / "f.csv", text, "time_format = '%d.%m.%Y %H:%M:%S.%f'")
    assert [at for at, _, _ in rows] == [1769940000250, 1769940001500]


@pytest.mark.parametrize(("epoch", "value"), [("milliseconds", 7), ("microseconds", 7_000), ("nanoseconds", 7_000_000)])
def test_numbers_are_instants_in_their_unit_and_those_too_far_away_are_none(
    tmp_path: Path, epoch: str, value: int
) -> None:
    far = 2**63 - 1 if epoch != "nanoseconds" else "x"
    rows, _ = answer(tmp_path / "f.csv", f"at\n{value}\n{far}\n", f"epoch = '{epoch}'", "at TIMESTAMP")
    assert rows == [(7,)]


@pytest.mark.parametrize("time_unit", ["ns", "us", "ms"])
@pytest.mark.parametrize(
    ("epoch", "good", "bad"),
    [
        ("seconds", ["1767225600.5", "1767225600", "+1767225601.", "-1.5", "-0.25"], ["x", "1e3", "1.5.5", ".5"]),
        ("seconds", ["0.1234567", "-0.1234567891", "0.000000001", "-0.0000000001"], ["99999999999999999.5"]),
        ("seconds", ["99999999999.0625", "1.5", "-62000000000.5"], []),
        ("milliseconds", ["1767225600123.5", "7", "-0.0001"], ["0x1.5"]),
        ("microseconds", ["7.001", "-7.0001"], []),
    ],
)
def test_numbers_that_are_instants_may_have_fractions(
    tmp_path: Path, epoch: str, good: list[str], bad: list[str], time_unit: str
) -> None:
    path, ns = tmp_path / "f.csv", {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 1000}[epoch]
    tick_ns = {"ns": 1, "us": 1000, "ms": 1_000_000}[time_unit]
    path.write_text("".join(f" {text} \n" for text in ("at", *good, *bad)))
    with minidsms.connect(time_unit=time_unit) as db:
        db.execute(f"CREATE RELATION S (at TIMESTAMP) FROM '{path}' WITH (epoch = '{epoch}')")
        q = db.query("SELECT at FROM S")
        instants = [floor(Decimal(text) * ns / tick_ns) for text in good]
        if max(map(abs, instants)) >= 2**62:
            return
        db.run()
        assert sorted(at for (at,) in q.snapshot()) == sorted(instants)
        assert db.stream_input("S").counters.rejected == len(bad)


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("at,x,t\n01/02/2026,1,a\n02/02/2026,1,a\n", "time_format"),
        ("at,x,t\n5;1;a\n", "delimiter"),
        ("at,x,t,n\n5,1,a,1.0\n6,1,a,2.0\n", "FLOAT"),
        ('[{"at": 5}, {"at": 6}]\n', "jq -c"),
    ],
)
def test_a_file_of_which_no_row_can_be_read_is_an_error_that_shows_one(tmp_path: Path, text: str, help_: str) -> None:
    name, columns = ("f.json", "at TIMESTAMP") if text[0] == "[" else ("f.csv", "at TIMESTAMP, x FLOAT, t TEXT")
    with pytest.raises(minidsms.Error, match="no row can be read") as caught:
        answer(tmp_path / name, text, "", f"{columns}, n INTEGER" if ",n" in text else columns)
    assert f"line {1 if text[0] == '[' else 2}" in str(caught.value) and help_ in str(caught.value)


@pytest.mark.parametrize("text", ['[{"at": 1, "x": 1, "t": "a"}]\n', '{"at": 1, "x": "no", "t": "a"}\n'])
def test_where_no_row_of_json_can_be_read_nothing_is_said_of_csv(tmp_path: Path, text: str) -> None:
    with pytest.raises(minidsms.Error, match="no row can be read") as caught:
        answer(tmp_path / "f.json", text, "")
    assert "one JSON object" in str(caught.value) and "CSV" not in str(caught.value)


def test_what_is_nested_in_what_is_nested_is_to_be_declared(tmp_path: Path) -> None:
    line = '{"at": 1, "t": {"a": {"b": 1}}}\n'
    with pytest.raises(minidsms.Error, match="declare what is nested: STRUCT"):
        answer(tmp_path / "f.json", line, "", "at INTEGER, t STRUCT(a TEXT)")
    assert answer(tmp_path / "g.json", line, "", "at INTEGER, t TEXT")[0] == [(1, '{"a": {"b": 1}}')]


@pytest.mark.parametrize("zero", ["0e9999", "-0e-9999", "0e99999999999", "0e10", "0e99999999999999999999"])
@pytest.mark.parametrize("beyond", ["1e9999", "1e-99999999999999999999", "-1.5e0099999999999999999999"])
def test_a_decimal_of_json_may_be_zero_with_any_exponent(tmp_path: Path, zero: str, beyond: str) -> None:
    lines = f'{{"at": 1, "x": 1.5}}\n{{"at": 2, "x": {zero}, "y": {beyond}}}\n{{"at": 3, "x": {beyond}}}\n'
    rows, _ = answer(tmp_path / "f.json", lines, "", "at INTEGER, x DECIMAL(7, 2)")
    assert dict(rows) == {1: Decimal("1.50"), 2: Decimal("0.00")}


@pytest.mark.parametrize("money", ["1,5", "-0,25", '"99999,99"', "7"])
@pytest.mark.parametrize("other", ["1", "1.5", "1,555", "x", " 2 "])
def test_a_decimal_has_the_comma_of_the_file(tmp_path: Path, money: str, other: str) -> None:
    columns = "at INTEGER, x DECIMAL(7, 2)"
    rows, _ = answer(
        tmp_path / "f.csv", f"at;x\n1;{money}\n2;{other}\n3;\n", "delimiter = ';', decimal_comma = true", columns
    )
    read = {1: Decimal(money.strip('"').replace(",", ".")), 3: None}
    expected = read | ({2: Decimal(other)} if other in ("1", " 2 ") else {})
    assert dict(rows) == expected


@pytest.mark.parametrize(("first", "unit"), [(1767225600, "seconds"), (1767225600 * 10**6, "microseconds")])
def test_instants_in_another_unit_than_ticks_are_warned_of(tmp_path: Path, first: int, unit: str) -> None:
    _, warnings = answer(tmp_path / "f.csv", f"at,x,t\n{first},1,a\n", "")
    assert len(warnings) == 1 and f"epoch = '{unit}'" in warnings[0]


@pytest.mark.parametrize("first", ["1767225600000", "1000", "2026-01-01"])
def test_instants_that_may_be_meant_are_not_warned_of(tmp_path: Path, first: str) -> None:
    assert answer(tmp_path / "f.csv", f"at,x,t\n{first},1,a\n", "")[1] == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("delimiter = ';;'", "one character"),
        ("decimal_comma = true", "cannot be both"),
        ("quote = ','", "cannot be both"),
        ("quote = 'ab'", "one character"),
        ("names = 'at, y'", 'no column "x"'),
        ("epoch = 'years'", "one of seconds"),
        ("epoch = 'seconds', time_format = '%Y'", "numbers or texts"),
    ],
)
def test_a_form_that_cannot_be_is_refused(tmp_path: Path, options: str, reason: str) -> None:
    with pytest.raises(minidsms.Error, match=reason):
        answer(tmp_path / "f.csv", "at,x,t\n", options)


@pytest.mark.parametrize(
    ("first", "option"),
    [("at;x;t", "delimiter = ';'"), ("at\tx\tt", "delimiter = 'tab'"), ("1000,1.5,a", "header = false")],
)
def test_the_option_that_a_first_line_asks_for_is_named(tmp_path: Path, first: str, option: str) -> None:
    (tmp_path / "a.csv").write_text(f"{first}\n")
    with minidsms.connect() as db, pytest.raises(minidsms.Error) as caught:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, x FLOAT, t TEXT) TIMESTAMP BY at FROM '{tmp_path}/a.csv'")
    assert f"WITH ({option})" in str(caught.value)


@pytest.mark.parametrize("rows", [[(1000, 1.5, "a")], [{"at": 1000, "x": 1.5, "t": "a"}]])
def test_rows_in_the_place_of_tables_get_a_way_out(rows: list[Any]) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (at TIMESTAMP, x FLOAT, t TEXT) TIMESTAMP BY at")
        db.feed("S", iter(rows))
        with pytest.raises(minidsms.Error, match=r"help: .*db\.push\(name, rows\)"):
            db.run()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("at,t\n1,a\n".encode("utf-16"), "f.csv: the first line is no UTF-8"),
        (b"at,t\r1,a\r2,b\r", "f.csv: lines end in a carriage return alone"),
        (b"at," + b"t" * 200_000 + b"\n1,a\n", "f.csv: the first line cannot be read: field larger"),
    ],
)
def test_a_file_that_is_not_written_as_lines_of_utf_8_is_told_so(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "f.csv").write_bytes(data)
    with minidsms.connect() as db, pytest.raises(CqlError, match=told):
        db.execute(f"CREATE STREAM S (at TIMESTAMP, t TEXT) TIMESTAMP BY at FROM '{tmp_path / 'f.csv'}'")


def test_a_field_that_is_no_utf_8_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b"at,t\n1,\xe9\n2,b\n")
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, t TEXT) TIMESTAMP BY at FROM '{tmp_path / 'f.csv'}'")
        db.run()
        [(_, reason)] = db.stream_input("S").rejected
        assert 'line 2: column "t"' in reason and "is no UTF-8" in reason


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("header", [False, True])
def test_a_mark_belongs_to_the_file_and_not_to_its_lines(block_bytes: int, header: bool, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("\ufeff" + "k\n" * header + "a\n\ufeffb\n")
    form = dataclasses.replace(USUAL, header=header)
    source = CsvSource(str(path), Schema.of(("k", Type.TEXT)), block_bytes=block_bytes, form=form)
    assert [value for batch in source.read() for value in batch.column(0).to_pylist()] == ["a", "\ufeffb"]


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_a_quoted_field_behind_a_mark_may_hold_a_newline(block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text('\ufeff"a\nb"\nc\n')
    form = dataclasses.replace(USUAL, header=False)
    source = CsvSource(str(path), Schema.of(("k", Type.TEXT)), block_bytes=block_bytes, form=form)
    assert [value for batch in source.read() for value in batch.column(0).to_pylist()] == ["a\nb", "c"]
    assert not source.rejected.count
