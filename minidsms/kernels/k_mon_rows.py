"""The rows of a reduced join: windows that hold only some of their rows, whose nodes stand in the rows themselves.

All rows stand in one flat array, the nodes of a join's windows (`kernels.join_layout`): stream i has rows of
`strides[i]` words from `begins_at` on, numbered by slots in the order of arrival, [lo, hi) in the window. A row is its
instant, a node for each side, where the window counts rows its arrival number, counters, and the words kept. An edge of
the tree has two *sides*, s and s ^ 1: each is a key of one stream, the edge's columns. A side of one column has its
word as the tag, so that it stands in the row once. Rows of relations leave from the middle: their stream is a bag, and
one more key, of all words, finds a row that is equal to the one deleted.

Babu 2005, section 6.3; docs/design, point 3.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.chains import Chain, first_of_key, link_slot, next_slot, older
from minidsms.kernels.join_layout import NO_LIMIT
from minidsms.kernels.k_mon_keys import RowArrays, key_of
from minidsms.kernels.links import has_link
from minidsms.machine_code import Int64s, helper, int64, kernel, uint64

UNBOUNDED, RANGE, ROWS, CHANGES = 0, 1, 2, 3
"""Clocks. By CHANGES rows leave when deletions say so, equal ones in any order."""

FIRST_LINK = 2
"""The place in a row of its first node's second word. UNLINKED there, as `kernels.links` have it: the row stands in no
bucket, and is not needed."""
DELETION = 2
"""As that word, of what waits: it is no row, but says that one equal to it leaves."""


@helper(inline=True)
def row_at(rows: RowArrays, i: int, slot: int) -> Any:
    """Where the row in a slot of stream i begins."""
    return rows.streams[uint64(i)].begins_at + slot * rows.strides[uint64(i)]


@helper(inline=True)
def stands(rows: RowArrays, i: int, slot: int) -> Any:
    """The row in a slot of stream i is needed, if it is in its window."""
    return has_link(rows.windows.nodes, row_at(rows, i, slot) + FIRST_LINK - 1)


@helper(inline=True)
def agree(rows: RowArrays, a: int, s: int, b: int, t: int) -> Any:
    """Whether the columns of side s of the row at a are those of side t of the row at b, which has the same tag."""
    cells, parts, sides = rows.windows.nodes, rows.parts, rows.sides
    equal = True
    first, other = sides[s].part, sides[t].part
    count = sides[s].parts_end - first
    for p in range(count if count > 1 else 0):
        equal &= cells[a + parts[first + p]] == cells[b + parts[other + p]]
    return equal


@helper(inline=True)
def chain_of_side(rows: RowArrays, t: int, low: int) -> Any:
    """Where rows with a tag of side t are found, among the slots from `low` on."""
    i = rows.sides[t].stream
    return Chain(rows.windows.keys[rows.sides[t].key].nodes, rows.strides[i], int64(-1), low, int64(NO_LIMIT))


@helper(inline=True)
def next_equal(rows: RowArrays, at: int, s: int, t: int, chain: Chain, tag: int, slot: int) -> Any:
    """From this slot on the first whose side t has the columns of side s of the row at `at`, which has this tag; below
    chain.low: none.
    """
    cells, i = rows.windows.nodes, rows.sides[t].stream
    slot, _ = next_slot(cells, chain, tag, slot)
    while slot >= chain.low and not agree(rows, at, s, row_at(rows, i, slot), t):
        slot, _ = next_slot(cells, chain, tag, older(cells, chain, slot))
    return slot


@helper(inline=True)
def first_equal(rows: RowArrays, at: int, s: int, t: int, chain: Chain) -> Any:
    """The newest such slot."""
    tag = rows.windows.nodes[at + rows.sides[s].tag_at]
    newest = first_of_key(rows.windows, rows.sides[t].stream, rows.sides[t].key, tag)
    return next_equal(rows, at, s, t, chain, tag, newest)


@kernel
def link_all(rows: RowArrays) -> None:
    """Fill empty buckets with the rows of all windows."""
    inputs = rows.windows.inputs
    for i in range(len(inputs)):
        for slot in range(inputs[i].lo, inputs[i].hi):
            if stands(rows, i, slot):
                link_slot(rows.windows, i, slot, rows.strides)


@kernel
def find_held(rows: RowArrays, s: int, keys: Int64s, places: Int64s, wanted: Int64s, slots: Int64s) -> int:
    """Write the slots of the rows held of side s's stream that have keys[x] by the side, and wanted[x] by the columns
    at `places`, into `slots`; returns how many there are, which may be more than fit."""
    cells, i = rows.windows.nodes, rows.sides[s].stream
    chain = chain_of_side(rows, s, rows.windows.inputs[i].lo)
    count = int64(0)
    for x in range(len(keys)):
        slot, _ = next_slot(cells, chain, keys[x], first_of_key(rows.windows, i, rows.sides[s].key, keys[x]))
        while slot >= chain.low:
            if key_of(cells, row_at(rows, i, slot), places, 0, len(places)) == wanted[x]:
                if count < len(slots):
                    slots[count] = slot
                count += 1
            slot, _ = next_slot(cells, chain, keys[x], older(cells, chain, slot))
    return count
