"""The lines of the STREAM prototype: `[ts]:+:v1, v2`, `-` for a row that leaves.

A FLOAT has six significant digits, as C's %g writes it; texts stand as they are but for line ends and the like, which
are escaped so that a row stays a line; NULL is written NULL, TIMESTAMP and INTERVAL as ticks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.sinks.lines import joined, replace_where, written

_CONTROL = "[\\x00-\\x1f\\x7f]"


class StreamFormat:
    """Elements of a schema as lines of STREAM."""

    def __init__(self, schema: Schema, codec: ResultCodec) -> None:
        self._schema = schema
        self._codec = codec

    def header(self) -> bytes:
        """Nothing stands before the first line."""
        return b""

    def decode(self, batch: Batch) -> tuple[Batch, list[Any]]:
        """The elements, and the texts of the columns that are not written as numbers."""
        texts = [self._codec.texts(batch.column(i), t) for i, t in enumerate(self._schema.types) if _is_written(t)]
        return batch, texts

    def text(self, decoded: tuple[Batch, list[Any]]) -> bytes:
        """A line per element."""
        batch, texts = decoded[0], iter(decoded[1])
        pieces: list[Any] = ["[", written(pa.array(batch.ts))]
        if batch.sign is None:
            pieces.append("]:+:")
        else:
            marks = pa.array(["]:-:", "]:+:"], pa.large_string())
            pieces.append(marks.take(pa.array((batch.sign > 0).astype(np.int8))))
        for i, type_ in enumerate(self._schema.types):
            pieces += [", "] if i else []
            pieces.append(_escaped_where(next(texts)) if _is_written(type_) else _texts(batch.column(i), type_))
        return joined([*pieces, "\n"], "", null="NULL")


def _is_written(type_: Type) -> bool:
    return type_.is_coded or type_ in (Type.DATE, Type.TIME)


def _texts(column: Column, type_: Type) -> Any:
    if type_ is Type.FLOAT:
        return six_digits(column)
    if type_ is Type.NULL:
        return pa.nulls(len(column), pa.large_string())
    mask = None if column.valid is None else ~column.valid
    return written(pa.array(column.values, mask=mask))


def _escaped_where(texts: Any) -> Any:
    texts = written(texts)
    return replace_where(texts, pc.match_substring_regex(texts, _CONTROL), _escaped)


def six_digits(column: Column) -> Any:
    """The values of a FLOAT column as %g writes them, (n,) large strings; NULL stays NULL.

    >>> import numpy as np
    >>> six_digits(Column(np.array([2.0, 1234567.0, 0.1, 2 / 3, 1e-5]))).to_pylist()
    ['2', '1.23457e+06', '0.1', '0.666667', '1e-05']
    """
    n = len(column)
    if n == 0:
        return pa.array([], pa.large_string())
    # One format for all values costs half of one each.
    texts = ("%g\n" * n % tuple(column.values.tolist())).split("\n")
    texts.pop()
    return pa.array(texts, pa.large_string(), mask=None if column.valid is None else ~column.valid)


def _escaped(text: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(named.get(c, f"\\x{ord(c):02x}") if ord(c) < 32 or ord(c) == 127 else c for c in text)
