"""Which sink writes what INTO names: an address by its scheme, a file by the format asked for, else by its name.
docs/sinks.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from minidsms.answers.results import ResultCodec
from minidsms.archive.atomic import check_name
from minidsms.cql.errors import Error, quoted, shown
from minidsms.elements import Schema
from minidsms.sinks.function_sink import FunctionSink
from minidsms.sinks.lines import LineFormat, LineSink
from minidsms.sinks.positioned_sink import PositionedSink
from minidsms.sinks.sink import Sink
from minidsms.sources.files import BY_SUFFIX, is_packed, unpacked_name
from minidsms.sources.options import Options

if TYPE_CHECKING:
    from minidsms.sinks.columnar_sink import ColumnarSink
    from minidsms.sinks.rolling_sink import RollingSink

    _PlaceSink = LineSink | ColumnarSink | RollingSink | PositionedSink

FORMATS = ("csv", "json", "parquet", "arrow", "stream")


def function_sink(fn: Callable[[Any], Any], options: Mapping[str, Any]) -> Sink:
    """A sink that calls a function. OptionError for an option that does not exist here."""
    given = Options(options, "a function")
    sink = FunctionSink(fn)
    is_positioned = given.flag("position")
    given.done()
    return PositionedSink(sink) if is_positioned else sink


def open_sink(
    path: str, format: str | None = None, options: Mapping[str, Any] | None = None, is_new: bool = True
) -> Sink:
    """A sink for a path or address, not yet open. format: one of FORMATS in any case, or None to tell it by the suffix.

    options: as in WITH (..).  is_new: False of what a folder says, in which names of compressed files were like others
    before these were written. Error where the format is unknown or cannot be told; OptionError for an option that does
    not exist here.
    """
    path = os.fspath(path)
    check_name(path)
    chosen = None if format is None else format.lower()
    if chosen is not None and chosen not in FORMATS:
        raise Error(f"unknown format {quoted(format)}\nhelp: formats are {', '.join(FORMATS)}")
    given = Options(options or {}, "this sink")
    scheme = re.match(r"([a-z-]+)://", path, re.IGNORECASE)
    if chosen is None:
        by_name = BY_SUFFIX.get(os.path.splitext(unpacked_name(path))[1])
        chosen = "json" if scheme is not None else "csv" if path == "-" else by_name
    if chosen is None:
        raise Error(
            f"{shown(path)}: the format cannot be told by the name\nhelp: end it in .csv, .jsonl, .parquet or .arrow, "
            "or write FORMAT csv, json, parquet or arrow behind INTO 'name'"
        )
    sink = _open(path, None if scheme is None else scheme[1].lower(), chosen, given, is_new)
    given.done()
    sink.asked = chosen, dict(options or {})
    return sink


def _open(path: str, scheme: str | None, chosen: str, options: Options, is_new: bool) -> _PlaceSink:
    if scheme is not None:
        return _open_address(path, scheme, _lines_only(path, chosen), options)
    if path == "-":
        from minidsms.shell.showing import StandardOutput

        return LineSink(path, line_format(_lines_only(path, chosen)), StandardOutput)
    if options.flag("append"):
        from minidsms.sinks.append_output import AppendOutput, is_empty

        if is_new and is_packed(path):
            hint = "leave the ending out, or append; with roll_rows compressed files appear one after another"
            raise Error(f"{shown(path)}: lines are not added to compressed files\nhelp: {hint}")
        return LineSink(path, line_format(_lines_only(path, chosen)), AppendOutput, is_empty(path))
    roll_rows, roll_after_s = options.count("roll_rows", None), options.seconds("roll_after", None)
    if roll_rows is not None or roll_after_s is not None:
        from minidsms.sinks.rolling_sink import RollingSink

        return RollingSink(path, lambda part: _file_sink(part, chosen, is_new), roll_rows, roll_after_s)
    return _file_sink(path, chosen, is_new)


def _file_sink(path: str, format: str, is_new: bool) -> LineSink | ColumnarSink:
    if format in ("parquet", "arrow"):
        from minidsms.sinks.columnar_sink import ColumnarSink

        if is_new and is_packed(path):
            hint = "leave the ending out: parquet compresses its columns itself"
            raise Error(f"{shown(path)}: only files of lines are compressed as a whole\nhelp: {hint}")
        return ColumnarSink(path, format)
    if is_packed(path):
        from minidsms.sinks.packed_file import PackedFile

        return LineSink(path, line_format(format), PackedFile)
    return LineSink(path, line_format(format))


def _open_address(path: str, scheme: str, format: str, options: Options) -> LineSink | PositionedSink:
    if scheme == "kafka":
        return _open_kafka(path, format, options)
    from minidsms.sinks.tcp_output import TcpServer, TcpWriter
    from minidsms.sources.addresses import tcp_address

    if scheme not in ("tcp", "tcp-listen"):
        there = "there are tcp://, tcp-listen://, kafka:// and the paths of files"
        raise Error(f"there is no sink {quoted(scheme + '://')}\nhelp: {there}")
    header = format == "csv" and options.flag("header")
    address = tcp_address(path, options.flag("allow_remote"))
    if address.listens:
        bound = options.count("client_bytes", 16 << 20, 1 << 10)
        assert bound is not None
        sink = LineSink(path, line_format(format), lambda _: TcpServer(address, bound), header)
    else:
        timeout_s = options.seconds("timeout", 30.0) or 30.0
        sink = LineSink(path, line_format(format), lambda _: TcpWriter(address, timeout_s), header)
    return PositionedSink(sink) if options.flag("position") else sink


def _open_kafka(path: str, format: str, options: Options) -> LineSink:
    from minidsms.sinks.kafka_output import KafkaPlace
    from minidsms.sources.kafka_client import kafka_address

    address = kafka_address(path, options.flag("allow_remote"))
    partition, timeout_s = options.count("partition", 0, 0) or 0, options.seconds("timeout", 30.0) or 30.0
    place = KafkaPlace(address, partition, timeout_s, options.rest("kafka."), format == "csv")
    return LineSink(path, line_format(format), place, False)


def _lines_only(path: str, format: str) -> str:
    if format in ("parquet", "arrow"):
        raise Error(f"{shown(path)} takes lines, and {format} is none\nhelp: write FORMAT csv or FORMAT json")
    return format


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
