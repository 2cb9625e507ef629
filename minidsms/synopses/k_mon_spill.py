"""Rows that a constraint says will not matter, kept out of memory until it turns out otherwise.

Constraints are found, not declared, and may break. What they let go is written to files, and in memory stays a Bloom
filter of the keys by which a broken constraint would bring a row back into play: those of the sides that the constraint
had closed (Babu 2005, section 6.1.6). A row whose key comes all the same is found again.

A stream's rows stand in *runs* in the order in which they went; small runs are merged. A run is given up when its last
row has left its window.

Invariants: a row stands in one run, or in memory; a run's filters know every key under which its rows are to be found.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.k_mon_bloom import bloom_add, bloom_test

_RUN = 2048
"""Rows that are collected in memory before they are written."""
_MOST_RUNS = 12
_BITS_PER_KEY = 12

Closed = np.ndarray[Any, np.dtype[np.int64]]
"""(m,) masks: bit n is set where the n-th side of the stream was closed."""


@dataclass
class _Run:
    """Rows of a stream that went in a row. parts: rows, keys and closed sides, piece by piece; one piece in a file.

    filters: of each side of the stream.  newest: the greatest clock (instant or number) of a row.  path: of the file.
    indexes: of each side, in a file: keys in their order, and the rows that have them.  gone: rows that have come back.
    """

    count: int
    newest: int
    filters: list[np.ndarray[Any, np.dtype[np.uint64]]]
    parts: list[tuple[Int64Array, Int64Array, Closed]] = field(default_factory=list)
    path: Path | None = None
    indexes: list[Int64Array] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        total = sum(f.nbytes for f in self.filters) + 32 * len(self.gone)
        return total + (sum(a.nbytes for part in self.parts for a in part) if self.path is None else 0)

    def staying(self) -> tuple[Int64Array, Int64Array, Closed]:
        """Rows, keys and closed sides of what has not come back."""
        rows, keys, closed = _joined(self.parts)
        if not self.gone:
            return rows, keys, closed
        stays = np.ones(self.count, np.bool_)
        stays[list(self.gone)] = False
        return rows[stays], keys[:, stays], closed[stays]

    def remove(self) -> None:
        """Give up the file."""
        self.parts, self.indexes = [], []
        if self.path is not None:
            self.path.unlink()


class Spill:
    """Rows of n streams out of memory.

    sides: how many each stream has.  clock_at: the place of the clock in its rows.  texts: those of codes of TEXT.
    """

    def __init__(self, sides: Sequence[int], clock_at: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        self._texts = [list(places) for places in texts]
        self._sides = list(sides)
        self._clock_at = list(clock_at)
        self._runs: list[list[_Run]] = [[] for _ in sides]
        self._young: list[_Run | None] = [None for _ in sides]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0
        self.written = 0
        """Rows put in, ever."""
        self.returned = 0
        """Rows found again, ever."""

    def __len__(self) -> int:
        return sum(run.count - len(run.gone) for i in range(len(self._sides)) for run in self._all(i))

    def held(self, i: int) -> int:
        """Rows of one stream."""
        return sum(run.count - len(run.gone) for run in self._all(i))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(run.nbytes for i in range(len(self._sides)) for run in self._all(i))

    @property
    def file_nbytes(self) -> int:
        """Bytes in files."""
        return sum(run.path.stat().st_size for runs in self._runs for run in runs if run.path is not None)

    # ----------------------------------------------------------------------------------------------- out and back

    def put(self, i: int, rows: Int64Array, keys: Int64Array, closed: Closed) -> None:
        """Take rows of a stream. rows: (m, stride).  keys: (sides, m): a hash of each side's columns."""
        self.written += len(rows)
        for first in range(0, len(rows), _RUN):
            part = slice(first, first + _RUN)
            young = self._young[i]
            if young is None:
                young = self._young[i] = _Run(0, -(2**63), [_filter(_RUN) for _ in range(self._sides[i])])
            young.parts.append((rows[part].copy(), keys[:, part].copy(), closed[part].copy()))
            young.count += len(rows[part])
            young.newest = max(young.newest, int(rows[part, self._clock_at[i]].max()))
            for n, bits in enumerate(young.filters):
                bloom_add(bits, keys[n, part][(closed[part] >> n) & 1 == 1])
            if young.count >= _RUN:
                self._write(i, young)

    def find(self, i: int, side: int, keys: Int64Array, present: int) -> Int64Array | None:
        """Take back the rows of a stream that are found by these keys of its side (counted from 0), or None.

        present: the least clock of a row that is still in its window.
        """
        taken = []
        for run in self._all(i):
            may_be = np.zeros(len(keys), np.bool_)
            bloom_test(run.filters[side], keys, may_be)
            if may_be.any():
                rows = self._take(run, side, keys[may_be])
                if len(rows):
                    taken.append(rows[rows[:, self._clock_at[i]] >= present])
        if not taken:
            return None
        found = stacked(taken)
        self.returned += len(found)
        return found if len(found) else None

    def expire(self, i: int, present: int) -> None:
        """Give up the runs of a stream whose rows have all left their window."""
        for run in [run for run in self._runs[i] if run.newest < present]:
            self._runs[i].remove(run)
            run.remove()
        young = self._young[i]
        if young is not None and young.newest < present:
            self._young[i] = None

    def close(self) -> None:
        """Give up everything."""
        self._runs = [[] for _ in self._sides]
        self._young = [None for _ in self._sides]
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # ------------------------------------------------------------------------------------------------------- runs

    def _all(self, i: int) -> list[_Run]:
        young = self._young[i]
        return self._runs[i] if young is None else [*self._runs[i], young]

    def _take(self, run: _Run, side: int, keys: Int64Array) -> Int64Array:
        """The rows of a run under these keys of a side; they are gone from it."""
        if run.path is None:
            rows, held, closed = _joined(run.parts)
            at = np.flatnonzero(np.isin(held[side], keys) & ((closed >> side) & 1 == 1))
        else:
            rows, index = run.parts[0][0], run.indexes[side]
            low, high = np.searchsorted(index[0], keys, "left"), np.searchsorted(index[0], keys, "right")
            found = [index[1, a:b] for a, b in zip(low, high) if b > a]
            at = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        if run.gone:
            at = at[[int(p) not in run.gone for p in at]]
        run.gone.update(at.tolist())
        return np.array(rows[at])

    def _write(self, i: int, run: _Run) -> None:
        """Turn the run in memory into a file, and merge runs where there are many."""
        runs = self._runs[i]
        self._young[i] = None
        runs.append(self._made(i, *run.staying()))
        while len(runs) > _MOST_RUNS:
            n = int(np.argmin([a.count + b.count for a, b in pairwise(runs)]))
            merged = self._merged(i, *runs[n : n + 2])
            for each in runs[n : n + 2]:
                each.remove()
            runs[n : n + 2] = [merged]

    def _merged(self, i: int, first: _Run, second: _Run) -> _Run:
        if first.gone or second.gone:
            return self._made(i, *_joined([first.staying(), second.staying()]))
        indexes = []
        for a, b in zip(first.indexes, second.indexes):
            keys, at = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1] + first.count])
            order = np.argsort(keys, kind="stable")  # of two sorted pieces: one pass
            indexes.append(np.stack([keys[order], at[order]]))
        return self._made(i, *_joined([*first.parts, *second.parts]), indexes)

    def _made(
        self, i: int, rows: Int64Array, keys: Int64Array, closed: Closed, indexes: Sequence[Int64Array] | None = None
    ) -> _Run:
        """A run in a file. indexes: of each side, where they are known."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="minidsms-k-mon-")
        self._files += 1
        path = Path(self._folder.name) / str(self._files)
        arrays = [rows, keys, closed]
        filters = []
        for n in range(self._sides[i]):
            if indexes is None:
                at = np.flatnonzero((closed >> n) & 1 == 1)
                at = at[np.argsort(keys[n, at], kind="stable")]
                index = np.stack([keys[n, at], at])
            else:
                index = indexes[n]
            arrays.append(index)
            bits = _filter(index.shape[1])
            bloom_add(bits, np.ascontiguousarray(index[0]))
            filters.append(bits)
        newest = int(rows[:, self._clock_at[i]].max(initial=-(2**63)))
        run = _Run(len(rows), newest, filters, path=path)
        with path.open("wb") as file:
            for array in arrays:
                array.tofile(file)
        words = np.asarray(np.memmap(path, np.int64, "r")) if path.stat().st_size else np.zeros(0, np.int64)
        first, views = 0, []
        for array in arrays:
            views.append(words[first : first + array.size].reshape(array.shape))
            first += array.size
        run.parts, run.indexes = [(views[0], views[1], views[2])], views[3:]
        return run

    # ------------------------------------------------------------------------------------------------------ state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state: every stream's rows, keys and closed sides."""
        state: dict[str, np.ndarray[Any, Any]] = {}
        for i in range(len(self._sides)):
            loaded = [run.staying() for run in self._all(i)]
            if loaded:
                state[f"rows{i}"], state[f"keys{i}"], state[f"closed{i}"] = _joined(loaded)
        return state

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else."""
        self.close()
        for i in range(len(self._sides)):
            if f"rows{i}" in arrays:
                self.put(i, arrays[f"rows{i}"], arrays[f"keys{i}"], arrays[f"closed{i}"])

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held."""
        for i, places in enumerate(self._texts):
            for run in self._all(i) if places else ():
                held = _joined(run.parts)[0]
                for place in places:
                    yield np.array(held[:, place])


def _filter(keys: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    blocks = max(1, -(-keys * _BITS_PER_KEY // 512))
    return np.zeros(8 * blocks, np.uint64)


def _joined(parts: Sequence[tuple[Int64Array, Int64Array, Closed]]) -> tuple[Int64Array, Int64Array, Closed]:
    if len(parts) == 1:
        return parts[0]
    return (
        stacked([rows for rows, _, _ in parts]),
        np.concatenate([keys for _, keys, _ in parts], axis=1),
        np.concatenate([closed for _, _, closed in parts]),
    )


def stacked(pieces: Sequence[Int64Array]) -> Int64Array:
    """Rows below each other. Those from before a column came to have NULLs lack the word that says so: it is 0."""
    width = max(rows.shape[1] for rows in pieces)
    return np.concatenate([r if r.shape[1] == width else np.pad(r, ((0, 0), (0, width - r.shape[1]))) for r in pieces])
