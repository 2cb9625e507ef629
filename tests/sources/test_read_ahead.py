"""Blocks made by threads come as if one after the other had been made by whoever reads them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from minidsms.elements import Schema, Type
from minidsms.sources.columnar_source import ParquetSource
from minidsms.sources.read_ahead import ReadAhead
from minidsms.sources.source import BATCH_ROWS
from minidsms.sources.text_file import CsvSource, JsonSource

SCHEMA = Schema.of(("k", Type.INTEGER), ("at", Type.TIMESTAMP), ("t", Type.TEXT))


def _threads() -> int:
    return sum(thread.name.startswith("minidsms-read-ahead") for thread in threading.enumerate())


def test_order_is_that_of_the_blocks_whichever_is_made_first() -> None:
    def make(i: int) -> int:
        time.sleep(0.002 if i % 3 == 0 else 0)
        return i * i

    assert list(ReadAhead(iter(range(40)), make)) == [i * i for i in range(40)]
    assert not _threads()


def test_no_more_is_begun_than_four_blocks_beyond_what_was_taken() -> None:
    begun: list[int] = []

    def blocks() -> Iterator[int]:
        for i in range(100):
            begun.append(i)
            yield i

    reading = iter(ReadAhead(blocks(), lambda i: i))
    for i in range(10):
        assert next(reading) == i
        time.sleep(0.005)
        assert len(begun) <= i + 1 + 4


@pytest.mark.parametrize("where", ["taking", "making"])
def test_an_error_comes_out_where_its_block_would_have(where: str) -> None:
    def blocks() -> Iterator[int]:
        for i in range(9):
            if where == "taking" and i == 5:
                raise ValueError("block 5")
            yield i

    def make(i: int) -> int:
        if where == "making" and i == 5:
            raise ValueError("block 5")
        time.sleep(0.002 if i == 4 else 0)
        return i

    got = []
    with pytest.raises(ValueError, match="block 5"):
        for made in ReadAhead(blocks(), make):
            got.append(made)
    assert got == [0, 1, 2, 3, 4]
    assert not _threads()


def test_closing_midway_ends_the_threads_and_the_reading() -> None:
    ahead = ReadAhead(iter(range(1000)), lambda i: i)
    reading = iter(ahead)
    assert next(reading) == 0
    ahead.close()
    assert not _threads()
    assert next(reading, None) is None


def _lines(n: int, first_at: str) -> Iterator[tuple[str, str, str]]:
    for i in range(n):
        at = "" if i < 30 else first_at if i < 60 else str(i) if first_at.isdigit() else "2020-01-01 00:00:01"
        yield ("no" if i % 37 == 5 else str(i), at, f"text {i % 7}")


@pytest.mark.parametrize("first_at", ["7", "2020-01-01"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_rows_and_rejected_lines_do_not_depend_on_where_blocks_are_cut(
    tmp_path: Path, kind: str, first_at: str
) -> None:
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        path.write_text("k,at,t\n" + "".join(",".join(line) + "\n" for line in _lines(400, first_at)))
    else:
        rows = []
        for k, at, t in _lines(400, first_at):
            shown = (k if k.isdigit() else f'"{k}"', "null" if not at else at if at.isdigit() else f'"{at}"')
            rows.append(f'{{"k": {shown[0]}, "at": {shown[1]}, "t": "{t}"}}\n')
        path.write_text("".join(rows))
    make: Any = CsvSource if kind == "csv" else JsonSource

    def read(block_bytes: int) -> tuple[list[Any], list[Any], int]:
        source = make(str(path), SCHEMA, block_bytes=block_bytes)
        rows = [tuple(row.values()) for batch in source.read() for row in batch.to_pylist()]
        # A block of which every time can be read has them without a zone, another in UTC: the input takes both alike.
        rows = [(k, at.replace(tzinfo=None) if isinstance(at, datetime) else at, t) for k, at, t in rows]
        return rows, list(source.rejected), source.rejected.count

    whole = read(1 << 22)
    assert whole[2] == 11  # not one because the first values are NULL
    assert len(whole[0]) + whole[2] == 400
    for block_bytes in (64, 300, 2000):
        assert read(block_bytes) == whole
    assert not _threads()


def test_a_parquet_file_of_many_batches_is_read_whole_in_order_and_may_be_left_midway(tmp_path: Path) -> None:
    n = 3 * BATCH_ROWS + 17
    path = str(tmp_path / "rows.parquet")
    parquet.write_table(pa.table({"k": np.arange(n), "t": np.arange(n).astype(str)}), path, row_group_size=50_000)
    schema = Schema.of(("k", Type.INTEGER), ("t", Type.TEXT))
    keys = np.concatenate([batch.column(0).to_numpy() for batch in ParquetSource(path, schema).read()])
    assert np.array_equal(keys, np.arange(n))
    left = ParquetSource(path, schema)
    assert next(left.read()).num_rows
    left.close()
    assert not _threads()
