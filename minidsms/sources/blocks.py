"""A text file in blocks of whole records.

Invariant: every byte of the file is in exactly one block; a block ends at a record's end, and begins at the line
`first_line` says. A record is a line, or with quotes a CSV record whose quoted fields may hold newlines. A record
longer than a limit, or a quote that is never closed, is cut at its first newline, so that one bad quote costs a line
and not the file.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

import numpy as np

from minidsms.cql.errors import Error

BLOCK_BYTES = 4 << 20
RECORD_BYTES = 1 << 20
"""The longest record with newlines in quotes."""

_NEWLINE = 10
_QUOTE = 34
_QUOTED = re.compile(rb'(?:(?<=[,\n\r])|\A)"(?:[^"]|"")*("?)', re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Whole records. has_newlines_in_quotes: some record has several lines."""

    data: bytes
    first_line: int
    has_newlines_in_quotes: bool = False


def open_file(path: str) -> tuple[IO[bytes], IO[bytes], int]:
    """(decompressed, as it stands on disk, bytes on disk). Error with the path and a way out where it cannot be
    opened."""
    try:
        raw = cast("IO[bytes]", open(path, "rb"))  # noqa: SIM115
        size = os.fstat(raw.fileno()).st_size
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from None
    if path.lower().endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw)), raw, size
    return raw, raw, size


def cannot_read(path: str, error: Exception) -> Error:
    """The error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        hint = f"relative paths start at {os.getcwd()}"
        return Error(f"no file {path!r}\nhelp: {hint}")
    if isinstance(error, IsADirectoryError):
        return Error(f"{path!r} is a folder\nhelp: name a file in it")
    if isinstance(error, PermissionError):
        return Error(f"{path!r} may not be read\nhelp: check its permissions")
    return Error(f"cannot read {path!r}: {str(error)[:200]}")


class BlockReader:
    """Reads blocks of one open file."""

    def __init__(self, path: str, file: IO[bytes], quotes: bool, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self._file = file
        self._quotes = quotes
        self._block_bytes = block_bytes
        self._rest = b""
        self._line = 1

    def header(self) -> bytes:
        """The first line, without its end and a byte order mark."""
        line = self._readline()
        self._line += 1
        return line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")

    def blocks(self) -> Iterator[Block]:
        """The rest of the file."""
        while True:
            more = self._read()
            if not more:
                break
            data = self._rest + more
            cut, multiline = self._cut(data, False)
            while cut == 0 and len(data) > RECORD_BYTES and b"\n" in data:
                # The first record is too long to be one: its first line goes alone.
                first = data.index(b"\n") + 1
                yield self._block(data[:first], False)
                data = data[first:]
                cut, multiline = self._cut(data, False)
            self._rest = data[cut:]
            if cut:
                yield self._block(data[:cut], multiline)
        data, self._rest = self._rest, b""
        while data:
            cut, multiline = self._cut(data, True)
            if cut == 0:
                cut, multiline = data.find(b"\n") + 1 or len(data), False
            yield self._block(data[:cut], multiline)
            data = data[cut:]

    def _block(self, data: bytes, multiline: bool) -> Block:
        block = Block(data, self._line, multiline)
        self._line += data.count(b"\n")
        return block

    def _read(self) -> bytes:
        try:
            return self._file.read(self._block_bytes)
        except (OSError, EOFError, ValueError) as error:
            raise cannot_read(self.path, error) from None
        except Exception as error:  # zlib.error has no base of its own
            raise Error(f"cannot read {self.path!r}: {str(error)[:200]}") from None

    def _readline(self) -> bytes:
        try:
            return self._file.readline(RECORD_BYTES)
        except Exception as error:
            raise cannot_read(self.path, error) from None

    def _cut(self, data: bytes, at_end: bool) -> tuple[int, bool]:
        """(bytes of whole records, some have several lines)."""
        end = len(data) if at_end and not data.endswith(b"\n") else data.rfind(b"\n") + 1
        if not self._quotes or b'"' not in data:
            return end, False
        array = np.frombuffer(data, np.uint8)
        quoted = np.bitwise_xor.accumulate((array == _QUOTE).view(np.uint8))
        newlines = array == _NEWLINE
        if not quoted[newlines].any() and (not at_end or not quoted[-1]):
            return end, False
        return _last_record_end(data, end)


def _last_record_end(data: bytes, end: int) -> tuple[int, bool]:
    """The same, quoted field by quoted field: a quote counts only where a field begins."""
    multiline = False
    for match in _QUOTED.finditer(data):
        if not match.group(1):
            # Not closed in this block: the record it stands in is not whole.
            return data.rfind(b"\n", 0, match.start()) + 1, multiline
        multiline = multiline or data.find(b"\n", match.start(), match.end()) >= 0
    return end if not multiline else _outside(data, end), multiline


def _outside(data: bytes, end: int) -> int:
    """The last newline outside quoted fields, plus one; the whole where the data does not end in a newline."""
    if end == len(data) and not data.endswith(b"\n"):
        return end
    spans = [m.span() for m in _QUOTED.finditer(data)]
    while spans and end and spans[-1][0] < end - 1 < spans[-1][1]:
        end = data.rfind(b"\n", 0, spans[-1][0]) + 1
        while spans and spans[-1][0] >= end:
            spans.pop()
    return end


def records(block: Block) -> list[tuple[int, bytes]]:
    """(line, text) of the records of a block that are not empty."""
    found = []
    line = block.first_line
    pending = b""
    start = line
    for text in io.BytesIO(block.data):
        pending = pending + text if pending else text
        line += 1
        if block.has_newlines_in_quotes and _is_open(pending):
            continue
        if pending.strip(b"\r\n"):
            found.append((start, pending.rstrip(b"\r\n")))
        pending, start = b"", line
    if pending:
        found.append((start, pending.rstrip(b"\r\n")))
    return found


def _is_open(text: bytes) -> bool:
    """A quoted field has begun and not ended."""
    return any(not match.group(1) for match in _QUOTED.finditer(text))
