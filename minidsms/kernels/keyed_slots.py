"""The rows of a relation in slots, found by key: how the left side of a semi-join stands in arrays.

`nodes[slot & mask]` is (tag, next): the tag is the key itself where it is one word, else its hash (then `words` holds
the key's words first, and they are compared); next leads to an older slot of the bucket. A walk through a bucket begins
at its newest slot and ends at the first slot below `lo`:
  - a FIFO side numbers its slots by arrival (a ring); deletion is lo += 1 and leaves the buckets alone, because
    whatever lies below lo ends a walk;
  - a bag side reuses slots and has lo = 0, ends being -1. Its nodes are (tag, next, previous, row hash, next of equal
    row hash), so that a deletion finds its row and unlinks it without a walk along a hot key.
Rows are written into their slots before the kernel runs; it only links them. Slots that leave stay readable until the
caller has gathered what was found.

docs/design, point 3; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, kernel

LO, HI, POSITION, INSERTED, FREED, MASK, SHIFT, FIFO, STATE_WORDS = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""A side's state: a FIFO side's [lo, hi); elements, insertions, deletions done of a batch; slot mask, bucket shift."""

UNLINKED = -2
"""As a node's next: the row has a NULL key and stands in no bucket. As a bag node's previous: the slot is free."""

KEYED, KEYLESS = 1, 2
"""Signs of insertions: KEYLESS has a NULL key and matches nothing."""


@helper("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64)")
def link(heads: Int64Array, nodes: Int64Array, slot: int, tag: int, mask: int, shift: int) -> None:
    """Put a slot of a FIFO side at the head of its bucket."""
    at = slot & mask
    b = bucket(tag, shift)
    nodes[at, 0] = tag
    nodes[at, 1] = heads[0, b]
    heads[0, b] = slot


@helper("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64, boolean)")
def link_bag(
    heads: Int64Array, nodes: Int64Array, slot: int, tag: int, row_tag: int, shift: int, is_keyed: bool
) -> None:
    """Put a slot of a bag side at the head of its key's (if it has one) and its row's bucket."""
    nodes[slot, 0] = tag
    nodes[slot, 1] = UNLINKED
    nodes[slot, 2] = -1
    if is_keyed:
        b = bucket(tag, shift)
        older = heads[0, b]
        nodes[slot, 1] = older
        if older >= 0:
            nodes[older, 2] = slot
        heads[0, b] = slot
    b = bucket(row_tag, shift)
    nodes[slot, 3] = row_tag
    nodes[slot, 4] = heads[1, b]
    heads[1, b] = slot


@helper("int64(int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64, int64, int64)")
def unlink_bag(
    heads: Int64Array, nodes: Int64Array, words: Int64Array, rows: Int64Array, i: int, row_tag: int, shift: int
) -> Any:
    """Take a row equal to rows[i] out of both its buckets; returns its slot, or -2 when none is held."""
    width = rows.shape[1]
    b = bucket(row_tag, shift)
    newer = int64(-1)
    slot: np.int64 = heads[1, b]
    while slot >= 0:
        if nodes[slot, 3] == row_tag:
            equal = True
            for j in range(width):
                if words[slot, j] != rows[i, j]:
                    equal = False
                    break
            if equal:
                break
        newer = slot
        slot = nodes[slot, 4]
    if slot < 0:
        return int64(-2)
    if newer < 0:
        heads[1, b] = nodes[slot, 4]
    else:
        nodes[newer, 4] = nodes[slot, 4]
    newer = nodes[slot, 2]
    older = nodes[slot, 1]
    if older != UNLINKED:
        if newer < 0:
            heads[0, bucket(nodes[slot, 0], shift)] = older
        else:
            nodes[newer, 1] = older
        if older >= 0:
            nodes[older, 2] = newer
    nodes[slot, 2] = UNLINKED
    return slot


@kernel("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64)")
def relink(heads: Int64Array, nodes: Int64Array, first: int, last: int, mask: int, shift: int) -> None:
    """Fill empty buckets with the slots [first, last), whose tags stand in `nodes`."""
    is_bag = nodes.shape[1] > 2
    for slot in range(first, last):
        if is_bag:
            link_bag(heads, nodes, slot, nodes[slot, 0], nodes[slot, 3], shift, nodes[slot, 1] != UNLINKED)
        elif nodes[slot & mask, 1] != UNLINKED:
            link(heads, nodes, slot, nodes[slot & mask, 0], mask, shift)


class Side(NamedTuple):
    """A side, and the elements of a batch. ts, sign (n,).  tags: of the insertions.  heads, nodes, words: see above.

    Of bag sides: rows (n, w) and their hashes, slots for the insertions, and room for those that are freed.
    """

    ts: Int64s
    sign: Int8s
    tags: Int64s
    heads: Int64Table
    nodes: Int64Table
    words: Int64Table
    rows: Int64Table
    row_tags: Int64s
    fresh: Int64s
    freed: Int64s
