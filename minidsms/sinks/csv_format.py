"""CSV: a line of names, `_ts,_sign,..`, then a line per element.

NULL is an empty field; a text stands in quotes where it would be read otherwise: the empty text, and one with a comma,
a quote, a line's end or blanks at its ends.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Schema, Type
from minidsms.sinks.few_rows import few_rows
from minidsms.sinks.lines import is_text, join, joined, json_lists, plain_columns, replace_where, written

KERNEL_FROM = 65_536
"""Elements of a sink from which loading the kernel that writes them pays."""
_NEEDS_QUOTES = r'^\s|\s$|[",\r\n]|^$'
_ANY_QUOTES = re.compile(r'^[\t\n\f\r ]|[\t\n\f\r ]\Z|[",\r\n]|^\Z').search
"""The same of one text: blanks are those of ASCII to Arrow."""
_PLAIN = arrow_csv.WriteOptions(include_header=False, quoting_style="none")


class CsvFormat:
    """Elements of a schema as CSV."""

    def __init__(self, schema: Schema, codec: ResultCodec) -> None:
        self._codec = codec
        self._has_texts = bool(schema.coded)
        self._is_whole_numbers = not codec.has_times and all(t in (Type.INTEGER, Type.INTERVAL) for t in schema.types)
        self._written = 0
        self._few = few_rows(schema, codec, field)

    def header(self) -> bytes:
        """The names of the columns."""
        names = pa.array(self._codec.table(()).column_names, pa.large_string())
        quoted = replace_where(names, pc.match_substring_regex(names, _NEEDS_QUOTES), _quoted)
        return (",".join(quoted.to_pylist()) + "\n").encode()

    def decode(self, batch: Batch) -> Any:
        """The values of a few elements, else a table of them, or they themselves where no value is a code."""
        values = None if self._few is None else self._few.decode(batch)
        if values is not None:
            return values
        return self._codec.table((batch,)) if self._has_texts else batch

    def text(self, decoded: Any) -> bytes:
        """A line per element."""
        if isinstance(decoded, list) and self._few is not None:
            self._written += len(decoded[0])
            return "".join([",".join(row) + "\n" for row in self._few.rows(decoded)]).encode()
        if isinstance(decoded, Batch):
            self._written += len(decoded)
            if self._is_whole_numbers and self._written >= KERNEL_FROM:
                return _whole_numbers(decoded)
            decoded = self._codec.table((decoded,))
        return self._lines(decoded)

    def _lines(self, table: Any) -> bytes:
        columns = [json_lists(column) for column in plain_columns(table)]
        masks = {i: pc.match_substring_regex(c, _NEEDS_QUOTES) for i, c in enumerate(columns) if is_text(c)}
        if not any(pc.any(mask).as_py() for mask in masks.values()):
            buffer = io.BytesIO()
            arrow_csv.write_csv(pa.Table.from_arrays(columns, table.column_names), buffer, _PLAIN)
            return buffer.getvalue()
        # Arrow's writer either quotes every text or refuses those that need it.
        for i, mask in masks.items():
            columns[i] = replace_where(columns[i], mask, _quoted)
        pieces = [written(column) for column in columns]
        pieces[-1] = join((pieces[-1], "\n"), "", null="")
        return joined(pieces, ",")


def _whole_numbers(batch: Batch) -> bytes:
    """The same for columns of int64 values."""
    from minidsms.kernels.decimal_lines import MOST_BYTES, write_lines

    values = np.array([batch.ts, batch.signs, *(column.values for column in batch.columns)], np.int64)
    present = np.zeros((0, 0), np.bool_)
    if any(column.valid is not None for column in batch.columns):
        present = np.ones(values.shape, np.bool_)
        for i, column in enumerate(batch.columns, 2):
            if column.valid is not None:
                present[i] = column.valid
    out = np.empty(values.size * MOST_BYTES, np.uint8)
    return out[: write_lines(values, present, out)].tobytes()


def field(text: str) -> str:
    """A text as it stands between commas."""
    return _quoted(text) if _ANY_QUOTES(text) else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
