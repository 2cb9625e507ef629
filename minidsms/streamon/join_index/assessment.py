"""How often the steps that visit an input compare which of its columns: assessment of access patterns.

A pattern is the set of the columns compared, as the bits of a number: bit c is column c. SRIA and DIA count every
pattern. CSRIA forgets the rare ones by lossy counting (Manku and Motwani 2002); CDIA adds them to a pattern with one
column less, which an index for it serves as well: a leaf of the lattice to a parent, drawn or the one counted most.
Requests come in segments of 1 / error; after each, what was counted less than once a segment goes.

Works, Rundensteiner and Agu 2012 (AMRI), section 5. Where the paper leaves it open: a parent that is made to take a
leaf's count may itself have been given up before, by as much as one per segment; and what is told at the end is what
may reach the threshold, as the paper says of CSRIA.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import ceil
from random import Random

Pattern = int


class Assessment(ABC):
    """Counts requests by pattern.  seen: requests noted."""

    def __init__(self) -> None:
        self.seen = 0

    @abstractmethod
    def note(self, pattern: Pattern, times: int = 1) -> None:
        """So many requests with this pattern came, one after the other."""

    @abstractmethod
    def frequencies(self) -> dict[Pattern, float]:
        """The share of the requests of each pattern that counts, of those noted."""

    @abstractmethod
    def __len__(self) -> int:
        """Patterns of which a count is kept."""


class Counts(Assessment):
    """SRIA: a table of counts. DIA keeps the same table, in which patterns find the patterns they serve."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[Pattern, int] = {}

    def note(self, pattern: Pattern, times: int = 1) -> None:
        self.seen += times
        if times:
            self._counts[pattern] = self._counts.get(pattern, 0) + times

    def frequencies(self) -> dict[Pattern, float]:
        return {pattern: count / self.seen for pattern, count in self._counts.items()}

    def __len__(self) -> int:
        return len(self._counts)


class _Compact(Assessment):
    """Keeps few counts.  table: of each pattern its count, and how many requests with it may have come before it."""

    def __init__(self, error: float, threshold: float) -> None:
        super().__init__()
        self._segment = ceil(1 / error)
        self._error = error
        self._threshold = threshold
        self.table: dict[Pattern, tuple[int, int]] = {}

    def note(self, pattern: Pattern, times: int = 1) -> None:
        while times:
            taken = min(times, self._segment - self.seen % self._segment)
            count, before = self.table.get(pattern, (0, self.seen // self._segment))
            self.table[pattern] = count + taken, before
            self.seen += taken
            times -= taken
            if self.seen % self._segment == 0:
                self._compress(self.seen // self._segment)

    @abstractmethod
    def _compress(self, segment: int) -> None:
        """Give up what is rare after so many segments."""

    def _is_rare(self, pattern: Pattern, segment: int) -> bool:
        return sum(self.table[pattern]) <= segment

    def __len__(self) -> int:
        return len(self.table)


class Csria(_Compact):
    """What is rare is forgotten. Every pattern of at least the threshold is told; none below it by two errors."""

    def _compress(self, segment: int) -> None:
        for pattern in [each for each in self.table if self._is_rare(each, segment)]:
            del self.table[pattern]

    def frequencies(self) -> dict[Pattern, float]:
        least = (self._threshold - self._error) * self.seen
        return {
            pattern: count / self.seen for pattern, (count, before) in self.table.items() if count + before >= least
        }


class Cdia(_Compact):
    """What is rare is added to a pattern with a column less; that of no column keeps what comes to it.

    rng: draws the parent. None: the one with the greatest count, of equals the least number.
    """

    def __init__(self, error: float, threshold: float, rng: Random | None = None) -> None:
        super().__init__(error, threshold)
        self._rng = rng

    def _compress(self, segment: int) -> None:
        for columns in range(_most_columns(self.table), 0, -1):
            for pattern in _of(self.table, columns):
                if self._is_rare(pattern, segment) and self._is_leaf(pattern):
                    self._fold(self.table, pattern, segment - 1)

    def frequencies(self) -> dict[Pattern, float]:
        table = dict(self.table)
        least = self._threshold * self.seen
        for columns in range(_most_columns(table), 0, -1):
            for pattern in _of(table, columns):
                if sum(table[pattern]) < least:
                    self._fold(table, pattern, 0)
        return {pattern: count / self.seen for pattern, (count, before) in table.items() if count + before >= least}

    def _is_leaf(self, pattern: Pattern) -> bool:
        """It serves no other pattern that is counted."""
        return not any(each != pattern and each & pattern == pattern for each in self.table)

    def _fold(self, table: dict[Pattern, tuple[int, int]], pattern: Pattern, before: int) -> None:
        """Add the count of a pattern to a parent, of which so many may be missing if it is made."""
        count, _ = table.pop(pattern)
        able = parents(pattern)
        if self._rng is None:
            parent = max(able, key=lambda each: (table.get(each, (0, 0))[0], -each))
        else:
            parent = self._rng.choice(able)
        known, missing = table.get(parent, (0, before))
        table[parent] = known + count, missing


def parents(pattern: Pattern) -> list[Pattern]:
    """The patterns with one column less."""
    return [pattern & ~(1 << c) for c in range(pattern.bit_length()) if pattern >> c & 1]


def _most_columns(patterns: Iterable[Pattern]) -> int:
    return max((pattern.bit_count() for pattern in patterns), default=0)


def _of(patterns: Iterable[Pattern], columns: int) -> list[Pattern]:
    """Those of so many columns, ascending."""
    return sorted(pattern for pattern in patterns if pattern.bit_count() == columns)


def assessment(method: str, error: float, threshold: float, rng: Random) -> Assessment:
    """What `SET index_assessment` names, with nothing counted; rng: draws parents for `cdia_random`."""
    if method == "csria":
        return Csria(error, threshold)
    if method.startswith("cdia"):
        return Cdia(error, threshold, rng if method == "cdia_random" else None)
    return Counts()
