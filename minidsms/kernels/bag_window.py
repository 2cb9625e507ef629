"""Rows in slots with a free list, found again by what they hold: an input of an n-way join that is a bag.

`row_nodes[slot]` has 32 bits of the row's hash above 32 of the next slot of its bucket; where the slot holds no row it
is FREE. Equal rows are interchangeable, so a deletion takes the first that is equal. The index by key is that of
`join_layout`, which links and unlinks these slots instant by instant; here elements only get their slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.hashing import hash_of_row
from minidsms.kernels.join_layout import InstantRun
from minidsms.kernels.links import LOWER, UNLINKED, WAITING, set_link
from minidsms.kernels.window_index import KeysOfInput, runs_taken
from minidsms.machine_code import Int8s, Int32s, Int64s, Int64Table, Record, Rows, helper, int32, int64, kernel

FREE = -2
"""As a row's node: the slot holds no row."""

TAKEN, MISSING = range(2)
"""What `take_rows` returns: all elements have their slots; a deletion cancels no row that is held."""


class BagSlots(Record):
    """Of a bag: free[:top] are the slots that may be used, the last `freed` of `free`, from the end on, those that were
    left since what was found was gathered last. held: how many rows there are.
    """

    top: int
    freed: int
    held: int


class BagRows(NamedTuple):
    """The rows of a bag. words: (slots, width).  nodes: of the slots.  heads: of the buckets, a power of two of them.
    free: of as many slots, see `BagSlots`.  seen_nulls: the bits of the columns that have had a NULL, in as
    many words as a row has for them.
    """

    words: Int64Table
    nodes: Int64s
    heads: Int32s
    free: Int32s
    figures: BagSlots
    seen_nulls: Int64s


@helper(inline=True)
def _next(row_node: int) -> Any:
    return int64(int32(row_node))


@helper(inline=True)
def _node(bits: int, following: int) -> Any:
    """bits: of the hash."""
    return (bits << 32) | (following & LOWER)


@helper(inline=True)
def _take_word(bag: BagRows, slot: int, j: int, nodes: Int64s, at: int) -> Any:
    """Copy word j of the row in a slot into the node at a place; whether it is NULL."""
    words, masks = bag.words, len(bag.seen_nulls)
    nodes[at] = words[slot, j]
    is_null = (words[slot, words.shape[1] - masks + j // 62] >> (j % 62)) & 1 != 0
    set_link(nodes, at, UNLINKED if is_null else WAITING)
    return is_null


@kernel
def take_rows(
    ts: Int64s, sign: Int8s, has_signs: bool, rows: Int64Table, bag: BagRows, of: KeysOfInput, places: Int64s,
    first: int, runs: Rows[InstantRun],
) -> int:  # fmt: skip
    """Give each element its slot, in the order they come: places[first + k] is where rows[k] is put, or was held.

    ts: by which runs are counted (`window_index.runs_taken`), or empty.
    """
    columns, figures, nodes, keys = of
    words, row_nodes, heads, free, of_bag, seen_nulls = bag
    mask, width, masks = len(heads) - 1, rows.shape[1], len(seen_nulls)
    top, freed, came = of_bag.top, of_bag.freed, int64(0)
    if len(ts) > 0:
        runs_taken(ts, sign, has_signs, runs, figures)
    for k in range(len(rows)):
        bits = int64(int32(hash_of_row(rows, k)))
        b = bits & mask
        if not has_signs or sign[k] > 0:
            top -= 1
            came += 1
            slot = int64(free[top])
            for c in range(width):
                words[slot, c] = rows[k, c]
            for m in range(masks):
                seen_nulls[m] |= rows[k, width - masks + m]
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
            freed += 1
            free[len(free) - freed] = slot
        places[first + k] = slot
    of_bag.held += came - (len(rows) - came)
    of_bag.top, of_bag.freed = top, freed
    some_null = False
    for p in range(len(columns)):
        base, j = keys[columns[p, 0]].nodes, columns[p, 1]
        for k in range(len(rows)):
            if not has_signs or sign[k] > 0:
                slot = places[first + k]
                some_null |= _take_word(bag, slot, j, nodes, base + 2 * slot)
    if some_null:
        figures.has_nulls = 1
    return int64(TAKEN)


@kernel
def rehash(heads: Int32s, row_nodes: Int64s) -> None:
    """Fill empty buckets with the rows held."""
    mask = len(heads) - 1
    for slot in range(len(row_nodes)):
        if row_nodes[slot] != FREE:
            bits = row_nodes[slot] >> 32
            row_nodes[slot] = _node(bits, int64(heads[bits & mask]))
            heads[bits & mask] = int32(slot)


@kernel
def take_key(bag: BagRows, j: int, slots: Int64s, nodes: Int64s, base: int) -> int:
    """Write word j of the rows in these slots into a key's nodes; returns how many are NULL."""
    nulls = int64(0)
    for slot in slots:
        nulls += int64(_take_word(bag, slot, j, nodes, base + 2 * slot))
    return nulls
