"""A text file in blocks of whole records.

Invariant: every byte of the file is in exactly one block; a block ends at a record's end, and begins at the line
`first_line` says, wherever blocks are cut. A record is a line, or with quotes a CSV record whose quoted fields may hold
newlines. Where a quote is never closed, or only beyond RECORD_BYTES, the record's first line is a block of its own,
marked as broken: one bad quote costs a line and not the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import IO, Any

import numpy as np

from minidsms.cql.errors import Error
from minidsms.cql.masking import masked
from minidsms.elements import BoolArray
from minidsms.sources.files import reading

BLOCK_BYTES = 4 << 20
RECORD_BYTES = 1 << 20
"""The longest record with newlines in quotes."""
_HEADER_BYTES = 1 << 16
"""Of a first record with newlines in quotes, about."""
LINE_BYTES = 64 << 20
"""The longest line; a file with a longer one is no text."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEWLINE = 10
_RETURN = 13
_ROW_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Marks:
    """What divides CSV. delimiter: one byte between fields.  quote: one byte around fields; none: nothing is quoted."""

    delimiter: bytes = b","
    quote: bytes = b'"'


LINES = Marks(quote=b"")
"""A record is a line, whatever stands in it."""


@cache
def _before_field(delimiter: bytes) -> BoolArray:
    """By byte: a field may begin behind it."""
    found = np.zeros(256, np.bool_)
    found[list(delimiter + b"\r\n")] = True
    return found


@cache
def _quoted(marks: Marks) -> re.Pattern[bytes]:
    """A field in quotes. A quote means something only where a field begins; the group is the closing quote."""
    q = re.escape(marks.quote)
    text = rb"(?:(?<=[%b\n\r])|\A)%b[^%b]*(?:%b%b[^%b]*)*(%b?)"
    return re.compile(text % (re.escape(marks.delimiter), q, q, q, q, q, q))


@cache
def _field(marks: Marks) -> re.Pattern[bytes]:
    """A field and what ends it."""
    d, q = re.escape(marks.delimiter), re.escape(marks.quote)
    text = rb"(?:%b([^%b]*(?:%b%b[^%b]*)*)%b([^%b]*)|([^%b]*))(%b|\Z)"
    return re.compile(text % (q, q, q, q, q, q, d, d, d), re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Whole records, or the first line of a broken one. start: the byte of the file, or connection, it begins at."""

    data: bytes
    first_line: int
    is_broken: bool = False
    start: int = 0


Reject = tuple[str, str]
"""A row that cannot be read: its text, and where it stands and why."""


def reject(path: str, line: int, text: bytes, reason: str) -> Reject:
    """The account of a row that cannot be read."""
    return text[:1000].decode("utf-8", "replace"), f"{masked(path)}, line {line}: {reason}"


class Lines(Sequence[tuple[int, bytes]]):
    """(line, text) of the lines of a block that are not empty, cut when they are asked for."""

    def __init__(self, block: Block) -> None:
        self._data = block.data
        ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == _NEWLINE)
        stops = np.append(ends, len(block.data))
        starts = np.append(0, ends + 1)
        lengths = stops - starts
        # A carriage return alone is an empty line, too.
        last = np.frombuffer(block.data + b" ", np.uint8)[starts]
        kept = np.flatnonzero((lengths > 1) | ((lengths == 1) & (last != _RETURN)))
        self._starts, self._stops, self._numbers = starts[kept], stops[kept], kept + block.first_line

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, i: Any) -> Any:
        text = self._data[self._starts[i] : self._stops[i]].removesuffix(b"\r")
        return int(self._numbers[i]), text

    def without(self, places: list[int]) -> Lines:
        """These lines but those at some places among them."""
        if places:
            self._starts = np.delete(self._starts, places)
            self._stops = np.delete(self._stops, places)
            self._numbers = np.delete(self._numbers, places)
        return self


class BlockReader:
    """Reads blocks of one open file. marks: of CSV, whose quoted fields may hold newlines, or LINES."""

    def __init__(self, path: str, file: IO[bytes], marks: Marks, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self._file = file
        self._marks = marks
        self._block_bytes = block_bytes
        self._line, self._start = 1, 0

    def header(self) -> bytes:
        """The first record, without its end and a byte order mark."""
        with reading(self.path):
            line = self._file.readline(RECORD_BYTES)
            while opens_unclosed(line.removeprefix(BYTE_ORDER_MARK), self._marks) and len(line) < _HEADER_BYTES:
                more = self._file.readline(_HEADER_BYTES)
                line += more
                if not more:
                    break
        self._line += line.count(b"\n") or 1
        self._start += len(line)
        return line.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")

    def go_on(self, start: int, line: int) -> None:
        """Let the next block begin here."""
        with reading(self.path):
            if self._file.seekable():
                self._file.seek(start)
            else:
                left = start - self._start
                while left > 0 and (data := self._file.read(min(left, self._block_bytes))):
                    left -= len(data)
        self._line, self._start = line, start

    def blocks(self) -> Iterator[Block]:
        """The rest of the file."""
        data = b""
        at_end = False
        while not at_end:
            more = self._read()
            at_end = not more
            data += more
            while data:
                # A field may begin behind a byte order mark, too, which may be a block of its own.
                mark = 0 if self._start or not data.startswith(BYTE_ORDER_MARK) else len(BYTE_ORDER_MARK)
                cut = mark + _whole_records(data[mark:], at_end, self._marks)
                if cut:
                    yield self._block(data[:cut])
                elif at_end or (len(data) > RECORD_BYTES and b"\n" in data[: len(data) - RECORD_BYTES]):
                    cut = data.find(b"\n") + 1 or len(data)
                    yield self._block(data[:cut], True)
                elif len(data) > LINE_BYTES:
                    raise Error(f"cannot read '{self.path}': line {self._line} is longer than {LINE_BYTES >> 20} MB")
                else:
                    break
                data = data[cut:]

    def _block(self, data: bytes, is_broken: bool = False) -> Block:
        block = Block(data, self._line, is_broken, self._start)
        self._line += data.count(b"\n")
        self._start += len(data)
        return block

    def _read(self) -> bytes:
        with reading(self.path):
            return self._file.read(self._block_bytes)


def unmarked(block: Block) -> Block:
    """The block without the byte order mark at the beginning of its file."""
    if block.first_line > 1 or block.start:
        return block
    return replace(block, data=block.data.removeprefix(BYTE_ORDER_MARK))


def _whole_records(data: bytes, at_end: bool, marks: Marks) -> int:
    """How many bytes are whole records; 0 where the first is not whole."""
    end = len(data) if at_end else data.rfind(b"\n") + 1
    if not end or not marks.quote or marks.quote not in data or are_lines(data[:end], marks):
        return end
    whole, outside = 0, 0
    for match in _quoted(marks).finditer(data):
        if match.start() >= end:
            break
        whole = data.rfind(b"\n", outside, match.start()) + 1 or whole
        outside = match.end()
        if not match.group(1) or (outside >= end and not at_end):
            return whole
    return end if at_end else data.rfind(b"\n", outside, end) + 1 or whole


def are_lines(data: bytes, marks: Marks) -> bool:
    """No quoted field holds a newline: quotes pair up in every line, and open where fields begin. Quick, not for all
    data."""
    if not marks.quote:
        return True
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == marks.quote[0])
    if not len(quotes):
        return True
    inside = np.searchsorted(quotes, np.flatnonzero(array == _NEWLINE)) & 1
    if len(quotes) & 1 or inside.any():
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    begins = _before_field(marks.delimiter)[array[opening - 1]] | (opening == 0)
    begins[1:] |= opening[1:] == closing[:-1] + 1
    return bool(begins.all())


def opens_unclosed(data: bytes, marks: Marks) -> bool:
    """A field begins with a quote that is not closed."""
    return bool(marks.quote) and any(not match.group(1) for match in _quoted(marks).finditer(data))


def csv_rows(block: Block, marks: Marks, nulls: Sequence[bytes]) -> list[tuple[int, bytes, list[bytes | None]]]:
    """(line, text, fields) of the rows of a CSV block, empty lines left out; a field without quotes that is one of the
    nulls is None.
    """
    data = block.data
    has_quotes = bool(marks.quote) and marks.quote in data
    spans = [m.span() for m in _quoted(marks).finditer(data)] if has_quotes else []
    spans.append((len(data) + 1, len(data) + 1))
    span = 0
    rows: list[tuple[int, bytes, list[bytes | None]]] = []
    start, line = 0, block.first_line
    ends = [m.span() for m in _ROW_END.finditer(data)]
    for stop, after in [*ends, (len(data), len(data))]:
        while spans[span][1] <= stop:
            span += 1
        if spans[span][0] < stop:
            continue
        text = data[start:stop]
        if text:
            rows.append((line, text, _fields(text, marks, nulls)))
        line += data.count(b"\n", start, after)
        start = after
    return rows


def _fields(text: bytes, marks: Marks, nulls: Sequence[bytes]) -> list[bytes | None]:
    """The fields of one row."""
    if not marks.quote or marks.quote not in text:
        return [None if field in nulls else field for field in text.split(marks.delimiter)]
    fields: list[bytes | None] = []
    position = 0
    while True:
        match = _field(marks).match(text, position)
        assert match is not None
        quoted, tail, plain, end = match.groups()
        fields.append(
            (None if plain in nulls else plain)
            if quoted is None
            else quoted.replace(marks.quote * 2, marks.quote) + tail
        )
        position = match.end()
        if not end:
            return fields


def lines(block: Block) -> list[tuple[int, bytes]]:
    """(line, text) of the lines of a block that are not blank."""
    texts = enumerate(block.data.split(b"\n"), block.first_line)
    return [(line, text) for line, text in texts if text.strip()]
