"""ADWIN2: a window of items that grows until two parts of it have different means, and then loses the older part.

The window is a list of buckets, newest first, in rows: a bucket of row r stands for 2^r items by their sum and their
squared distances from their mean. A row holds BUCKETS; with one more its two oldest become one of the next row, so that
a window of w items takes O(log w). Every cut between two buckets is tried. Bifet and Gavalda, Learning from
Time-Changing Data with Adaptive Windowing, 2007; with the bound for means of any distribution.

Invariant: the rows hold ascending ages, and no cut of what is left tells its sides apart.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Float64s, Float64Table, Int64s, Int64Table, helper, kernel
from minidsms.streamon.change_detection.contracts import Tuning

DELTA = 0.002
"""The chance that a cut is made where nothing has changed."""
BUCKETS = 5
ROWS = 22
"""Of buckets: some 10 million items; beyond them the oldest are forgotten."""
LEAST = 5
"""Items on each side of a cut."""
GRACE = 10
"""Items in the window from which cuts are tried."""

_ROOM = BUCKETS + 1
_WIDTH, _TOTAL, _SPREAD = range(3)


@helper(typed=True)
def _drop_oldest(window: Float64s, sums: Float64s, spreads: Float64s, since: Int64s, held: Int64s) -> None:
    """Forget the oldest bucket."""
    row = ROWS - 1
    while held[row] == 0:
        row -= 1
    first = row * _ROOM
    n = float(1 << row)
    window[_WIDTH] -= n
    window[_TOTAL] -= sums[first]
    if window[_WIDTH] > 0:
        distance = sums[first] / n - window[_TOTAL] / window[_WIDTH]
        window[_SPREAD] -= spreads[first] + n * window[_WIDTH] * distance * distance / (n + window[_WIDTH])
    else:
        window[_SPREAD] = 0.0
    held[row] -= 1
    for k in range(first, first + held[row]):
        sums[k], spreads[k], since[k] = sums[k + 1], spreads[k + 1], since[k + 1]


@helper(typed=True)
def _insert(
    value: float, number: int, window: Float64s, sums: Float64s, spreads: Float64s, since: Int64s, held: Int64s
) -> None:
    """A bucket for the item, then one of two wherever a row is too full."""
    if window[_WIDTH] > 0:
        distance = value - window[_TOTAL] / window[_WIDTH]
        window[_SPREAD] += window[_WIDTH] * distance * distance / (window[_WIDTH] + 1)
    window[_WIDTH] += 1
    window[_TOTAL] += value
    sums[held[0]], spreads[held[0]], since[held[0]] = value, 0.0, number
    held[0] += 1
    row = 0
    while held[row] > BUCKETS:
        first = row * _ROOM
        if row == ROWS - 1:
            _drop_oldest(window, sums, spreads, since, held)
            return
        n = float(1 << row)
        distance = (sums[first] - sums[first + 1]) / n
        above = first + _ROOM + held[row + 1]
        sums[above] = sums[first] + sums[first + 1]
        spreads[above] = spreads[first] + spreads[first + 1] + n * distance * distance / 2
        since[above] = since[first]
        held[row + 1] += 1
        held[row] -= 2
        for k in range(first, first + held[row]):
            sums[k], spreads[k], since[k] = sums[k + 2], spreads[k + 2], since[k + 2]
        row += 1


@helper(typed=True)
def _has_cut(delta: float, window: Float64s, sums: Float64s, held: Int64s) -> bool:
    """Do the means of some older and the newer part differ by more than chance?"""
    width = window[_WIDTH]
    level = math.log(2 * math.log(width) / delta)
    variance = window[_SPREAD] / width
    older, older_total = 0.0, 0.0
    for row in range(ROWS - 1, -1, -1):
        for k in range(row * _ROOM, row * _ROOM + held[row]):
            older += float(1 << row)
            older_total += sums[k]
            newer = width - older
            if newer < LEAST:
                return False
            if older < LEAST:
                continue
            share = 1 / (older - LEAST + 1) + 1 / (newer - LEAST + 1)
            least = math.sqrt(2 * share * variance * level) + 2 * level * share / 3
            if abs(older_total / older - (window[_TOTAL] - older_total) / newer) > least:
                return True
    return False


class Buckets(NamedTuple):
    """Of m streams. windows (m, 3): width, total, squared distances from the mean.  sums, spreads, since
    (m, ROWS * _ROOM): of the buckets of row r from r * _ROOM on, oldest first; held (m, ROWS): how many.  seen (m,):
    items.
    """

    windows: Float64Table
    sums: Float64Table
    spreads: Float64Table
    since: Int64Table
    held: Int64Table
    seen: Int64s


@kernel
def _observe(
    hits: Int64Table, of: Int64Table, begun: Int64Table, every: int, delta: float, buckets: Buckets, changed: Int64Table
) -> None:
    windows, sums, spreads, since, held, seen = buckets
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            _insert(hits[t, i] / of[t, i], begun[t, i], windows[i], sums[i], spreads[i], since[i], held[i])
            seen[i] += 1
            if seen[i] % every:
                continue
            while windows[i, _WIDTH] > GRACE and _has_cut(delta, windows[i], sums[i], held[i]):
                _drop_oldest(windows[i], sums[i], spreads[i], since[i], held[i])
                changed[t, i] = 0
            if changed[t, i] == 0:
                row = ROWS - 1
                while held[i, row] == 0:
                    row -= 1
                changed[t, i] = since[i, row * _ROOM]


class Adwin:
    """See `ChangeDetectors`. threshold: delta.  every: cuts are tried behind so many items.  training, confidence and
    seed are not used.
    """

    is_amnesic: ClassVar[bool] = False

    def __init__(self, tuning: Tuning, every: int = 1) -> None:
        self.threshold = tuning.threshold_or(DELTA / tuning.m)
        self._every = every
        m = tuning.m
        table, numbers = np.zeros((m, ROWS * _ROOM)), np.zeros((m, ROWS * _ROOM), np.int64)
        held, seen = np.zeros((m, ROWS), np.int64), np.zeros(m, np.int64)
        self._buckets = Buckets(np.zeros((m, 3)), table, table.copy(), numbers, held, seen)

    @property
    def widths(self) -> Int64Array:
        """(m,) items in the windows."""
        return self._buckets.windows[:, _WIDTH].astype(np.int64)

    def initialize(self) -> None:
        self._buckets.windows[:] = 0
        self._buckets.held[:] = 0
        self._buckets.seen[:] = 0

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m log w)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(hits, of, since, self._every, self.threshold, self._buckets, changed)
        return changed
