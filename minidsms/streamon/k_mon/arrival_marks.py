"""What a stream's arrivals tell of those to come, given k: the auxiliary structures of Babu 2005, chapter 6.

`ArrivalInstants` answers for RIDS(k) (section 6.6.2): which rows of a parent stream have seen k arrivals. A row's
instant tells that, so that no row need carry the counter. `LowWater` answers for OAP(k) and OAC(k) (sections 6.8.2,
6.8.6): below which value no row will come, from where the maximum rose.

Invariant: where a mark has been thinned out the answer is that of the mark before it, which promises less.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, BoolArray, Int64Array

_MOST_MARKS = 4096
_FURTHEST = 1 << 17
"""Arrivals after which marks are forgotten: no k in use is greater."""


class ArrivalInstants:
    """The instants of the last arrivals. total: arrivals so far."""

    def __init__(self) -> None:
        self.total = 0
        self._first: Int64Array = np.zeros(0, np.int64)
        self._ts: Int64Array = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._first.nbytes + self._ts.nbytes

    def array(self) -> Int64Array:
        """The state, (2, 1 + marks)."""
        return np.stack([np.append(self._first, self.total), np.append(self._ts, 0)])

    def restore(self, state: Int64Array) -> None:
        """Know what `array` gave."""
        self.total, self._first, self._ts = int(state[0, -1]), state[0, :-1].copy(), state[1, :-1].copy()

    def add(self, ts: Int64Array) -> None:
        """Rows have come; ts: (n,) nondecreasing."""
        if len(ts):
            begins = np.concatenate([[0], np.flatnonzero(np.diff(ts)) + 1])
            numbers, instants = begins + self.total, ts[begins]
            if len(self._ts) and self._ts[-1] == ts[0]:
                numbers, instants = numbers[1:], instants[1:]
            self.total += len(ts)
            self._first, self._ts = _thinned(
                np.concatenate([self._first, numbers]), np.concatenate([self._ts, instants]), self.total
            )

    def before(self, k: int) -> int:
        """Rows of other streams older than this instant have seen k arrivals, at least."""
        if k == 0:
            return MAX_INSTANT
        at = int(np.searchsorted(self._first, self.total - k, side="right")) - 1
        return int(self._ts[at]) if at >= 0 else MIN_INSTANT


class LowWater:
    """Where the maximum of an attribute rose."""

    def __init__(self) -> None:
        self.total = 0
        self._number: Int64Array = np.zeros(0, np.int64)
        self._greatest: Int64Array = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._number.nbytes + self._greatest.nbytes

    def array(self) -> Int64Array:
        """The state, (2, 1 + marks)."""
        return np.stack([np.append(self._number, self.total), np.append(self._greatest, 0)])

    def restore(self, state: Int64Array) -> None:
        """Know what `array` gave."""
        self.total, self._number, self._greatest = int(state[0, -1]), state[0, :-1].copy(), state[1, :-1].copy()

    def add(self, values: Int64Array, valid: BoolArray | None) -> None:
        """Rows have come; values: (n,) words in the order of what they stand for."""
        present = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
        if len(present):
            least = self._greatest[-1] if len(self._greatest) else MIN_INSTANT - 1
            highs = np.maximum(np.maximum.accumulate(values[present]), least)
            rises = np.flatnonzero(np.diff(highs, prepend=least) != 0)
            self._number, self._greatest = _thinned(
                np.concatenate([self._number, present[rises] + self.total]),
                np.concatenate([self._greatest, highs[rises]]),
                self.total + len(values),
            )
        self.total += len(values)

    def below(self, k: int) -> int:
        """No row to come has a lesser word than this."""
        at = int(np.searchsorted(self._number, self.total - k, side="left")) - 1
        return int(self._greatest[at]) if at >= 0 else MIN_INSTANT - 1


def _thinned(numbers: Int64Array, values: Int64Array, total: int) -> tuple[Int64Array, Int64Array]:
    """The marks without those too old to be asked for, and every other one where there are too many."""
    first = max(0, int(np.searchsorted(numbers, total - _FURTHEST)) - 1)
    numbers, values = numbers[first:], values[first:]
    if len(numbers) > _MOST_MARKS:
        half = len(numbers) // 2
        # The latest marks are those that small k ask for.
        older = np.arange(0, half, 2)
        numbers = np.concatenate([numbers[older], numbers[half:]])
        values = np.concatenate([values[older], values[half:]])
    return numbers, values
