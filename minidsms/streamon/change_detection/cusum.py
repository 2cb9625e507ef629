"""Two-sided CUSUM of counts: minidsms' own detector, the plainest of them.

Of the first items it learns a share p. From then on each item adds the logarithm of how much more likely its counts are
if the share were p + SHIFT to one sum, and the same for p - SHIFT to another; sums do not fall below 0. A sum above the
threshold tells a change, and the changepoint is where that sum last left 0. Unlike detectors of estimates, it knows of
how many observations an item is: with more of them fewer items suffice. E. Page, Continuous Inspection Schemes,
Biometrika 41, 1954.

Invariant: p is learned from the first items only, so that slow drift adds up against it.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Float64Table, Int64Table, kernel
from minidsms.streamon.change_detection.contracts import Tuning

SHIFT = 0.1
"""The change of a share that it is best at; half of it is the least that it tells."""
THRESHOLD = 8.0
TRAINING = 15
"""Items: a share need not be known better than the change that is looked for."""
LEARNS = 4
"""So many times the training the share is learned further, ..."""
QUIET = 4.0
"""... while neither sum is above this: from items that do not speak of a change."""
LEAST = 0.005
"""Shares are taken to be this far from 0 and 1: events never seen may happen."""

_HITS, _OF, _RISE, _FALL = range(4)
_SEEN, _RISE_SINCE, _FALL_SINCE = range(3)


@kernel
def _observe(
    hits: Int64Table, of: Int64Table, since: Int64Table, training: int, threshold: float, sums: Float64Table,
    numbers: Int64Table, changed: Int64Table,
) -> None:  # fmt: skip
    """sums (m, 4): hits and observations of the training, both cumulative sums.  numbers (m, 3): items seen, and where
    the sums left 0.
    """
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            n, x = of[t, i], hits[t, i]
            if n == 0:
                continue
            if numbers[i, _SEEN] < training:
                sums[i, _HITS] += x
                sums[i, _OF] += n
                numbers[i, _SEEN] += 1
                continue
            p = min(max(sums[i, _HITS] / sums[i, _OF], LEAST), 1 - LEAST)
            for side in range(2):
                q = p + SHIFT if side == 0 else p - SHIFT
                q = min(max(q, LEAST), 1 - LEAST)
                before = sums[i, _RISE + side]
                if before == 0.0:
                    numbers[i, _RISE_SINCE + side] = since[t, i]
                after = before + x * math.log(q / p) + (n - x) * math.log((1 - q) / (1 - p))
                sums[i, _RISE + side] = max(after, 0.0)
                if after > threshold:
                    changed[t, i] = max(changed[t, i], numbers[i, _RISE_SINCE + side])
            numbers[i, _SEEN] += 1
            if numbers[i, _SEEN] <= LEARNS * training and max(sums[i, _RISE], sums[i, _FALL]) < QUIET:
                sums[i, _HITS] += x
                sums[i, _OF] += n
            if changed[t, i] >= 0:
                numbers[i, _SEEN] = 0
                for word in range(4):
                    sums[i, word] = 0.0


class Cusum:
    """See `ChangeDetectors`. confidence and seed are not used."""

    is_amnesic: ClassVar[bool] = True

    def __init__(self, tuning: Tuning) -> None:
        self.threshold = tuning.threshold_or(THRESHOLD + math.log(tuning.m))
        self._training = tuning.training_or(TRAINING)
        self._sums = np.zeros((tuning.m, 4))
        self._numbers: Int64Array = np.zeros((tuning.m, 3), np.int64)

    def initialize(self) -> None:
        self._sums[:] = 0
        self._numbers[:] = 0

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(hits, of, since, self._training, self.threshold, self._sums, self._numbers, changed)
        return changed
