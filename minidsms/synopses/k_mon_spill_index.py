"""From a key to the numbers of the rows that have it: tables in a file, with a filter of each generation in memory.

Entries are collected in memory and written as tables of buckets; a generation that is full becomes one table, and
neighbouring generations are one where there are many (as in a log-structured merge tree: O'Neil et al. 1996), without
the entries of rows that have left.

Where the file cannot grow entries stay among the young, and generations as they are.

Invariant: every entry that was added and whose row is still present stands in one table, or among the young, and in the
filter of its generation.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.k_mon_bloom import BLOCK_WORDS
from minidsms.kernels.k_mon_spill import RUN_WORDS, Entries, add_entries, find_rows, make_table
from minidsms.synopses.k_mon_spill_files import SpillFile

_YOUNG = 2048
"""Entries that are collected in memory before they are written, at least; as many are the least generation."""
_MOST_YOUNG = 4 * _YOUNG
_SHARE = 4
"""A generation is one of so many, where what comes in makes up for what leaves."""
_MOST_GENERATIONS = 8
_MOST_RUNS = 4
"""Tables of a generation that is complete, lest whoever passes its filter looks into many."""
_BITS_PER_KEY = 8
_BUCKET = 4
"""Entries in a bucket, on average."""

UInt64Array = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass
class _Generation:
    """capacity: entries for which its filter has bits.  held: how many it has.  last: the greatest number.

    runs: (first word in the file, entries, buckets) of its tables.
    """

    capacity: int
    held: int = 0
    last: int = -1
    runs: list[tuple[int, int, int]] = field(default_factory=list)


class SpillIndex:
    """The keys of one way to the rows of a stream. file: where the tables stand."""

    def __init__(self, file: SpillFile) -> None:
        self._file = file
        self._forget()

    def _forget(self) -> None:
        self._generations: list[_Generation] = []
        self._bits: UInt64Array = np.zeros(0, np.uint64)
        """The filters, side by side."""
        self._bounds: Int64Array = np.zeros(1, np.int64)
        self._runs: Int64Array = np.zeros((0, RUN_WORDS), np.int64)
        self._young: Int64Array = np.zeros((2, 0), np.int64)
        self._held = 0
        """Young entries."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._young.nbytes + self._bits.nbytes + self._runs.nbytes

    def add(self, keys: Int64Array, numbers: Int64Array, first: int) -> None:
        """Rows of these numbers have these keys. first: rows with lesser numbers have left."""
        while len(keys):
            if not self._generations or self._generations[-1].held >= self._generations[-1].capacity:
                self._begin(first)
            last = self._generations[-1]
            n = min(len(keys), last.capacity - last.held, self._young.shape[1] - self._held)
            end = self._held + n
            self._young[0, self._held : end], self._young[1, self._held : end] = keys[:n], numbers[:n]
            add_entries(self._bits, self._bounds[-2], self._bounds[-1], self._young, self._held, end)
            self._held = end
            last.held += n
            last.last = int(numbers[n - 1])
            if self._held == self._young.shape[1]:
                self._write()
            keys, numbers = keys[n:], numbers[n:]

    def find(self, keys: Int64Array, first: int) -> Int64Array:
        """The numbers of the rows that have one of these keys, ascending; none below `first`."""
        if not self._generations or not len(keys):
            return _NONE
        keys, into = normal(keys), np.empty(64, np.int64)
        entries = Entries(self._bits, self._bounds, self._runs, self._file.words, self._young)
        count = find_rows(entries, self._held, keys, first, into)
        if count > len(into):
            into = np.empty(count, np.int64)
            find_rows(entries, self._held, keys, first, into)
        return np.unique(into[:count]) if count else _NONE

    def entries(self, first: int) -> Int64Array:
        """(2, m): keys and numbers of the rows from `first` on."""
        held = np.concatenate([*(self._entries(g) for g in self._generations), self._young[:, : self._held]], axis=1)
        return held[:, held[1] >= first]

    def expire(self, first: int) -> None:
        """Rows with lesser numbers have left: give up the generations that have no others."""
        gone = 0
        while gone < len(self._generations) and self._generations[gone].last < first:
            self._release(self._generations[gone])
            gone += 1
        if gone == len(self._generations):
            self._held = 0
        if gone:
            self._arrange(self._generations[gone:], self._filters()[gone:])

    def close(self) -> None:
        """Give up everything; the file is closed by whoever opened it."""
        self._forget()

    # ------------------------------------------------------------------------------------------------ generations

    def _begin(self, first: int) -> None:
        """The last generation is complete; another begins."""
        if self._generations:
            self._write()
            if self._held:
                self._generations[-1].capacity *= 2  # it goes on, with too few bits for each
                return
        filters = self._filters()
        with suppress(OSError):
            if self._generations and len(self._generations[-1].runs) > _MOST_RUNS:
                self._generations[-1:] = [self._together(self._generations[-1:], first)]
            while len(self._generations) > _MOST_GENERATIONS:
                sizes = [g.held for g in self._generations]
                at = int(np.argmin(np.add(sizes[1:], sizes[:-1])))
                self._generations[at : at + 2] = [self._together(self._generations[at : at + 2], first)]
                filters[at : at + 2] = [self._filter_of(self._generations[at])]
        capacity = max(_YOUNG, sum(g.held for g in self._generations) // _SHARE)
        many = min(max(_YOUNG, capacity // 8), _MOST_YOUNG)
        if self._young.shape[1] != many:
            self._young = np.zeros((2, many), np.int64)
        bits = np.zeros(_words_for(capacity), np.uint64)
        self._arrange([*self._generations, _Generation(capacity)], [*filters, bits])

    def _arrange(self, generations: list[_Generation], filters: list[UInt64Array]) -> None:
        """Put these side by side for the kernel."""
        self._generations = generations
        self._bits = np.concatenate(filters) if filters else np.zeros(0, np.uint64)
        self._bounds = np.concatenate([[0], np.cumsum([len(f) for f in filters], dtype=np.int64)])
        self._list_runs()

    def _filters(self) -> list[UInt64Array]:
        """The filter of each generation; parts of `_bits`."""
        return [self._bits[a:b] for a, b in zip(self._bounds[:-1], self._bounds[1:])]

    def _list_runs(self) -> None:
        runs = [(g, *run) for g, each in enumerate(self._generations) for run in each.runs]
        self._runs = np.array(runs, np.int64).reshape(-1, RUN_WORDS)

    def _write(self) -> None:
        """The young become a table of the last generation; where there is no room for it, there may be more of them."""
        if not self._held:
            return
        try:
            table = self._table(self._young[:, : self._held])
        except OSError:
            self._young = np.concatenate([self._young, np.zeros_like(self._young)], axis=1)
            return
        self._generations[-1].runs.append(table)
        self._held = 0
        self._list_runs()

    def _table(self, entries: Int64Array) -> tuple[int, int, int]:
        """Write entries, (2, m), into the file; returns where they stand."""
        m = entries.shape[1]
        buckets = max(1, m // _BUCKET)
        table: Int64Array = np.empty(buckets + 1 + 2 * m, np.int64)
        make_table(np.ascontiguousarray(entries), buckets, table)
        at = self._file.allocate(len(table))
        self._file.write(at, table)
        return at, m, buckets

    def _entries(self, generation: _Generation) -> Int64Array:
        """(2, m): those in its tables; a copy."""
        words = self._file.words
        parts = [words[at + b + 1 : at + b + 1 + 2 * m].reshape(2, m) for at, m, b in generation.runs]
        return np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1)

    def _together(self, generations: list[_Generation], first: int) -> _Generation:
        """One generation of the entries of some whose rows are present, in one table."""
        entries = np.concatenate([self._entries(g) for g in generations], axis=1)
        entries = entries[:, entries[1] >= first]
        made = _Generation(sum(g.capacity for g in generations), entries.shape[1], generations[-1].last)
        made.runs = [self._table(entries)] if made.held else []
        for each in generations:
            self._release(each)
        return made

    def _filter_of(self, generation: _Generation) -> UInt64Array:
        generation.capacity = max(generation.held, 1)
        bits: UInt64Array = np.zeros(_words_for(generation.capacity), np.uint64)
        entries = self._entries(generation)
        add_entries(bits, 0, len(bits), entries, 0, entries.shape[1])
        return bits

    def _release(self, generation: _Generation) -> None:
        for at, m, buckets in generation.runs:
            self._file.release(at, buckets + 1 + 2 * m)


def _words_for(keys: int) -> int:
    """Words of a filter."""
    return BLOCK_WORDS * max(1, -(-keys * _BITS_PER_KEY // 512))


_NONE: Int64Array = np.zeros(0, np.int64)
