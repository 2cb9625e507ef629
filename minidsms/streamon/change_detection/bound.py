"""A bound that no value exceeds: what k-Mon's monitors rely on.

An item is the greatest of some values. Of the first items it learns the greatest, and a margin; it is learned again at
the end of every eighth of the training, and may fall. The first item that exceeds it tells a change, and is where the
change is. So it tells what no detector of shares can, one row in a thousand, and only that way: that values have fallen
is no change. Where bounds are exceeded again and again, what exceeded them is remembered for longer. Babu 2005, section
6.6.3, and `kernels.bounds`.

Invariant: behind the training, the bound is no less than any of the last items before it.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels import bounds
from minidsms.kernels.bounds import BoundSettings, BoundState, begin, bound_of, collect, exceeds, learn
from minidsms.machine_code import Int64Table, Rows, kernel, rows_of, words_of
from minidsms.streamon.change_detection.contracts import Tuning

MARGIN = 0.5
"""Of the bound above the greatest item, where items have no bound but what is seldom."""
TRAINING = 48
BLOCKS = 8
"""Of the training: at the end of each the bound may fall."""


class _Shown(NamedTuple):
    """Items (t, m), see `ChangeDetectors.observe`. changed: (t, m), what it tells."""

    hits: Int64Table
    of: Int64Table
    since: Int64Table
    changed: Int64Table


@kernel
def _observe(shown: _Shown, settings: BoundSettings, states: Rows[BoundState], peaks: Int64Table) -> None:
    hits, of, since, changed = shown
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            own = states[i]
            own.arrived += 1
            n = own.arrived
            own.highest = max(own.highest, hits[t, i])
            if exceeds(own, hits[t, i]):
                begin(own, settings.window, n)
                changed[t, i] = since[t, i]
            if n >= own.next:
                collect(own, peaks[i], settings, n)
                learn(own, n, settings.window, bound_of(own, peaks[i], settings))
                own.highest = 0
                own.next = n + settings.block


class Bound:
    """See `ChangeDetectors`. threshold: by which share of the greatest item a bound is above it.  training: rounded up
    to whole blocks.  confidence and seed are not used.

    states, settings: see `kernels.bounds`.
    """

    is_amnesic: ClassVar[bool] = True

    def __init__(self, tuning: Tuning) -> None:
        training = tuning.training_or(TRAINING)
        self.threshold = tuning.threshold_or(MARGIN)
        block = max(1, training // BLOCKS)
        self.states = rows_of(BoundState, tuning.m)
        self.peaks: Int64Array = np.zeros((tuning.m, -(-training // block)), np.int64)
        self.settings = BoundSettings(
            block * self.peaks.shape[1], block, bounds.INFINITE - 1, round(self.threshold * 1024)
        )
        self.initialize()

    def initialize(self) -> None:
        self.peaks[:] = 0
        words_of(self.states)[:] = 0
        self.states["value"] = bounds.INFINITE
        self.states["next"] = self.settings.block

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(_Shown(hits, of, since, changed), self.settings, self.states, self.peaks)
        return changed
