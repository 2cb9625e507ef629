"""Rows of CSV: blocks of whole records to typed batches.

A block is parsed by Arrow straight into typed columns; a block that does not parse is read again as text, column by
column, and where its records are no lines, row by row. The rows that cannot be read are counted and kept
(`text_columns` says why all ways agree).

CSV: the first line names the columns, in any order; others than the schema's are ignored; or the columns are the
schema's, in its order. An empty field is NULL, and so is an empty quoted one unless the column is TEXT. STREAM data:
`i,i,f,b,c4`, then rows; the first column is ts, a relation's second is + or -; texts are taken as they stand.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.elements import BoolArray, Schema, Type
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.blocks import BYTE_ORDER_MARK, LINES, Block, Lines, Marks, Reject, are_lines, csv_rows, reject
from minidsms.sources.csv_form import USUAL, CsvForm
from minidsms.sources.few_lines import FewLines
from minidsms.sources.files import other_kind
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN, choose_columns
from minidsms.sources.text_columns import (
    FALSE_TEXTS,
    TRUE_TEXTS,
    are_ticks,
    arrow_type,
    is_whole,
    may_hold_hexadecimals,
    read_texts,
)

_EMPTY = re.compile(rb"[\r\n]*\Z")
_Rejected = tuple[int, bytes, str]
"""Line, text and reason."""
_Fields = tuple[Sequence[tuple[int, bytes]], list[Any], list[_Rejected]]
"""(line, text) of rows of the right width; their fields, a binary array a column; the others."""
_OF_VALUES = re.compile(r"[-+]?\d[\d.:\-T ]*")


def is_value(name: str) -> bool:
    """A number or a time stands where a column is named."""
    return _OF_VALUES.fullmatch(name) is not None


def conversion(text: bytes) -> str:
    """What to do with a file that has this text, which is no UTF-8."""
    return f"convert the file, for example with iconv -f {'UTF-16' if bytes(1) in text else 'WINDOWS-1252'} -t UTF-8"


class CsvRows:
    """Reads blocks of one file or connection. path: as errors name it.  rejected: where malformed rows go.
    See `text_file.Rows`.
    """

    def __init__(
        self,
        path: str,
        schema: Schema,
        rejected: RejectedRows,
        types_line: bool = False,
        form: CsvForm = USUAL,
    ) -> None:
        self.path = path
        self.schema = schema
        self.rejected = rejected
        self._has_types_line = types_line
        self._form = form
        self._marks = LINES if types_line else form.marks
        self._nulls = [null.encode() for null in form.nulls]
        self._ticks: dict[str, bool] = {}

    def take_header(self, header: bytes, relation: bool) -> None:
        """Learn the columns from the first line, where the form does not name them. Error where one is missing."""
        if self._has_types_line:
            self._take_types(header, relation)
        elif self._form.names:
            self._take_names(self._form.names, relation)
        else:
            self._take_names(self._names_in(header), relation)

    def take_order(self, relation: bool) -> None:
        """Without a first line: the columns are those the form names, or the schema's in its order; then a relation's
        lines have ts and sign before them.
        """
        if self._form.names:
            self._take_names(self._form.names, relation)
        else:
            self._take_order([TS_COLUMN, SIGN_COLUMN] if relation else [])

    def _take_order(self, extra: list[str]) -> None:
        self._width = len(extra) + len(self.schema)
        self._positions = [*range(len(extra), self._width), *range(len(extra))]
        self._names = [*(f.name for f in self.schema), *extra]
        self._types = [*self.schema.types, *_extra_types(extra)]
        self._few = FewLines(self._form, self._width, self._positions, self._types)

    def read(self, block: Block) -> Any:
        """The rows of a block as a record batch, or as PlainRows; those that cannot be read are counted and kept."""
        few = self._few.rows(block, self._names, list(map(self._ticks.get, self._names)))
        if few is not None:
            return few
        batch, rejects = self.parse(block)
        for each in rejects:
            self.rejected.add(*each)
        return batch

    @property
    def is_settled(self) -> bool:
        """The blocks so far have told all about the columns: `parse` depends on nothing but its block now."""
        return all(name in self._ticks for name, type_ in zip(self._names, self._types) if type_ is Type.TIMESTAMP)

    @property
    def learned(self) -> Any:
        return dict(self._ticks)

    def learn(self, learned: Any) -> None:
        self._ticks = dict(learned or {})

    def parse(self, block: Block) -> tuple[Any, list[Reject]]:
        """The rows of a block as a record batch, and those that cannot be read."""
        if _EMPTY.match(block.data):
            return self._batch([pa.nulls(0, arrow_type(type_)) for type_ in self._types]), []
        for are_typed in (True, False) if not block.is_broken else ():
            try:
                return self._parse(block, are_typed)
            except (pa.ArrowInvalid, UnicodeError):
                pass
        rows, fields, rejects = self._fields_one_by_one(block)
        return self._batch_of(lambda: rows, fields, rejects)

    # -------------------------------------------------------------------------------------------------- headers

    def _names_in(self, header: bytes) -> list[str]:
        if told := other_kind(header):
            raise Error(f"{self.path}: {told}")
        try:
            line = header.decode("utf-8")
            if self._form.quote:
                found = next(csv.reader([line], delimiter=self._form.delimiter, quotechar=self._form.quote), [])
            else:
                found = line.split(self._form.delimiter)
        except UnicodeDecodeError:
            raise Error(f"{self.path}: the first line is no UTF-8\nhelp: {conversion(header)}") from None
        except csv.Error as error:
            told = f"the first line cannot be read: {error}"
            if b"\r" in header:
                told = "lines end in a carriage return alone\nhelp: write line feeds in their place: tr '\\r' '\\n'"
            raise Error(f"{self.path}: {told}") from None
        names = [name.strip() for name in found]
        if not any(names):
            raise Error(f"{self.path}: the first line is empty\nhelp: a CSV file begins with the names of its columns")
        return names

    def _way_out(self, names: Sequence[str]) -> str:
        """The option that the first line asks for, where it holds no names."""
        if len(names) == 1:
            by = next((each for each in (";", "\t", "|", ",") if each in names[0]), "")
            return f"; WITH (delimiter = '{'tab' if by.isspace() else by}') says what separates them" if by else ""
        if any(map(is_value, names)):
            return "; WITH (header = false) reads a file without a line of names"
        return ""

    def _take_names(self, names: Sequence[str], relation: bool) -> None:
        columns = choose_columns(self.path, names, self.schema, relation, self._way_out(names))
        self._width = len(names)
        self._positions = [c.position for c in columns]
        self._names = [c.batch_name for c in columns]
        self._types = [*self.schema.types, *_extra_types(self._names[len(self.schema) :])]
        self._few = FewLines(self._form, self._width, self._positions, self._types)

    def _take_types(self, header: bytes, relation: bool) -> None:
        extra = [TS_COLUMN, SIGN_COLUMN] if relation else [TS_COLUMN]
        types = header.decode("latin-1").replace(" ", "").split(",")
        width = len(extra) + len(self.schema)
        if len(types) != width:
            kind = "ts, sign" if relation else "ts"
            raise Error(f"{self.path}: the first line has {len(types)} types, not {width} ({kind}, {self.schema})")
        for found, field in zip(types[len(extra) :], self.schema):
            if (found in ("i", "f")) != (field.type in (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL, Type.FLOAT)):
                raise Error(
                    f'{self.path}: the first line says {found} for column "{field.name}", which is {field.type}'
                )
        self._take_order(extra)

    # -------------------------------------------------------------------------------------------------- parsing

    def _table(self, block: Block, are_typed: bool, skip: Callable[[Any], str] | None) -> Any:
        """The block's chosen columns, typed by Arrow or as they stand; rows of another width go to `skip`, or raise."""
        names = [str(i) for i in range(self._width)]
        chosen = [names[i] for i in self._positions]
        are_read_later = are_typed and may_hold_hexadecimals(block.data)
        kinds = [
            arrow_type(type_) if are_typed and not (are_read_later and is_whole(type_)) else pa.binary()
            for type_ in self._types
        ]
        # Arrow takes a byte order mark for one wherever a block begins.
        mark = BYTE_ORDER_MARK if block.data.startswith(BYTE_ORDER_MARK) else b""
        table = arrow_csv.read_csv(
            pa.BufferReader(mark + block.data),
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=len(block.data) + 4, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._form.delimiter,
                quote_char=self._marks.quote.decode() or False,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict(zip(chosen, kinds)),
                include_columns=chosen,
                null_values=list(self._form.nulls),
                decimal_point=self._form.decimal_point,
                strings_can_be_null=not self._has_types_line,
                quoted_strings_can_be_null=False,
                true_values=list(TRUE_TEXTS),
                false_values=list(FALSE_TEXTS),
            ),
        )
        return table.combine_chunks()

    def _parse(self, block: Block, are_typed: bool) -> tuple[Any, list[Reject]]:
        """All rows at once. ArrowInvalid or UnicodeError where that cannot be done."""
        widths: dict[int, int] = {}

        def skip(row: Any) -> str:
            widths[row.number - 1] = row.actual_columns
            return "skip"

        # Arrow decodes what it hands over, and has nowhere to raise.
        table = self._table(block, are_typed, skip if is_utf8(block.data) else None)
        fields = [_one_array(table.column(i)) for i in range(len(self._types))]
        rejects: list[_Rejected] = []
        if widths:
            # Arrow counts lines that are not empty.
            lines = _lines(block, self._marks, len(table) + len(widths))
            rejects = [(*lines[i], _of_width(width, self._width)) for i, width in widths.items()]
        return self._batch_of(
            lambda: _lines(block, self._marks, len(table) + len(widths)).without(list(widths)), fields, rejects
        )

    def _batch_of(
        self, rows: Callable[[], Sequence[tuple[int, bytes]]], fields: list[Any], rejects: list[_Rejected]
    ) -> tuple[Any, list[Reject]]:
        """Rows column by column; those with a field that cannot be read go to the rejects.

        rows: gives (line, text) of each, asked for where one cannot be read.  fields: an array a column.
        """
        bad = np.zeros(len(fields[0]), np.bool_)
        reasons: dict[int, str] = {}
        columns = []
        for i, type_ in enumerate(self._types):
            column, wrong = self._read(i, fields[i])
            for row in np.flatnonzero(wrong).tolist():
                shown = fields[i][row].cast(pa.binary()).as_py()[:60].decode("utf-8", "replace")
                told = "is no UTF-8" if type_ is Type.TEXT else f"cannot be read as {type_}"
                reasons.setdefault(row, f'column "{self._names[i]}": {shown!r} {told}')
            bad |= wrong
            columns.append(column)
        if reasons:
            texts = rows()
            rejects = rejects + [(*texts[row], reason) for row, reason in reasons.items()]
            columns = [column.filter(pa.array(~bad)) for column in columns]
        ordered = sorted(rejects, key=lambda reject: reject[0])
        return self._batch(columns), [reject(self.path, line, text, reason) for line, text, reason in ordered]

    def _read(self, i: int, fields: Any) -> tuple[Any, BoolArray]:
        """(array, bad): the fields of a column as its type."""
        type_ = self._types[i]
        if fields.type == arrow_type(type_) and type_.is_basic and type_ is not Type.TIMESTAMP:
            return fields, np.zeros(len(fields), np.bool_)
        if type_ is not Type.TEXT:
            fields = _empty_is_null(fields)
        elif self._has_types_line:
            fields = fields.fill_null(b"")
        ticks = self._are_ticks(i, fields) if type_ is Type.TIMESTAMP else None
        return read_texts(fields, type_, ticks, self._form.times, self._form.decimal_point)

    def _fields_one_by_one(self, block: Block) -> _Fields:
        """Row by row; every way to write CSV is understood."""
        rows, fields = [], []
        rejects: list[_Rejected] = []
        for line, text, found in csv_rows(block, self._marks, self._nulls):
            if block.is_broken:
                long = "the line is longer than 1 MB, was cut off, or has a quote that is not closed"
                rejects.append((line, text, "a quote is not closed" if self._marks.quote in text else long))
            elif len(found) != self._width:
                rejects.append((line, text, _of_width(len(found), self._width)))
            else:
                rows.append((line, text))
                fields.append(found)
        return rows, [pa.array([row[p] for row in fields], pa.binary()) for p in self._positions], rejects

    def _are_ticks(self, i: int, texts: Any) -> bool | None:
        name = self._names[i]
        if name not in self._ticks:
            ticks = are_ticks(texts, self._form.times.epoch is not None)
            if ticks is None:
                return None
            self._ticks[name] = ticks
        return self._ticks[name]

    def _batch(self, columns: list[Any]) -> Any:
        return pa.RecordBatch.from_arrays(columns, names=self._names)


def is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _lines(block: Block, marks: Marks, records: int) -> Lines:
    """The lines of the records. ArrowInvalid where a record may not be a line."""
    data = block.data
    is_plain = b"\r" not in data or data.count(b"\r") == data.count(b"\r\n")
    if is_plain and are_lines(data, marks) and len(lines := Lines(block)) == records:
        return lines
    raise pa.ArrowInvalid("not a record a line")


def _of_width(found: int, width: int) -> str:
    return f"{counted(found, 'field')}, not {width}"


def _extra_types(names: list[str]) -> list[Type]:
    return [Type.TIMESTAMP if name == TS_COLUMN else Type.TEXT for name in names]


def _one_array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _empty_is_null(texts: Any) -> Any:
    """Empty texts, quoted or not, as NULL: only TEXT knows an empty value."""
    lengths: BoolArray = pc.fill_null(pc.equal(pc.binary_length(texts), 0), False)
    return pc.if_else(lengths, pa.scalar(None, texts.type), texts)
