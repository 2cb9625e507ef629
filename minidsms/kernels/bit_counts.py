"""How many of each group's values have each of the 64 bits: BIT_AND, BIT_OR and BIT_XOR.

Of a group `counts` (cap, 1 + planes) int64 has how many values there are, then the 64 counts by their digits: bit b of
plane p is digit p of the count of bit b. A value that comes or leaves is carried through the planes as by a binary
counter, which takes two of them on average.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.aggregation import NULL, VALUE, Answers
from minidsms.machine_code import Int8s, Int64s, Int64Table, int64, kernel

IN_ALL, IN_ONE, ODD = range(3)
"""Which bits are asked for: those all values have, at least one has, an odd number has."""


class Valued(NamedTuple):
    """Of each element its group, its weight and its value."""

    ids: Int64s
    weight: Int8s
    words: Int64s


@kernel
def count_bits(start: int, elements: Valued, asked: int, counts: Int64Table, to: Answers) -> int:
    """Take elements in and answer behind each; returns how many are done: all, or those before one that may need
    another plane.
    """
    ids, weight, words, j = elements.ids, elements.weight, elements.words, to.column
    planes = counts.shape[1] - 1
    for i in range(start, len(ids)):
        count = counts[ids[i]]
        w = int64(weight[i])
        if w != 0:
            if (count[0] + w) >> planes != 0:
                return i
            count[0] += w
            bits, p = words[i], 1
            while bits != 0:
                plane = count[p]
                count[p] = plane ^ bits
                bits &= plane if w > 0 else ~plane
                p += 1
        n = count[0]
        found = int64(-1) if asked == IN_ALL else int64(0)
        if asked == ODD:
            found = count[1] if planes > 0 else found
        else:
            for p in range(planes):
                if asked == IN_ONE:
                    found |= count[1 + p]
                else:
                    found &= count[1 + p] if n >> p & 1 else ~count[1 + p]
        to.results[i, j] = found if n > 0 else 0
        to.status[i, j] = VALUE if n > 0 else NULL
    return len(ids)
