"""How often a cache that is not used would miss, from its probe stream (Babu 2005, section 5.5.3).

A key misses when it is probed for the first time. The probe stream is cut into stretches of W_d probes, and a Bloom
filter says how many keys of a stretch are new. The thesis empties the filter with each stretch, and so calls every
first probe of a stretch a miss; a cache would have kept the key from the stretch before. Here the filter lives until it
is FULL, and the estimate is the share of new keys in the later half of the last W stretches.

The same filter says whether changes of what a cache stands for would meet an entry: keys that were never probed have
none. That is beyond the thesis, where every change costs an update.

Invariant: an estimate is in [0, 1]; the same keys in the same order give the same one, however they are cut.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.bloom_filter import UInt64Array, add_keys, count_absent

WINDOW = 10
"""W: stretches that make an estimate."""
STRETCH = 512
"""W_d: probes of a stretch."""
LOG2_BITS = 18
"""Of the filter that keeps keys: 32 KB, for some 150,000 keys."""
FULL = 0.5
"""Share of the bits set at which it is emptied; until then `_distinct` puts right what collisions hide."""
BITS_PER_PROBE = 8
"""alpha, of the thesis's filter."""
LEAST_CHANGES = 64
"""Of the rows a cache stands for, changes that say something of how many have an entry; RECENT of them count."""
RECENT = 4_096


class MissProbability:
    """The estimate for one cache. stretch: W_d; window: W."""

    def __init__(self, stretch: int = STRETCH, window: int = WINDOW, keeps_keys: bool = True) -> None:
        """keeps_keys: the filter outlives the stretch; False is the thesis's estimate, the mean of all W stretches."""
        self.stretch = stretch
        self.window = window
        self.probes = 0
        self._keeps_keys = keeps_keys
        self._log2_bits = LOG2_BITS if keeps_keys else max(6, math.ceil(math.log2(BITS_PER_PROBE * stretch)))
        self._bits: UInt64Array = np.zeros(1 << (self._log2_bits - 6), np.uint64)
        self._set = 0
        self._in_stretch = 0
        self._new_in_stretch = 0.0
        self._shares: deque[float] = deque(maxlen=window)
        self._distinct_keys = 0.0
        self._changes = 0.0
        self._absent = 0.0

    def observe(self, keys: Int64Array) -> None:
        """Take consecutive probes in. keys: (m, words) int64. O(m words)."""
        keys = normal(keys)
        at = 0
        while at < len(keys):
            end = min(len(keys), at + self.stretch - self._in_stretch)
            before = self._distinct()
            self._set += add_keys(keys, at, end, self._bits, self._log2_bits)
            self._new_in_stretch += self._distinct() - before
            self._in_stretch += end - at
            at = end
            if self._in_stretch == self.stretch:
                self._end_stretch()
        self.probes += len(keys)

    def observe_changes(self, keys: Int64Array) -> None:
        """Take keys of rows in that come into, or leave, what the cache stands for. keys: (m, words) int64."""
        if self.probes < self.stretch:
            return
        fading = max(0.0, 1 - len(keys) / RECENT)
        unset = 1 - self._set / (1 << self._log2_bits)
        absent = count_absent(normal(keys), self._bits, self._log2_bits) / unset
        self._changes = fading * self._changes + len(keys)
        self._absent = fading * self._absent + min(absent, float(len(keys)))

    @property
    def ignored(self) -> float | None:
        """The share of changes whose key has no entry; None of too few. A key that was not probed yet may still be: as
        likely as a probe is of a new key.
        """
        if self._changes < LEAST_CHANGES or self.estimate is None:
            return None
        return (1 - self.estimate) * self._absent / self._changes

    @property
    def is_ready(self) -> bool:
        """There are W of them."""
        return len(self._shares) == self.window

    @property
    def estimate(self) -> float | None:
        """The share of probes that would miss; None before the first stretch is whole."""
        shares = list(self._shares)
        if not shares:
            return None
        later = shares[len(shares) // 2 :] if self._keeps_keys else shares
        return min(1.0, sum(later) / len(later))

    @property
    def distinct_keys(self) -> float:
        """Keys met, about; of one stretch where the filter keeps no keys."""
        return max(self._distinct_keys, self._distinct())

    def _distinct(self) -> float:
        """Keys that set so many bits (linear counting, Whang et al. 1990)."""
        bits = 1 << self._log2_bits
        return -bits * math.log1p(-min(self._set, bits - 1) / bits)

    def _end_stretch(self) -> None:
        self._shares.append(self._new_in_stretch / self.stretch)
        self._in_stretch = 0
        self._new_in_stretch = 0.0
        if not self._keeps_keys or self._set > FULL * (1 << self._log2_bits):
            self._distinct_keys = self._distinct()
            self._bits[:] = 0
            self._set = 0
