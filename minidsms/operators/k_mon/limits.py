"""What a join takes for granted of rows to come, by side of its tree: words that the reduction kernels read."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.k_mon_keys import Limit
from minidsms.kernels.k_mon_reduction import UNORDERED
from minidsms.machine_code import Rows, rows_of

NOTHING = -(2**63)
"""A limit that is not used."""


def no_limits(edges: int) -> Rows[Limit]:
    """Nothing is taken for granted."""
    limits = rows_of(Limit, 2 * edges)
    limits["before"] = limits["below"] = limits["clustered"] = NOTHING
    limits["order"] = UNORDERED
    return limits


def are_any(limits: Rows[Limit]) -> bool:
    """Something is taken for granted."""
    return any(bool((limits[word] != NOTHING).any()) for word in ("before", "below", "clustered"))


def ordered_words(words: Int64Array) -> Int64Array:
    """Words of FLOATs in the order of the numbers."""
    return np.where(words >= 0, words, words ^ np.int64(0x7FFFFFFFFFFFFFFF))
