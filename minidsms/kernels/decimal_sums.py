"""Sums of DECIMALs, exact whatever came and left before.

Of a group `sums` has a row of four words: how many values are there, and the sum of their digits without the point in
192 bits, low, middle, high, in two's complement: no more can come together of values of 38 digits. A value whose code
is computed is added here, and a sum that has a computed code answered. At any other the kernel stops, for codes stand
in the dictionary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.aggregation import NULL, VALUE, Answers
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, kernel, uint64
from minidsms.values.coded import CODE_OF_ZERO, MOST_COMPUTED

COUNT, LOW, MIDDLE, HIGH, SUM_WORDS = range(5)


class Summed(NamedTuple):
    """Of each element its group, its weight and the code of its value."""

    ids: Int64s
    weight: Int8s
    codes: Int64s


@helper(inline=True)
def add_digits(sum_: Int64s, digits: int) -> Any:
    """Carries go from word to word; those above are all zeros, or all ones of a number below 0."""
    above = digits >> 63
    low = uint64(sum_[LOW]) + uint64(digits)
    carry = int64(low < uint64(digits))
    middle = uint64(sum_[MIDDLE]) + uint64(above)
    over = int64(middle < uint64(above))
    carried = middle + uint64(carry)
    over += int64(carried < middle)
    sum_[LOW] = int64(low)
    sum_[MIDDLE] = int64(carried)
    sum_[HIGH] += above + over


@kernel
def sum_decimals(start: int, elements: Summed, sums: Int64Table, answers: Answers) -> int:
    """Take elements in, and answer behind each. Returns how many are done, or, where the value of an element has no
    computed code, that one; -1 - i where element i is taken in, and the sum behind it has none.
    """
    ids, weight, codes = elements.ids, elements.weight, elements.codes
    results, status, j = answers.results, answers.status, answers.column
    stopped = len(ids)
    for i in range(start, len(ids)):
        sum_ = sums[ids[i]]
        way = int64(weight[i])
        if way != 0:
            if codes[i] > 0:
                stopped = i
                break
            sum_[COUNT] += way
            add_digits(sum_, way * (codes[i] - CODE_OF_ZERO))
        low = sum_[LOW]
        if sum_[COUNT] == 0:
            results[i, j] = 0
            status[i, j] = NULL
        elif sum_[MIDDLE] == low >> 63 and sum_[HIGH] == low >> 63 and -MOST_COMPUTED <= low <= MOST_COMPUTED:
            results[i, j] = low + CODE_OF_ZERO
            status[i, j] = VALUE
        else:
            stopped = -1 - i
            break
    return stopped
