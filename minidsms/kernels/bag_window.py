"""Rows in slots with a free list, found again by what they hold: an input of an n-way join that is a bag.

`row_nodes[slot]` has 32 bits of the row's hash above 32 of the next slot of its bucket; where the slot holds no row it
is FREE. Equal rows are interchangeable, so a deletion takes the first that is equal. The index by key is that of
`join_layout`, which links and unlinks these slots instant by instant; here elements only get their slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.links import LOWER, UNLINKED, WAITING, set_link
from minidsms.machine_code import Int8s, Int32s, Int64s, Int64Table, helper, int32, int64, kernel

FREE = -2
"""As a row's node: the slot holds no row."""

MISSING = -1
"""What `take_rows` returns where a deletion cancels no row that is held."""


class BagRows(NamedTuple):
    """The rows of a bag. words: (slots, width).  nodes: of the slots.  heads: of the buckets, a power of two of them.
    free[:top]: the slots that hold no row.
    """

    words: Int64Table
    nodes: Int64s
    heads: Int32s
    free: Int32s


@helper(inline=True)
def _next(row_node: int) -> Any:
    return int64(int32(row_node))


@helper(inline=True)
def _node(bits: int, following: int) -> Any:
    """bits: of the hash."""
    return (bits << 32) | (following & LOWER)


@kernel
def take_rows(
    sign: Int8s, rows: Int64Table, hashes: Int64s, bag: BagRows, top: int, places: Int64s, freed: Int64s
) -> int:
    """Give each element its slot, in the order they come: places[k] is where rows[k] is put, or was held.

    freed: takes the slots that deletions leave.  Returns the new top.
    """
    words, row_nodes, heads, free = bag
    mask = len(heads) - 1
    width = rows.shape[1]
    gone = 0
    for k in range(len(sign)):
        bits = int64(int32(hashes[k]))
        b = bits & mask
        if sign[k] > 0:
            top -= 1
            slot = int64(free[top])
            for c in range(width):
                words[slot, c] = rows[k, c]
            row_nodes[slot] = _node(bits, int64(heads[b]))
            heads[b] = int32(slot)
        else:
            newer, slot = int64(-1), int64(heads[b])
            while slot >= 0:
                equal = row_nodes[slot] >> 32 == bits
                for c in range(width):
                    equal &= words[slot, c] == rows[k, c]
                if equal:
                    break
                newer, slot = slot, _next(row_nodes[slot])
            if slot < 0:
                return int64(MISSING)
            if newer < 0:
                heads[b] = int32(row_nodes[slot])
            else:
                row_nodes[newer] = _node(row_nodes[newer] >> 32, row_nodes[slot])
            row_nodes[slot] = FREE
            freed[gone] = slot
            gone += 1
        places[k] = slot
    return int64(top)


@kernel("void(int32[::1], int64[::1])")
def rehash(heads, row_nodes):  # type: ignore[no-untyped-def]
    """Fill empty buckets with the rows held."""
    mask = len(heads) - 1
    for slot in range(len(row_nodes)):
        if row_nodes[slot] != FREE:
            bits = row_nodes[slot] >> 32
            row_nodes[slot] = _node(bits, int64(heads[bits & mask]))
            heads[bits & mask] = int32(slot)


@kernel("int64(int64[:, ::1], int64, int64, int64, int64[::1], int64[::1], int64)")
def take_key_words(words, column, mask_word, bit, slots, nodes, base):  # type: ignore[no-untyped-def]
    """Write a column of the rows in these slots into a key's nodes; returns how many are NULL."""
    nulls = 0
    for slot in slots:
        nodes[base + 2 * slot] = words[slot, column]
        set_link(nodes, base + 2 * slot, WAITING)
        if (words[slot, mask_word] >> bit) & 1:
            set_link(nodes, base + 2 * slot, UNLINKED)
            nulls += 1
    return int64(nulls)
