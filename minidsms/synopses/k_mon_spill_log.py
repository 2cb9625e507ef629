"""Rows in the order in which they went, on disk.

They stand in files that have no name, so that nothing is left of them whatever becomes of the process; a file is given
up when its last row has left its window.

Invariant: a row keeps its number as long as it is here; the files hold the numbers from `first` on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.synopses.k_mon_spill_files import copy_of, new_file

_LEAST_SEGMENT = 4096
_SEGMENTS = 16
"""A file holds about one row of so many."""


@dataclass
class _Segment:
    """A file. first: the number of its first row.  width: words of a row.  newest: the greatest clock of one."""

    file: IO[bytes]
    first: int
    width: int
    count: int = 0
    newest: int = -(2**63)

    def in_other_files(self) -> _Segment:
        """A copy, in a file of its own."""
        return replace(self, file=copy_of(self.file))


class RowLog:
    """Rows of a stream."""

    def __init__(self) -> None:
        self.first = 0
        """The least number of a row that is here."""
        self.end = 0
        """The number of the next one."""
        self._segments: list[_Segment] = []

    @property
    def file_nbytes(self) -> int:
        """Bytes on disk."""
        return sum(8 * each.width * each.count for each in self._segments)

    def append(self, rows: Int64Array, newest: int) -> int:
        """Write rows, (m, width), whose clocks are at most `newest`; returns the number of the first."""
        last = self._segments[-1] if self._segments else None
        most = max(_LEAST_SEGMENT, (self.end - self.first) // _SEGMENTS)
        if last is None or last.count >= most or last.width != rows.shape[1]:
            last = _Segment(new_file(), self.end, rows.shape[1])
            self._segments.append(last)
        np.ascontiguousarray(rows).tofile(last.file)
        last.count += len(rows)
        last.newest = max(last.newest, newest)
        first, self.end = self.end, self.end + len(rows)
        return first

    def read(self, numbers: Int64Array) -> list[Int64Array]:
        """The rows of these numbers, ascending, in pieces of equal width."""
        pieces = []
        for each in self._segments:
            low, high = np.searchsorted(numbers, (each.first, each.first + each.count))
            if low < high:
                size = 8 * each.width
                found = [os.pread(each.file.fileno(), size, size * (int(n) - each.first)) for n in numbers[low:high]]
                pieces.append(np.frombuffer(b"".join(found), np.int64).reshape(-1, each.width))
        return pieces

    def all(self) -> list[tuple[int, np.ndarray[Any, Any]]]:
        """Every row: the number of the first of a piece, and the piece. Not in memory, but for what is read."""
        return [
            (each.first, np.memmap(each.file, np.int64, "r", shape=(each.count, each.width))) for each in self._segments
        ]

    def expire(self, present: int) -> bool:
        """Give up files whose rows have all left their window: their clocks lie below `present`. Was there one?"""
        before = len(self._segments)
        while self._segments and self._segments[0].newest < present:
            gone = self._segments.pop(0)
            gone.file.close()
            self.first = gone.first + gone.count
        return len(self._segments) < before

    def close(self) -> None:
        """Give up everything."""
        for each in self._segments:
            each.file.close()
        self._segments = []
        self.first = self.end
