"""The rows a relation holds, kept from its changes where no operator knows them.

Changes wait in batches and are counted, row by row, when many wait or somebody asks: so each costs one look into a
table of the rows present, whatever the sizes of the batches. Many are counted in the background.
Invariant: what is held follows the relation, not the number of its changes.  docs/semantics D2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from minidsms.answers.waiting import WaitingBatches
from minidsms.elements import Batch, Schema, columns_of_words
from minidsms.process.background import Background
from minidsms.synopses.row_counts import RowCounts

_MOST_WAITING = 1 << 16


class PresentRows:
    """A bag of rows of one schema. background: does what need not be waited for."""

    def __init__(self, schema: Schema, background: Background) -> None:
        self._schema = schema
        self._background = background
        self._waiting = WaitingBatches()
        self._counts: RowCounts | None = None

    def add(self, batch: Batch) -> None:
        """Take changes, netted per instant."""
        self._waiting.append(batch)
        n = self._waiting.changes
        if n > _MOST_WAITING:
            self._background.do(partial(self._count, self._waiting.take()), n)

    def rows(self) -> Batch:
        """The rows present as insertions, equal ones repeated (ts of no meaning)."""
        self._background.settle()
        self._count(self._waiting.take())
        if self._counts is None:
            return Batch.empty(self._schema)
        rows = self._counts.present()
        rows = np.repeat(rows, rows[:, 0], axis=0)
        return Batch(np.zeros(len(rows), np.int64), None, columns_of_words(rows[:, 1:], self._schema))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        self._background.settle()
        return self._waiting.nbytes + (0 if self._counts is None else self._counts.nbytes)

    def clear(self) -> None:
        """Forget everything."""
        self._background.settle()
        self._waiting.take()
        self._counts = None

    def _count(self, changes: Sequence[Batch]) -> None:
        """Count changes in. One thread at a time."""
        if not changes:
            return
        if self._counts is None:
            self._counts = RowCounts(self._schema)
        for batch in changes:
            self._counts.count(batch)
        self._counts.settle()
