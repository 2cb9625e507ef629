"""Rows of CSV: blocks of whole records to typed batches.

A block is parsed by Arrow straight into typed columns; a block that does not parse is read again as text, column by
column, and the rows that cannot be read are counted and kept (`text_columns` says why both ways agree).

CSV: the first line names the columns, in any order; others than the schema's are ignored; or the columns are the
schema's, in its order. An empty field is NULL, and so is an empty quoted one unless the column is TEXT. STREAM data:
`i,i,f,b,c4`, then rows; the first column is ts, a relation's second is + or -; texts are taken as they stand.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from minidsms.cql.errors import Error
from minidsms.elements import BoolArray, Schema, Type
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.blocks import Block, Reject, csv_rows, reject
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN, choose_columns
from minidsms.sources.text_columns import (
    FALSE_TEXTS,
    TRUE_TEXTS,
    are_ticks,
    arrow_type,
    read_texts,
    read_timestamps,
)


class CsvRows:
    """Reads blocks of one file or connection. path: as errors name it.  rejected: where malformed rows go."""

    def __init__(self, path: str, schema: Schema, rejected: RejectedRows, types_line: bool = False) -> None:
        self.path = path
        self.schema = schema
        self.rejected = rejected
        self._has_types_line = types_line
        self._ticks: dict[str, bool] = {}

    def take_header(self, header: bytes, relation: bool) -> None:
        """Learn the columns from the first line. Error where one is missing."""
        if self._has_types_line:
            self._take_types(header, relation)
        else:
            self._take_names(header, relation)

    def take_order(self, relation: bool) -> None:
        """The columns are the schema's in its order; a relation's lines have ts and sign before them."""
        self._take_order([TS_COLUMN, SIGN_COLUMN] if relation else [])

    def _take_order(self, extra: list[str]) -> None:
        self._width = len(extra) + len(self.schema)
        self._positions = [*range(len(extra), self._width), *range(len(extra))]
        self._names = [*(f.name for f in self.schema), *extra]
        self._types = [*self.schema.types, *_extra_types(extra)]

    def read(self, block: Block) -> Any:
        """The rows of a block as a record batch; those that cannot be read are counted and kept."""
        batch, rejects = self.parse(block)
        for each in rejects:
            self.rejected.add(*each)
        return batch

    @property
    def is_settled(self) -> bool:
        """The blocks so far have told all about the columns: `parse` depends on nothing but its block now."""
        return all(name in self._ticks for name, type_ in zip(self._names, self._types) if type_ is Type.TIMESTAMP)

    def parse(self, block: Block) -> tuple[Any, list[Reject]]:
        """The rows of a block as a record batch, and those that cannot be read."""
        try:
            if not block.is_broken:
                return self._parse(block), []
        except (pa.ArrowInvalid, UnicodeError):
            pass
        return self._salvage(block)

    # -------------------------------------------------------------------------------------------------- headers

    def _take_names(self, header: bytes, relation: bool) -> None:
        try:
            names = next(csv.reader([header.decode("utf-8")]), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise Error(f"{self.path}: the first line cannot be read: {error}") from None
        names = [name.strip() for name in names]
        if not any(names):
            raise Error(f"{self.path}: the first line is empty\nhelp: a CSV file begins with the names of its columns")
        columns = choose_columns(self.path, names, self.schema, relation)
        self._width = len(names)
        self._positions = [c.position for c in columns]
        self._names = [c.batch_name for c in columns]
        self._types = [*self.schema.types, *_extra_types(self._names[len(self.schema) :])]

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

    def _table(self, block: Block) -> Any:
        """The block's chosen columns, typed by Arrow."""
        names = [str(i) for i in range(self._width)]
        chosen = [names[i] for i in self._positions]
        table = arrow_csv.read_csv(
            pa.BufferReader(block.data),
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=len(block.data) + 1, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                quote_char=False if self._has_types_line else '"', newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: arrow_type(type_) for name, type_ in zip(chosen, self._types)},
                include_columns=chosen,
                null_values=[""],
                strings_can_be_null=not self._has_types_line,
                quoted_strings_can_be_null=False,
                true_values=list(TRUE_TEXTS),
                false_values=list(FALSE_TEXTS),
            ),
        )
        return table.combine_chunks()

    def _parse(self, block: Block) -> Any:
        """The quick way: typed by Arrow."""
        if not block.data.strip(b"\r\n"):
            return self._batch([pa.nulls(0, arrow_type(t)) for t in self._types])
        table = self._table(block)
        columns = []
        for i, type_ in enumerate(self._types):
            column = _one_array(table.column(i))
            if type_ is Type.TIMESTAMP:
                column = read_timestamps(_empty_is_null(column), self._are_ticks(i, column))
            columns.append(column)
        return self._batch(columns)

    def _salvage(self, block: Block) -> tuple[Any, list[Reject]]:
        """The careful way: row by row, field by field, then column by column."""
        rows = []
        rejects: list[tuple[int, bytes, str]] = []
        for line, text, fields in csv_rows(block, not self._has_types_line):
            if block.is_broken:
                long = "the line is longer than 1 MB, or a quote is not closed"
                rejects.append((line, text, "a quote is not closed" if b'"' in text else long))
            elif len(fields) != self._width:
                rejects.append((line, text, f"{len(fields)} fields, not {self._width}"))
            else:
                rows.append((line, text, fields))
        bad = np.zeros(len(rows), np.bool_)
        reasons: dict[int, str] = {}
        columns = []
        for i, type_ in enumerate(self._types):
            texts = pa.array([fields[self._positions[i]] for _, _, fields in rows], pa.binary())
            if type_ is not Type.TEXT:
                texts = _empty_is_null(texts)
            elif self._has_types_line:
                texts = texts.fill_null(b"")
            ticks = self._are_ticks(i, texts) if type_ is Type.TIMESTAMP else None
            column, wrong = read_texts(texts, type_, ticks)
            for row in np.flatnonzero(wrong).tolist():
                shown = texts[row].as_py()[:60].decode("utf-8", "replace")
                reasons.setdefault(row, f'column "{self._names[i]}": {shown!r} is no {type_}')
            bad |= wrong
            columns.append(column)
        rejects += [(rows[row][0], rows[row][1], reason) for row, reason in reasons.items()]
        ordered = sorted(rejects, key=lambda reject: reject[0])
        batch = self._batch([column.filter(pa.array(~bad)) for column in columns])
        return batch, [reject(self.path, line, text, reason) for line, text, reason in ordered]

    def _are_ticks(self, i: int, texts: Any) -> bool | None:
        name = self._names[i]
        if name not in self._ticks:
            if pa.types.is_binary(texts.type):
                texts = pa.array(
                    [None if v is None else v.decode("utf-8", "replace") for v in texts.to_pylist()], pa.string()
                )
            ticks = are_ticks(texts)
            if ticks is None:
                return None
            self._ticks[name] = ticks
        return self._ticks[name]

    def _batch(self, columns: list[Any]) -> Any:
        return pa.RecordBatch.from_arrays(columns, names=self._names)


def _extra_types(names: list[str]) -> list[Type]:
    return [Type.TIMESTAMP if name == TS_COLUMN else Type.TEXT for name in names]


def _one_array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _empty_is_null(texts: Any) -> Any:
    """Empty texts, quoted or not, as NULL: only TEXT knows an empty value."""
    lengths: BoolArray = pc.fill_null(pc.equal(pc.binary_length(texts), 0), False)
    return pc.if_else(lengths, pa.scalar(None, texts.type), texts)
