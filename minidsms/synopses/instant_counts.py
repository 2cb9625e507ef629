"""How many rows of a relation have a key at an instant: what a semi-join probes when its left side is looked at in any
order.

While a slice of whole instants is being processed, the counts before it and the changes within it stand side by side:
any key can be asked for at any instant of the slice, again and again. `finish` adds the changes up.

Invariant: between slices the keys held are those that some row has. Keys with a NULL are left out, unless NULL counts
as a value like others (null-safe).  docs/semantics R1, R2; Babu 2005, section 4.7: a filter is a probe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, BoolArray, Column, Int64Array, Schema, row_words, valid_in_all, words_width
from minidsms.synopses.key_table import KeyTable


class InstantCounts:
    """Counts by key. schema: of the key columns; without any all rows have one key."""

    def __init__(self, schema: Schema, null_safe: bool) -> None:
        self._table = KeyTable.of_schema(schema)
        self._counts: Int64Array = np.zeros(self._table.capacity, np.int64)
        self._null_safe = null_safe
        self._instants: Int64Array = np.zeros(0, np.int64)
        self._changed: Int64Array = self._instants
        self._running: Int64Array = self._instants
        self._places: Int64Array = self._instants

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._counts.nbytes

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values among the keys."""
        return self._table.live_codes()

    def arrays(self) -> dict[str, Int64Array]:
        """The keys held, as words, and how many rows have each."""
        return {**self._table.arrays(), "counts": self._counts[self._table.live()]}

    def restore(self, arrays: dict[str, Int64Array]) -> None:
        self._table.restore(arrays)
        self._counts = np.zeros(self._table.capacity, np.int64)
        self._counts[: len(arrays["counts"])] = arrays["counts"]

    def begin(self, changes: Batch | None) -> None:
        """Take in the changes of a slice.  O(n log n)."""
        if changes is None:
            return
        columns, ts, sign = changes.columns, changes.ts, changes.signs
        usable = self._usable(columns)
        if usable is not None:
            rows = np.flatnonzero(usable)
            columns, ts, sign = [c.take(rows) for c in columns], ts[rows], sign[rows]
        if not len(ts):
            return
        ids = self._table.acquire(_words(columns, len(ts)))
        if len(self._counts) < self._table.capacity:
            self._counts = np.concatenate([self._counts, np.zeros(self._table.capacity - len(self._counts), np.int64)])
        order = np.argsort(ids, kind="stable")  # within a key the changes stay in order of time
        ids, ts = ids[order], ts[order]
        totals = np.cumsum(sign[order], dtype=np.int64)
        first = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
        before = np.where(first > 0, totals[first - 1], 0)
        self._instants = np.unique(ts)
        self._running = totals - np.repeat(before, np.diff(np.append(first, len(ids)))) + self._counts[ids]
        self._places = ids * (len(self._instants) + 1) + np.searchsorted(self._instants, ts)
        self._changed = ids

    def _usable(self, columns: Sequence[Column]) -> BoolArray | None:
        """The rows whose key counts; None for all."""
        return None if self._null_safe else valid_in_all([column.valid for column in columns])

    def present(self, columns: Sequence[Column], ts: Int64Array) -> BoolArray:
        """(n,) whether some row has the key at the instant; keys as columns.  O(n log changes)."""
        ids = self._table.find(_words(columns, len(ts)))
        known = ids >= 0
        usable = self._usable(columns)
        if usable is not None:
            known &= usable
        counts = np.where(known, self._counts[ids], 0)
        if len(self._changed):
            # The last change of the key up to the instant; the place before the first one of a slice is nobody's.
            places = ids * (len(self._instants) + 1) + np.searchsorted(self._instants, ts, side="right") - 1
            last = np.searchsorted(self._places, places, side="right") - 1
            changed = known & (last >= 0) & (self._changed[last] == ids)
            counts = np.where(changed, self._running[last], counts)
        return counts > 0

    def finish(self) -> None:
        """The slice has passed: its changes are among the counts."""
        changed = self._changed
        if not len(changed):
            return
        last = np.flatnonzero(np.concatenate((changed[1:] != changed[:-1], [True])))
        ids = changed[last]
        self._counts[ids] = self._running[last]
        self._table.release(ids[self._counts[ids] == 0])
        self._changed = self._running = self._places = self._instants = changed[:0]
        kept = self._table.compact()
        if kept is not None:
            counts = self._counts[kept]
            self._counts = np.zeros(self._table.capacity, np.int64)
            self._counts[: len(kept)] = counts


def _words(columns: Sequence[Column], n: int) -> Int64Array:
    """Of n keys; without columns all are the same."""
    return row_words(columns) if columns else np.zeros((n, words_width(0)), np.int64)
