"""The rows a relation holds, kept from its changes where no operator knows them.

Changes wait in batches and are counted, row by row, when many wait or somebody asks: so each costs one look into a
table of the rows present, whatever the sizes of the batches. Many are counted behind the engine.
Invariant: what is held follows the relation, not the number of its changes.  docs/semantics D2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from minidsms.answers.waiting import WaitingBatches
from minidsms.elements import Batch, Int64Array, Schema, columns_of_words, words_width
from minidsms.process.behind import Behind

_MOST_WAITING = 1 << 16
_FIRST_CAPACITY = 64
_WORTH_SHRINKING = 4096


class PresentRows:
    """A bag of rows of one schema. behind: does what need not be waited for."""

    def __init__(self, schema: Schema, behind: Behind) -> None:
        self._schema = schema
        self._behind = behind
        self._waiting = WaitingBatches()
        self._hold(np.zeros((0, 1 + words_width(len(schema))), np.int64))

    def add(self, batch: Batch) -> None:
        """Take changes, netted per instant."""
        self._waiting.append(batch)
        n = self._waiting.changes
        if n > _MOST_WAITING:
            self._behind.do(partial(self._count, self._waiting.take()), n)

    def rows(self) -> Batch:
        """The rows present as insertions, equal ones repeated (ts of no meaning)."""
        self._behind.settle()
        self._count(self._waiting.take())
        rows = self._present()
        rows = np.repeat(rows, rows[:, 0], axis=0)
        return Batch(np.zeros(len(rows), np.int64), None, columns_of_words(rows[:, 1:], self._schema))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        self._behind.settle()
        return self._waiting.nbytes + self._rows.nbytes + self._slots.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._behind.settle()
        self._waiting.take()
        self._hold(self._rows[:0])

    def _present(self) -> Int64Array:
        """Each row that is there, behind how often it is: (n, 1 + words)."""
        used = self._rows[: self._meta.item(2)]
        return used[used[:, 0] > 0]

    def _hold(self, rows: Int64Array) -> None:
        """Hold these, as `_present` gives them, with room for as many more."""
        n = len(rows)
        capacity = max(_FIRST_CAPACITY, 1 << (2 * n - 1).bit_length() if n else 0)
        room, slots = np.empty((capacity, rows.shape[1]), np.int64), np.zeros(2 * capacity, np.int64)
        room[:n] = rows
        if n:
            from minidsms.kernels.present_rows import enter_rows

            enter_rows(slots, room[:n])
        # Only when there is room for all of it does anything change.
        self._rows: Int64Array = room
        self._slots: Int64Array = slots
        self._meta: Int64Array = np.array([n, -1, n], np.int64)

    def _count(self, changes: Sequence[Batch]) -> None:
        """Count changes in. One thread at a time."""
        if not changes:
            return
        # numba is loaded with the first query that needs it, not with the package.
        from minidsms.kernels.arrays import normal, places
        from minidsms.kernels.present_rows import BLOCK, count_changes

        words: Int64Array = np.empty((BLOCK, self._rows.shape[1] + 1), np.int64)
        for batch in changes:
            columns, sign, done = batch.columns, normal(batch.signs), 0
            table, kept = places(columns)
            while done < len(sign):
                done = count_changes(table, sign, self._slots, self._rows, self._meta, words, done)
                if done < len(sign):
                    self._hold(self._present())
            del kept
        if _WORTH_SHRINKING < len(self._rows) >= 8 * self._meta.item(0):
            self._hold(self._present())
