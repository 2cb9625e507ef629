"""The value at a share of the way through each group's values: MEDIAN, QUANTILE_CONT, PERCENTILE_DISC and so on.

The values stand in treaps that know their sizes (`kernels.ordered_values`), so that the value at a place is found in
O(log n). Between the changes of a group within an instant nobody asks: a group is answered at its last element there,
which state[group, 2] has, counted from one, while the instant is taken in.

What is between two values is exact and rounded once. Sums and products of floats are held as the float and what it
leaves out; where that does not tell how the result is rounded, the two values go out for whoever computes with
fractions. This is rare: values of 2^400 or 2^-400, or one that is lost beside the other but decides on the rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from minidsms.kernels.float_pairs import exact_product, exact_sum
from minidsms.kernels.ordered_values import (
    COUNT,
    LEFT,
    RIGHT,
    SIZE,
    WORD,
    OrderedArrays,
    OrderedBy,
    Valued,
    add_to_treap,
    take_from_treap,
)
from minidsms.machine_code import Float64Table, Int8Table, Int64s, Int64Table, helper, kernel

_ROOT, _LAST = 0, 2
_NOTHING, _VALUE, _UNKNOWN = 0, 1, 2
_EXACT = 1 << 53
"""Whole numbers up to here are floats."""
_LOW_BITS = 4095
_LEAST, _MOST = 2.0**-400, 2.0**400
_NEGATIVE_ZERO = -(2**63)


class Place(NamedTuple):
    """Which value: at the share numerator / denominator, which is less than 2^32.

    is_between: on a line between two values; else the value that the share falls on, counted from_above or not.
    of_floats: words are bits of floats.
    """

    numerator: int
    denominator: int
    is_between: bool
    from_above: bool
    of_floats: bool


class Placed(NamedTuple):
    """Where answers go: into one column of results, (n, k), which floats is seen as float64.

    unknown: (n + 1, 4), where 128 bits of rounding do not suffice [element, low word, high word, how many denominators
    the result is above low], from row 1 on; in its first word how many there are.
    """

    results: Int64Table
    floats: Float64Table
    status: Int8Table
    unknown: Int64Table
    column: int


@helper(typed=True)
def _node_at(nodes: Int64Table, tree: int, place: int) -> int:
    """The node of the value at a place, counted from 0."""
    at = tree
    while True:
        smaller = nodes[nodes[at, LEFT], SIZE]
        if place < smaller:
            at = nodes[at, LEFT]
        elif place < smaller + nodes[at, COUNT]:
            return int(at)
        else:
            place -= smaller + nodes[at, COUNT]
            at = nodes[at, RIGHT]


@helper("Tuple((float64, boolean))(float64, float64, float64, float64, int64, int64)")
def _between(
    low: float, low_rest: float, high: float, high_rest: float, part: int, denominator: int
) -> tuple[float, bool]:
    """low + (high - low) * part / denominator, rounded once; False where it cannot be told how.

    low_rest, high_rest: what is to be added to low and high, both whole numbers of 12 bits.
    """
    divisor = float(denominator)
    first, left_out_1 = exact_product(low, divisor - float(part))
    second, left_out_2 = exact_product(high, float(part))
    total, left_out = exact_sum(first, second)
    has_rests = low_rest != 0.0 or high_rest != 0.0
    if denominator == 2 and not has_rests:
        # Halving is exact, or the sum is, of values as small as that.
        return total / 2.0, abs(total) < np.inf
    for value in (low, high):
        if value != 0.0 and not _LEAST < abs(value) < _MOST:
            return 0.0, False
    if left_out == 0.0 and left_out_1 == 0.0 and left_out_2 == 0.0 and not has_rests:
        return total / divisor, True
    quotient = total / divisor
    product, left_out_3 = exact_product(quotient, divisor)
    rest = (total - product) - left_out_3
    error = 0.0
    for more in (left_out, left_out_1, left_out_2, low_rest * (divisor - float(part)), high_rest * float(part)):
        rest, lost = exact_sum(rest, more)
        error += abs(lost)
    correction = rest / divisor
    error = 2.0 * error / divisor
    whole, left_out = exact_product(correction, divisor)
    if whole != rest or left_out != 0.0:
        error += abs(correction) * 2.0**-52
    result, beyond = exact_sum(quotient, correction)
    if error > 0.0:
        error += abs(beyond) * 2.0**-50  # what is less than a bit of beyond would be lost
    return result, result + (beyond + error) == result and result + (beyond - error) == result


@helper(typed=True)
def _answer(group: int, i: int, ordered: OrderedArrays, words: Float64Table, place: Place, to: Placed) -> None:
    """The group's answer, behind element i. words: those of the nodes as floats."""
    nodes, j = ordered.nodes, to.column
    root = ordered.state[group, _ROOT]
    to.results[i, j] = 0
    to.status[i, j] = _NOTHING
    if root == 0:
        return
    n = nodes[root, SIZE]
    numerator, denominator = place.numerator, place.denominator
    if not place.is_between:
        if place.from_above:
            at = min(n - 1, numerator * n // denominator)
        else:
            at = (numerator * n - 1) // denominator if numerator > 0 else np.int64(0)
        word = nodes[_node_at(nodes, root, at), WORD]
        to.results[i, j] = 0 if place.of_floats and word == _NEGATIVE_ZERO else word
        to.status[i, j] = _VALUE
        return
    at = numerator * (n - 1) // denominator
    part = numerator * (n - 1) % denominator
    low = _node_at(nodes, root, at)
    high = low if part == 0 else _node_at(nodes, root, at + 1)
    to.status[i, j] = _VALUE
    low_rest, high_rest = 0.0, 0.0
    if place.of_floats:
        least, greatest = words[low, WORD], words[high, WORD]
        if least == greatest or math.isinf(least) or math.isinf(greatest):
            if least != greatest and math.isinf(least) and math.isinf(greatest):
                to.status[i, j] = _NOTHING
            else:
                to.floats[i, j] = (greatest if math.isinf(greatest) and not math.isinf(least) else least) + 0.0
            return
    else:
        lower, higher = nodes[low, WORD], nodes[high, WORD]
        if lower == higher:
            to.floats[i, j] = float(lower)
            return
        if not -_EXACT < lower < _EXACT:
            low_rest = float(lower & _LOW_BITS)
            lower -= lower & _LOW_BITS
        if not -_EXACT < higher < _EXACT:
            high_rest = float(higher & _LOW_BITS)
            higher -= higher & _LOW_BITS
        least, greatest = float(lower), float(higher)
    result, is_known = _between(least, low_rest, greatest, high_rest, part, denominator)
    to.floats[i, j] = result + 0.0
    if not is_known:
        to.status[i, j] = _UNKNOWN
        to.unknown[0, 0] += 1
        row = to.unknown[0, 0]
        to.unknown[row, 0] = i
        to.unknown[row, 1] = nodes[low, WORD]
        to.unknown[row, 2] = nodes[high, WORD]
        to.unknown[row, 3] = part


@kernel
def treap_quantiles(
    start: int,
    ts: Int64s,
    elements: Valued,
    by: OrderedBy,
    ordered: OrderedArrays,
    words: Float64Table,
    place: Place,
    to: Placed,
) -> int:
    """Take elements in from start on; returns how far it came, to be called again when the pool has grown.

    words: the nodes as float64.
    """
    state = ordered.state
    ids, sign = elements.ids, elements.sign
    n = ids.shape[0]
    first = start
    while first > 0 and first < n and ts[first - 1] == ts[first]:
        first -= 1
    for i in range(start, n):
        group = ids[i]
        if sign[i] != 0:
            if sign[i] < 0:
                take_from_treap(elements, i, by, ordered)
            elif add_to_treap(elements, i, by, ordered) == 0:
                return i
        state[group, _LAST] = i + 1
        if i + 1 < n and ts[i + 1] == ts[i]:
            continue
        for k in range(first, i + 1):
            if state[ids[k], _LAST] == k + 1:
                state[ids[k], _LAST] = 0
                _answer(ids[k], k, ordered, words, place, to)
            else:
                to.results[k, to.column] = 0
                to.status[k, to.column] = _NOTHING
        first = i + 1
    return n
