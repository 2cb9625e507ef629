"""A declaration that fits a file: its columns, their types, and the column that looks like the rows' instants."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from minidsms.cql import syntax
from minidsms.cql.errors import Error, one_line, quoted, shown
from minidsms.cql.printer import print_name, print_statement
from minidsms.elements import Type
from minidsms.inputs.conversion import FIRST_INSTANT, LAST_INSTANT
from minidsms.inputs.foreign import check_whole
from minidsms.shell.arrow_types import cql_type, nested_type
from minidsms.shell.column_guesses import Guess, delimiter_of, guess, guess_epoch, merged_options, slack_of
from minidsms.sources.blocks import BYTE_ORDER_MARK
from minidsms.sources.csv_rows import conversion, is_utf8, is_value
from minidsms.sources.files import LOCAL, open_file, other_kind, unpacked_name
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN

_BYTES = 1 << 20
_JSON = (".json", ".jsonl", ".ndjson")
_INSTANTS = ("ts", "t", "time", "timestamp", "at", "instant", "_ts")
"""What instants are called."""
_OF_CHANGES = ("ts", TS_COLUMN, "sign", SIGN_COLUMN)
"""Of a relation's file, what says when rows come and go."""


@dataclass(frozen=True)
class _Sample:
    """The beginning of a file: names, types, rows as an Arrow table, what has been guessed by column, the delimiter;
    names of columns that are left out, and why.
    """

    names: list[str]
    types: list[Type]
    table: Any
    guesses: dict[str, Guess]
    delimiter: str = ","
    left_out: tuple[tuple[str, str], ...] = ()


def declaration(source: Any, name: str | None = None) -> str:
    """CREATE STREAM for a file or a table, to be looked at, changed and carried out; CREATE RELATION where nothing in
    it looks like an instant. Of the files that a pattern or a folder names, the first is looked at.

    source: a path, or a table of pyarrow, polars or pandas.  name: of the stream; None: after the file.
    What does not speak for itself is told in comments before it. Error where the file cannot be read.
    """
    is_table = hasattr(source, "__arrow_c_stream__")
    if not is_table and not isinstance(source, str | os.PathLike):
        raise Error(f"a path, or a table of pyarrow, polars or pandas, was expected, not {type(source).__name__}")
    if is_table:
        table = source if isinstance(source, pa.Table) else pa.table(source)
        sample, path = _held(table.slice(0, 1000), ""), None
    else:
        path = os.fspath(source)
        sample = _guessed(_sample(first_file(path)))
    text, reasons = _proposed(sample, name or _name_after(path or "data"), path)
    return "".join(f"-- {one_line(reason)}\n" for reason in reasons) + text


def proposal_for(path: str) -> tuple[str, list[str]]:
    """CREATE STREAM for a file, or CREATE RELATION where nothing in it looks like an instant, without semicolon; and
    the reasons for what does not speak for itself.

    The types, how values are written and the slack are told by the beginning of the file. Error where it cannot be
    read.
    """
    return _proposed(_guessed(_sample(first_file(path))), _name_after(path), path)


def first_file(path: str) -> str:
    """The first of the files that a pattern or a folder names; any other path as it is. Error where there is none."""
    found = LOCAL.named(path)
    if found is None:
        return path
    if not found:
        raise Error(f"no file fits {shown(path)}\nhelp: relative paths start at {os.getcwd()}")
    return found[0]


def _name_after(path: str) -> str:
    """Of a file its own name, of a pattern or a folder that of the folder."""
    if LOCAL.named(path) is not None:
        path = os.path.normpath(path) if os.path.isdir(path) else os.path.dirname(path)
    name = re.sub(r"\W", "_", os.path.basename(path).split(".")[0]) or "data"
    return name if not name[0].isdigit() else f"data_{name}"


def _proposed(sample: _Sample, name: str, path: str | None) -> tuple[str, list[str]]:
    """What `proposal_for` gives. path: None: of a table."""
    columns = tuple(syntax.ColumnDef(name, type_) for name, type_ in zip(sample.names, sample.types))
    options = {"delimiter": sample.delimiter} if sample.delimiter not in ("", ",") else {}
    options |= merged_options(list(sample.guesses.values()))
    given = tuple(syntax.Option(key, value) for key, value in options.items())
    source = None if path is None else syntax.Source(path, options=given)
    reasons = [guess.reason for guess in sample.guesses.values() if guess.reason]
    if path is not None and first_file(path) != path:
        reasons.insert(0, f"only {first_file(path)} was looked at, the first of the files")
    reasons += [f"{why}; push the table without it" if path is None else why for _, why in sample.left_out]
    value = next(filter(is_value, sample.names), None) if sample.delimiter else None
    if value is not None:
        reasons.append(
            f"{quoted(value)} stands in the first line, which names the columns; where it holds values, name them, and "
            "write WITH (header = FALSE)"
        )
    by = _instants(sample)
    if by is None:
        for name_, why in sample.left_out:
            if path is not None and name_.strip().lower() in _OF_CHANGES:
                raise Error(f"cannot declare {path!r}: {why}; the files of relations have instants and signs there")
        reasons.append("no column looks like an instant: all rows are there from the first instant on")
        reasons += _fallen(sample)
        return print_statement(syntax.CreateRelation(name, columns, source=source)), reasons
    late = _lateness(sample, by)
    slack = None if not late else syntax.Duration(*_rounded(late))
    if late:
        reasons.append(
            f"SLACK: among the first {sample.table.num_rows:,} rows one stands {late:,} ms behind a later one; "
            "LATE DROP leaves out what comes later still"
        )
    stream = syntax.CreateStream(
        name, columns, timestamp_by=syntax.Name(by), slack=slack, late_drop=bool(late), source=source
    )
    return print_statement(stream), reasons


def _guessed(sample: _Sample) -> _Sample:
    """The sample, its columns of texts and numbers taken for what nearly all their values are."""
    guesses: dict[str, Guess] = {}
    if sample.table is None or not sample.table.num_rows or not sample.delimiter:
        return sample
    types = list(sample.types)
    forms: list[tuple[tuple[str, Any], ...] | None] = []
    for i, name in enumerate(sample.names):
        column = sample.table.column(i).combine_chunks()
        found = None
        if types[i] is Type.TEXT:
            found = guess(name, _texts(column), sample.delimiter != ",")
            if found is None and pa.types.is_binary(column.type):
                found = Guess(Type.TEXT, reason=f"{name}: rows with what is no UTF-8 are left out; {conversion(b'')}")
        elif types[i] in (Type.INTEGER, Type.FLOAT) and name.lower() in (*_INSTANTS, "date", "datetime"):
            found = guess_epoch(name, column)
        if Type.TIMESTAMP in (types[i], found and found.type):
            own = None if found is None or (types[i] is Type.TEXT and not found.options) else found.options
            if any(_differ(own, form) for form in forms):
                plain = Type.TEXT if types[i] is Type.TIMESTAMP else types[i]
                found = Guess(
                    plain,
                    reason=f"{name}: its times are written otherwise than those before, so it is {plain}"
                    + f"; CAST({print_name(name)} AS TIMESTAMP) reads ISO times" * (own is None and plain is Type.TEXT),
                )
            else:
                forms.append(own)
        if found is not None:
            guesses[name], types[i] = found, found.type
    return replace(sample, types=types, guesses=guesses)


def _differ(one: tuple[tuple[str, Any], ...] | None, other: tuple[tuple[str, Any], ...] | None) -> bool:
    """Times written in these two forms, of which a file has one, do not stand in it. None: ISO, beside any unit."""
    if one is None or other is None:
        return any(name == "time_format" for name, _ in (*(one or ()), *(other or ())))
    return one != other


def _texts(column: Any) -> Any:
    """A column that its reader took for TEXT as texts, also where it has no value, or one that is no UTF-8."""

    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if not pa.types.is_binary(column.type):
        return column
    return pa.array([None if value is None else value.decode(errors="replace") for value in column.to_pylist()])


def _rounded(late_ms: int) -> tuple[str, str]:
    """A length of time that is no less, in few digits: (number, unit)."""
    for unit, ms in (("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if late_ms > 2 * ms:
            return str(-(-late_ms // ms)), unit
    return str(late_ms), "millisecond"


def _lateness(sample: _Sample, by: str) -> int:
    """By how much the sample's rows are out of order, in milliseconds."""

    if by in sample.guesses:
        return slack_of(sample.guesses[by].instants)
    column = sample.table.column(sample.names.index(by)).combine_chunks()
    if pa.types.is_integer(column.type):
        return slack_of(column)
    return slack_of(column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()))


def _sample(path: str) -> _Sample:
    """The beginning of a file. The delimiter is "" where it has a form of its own."""

    kind = os.path.splitext(unpacked_name(path))[1]
    try:
        table, delimiter, mixed = _read(path, kind)
        is_named = any(name.strip() for name in table.column_names)
    except UnicodeDecodeError as error:
        raise Error(f"cannot read {path!r}: its first line is no UTF-8\nhelp: {conversion(error.object)}") from None
    except Error as error:
        raise Error(f"cannot read {path!r}: {error}") from None
    except (OSError, pa.ArrowException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise Error(f"cannot read {path!r}: {reason}") from None
    if delimiter and not is_named:
        raise Error(f"{path!r} has no line of names\nhelp: its first line names the columns, or it is no CSV file")
    if delimiter:  # they are found whatever blanks stand around them
        table = table.rename_columns([name.strip(" \t") for name in table.column_names])
    sample = _held(table, delimiter, Type.TEXT if delimiter or kind in _JSON else None)
    return _with_nested(sample, mixed) if kind in _JSON else sample


def _with_nested(sample: _Sample, mixed: Mapping[str, bool]) -> _Sample:
    """The sample of JSON lines with types for what is nested in them, and what may be otherwise in other lines. mixed:
    columns of texts, since not all values there have one type; with each, whether some are numbers or booleans.
    """
    types, guesses = list(sample.types), dict(sample.guesses)
    for i, name in enumerate(sample.names):
        column = sample.table.column(i).combine_chunks()
        if not pa.types.is_nested(column.type) and name not in mixed:
            continue
        types[i] = (None if name in mixed else nested_type(column)) or Type.TEXT
        reason = f"{name}: {types[i]}, as in the first {len(column):,} rows; TEXT takes rows of other types, too"
        if types[i] is Type.TEXT:
            reason = f"{name}: what is nested there has no one type, so it is TEXT, the JSON as it is written"
        if mixed.get(name):
            reason = f"{name}: its values have no one type, so it is TEXT; rows with a number or a boolean are refused"
        guesses[name] = Guess(types[i], reason=reason)
    return replace(sample, types=types, guesses=guesses)


def _held(table: Any, delimiter: str, otherwise: Type | None = None) -> _Sample:
    """A sample of the columns that can be declared. Error where there are none.  otherwise: of what no type holds."""
    keys = [name.strip().lower() for name in table.column_names]
    types: list[Type] = []
    kept, left_out = [], []
    for i, field in enumerate(table.schema):
        type_ = cql_type(field.type, table.column(i)) or otherwise
        if not field.name:
            why = f"column {i + 1} is left out: it has no name"
        elif keys.count(keys[i]) > 1:
            why = f"column {i + 1} is left out: {quoted(field.name)} is the name of another one, too"
        elif type_ is None:
            why = f"{field.name} is left out: no type here holds {field.type}"
        else:
            types.append(type_)
            kept.append(i)
            continue
        left_out.append((field.name, why))
    if not kept:
        raise Error(
            f"there is no column to declare: {one_line('; '.join(why for _, why in left_out)) or 'it has none'}"
        )
    chosen = table.select(kept)
    return _Sample(chosen.column_names, types, chosen, {}, delimiter, tuple(left_out))


def _read(path: str, kind: str) -> tuple[Any, str, Mapping[str, bool]]:
    """The beginning as a table; the delimiter; the columns whose values of several types are texts in it, each with
    whether numbers or booleans are among them.
    """
    if kind in (".parquet", ".pq"):
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        first = next(file.iter_batches(1000), None)
        return file.schema_arrow.empty_table() if first is None else _table(first), "", {}
    if kind in (".arrow", ".ipc", ".feather"):
        from pyarrow import ipc

        table = ipc.open_file(path).read_all()
        check_whole(table)
        return table.slice(0, 1000), "", {}
    if re.match(r"[a-z0-9-]+://", path, re.IGNORECASE):
        raise Error("only files of this machine are looked at\nhelp: copy its first lines into a file")
    file = open_file(path)
    try:
        start = file.data.read(_BYTES)
    finally:
        file.close()
    if told := other_kind(start):
        raise Error(told)
    if len(start) == _BYTES:
        start = start[: start.rfind(b"\n") + 1]
    if kind in _JSON:
        table, mixed = _read_json(start)
        return table, "", mixed
    from pyarrow import csv

    if not start.removeprefix(BYTE_ORDER_MARK).split(b"\n", 1)[0].strip():
        raise ValueError("its first line is empty" if start.strip() else "it is empty")
    delimiter = delimiter_of(start.split(b"\n", 1)[0].decode())
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    if not is_utf8(start):  # Arrow has nowhere to raise where it hands over a row of another width
        try:
            form = csv.ParseOptions(delimiter=delimiter)
            return csv.read_csv(pa.BufferReader(start), parse_options=form, convert_options=options), delimiter, {}
        except pa.ArrowInvalid:
            start = start.decode("utf-8", "replace").encode()
    form = csv.ParseOptions(delimiter=delimiter, invalid_row_handler=lambda row: "skip")
    return csv.read_csv(pa.BufferReader(start), parse_options=form, convert_options=options), delimiter, {}


def _read_json(lines: bytes) -> tuple[Any, Mapping[str, bool]]:
    """A table, and the columns whose values have several types, of which it has texts: Arrow reads no such lines. With
    each, whether numbers or booleans stand there, which TEXT does not take.
    """
    from pyarrow import json as arrow_json

    from minidsms.sources.json_rows import ARRAY_HELP, crashes_arrow, line_of_array, no_object

    line = line_of_array(lines)
    if line is not None:
        raise Error(f"a JSON array begins in line {line}\nhelp: {ARRAY_HELP}")
    if crashes_arrow(lines):
        raise pa.ArrowInvalid("null where an object should stand")
    try:
        return arrow_json.read_json(pa.BufferReader(lines)), {}
    except pa.ArrowInvalid as error:
        try:
            rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
        except RecursionError:
            raise error from None  # it tells the row
        except ValueError:
            number, text = next((i, s) for i, s in enumerate(lines.splitlines(), 1) if s.strip() and not _is_json(s))
            raise Error(f"line {number}: {no_object(text.decode('utf-8', 'replace'))}") from None
        if not all(isinstance(row, dict) for row in rows):
            raise
    names = {name for row in rows for name in row}
    mixed = {name for name in names if not _is_of_one_type([row.get(name) for row in rows])}
    flat = [{k: json.dumps(v) if k in mixed and not _is_text(v) else v for k, v in row.items()} for row in rows]
    table = arrow_json.read_json(pa.BufferReader("\n".join(map(json.dumps, flat)).encode()))
    return table, {n: any(isinstance(row.get(n), int | float) for row in rows) for n in mixed}


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    """TEXT takes it as it is: a text, or NULL."""
    return value is None or isinstance(value, str)


def _is_of_one_type(values: Sequence[Any]) -> bool:
    """Whether Arrow reads the values as members of one name."""
    from pyarrow import json as arrow_json

    try:
        arrow_json.read_json(pa.BufferReader("\n".join(json.dumps({"": value}) for value in values).encode()))
    except pa.ArrowInvalid:
        return False
    return True


def _table(batch: Any) -> Any:

    check_whole(batch)
    return pa.Table.from_batches([batch])


def _instants(sample: _Sample) -> str | None:
    """The first TIMESTAMP column, else an INTEGER column called like an instant whose values never fall."""
    for name, type_ in zip(sample.names, sample.types):
        if type_ is Type.TIMESTAMP:
            return name
    return next((name for name, values in _called_instants(sample) if values == sorted(values)), None)


def _called_instants(sample: _Sample) -> Iterator[tuple[str, list[int]]]:
    """INTEGER columns that are called like instants, and their values, which might be some."""
    for name, type_ in zip(sample.names, sample.types):
        if type_ is Type.INTEGER and name.lower() in _INSTANTS:
            column = sample.table.column(sample.names.index(name))
            values = column.drop_null().to_pylist() if pa.types.is_integer(column.type) else []
            if values and min(values) > FIRST_INSTANT and max(values) < LAST_INSTANT:
                yield name, values


def _fallen(sample: _Sample) -> list[str]:
    """Why columns that are called like instants are taken for none."""
    told = []
    for name, values in _called_instants(sample):
        before, fallen = next((a, b) for a, b in pairwise(values) if b < a)
        told.append(
            f"{name}: {fallen} stands behind {before}, so it is no instant; if it is one, declare a STREAM with "
            f"TIMESTAMP BY {print_name(name)} SLACK n"
        )
    return told
