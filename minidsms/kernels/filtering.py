"""Kernels of filters: the rows of a chunk that pass a comparison.

The rows still in question are a selection vector: ascending positions in the chunk, as an int64 array. A kernel reads a
value per row and writes the positions that pass. 64 at a time are compared to the bits of a word first, which the
compiler does with vectors, and a position is written for each bit that is set. Where the values stand is told by
`layout`:

    DENSE     values[i] belongs to position i, and every position is in question (rows is empty)
    AT        values[rows[i]] belongs to position rows[i]
    GATHERED  values[i] belongs to position rows[i]

Each kernel returns how many it wrote to out, which has room for all. A mask is a bit for each position, in words: as
long as many are in question, a comparison takes bits out of it. Babu 2005, section 4.2: a filter drops a tuple
or lets it pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Bools, Float64s, Int64s, first_bit, float64, helper, int64, kernel, uint64
from minidsms.machine_code.prefetching import prefetch

DENSE, AT, GATHERED = 0, 1, 2

EXACT = 1 << 50
"""Up to here a quotient taken in float64 is off by less than one; what is beyond is far."""
ROUNDS = float(3 << 51)
"""Added to a float64 that is not far and taken away again, it leaves the nearest whole number."""
_WORD = 64
_ALL = (1 << _WORD) - 1
_AHEAD = 4 * _WORD
"""Rows before one for which its value is on its way into the cache: vectors of values wait for all of theirs."""


@helper(inline=True)
def _near_remainder(x: float, divisor: float, inverse: float) -> Any:
    """The remainder of a number that is not far, with its sign, as a float64, which holds it exactly: without a
    division or a branch, so that vectors do it.
    """
    # The nearest quotient leaves something of the wrong sign where it is one too far from 0.
    rest = x - ((x * inverse + ROUNDS) - ROUNDS) * divisor
    step = divisor if x >= 0.0 else -divisor
    return rest + step if rest * x < 0.0 else rest


@helper(inline=True)
def _remainder(x: Any, divisor: Any) -> Any:
    """The same of any number, as an integer. Python's % takes the divisor's sign; the smallest integer has no absolute
    value.
    """
    rest = x % divisor
    return rest - divisor if x < 0 and rest != 0 else rest


@helper(inline=True)
def write_rows(word: Any, rows: Int64s, layout: int, first: int, out: Int64s, k: int) -> Any:
    """Of a word of 64 rows from `first` on the positions whose bits are set, behind k others; how many there are."""
    at = uint64(k)
    if word == _ALL:
        for j in range(_WORD):
            out[at + uint64(j)] = first + j if layout == DENSE else rows[uint64(first + j)]
        return k + _WORD
    while word != 0:
        row = first + first_bit(word)
        out[at] = row if layout == DENSE else rows[uint64(row)]
        at += uint64(1)
        word &= word - uint64(1)
    return int64(at)


class _Range(NamedTuple):
    """base <= value % divisor <= base + width, or not so; divisor 0: of the value itself.

    One subtraction and one unsigned comparison test both ends.
    """

    divisor: int
    base: int
    width: int
    negated: bool


@helper
def _word_one_by_one(values: Int64s, rows: Int64s, layout: int, wanted: Any, first: int, count: int) -> Any:
    divisor, base, width, negated = wanted
    word = uint64(0)
    for j in range(count):
        row = rows[uint64(first + j)] if layout == AT else first + j
        x = values[uint64(row)]
        if divisor > 0:
            x = _remainder(x, divisor)
        word |= uint64((uint64(x) - base <= width) != negated) << uint64(j)
    return word


@helper(inline=True)
def _send_for(values: Any, rows: Int64s, layout: int, first: Any) -> None:
    """Have values on their way that will be wanted some words later, where they do not stand side by side."""
    for j in range(first + _AHEAD, min(first + _AHEAD + _WORD, len(rows)) if layout == AT else 0):
        prefetch(values, rows[uint64(j)])


@helper(inline=True)
def _integer_word(values: Int64s, rows: Int64s, layout: int, divides: bool, wanted: Any, first: int, n: int) -> Any:
    """Which of at most 64 values from `first` on pass, as bits."""
    divisor, base, width, negated = wanted
    if n - first < _WORD:
        return _word_one_by_one(values, rows, layout, wanted, first, n - first)
    inverse = 1.0 / divisor if divides else 0.0
    by, least, greatest = float64(divisor), float64(int64(base)), float64(int64(base + width))
    word, far = uint64(0), uint64(divisor)
    _send_for(values, rows, layout, first)
    for j in range(_WORD):
        x = values[uint64(rows[uint64(first + j)])] if layout == AT else values[uint64(first + j)]
        if divides:
            far |= uint64(-x if x < 0 else x)
            rest = _near_remainder(float64(x), by, inverse)
            word |= uint64((rest >= least) & (rest <= greatest)) << uint64(j)
        else:
            word |= uint64(uint64(x) - base <= width) << uint64(j)
    if divides and far > uint64(EXACT):
        return _word_one_by_one(values, rows, layout, wanted, first, _WORD)
    return word ^ (uint64(0) - uint64(negated))


@helper(inline=True)
def keep_in_range(values: Int64s, rows: Int64s, layout: int, divides: bool, wanted: Any, out: Int64s) -> Any:
    """As `keep_integers`."""
    n = len(rows) if layout == AT else len(values)
    k = 0
    for first in range(0, n, _WORD):
        k = write_rows(_integer_word(values, rows, layout, divides, wanted, first, n), rows, layout, first, out, k)
    return k


@helper(inline=True)
def mask_integers(values: Int64s, divides: bool, wanted: Any, mask: Int64s) -> None:
    """Take the bits of values that do not pass out of a mask of all of them."""
    for w in range((len(values) + _WORD - 1) // _WORD):
        if mask[w] != 0:
            mask[w] &= int64(_integer_word(values, mask, DENSE, divides, wanted, w * _WORD, len(values)))


@helper(inline=True)
def range_of(divisor: int, lo: int, hi: int, negated: bool) -> Any:
    """What a value must be, as the tests of integers are told."""
    return _Range(divisor, uint64(lo), uint64(hi) - uint64(lo), negated)


@kernel
def keep_integers(
    values: Int64s, rows: Int64s, layout: int, divisor: int, lo: int, hi: int, negated: bool, out: Int64s
) -> int:
    """Positions with lo <= value <= hi (negated: not so), of value % divisor where divisor > 0."""
    wanted = range_of(divisor, lo, hi, negated)
    if layout == AT:
        if divisor > 0:
            return keep_in_range(values, rows, AT, True, wanted, out)
        return keep_in_range(values, rows, AT, False, wanted, out)
    if divisor > 0:
        return keep_in_range(values, rows, layout, True, wanted, out)
    return keep_in_range(values, rows, layout, False, wanted, out)


@helper(inline=True)
def _float_word(values: Float64s, rows: Int64s, layout: int, lo: float, hi: float, first: int, n: int) -> Any:
    """The same of floats, which are to lie in a range."""
    word = uint64(0)
    if n - first < _WORD:
        for j in range(n - first):
            x = values[rows[first + j]] if layout == AT else values[first + j]
            word |= uint64((x >= lo) & (x <= hi)) << uint64(j)
        return word
    _send_for(values, rows, layout, first)
    for j in range(_WORD):
        x = values[uint64(rows[uint64(first + j)])] if layout == AT else values[uint64(first + j)]
        word |= uint64((x >= lo) & (x <= hi)) << uint64(j)
    return word


@helper(inline=True)
def _turned(word: Any, negated: bool, count: Any) -> Any:
    """Of at most 64 bits those that are set, negated: those that are not."""
    if not negated:
        return word
    return ~word if count >= _WORD else ~word & ((uint64(1) << uint64(count)) - uint64(1))


@helper(inline=True)
def keep_float_range(
    values: Float64s, rows: Int64s, layout: int, lo: float, hi: float, negated: bool, out: Int64s
) -> Any:
    """As `keep_floats`."""
    n = len(rows) if layout == AT else len(values)
    k = 0
    for first in range(0, n, _WORD):
        word = _turned(_float_word(values, rows, layout, lo, hi, first, n), negated, n - first)
        k = write_rows(word, rows, layout, first, out, k)
    return k


@helper(inline=True)
def mask_floats(values: Float64s, lo: float, hi: float, negated: bool, mask: Int64s) -> None:
    """As `mask_integers`."""
    for w in range((len(values) + _WORD - 1) // _WORD):
        if mask[w] != 0:
            word = _float_word(values, mask, DENSE, lo, hi, w * _WORD, len(values))
            mask[w] &= int64(~word if negated else word)


@kernel
def keep_floats(values: Float64s, rows: Int64s, layout: int, lo: float, hi: float, negated: bool, out: Int64s) -> int:
    """Positions with lo <= value <= hi (negated: not so)."""
    if layout == AT:
        return keep_float_range(values, rows, AT, lo, hi, negated, out)
    return keep_float_range(values, rows, layout, lo, hi, negated, out)


@helper(inline=True)
def _slot(word: Any, shift: int) -> Any:
    """The upper bits of a product: words that differ little go far apart."""
    return np.int64((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))


@kernel
def place_members(items: Int64s, shift: int, slots: Int64s, filled: Bools) -> None:
    """Put the items into a table of 1 << (64 - shift) slots, each at the first free one from its own on."""
    for item in items:
        h = _slot(item, shift)
        while filled[h] and slots[h] != item:
            h = (h + 1) & (len(slots) - 1)
        slots[h] = item
        filled[h] = True


@kernel
def keep_members(
    words: Int64s, rows: Int64s, layout: int, slots: Int64s, filled: Bools, shift: int, negated: bool, out: Int64s
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
