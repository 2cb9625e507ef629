"""A few lines of CSV, field by field: a call of Arrow's reader costs more than Python takes for all of them.

Invariant: only what is written in the plainest way is read here, to the values that Arrow gives; anything else is left
to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from minidsms.elements import Type
from minidsms.sources.blocks import Block
from minidsms.sources.csv_form import TICKS_OR_ISO, CsvForm
from minidsms.sources.plain_rows import PlainRows
from minidsms.sources.text_columns import FALSE_TEXTS, TRUE_TEXTS, arrow_type

FEW = 32
"""Lines that are read so."""
_MOST_BYTES = 1 << 14

_INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")
_INSTANT = re.compile(
    r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3}(?:[0-9]{3})?)?Z?", re.ASCII
)
_BOOLEANS = dict.fromkeys(TRUE_TEXTS, True) | dict.fromkeys(FALSE_TEXTS, False)
_TIMES = pa.timestamp("us", "UTC")


def is_few(block: Block) -> bool:
    """The block has few lines."""
    return len(block.data) <= _MOST_BYTES and block.data.count(b"\n") <= FEW


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _instant(text: str) -> datetime:
    if _INSTANT.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.fromisoformat(text)


_READERS: dict[Type, Callable[[str], Any]] = {
    Type.INTEGER: _integer,
    Type.INTERVAL: _integer,
    Type.FLOAT: _float,
    Type.BOOLEAN: _BOOLEANS.__getitem__,
    Type.TEXT: str,
}


class FewLines:
    """Reads rows of a form. width: fields of a line.  positions, types: of the columns that are read."""

    def __init__(self, form: CsvForm, width: int, positions: Sequence[int], types: Sequence[Type]) -> None:
        self._delimiter, self._quote, self._nulls = form.delimiter, form.quote, form.nulls
        self._width, self._positions, self._types = width, positions, types
        self._reads = form.decimal_point == "." and form.times == TICKS_OR_ISO
        self._reads &= all(type_ in _READERS or type_ is Type.TIMESTAMP for type_ in types)

    def rows(self, block: Block, names: Sequence[str], ticks: Sequence[bool | None]) -> PlainRows | None:
        """The rows of a block; None where it is for Arrow to read. names: of the columns.  ticks: whether the instants
        of a column are, None where that is not known.
        """
        if not self._reads or not is_few(block) or block.is_broken:
            return None
        try:
            text = block.data.decode()
            lines = [line.split(self._delimiter) for line in text.removesuffix("\n").split("\n")]
            if any(len(line) != self._width for line in lines) or (self._width == 1 and [""] in lines):
                return None
            has_quotes = bool(self._quote) and self._quote in text
            if "\r" in text or (has_quotes and not all(map(self._is_closed, chain.from_iterable(lines)))):
                return None
            columns, kinds = [], []
            for position, type_, are_ticks in zip(self._positions, self._types, ticks):
                if type_ is Type.TIMESTAMP and are_ticks is None:
                    return None
                read, kind = _read_by(type_, are_ticks)
                texts = [line[position] for line in lines]
                if has_quotes:
                    columns.append([self._value(text, read) for text in texts])
                else:
                    columns.append([None if text in self._nulls else read(text) for text in texts])
                kinds.append(kind)
        except (ValueError, KeyError):
            return None
        return PlainRows(names, columns, kinds)

    def _is_closed(self, text: str) -> bool:
        """A field is in quotes as a whole, or has none."""
        quote = self._quote
        return quote not in text or (text[0] == text[-1] == quote and text.count(quote) == 2)

    def _value(self, text: str, read: Callable[[str], Any]) -> Any:
        """Of a field that may be in quotes: then nothing stands for NULL, but what is empty and no TEXT."""
        if text[:1] != self._quote:
            return None if text in self._nulls else read(text)
        return read(text[1:-1]) if len(text) > 2 or read is str else None


def _read_by(type_: Type, are_ticks: bool | None) -> tuple[Callable[[str], Any], pa.DataType]:
    if type_ is Type.TIMESTAMP:
        return (_integer, arrow_type(Type.INTEGER)) if are_ticks else (_instant, _TIMES)
    return _READERS[type_], arrow_type(type_)
