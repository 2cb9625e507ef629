"""A bound that no value exceeds: what k-Mon's monitors rely on.

An item is the greatest of some values. Of the first items it learns the greatest, and a margin; it is learned again at
the end of every eighth of the training, and may fall. The first item that exceeds it tells a change, and is where the
change is. So it tells what no detector of shares can, one row in a thousand, and only that way: that values have fallen
is no change. Where bounds are exceeded again and again, what exceeded them is remembered for longer. Babu 2005, section
6.6.3, and `kernels.bounds`.

Invariant: behind the training, the bound is no less than any of the last items before it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels import bounds
from minidsms.kernels.bounds import ARRIVED, BLOCK, HIGHEST, NEXT, WINDOW, begin, bound_of, collect, exceeds, learn
from minidsms.machine_code import kernel
from minidsms.streamon.change_detection.contracts import Tuning

MARGIN = 0.5
"""Of the bound above the greatest item, where items have no bound but what is seldom."""
TRAINING = 48
BLOCKS = 8
"""Of the training: at the end of each the bound may fall."""


@kernel("void(int64[:,::1], int64[:,::1], int64[:,::1], int64[::1], int64[:,::1], int64[:,::1], int64[:,::1])")
def _observe(
    hits: np.ndarray,
    of: np.ndarray,
    since: np.ndarray,
    settings: np.ndarray,
    state: np.ndarray,
    peaks: np.ndarray,
    changed: np.ndarray,
) -> None:
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            own = state[i]
            own[ARRIVED] += 1
            n = own[ARRIVED]
            own[HIGHEST] = max(own[HIGHEST], hits[t, i])
            if exceeds(own, hits[t, i]):
                begin(own, settings[WINDOW], n)
                changed[t, i] = since[t, i]
            if n >= own[NEXT]:
                collect(own, peaks[i], settings, n)
                learn(own, n, settings[WINDOW], bound_of(own, peaks[i], settings))
                own[HIGHEST] = 0
                own[NEXT] = n + settings[BLOCK]


class Bound:
    """See `ChangeDetectors`. threshold: by which share of the greatest item a bound is above it.  training: rounded up
    to whole blocks.  confidence and seed are not used.

    state, settings: see `kernels.bounds`; behind their words there may be more of whoever runs the detector himself.
    """

    is_amnesic: ClassVar[bool] = True

    def __init__(
        self, tuning: Tuning, state_words: int = bounds.STATE_WORDS, settings_words: int = bounds.SETTINGS_WORDS
    ) -> None:
        training = tuning.training_or(TRAINING)
        self.threshold = tuning.threshold_or(MARGIN)
        block = max(1, training // BLOCKS)
        self.state: Int64Array = np.zeros((tuning.m, state_words), np.int64)
        self.peaks: Int64Array = np.zeros((tuning.m, -(-training // block)), np.int64)
        self.settings: Int64Array = np.zeros(settings_words, np.int64)
        self.settings[[WINDOW, BLOCK]] = block * self.peaks.shape[1], block
        self.settings[bounds.LIMIT] = bounds.INFINITE - 1
        self.settings[bounds.MARGIN] = round(self.threshold * 1024)
        self.initialize()

    def initialize(self) -> None:
        """See `ChangeDetectors`."""
        self.peaks[:] = 0
        self.state[:] = 0
        self.state[:, bounds.BOUND] = bounds.INFINITE
        self.state[:, NEXT] = self.settings[BLOCK]

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(hits, of, since, self.settings, self.state, self.peaks, changed)
        return changed
