"""How often each row of a bag is there, rows of one schema.

Invariant: what is held follows the rows present, not their changes; of a row that is there 0 times nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from minidsms.elements import Batch, Int64Array, Schema, words_width
from minidsms.kernels.arrays import normal, places

_FIRST_CAPACITY = 64
_WORTH_SHRINKING = 4096


@cache
def _kernel() -> tuple[Callable[..., int], int]:
    """Kernels are loaded with the first query that needs them, not with the package."""
    from minidsms.kernels.row_counts import BLOCK, count_changes

    return count_changes, BLOCK


class RowCounts:
    """A bag. See `kernels.row_counts` for what it is made of."""

    def __init__(self, schema: Schema) -> None:
        self.hold(np.zeros((0, 1 + words_width(len(schema))), np.int64))

    def __len__(self) -> int:
        """Different rows."""
        return int(self._meta.item(0))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self._rows.nbytes + self._slots.nbytes

    def present(self) -> Int64Array:
        """Each row that is there as words, behind how often it is: (n, 1 + words)."""
        used = self._rows[: self._meta.item(2)]
        return used[used[:, 0] > 0]

    def hold(self, rows: Int64Array) -> None:
        """Hold these different rows, as `present` gives them, and no others, with room for as many more."""
        n = len(rows)
        capacity = max(_FIRST_CAPACITY, 1 << (2 * n - 1).bit_length() if n else 0)
        room, slots = np.empty((capacity, rows.shape[1]), np.int64), np.zeros(2 * capacity, np.int64)
        room[:n] = rows
        if n:
            from minidsms.kernels.row_counts import enter_rows

            enter_rows(slots, room[:n])
        # Only when there is room for all of it does anything change.
        self._rows: Int64Array = room
        self._slots: Int64Array = slots
        self._meta: Int64Array = np.array([n, -1, n], np.int64)

    def count(self, batch: Batch) -> None:
        """Count changes in."""
        count_changes, block = _kernel()
        sign, done = normal(batch.signs), 0
        words: Int64Array = np.empty((block, self._rows.shape[1] + 1), np.int64)
        table, _kept = places(batch.columns)
        while done < len(sign):
            done = count_changes(table, sign, self._slots, self._rows, self._meta, words, done)
            if done < len(sign):
                self.hold(self.present())

    def settle(self) -> None:
        """Give memory back if most of it is free."""
        if _WORTH_SHRINKING < len(self._rows) >= 8 * len(self):
            self.hold(self.present())
