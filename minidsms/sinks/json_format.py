"""JSON lines: an object per element, `{"_ts":0,"_sign":1,"car":7}`; NULL is null.

An infinite FLOAT is written as 1e999, which is a number of JSON and reads as infinity.
"""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Schema
from minidsms.sinks.few_rows import few_rows
from minidsms.sinks.lines import is_text, join, joined, json_lists, plain_columns, replace_where, written

_TEXT_OR_INFINITY = re.compile(r'"(?:[^"\\]|\\.)*"|Infinity')
_NEEDS_ESCAPE = '["\\\\\\x00-\\x1f\\x7f]'


class JsonFormat:
    """Elements of a schema as JSON lines."""

    def __init__(self, schema: Schema, codec: ResultCodec) -> None:
        self._codec = codec
        names = codec.table(()).column_names
        self._before = [("{" if i == 0 else ",") + json.dumps(name) + ":" for i, name in enumerate(names)]
        self._few = few_rows(schema, codec, partial(json.dumps, ensure_ascii=False), '"', "1e999", "null")

    def header(self) -> bytes:
        """Nothing: every line says its names."""
        return b""

    def decode(self, batch: Batch) -> Any:
        """The values of a few elements, or a table."""
        values = None if self._few is None else self._few.decode(batch)
        return self._codec.table((batch,)) if values is None else values

    def text(self, table: Any) -> bytes:
        """A line per element."""
        if isinstance(table, list) and self._few is not None:
            names = self._before
            rows = ("".join(chain.from_iterable(zip(names, row))) for row in self._few.rows(table))
            return "".join([row + "}\n" for row in rows]).encode()
        pieces: list[Any] = []
        for before, column in zip(self._before, plain_columns(table)):
            pieces += [before, _value(column)]
        return joined([*pieces, "}\n"], "", null="null")


def _finite(text: str) -> str:
    """Nested values as JSON, with numbers for infinities: Python's `Infinity` is none, but within a text it is one."""
    return _TEXT_OR_INFINITY.sub(lambda found: "1e999" if found[0] == "Infinity" else found[0], text)


def _value(column: Any) -> Any:
    if is_text(column):
        escape = pc.match_substring_regex(column, _NEEDS_ESCAPE)
        # The body only: the quotes around it are added to all alike.
        texts = written(replace_where(column, escape, lambda text: json.dumps(text, ensure_ascii=False)[1:-1]))
        return join(('"', texts, '"'), "")
    if pa.types.is_temporal(column.type):
        return join(('"', written(column), '"'), "")
    if pa.types.is_nested(column.type):
        texts = json_lists(column)
        return replace_where(texts, pc.match_substring(texts, "Infinity"), _finite)
    texts = written(column)
    if pa.types.is_floating(column.type):
        infinite = pc.is_inf(column)
        return replace_where(texts, infinite, lambda text: "-1e999" if text.startswith("-") else "1e999")
    return texts
