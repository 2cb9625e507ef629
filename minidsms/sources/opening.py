"""Which source reads a file: by the format asked for, else by its name, else by its first bytes."""

from __future__ import annotations

import csv
import os
import re

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.sources.blocks import cannot_read, open_file
from minidsms.sources.columnar_source import ArrowSource, ParquetSource
from minidsms.sources.csv_source import CsvSource
from minidsms.sources.json_source import JsonSource
from minidsms.sources.source import Source

FORMATS = ("csv", "json", "parquet", "arrow", "stream")

_BY_NAME = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
_TYPES_LINE = re.compile(r"i(,(i|f|b|c[0-9]+))*")


def open_source(path: str, format: str | None, schema: Schema, relation: bool = False) -> Source:
    """The source for a file. format: one of FORMATS, in any case, or None to find out.

    Error where there is no such file, the format is unknown, or a column of the schema is missing.
    """
    path = os.fspath(path)
    chosen = format.lower() if format is not None else None
    if chosen is not None and chosen not in FORMATS:
        raise Error(f'unknown format "{format}"\nhelp: formats are {", ".join(FORMATS)}')
    if chosen in (None, "csv"):
        # A STREAM script's data is often called .csv too; its line of types tells it.
        start = _start(path)
        if _is_stream_data(start, schema):
            chosen = "stream"
    if chosen is None:
        chosen = _by_name(path) or _by_content(path, start)
    if chosen == "parquet":
        return ParquetSource(path, schema, relation)
    if chosen == "arrow":
        return ArrowSource(path, schema, relation)
    if chosen == "json":
        return JsonSource(path, schema, relation)
    return CsvSource(path, schema, relation, types_line=chosen == "stream")


def _by_name(path: str) -> str | None:
    name = path.lower().removesuffix(".gz")
    return _BY_NAME.get(os.path.splitext(name)[1])


def _start(path: str) -> bytes:
    """The first bytes of the file."""
    file, raw, _ = open_file(path)
    try:
        return file.read(4096)
    except Exception as error:
        raise cannot_read(path, error) from None
    finally:
        file.close()
        raw.close()


def _is_stream_data(start: bytes, schema: Schema) -> bool:
    line = start.split(b"\n", 1)[0].decode("latin-1").replace(" ", "").strip()
    names = {name.lower() for name in line.split(",")}
    return bool(_TYPES_LINE.fullmatch(line)) and not {n.lower() for n in schema.names} <= names


def _by_content(path: str, start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if start.lstrip().startswith(b"{"):
        return "json"
    line = start.split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf")
    try:
        if line and all(name.strip() for name in next(csv.reader([line.decode("utf-8")]), [""])):
            return "csv"
    except (UnicodeDecodeError, csv.Error):
        pass
    raise Error(f"{path}: the format cannot be told\nhelp: write FORMAT csv, json, parquet or arrow")
