"""Kernels of screens: rows against the boxes of many filters, row by row. Lee and Lee 2012, sections 3 and 5.1.

A column's values are divided into regions, numbered over all columns of a screen; the first of a column is NULL. A
region has a bitmap of the filters that it cannot refute (qrb). A row's bitmap (GRB) begins with that of its first
column and loses, column by column, what their regions refute; the row is dropped as soon as nothing is left. Which
column comes next says the arrow of the region, if it has one and its column has not been looked at (GEB), else the
first in the order that has not.

    asc.columns   (p, 6) per column: how regions are found (KIND), and where
    asc.direct    regions of consecutive values (KIND DIRECT), counted from the column's first region
    asc.edges     ascending cuts (KIND SEARCHED): a value behind c of them is in region 1 + c
    asc.bits      (regions, words) uint64

Invariant: found pairs (row, filter) are in ascending row; what is found does not depend on order and arrows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.elements import Int32Array, Int64Array
from minidsms.machine_code import helper, int64, kernel, uint64

KIND, BASE, SPAN, PLACE, COUNT, REGION = range(6)
DIRECT, SEARCHED, GIVEN = 0, 1, 2
"""KIND: a table by the value less BASE, up to SPAN; a binary search; the value is the region."""
ROW, FOUND, MICRO = range(3)
"""Words of the state: the next row, pairs found, arrows of regions followed."""


@helper(inline=True)
def _lowest(word: Any) -> Any:
    """The number of the lowest bit set: how many stand below it, counted without a branch."""
    below = (word & (~word + uint64(1))) - uint64(1)
    below = below - ((below >> uint64(1)) & uint64(0x5555555555555555))
    below = (below & uint64(0x3333333333333333)) + ((below >> uint64(2)) & uint64(0x3333333333333333))
    below = (below + (below >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((below * uint64(0x0101010101010101)) >> uint64(56))


@helper
def region_of(columns: Any, direct: Any, edges: Any, c: Any, value: Any) -> Any:
    """The region of a value that is not NULL, counted from the column's first."""
    if columns[c, KIND] == DIRECT:
        at = value - columns[c, BASE]
        if value < columns[c, BASE]:
            at = 0
        elif value - columns[c, SPAN] > columns[c, BASE]:
            at = columns[c, SPAN]
        return int64(direct[columns[c, PLACE] + at])
    if columns[c, KIND] == GIVEN:
        return value
    place = columns[c, PLACE]
    low = 0
    n = columns[c, COUNT]
    while n > 1:
        half = n >> 1
        low += half * int64(edges[place + low + half - 1] <= value)
        n -= half
    return 1 + low + int64(edges[place + low] <= value)


@kernel(
    "void(int64[:,::1], boolean[:,::1], Tuple((int64[:,::1], int32[::1], int64[::1], uint64[:,::1])),"
    " Tuple((int64[::1], int32[::1])), Tuple((uint64[::1], int64[::1], int32[::1], int64[:,::1])),"
    " Tuple((int32[::1], int32[::1])), int64[::1])"
)
def screen_rows(
    keys: Int64Array, present: np.ndarray, asc: Any, sequence: Any, scratch: Any, found: Any, state: Int64Array
) -> None:
    """Go on from state[ROW] until all rows are done, or `found` has no room for what one more may bring.

    keys, present: (p, n) values and whether they are there.  sequence: (order (p,), arrows by region, -1 for none).
    scratch: (GRB, GEB as the row that looked at each column last, the filter of each bit, and by column how often it
    was looked at and how many rows it dropped).  found: (rows, filters).
    """
    columns, direct, edges, bits = asc
    order, arrows = sequence
    alive, looked_by, filters, counts = scratch
    rows, members = found
    words = len(alive)
    k = state[FOUND]
    row = state[ROW]
    n = keys.shape[1]
    micro = 0
    while row < n and k + len(filters) <= len(rows):
        c = order[0]
        at = 0
        is_first = True
        while True:
            region = columns[c, REGION]
            if present[c, row]:
                region += region_of(columns, direct, edges, c, keys[c, row])
            counts[0, c] += 1
            looked_by[c] = row
            left = uint64(0)
            if is_first:
                for w in range(words):
                    alive[w] = bits[region, w]
                    left |= alive[w]
                is_first = False
            else:
                for w in range(words):
                    alive[w] &= bits[region, w]
                    left |= alive[w]
            if left == uint64(0):
                counts[1, c] += 1
                break
            following = arrows[region]
            if following >= 0 and looked_by[following] != row:
                c = int64(following)
                micro += 1
                continue
            while at < len(order) and looked_by[order[at]] == row:
                at += 1
            if at == len(order):
                break
            c = order[at]
        if left != uint64(0):
            for w in range(words):
                word = alive[w]
                while word != uint64(0):
                    rows[k] = row
                    filter_ = filters[(w << 6) + _lowest(word)]
                    members[k] = filter_
                    k += filter_ >= 0
                    word &= word - uint64(1)
        row += 1
    state[ROW] = row
    state[FOUND] = k
    state[MICRO] += micro


@kernel(
    "void(int64[:,::1], boolean[:,::1], Tuple((int64[:,::1], int32[::1], int64[::1], uint64[:,::1])),"
    " int64[:,::1], Tuple((uint64[::1], int64[::1], int32[::1], int64[:,::1])),"
    " Tuple((int32[::1], int32[::1])), int64[::1])"
)
def screen_homes(
    keys: Int64Array, present: np.ndarray, asc: Any, near: Int64Array, scratch: Any, found: Any, state: Int64Array
) -> None:
    """As `screen_rows`, for thousands of filters that stand by their homes: of each column only those words are looked
    at where filters at home there can be that its region admits. GEB has the row's region in each column here.
    """
    columns, direct, edges, bits = asc
    alive, regions, filters, counts = scratch
    rows, members = found
    k = state[FOUND]
    row = state[ROW]
    while row < keys.shape[1] and k + len(filters) <= len(rows):
        for c in range(len(columns)):
            regions[c] = columns[c, REGION]
            if present[c, row]:
                regions[c] += region_of(columns, direct, edges, c, keys[c, row])
            counts[0, c] += 1
        for home in range(len(columns)):
            region = regions[home]
            first = near[region, 0]
            n = near[region, 1] - first
            for i in range(n):
                alive[i] = bits[region, uint64(first + i)]
            for c in range(len(columns)):
                region = regions[c]
                if c != home:
                    for i in range(n):
                        alive[i] &= bits[region, uint64(first + i)]
            for i in range(n):
                word = alive[i]
                while word != uint64(0):
                    rows[k] = row
                    filter_ = filters[((first + i) << 6) + _lowest(word)]
                    members[k] = filter_
                    k += filter_ >= 0
                    word &= word - uint64(1)
        row += 1
    state[ROW] = row
    state[FOUND] = k


@kernel(
    "void(int64[:,::1], boolean[:,::1], Tuple((int64[:,::1], int32[::1], int64[::1])), int64[:,::1])",
)
def regions_of(keys: Int64Array, present: np.ndarray, asc: Any, out: Int64Array) -> None:
    """out[c, i]: the region of row i in column c, numbered over all columns."""
    columns, direct, edges = asc
    for c in range(len(keys)):
        for i in range(keys.shape[1]):
            region = columns[c, REGION]
            if present[c, i]:
                region += region_of(columns, direct, edges, c, keys[c, i])
            out[c, i] = region


@kernel("void(int32[::1], int32[::1], int64, int64[::1], int32[::1])")
def by_member(rows: Int32Array, members: Int32Array, n: int, starts: Int64Array, out: Int32Array) -> None:
    """A stable counting sort of n pairs: out has the rows of member m from starts[m] to starts[m + 1].

    starts: (members + 1,), overwritten.
    """
    starts[:] = 0
    for i in range(n):
        starts[members[i]] += 1
    total = 0
    for m in range(len(starts)):
        count = starts[m]
        starts[m] = total
        total += count
    for i in range(n):
        out[starts[members[i]]] = rows[i]
        starts[members[i]] += 1
    for m in range(len(starts) - 1, 0, -1):
        starts[m] = starts[m - 1]
    starts[0] = 0


@kernel("void(uint64[:,::1], int64[::1], int64[::1], int64[::1])")
def set_bits(bits: np.ndarray, filters: Int64Array, first: Int64Array, last: Int64Array) -> None:
    """Set the bit of filters[i] in the regions from first[i] to last[i]."""
    for i in range(len(filters)):
        w = filters[i] >> 6
        bit = uint64(1) << uint64(filters[i] & 63)
        for region in range(first[i], last[i] + 1):
            bits[region, w] |= bit
