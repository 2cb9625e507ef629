"""A declaration that fits a file: its columns, their types, and the column that looks like the rows' instants."""

from __future__ import annotations

import os
import re
from typing import Any

from minidsms.cql import syntax
from minidsms.cql.errors import Error
from minidsms.cql.printer import print_statement
from minidsms.elements import Type
from minidsms.inputs.foreign import check_whole

_BYTES = 1 << 20


def declaration_for(path: str) -> str:
    """CREATE STREAM for a file, or CREATE RELATION where nothing in it looks like an instant, without semicolon.

    The types are told by the beginning of the file. Error where it cannot be read.
    """
    names, types, sample = _columns(path)
    columns = tuple(syntax.ColumnDef(name, type_) for name, type_ in zip(names, types))
    name = re.sub(r"\W", "_", os.path.basename(path).split(".")[0]) or "data"
    name = name if not name[0].isdigit() else f"data_{name}"
    instant = _instants(names, types, sample)
    if instant is None:
        return print_statement(syntax.CreateRelation(name, columns, source=syntax.Source(path)))
    by = syntax.Name(instant)
    return print_statement(syntax.CreateStream(name, columns, timestamp_by=by, source=syntax.Source(path)))


def _columns(path: str) -> tuple[list[str], list[Type], Any]:
    """Names, types, and the first rows as an Arrow table."""
    import pyarrow as pa

    kind = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    try:
        table = _read(path, kind)
    except (OSError, pa.ArrowException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise Error(f"cannot read {path!r}: {reason}") from None
    if not table.column_names or any(not name.strip() for name in table.column_names):
        raise Error(f"{path!r} has no line of names\nhelp: its first line names the columns, or it is no CSV file")
    return table.column_names, [_type(field.type) for field in table.schema], table


def _read(path: str, kind: str) -> Any:
    import io

    if kind in (".parquet", ".pq"):
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        first = next(file.iter_batches(1000), None)
        return file.schema_arrow.empty_table() if first is None else _table(first)
    if kind in (".arrow", ".ipc", ".feather"):
        from pyarrow import ipc

        table = ipc.open_file(path).read_all()
        check_whole(table)
        return table.slice(0, 1000)
    import gzip

    with gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb") as file:
        start = file.read(_BYTES)
    if len(start) == _BYTES:
        start = start[: start.rfind(b"\n") + 1]
    if kind in (".json", ".jsonl", ".ndjson"):
        from pyarrow import ArrowInvalid, json

        from minidsms.sources.json_rows import crashes_arrow

        if crashes_arrow(start):
            raise ArrowInvalid("null where an object should stand")
        return json.read_json(io.BytesIO(start))
    from pyarrow import csv

    options = csv.ConvertOptions(strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(start), convert_options=options)


def _table(batch: Any) -> Any:
    import pyarrow as pa

    check_whole(batch)
    return pa.Table.from_batches([batch])


def _type(type_: Any) -> Type:
    """The CQL type that holds an Arrow type's values."""
    from pyarrow import types

    if types.is_integer(type_):
        return Type.INTEGER
    if types.is_floating(type_) or types.is_decimal(type_):
        return Type.FLOAT
    if types.is_boolean(type_):
        return Type.BOOLEAN
    if types.is_timestamp(type_) or types.is_date(type_):
        return Type.TIMESTAMP
    return Type.INTERVAL if types.is_duration(type_) else Type.TEXT


def _instants(names: list[str], types: list[Type], sample: Any) -> str | None:
    """The first TIMESTAMP column, else an INTEGER column called like an instant whose values never fall."""
    for name, type_ in zip(names, types):
        if type_ is Type.TIMESTAMP:
            return name
    for name, type_ in zip(names, types):
        if type_ is Type.INTEGER and name.lower() in ("ts", "t", "time", "timestamp", "at", "instant", "_ts"):
            values = sample.column(names.index(name)).drop_null().to_pylist()
            if values == sorted(values):
                return name
    return None
