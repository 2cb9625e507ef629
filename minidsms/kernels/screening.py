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
from minidsms.machine_code import helper, int32, int64, kernel, uint64

KIND, BASE, SPAN, PLACE, COUNT, REGION = range(6)
DIRECT, SEARCHED, GIVEN = 0, 1, 2
"""KIND: a table by the value less BASE, up to SPAN; a binary search; the value is the region."""
ROW, FOUND, MICRO, HOME, WORDS = range(5)
"""Of the state: the next row, pairs found, arrows of regions followed; of home lists the next home, and words of
bitmaps looked at."""
BLOCK = 4
"""Words of bitmaps that home lists look at together."""


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


@helper
def _is_in(asked: Any, first: Any, end: Any, regions: Any, row: Any) -> Any:
    """1 if a row lies in a box that asks what stands in these lines, else 0; no branch depends on it."""
    inside = int64(1)
    i = int64(first)
    while i < end:
        region = regions[asked[i, 0], row]
        low = i
        n = int64(asked[i, 3])
        i += n
        while n > 1:
            half = n >> 1
            low += half * int64(asked[low + half, 1] <= region)
            n -= half
        inside &= int64(region >= asked[low, 1]) & int64(region <= asked[low, 2])
    return inside


@kernel(
    "void(int32[:,::1], int32[:,::1], Tuple((int64[:,::1], int32[:,::1], uint64[::1], uint64[::1], int32[::1],"
    " int32[:,::1])), int32[::1], Tuple((int32[::1], int32[::1])), int64[::1])"
)
def screen_homes(
    regions: Int32Array, groups: Int32Array, lists: Any, filters: Int32Array, found: Any, state: Int64Array
) -> None:
    """Go on from state[HOME] and state[ROW] until all homes are done, or `found` has no room for what one more row may
    bring there: home by home, for what stands at one stays in the cache then. Of a home those blocks of bitmaps are
    looked at where filters are that the row's region admits; whoever all columns' groups admit is compared.

    regions, groups: (p, n) of the rows.  lists: see `screens.homes`.  filters: of each bit.  found: (rows, filters),
    those of each filter in ascending row.
    """
    homes, near, packed, bits, starts, asked = lists
    rows, members = found
    k = state[FOUND]
    home = state[HOME]
    row = state[ROW]
    looked = 0
    while home < len(regions):
        first = homes[home, 0]
        words = homes[home, 1]
        compared = k
        while words > 0 and row < regions.shape[1] and k + 64 * words <= len(rows):
            region = regions[home, row]
            at = int64(near[region, 0])
            word = int64(near[region, 1])
            end = word + near[region, 2]
            looked += near[region, 2]
            while word < end:
                w0 = packed[uint64(at)]
                w1 = packed[uint64(at + 1)]
                w2 = packed[uint64(at + 2)]
                w3 = packed[uint64(at + 3)]
                for c in range(len(regions)):
                    if c != home:
                        line = homes[home, 2] + groups[c, row] * words + word
                        w0 &= bits[uint64(line)]
                        w1 &= bits[uint64(line + 1)]
                        w2 &= bits[uint64(line + 2)]
                        w3 &= bits[uint64(line + 3)]
                place = (first + word) << 6
                for _ in range(BLOCK):
                    while w0 != uint64(0):
                        rows[k] = row
                        members[k] = place + _lowest(w0)
                        k += 1
                        w0 &= w0 - uint64(1)
                    w0 = w1
                    w1 = w2
                    w2 = w3
                    w3 = uint64(0)
                    place += 64
                at += BLOCK
                word += BLOCK
            row += 1
        admitted = k
        k = compared
        for i in range(compared, admitted):
            bit = members[i]
            filter_ = filters[bit]
            rows[k] = rows[i]
            members[k] = filter_
            k += _is_in(asked, starts[bit], starts[bit + 1], regions, rows[i]) & int64(filter_ >= 0)
        if words > 0 and row < regions.shape[1]:
            break
        row = 0
        home += 1
    state[HOME] = home
    state[ROW] = row
    state[FOUND] = k
    state[WORDS] += looked


@kernel("void(int64[:,::1], boolean[:,::1], Tuple((int64[:,::1], int32[::1], int64[::1])), int32[:,::1])")
def regions_of(keys: Int64Array, present: np.ndarray, tables: Any, out: Int32Array) -> None:
    """out[c, i]: the region of row i in column c, numbered over all columns."""
    columns, direct, edges = tables
    for c in range(len(keys)):
        for i in range(keys.shape[1]):
            region = columns[c, REGION]
            if present[c, i]:
                region += region_of(columns, direct, edges, c, keys[c, i])
            out[c, i] = region


@kernel("int64(int32[::1], int32[::1], int64, int64[::1], int64[:,::1], int32[::1])")
def by_member(
    rows: Int32Array, members: Int32Array, n: int, counts: Int64Array, given: Int64Array, out: Int32Array
) -> int:
    """A stable counting sort of n pairs by member: how many have rows. given: (3, n), who they are, in the order in
    which they come first, where in `out` their rows begin, and how many these are.

    counts: by member, zeros before and after.  O(n), however many members there are.
    """
    found = 0
    for i in range(n):
        member = members[i]
        if counts[member] == 0:
            given[0, found] = member
            found += 1
        counts[member] += 1
    total = 0
    for g in range(found):
        member = given[0, g]
        given[1, g] = total
        given[2, g] = counts[member]
        total += counts[member]
        counts[member] = given[1, g]
    for i in range(n):
        out[counts[members[i]]] = rows[i]
        counts[members[i]] += 1
    for g in range(found):
        counts[given[0, g]] = 0
    return found


@kernel("void(uint64[:,::1], int64[::1], int64[::1], int64[::1])")
def set_bits(bits: np.ndarray, filters: Int64Array, first: Int64Array, last: Int64Array) -> None:
    """Set the bit of filters[i] in the regions from first[i] to last[i]."""
    for i in range(len(filters)):
        w = filters[i] >> 6
        bit = uint64(1) << uint64(filters[i] & 63)
        for region in range(first[i], last[i] + 1):
            bits[region, w] |= bit


@kernel("void(int32[:,::1], int64[::1], int64[::1], int64[::1])")
def span_blocks(near: Int32Array, filters: Int64Array, first: Int64Array, last: Int64Array) -> None:
    """near[region, 1:]: the first word of the first block with a bit of filters[i] in the regions from first[i] to
    last[i], and how many words there are up to the end of the last such block; 0 where there is none.
    """
    for i in range(len(filters)):
        w = int32((filters[i] >> 6) & ~(BLOCK - 1))
        for region in range(first[i], last[i] + 1):
            if near[region, 2] == 0:
                near[region, 1] = w
                near[region, 2] = BLOCK
            elif w < near[region, 1]:
                near[region, 2] += near[region, 1] - w
                near[region, 1] = w
            elif w >= near[region, 1] + near[region, 2]:
                near[region, 2] = w - near[region, 1] + BLOCK


@kernel("void(int32[:,::1], uint64[::1], int64[::1], int64[::1], int64[::1])")
def set_packed(near: Int32Array, packed: np.ndarray, filters: Int64Array, first: Int64Array, last: Int64Array) -> None:
    """As `set_bits`, where a region's words stand from near[region, 0] on and begin with the word near[region, 1]."""
    for i in range(len(filters)):
        w = filters[i] >> 6
        bit = uint64(1) << uint64(filters[i] & 63)
        for region in range(first[i], last[i] + 1):
            packed[near[region, 0] + w - near[region, 1]] |= bit
