"""Rows in the order in which they went, in a file.

They stand in segments, each of which is given up when its last row has left its window.

Invariant: a row keeps its number as long as it is here; the segments hold the numbers from `first` on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidsms.elements import Int64Array
from minidsms.synopses.k_mon_spill_files import SpillFile

_LEAST_SEGMENT = 4096
_SEGMENTS = 16
"""A segment holds about one row of so many."""


@dataclass
class _Segment:
    """at: its extent.  first: the number of its first row.  width: words of a row.  capacity: rows that fit.

    newest: the greatest clock of one.
    """

    at: int
    first: int
    width: int
    capacity: int
    count: int = 0
    newest: int = -(2**63)


class RowLog:
    """Rows of a stream. file: where they stand."""

    def __init__(self, file: SpillFile) -> None:
        self._file = file
        self.first = 0
        """The least number of a row that is here."""
        self.end = 0
        """The number of the next one."""
        self._segments: list[_Segment] = []

    def reserve(self, count: int, width: int) -> None:
        """Make room for so many rows, which `append` takes. Raises OSError where there is none."""
        last = self._segments[-1] if self._segments else None
        if last is not None and last.width == width and last.capacity - last.count >= count:
            return
        capacity = max(_LEAST_SEGMENT, (self.end - self.first) // _SEGMENTS, count)
        at = self._file.allocate(capacity * width)
        if last is not None and last.count < last.capacity:
            self._file.release(last.at + last.count * last.width, (last.capacity - last.count) * last.width)
            last.capacity = last.count
        self._segments.append(_Segment(at, self.end, width, capacity))

    def append(self, rows: Int64Array, newest: int) -> int:
        """Write rows, (m, width), whose clocks are at most `newest`; returns the number of the first."""
        self.reserve(len(rows), rows.shape[1])
        last, first = self._segments[-1], self.end
        self._file.write(last.at + last.count * last.width, rows)
        last.count += len(rows)
        last.newest = max(last.newest, newest)
        self.end += len(rows)
        return first

    def read(self, numbers: Int64Array) -> list[Int64Array]:
        """The rows of these numbers, ascending, in pieces of equal width."""
        pieces = []
        for each in self._segments:
            low, high = np.searchsorted(numbers, (each.first, each.first + each.count))
            if low < high:
                pieces.append(self._rows(each)[numbers[low:high] - each.first])
        return pieces

    def all(self) -> list[Int64Array]:
        """Every row, in pieces; not in memory, but for what is read, and valid until something is written."""
        return [self._rows(each) for each in self._segments]

    def expire(self, present: int) -> bool:
        """Give up segments whose rows have all left their window: their clocks lie below `present`. Was there one?"""
        before = len(self._segments)
        while self._segments and self._segments[0].newest < present:
            gone = self._segments.pop(0)
            self._file.release(gone.at, gone.capacity * gone.width)
            self.first = gone.first + gone.count
        return len(self._segments) < before

    def close(self) -> None:
        """Give up everything; the file is closed by whoever opened it."""
        self._segments = []
        self.first = self.end

    def _rows(self, each: _Segment) -> Int64Array:
        return self._file.words[each.at : each.at + each.count * each.width].reshape(each.count, each.width)
