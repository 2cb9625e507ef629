"""What a join takes for granted of rows to come, by side of its tree: words that the reduction kernels read."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.k_mon_reduction import BEFORE, BELOW, CLUSTERED, LIMIT_WORDS, ORDER, UNORDERED

NOTHING = -(2**63)
"""A limit that is not used."""


def no_limits(edges: int) -> Int64Array:
    """Nothing is taken for granted."""
    limits = np.zeros((2 * edges, LIMIT_WORDS), np.int64)
    limits[:, BEFORE] = limits[:, BELOW] = limits[:, CLUSTERED] = NOTHING
    limits[:, ORDER] = UNORDERED
    return limits


def are_any(limits: Int64Array) -> bool:
    """Something is taken for granted."""
    return bool((limits[:, [BEFORE, BELOW, CLUSTERED]] != NOTHING).any())


def ordered_words(words: Int64Array) -> Int64Array:
    """Words of FLOATs in the order of the numbers."""
    return np.where(words >= 0, words, words ^ np.int64(0x7FFFFFFFFFFFFFFF))
