"""The columns that a join shows of tuples of slots, gathered by one kernel out of all windows.

Invariant: where the columns stand is looked up again once a window keeps its rows elsewhere, or has the first NULL of a
column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import empty

from minidsms.elements import Batch, BoolArray, Column, Int8Array, Int64Array, Schema
from minidsms.kernels.addresses import VALID
from minidsms.kernels.gathering import SOURCE_WORDS, gather_tuples
from minidsms.synopses.window_index import WindowIndex

_INT64 = np.dtype(np.int64)
_NO_MASKS: BoolArray = np.empty((0, 0), np.bool_)
_FEW = 64


class ShownTuples:
    """columns: the (input, column) of each that is shown; schema: theirs.  padded: an input of which a tuple may have
    no row, but slot -1: its columns are NULL then.
    """

    def __init__(
        self, index: WindowIndex, columns: Sequence[tuple[int, int]], schema: Schema, padded: int | None = None
    ) -> None:
        self._index = index
        self._types = schema.types
        self._padded = [i == padded for i, _ in columns]
        # By input that gives something: the columns shown that it gives, and which of its own they are.
        gives: dict[int, list[tuple[int, int]]] = {}
        for j, (i, c) in enumerate(columns):
            gives.setdefault(i, []).append((j, c))
        self._gives = [(index.windows[i], [j for j, _ in each], [c for _, c in each]) for i, each in gives.items()]
        self._marks: list[Any] = []
        self._masked: list[bool] = []
        self._sources: Int64Array = np.zeros((len(columns), SOURCE_WORDS), np.int64)
        self._has_masks = self._are_words = False
        self._look()

    def rows(self, slots: Int64Array, ts: Int64Array, sign: Int8Array | None, found: int) -> Batch:
        """Those of the first tuples found. slots: (inputs, >= found).  sign: None where none is a deletion."""
        for (window, _, _), mark in zip(self._gives, self._marks):
            if not window.stands_at(mark):
                self._look()
                break
        k = len(self._sources)
        words = empty((1 + k, found), _INT64)
        present = empty((k, found), np.bool_) if self._has_masks else _NO_MASKS
        index = self._index
        some_are_padded = gather_tuples(self._sources, index.nodes, index.inputs, slots, ts, found, words, present)
        signs = None if sign is None else sign[:found].copy()
        if self._are_words:
            return Batch.of_words(words, signs, is_own=True)
        columns = []
        for c, type_ in enumerate(self._types):
            has_mask = self._masked[c] or (some_are_padded and self._padded[c])
            columns.append(Column.from_words(words[1 + c], present[c] if has_mask else None, type_))
        return Batch(words[0], signs, columns, is_own=True)

    def _look(self) -> None:
        """See where the columns stand now."""
        sources, self._marks = self._sources, []
        for window, shown, columns in self._gives:
            mark, sources[shown] = window.sources(columns)
            self._marks.append(mark)
        self._masked = [valid != 0 for valid in sources[:, VALID].tolist()]
        self._has_masks = True in self._masked or True in self._padded
        self._are_words = not self._has_masks and all(t.dtype == _INT64 for t in self._types)


def signs_of(sign: Int8Array, found: int) -> Int8Array | None:
    """The signs, where one of the first elements is a deletion."""
    has_deletions = -1 in sign[:found].tolist() if found <= _FEW else bool((sign[:found] < 0).any())
    return sign if has_deletions else None
