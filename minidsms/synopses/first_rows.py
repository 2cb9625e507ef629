"""The rows of a relation of which the first are in order, and the others counted.

A row that is far behind the first costs one look into a table, where keeping its place would take comparisons in
Python. Which rows are near is decided by their first sort key, as a word: those up to `_limit`. When rows leave and too
few are near, the nearest of the others are fetched; when there are many, the farthest are given to them.

Invariant: every row that is not near stands behind all that are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.sorting import words_in_order
from minidsms.elements import AnyArray, Batch, Column, Int64Array, Schema, Type, columns_of_words
from minidsms.synopses.object_states import Texts
from minidsms.synopses.row_counts import RowCounts
from minidsms.synopses.sorted_rows import SortedRows

_LEAST = 32
_TIMES = 4
"""So many rows, and so many times those that are shown, are near after a fetch."""
_MANY = 4
"""Times as many are given up, as far as they differ in their first key."""
_FARTHEST = np.iinfo(np.int64).max


def order_words(column: Column, type_: Type, key: SortKey, texts: Texts) -> Int64Array | None:
    """Words that are never less where a row with this value stands behind; None of values that have none."""
    if type_.is_coded:
        return None
    words = words_in_order(column, type_, key.descending, texts)
    if column.valid is not None:
        words[~column.valid] = -_FARTHEST - 1 if key.nulls_first else _FARTHEST
    return words


class FirstRows(SortedRows):
    """shown: so many of the first must be near, as long as there are. keeps_all: rows behind them may come to be
    first.
    """

    def __init__(
        self,
        schema: Schema,
        order: Sequence[tuple[int, SortKey]],
        texts: Texts,
        shown: int,
        keeps_all: bool,
    ) -> None:
        super().__init__(schema, order, texts)
        (self._first, self._first_key), *_ = order
        self._shown = shown
        self._aim = max(_LEAST, _TIMES * shown)
        self._looks_at = _MANY * self._aim if keeps_all else _FARTHEST
        self._limit = _FARTHEST
        self._others = RowCounts(schema)

    def __len__(self) -> int:
        """Near rows, and different ones of the others."""
        return len(self.rows) + len(self._others)

    def parted(self, batch: Batch) -> tuple[Batch | None, Batch | None]:
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
        return order_words(column, self.schema[self._first].type, self._first_key, self._texts)

    def count(self, others: Batch) -> None:
        """Take in changes of rows that are not near."""
        if len(others):
            self._others.count(others)

    def fetch(self, leaving: int) -> None:
        """See that enough rows are near where so many are about to leave: others become so, and at last all."""
        others = self._others.present()
        words = self._words_of(self._columns_of(others)[self._first]) if len(others) else None
        wanted = self._aim + leaving - len(self.rows)
        if words is None or len(words) <= wanted:
            self._limit, chosen = _FARTHEST, np.ones(len(others), np.bool_)
        else:
            self._limit = int(np.partition(words, wanted)[wanted])
            chosen = words <= self._limit
        self.rows.update(self.entries(self._insertions(others[chosen])))
        self._others.hold(others[~chosen])

    def settle(self) -> None:
        """Give far rows to the others where many are near."""
        self._others.settle()
        if len(self.rows) <= self._looks_at:
            return
        near = Batch(np.zeros(len(self.rows), np.int64), None, self.columns(self.rows))
        words = self._words_of(near.columns[self._first])
        if words is not None:
            self._limit = int(words[self._aim])
            first = int(np.searchsorted(words, self._limit, "right"))
            if first < len(words):
                self._others.count(near.slice(first, len(words)))
                del self.rows[first:]
        self._looks_at = max(_MANY * self._aim, 2 * len(self.rows))

    def _columns_of(self, rows: Int64Array) -> list[Column]:
        return columns_of_words(rows[:, 1:], self.schema)

    def _insertions(self, rows: Int64Array) -> Batch:
        rows = np.repeat(rows, rows[:, 0], axis=0)
        return Batch(np.zeros(len(rows), np.int64), None, self._columns_of(rows))

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return super().nbytes + self._others.nbytes

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes held (0 stands for NULL)."""
        yield from super().live_codes()
        others = self._others.present()
        for i, type_ in enumerate(self.schema.types):
            if type_.is_coded:
                yield others[:, 1 + i]

    def arrays(self) -> dict[str, AnyArray]:
        """The state: rows as words, the near ones first, in order."""
        others = self._others.present()
        words = super().arrays()["words"]
        return {"words": np.concatenate([words, np.repeat(others[:, 1:], others[:, 0], axis=0)])}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        super().restore(state)
        self._limit = _FARTHEST
        self._others = RowCounts(self.schema)
        self.settle()
