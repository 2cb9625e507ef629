"""Rows that a join has told of and no monitor has seen yet: slices of few rows are shown together.

What monitors know is asked when room is made, seldom, so that it is enough to show rows before that. To show them costs
the same for one row as for a thousand.

Invariant: whoever asks a monitor has the journal shown first; nothing refers to the batches that were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Batch, BoolArray, Int64Array

MOST = 1024
"""Rows of an input that are kept; a part with as many is shown at once."""
_LEAST = 16


@dataclass(frozen=True)
class Told:
    """Rows of one input. ts, numbers: (n,).  words, valid: of some columns, (n,) each; valid None: no NULLs."""

    ts: Int64Array
    numbers: Int64Array
    words: dict[int, Int64Array]
    valid: dict[int, BoolArray | None]

    def __len__(self) -> int:
        return len(self.ts)


def told(batch: Batch, first: int, columns: Sequence[int]) -> Told:
    """The rows of a batch. first: the number of the first, where it has no numbers of its own."""
    found = [batch.column(c) for c in columns]
    numbers = batch.seq if batch.seq is not None else np.arange(first, first + len(batch), dtype=np.int64)
    return Told(
        batch.ts, numbers, {c: own.words() for c, own in zip(columns, found)},
        {c: own.valid for c, own in zip(columns, found)},
    )  # fmt: skip


class Journal:
    """Rows of one input, at most MOST, with the columns that `begin` has named."""

    def __init__(self) -> None:
        self._n = 0
        self._columns: tuple[int, ...] = ()
        self._cells: Int64Array = np.zeros((2, 0), np.int64)
        """A row each of ts, numbers, and the words of every column."""
        self._valid: BoolArray = np.ones((0, 0), np.bool_)

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._cells.nbytes + self._valid.nbytes

    def begin(self, columns: tuple[int, ...]) -> None:
        """From now on with these columns; it is empty."""
        if columns != self._columns:
            self._columns = columns
            self._make(0)

    def add(self, batch: Batch, first: int) -> None:
        """Rows have come, see `told`; with those there they are no more than MOST."""
        at, end = self._n, self._n + len(batch)
        if end > self._cells.shape[1]:
            self._make(max(_LEAST, 1 << (end - 1).bit_length()))
        cells = self._cells
        if end == at + 1:
            # By far the most frequent where slices are small at all.
            cells[0, at] = batch.ts[0]
            cells[1, at] = first if batch.seq is None else batch.seq[0]
            for place, c in enumerate(self._columns):
                column = batch.column(c)
                cells[2 + place, at] = column.words()[0]
                if column.valid is not None:
                    self._valid[place, at] = column.valid[0]
            self._n = end
            return
        cells[0, at:end] = batch.ts
        cells[1, at:end] = batch.seq if batch.seq is not None else np.arange(first, first + len(batch))
        for place, c in enumerate(self._columns):
            column = batch.column(c)
            cells[2 + place, at:end] = column.words()
            if column.valid is not None:
                self._valid[place, at:end] = column.valid
        self._n = end

    def take(self) -> Told:
        """Those there, and be empty. They last until something is added."""
        cells, n = self._cells, self._n
        self._n = 0
        words = {c: cells[2 + place, :n] for place, c in enumerate(self._columns)}
        valid: dict[int, BoolArray | None] = {}
        for place, c in enumerate(self._columns):
            own = self._valid[place, :n]
            valid[c] = None if own.all() else own.copy()
            own[:] = True
        return Told(cells[0, :n], cells[1, :n], words, valid)

    def _make(self, room: int) -> None:
        """Room for so many rows, with those there."""
        cells, valid = self._cells, self._valid
        self._cells = np.zeros((2 + len(self._columns), room), np.int64)
        self._valid = np.ones((len(self._columns), room), np.bool_)
        if self._n:
            self._cells[:, : self._n] = cells[:, : self._n]
            self._valid[:, : self._n] = valid[:, : self._n]
