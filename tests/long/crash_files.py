"""Files of answers in every form, and what they hold, to be compared: which rows stand together in an instant is not
for the order to say.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

from minidsms.archive.format import archives_in, find

FORMS = (
    "{}.csv", "{}.csv", "{}.parquet", "{}.arrow", "{}.csv' WITH (append = true)", "{}-{{n}}.csv' WITH (roll_rows = 5)",
    "{}-{{n}}.parquet' WITH (roll_rows = 3)", "archive",
)  # fmt: skip
"""What stands behind INTO, but for the first quote; `{}` is the beginning of the name. An archive has a
clause of its own."""


def into(form: str, place: str) -> str:
    """The clause that writes a file of a form."""
    if form == "archive":
        return f"ARCHIVE '{place}'"
    given = form.format(place)
    return f"INTO '{given}" + ("" if "'" in given else "'")


def lines_of(form: str, place: str) -> tuple[list[int], Counter[tuple[Any, ...]], list[int]]:
    """(the instants of the rows in their order, the rows, how many are in each part)."""
    if form == "archive":
        (archive,) = archives_in(place)
        rows = archived(place, archive.metadata.name)
        return [int(row[0]) for row in rows], Counter(rows), [len(rows)]
    path, number = form.format(place).partition("'")[0], 1
    if "{n}" not in path:
        rows = _rows(path)
        sizes = [len(rows)]
    else:
        rows, sizes = [], []
        while os.path.exists(part := path.replace("{n}", str(number))):
            found = _rows(part)
            rows, sizes, number = rows + found, [*sizes, len(found)], number + 1
    return [int(row[0]) for row in rows], Counter(rows), sizes


def archived(folder: str, name: str) -> list[tuple[Any, ...]]:
    """The elements of an archive in the order of their arrival; each arrival is there once."""
    files = find(folder, name).files()
    table = pa.concat_tables([parquet.read_table(file.path, partitioning=None) for file in files]) if files else None
    if table is None:
        return []
    table = table.sort_by("_arrival")
    arrivals = table["_arrival"].to_pylist()
    assert len(set(arrivals)) == len(arrivals)
    columns = table.drop_columns(["_arrival"]).columns
    return list(zip(*[map(repr, column.to_pylist()) for column in columns]))


def _rows(path: str) -> list[tuple[Any, ...]]:
    if path.endswith(".csv"):
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
            file.seek(0)
            assert file.read().endswith("\n")
        return list(map(tuple, rows[1:]))
    table = parquet.read_table(path) if path.endswith(".parquet") else feather.read_table(path)
    columns = [
        c.cast(pa.int64()) if pa.types.is_temporal(c.type) and c.type.bit_width == 64 else c for c in table.columns
    ]
    return list(zip(*[map(repr, column.to_pylist()) for column in columns]))
