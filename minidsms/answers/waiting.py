"""Batches of answers that wait until somebody takes them; the rows of small ones share rooms.

Who pushes row by row has an answer of some rows a push. Each would stand in a dozen objects of its own, all of which
the interpreter's garbage collector visits again and again as long as nobody takes them.
Invariant: rows that have been shown in a batch are not written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minidsms.elements import AnyArray, Batch, BoolArray, Column, Int8Array, Int64Array

_SMALL = 1 << 9
"""Elements from which on a batch stays as it is."""
_FEW = 4
"""So many wait as they are: who takes them every few of them needs no room."""
_LEAST_ROOM = 1 << 5
_MOST_ROOM = 1 << 12


class WaitingBatches:
    """changes, nbytes: of what waits.

    >>> import numpy as np
    >>> waiting = WaitingBatches()
    >>> for ts in range(40):
    ...     waiting.append(Batch(np.array([ts]), None, []))
    >>> [len(batch) for batch in waiting.batches()], waiting.changes
    ([1, 1, 1, 1, 32, 4], 40)
    """

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._room: _Room | None = None
        self.changes = self.nbytes = 0

    def append(self, batch: Batch) -> None:
        """Let a batch wait behind the others, in arrays of its own. Raises MemoryError, and nothing has changed."""
        n = len(batch.ts)
        if n >= _SMALL or len(self._batches) < _FEW or not self._write(batch, n):
            self._show()
            batch = batch.owned()
            self._batches.append(batch)
            self.nbytes += n * batch.row_nbytes
        self.changes += n

    def _write(self, batch: Batch, n: int) -> bool:
        """Write its rows to the room, or to a new one; False where memory lacks."""
        room = self._room
        try:
            if room is None or room.end + n > len(room.ts):
                self._show()
                room = self._room = _Room(batch, max(_LEAST_ROOM, n, min(self.changes, _MOST_ROOM)))
            room.write(batch, n)
            self.nbytes += n * room.row_nbytes
        except MemoryError:
            self._show()
            self._room = None
            return False
        return True

    def _show(self) -> None:
        room = self._room
        if room is not None and room.shown < room.end:
            self._batches.append(room.show())

    def batches(self) -> list[Batch]:
        """All of them, in their order; they go on waiting."""
        self._show()
        return self._batches

    def take(self) -> list[Batch]:
        """All of them; they wait no more."""
        taken = self.batches()
        if self._room is not None and len(self._room.ts) > _LEAST_ROOM:
            self._room = None
        self._batches, self.changes, self.nbytes = [], 0, 0
        return taken

    def replace(self, batches: Sequence[Batch]) -> None:
        """Let these wait, and no others."""
        self.take()
        self._batches = list(batches)
        self.changes = sum(len(batch.ts) for batch in batches)
        self.nbytes = sum(len(batch.ts) * batch.row_nbytes for batch in batches)


def after(batches: Sequence[Batch], n: int) -> list[Batch]:
    """What stands behind the first n elements."""
    rest = []
    for batch in batches:
        if n < len(batch):
            rest.append(batch.slice(n, len(batch)) if n > 0 else batch)
        n -= len(batch)
    return rest


def parts_of(batches: Sequence[Batch], n: int) -> Iterator[Batch]:
    """The batches, those of more than n elements in parts."""
    for batch in batches:
        if len(batch) <= n:
            yield batch
        else:
            yield from (batch.slice(start, start + n) for start in range(0, len(batch), n))


class _Room:
    """Room for rows like those of a batch. end: of the rows written.  shown: of those that stand in batches.
    row_nbytes: as `Batch` has it, at most.
    """

    def __init__(self, like: Batch, n: int) -> None:
        self.row_nbytes = 9 + 8 * like.width
        self._sign: Int8Array | None = None
        self._words: Int64Array | None = None
        self._values: Sequence[AnyArray]
        if like.words is not None:
            self._words = np.empty((1 + like.width, n), np.int64)
            self.ts, *self._values = self._words
        else:
            self.ts = np.empty(n, np.int64)
            self._values = [np.empty(n, column.values.dtype) for column in like.columns]
        self._valid: list[BoolArray | None] = [None] * like.width
        self.end = self.shown = 0

    def write(self, batch: Batch, n: int) -> None:
        """Write its n rows, for which there is room. After a MemoryError nothing more may be written."""
        end = self.end + n
        here = slice(self.end, end)
        if batch.sign is not None:
            if self._sign is None:
                self._sign = np.ones(len(self.ts), np.int8)
            self._sign[here] = batch.sign
        if self._words is not None and batch.words is not None:
            self._words[:, here] = batch.words
        else:
            for i, column in enumerate(batch.columns):
                self._values[i][here] = column.values
                if column.valid is not None:
                    valid = self._valid[i]
                    if valid is None:
                        valid = self._valid[i] = np.ones(len(self.ts), np.bool_)
                    valid[here] = column.valid
            self.ts[here] = batch.ts
        self.end = end

    def show(self) -> Batch:
        """The rows that have been written since the last time."""
        first, end = self.shown, self.end
        self.shown = end
        columns = [
            Column(values[first:end], None if valid is None else valid[first:end])
            for values, valid in zip(self._values, self._valid)
        ]
        return Batch(self.ts[first:end], None if self._sign is None else self._sign[first:end], columns)
