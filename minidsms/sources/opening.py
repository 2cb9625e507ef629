"""Which source reads what FROM names: an address by its scheme, a generator by its name, a file by the format asked
for, else by its name, else by its first bytes. docs/sources.md.
"""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from minidsms.cql.catalog import SourceDef
from minidsms.cql.errors import Error, quoted, shown
from minidsms.cql.masking import masked
from minidsms.elements import Schema
from minidsms.sources import postgres
from minidsms.sources.blocks import BYTE_ORDER_MARK
from minidsms.sources.columnar_source import ArrowSource, ParquetSource
from minidsms.sources.csv_form import CsvForm, csv_form
from minidsms.sources.database_source import DATABASES, DatabaseSource
from minidsms.sources.files import BY_SUFFIX, LOCAL, Files, content, is_packed, other_kind, unpacked_name
from minidsms.sources.line_rows import LINE_FORMATS
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.many_files import ManyFiles
from minidsms.sources.messages import MESSAGE_FORMATS, messages
from minidsms.sources.options import OptionError, Options
from minidsms.sources.source import Pace, Source
from minidsms.sources.text_file import CsvSource, JsonSource

FORMATS = ("csv", "json", "parquet", "arrow", "stream", *DATABASES)

_BY_NAME = {**BY_SUFFIX, ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".duckdb": "duckdb"}
_START = 4096
"""Bytes of a file that tell what it is."""
_TYPES_LINE = re.compile(r"i(,(i|f|b|c[0-9]+))*")


def open_source(
    path: str,
    format: str | None,
    schema: Schema,
    relation: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Source | LiveLines:
    """The source for a path or address. format: one of FORMATS, in any case, or None to find out.

    options: as in WITH (..). Error where there is no such file, the format is unknown, or a column of the schema is
    missing; OptionError for an option that does not exist here.
    """
    path = os.fspath(path)
    chosen = format.lower() if format is not None else None
    if chosen in MESSAGE_FORMATS and not path.lower().startswith("kafka://"):
        raise Error(f"FORMAT {chosen} is for the messages of kafka://\nhelp: of files there are {', '.join(FORMATS)}")
    if chosen is not None and chosen not in (*FORMATS, *MESSAGE_FORMATS):
        raise Error(f"unknown format {quoted(format)}\nhelp: formats are {', '.join(FORMATS)}")
    given = Options(options or {}, "this source")
    source = _open(path, chosen, schema, relation, given)
    try:
        source.pace = Pace(given.number("speed", None, 0), None)
        if isinstance(source, LiveLines):
            source.pace = Pace(source.pace.speed, given.seconds("idle_after", None))
            if source.pace.speed is not None:
                raise OptionError("speed", "a live source comes at its own speed", "leave the option out")
        given.done()
    except Error:
        source.close()
        raise
    return source


def open_definition(definition: SourceDef, schema: Schema, relation: bool, tick_ns: int) -> Source | LiveLines:
    """The source that a declaration names."""
    if not definition.is_generator:
        return open_source(definition.path, definition.format, schema, relation, dict(definition.options))
    from minidsms.generators import open_generator

    given = Options(dict(definition.options), "a generator")
    generator = open_generator(definition.path, definition.args, schema, tick_ns)
    generator.pace = Pace(given.number("speed", None, 0), None)
    given.done()
    return generator


def _open(path: str, format: str | None, schema: Schema, relation: bool, options: Options) -> Source | LiveLines:
    scheme = re.match(r"([a-z0-9-]+)://", path, re.IGNORECASE)
    if scheme is not None:
        return _open_address(path, scheme[1].lower(), format, schema, relation, options)
    if path == "-" or _is_pipe(path):
        from minidsms.sources.pipe_source import PipeReader

        form = _line_form(format, "csv" if path == "-" else _by_name(path) or "csv", path, options, True)
        return LiveLines(path, schema, relation, form, PipeReader(path))
    if options.flag("follow"):
        return _open_tail(path, format, schema, relation, options)
    return _open_files(path, format, schema, relation, options, LOCAL)


def _open_files(
    path: str, format: str | None, schema: Schema, relation: bool, options: Options, files: Files
) -> Source:
    """One file, or all that a pattern or a folder names."""
    found = files.named(path)
    if found is None:
        return _open_file(path, format, schema, relation, options, files)
    if not found:
        where = f"\nhelp: relative paths start at {os.getcwd()}" if files is LOCAL else ""
        raise Error(f"no file fits {shown(path)}{where}")
    return ManyFiles(path, found, schema, lambda each: _open_file(each, format, schema, relation, options, files))


def _open_file(path: str, format: str | None, schema: Schema, relation: bool, options: Options, files: Files) -> Source:
    chosen = format
    if chosen in (None, "csv"):
        # A STREAM script's data is often called .csv too; its line of types tells it.
        start = content(path, files, _START)
        if _is_stream_data(start, schema):
            chosen = "stream"
    if chosen is None:
        chosen = _by_name(path) or _by_content(path, start)
    if chosen in DATABASES:
        if files is not LOCAL:
            raise Error(f"{shown(path)}: a database is read where it lies, on this machine")
        return DatabaseSource(path, chosen, options.text("table", None), schema, relation)
    if chosen == "parquet":
        return ParquetSource(path, schema, relation, files)
    if chosen == "arrow":
        return ArrowSource(path, schema, relation, files)
    if chosen == "json":
        return JsonSource(path, schema, relation, files=files)
    if chosen == "stream":
        return CsvSource(path, schema, relation, types_line=True, files=files)
    return CsvSource(path, schema, relation, form=csv_form(options), files=files)


def _open_address(
    path: str, scheme: str, format: str | None, schema: Schema, relation: bool, options: Options
) -> Source | LiveLines:
    if scheme == "kafka":
        return _open_kafka(path, format or "json", schema, relation, options)
    if scheme in ("tcp", "tcp-listen"):
        return _open_tcp(path, scheme, format, schema, relation, options)
    if scheme in postgres.SCHEMES:
        return _open_postgres(path, schema, relation, options)
    from minidsms.sources.remote_files import SCHEMES, remote_files

    if scheme in SCHEMES:
        return _open_files(path, format, schema, relation, options, remote_files(path, scheme, options))
    there = "there are https://, s3://, postgresql://, tcp://, tcp-listen://, kafka:// and the paths of files"
    raise Error(f"there is no source {quoted(scheme + '://')}\nhelp: {there}")


def _open_postgres(path: str, schema: Schema, relation: bool, options: Options) -> Source | LiveLines:
    table, publication = options.text("table", None), options.text("publication", None)
    allowed = options.flag("allow_remote")
    if publication is None:
        return DatabaseSource(path, "postgresql", table, schema, relation, allowed)
    from minidsms.sources.postgres_changes import TableChanges

    if not relation:
        raise OptionError("publication", "rows that change and go are a relation's", "CREATE RELATION")
    slot, poll_s = options.text("slot", None), options.seconds("poll", 0.1) or 0.01
    changes = TableChanges(path, allowed, table, publication, slot, poll_s, schema)
    return LiveLines(masked(path), schema, relation, None, changes)


def _open_tcp(
    path: str, scheme: str, format: str | None, schema: Schema, relation: bool, options: Options
) -> LiveLines:
    from minidsms.sources.addresses import tcp_address
    from minidsms.sources.tcp_source import TcpListener, TcpReader

    form = _line_form(format, "json", path, options, False)
    address = tcp_address(path, options.flag("allow_remote"))
    if not address.listens:
        reader = TcpReader(address, options.seconds("retry", None))
        return LiveLines(path, schema, relation, form, reader)
    listener = TcpListener(address, options.count("clients", None))
    # The port that was taken, where it was left open.
    shown = f"{scheme}://{path.split('://')[1].rsplit(':', 1)[0]}:{listener.address[1]}"
    return LiveLines(shown, schema, relation, form, listener, is_lenient=True)


def _open_kafka(path: str, format: str, schema: Schema, relation: bool, options: Options) -> LiveLines:
    from minidsms.sources.kafka_client import kafka_address
    from minidsms.sources.kafka_source import KafkaReader

    decoded = messages(format, options) if format in MESSAGE_FORMATS else None
    form = None if decoded is not None else _line_form(format, format, path, options, False)
    if form is not None and form.header:
        raise OptionError("header", "a message is one record, and has no line of names", "write names = 'a, b, ..'")
    reader = KafkaReader(
        kafka_address(path, options.flag("allow_remote")),
        options.text("group", None),
        options.one_of("offset", ("earliest", "latest"), "earliest") == "latest",
        options.flag("until_end"),
        options.rest("kafka."),
        decoded,
    )
    return LiveLines(path, schema, relation, form, reader)


def _open_tail(path: str, format: str | None, schema: Schema, relation: bool, options: Options) -> LiveLines:
    chosen = format or _by_name(path)
    if chosen in DATABASES:
        return _open_followed(path, chosen, schema, relation, options)
    from minidsms.sources.tail_source import Tail

    form = _line_form(chosen, chosen or _by_content(path, content(path, most=_START)), path, options, True)
    tail = Tail(
        path,
        form is not None and form.header,
        options.flag("from_end"),
        options.seconds("poll", 0.1) or 0.01,
        options.seconds("stop_after", None),
    )
    return LiveLines(path, schema, relation, form, tail)


def _open_followed(path: str, kind: str, schema: Schema, relation: bool, options: Options) -> LiveLines:
    from minidsms.sources.table_changes import TableFollower

    if not relation:
        raise OptionError("follow", "rows that change and go are a relation's", "CREATE RELATION")
    table, poll_s = options.text("table", None), options.seconds("poll", 0.1) or 0.01
    follower = TableFollower(path, kind, table, schema, poll_s, options.seconds("stop_after", None))
    return LiveLines(path, schema, relation, None, follower)


def _line_form(format: str | None, otherwise: str, path: str, options: Options, header: bool) -> CsvForm | None:
    """How lines are written: a form of CSV, or None for JSON. header: of CSV, unless the options say otherwise."""
    chosen = format or otherwise
    if chosen not in LINE_FORMATS or is_packed(path):
        raise Error(
            f"{shown(path)}: what grows or comes in lines is csv or json\nhelp: write FORMAT csv or FORMAT json"
        )
    return csv_form(options, header) if chosen == "csv" else None


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _by_name(path: str) -> str | None:
    return _BY_NAME.get(os.path.splitext(unpacked_name(path))[1])


def _is_stream_data(start: bytes, schema: Schema) -> bool:
    line = start.split(b"\n", 1)[0].decode("latin-1").replace(" ", "").strip()
    names = {name.lower() for name in line.split(",")}
    return bool(_TYPES_LINE.fullmatch(line)) and not {n.lower() for n in schema.names} <= names


def _by_content(path: str, start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if told := other_kind(start):
        raise Error(f"{shown(path)}: {told}")
    if start.lstrip().startswith(b"{"):
        return "json"
    line = start.split(b"\n", 1)[0].removeprefix(BYTE_ORDER_MARK)
    try:
        if line and all(name.strip() for name in next(csv.reader([line.decode("utf-8")]), [""])):
            return "csv"
    except (UnicodeDecodeError, csv.Error):
        pass
    raise Error(f"{shown(path)}: the format cannot be told\nhelp: write FORMAT csv, json, parquet or arrow")
