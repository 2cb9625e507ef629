"""How a row is kept as int64 words beside its index: the columns needed, then NULL masks.

Invariant: two rows have equal words exactly when they are equal in every column kept (NULL equal to NULL).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from minidsms.elements import Column, Int64Array, Schema, row_words
from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.kernels.gathering import NULL_BIT, OF_MASK, SOURCE_WORDS


class Standing(NamedTuple):
    """By what it is known that rows still stand where their columns were found: the array, and which columns had had a
    NULL. A copy of the plan has this one (`plan.copying`), which says nothing of the rows copied, and keeps the array:
    none that comes later is taken for it.
    """

    words: Int64Array
    nulls: bytes


class RowLayout:
    """The words of a row of `schema`. columns: those kept, a word each, in this order.  width: words in all."""

    def __init__(self, schema: Schema, columns: Sequence[int]) -> None:
        self.schema = schema
        self.columns = tuple(columns)
        self.masks = len(self.columns) // 62 + 1
        self.width = len(self.columns) + self.masks
        self._place = {c: j for j, c in enumerate(self.columns)}
        self.seen_nulls: Int64Array = np.zeros(self.masks, np.int64)
        """The bits of columns that have had a NULL: only those get a mask when gathered. Whoever keeps rows notes it.
        """

    def words(self, column: Callable[[int], Column], n: int) -> Int64Array:
        """The rows' words, (n, width); column gives a column of the schema."""
        if not self.columns:
            return np.zeros((n, self.width), np.int64)
        return row_words([column(c) for c in self.columns])

    def sources(self, words: Int64Array, columns: Sequence[int]) -> Int64Array:
        """Where columns of the schema stand in rows, as `kernels.gathering.gather_tuples` takes them."""
        first, masks = words.ctypes.data, self.width - self.masks
        table = np.zeros((len(columns), SOURCE_WORDS), np.int64)
        table[:, WIDTH], table[:, OF_MASK] = 8, self.width
        for source, j in zip(table, [self._place[c] for c in columns]):
            source[VALUES], source[NULL_BIT] = first + 8 * j, j % 62
            if (int(self.seen_nulls[j // 62]) >> (j % 62)) & 1:
                source[VALID] = first + 8 * (masks + j // 62)
        return table

    def gather(self, words: Int64Array, at: Int64Array, columns: Sequence[int]) -> list[Column]:
        """Columns of the schema, of the rows at these places."""
        flat = words.reshape(-1)
        base = at * self.width
        result = []
        for c in columns:
            j = self._place[c]
            valid = None
            if (int(self.seen_nulls[j // 62]) >> (j % 62)) & 1:
                mask = flat.take(base + (self.width - self.masks + j // 62))
                valid = (mask >> (j % 62)) & 1 == 0
            result.append(Column.from_words(flat.take(base + j), valid, self.schema[c].type))
        return result
