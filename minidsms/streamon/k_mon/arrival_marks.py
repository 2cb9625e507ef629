"""Which rows of a parent stream have seen k arrivals of the child? The auxiliary structure of RIDS(k).

A row's instant tells that, so that no row need carry a counter (Babu 2005, section 6.6.2).

Invariant: where there is no mark of an arrival the answer is that of the mark before it, which promises less.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.arrival_marks import MARK_WORDS, note_arrivals

_MARKS = 384


class ArrivalInstants:
    """The instants of some of the last arrivals."""

    def __init__(self) -> None:
        self._state: Int64Array = np.zeros(MARK_WORDS, np.int64)
        self._marks: Int64Array = np.zeros((2, _MARKS), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._state.nbytes + self._marks.nbytes

    def array(self) -> Int64Array:
        """The state, (2, 1 + marks)."""
        total, held = self._state
        return np.concatenate([self._marks[:, :held], [[total], [0]]], axis=1)

    def restore(self, state: Int64Array) -> None:
        """Know what `array` gave."""
        held = state.shape[1] - 1
        self._state[:] = state[0, -1], held
        self._marks[:, :held] = state[:, :-1]

    def add(self, ts: Int64Array) -> None:
        """Rows have come; ts: (n,) nondecreasing."""
        note_arrivals(normal(ts), self._marks, self._state)

    def skip(self, n: int) -> None:
        """Rows have come of whose instants nothing is asked."""
        self._state[0] += n

    def before(self, k: int) -> int:
        """Rows of other streams older than this instant have seen k arrivals, at least."""
        if k == 0:
            return MAX_INSTANT
        total, held = self._state
        at = int(np.searchsorted(self._marks[0, :held], total - k, side="right")) - 1
        return int(self._marks[1, at]) if at >= 0 else MIN_INSTANT
