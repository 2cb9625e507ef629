"""Covariance, correlation and the line of least squares of each group's pairs (y, x), and the variance of values y.

A group has up to five long numbers (`kernels.exact_sums`), the sums of y, x, y², x² and xy, one behind the other in a
row of `limbs` (cap, width): those that the aggregate needs. The products of two numbers whose limbs begin alike begin
alike, too, so that what a result is made of (n * sum of xy - sum of y * sum of x, ..) is computed limb by limb.

A result is computed from pairs of floats (`kernels.float_pairs`), the leading bits of such differences. Where these do
not tell how it is rounded, the sums go out for whoever computes with whole numbers. This is rare: about one of 2^27
results, and those below 2^-1000 or above 2^1000.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from minidsms.kernels.aggregation import NULL, VALUE
from minidsms.kernels.exact_sums import add_bits, normalise, parts_of
from minidsms.kernels.float_pairs import exact_product, exact_sum, pair_product, pair_quotient, pair_root
from minidsms.machine_code import Float64Table, Int8s, Int8Table, Int64s, Int64Table, helper, kernel

OF_Y, OF_X, OF_YY, OF_XX, OF_XY = range(5)
COVARIATION, VARIATION_OF_Y, VARIATION_OF_X, INTERCEPT = range(4)
"""What is divided: n times the sum of the products of both distances from the means, of the squares of those of y, of
x; where the line meets x = 0, times the variation of x.
"""
BY_N, BY_N_N, BY_N_LESS_ONE, BY_X, BY_ROOT_OF_BOTH, SQUARED_BY_BOTH = range(6)
"""By what: n, n * n, n * (n - 1), the variation of x, the root of the product of both; its square by this product."""
_MASK = 0xFFFFFFFF
_UNKNOWN = 2
_LEAST, _MOST = 2.0**-1000, 2.0**1000
_ERROR = 2.0**-80
"""Of a result as a pair: this is more than its part that may be wrong."""


class Pairs(NamedTuple):
    """Of each element its instant, its group, its weight, and both values: bits of floats, or integers."""

    ts: Int64s
    ids: Int64s
    weight: Int8s
    y: Int64s
    x: Int64s


class Asked(NamedTuple):
    """divided, divisor: of the words above.  is_root: the root of the quotient."""

    divided: int
    divisor: int
    is_root: bool


class Layout(NamedTuple):
    """y_base, x_base: the first limb there is one for.  ends: (6,) where the limbs of a sum begin, and end; a sum that
    has none is not kept.
    """

    y_is_integer: bool
    x_is_integer: bool
    y_base: int
    x_base: int
    y_width: int
    x_width: int
    ends: Int64s


class Sums(NamedTuple):
    """counts: (cap, 2) [finite, infinite].  limbs: (cap, width) as the layout says."""

    counts: Int64Table
    limbs: Int64Table
    layout: Layout


class Answers(NamedTuple):
    """Where the answer behind each element goes: into one column of (n, k).

    unknown: (rows, 2 + width), where pairs do not suffice [element, n, limbs], from row 1 on; in its first word how
    many there are.
    """

    floats: Float64Table
    status: Int8Table
    unknown: Int64Table
    column: int


class Room(NamedTuple):
    """For the time of a call: the number of rows, the digits of two factors, a difference and its digits."""

    n: Int64s
    first: Int64s
    second: Int64s
    total: Int64s
    result: Int64s


@helper("void(int64[::1], int64[::1], int64, int64, uint64, int64)")
def _add_number(limbs: np.ndarray, ends: np.ndarray, to: int, at: int, a: Any, weight: int) -> None:
    """Add a from bit `at` of a sum on, if that is kept."""
    if ends[to + 1] > ends[to]:
        add_bits(limbs, 32 * ends[to] + at, np.int64(a & np.uint64(_MASK)), weight)
        add_bits(limbs, 32 * ends[to] + at + 32, np.int64(a >> np.uint64(32)), weight)


@helper("void(int64[::1], int64[::1], int64, int64, uint64, uint64, int64)")
def _add_product(limbs: np.ndarray, ends: np.ndarray, to: int, at: int, a: Any, b: Any, weight: int) -> None:
    """Add a * b."""
    if ends[to + 1] > ends[to]:
        mask, half = np.uint64(_MASK), np.uint64(32)
        low, high = (a & mask) * (b & mask), (a >> half) * (b >> half)
        cross, other = (a >> half) * (b & mask), (a & mask) * (b >> half)
        middle = (low >> half) + (cross & mask) + (other & mask)
        high += (cross >> half) + (other >> half) + (middle >> half)
        _add_number(limbs, ends, to, at, (low & mask) | middle << half, weight)
        _add_number(limbs, ends, to, at + 64, high, weight)


@helper
def _add(pairs: Pairs, i: int, limbs: Int64s, layout: Layout, meta: Int64s) -> bool:
    """Take the finite pair of an element in, or out; False where meta says what limbs it needs."""
    y, y_at = parts_of(pairs.y[i], layout.y_is_integer)
    x, x_at = parts_of(pairs.x[i], layout.x_is_integer)
    # Of zeros none.
    meta[0], meta[1] = y_at >> 5, (y_at >> 5) + 3 if y > 0 else 0
    meta[2], meta[3] = x_at >> 5, (x_at >> 5) + 3 if x > 0 else 0
    y_at -= 32 * layout.y_base
    x_at -= 32 * layout.x_base
    if (y > 0 and (y_at < 0 or (y_at >> 5) + 3 > layout.y_width)) or (
        x > 0 and (x_at < 0 or (x_at >> 5) + 3 > layout.x_width)
    ):
        return False
    ends = layout.ends
    w = np.int64(pairs.weight[i])
    y_w = -w if pairs.y[i] < 0 else w
    x_w = -w if pairs.x[i] < 0 else w
    if y > 0:
        _add_number(limbs, ends, OF_Y, y_at, y, y_w)
        _add_product(limbs, ends, OF_YY, 2 * y_at, y, y, w)
    if x > 0:
        _add_number(limbs, ends, OF_X, x_at, x, x_w)
        _add_product(limbs, ends, OF_XX, 2 * x_at, x, x, w)
        if y > 0:
            _add_product(limbs, ends, OF_XY, y_at + x_at, y, x, w * y_w * x_w)
    return True


@helper
def _multiply(a: Int64s, b: Int64s, way: int, room: Room, total: Int64s) -> None:
    """Add way * a * b, of two long numbers, to total."""
    first, second = room.first[: len(a) + 2], room.second[: len(b) + 2]
    for number, digits in ((a, first), (b, second)):
        if normalise(number, digits, 1) < 0:
            normalise(number, digits, -1)
            way = -way
    for k in range(len(first)):
        if first[k] != 0:
            for l in range(len(second)):
                product = np.uint64(first[k]) * np.uint64(second[l])
                total[k + l] += way * np.int64(product & np.uint64(_MASK))
                total[k + l + 1] += way * np.int64(product >> np.uint64(32))


@helper
def _difference(a: Int64s, b: Int64s, c: Int64s, d: Int64s, room: Room) -> Any:
    """a * b - c * d as a pair of floats and a power of two."""
    size = max(len(a) + len(b), len(c) + len(d)) + 5
    total, result = room.total[:size], room.result[: size + 2]
    total[:] = 0
    _multiply(a, b, 1, room, total)
    _multiply(c, d, -1, room, total)
    sign = 1.0
    if normalise(total, result, 1) < 0:
        normalise(total, result, -1)
        sign = -1.0
    top = size + 1
    while top > 0 and result[top] == 0:
        top -= 1
    # Four digits, at least 97 bits, where there are as many.
    value, rest = float(result[top]), 0.0
    for k in range(1, 4):
        value, left_out = exact_sum(value * 2.0**32, float(result[top - k]) if top >= k else 0.0)
        rest = rest * 2.0**32 + left_out
    value, rest = exact_sum(value, rest)
    return sign * value, sign * rest, 32 * (top - 3)


@helper
def _variation(a: int, b: int, ab: int, sums: Int64s, ends: Int64s, room: Room) -> Any:
    """n times the sum of the products of distances from the means, given which sums are theirs."""
    return _difference(
        room.n, sums[ends[ab] : ends[ab + 1]], sums[ends[a] : ends[a + 1]], sums[ends[b] : ends[b + 1]], room
    )


@helper
def _root(value: float, rest: float, power: int) -> Any:
    """Of a pair above 0, and a power of two."""
    if power % 2 != 0:
        value, rest, power = 2.0 * value, 2.0 * rest, power - 1
    value, rest = pair_root(value, rest)
    return value, rest, power // 2


@helper
def _quotient(sums: Int64s, n: int, asked: Asked, layout: Layout, room: Room) -> Any:
    """The result, and VALUE, NULL or _UNKNOWN."""
    ends = layout.ends
    y_power = 32 * layout.y_base - (0 if layout.y_is_integer else 1074)
    x_power = 32 * layout.x_base - (0 if layout.x_is_integer else 1074)
    room.n[0], room.n[1] = n & _MASK, n >> 32
    xx, xx_rest, xx_power, yy, yy_rest, yy_power = 1.0, 0.0, 0, 1.0, 0.0, 0
    needs_both = asked.divisor == BY_ROOT_OF_BOTH or asked.divisor == SQUARED_BY_BOTH
    if needs_both or asked.divisor == BY_X or asked.divided == VARIATION_OF_X:
        xx, xx_rest, xx_power = _variation(OF_X, OF_X, OF_XX, sums, ends, room)
        xx_power += 2 * x_power
    if needs_both or asked.divided == VARIATION_OF_Y:
        yy, yy_rest, yy_power = _variation(OF_Y, OF_Y, OF_YY, sums, ends, room)
        yy_power += 2 * y_power
    if asked.divided == VARIATION_OF_X:
        value, rest, power = xx, xx_rest, xx_power
    elif asked.divided == VARIATION_OF_Y:
        value, rest, power = yy, yy_rest, yy_power
    elif asked.divided == COVARIATION:
        value, rest, power = _variation(OF_Y, OF_X, OF_XY, sums, ends, room)
        power += y_power + x_power
    else:
        # (sum of y * variation of x - covariation * sum of x) / n, without what both have in common.
        value, rest, power = _difference(
            sums[ends[OF_Y] : ends[OF_Y + 1]], sums[ends[OF_XX] : ends[OF_XX + 1]],
            sums[ends[OF_X] : ends[OF_X + 1]], sums[ends[OF_XY] : ends[OF_XY + 1]], room,
        )  # fmt: skip
        power += y_power + 2 * x_power
    divisor, divisor_rest, divisor_power = float(n), 0.0, 0
    if asked.divisor == BY_N_N or asked.divisor == BY_N_LESS_ONE:
        if asked.divisor == BY_N_LESS_ONE and n < 2:
            return 0.0, NULL
        divisor, divisor_rest = exact_product(float(n), float(n - 1 if asked.divisor == BY_N_LESS_ONE else n))
    elif asked.divisor != BY_N:
        if xx == 0.0 or (yy == 0.0 and asked.divisor == BY_ROOT_OF_BOTH):
            return 0.0, NULL
        if yy == 0.0:
            return 1.0, VALUE  # a line without a slope fits
        divisor, divisor_rest, divisor_power = xx, xx_rest, xx_power
    if needs_both:
        divisor, divisor_rest = pair_product(xx, xx_rest, yy, yy_rest)
        divisor_power += yy_power
        if asked.divisor == SQUARED_BY_BOTH:
            value, rest = pair_product(value, rest, value, rest)
            power *= 2
        else:
            divisor, divisor_rest, divisor_power = _root(divisor, divisor_rest, divisor_power)
    if value == 0.0:
        return 0.0, VALUE
    value, rest = pair_quotient(value, rest, divisor, divisor_rest)
    power -= divisor_power
    if asked.is_root:
        value, rest, power = _root(value, rest, power)
    result, error = math.ldexp(value, int(power)), abs(value) * _ERROR
    is_known = value + (rest + error) == value and value + (rest - error) == value and _LEAST < abs(result) < _MOST
    return result, VALUE if is_known else _UNKNOWN


@kernel
def relate(start: int, pairs: Pairs, asked: Asked, sums: Sums, meta: Int64s, to: Answers, room: Room) -> int:
    """Take pairs in and answer behind the last of those of a group that come one after the other in an instant; returns
    how many are done: all, or those before one that needs more limbs, or with which `unknown` is full.

    meta: (4,) the limbs that one needs, of y [first, end], none where the end is 0, and of x.
    """
    ids, ts = pairs.ids, pairs.ts
    counts, limbs, layout = sums.counts, sums.limbs, sums.layout
    n, j = ids.shape[0], to.column
    for i in range(start, n):
        group = ids[i]
        w = np.int64(pairs.weight[i])
        if w != 0:
            y_is_infinite = not layout.y_is_integer and (pairs.y[i] >> 52) & 2047 == 2047
            if y_is_infinite or (not layout.x_is_integer and (pairs.x[i] >> 52) & 2047 == 2047):
                counts[group, 1] += w
            elif not _add(pairs, i, limbs[group], layout, meta):
                return i
            else:
                counts[group, 0] += w
        to.floats[i, j] = 0.0
        to.status[i, j] = NULL
        count = counts[group, 0]
        is_between = i + 1 < n and ids[i + 1] == group and ts[i + 1] == ts[i]
        if is_between or count == 0 or counts[group, 1] > 0:
            continue
        result, status = _quotient(limbs[group], count, asked, layout, room)
        to.floats[i, j] = result
        to.status[i, j] = status
        if status == _UNKNOWN:
            to.unknown[0, 0] += 1
            row = to.unknown[to.unknown[0, 0]]
            row[0] = i
            row[1] = count
            for l in range(limbs.shape[1]):
                row[2 + l] = limbs[group, l]
            if to.unknown[0, 0] == len(to.unknown) - 1:
                meta[:] = 0
                return i + 1
    return n
