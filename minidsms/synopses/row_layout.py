"""How a row is kept as int64 words beside its index: the columns needed, then NULL masks.

Invariant: two rows have equal words exactly when they are equal in every column kept (NULL equal to NULL).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minidsms.elements import Column, Int64Array, Schema, row_words


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
