"""Whole numbers as lines of text: what a CSV file of them is made of.

Arrow makes a text of every value, then lines of the texts; here the digits go straight to their place, which takes a
third of the time. docs/sinks.md has the format: numbers in decimal, commas between, nothing for NULL, a newline at the
end.
"""

from __future__ import annotations

from minidsms.machine_code import BoolTable, Int64Table, Uint8s, kernel, uint64

MOST_BYTES = 21
"""Of a value: a sign, nineteen digits, and what ends it."""

_COMMA, _NEWLINE, _MINUS, _ZERO = 44, 10, 45, 48


@kernel
def write_lines(values: Int64Table, present: BoolTable, out: Uint8s) -> int:
    """Write a line per row of values.T; returns how many bytes. present: (k, n), or (0, 0) where no value is NULL.

    out: room for MOST_BYTES a value is room enough.
    """
    k, n = values.shape
    has_nulls = len(present) > 0
    at = 0
    for row in range(n):
        for c in range(k):
            if not has_nulls or present[c, row]:
                value = values[c, row]
                left = uint64(value)
                if value < 0:
                    out[at] = _MINUS
                    at += 1
                    left = uint64(0) - left
                digits = 1
                bound = uint64(10)
                while left >= bound:  # at most 10 ** 19, which is beyond every value and fits
                    digits += 1
                    bound *= uint64(10)
                place = at + digits
                at = place
                while digits > 0:
                    place -= 1
                    rest = left // uint64(10)
                    out[place] = _ZERO + (left - rest * uint64(10))
                    left = rest
                    digits -= 1
            out[at] = _COMMA if c < k - 1 else _NEWLINE
            at += 1
    return at
