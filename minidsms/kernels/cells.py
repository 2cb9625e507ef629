"""The cells of numbers, as keys of the windows of joins (`joins.bands`)."""

from __future__ import annotations

import numpy as np

from minidsms.kernels.join_layout import UNLINKED
from minidsms.machine_code import Float64s, Int64s, int64, kernel

FARTHEST = 2.0**41
"""Cells of FLOATs farther from zero are one."""
NEAR_THE_END = 2**62
"""Beyond this a sum or a difference of integers may leave 64 bits."""


@kernel
def take_cells(
    nodes: Int64s, reals: Float64s, base: int, mask: int, slots: Int64s, whole: Int64s, real: Float64s
) -> int:
    """Make cells of the words in the nodes of these slots; returns how many integers are near the ends of 64 bits.

    reals: the nodes as FLOATs.  whole, real: see `synopses.cells`.
    """
    wild = 0
    for slot in slots:
        k = base + 2 * (slot & mask)
        if nodes[k + 1] == UNLINKED:
            continue
        word = nodes[k]
        if whole[2] == 0 and (word >= NEAR_THE_END or word <= -NEAR_THE_END):
            wild += 1
        elif len(real) == 0:
            nodes[k] = (word + whole[0]) // whole[1]
        else:
            value = reals[k] if whole[2] != 0 else float(word)
            nodes[k] = int64(np.floor(min(max((value + real[0]) / real[1], -FARTHEST), FARTHEST)))
    return int64(wild)
