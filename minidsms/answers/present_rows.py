"""The rows a relation holds, kept from its changes where no operator knows them.

Changes wait in batches and are counted, row by row, when many wait or somebody asks: so each costs one look into a
table of the rows present, whatever the sizes of the batches. Many are counted behind the engine.
Invariant: what is held follows the relation, not the number of its changes.  docs/semantics D2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from minidsms.answers.waiting import WaitingBatches
from minidsms.elements import Batch, Int64Array, Schema
from minidsms.process.behind import Behind

if TYPE_CHECKING:
    from minidsms.synopses.key_table import KeyTable

_MOST_WAITING = 1 << 16


class PresentRows:
    """A bag of rows of one schema. behind: does what need not be waited for."""

    def __init__(self, schema: Schema, behind: Behind) -> None:
        self._schema = schema
        self._behind = behind
        self._waiting = WaitingBatches()
        self._table: KeyTable | None = None
        self._counts: Int64Array = np.zeros(0, np.int64)

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
        if not len(self._schema):
            return Batch(np.zeros(int(self._counts.sum()), np.int64), None, [])
        if self._table is None:
            return Batch.empty(self._schema)
        ids = np.repeat(np.arange(len(self._counts)), self._counts)
        return Batch(np.zeros(len(ids), np.int64), None, self._table.columns(ids, self._schema))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        self._behind.settle()
        return self._waiting.nbytes + self._counts.nbytes + (0 if self._table is None else self._table.nbytes)

    def clear(self) -> None:
        """Forget everything."""
        self._behind.settle()
        self._waiting.take()
        self._table, self._counts = None, np.zeros(0, np.int64)

    def _count(self, changes: Sequence[Batch]) -> None:
        """Count changes in. One thread at a time."""
        if not changes:
            return
        batch = Batch.concat(changes)
        if not len(self._schema):
            self._counts = np.array([self._counts.sum() + batch.signs.sum(dtype=np.int64)], np.int64)
            return
        if self._table is None:
            # numba is loaded with the first query that needs it, not with the package.
            from minidsms.synopses.key_table import KeyTable

            self._table = KeyTable.of_schema(self._schema)
        table = self._table
        ids = table.acquire_columns(batch.columns)
        counts = np.bincount(ids, batch.sign, minlength=table.capacity).astype(np.int64)
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        table.release(ids[counts[ids] <= 0])
        kept = table.compact()
        if kept is not None:
            self._counts = np.zeros(table.capacity, np.int64)
            self._counts[: len(kept)] = counts[kept]
