"""How many rows of a relation have each key: the right side of a semi-join, which needs no more of it.

Invariant: between slices the keys held are exactly those some row has; a key that dies gives its id back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Int8Array, Int64Array, Schema
from minidsms.kernels.arrays import key_words, normal
from minidsms.kernels.semi_join import Counted, KeyCount
from minidsms.machine_code import Rows, rows_of
from minidsms.synopses.bag_windows import NO_SIGNS, NO_TS
from minidsms.synopses.key_table import KeyTable


class KeyCounts:
    """Counts by key.

    schema: of the input.  keys: its key columns; a key with a NULL does not count.
    """

    def __init__(self, schema: Schema, keys: Sequence[int]) -> None:
        self.schema = schema
        self._keys = tuple(keys)
        self._table = KeyTable(len(self._keys), [j for j, c in enumerate(keys) if schema[c].type.is_coded])
        self._counts = _counts(self._table.capacity)
        self._idle: Counted | None = None
        """As the kernel takes no elements."""
        self._key = np.zeros((1, len(self._keys)), np.int64)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._counts.nbytes

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The keys held, (n, w) words, and how many rows have each."""
        return {"words": self._table.arrays()["keys"], "counts": self._counts["count"][self._table.live()]}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self._table.restore({"keys": arrays["words"]})
        self._replace(_counts(self._table.capacity))
        self._counts["count"][: len(arrays["counts"])] = arrays["counts"]

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values among the keys."""
        return self._table.live_codes()

    def begin(self, batch: Batch | None) -> Counted:
        """The batch as the kernel takes it."""
        if batch is None:
            if self._idle is None:
                self._idle = self._counted(NO_TS, NO_SIGNS, np.zeros((0, len(self._keys)), np.int64))
            return self._idle
        ts, signs = batch.ts, batch.signs
        words, keyed = key_words([batch.column(c) for c in self._keys], len(batch))
        if keyed is not None:
            ts, signs, words = ts[keyed], signs[keyed], words[keyed]
        kept = self._table.compact()
        if kept is not None:
            counts = self._counts
            self._replace(_counts(self._table.capacity))
            self._counts[: len(kept)] = counts[kept]
        return self._counted(normal(ts), normal(signs), words)

    def _counted(self, ts: Int64Array, signs: Int8Array, words: Int64Array) -> Counted:
        ids, touched = np.empty(len(ts), np.int64), np.empty(len(ts), np.int64)
        return Counted(ts, signs, words, ids, self._table.parts, self._counts, touched, self._key)

    def _replace(self, counts: Rows[KeyCount]) -> None:
        """The table's arrays are others, and so are the counts."""
        self._counts, self._idle = counts, None

    def grow(self, counted: Counted) -> Counted:
        """With room for twice the keys; those there keep their ids."""
        counts = _counts(2 * self._table.capacity)
        counts[: len(self._counts)] = self._counts
        self._replace(counts)
        self._table.grow()
        return counted._replace(table=self._table.parts, counts=self._counts)


def _counts(capacity: int) -> Rows[KeyCount]:
    """Of so many ids, which no row has."""
    counts = rows_of(KeyCount, capacity)
    counts["before"] = -1
    return counts
