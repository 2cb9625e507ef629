"""The Meta-algorithm: the items now are compared with those at first, in windows of several lengths.

For each length, the first so many items are the baseline, and the last so many slide. Their distance is the largest
difference of their shares in any interval (Kuiper's statistic: the Kolmogorov-Smirnov statistic over intervals).
A distance that chance brings about with a probability of at most p within the first n items tells a change: the tail
of the statistic is p / n at the bound. Kifer, Ben-David and Gehrke, Detecting Change in Data Streams, 2004.
The changepoint is where the shortest window that tells it begins.

Invariant: a length has no say until its two windows do not overlap.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Float64s, Float64Table, Int64s, Int64Table, helper, kernel
from minidsms.streamon.change_detection.contracts import Tuning

LENGTHS = (16, 48, 144)
CHANCE, ITEMS = 0.05, 1000
"""p and n."""

_ROOM = sum(LENGTHS)


def critical_distance(length: int, chance: float) -> float:
    """The distance that two samples of this length reach with this probability (Stephens' form of Kuiper's test)."""
    low, high = 0.4, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = 2 * sum((4 * (j * middle) ** 2 - 1) * math.exp(-2 * (j * middle) ** 2) for j in range(1, 20))
        low, high = (middle, high) if tail > chance else (low, middle)
    root = math.sqrt(length / 2)
    return high / (root + 0.155 + 0.24 / root)


@helper(typed=True)
def _add(values: Float64s, first: int, held: int, value: float) -> None:
    """Put a value into the ascending ones from `first` on."""
    k = first + held
    while k > first and values[k - 1] > value:
        values[k] = values[k - 1]
        k -= 1
    values[k] = value


@helper(typed=True)
def _remove(values: Float64s, first: int, held: int, value: float) -> None:
    """Take one value out of the ascending ones."""
    k = first
    while values[k] != value:
        k += 1
    while k < first + held - 1:
        values[k] = values[k + 1]
        k += 1


@helper(typed=True)
def _distance(ones: Float64s, others: Float64s, first: int, length: int) -> float:
    """Kuiper's statistic of two ascending samples of a length."""
    a, b, most, least = 0, 0, 0, 0
    while a < length and b < length:
        value = min(ones[first + a], others[first + b])
        while a < length and ones[first + a] == value:
            a += 1
        while b < length and others[first + b] == value:
            b += 1
        most, least = max(most, a - b), min(least, a - b)
    return float((most - least) / length)


class Samples(NamedTuple):
    """Of m streams. baselines, currents (m, _ROOM): the windows of each length one after the other, ascending.
    recent, begun (m, longest): rings of the last items and of where they began.  seen (m,): items.
    """

    baselines: Float64Table
    currents: Float64Table
    recent: Float64Table
    begun: Int64Table
    seen: Int64s


@kernel
def _observe(
    hits: Int64Table, of: Int64Table, since: Int64Table, lengths: Int64s, bounds: Float64s, samples: Samples,
    changed: Int64Table,
) -> None:  # fmt: skip
    """bounds: of the distance, for each length."""
    baselines, currents, recent, begun, seen = samples
    ring = recent.shape[1]
    for t in range(hits.shape[0]):
        for i in range(hits.shape[1]):
            changed[t, i] = -1
            if of[t, i] == 0:
                continue
            value = hits[t, i] / of[t, i]
            first = 0
            for k in range(lengths.shape[0]):
                length = lengths[k]
                if seen[i] < length:
                    _add(baselines[i], first, seen[i], value)
                else:
                    held = min(seen[i] - length, length)
                    if held == length:
                        _remove(currents[i], first, length, recent[i, (seen[i] - length) % ring])
                        held -= 1
                    _add(currents[i], first, held, value)
                    if seen[i] + 1 < 2 * length or changed[t, i] >= 0:
                        first += length
                        continue
                    if _distance(baselines[i], currents[i], first, length) > bounds[k]:
                        changed[t, i] = begun[i, (seen[i] + 1 - length) % ring]
                first += length
            recent[i, seen[i] % ring] = value
            begun[i, seen[i] % ring] = since[t, i]
            seen[i] += 1
            if changed[t, i] >= 0:
                seen[i] = 0


class Meta:
    """See `ChangeDetectors`. threshold: p, the chance of a false change in ITEMS items.  Baselines are feedback:
    training says nothing of them. confidence and seed are not used.
    """

    is_amnesic: ClassVar[bool] = True

    def __init__(self, tuning: Tuning) -> None:
        self.threshold = tuning.threshold_or(CHANCE / tuning.m)
        self._lengths: Int64Array = np.array(LENGTHS, np.int64)
        self._bounds = np.array([critical_distance(length, self.threshold / ITEMS) for length in LENGTHS])
        m, longest = tuning.m, max(LENGTHS)
        begun, seen = np.zeros((m, longest), np.int64), np.zeros(m, np.int64)
        self._samples = Samples(np.zeros((m, _ROOM)), np.zeros((m, _ROOM)), np.zeros((m, longest)), begun, seen)

    def initialize(self) -> None:
        self._samples.seen[:] = 0

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """See `ChangeDetectors`.  O(t m * the lengths)."""
        changed = np.empty(hits.shape, np.int64)
        _observe(hits, of, since, self._lengths, self._bounds, self._samples, changed)
        return changed
