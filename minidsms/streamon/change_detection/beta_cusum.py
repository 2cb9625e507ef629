"""beta-CUSUM: estimates of a share follow a Beta distribution, and a CUSUM tells when they follow another.

Training: the parameters (a, b) of greatest likelihood, with confidence intervals. Then mean and variance of all items
seen, those of the training included, give parameters of their own by their moments; while one of these lies outside of
its interval, the item adds ln P1 - P0 to a sum that does not fall below 0, P0 and P1 being its densities under both.
A sum above the threshold is a change, and the changepoint is now: the algorithm does not tell an earlier one.
Tsamoura, Gounaris and Manolopoulos 2016, section 5 and appendix 1.

Invariant: items are at least half an observation away from 0 and 1, where Beta densities are not finite. What is seen
since the training counts with all that went before it, so that the power to tell a change fades with age: that is the
algorithm, as published.
"""

from __future__ import annotations

import math
import sys
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Float64s, Float64Table, Int64s, Int64Table, kernel
from minidsms.streamon.change_detection.beta_distribution import deviations, fit, log_density, parameters_of
from minidsms.streamon.change_detection.contracts import Tuning

THRESHOLD = 5.0
TRAINING = 30

_SEEN, _MEAN, _SQUARES, _LOGS, _LOGS_REST, _A, _B, _A_FROM, _A_TO, _B_FROM, _B_TO, _SUM, _WORDS = range(13)


class _Shares(NamedTuple):
    """states: (m, _WORDS), see the constants above; the squares are those of distances from the mean.  pair: (2,), for
    results.
    """

    states: Float64Table
    pair: Float64s


@kernel
def _observe(
    hits: Int64Table, of: Int64Table, now: Int64s, training: int, threshold: float, z: float, shares: _Shares,
    changed: Int64Table,
) -> None:  # fmt: skip
    states, pair = shares
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            state = states[i]
            d = min(max(hits[t, i] / of[t, i], 0.5 / of[t, i]), 1 - 0.5 / of[t, i])
            state[_SEEN] += 1
            distance = d - state[_MEAN]
            state[_MEAN] += distance / state[_SEEN]
            state[_SQUARES] += distance * (d - state[_MEAN])
            # An item is a multiple of 1 / of: a sample of equal ones has the variance of that grain.
            variance = max(state[_SQUARES] / max(state[_SEEN] - 1, 1.0), 1.0 / (12.0 * of[t, i] * of[t, i]))
            if state[_SEEN] <= training:
                state[_LOGS] += math.log(d)
                state[_LOGS_REST] += math.log(1 - d)
                if state[_SEEN] == training:
                    parameters_of(state[_MEAN], variance, pair)
                    if state[_SQUARES] > 0:
                        fit(state[_LOGS] / training, state[_LOGS_REST] / training, pair)
                    state[_A], state[_B] = pair[0], pair[1]
                    deviations(state[_SEEN], state[_A], state[_B], pair)
                    state[_A_FROM], state[_A_TO] = state[_A] - z * pair[0], state[_A] + z * pair[0]
                    state[_B_FROM], state[_B_TO] = state[_B] - z * pair[1], state[_B] + z * pair[1]
                continue
            parameters_of(state[_MEAN], variance, pair)
            a, b = pair[0], pair[1]
            if state[_A_FROM] <= a <= state[_A_TO] and state[_B_FROM] <= b <= state[_B_TO]:
                continue
            ratio = log_density(d, a, b) - log_density(d, state[_A], state[_B])
            state[_SUM] = max(state[_SUM] + ratio, 0.0)
            if state[_SUM] > threshold:
                changed[t, i] = now[t]
                for word in range(_WORDS):
                    state[word] = 0.0


class BetaCusum:
    """See `ChangeDetectors`. confidence: zeta, the chance that an interval misses the parameter."""

    is_amnesic: ClassVar[bool] = True

    def __init__(self, tuning: Tuning) -> None:
        self.threshold = tuning.threshold_or(THRESHOLD + math.log(tuning.m))
        self._training = max(tuning.training_or(TRAINING), 2)
        self._z = -NormalDist().inv_cdf(max(tuning.confidence / 2, sys.float_info.min))
        self._states = np.zeros((tuning.m, _WORDS))
        self._pair = np.zeros(2)

    @property
    def parameters(self) -> np.ndarray:
        """(m, 6) what the training found: a, b, and from where to where both may lie."""
        return self._states[:, _A : _B_TO + 1]

    def initialize(self) -> None:
        self._states[:] = 0

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(hits, of, now, self._training, self.threshold, self._z, _Shares(self._states, self._pair), changed)
        return changed
