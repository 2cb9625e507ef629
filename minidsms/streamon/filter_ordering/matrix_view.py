"""The matrix view: the conditional drop counts that tell whether an order is greedy.

Invariant: `counts[i, j]`, i <= j, is the number of tuples of the profile window that the filter at position j of the
order drops, among those that none of the filters before position i drops. Babu 2005, section 4.3.2, figure 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import UInt8Array


class MatrixView:
    """order: (n,) the filter at each position.  counts: (n, n), upper triangle; the kernels keep both."""

    def __init__(self, order: Int64Array) -> None:
        self.order = order
        self.counts: Int64Array = np.zeros((len(order), len(order)), np.int64)

    def adopt(self, order: Int64Array, bits: UInt8Array) -> None:
        """Another order over the same tuples (m, n): count again."""
        self.order[:] = order
        self.counts[:] = counted(bits, order.tolist()) if len(bits) else 0


def counted(bits: UInt8Array, order: Sequence[int]) -> Int64Array:
    """The view of an order over the tuples (m, n), by its definition."""
    n = len(order)
    counts = np.zeros((n, n), np.int64)
    alive = np.ones(len(bits), np.bool_)
    in_order = bits[:, list(order)]
    for i in range(n):
        counts[i, i:] = np.count_nonzero(in_order[alive, i:], axis=0)
        alive &= in_order[:, i] == 0
    return counts
