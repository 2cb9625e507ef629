"""The bag of rows a base relation holds now, and since when.

A row's words stand once in a table of distinct rows; a count per id says how often the row is there; a log of (ts,
id), one entry per insertion, says since when. A deletion only lowers the count: it takes the oldest insertion of its
row, so the last `count` entries of an id are the ones that live.

Invariants: every deletion cancels an earlier insertion of an equal row, or the whole call changes nothing
(docs/semantics T2); the log is at most about twice as long as the bag is large.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import numpy as np

from minidsms.elements import Batch, BoolArray, Int8Array, Int64Array, Schema
from minidsms.kernels.arrays import normal

_WORTH_COMPACTING = 1024


class RowBag:
    """Rows of one schema, with multiplicity."""

    def __init__(self, schema: Schema) -> None:
        # numba is loaded with the first relation, not with the package.
        from minidsms.kernels.row_bag import change
        from minidsms.synopses.key_table import KeyTable

        self._change = change
        self.schema = schema
        self._table = KeyTable.of_schema(schema)
        self._counts: Int64Array = np.zeros(self._table.capacity, np.int64)
        self._ids: Int64Array = np.zeros(_WORTH_COMPACTING, np.int64)
        self._ts: Int64Array = np.zeros(_WORTH_COMPACTING, np.int64)
        self._logged = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._counts.nbytes + self._ids.nbytes + self._ts.nbytes

    def growth(self, n: int) -> int:
        """Bytes that the bag grows by at most for n more insertions, about: if no two rows are equal."""
        stop, room = self._logged + n, len(self._ids)
        entries = max(stop, 2 * room) - room if stop > room else 0
        return 2 * entries * self._ids.itemsize + self._table.growth(n)

    def apply(self, ts: Int64Array, sign: Int8Array | None, words: Int64Array) -> int:
        """Apply changes in order; returns -1, or the first deletion that cancels nothing, and then nothing has changed.

        ts: (n,) nondecreasing, not below those before.  sign: (n,), None for insertions only.  words: (n, w), of
        `elements.row_words`.
        """
        n = len(ts)
        try:
            ids = self._table.acquire(words)
            self._count_to(self._table.capacity)
            self._reserve(n, sign)
            gone = np.empty(n + 2, np.int64)
            instants, signs = normal(ts), np.ones(n, np.int8) if sign is None else normal(sign)
        except MemoryError:
            with contextlib.suppress(MemoryError):
                self._release(self._table.live())
            raise
        # From here on nothing fails.
        bad = self._change(instants, signs, ids, self._counts, self._ts, self._ids, self._logged, gone)
        inserted = gone.item(n + 1)
        self._logged += inserted
        if bad < 0:
            self._size += 2 * inserted - n
        if sign is not None:
            with contextlib.suppress(MemoryError):  # then with the next deletion
                self._table.release(gone[: gone.item(n)])
                self._give_back()
        return bad

    def present(self) -> Batch:
        """The rows there now as insertions, each at the instant it came; ts nondecreasing, arrival order."""
        self._compact()
        ids = self._ids[: self._logged]
        return Batch(self._ts[: self._logged].copy(), None, self._table.columns(ids, self.schema))

    def live_codes(self) -> Iterable[Int64Array]:
        return self._table.live_codes()

    def arrays(self) -> dict[str, Int64Array]:
        """The state: rows as words, with their instants, in arrival order."""
        self._compact()
        return {"ts": self._ts[: self._logged].copy(), "words": self._table.keys[self._ids[: self._logged]]}

    def restore(self, arrays: dict[str, Int64Array]) -> None:
        """Take back what `arrays` gave, into an empty bag."""
        self.apply(arrays["ts"], None, np.ascontiguousarray(arrays["words"]))

    def _count_to(self, capacity: int) -> None:
        """Have a count for every id."""
        if len(self._counts) < capacity:
            self._counts = np.concatenate([self._counts, np.zeros(capacity - len(self._counts), np.int64)])

    def _reserve(self, n: int, sign: Int8Array | None) -> None:
        """Have room for the insertions among n more changes."""
        stop = self._logged + n
        if sign is not None and stop > len(self._ids):
            stop = self._logged + int(np.count_nonzero(sign > 0))
        if stop > len(self._ids):
            room = np.zeros(max(stop, 2 * len(self._ids)) - self._logged, np.int64)
            ids = np.concatenate([self._ids[: self._logged], room])
            self._ts = np.concatenate([self._ts[: self._logged], room])
            self._ids = ids

    def _lives(self) -> BoolArray:
        """Which log entries are the last `count` of their id."""
        ids = self._ids[: self._logged]
        order = np.argsort(ids, kind="stable")
        grouped = ids[order]
        stops = np.searchsorted(grouped, grouped, "right")
        lives = np.zeros(len(ids), np.bool_)
        lives[order] = stops - np.arange(len(ids)) <= self._counts[grouped]
        return lives

    def _compact(self) -> None:
        """Forget insertions whose rows are gone."""
        if self._logged > self._size:
            lives = self._lives()
            ids, ts = self._ids[: self._logged][lives], self._ts[: self._logged][lives]
            self._ids, self._ts, self._logged = ids, ts, len(ids)

    def _release(self, ids: Int64Array) -> None:
        """Free those of these ids whose rows are not there."""
        gone = ids >= len(self._counts)
        gone[~gone] = self._counts[ids[~gone]] == 0
        self._table.release(ids[gone])

    def _give_back(self) -> None:
        """Follow the bag down: shorten the log, and number the rows anew where most ids are free. MemoryError, and the
        rows are the same.
        """
        if self._logged <= 2 * self._size + _WORTH_COMPACTING:
            return
        self._compact()
        if self._table.is_sparse:
            kept = self._table.live()
            renamed = np.zeros(int(kept.max()) + 1 if len(kept) else 0, np.int64)
            renamed[kept] = np.arange(len(kept))
            ids, counts = renamed[self._ids], self._counts[kept]
            self._table.compact()
            self._ids, self._counts = ids, counts
