"""Kernels of filters: the rows of a chunk that pass a comparison.

The rows still in question are a selection vector: ascending positions in the chunk, as an int64 array. A kernel reads a
value per row and writes the positions that pass, without a branch that depends on the data: the next position is
always written, and counted only where the row passes. Where the values stand is told by `layout`:

    DENSE     values[i] belongs to position i, and every position is in question (rows is empty)
    AT        values[rows[i]] belongs to position rows[i]
    GATHERED  values[i] belongs to position rows[i]

Each kernel returns how many it wrote to out, which has room for all. Babu 2005, section 4.2: a filter drops a tuple
or lets it pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from minidsms.elements import BoolArray, Int64Array
from minidsms.machine_code import helper, kernel

DENSE, AT, GATHERED = 0, 1, 2

_EXACT = 1 << 50
"""Up to here a quotient taken in float64 is off by one at most."""


@helper(inline=True)
def _remainder(x: Any, divisor: Any, inverse: float) -> Any:
    """x % divisor with the sign of x, divisor > 0: a multiplication instead of a division where x is small enough."""
    if -_EXACT < x < _EXACT:
        rest = x - np.int64(x * inverse) * divisor
        if x >= 0:
            if rest < 0:
                rest += divisor
            elif rest >= divisor:
                rest -= divisor
        elif rest > 0:
            rest -= divisor
        elif rest <= -divisor:
            rest += divisor
        return rest
    # Python's % takes the divisor's sign; the smallest integer has no absolute value.
    rest = x % divisor
    if x < 0 and rest != 0:
        rest -= divisor
    return rest


@kernel("int64(int64[::1], int64[::1], int64, int64, int64, int64, boolean, int64[::1])")
def keep_integers(
    values: Int64Array, rows: Int64Array, layout: int, divisor: int, lo: int, hi: int, negated: bool, out: Int64Array
) -> int:
    """Positions with lo <= value <= hi (negated: not so), of value % divisor where divisor > 0."""
    k = 0
    # One subtraction and one unsigned comparison test both ends.
    base = np.uint64(lo)
    width = np.uint64(hi) - base
    if divisor > 0:
        inverse = 1.0 / divisor
        if layout == DENSE:
            for i in range(len(values)):
                out[k] = i
                k += (np.uint64(_remainder(values[i], divisor, inverse)) - base <= width) != negated
        elif layout == AT:
            for i in range(len(rows)):
                row = rows[i]
                out[k] = row
                k += (np.uint64(_remainder(values[row], divisor, inverse)) - base <= width) != negated
        else:
            for i in range(len(rows)):
                out[k] = rows[i]
                k += (np.uint64(_remainder(values[i], divisor, inverse)) - base <= width) != negated
    elif layout == DENSE:
        for i in range(len(values)):
            out[k] = i
            k += (np.uint64(values[i]) - base <= width) != negated
    elif layout == AT:
        for i in range(len(rows)):
            row = rows[i]
            out[k] = row
            k += (np.uint64(values[row]) - base <= width) != negated
    else:
        for i in range(len(rows)):
            out[k] = rows[i]
            k += (np.uint64(values[i]) - base <= width) != negated
    return k


@kernel("int64(float64[::1], int64[::1], int64, float64, float64, boolean, int64[::1])")
def keep_floats(
    values: npt.NDArray[np.float64],
    rows: Int64Array,
    layout: int,
    lo: float,
    hi: float,
    negated: bool,
    out: Int64Array,
) -> int:
    """Positions with lo <= value <= hi (negated: not so)."""
    k = 0
    if layout == DENSE:
        for i in range(len(values)):
            out[k] = i
            k += ((values[i] >= lo) & (values[i] <= hi)) != negated
    elif layout == AT:
        for i in range(len(rows)):
            row = rows[i]
            out[k] = row
            k += ((values[row] >= lo) & (values[row] <= hi)) != negated
    else:
        for i in range(len(rows)):
            out[k] = rows[i]
            k += ((values[i] >= lo) & (values[i] <= hi)) != negated
    return k


@helper(inline=True)
def _slot(word: Any, shift: int) -> Any:
    """The upper bits of a product: words that differ little go far apart."""
    return np.int64((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@kernel("void(int64[::1], int64, int64[::1], boolean[::1])")
def place_members(items: Int64Array, shift: int, slots: Int64Array, filled: BoolArray) -> None:
    """Put the items into a table of 1 << (64 - shift) slots, each at the first free one from its own on."""
    for item in items:
        h = _slot(item, shift)
        while filled[h] and slots[h] != item:
            h = (h + 1) & (len(slots) - 1)
        slots[h] = item
        filled[h] = True


@kernel("int64(int64[::1], int64[::1], int64, int64[::1], boolean[::1], int64, boolean, int64[::1])")
def keep_members(
    words: Int64Array,
    rows: Int64Array,
    layout: int,
    slots: Int64Array,
    filled: BoolArray,
    shift: int,
    negated: bool,
    out: Int64Array,
) -> int:
    """Positions whose word is in the table of `place_members` (negated: is not)."""
    k = 0
    m = len(words) if layout == DENSE else len(rows)
    for i in range(m):
        row = i if layout == DENSE else rows[i]
        word = words[row] if layout == AT else words[i]
        h = _slot(word, shift)
        while filled[h] and slots[h] != word:
            h = (h + 1) & (len(slots) - 1)
        out[k] = row
        k += filled[h] != negated
    return k


def keep(kernel: Any, *arguments: Any, room: int) -> Int64Array:
    """Call a kernel with an output of its own, cut to what it wrote."""
    out = np.empty(room, np.int64)
    count: int = kernel(*arguments, out)
    return out[:count]
