"""A text file in blocks of whole records.

Invariant: every byte of the file is in exactly one block; a block ends at a record's end, and begins at the line
`first_line` says, wherever blocks are cut. A record is a line, or with quotes a CSV record whose quoted fields may hold
newlines. Where a quote is never closed, or only beyond RECORD_BYTES, the record's first line is a block of its own,
marked as broken: one bad quote costs a line and not the file.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, cast

import numpy as np

from minidsms.cql.errors import Error, shown
from minidsms.elements import BoolArray

BLOCK_BYTES = 4 << 20
RECORD_BYTES = 1 << 20
"""The longest record with newlines in quotes."""
LINE_BYTES = 64 << 20
"""The longest line; a file with a longer one is no text."""

_NEWLINE = 10
_RETURN = 13
_QUOTE = 34
_PACKED: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_ROW_END = re.compile(rb"\r\n|\n|\r")
COMMA = b","


@cache
def _before_field(delimiter: bytes) -> BoolArray:
    """By byte: a field may begin behind it."""
    found = np.zeros(256, np.bool_)
    found[list(delimiter + b"\r\n")] = True
    return found


@cache
def _quoted(delimiter: bytes) -> re.Pattern[bytes]:
    """A field in quotes. A quote means something only where a field begins; the group is the closing quote."""
    return re.compile(rb'(?:(?<=[%s\n\r])|\A)"[^"]*(?:""[^"]*)*("?)' % re.escape(delimiter))


@cache
def _field(delimiter: bytes) -> re.Pattern[bytes]:
    """A field and what ends it."""
    mark = re.escape(delimiter)
    return re.compile(rb'(?:"([^"]*(?:""[^"]*)*)"([^%s]*)|([^%s]*))(%s|\Z)' % (mark, mark, mark), re.DOTALL)


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
    return text[:1000].decode("utf-8", "replace"), f"{path}, line {line}: {reason}"


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


def open_file(path: str) -> tuple[IO[bytes], IO[bytes], int]:
    """(decompressed, as it stands on disk, bytes on disk). Error with a way out where it cannot be opened."""
    try:
        raw = cast("IO[bytes]", open(path, "rb"))  # noqa: SIM115
        size = os.fstat(raw.fileno()).st_size
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from None
    for ending, unpacked in _PACKED.items():
        if path.lower().endswith(ending):
            return cast("IO[bytes]", unpacked(raw)), raw, size
    return raw, raw, size


def unpacked_name(path: str) -> str:
    """The name in lower case, without what says how the file is compressed."""
    return next((path[: -len(e)] for e in _PACKED if path.lower().endswith(e)), path).lower()


def give_up(*files: IO[bytes]) -> None:
    """Close files that have been read, or cannot be: nothing is lost where that fails."""
    for file in files:
        with contextlib.suppress(OSError):
            file.close()


def cannot_read(path: str, error: Exception) -> Error:
    """The error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return Error(f"no file {shown(path)}\nhelp: relative paths start at {os.getcwd()}")
    if isinstance(error, IsADirectoryError):
        return Error(f"{shown(path)} is a folder\nhelp: name a file in it")
    if isinstance(error, PermissionError):
        return Error(f"{shown(path)} may not be read\nhelp: check its permissions")
    return Error(f"cannot read {shown(path)}: {str(error)[:200]}")


class BlockReader:
    """Reads blocks of one open file. quotes: it is CSV, whose quoted fields may hold newlines."""

    def __init__(
        self, path: str, file: IO[bytes], quotes: bool, block_bytes: int = BLOCK_BYTES, delimiter: bytes = COMMA
    ) -> None:
        self.path = path
        self._file = file
        self._quotes = quotes
        self._block_bytes = block_bytes
        self._delimiter = delimiter
        self._line, self._start = 1, 0

    def header(self) -> bytes:
        """The first line, without its end and a byte order mark."""
        try:
            line = self._file.readline(RECORD_BYTES)
        except Exception as error:  # zlib's error has no base of its own
            raise cannot_read(self.path, error) from None
        self._line += 1
        self._start += len(line)
        return line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")

    def go_on(self, start: int, line: int) -> None:
        """Let the next block begin here."""
        try:
            self._file.seek(start)
        except Exception as error:
            raise cannot_read(self.path, error) from None
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
                cut = _whole_records(data, at_end, self._quotes, self._delimiter)
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
        try:
            return self._file.read(self._block_bytes)
        except Exception as error:
            raise cannot_read(self.path, error) from None


def _whole_records(data: bytes, at_end: bool, quotes: bool, delimiter: bytes) -> int:
    """How many bytes are whole records; 0 where the first is not whole."""
    end = len(data) if at_end else data.rfind(b"\n") + 1
    if not quotes or not end or b'"' not in data or are_lines(data[:end], delimiter):
        return end
    whole, outside = 0, 0
    for match in _quoted(delimiter).finditer(data):
        if match.start() >= end:
            break
        whole = data.rfind(b"\n", outside, match.start()) + 1 or whole
        outside = match.end()
        if not match.group(1) or (outside >= end and not at_end):
            return whole
    return end if at_end else data.rfind(b"\n", outside, end) + 1 or whole


def are_lines(data: bytes, delimiter: bytes = COMMA) -> bool:
    """No quoted field holds a newline: quotes pair up in every line, and open where fields begin. Quick, not for all
    data."""
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == _QUOTE)
    if not len(quotes):
        return True
    inside = np.searchsorted(quotes, np.flatnonzero(array == _NEWLINE)) & 1
    if len(quotes) & 1 or inside.any():
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    begins = _before_field(delimiter)[array[opening - 1]] | (opening == 0)
    begins[1:] |= opening[1:] == closing[:-1] + 1
    return bool(begins.all())


def opens_unclosed(data: bytes) -> bool:
    """A field begins with a quote that is not closed."""
    return any(not match.group(1) for match in _quoted(COMMA).finditer(data))


def csv_rows(
    block: Block, quotes: bool, delimiter: bytes = COMMA, nulls: Sequence[bytes] = (b"",)
) -> list[tuple[int, bytes, list[bytes | None]]]:
    """(line, text, fields) of the rows of a CSV block, empty lines left out; a field without quotes that is one of the
    nulls is None.
    """
    data = block.data
    spans = [m.span() for m in _quoted(delimiter).finditer(data)] if quotes and b'"' in data else []
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
            rows.append((line, text, _fields(text, quotes, delimiter, nulls)))
        line += data.count(b"\n", start, after)
        start = after
    return rows


def _fields(text: bytes, quotes: bool, delimiter: bytes, nulls: Sequence[bytes]) -> list[bytes | None]:
    """The fields of one row."""
    if not quotes or b'"' not in text:
        return [None if field in nulls else field for field in text.split(delimiter)]
    fields: list[bytes | None] = []
    position = 0
    while True:
        match = _field(delimiter).match(text, position)
        assert match is not None
        quoted, tail, plain, end = match.groups()
        fields.append((None if plain in nulls else plain) if quoted is None else quoted.replace(b'""', b'"') + tail)
        position = match.end()
        if not end:
            return fields


def lines(block: Block) -> list[tuple[int, bytes]]:
    """(line, text) of the lines of a block that are not blank."""
    texts = enumerate(block.data.split(b"\n"), block.first_line)
    return [(line, text) for line, text in texts if text.strip()]
