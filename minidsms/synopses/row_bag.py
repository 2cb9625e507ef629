"""The bag of rows a base relation holds now, and since when.

A row's words stand once in a table of distinct rows; a count per id says how often the row is there; a log of (ts,
id), one entry per insertion, says since when. A deletion only lowers the count: it takes the oldest insertion of its
row, so the last `count` entries of an id are the ones that live.

Invariants: every deletion cancels an earlier insertion of an equal row, or the whole call changes nothing
(docs/semantics T2); the log is at most about twice as long as the bag is large.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from minidsms.elements import Batch, BoolArray, Int8Array, Int64Array, Schema

_WORTH_COMPACTING = 1024


class RowBag:
    """Rows of one schema, with multiplicity."""

    def __init__(self, schema: Schema) -> None:
        # numba is loaded with the first relation, not with the package.
        from minidsms.synopses.key_table import KeyTable

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
        """Bytes of the arrays held."""
        return self._table.nbytes + self._counts.nbytes + self._ids.nbytes + self._ts.nbytes

    def apply(self, ts: Int64Array, sign: Int8Array | None, words: Int64Array) -> int:
        """Apply changes in order; returns -1, or the first deletion that cancels nothing, and then nothing has changed.

        ts: (n,) nondecreasing, not below those before.  sign: (n,), None for insertions only.  words: (n, w), of
        `elements.row_words`.
        """
        ids = self._table.acquire(words)
        if len(self._counts) < self._table.capacity:
            self._counts = np.concatenate([self._counts, np.zeros(self._table.capacity - len(self._counts), np.int64)])
        if sign is None:
            np.add.at(self._counts, ids, 1)
            self._log(ts, ids)
            self._size += len(ids)
            return -1
        bad = self._first_bad(ids, sign)
        if bad < 0:
            np.add.at(self._counts, ids, sign)
            inserted = sign > 0
            self._log(ts[inserted], ids[inserted])
            self._size += int(sign.sum(dtype=np.int64))
        self._table.release(ids[self._counts[ids] == 0])
        self._give_back()
        return bad

    def present(self) -> Batch:
        """The rows there now as insertions, each at the instant it came; ts nondecreasing, arrival order."""
        self._compact()
        ids = self._ids[: self._logged]
        return Batch(self._ts[: self._logged].copy(), None, self._table.columns(ids, self.schema))

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held (0 stands for NULL)."""
        return self._table.live_codes()

    def arrays(self) -> dict[str, Int64Array]:
        """The state: rows as words, with their instants, in arrival order."""
        self._compact()
        return {"ts": self._ts[: self._logged].copy(), "words": self._table.keys[self._ids[: self._logged]]}

    def restore(self, arrays: dict[str, Int64Array]) -> None:
        """Take back what `arrays` gave, into an empty bag."""
        self.apply(arrays["ts"], None, np.ascontiguousarray(arrays["words"]))

    def _first_bad(self, ids: Int64Array, sign: Int8Array) -> int:
        """The first change after which its row would be there fewer than 0 times, or -1."""
        order = np.argsort(ids, kind="stable")
        grouped = ids[order]
        running = np.cumsum(sign[order], dtype=np.int64)
        starts = np.flatnonzero(np.concatenate(([True], grouped[1:] != grouped[:-1])))
        before = np.where(starts > 0, running[starts - 1], 0)
        running -= np.repeat(before, np.diff(np.append(starts, len(ids))))
        bad = order[running + self._counts[grouped] < 0]
        return int(bad.min()) if len(bad) else -1

    def _log(self, ts: Int64Array, ids: Int64Array) -> None:
        stop = self._logged + len(ids)
        if stop > len(self._ids):
            capacity = max(stop, 2 * len(self._ids))
            self._ids = np.concatenate([self._ids[: self._logged], np.zeros(capacity - self._logged, np.int64)])
            self._ts = np.concatenate([self._ts[: self._logged], np.zeros(capacity - self._logged, np.int64)])
        self._ids[self._logged : stop] = ids
        self._ts[self._logged : stop] = ts
        self._logged = stop

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
            self._ids = self._ids[: self._logged][lives]
            self._ts = self._ts[: self._logged][lives]
            self._logged = len(self._ids)

    def _give_back(self) -> None:
        """Follow the bag down: shorten the log, and number the rows anew where most ids are free."""
        if self._logged <= 2 * self._size + _WORTH_COMPACTING:
            return
        self._compact()
        kept = self._table.compact()
        if kept is not None:
            renamed = np.zeros(int(kept.max()) + 1 if len(kept) else 0, np.int64)
            renamed[kept] = np.arange(len(kept))
            self._ids = renamed[self._ids]
            counts = self._counts[kept]
            self._counts = np.zeros(self._table.capacity, np.int64)
            self._counts[: len(kept)] = counts
