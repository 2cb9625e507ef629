"""Sums of floats, and of squares, without any rounding: what came and left leaves no trace, and the order does not
matter.

A sum is a long fixed-point number per group, cut into limbs: `limbs` (cap, width) int64, where column l weighs
2^(32 (base + l)) units and the unit is 2^-1074 for sums of floats (so that every float is a whole number of units),
its square for sums of squares, and 1 for integers. An element adds its bits to three to five limbs, or takes them
away; carries wait until somebody reads, for a limb holds the sum of at most 2^28 elements' parts. The columns are
those the data has needed so far: a kernel that meets a value outside returns its position, with the limbs it needs
in meta (2,), and is called again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from minidsms.machine_code import Float64Table, Int8s, Int8Table, Int64s, Int64Table, helper, kernel

_MASK = 0xFFFFFFFF
_NULL, _VALUE = 0, 1


class Values(NamedTuple):
    """Of each element its instant, its group, its weight and its value: the bits of a float, or an integer."""

    ts: Int64s
    ids: Int64s
    weight: Int8s
    words: Int64s


class Limbs(NamedTuple):
    """A long number per group. base: the first limb there is a column for."""

    limbs: Int64Table
    base: int


class Answers(NamedTuple):
    """Where the answer behind each element goes: into one column of (n, k)."""

    floats: Float64Table
    status: Int8Table
    column: int


class Room(NamedTuple):
    """For the time of a call, see `limbs_of_variance`."""

    digits: Int64s
    total: Int64s
    result: Int64s


@helper(typed=True)
def add_bits(limbs: Int64s, position: int, part: int, weight: int) -> None:
    """Add part (32 bits) at a bit position counted from the first limb."""
    shifted = part << (position & 31)
    limb = position >> 5
    limbs[limb] += weight * (shifted & _MASK)
    limbs[limb + 1] += weight * (shifted >> 32)


@helper("Tuple((uint64, int64))(int64, boolean)")
def parts_of(word: int, is_integer: bool) -> Any:
    """The magnitude of a finite value, a whole number, and at which bit it begins."""
    if is_integer:
        return np.uint64(-word) if word < 0 else np.uint64(word), np.int64(0)
    magnitude = np.uint64(word & 0xFFFFFFFFFFFFF)
    exponent = (word >> 52) & 2047
    if exponent > 0:
        magnitude |= np.uint64(1 << 52)
        exponent -= 1
    return magnitude, exponent


@helper(typed=True)
def position_of(word: int) -> int:
    """At which bit the mantissa of a finite float begins, given its bits."""
    return max(((word >> 52) & 2047) - 1, 0)


@helper(typed=True)
def add_float(limbs: Int64s, base: int, word: int, weight: int) -> None:
    """Add a finite float, given its bits, to a sum whose first limb is `base`."""
    mantissa = word & 0xFFFFFFFFFFFFF
    if (word >> 52) & 2047 > 0:
        mantissa |= 1 << 52
    signed = -weight if word < 0 else weight
    at = position_of(word) - 32 * base
    add_bits(limbs, at, mantissa & _MASK, signed)
    add_bits(limbs, at + 32, mantissa >> 32, signed)


@helper(typed=True)
def normalise(limbs: Int64s, digits: Int64s, sign: int) -> int:
    """sign * limbs as digits below 2^32, two digits longer; returns the carry left (negative: so is the number)."""
    carry = np.int64(0)
    n = limbs.shape[0]
    for l in range(n):
        v = sign * limbs[l] + carry
        digits[l] = v & _MASK
        carry = v >> 32
    digits[n] = carry & _MASK
    carry >>= 32
    digits[n + 1] = carry & _MASK
    return int(carry >> 32)


@helper("Tuple((float64, int64))(int64[::1])")
def _leading(digits: np.ndarray) -> tuple[float, int]:
    """A non-negative number of digits as f * 2^e, f rounded once, to nearest."""
    top = digits.shape[0] - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0.0, 0
    bits = 0
    while digits[top] >> bits:
        bits += 1
    second = digits[top - 1] if top >= 1 else np.int64(0)
    third = digits[top - 2] if top >= 2 else np.int64(0)
    mantissa = (
        (np.uint64(digits[top]) << np.uint64(64 - bits))
        | (np.uint64(second) << np.uint64(32 - bits))
        | (np.uint64(third) >> np.uint64(bits))
    )
    rest = third & ((np.int64(1) << bits) - 1)
    for l in range(top - 2):
        rest |= digits[l]
    if rest:
        mantissa |= np.uint64(1)
    # Rounding by hand: 11 bits are dropped, ties go to even.
    kept = mantissa >> np.uint64(11)
    dropped = mantissa & np.uint64(2047)
    if dropped > np.uint64(1024) or (dropped == np.uint64(1024) and (kept & np.uint64(1)) == np.uint64(1)):
        kept += np.uint64(1)
    return float(kept), 32 * top + bits - 53


@helper(typed=True)
def rounded(limbs: Int64s, digits: Int64s, base: int, count: int) -> float:
    """A sum of floats, whose first limb is `base`, divided by a count. digits: two more than limbs, for the call."""
    sign = 1.0
    if normalise(limbs, digits, 1) < 0:
        normalise(limbs, digits, -1)
        sign = -1.0
    total, exponent = _leading(digits)
    if total == 0.0:
        return 0.0
    return math.ldexp(sign * (total / count), int(exponent + 32 * base - 1074)) + 0.0  # never -0.0


@kernel
def sum_floats(
    start: int,
    values: Values,
    counts: Int64Table,
    sums: Limbs,
    average: bool,
    meta: Int64s,
    to: Answers,
    digits: Int64s,
) -> int:
    """SUM and AVG of FLOAT, behind the last of the elements of a group that come one after the other in an instant.
    counts: (cap, 3) [finite, +inf, -inf].

    digits: two more than a group has limbs, for the time being.
    """
    ts, ids, weight, words, limbs, base = values.ts, values.ids, values.weight, values.words, sums.limbs, sums.base
    floats, status, j = to.floats, to.status, to.column
    width, last = limbs.shape[1], ids.shape[0] - 1
    for i in range(start, ids.shape[0]):
        group = ids[i]
        w = np.int64(weight[i])
        if w != 0:
            word = words[i]
            exponent = (word >> 52) & 2047
            if exponent == 2047:
                counts[group, 1 if word >= 0 else 2] += w
            else:
                if word << 1 != 0:
                    first = position_of(word) >> 5
                    if first < base or first + 3 > base + width:
                        meta[0] = first
                        meta[1] = first + 3
                        return i
                    add_float(limbs[group], base, word, w)
                counts[group, 0] += w
        n = counts[group, 0] + counts[group, 1] + counts[group, 2]
        floats[i, j] = 0.0
        status[i, j] = _NULL
        is_between = i < last and ids[i + 1] == group and ts[i + 1] == ts[i]
        if is_between or n <= 0 or (counts[group, 1] > 0 and counts[group, 2] > 0):
            continue
        status[i, j] = _VALUE
        if counts[group, 1] > 0:
            floats[i, j] = np.inf
        elif counts[group, 2] > 0:
            floats[i, j] = -np.inf
        else:
            floats[i, j] = rounded(limbs[group], digits, base, n if average else 1)
    return len(ids)


@helper(typed=True)
def _subtract_square(digits: Int64s, total: Int64s, at: int) -> None:
    """Take the square of a number of digits from total, whose limb `at` weighs what its lowest does."""
    for k in range(digits.shape[0]):
        if digits[k] != 0:
            for l in range(digits.shape[0]):
                product = np.uint64(digits[k]) * np.uint64(digits[l])
                total[at + k + l] -= np.int64(product & np.uint64(_MASK))
                total[at + k + l + 1] -= np.int64(product >> np.uint64(32))


@helper(typed=True)
def _add_multiple(limbs: Int64s, n: int, total: Int64s, at: int) -> None:
    """Add n times a sum to total, from limb `at` on."""
    carry = np.int64(0)
    for l in range(limbs.shape[0] + 2):
        v = carry
        carry = v >> 32
        if l < limbs.shape[0]:
            # n times a limb may pass 64 bits, so its halves are multiplied apart.
            v += (limbs[l] & _MASK) * n
            carry = (v >> 32) + (limbs[l] >> 32) * n
        total[at + l] += v & _MASK


class Variation(NamedTuple):
    """Of groups. counts: (cap, 2) [finite, infinite].  needed: (4,), out: the limbs that an element needs, of sums and
    of squares, where there are too few.
    """

    counts: Int64Table
    sums: Limbs
    squares: Limbs
    needed: Int64s


@helper(typed=True)
def _add_with_square(variation: Variation, group: int, word: int, w: int, is_integer: bool) -> bool:
    """Add a value and its square; False where there are too few limbs, and nothing was added."""
    counts, of_values, of_squares, needed = variation
    if not is_integer and (word >> 52) & 2047 == 2047:
        counts[group, 1] += w
        return True
    magnitude, exponent = parts_of(word, is_integer)
    if magnitude != 0:
        sums, squares = of_values.limbs[group], of_squares.limbs[group]
        at, at_square = exponent - 32 * of_values.base, 2 * exponent - 32 * of_squares.base
        if at < 0 or (at >> 5) + 3 > len(sums) or at_square < 0 or (at_square >> 5) + 5 > len(squares):
            needed[0], needed[1] = exponent >> 5, (exponent >> 5) + 3
            needed[2], needed[3] = (2 * exponent) >> 5, ((2 * exponent) >> 5) + 5
            return False
        a = magnitude & np.uint64(_MASK)
        b = magnitude >> np.uint64(32)
        signed = -w if word < 0 else w
        add_bits(sums, at, np.int64(a), signed)
        add_bits(sums, at + 32, np.int64(b), signed)
        for shift, product in ((0, a * a), (33, a * b), (64, b * b)):
            add_bits(squares, at_square + shift, np.int64(product & np.uint64(_MASK)), w)
            add_bits(squares, at_square + shift + 32, np.int64(product >> np.uint64(32)), w)
    counts[group, 0] += w
    return True


@kernel
def vary(
    start: int,
    values: Values,
    is_integer: bool,
    variation: Variation,
    deviation: bool,
    to: Answers,
    room: Room,
) -> int:
    """Sample VARIANCE and STDDEV: (n * sum of squares - square of the sum) / (n * (n - 1)), exact up to the division;
    behind the last of the elements of a group that come one after the other in an instant.
    """
    ts, ids, weight, words = values.ts, values.ids, values.weight, values.words
    counts, of_values, of_squares, _ = variation
    sums, base, squares, squares_base = of_values.limbs, of_values.base, of_squares.limbs, of_squares.base
    floats, status, j = to.floats, to.status, to.column
    digits, total, result = room.digits, room.total, room.result
    last = ids.shape[0] - 1
    # Both products are laid out from the lower of their first limbs on.
    low = min(2 * base, squares_base)
    for i in range(start, ids.shape[0]):
        group = ids[i]
        w = np.int64(weight[i])
        if w != 0 and not _add_with_square(variation, group, words[i], w, is_integer):
            return i
        n = counts[group, 0]
        floats[i, j] = 0.0
        status[i, j] = _NULL
        is_between = i < last and ids[i + 1] == group and ts[i + 1] == ts[i]
        if is_between or n < 2 or counts[group, 1] > 0:
            continue
        status[i, j] = _VALUE
        for l in range(total.shape[0]):
            total[l] = 0
        if normalise(sums[group], digits, 1) < 0:
            normalise(sums[group], digits, -1)
        _subtract_square(digits, total, 2 * base - low)
        _add_multiple(squares[group], n, total, squares_base - low)
        normalise(total, result, 1)
        excess, power = _leading(result)
        unit = 0 if is_integer else -2148
        variance, exponent = excess / (float(n) * float(n - 1)), power + 32 * low + unit
        if deviation:
            # The root may be a float where the variance is none.
            half = exponent >> 1
            variance, exponent = math.sqrt(math.ldexp(variance, int(exponent - 2 * half))), half
        floats[i, j] = math.ldexp(variance, int(exponent))
    return len(ids)


def limbs_of_variance(width: int, base: int, width_squares: int, squares_base: int) -> tuple[int, int, int]:
    """How many words `vary` needs for a group's sum, for what it divides, and for the digits of that. width, base: the
    columns of sums, and the first limb there is one for.
    """
    low = min(2 * base, squares_base)
    room = max(2 * (base + width + 2), squares_base + width_squares + 2) - low + 2
    return width + 2, room, room + 2
