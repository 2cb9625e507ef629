"""Which sink writes a file: by the format asked for, else by its name."""

from __future__ import annotations

import os
from collections.abc import Callable

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.results import ResultCodec
from minidsms.sinks.lines import LineFormat, LineSink
from minidsms.sinks.sink import Sink

FORMATS = ("csv", "json", "parquet", "arrow", "stream")

_BY_SUFFIX = {
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


def open_sink(path: str, format: str | None = None) -> Sink:
    """A sink for a file, not yet open. format: one of FORMATS in any case, or None to tell it by the suffix.

    Error where the format is unknown or cannot be told.
    """
    path = os.fspath(path)
    if format is None:
        chosen = _BY_SUFFIX.get(os.path.splitext(path.lower())[1])
        if chosen is None:
            hint = "write FORMAT csv, json, parquet or arrow"
            raise Error(f"{path!r}: the format cannot be told by the name\nhelp: {hint}")
    else:
        chosen = format.lower()
    if chosen in ("parquet", "arrow"):
        from minidsms.sinks.columnar_sink import ColumnarSink

        return ColumnarSink(path, chosen)
    if chosen in FORMATS:
        return LineSink(path, line_format(chosen))
    raise Error(f'unknown format "{format}"\nhelp: formats are {", ".join(FORMATS)}')


def line_format(name: str) -> Callable[[Schema, ResultCodec], LineFormat]:
    """What makes the text format of that name: csv, json or stream."""
    if name == "csv":
        from minidsms.sinks.csv_format import CsvFormat

        return CsvFormat
    if name == "json":
        from minidsms.sinks.json_format import JsonFormat

        return JsonFormat
    from minidsms.sinks.stream_format import StreamFormat

    return StreamFormat
