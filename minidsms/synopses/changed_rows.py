"""The rows that a grouped aggregation puts out, and the room in which they stand.

Rows of large slices fill blocks on large pages, one slice behind the other (`process.large_pages`); those of small ones
are copied out of a room that is used again; a few rows stand in a room like those of a block, for a copy takes longer
than to make them.

Invariant: a row that has been taken is not written any more.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from minidsms.elements import Int8Array, Int64Array
from minidsms.kernels.grouping import Changed
from minidsms.process.large_pages import BLOCK_WORDS, words_on_large_pages

_WORTH_A_BLOCK = BLOCK_WORDS // 8
"""Words of rows from which on they stand in blocks: whoever keeps some rows of a block keeps all of it."""
_FEW = 32
"""Rows that are not copied, at most: who keeps them takes them out of the room."""
_SPARE = 8 * _FEW
"""Rows for which a room has place beside those of a slice: many slices of few rows are to fill it, for making one takes
longer than to copy them.
"""
_LEAST_KEPT = 32
"""Rows are copied out of a block if they are fewer than one part in so many of it."""
_PATIENCE = 64
"""Slices of few rows, one behind the other, until a block is given up for them: what it holds already keeps all of it,
so that large slices are to fill it though small ones come between them.
"""


Rows: TypeAlias = "tuple[Int64Array, Int8Array, Int8Array | None, bool]"
"""words (1 + columns, m), instants first; sign (m,); status (columns, m), 0 where one is NULL, good until the next
slice, or None where none is; whether they hold no more memory than they need. No NamedTuple: making one takes as long
as taking an element in.
"""


class ChangedRows:
    """columns: of a row, beside its instant and its sign."""

    def __init__(self, columns: int) -> None:
        self._width = 1 + columns
        self.begin = 0
        """Rows of the room that have been taken."""
        self.fitting = 0
        """Rows of a slice for which the room is made as it stands."""
        self._is_block = False
        self._small = 0
        self.make_room(0)

    def make_ready(self, rows: int) -> None:
        """Make room where rows are few for so many, else for some of them. Not needed up to `fitting`."""
        if self._is_block:
            self._small = 0 if self._is_worth_a_block(rows) else self._small + 1
        if rows > self.fitting and not (self._is_block and self._small < _PATIENCE):
            self.make_room(rows)

    def make_room(self, rows: int, least: int = 0) -> None:
        """Begin another room, as `make_ready` does, but for `least` rows."""
        width = self._width
        self._is_block = self._is_worth_a_block(rows)
        if self._is_block:
            rows = max(least, 8 * (BLOCK_WORDS - 1) // (8 * width + 1))
            block = words_on_large_pages(rows * width + rows // 8 + 1)
            words, signs = block[: rows * width], block[rows * width :]
            self._words, self._sign = words.reshape(width, rows), signs.view(np.int8)[:rows]
        else:
            rows += _SPARE
            self._words, self._sign = np.empty((width, rows), np.int64), np.empty(rows, np.int8)
        self._status: Int8Array = np.empty((width - 1, rows), np.int8)
        self.changed = Changed(self._words[0], self._sign, self._words[1:], self._status)
        self.begin, self.fitting, self._small = 0, 0 if self._is_block else rows, 0

    def _is_worth_a_block(self, rows: int) -> bool:
        return rows * self._width >= _WORTH_A_BLOCK

    def take(self, end: int, nulls: bool) -> Rows:
        """The rows from `begin` to `end`. nulls: there may be some."""
        begin = self.begin
        words, sign, is_own = self._words[:, begin:end], self._sign[begin:end], True
        if self._is_block:
            stay = (end - begin) * _LEAST_KEPT >= self._sign.size
        elif stay := end - begin <= _FEW:
            self.fitting -= end - begin
            is_own = False
        if stay:
            self.begin = end
        else:
            words, sign = words.copy(), sign.copy()
        return words, sign, self._status[:, begin:end] if nulls else None, is_own
