"""The rows of a relation in an order: by sort keys, then by value.

Invariant: a row stands in the list as often as it is in the relation; equal rows are next to each other, and rows that
differ have different places (docs/semantics R6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sortedcontainers import SortedList

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.sorting import sort_key, sortable
from minidsms.elements import AnyArray, Batch, Column, Int64Array, Schema, columns_of_words, row_words
from minidsms.synopses.object_states import Texts

_ROW_BYTES = 300
"""About what a row takes: three tuples and a place in the list."""


class Entry(NamedTuple):
    """A row: what it is sorted by, its values, NULL first, and its words."""

    keys: tuple[Any, ...]
    values: tuple[Any, ...]
    words: tuple[int, ...]


class SortedRows:
    """Rows of one schema, with multiplicity. order: by which columns, and how."""

    def __init__(self, schema: Schema, order: Sequence[tuple[int, SortKey]], texts: Texts) -> None:
        self.schema = schema
        self._columns = tuple(column for column, _ in order)
        self._keys = tuple(key for _, key in order)
        self._texts = texts
        self._width = row_words(Batch.empty(schema).columns).shape[1]
        self.rows: SortedList[Entry] = SortedList()

    def entries(self, batch: Batch) -> list[Entry]:
        """The rows of a batch, as they stand in the list."""
        values = zip(*(sortable(column, t, self._texts) for column, t in zip(batch.columns, self.schema.types)))
        words = row_words(batch.columns).tolist()
        return [self._entry(row, tuple(own)) for row, own in zip(values, words)]

    def _entry(self, row: tuple[Any, ...], words: tuple[int, ...]) -> Entry:
        keys = sort_key([row[i] for i in self._columns], self._keys)
        return Entry(keys, tuple((value is not None, value) for value in row), words)

    def columns(self, entries: Sequence[Entry]) -> list[Column]:
        """Entries as columns."""
        return columns_of_words(self._words(entries), self.schema)

    def _words(self, entries: Iterable[Entry]) -> Int64Array:
        return np.array([entry.words for entry in entries], np.int64).reshape(-1, self._width)

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return len(self.rows) * (_ROW_BYTES + 100 * len(self.schema))

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes held (0 stands for NULL)."""
        for i, type_ in enumerate(self.schema.types):
            if type_.is_coded:
                yield self._words(self.rows)[:, i]

    def arrays(self) -> dict[str, AnyArray]:
        """The state: rows as words, in order."""
        return {"words": self._words(self.rows)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        words = state["words"].astype(np.int64)
        batch = Batch(np.zeros(len(words), np.int64), None, columns_of_words(words, self.schema))
        self.rows = SortedList(self.entries(batch))
