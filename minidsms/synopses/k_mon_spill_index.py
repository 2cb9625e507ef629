"""From a key to the numbers of the rows that have it: sorted runs on disk, with a filter of each in memory.

Entries are collected in memory, sorted and written; neighbouring runs are merged where there are many, which drops
entries of rows that have left (as in a log-structured merge tree: O'Neil et al. 1996).

Invariant: every entry that was added and whose row is still present stands in one run, or among the young.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.k_mon_spill import BLOCK_WORDS, add_hashes, hash_keys, merge_runs, probe_run, probe_young
from minidsms.synopses.k_mon_spill_files import copy_of, new_file

_YOUNG = 2048
"""Entries that are collected in memory before they are written."""
_MOST_RUNS = 8
_BITS_PER_KEY = 8
_BITS_PER_YOUNG_KEY = 16

UInt64Array = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass
class _Run:
    """index: (2, m) keys in their order and row numbers, in a file.  bits: its filter.  last: the greatest number."""

    file: IO[bytes]
    index: Int64Array
    bits: UInt64Array
    last: int

    def in_other_files(self) -> _Run:
        """A copy, in a file of its own."""
        file = copy_of(self.file)
        return _Run(file, _mapped(file, self.index.shape), self.bits.copy(), self.last)


class SpillIndex:
    """The keys of one side of a stream."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._young: Int64Array = np.zeros((2, 0), np.int64)
        self._held = 0
        self._bits: UInt64Array = _filter(0, _BITS_PER_YOUNG_KEY)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._young.nbytes + self._bits.nbytes + sum(run.bits.nbytes for run in self._runs)

    @property
    def file_nbytes(self) -> int:
        """Bytes on disk."""
        return sum(run.index.nbytes for run in self._runs)

    def add(self, keys: Int64Array, numbers: Int64Array, first: int) -> None:
        """Rows of these numbers have these keys. first: rows with lesser numbers have left."""
        if len(keys) and not self._young.shape[1]:
            self._young = np.zeros((2, _YOUNG), np.int64)
            self._bits = _filter(_YOUNG, _BITS_PER_YOUNG_KEY)
        while len(keys):
            n = min(len(keys), _YOUNG - self._held)
            end = self._held + n
            self._young[0, self._held : end], self._young[1, self._held : end] = keys[:n], numbers[:n]
            add_hashes(self._bits, _hashes(keys[:n]))
            self._held = end
            if self._held == _YOUNG:
                self._write(first)
            keys, numbers = keys[n:], numbers[n:]

    def find(self, keys: Int64Array, first: int) -> Int64Array:
        """The numbers of the rows that have one of these keys, ascending; none below `first`."""
        keys = normal(keys)
        hashes = _hashes(keys)
        found: list[Int64Array] = []
        if self._held:
            _collect(found, lambda into: probe_young(self._bits, self._young, self._held, keys, hashes, into))
        for run in self._runs:
            bits, index = run.bits, run.index
            _collect(found, lambda into, bits=bits, index=index: probe_run(bits, index, keys, hashes, into))
        if not found:
            return _NONE
        numbers = np.unique(np.concatenate(found))
        return numbers[np.searchsorted(numbers, first) :]

    def entries(self, first: int) -> Int64Array:
        """(2, m): keys and numbers of the rows from `first` on."""
        held = np.concatenate([*(run.index for run in self._runs), self._young[:, : self._held]], axis=1)
        return held[:, held[1] >= first]

    def expire(self, first: int) -> None:
        """Rows with lesser numbers have left: give up the runs that have no others."""
        for run in [run for run in self._runs if run.last < first]:
            self._runs.remove(run)
            run.file.close()

    def close(self) -> None:
        """Give up everything."""
        for run in self._runs:
            run.file.close()
        self._runs, self._held = [], 0
        self._young, self._bits = np.zeros((2, 0), np.int64), _filter(0, _BITS_PER_YOUNG_KEY)

    def _write(self, first: int) -> None:
        """The young become a run; neighbours are merged where there are many."""
        order = np.argsort(self._young[0, : self._held], kind="stable")
        self._runs.append(_made(self._young[:, order]))
        self._held = 0
        self._bits[:] = 0
        while len(self._runs) > _MOST_RUNS:
            at = int(np.argmin([a.index.shape[1] + b.index.shape[1] for a, b in pairwise(self._runs)]))
            one, other = self._runs[at : at + 2]
            merged: Int64Array = np.empty((2, one.index.shape[1] + other.index.shape[1]), np.int64)
            held = merge_runs(one.index, other.index, first, merged)
            self._runs[at : at + 2] = [_made(merged[:, :held])] if held else []
            one.file.close()
            other.file.close()


def _made(entries: Int64Array) -> _Run:
    """A run of sorted entries, in a file without a name."""
    entries = np.ascontiguousarray(entries)
    bits = _filter(entries.shape[1], _BITS_PER_KEY)
    add_hashes(bits, _hashes(entries[0]))
    file = new_file()
    entries.tofile(file)
    return _Run(file, _mapped(file, entries.shape), bits, int(entries[1].max()))


def _mapped(file: IO[bytes], shape: tuple[int, ...]) -> Int64Array:
    return np.asarray(np.memmap(file, np.int64, "r+", shape=shape))


def _collect(found: list[Int64Array], probe: Any) -> None:
    """Let a kernel write what it finds into an array that is large enough."""
    into: Int64Array = np.empty(64, np.int64)
    count = probe(into)
    if count > len(into):
        into = np.empty(count, np.int64)
        probe(into)
    if count:
        found.append(into[:count])


def _hashes(keys: Int64Array) -> UInt64Array:
    hashes: UInt64Array = np.empty(len(keys), np.uint64)
    hash_keys(normal(keys), hashes)
    return hashes


def _filter(keys: int, bits_per_key: int) -> UInt64Array:
    return np.zeros(BLOCK_WORDS * max(1, -(-keys * bits_per_key // 512)), np.uint64)


_NONE: Int64Array = np.zeros(0, np.int64)
