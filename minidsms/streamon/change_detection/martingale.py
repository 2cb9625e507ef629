"""The martingale test: a bet against the items being exchangeable, whose gain tells a change.

An item is as strange as the median of its distances from the items before it. Its p-value is the share of them that
are stranger, ties broken at random; p-values are uniform as long as the order of the items does not matter, and the
product of EPSILON * p^(EPSILON - 1) is then a martingale: it passes a threshold h with a chance of 1 / h at most.
Ho and Wechsler, A Martingale Framework for Detecting Changes in Data Streams, 2010, as in appendix 2 of Tsamoura,
Gounaris and Manolopoulos 2016. The changepoint is now.

Invariant: an item is ranked among at most MEMORY items, the first since a change, so that its time is bounded.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Float64s, Float64Table, Int64s, Int64Table, helper, kernel
from minidsms.streamon.change_detection.contracts import Tuning

EPSILON = 0.92
THRESHOLD = 20.0
MEMORY = 256


@helper(typed=True)
def _median_distance(values: Float64s, held: int, value: float) -> float:
    """Of a value from ascending ones: the middle one, the lower of two."""
    high = 0
    while high < held and values[high] < value:
        high += 1
    low = high - 1
    distance = 0.0
    for _ in range((held + 1) // 2):
        if low < 0 or (high < held and values[high] - value < value - values[low]):
            distance = values[high] - value
            high += 1
        else:
            distance = value - values[low]
            low -= 1
    return distance


class Bets(NamedTuple):
    """Of m streams. values (m, MEMORY): ascending; strangeness (m, MEMORY): of the same items, in the order they came;
    held (m,): how many.  gains (m,): logarithms of the martingales.
    """

    values: Float64Table
    strangeness: Float64Table
    held: Int64s
    gains: Float64s


@kernel
def _observe(
    hits: Int64Table, of: Int64Table, now: Int64s, threshold: float, chances: Float64Table, bets: Bets,
    changed: Int64Table,
) -> None:  # fmt: skip
    """chances (t, m): in [0, 1), to break ties by.  threshold: of the gains."""
    values, strangeness, held, gains = bets
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            value = hits[t, i] / of[t, i]
            strange = _median_distance(values[i], held[i], value)
            above, equal = 0, 1
            for k in range(held[i]):
                above += strangeness[i, k] > strange
                equal += strangeness[i, k] == strange
            p = (above + (1 - chances[t, i]) * equal) / (held[i] + 1)
            gains[i] += math.log(EPSILON) + (EPSILON - 1) * math.log(p)
            if held[i] < MEMORY:
                strangeness[i, held[i]] = strange
                k = held[i]
                while k > 0 and values[i, k - 1] > value:
                    values[i, k] = values[i, k - 1]
                    k -= 1
                values[i, k] = value
                held[i] += 1
            if gains[i] > threshold:
                changed[t, i] = now[t]
                gains[i] = 0.0
                held[i] = 0


class Martingale:
    """See `ChangeDetectors`. threshold: h.  seed: of the broken ties.  training and confidence are not used."""

    is_amnesic: ClassVar[bool] = True

    def __init__(self, tuning: Tuning) -> None:
        self.threshold = tuning.threshold_or(THRESHOLD * tuning.m)
        self._seed = tuning.seed
        shape = tuning.m, MEMORY
        held: Int64Array = np.zeros(tuning.m, np.int64)
        self._bets = Bets(np.zeros(shape), np.zeros(shape), held, np.zeros(tuning.m))
        self.initialize()

    def initialize(self) -> None:
        self._bets.held[:] = 0
        self._bets.gains[:] = 0
        self._rng = np.random.default_rng(self._seed)

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m * MEMORY)."""
        changed = np.empty(hits.shape, np.int64)
        chances = self._rng.random(hits.shape)
        _observe(hits, of, now, math.log(self.threshold), chances, self._bets, changed)
        return changed
