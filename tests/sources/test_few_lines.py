"""A few lines, read without Arrow: the same values as by Arrow, or left to it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import minidsms
from minidsms.elements import Field, Schema, Type
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.blocks import Block
from minidsms.sources.csv_form import CsvForm
from minidsms.sources.csv_rows import CsvRows
from minidsms.sources.few_lines import FEW
from minidsms.sources.json_rows import JsonRows
from minidsms.sources.plain_rows import PlainRows
from tests.seeds import seeds

TYPES = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP, Type.TIMESTAMP, Type.INTERVAL)
SCHEMA = Schema(tuple(Field(f"c{i}", type_) for i, type_ in enumerate(TYPES)))
NUMBERS = ["0", "7", "-7", "123456789012345678", "007", "-0", "+5", " 7", "7 ", "1234567890123456789", "1_000", "٣"]
TIMES = ["2026-01-02 03:04:05", "2026-01-02T03:04:05.123Z", "2026-01-02 03:04:05.123456", "1999-12-31T23:59:59Z"]
TIMES += ["2026-02-30 00:00:00", "2026-01-02", "2026-01-02 03:04:05.1", "2026-01-02 24:00:00", "2026-01-02 03:04:60"]
TEXTS: dict[Type, list[str]] = {
    Type.INTEGER: NUMBERS,
    Type.INTERVAL: NUMBERS,
    Type.FLOAT: [*NUMBERS, "0.1", "-12.5", "0.30000000000000004", "-0.0", "1e3", "nan", "inf", ".5", "5.", "1.2.3"],
    Type.BOOLEAN: ["true", "False", "1", "0", "t", "yes", "TRUE", " true"],
    Type.TEXT: ["a", "", " b ", "ü", "😀", "-", "null", "a b", "_heartbeat", "\x00"],
    Type.TIMESTAMP: TIMES,
}


def plain(batch: Any) -> list[list[Any]]:
    """The values by column, instants in nanoseconds, whatever their unit; a zero is one."""
    columns = []
    for column in batch.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
        columns.append([v + 0.0 if isinstance(v, float) else v for v in column.to_pylist()])
    return columns


@pytest.mark.parametrize("seed", seeds(60, share=10))
def test_a_few_lines_of_csv_are_read_as_arrow_reads_them(seed: int) -> None:
    random = Random(seed)
    form = CsvForm(nulls=("", "-") if seed % 3 else ("",), quote='"' if seed % 2 else "")
    rows = CsvRows("f", SCHEMA, RejectedRows(), form=form)
    rows.take_order(False)
    rows.learn({"c4": True, "c5": False})
    taken = 0
    for _ in range(100):
        often = random.choice([1, 4, len(NUMBERS)])
        lines = []
        for _ in range(random.randint(1, 4)):
            fields = [random.choice(["", *TEXTS[type_][:often]]) for type_ in TYPES]
            fields[4] = random.choice(NUMBERS[:often])
            if random.random() < 0.3:
                fields = [f'"{text}"' if random.random() < 0.5 else text for text in fields]
            if random.random() < 0.1:
                fields[3] = random.choice(['"a""b"', '"a,b"', '"a', 'a"', 'a"b"', ' "a"', '"a"b', '"'])
            lines.append(",".join(fields) + "\n")
        block = Block("".join(lines).encode(), 1)
        found = rows.read(block)
        if isinstance(found, PlainRows):
            batch, rejects = rows.parse(block)
            assert not rejects, rejects
            assert plain(found.arrow()) == plain(batch)
            taken += 1
    assert taken > 10


def _json_value(random: Random, type_: Type, is_ticks: bool) -> Any:
    if random.random() < 0.1:
        return None
    if type_ is Type.TIMESTAMP and not is_ticks:
        return random.choice(TIMES[: random.choice([4, len(TIMES)])])
    if type_ is Type.TEXT:
        return random.choice(["a", "", "ü😀", 'q"', "\n", "null"])
    if type_ is Type.BOOLEAN:
        return random.random() < 0.5
    if type_ is Type.FLOAT:
        return random.choice([0, 1, -0.0, 0.1, 1e300, 123456789.123456789, 12345678901234567890])
    return random.choice([0, -1, 2**62, 7])


@pytest.mark.parametrize("seed", seeds(40, share=10))
def test_a_few_lines_of_json_are_read_as_arrow_reads_them(seed: int) -> None:
    random = Random(seed)
    rows = JsonRows("f", SCHEMA, RejectedRows())
    rows.learn({"c4": 0, "c5": ""} | {name: 0 for name in SCHEMA.names if name not in ("c4", "c5")})
    taken = 0
    for _ in range(100):
        objects = []
        for _ in range(random.randint(1, 4)):
            pairs = [(f.name, _json_value(random, f.type, f.name == "c4")) for f in SCHEMA if random.random() < 0.9]
            random.shuffle(pairs)
            objects.append(json.dumps(dict(pairs), ensure_ascii=random.random() < 0.5) + "\n")
        block = Block("".join(objects).encode(), 1)
        found = rows.read(block)
        batch, rejects = rows.parse(block)
        if isinstance(found, PlainRows):
            assert not rejects and plain(found.arrow()) == plain(batch)
            taken += 1
    assert taken > 10


def test_many_lines_and_what_is_not_plain_are_left_to_arrow() -> None:
    rows = CsvRows("f", Schema((Field("v", Type.INTEGER), Field("t", Type.TEXT))), RejectedRows(), form=CsvForm())
    rows.take_order(False)
    assert isinstance(rows.read(Block(b"1,a\n" * FEW, 1)), PlainRows)
    for data in (
        b"1,a\n" * (FEW + 1),
        b'1,"a""b"\n',
        b'1,"a\n',
        b'"1,a"\n',
        b"1,a\r\n",
        b"1,a\n\n2,b\n",
        b"1,\xff\n",
        b"1,a,b\n",
        b"x,a\n",
    ):
        assert not isinstance(rows.read(Block(data, 1)), PlainRows), data


@pytest.mark.parametrize(
    "lines",
    [
        [b"no object", b'{"T": "a", "X": 1}', b'{"T": "b", "X": 2}'],  # the first object spells the names
        [b"", b"{}", b'{"T": "a", "X": 1}'],
        [b'{"x": 1}', b'{"x": 1' + b"0" * 400 + b"}", b'{"x": -1e400}'],
        [b'{"x": 1}', b'{"x": 2, "not asked for": "\xff"}', b'{"x": "b"}'],
    ],
)
def test_lines_of_json_are_read_to_the_same_rows_however_they_are_cut(lines: list[bytes]) -> None:
    schema = Schema((Field("t", Type.TEXT), Field("x", Type.FLOAT)))
    found = []
    for n in (1, len(lines)):
        rows = JsonRows("f", schema, RejectedRows())
        read: list[Any] = []
        for at in range(0, len(lines), n):
            batch = rows.read(Block(b"".join(line + b"\n" for line in lines[at : at + n]), at + 1))
            read += zip(*plain(batch.arrow() if isinstance(batch, PlainRows) else batch))
        found.append((read, list(rows.rejected)))
    assert found[0] == found[1]


def test_rows_can_be_parted_and_become_a_batch() -> None:
    rows = PlainRows(["a", "at"], [[1, None, 3], [np.datetime64(5, "ns")] * 3], [pa.int64(), pa.timestamp("ns")])
    assert rows.slice(1).columns[0] == [None, 3] and rows.slice(0, 2).num_rows == 2
    assert plain(rows.slice(1, 1).arrow()) == [[None], [5]]


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("at", ["ticks", "times"])
def test_rows_of_a_growing_file_that_come_alone_are_kept_and_gone_on_with(tmp_path: Any, form: str, at: str) -> None:
    path, folder = tmp_path / f"f.{form}", tmp_path / "folder"
    header = "at,t,v\n" if form == "csv" else ""
    path.write_text(header)
    written = 0

    def write(n: int) -> None:
        nonlocal written
        with path.open("a") as file:
            for _ in range(n):
                written += 1
                instant: Any = 1000 * written if at == "ticks" else f"1970-01-01T00:00:{written:02d}Z"
                row = {"at": instant, "t": f"t{written}", "v": None if written % 3 == 0 else written}
                line = ",".join("" if v is None else str(v) for v in row.values()) if form == "csv" else json.dumps(row)
                file.write(line + "\n")

    found = []
    for turn in range(4):
        with minidsms.connect(str(folder), durability="os") as db:
            db.execute(f"""
                CREATE STREAM IF NOT EXISTS S (at TIMESTAMP, t TEXT, v INTEGER) TIMESTAMP BY at
                    FROM '{path}' WITH (follow = true, poll = 10 MILLISECONDS);
                CREATE QUERY IF NOT EXISTS q AS SELECT t, v FROM S
            """)
            for n in (3, 1, 1) if not turn else (1, 1):
                write(n)
                while db.position("S") < written:
                    db.run_some()
            found += db.queries["q"].fetch()
    assert found == [(1000 * i, 1, (f"t{i}", None if i % 3 == 0 else i)) for i in range(1, written + 1)]
