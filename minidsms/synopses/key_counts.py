"""How many rows of a relation have each key: the right side of a semi-join, which needs no more of it.

Invariant: between slices the keys held are exactly those some row has; a key that dies gives its id back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch, BoolArray, Int64Array, Schema
from minidsms.kernels.arrays import key_words, normal
from minidsms.kernels.key_counts import ROWS, STANDS, TOLD, Asking, Counted, Standing
from minidsms.synopses.bag_windows import NO_SIGNS, NO_TS
from minidsms.synopses.key_table import KeyTable

_PART = 1 << 12
"""Rows that are counted before the join follows: the keys of many would not stay in the processor's caches."""
_FEW = 64
_ALL_KEYED: BoolArray = np.empty(0, np.bool_)


class KeyCounts:
    """Counts by key.

    schema: of the input.  keys: its key columns; a key with a NULL does not count.  anti: of an antijoin.
    """

    standing: Standing
    """The keys, as kernels take them."""

    def __init__(self, schema: Schema, keys: Sequence[int], anti: bool = False) -> None:
        self.schema = schema
        self._keys = tuple(keys)
        self._anti = anti
        self._table = KeyTable(len(self._keys), [j for j, c in enumerate(keys) if schema[c].type.is_coded])
        self._key = np.zeros((1, len(self._keys)), np.int64)
        self._none = Counted(NO_TS, NO_SIGNS, np.zeros((0, len(self._keys)), np.int64))
        self._count(np.zeros(0, np.int64))

    def _count(self, counts: Int64Array) -> None:
        """The first ids have these counts."""
        self._counts: Int64Array = np.zeros(self._table.capacity, np.int64)
        self._counts[: len(counts)] = counts * ROWS + (TOLD + STANDS)
        self._take_room(_FEW)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._counts.nbytes + 25 * len(self.standing.ids)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The keys held, (n, w) words, and how many rows have each."""
        return {"words": self._table.arrays()["keys"], "counts": self._counts[self._table.live()] // ROWS}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self._table.restore({"keys": arrays["words"]})
        self._count(arrays["counts"])

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values among the keys."""
        return self._table.live_codes()

    def parts(self, batch: Batch | None) -> Iterator[tuple[Counted, int]]:
        """The rows of a slice, part by part, and the instant up to which each goes. It is to be joined before the next
        one is asked for.
        """
        if batch is None:
            yield self._none, MAX_INSTANT
            return
        ts, signs = batch.ts, batch.signs
        words, keyed = key_words([batch.column(c) for c in self._keys], len(batch))
        if keyed is not None:
            ts, signs, words = ts[keyed], signs[keyed], words[keyed]
        ts, signs = normal(ts), normal(signs)
        end, until = 0, MIN_INSTANT
        while until < MAX_INSTANT:
            first, end, until = end, len(ts), MAX_INSTANT
            if end - first > _PART:
                until = ts.item(first + _PART - 1)
                end = int(ts.searchsorted(until, side="right"))
            if end - first > len(self.standing.ids):
                self._take_room(end - first)
            yield Counted(ts[first:end], signs[first:end], words[first:end]), until
            kept = self._table.compact()
            if kept is not None:
                self._count(self._counts[kept] // ROWS)
            elif end - first > _PART:
                self._take_room(_FEW)

    def grow(self) -> None:
        """Have room for twice the keys; those there keep their ids."""
        counts = np.concatenate([self._counts, np.zeros(len(self._counts), np.int64)])
        self._table.grow()
        self._counts = counts
        asking = self.standing.asking._replace(words=self._table.keys)
        self.standing = self.standing._replace(table=self._table.parts, counts=counts, asking=asking)

    def _take_room(self, rows: int) -> None:
        """Have room for the changes of so many rows."""
        ts, ids, gone = np.empty((3, rows), np.int64)
        asking = Asking(ts, self._table.keys, _ALL_KEYED)
        self.standing = Standing(
            self._table.parts, self._counts, asking, np.empty(rows, np.int8), ids, gone, self._key, int(self._anti)
        )
