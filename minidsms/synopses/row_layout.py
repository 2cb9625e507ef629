"""How a row is kept as int64 words beside its index: its key first, then the other columns needed, then NULL masks.

Invariant: two rows have equal words exactly when they are equal in every column kept (NULL equal to NULL); the first
`key_width` words are the key's, to be compared where equal tags do not prove equal keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from minidsms.elements import Column, Int64Array, Schema, row_words


class RowLayout:
    """The words of a row of `schema`.

    keys: its key columns.  needed: the other columns to keep.  null_safe: NULL is a key like others.
    columns: those kept, keys first.  word_of: the word of each.  width: words in all.
    """

    def __init__(self, schema: Schema, keys: Sequence[int], needed: Iterable[int], null_safe: bool) -> None:
        self.schema = schema
        self.keys = tuple(keys)
        self.null_safe = null_safe and bool(self.keys)
        self.columns = self.keys + tuple(c for c in dict.fromkeys(needed) if c not in self.keys)
        # A null-safe key takes the words `row_words` gives it: its columns, then a mask of its own.
        own_mask = (len(keys) // 62 + 1) if self.null_safe else 0
        key_words = len(keys) + own_mask
        self.key_width = key_words if key_words > 1 else 0
        self.word_of = tuple(j if j < len(keys) else j + own_mask for j in range(len(self.columns)))
        self.masks = len(self.columns) // 62 + 1
        self.width = len(self.columns) + own_mask + self.masks
        self._place = {c: j for j, c in reversed(list(enumerate(self.columns)))}
        self._seen_nulls = np.zeros(self.masks, np.int64)

    def words(self, column: Callable[[int], Column], n: int, key_words: Int64Array | None) -> Int64Array:
        """The rows' words, (n, width); column gives a column of the schema, key_words are those of `key_tags`."""
        if not self.columns:
            return np.zeros((n, self.width), np.int64)
        rows = row_words([column(c) for c in self.columns])
        self.note_nulls(rows)
        if self.null_safe:
            assert key_words is not None
            rows = np.concatenate([key_words, rows[:, len(self.keys) :]], axis=1)
        return rows

    def note_nulls(self, rows: Int64Array) -> None:
        """Remember which columns have NULLs: only those get a mask when gathered."""
        self._seen_nulls |= np.bitwise_or.reduce(rows[:, rows.shape[1] - self.masks :], axis=0)

    def keyless(self, rows: Int64Array) -> Int64Array:
        """The positions of rows with a NULL key."""
        if self.null_safe:
            return np.zeros(0, np.int64)
        bits = [(rows[:, self.width - self.masks + j // 62] >> (j % 62)) & 1 for j in range(len(self.keys))]
        return np.flatnonzero(np.any(bits, axis=0)) if bits else np.zeros(0, np.int64)

    def gather(self, words: Int64Array, at: Int64Array, columns: Sequence[int]) -> list[Column]:
        """Columns of the schema, of the rows at these places."""
        flat = words.reshape(-1)
        base = at * self.width
        result = []
        for c in columns:
            j = self._place[c]
            valid = None
            if (int(self._seen_nulls[j // 62]) >> (j % 62)) & 1:
                mask = flat.take(base + (self.width - self.masks + j // 62))
                valid = (mask >> (j % 62)) & 1 == 0
            result.append(Column.from_words(flat.take(base + self.word_of[j]), valid, self.schema[c].type))
        return result
