"""ChangeFinder: how badly a model of the past foretells the items, averaged, and how badly one foretells that.

A mixture of three normal distributions is learned item by item, older ones counting ever less (SDEM). The logarithmic
loss of an item under the mixture of those before it is its outlier score; scores are averaged over AVERAGED items, a
second mixture is learned of the averages, and the averaged loss of these is the change score. Takeuchi and Yamanishi,
A Unifying Framework for Detecting Outliers and Change Points from Time Series, 2006; the mixtures as in appendix 3 of
Tsamoura, Gounaris and Manolopoulos 2016.

A loss has no scale of its own: the threshold is what it exceeds the mean of the second half of the training by.
Invariant: nothing is learned twice, so that an item takes constant time. The changepoint is now.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Float64s, Float64Table, Int64s, Int64Table, helper, kernel
from minidsms.streamon.change_detection.contracts import Tuning

THRESHOLD = 4.0
TRAINING = 30
DISCOUNT = 0.03
"""r: what a new item counts."""
EVEN = 1.0
"""alpha: how far the weights of the mixture are kept from 0."""
AVERAGED = 4
"""T."""
PARTS = 3

_SPREAD = 1.4
_STAGE = 3 * PARTS + AVERAGED
"""Words of a stage: of each part weight, first and second moment; then the last scores."""
_WORDS = 2 * _STAGE + 2
_LOSS, _LOSSES = 2 * _STAGE, 2 * _STAGE + 1


@helper(typed=True)
def _begin(state: Float64s, first: int, value: float, spread: float) -> None:
    """A mixture around the first value."""
    for part in range(PARTS):
        mean = value + (part - 1) * spread
        at = first + 3 * part
        state[at] = 1.0 / PARTS
        state[at + 1] = mean / PARTS
        state[at + 2] = (mean * mean + spread * spread) / PARTS


@helper(typed=True)
def _density(state: Float64s, first: int, part: int, value: float) -> float:
    """Of a part at a value, by its weight."""
    at = first + 3 * part
    weight = max(state[at], 1e-6)
    mean = state[at + 1] / weight
    variance = max(state[at + 2] / weight - mean * mean, 1e-5)
    distance = value - mean
    return float(weight * math.exp(-min(distance * distance / variance / 2, 600.0)) / math.sqrt(2 * math.pi * variance))


@helper(typed=True)
def _learn(state: Float64s, first: int, value: float) -> float:
    """The loss of a value under the mixture, which then learns it."""
    total = 0.0
    for part in range(PARTS):
        total += _density(state, first, part, value)
    total = max(total, 1e-200)
    for part in range(PARTS):
        at = first + 3 * part
        share = (1 - EVEN * DISCOUNT) * _density(state, first, part, value) / total + EVEN * DISCOUNT / PARTS
        state[at] = (1 - DISCOUNT) * state[at] + DISCOUNT * share
        state[at + 1] = (1 - DISCOUNT) * state[at + 1] + DISCOUNT * share * value
        state[at + 2] = (1 - DISCOUNT) * state[at + 2] + DISCOUNT * share * value * value
    return -math.log(total)


@helper(typed=True)
def _average(state: Float64s, first: int, seen: int, score: float) -> float:
    """Of the last scores, of which this is one."""
    ring = first + 3 * PARTS
    state[ring + seen % AVERAGED] = score
    total = 0.0
    for k in range(AVERAGED):
        total += state[ring + k]
    return total / min(seen + 1, AVERAGED)


@kernel
def _observe(
    hits: Int64Table, of: Int64Table, now: Int64s, training: int, threshold: float, states: Float64Table,
    seen: Int64s, changed: Int64Table,
) -> None:  # fmt: skip
    """states (m, _WORDS): both stages, then sum and count of the change scores in the training's second half."""
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            state = states[i]
            value = hits[t, i] / of[t, i]
            if seen[i] == 0:
                for word in range(_WORDS):
                    state[word] = 0.0
                _begin(state, 0, value, _SPREAD * math.sqrt(max(value * (1 - value), 1.0 / of[t, i]) / of[t, i]))
            score = _average(state, 0, seen[i], _learn(state, 0, value))
            if seen[i] == 0:
                _begin(state, _STAGE, score, 0.5)
            change = _average(state, _STAGE, seen[i], _learn(state, _STAGE, score))
            seen[i] += 1
            if seen[i] <= training:
                if 2 * seen[i] > training:
                    state[_LOSS] += change
                    state[_LOSSES] += 1
            elif change - state[_LOSS] / state[_LOSSES] > threshold:
                changed[t, i] = now[t]
                seen[i] = 0


class ChangeFinder:
    """See `ChangeDetectors`. threshold: in nats.  confidence and seed are not used."""

    is_amnesic: ClassVar[bool] = True

    def __init__(self, tuning: Tuning) -> None:
        self.threshold = tuning.threshold_or(THRESHOLD + math.log(tuning.m))
        self._training = max(tuning.training_or(TRAINING), 2)
        self._states = np.zeros((tuning.m, _WORDS))
        self._seen: Int64Array = np.zeros(tuning.m, np.int64)

    def initialize(self) -> None:
        self._seen[:] = 0

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(hits, of, now, self._training, self.threshold, self._states, self._seen, changed)
        return changed
