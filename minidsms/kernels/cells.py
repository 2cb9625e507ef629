"""The cells of numbers, as keys of the windows of joins (`joins.bands`)."""

from __future__ import annotations

import numpy as np

from minidsms.kernels.join_layout import UNLINKED
from minidsms.machine_code import Float64s, Int64s, int64, kernel

FARTHEST = 2.0**41
"""Cells of FLOATs farther from zero are one."""
NEAR_THE_END = 2**62
"""Beyond this a sum or a difference of integers may leave 64 bits."""
ROUNDED = 2.0**-46
"""Of FLOATs added up, how much of the greatest rounding may have taken: more than some hundred times the most."""


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


@kernel
def take_cells_in_order(
    nodes: Int64s, reals: Float64s, base: int, mask: int, slots: Int64s, whole: Int64s, real: Float64s,
    least: Int64s, least_real: Float64s,
) -> int:  # fmt: skip
    """As `take_cells`, of cells of as many rows each: that of a value is how many of the least values are not above it.

    least, least_real: of every cell but the first, ascending; one of them is empty.  whole: shift, 0, whether the
    column is of FLOATs.  real: shift, and the greatest constant it was computed from, by which rounding is bounded.
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
            nodes[k] = np.searchsorted(least, word + whole[0], side="right")
        else:
            value = reals[k] if whole[2] != 0 else float(word)
            if real[1] != 0.0 and abs(value) < np.inf:
                value += real[0] + ROUNDED * (abs(value) + real[1])
            nodes[k] = np.searchsorted(least_real, value, side="right")
    return int64(wild)
