"""The rows of a relation of which the first are in order, and the others counted.

A row that is far behind the first costs one look into a table; its place would take comparisons, and moving all behind
it. Which rows are near is decided by their first sort key, as a word: those up to `_limit`. When rows leave and too
few are near, the nearest of the others are fetched; when there are many, the farthest are given to them.

Invariant: every row that is not near stands behind all that are, and as long as there are others, so many are near as
are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import OverCall
from minidsms.aggregates.sorting import words_in_order
from minidsms.elements import AnyArray, Batch, Column, Int64Array, Schema, Type
from minidsms.kernels import sorted_partitions as kernels
from minidsms.synopses.object_states import Texts
from minidsms.synopses.row_counts import RowCounts
from minidsms.synopses.sorted_partitions import SHOWN, SortedPartitions

_LEAST = 32
_TIMES = 4
"""So many rows, and so many times those that are shown, are near after a fetch."""
_MANY = 4
"""Times as many are given up, as far as they differ in their first key."""
_FARTHEST = np.iinfo(np.int64).max
_AT_ONCE = 1 << 12
"""Changes after which rows may come to be far."""


class FirstRows(SortedPartitions):
    """order: by which columns, and how.  limit, offset: so many rows are shown, behind so many. keeps_all: rows behind
    them may come to be first.
    """

    def __init__(
        self, schema: Schema, order: Sequence[tuple[int, SortKey]], texts: Texts, limit: int, offset: int,
        keeps_all: bool,
    ) -> None:  # fmt: skip
        self._shown = min(offset + limit, _FARTHEST // 2)
        call = OverCall(SHOWN, Type.NULL, (), tuple(order), "", distance=offset)
        keeps = kernels.KEEPS_ALL if keeps_all else kernels.KEEPS_SHOWN
        super().__init__(schema, call, self._shown, keeps, texts)
        (self._first, self._first_key), *_ = order
        self._dictionary = texts
        self._aim = max(_LEAST, _TIMES * self._shown)
        self._gives_up = keeps_all
        self._begin()

    def _begin(self) -> None:
        """All rows are near."""
        self._looks_at = _MANY * self._aim if self._gives_up else _FARTHEST
        self._limit = _FARTHEST
        self._others = RowCounts(self.schema)

    def __len__(self) -> int:
        """Near rows, which are held in order, and different ones of the others."""
        return self.held + len(self._others)

    # ---------------------------------------------------------------------------------------------------- the changes

    def take(self, batch: Batch) -> Iterator[kernels.RankedRows]:
        """As of all rows in order."""
        start, n = 0, len(batch)
        while start < n:
            end = n
            if n - start > _AT_ONCE:
                end = int(np.searchsorted(batch.ts, batch.ts[start + _AT_ONCE - 1], "right"))
            part = batch if end - start == n else batch.slice(start, end)
            near, far = self._parted(part)
            undone = None
            if near is not None:
                yield from self._carry_out(near, 0 if far is None else self._shown)
                undone = self._undone
            if undone is None:
                start = end
            else:
                assert near is not None and far is not None
                ts = near.ts[undone]
                far = far.slice(0, int(np.searchsorted(far.ts, ts)))
                start += int(np.searchsorted(part.ts, ts))
            if far is not None and len(far):
                self._others.count(far)
            if undone is None:
                self._settle()
            else:
                # Of all rows, not of the near alone: where a window moves in steps, those fetched would leave as well.
                self._fetch(int(np.count_nonzero(part.signs[part.ts == ts] < 0)))

    def _parted(self, batch: Batch) -> tuple[Batch | None, Batch | None]:
        """The rows of a batch that are near, None for no rows, and the others; None where no row is far, of those
        held, either.
        """
        words = None if self._limit == _FARTHEST else self._words_of(batch.column(self._first))
        if words is None:
            return batch, None
        are_near = words <= self._limit
        n = np.count_nonzero(are_near)
        if n == 0:
            return None, batch
        if n == len(words):
            return batch, batch.slice(0, 0)
        return batch.take(are_near), batch.take(~are_near)

    def _words_of(self, column: Column) -> Int64Array | None:
        """Words of the first sort key that are never less where a row stands behind; None where it has no such."""
        type_, key = self.schema[self._first].type, self._first_key
        if type_.is_coded:
            return None
        words = words_in_order(column, type_, key.descending, self._dictionary)
        if column.valid is not None:
            words[~column.valid] = -_FARTHEST - 1 if key.nulls_first else _FARTHEST
        return words

    def _fetch(self, leaving: int) -> None:
        """See that enough rows are near where so many are about to leave: others become so, and at last all."""
        others = self._others.present()
        words = self._words_of(self._insertions(others[:, 1:]).column(self._first))
        wanted = self._aim + leaving - self.held
        if words is None or len(words) <= wanted:
            self._limit, chosen = _FARTHEST, np.ones(len(others), np.bool_)
        else:
            self._limit = int(np.partition(words, wanted)[wanted])
            chosen = words <= self._limit
        self._add(np.repeat(others[chosen, 1:], others[chosen, 0], axis=0))
        self._others.hold(others[~chosen])

    def _settle(self) -> None:
        """Give far rows to the others where many are near."""
        self._others.settle()
        if self.held <= self._looks_at:
            return
        rows = self._insertions(self._words())
        words = self._words_of(rows.columns[self._first])
        if words is not None:
            self._limit = int(words[self._aim])
            first = int(np.searchsorted(words, self._limit, "right"))
            if first < len(words):
                self._others.count(rows.slice(first, len(words)))
                self._cut(first)
        self._looks_at = max(_MANY * self._aim, 2 * self.held)

    # ---------------------------------------------------------------------------------------------------------- memory

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return super().nbytes + self._others.nbytes

    def live_codes(self) -> Iterator[Int64Array]:
        yield from super().live_codes()
        others = self._others.present()
        for i in self.schema.coded:
            yield others[:, 1 + i]

    def arrays(self) -> dict[str, AnyArray]:
        """The state: rows as words, the near ones first, in order."""
        others = self._others.present()
        return {"words": np.concatenate([self._words(), np.repeat(others[:, 1:], others[:, 0], axis=0)])}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._begin()
        super().restore(state)
        self._settle()
