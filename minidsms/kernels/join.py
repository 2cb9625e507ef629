"""Joining two varying relations, element by element in ts order.

A side is a table of slots and buckets of them by key. `nodes[slot & mask]` is (tag, next): the tag is the key itself where it
is one word, else its hash (then `words` holds the key's words first, and they are compared); next leads to an older slot of
the bucket. Probing walks a bucket from its newest slot and ends at the first slot below `lo`:
  - a FIFO side numbers its slots by arrival (a ring); deletion is lo += 1 and leaves the buckets alone, because whatever
    lies below lo ends a walk;
  - a bag side reuses slots and has lo = 0, ends being -1. Its nodes are (tag, next, previous, row hash, next of equal row
    hash), so that a deletion finds its row and unlinks it without a walk along a hot key.
Rows are written into their slots before the kernel runs; it only links them. Slots that leave stay readable until the caller
has gathered the pairs found.  docs/design, point 3; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from minidsms.elements import Int8Array, Int64Array

LO, HI, POSITION, INSERTED, FREED, MASK, SHIFT, FIFO, STATE_WORDS = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""A side's state: [lo, hi) of a FIFO side; elements, insertions and deletions done of the batch; slot mask, bucket shift."""

PENDING_SIDE, PENDING_OWN, PENDING_NEXT, INSPECTED, STATUS = 0, 1, 2, 3, 4
"""The row of the joint state: the walk that a full buffer interrupted, slots inspected so far, and how the call ended."""

DONE, FULL, MISSING = 0, 1, 2
"""The batch is joined; the pair buffer is full: call again; a deletion cancels no row that is held."""

UNLINKED = -2
"""As a FIFO node's next: the row has a NULL key and stands in no bucket. As a bag node's previous: the slot is free."""

KEYED, KEYLESS = 1, 2
"""Signs of insertions: KEYLESS has a NULL key and matches nothing."""


@njit("int64(int64, int64)", cache=True, nogil=True, inline="always")
def _bucket(tag: int, shift: int) -> int:
    h = uint64(tag)
    h ^= h >> uint64(32)
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(shift))


@njit("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64)", cache=True, nogil=True)
def _link(heads: Int64Array, nodes: Int64Array, slot: int, tag: int, mask: int, shift: int) -> None:
    """Put a slot of a FIFO side at the head of its bucket."""
    at = slot & mask
    b = _bucket(tag, shift)
    nodes[at, 0] = tag
    nodes[at, 1] = heads[0, b]
    heads[0, b] = slot


@njit("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64)", cache=True, nogil=True)
def _link_bag(heads: Int64Array, nodes: Int64Array, slot: int, tag: int, row_tag: int, shift: int) -> None:
    """Put a slot of a bag side at the head of its key's and its row's bucket."""
    b = _bucket(tag, shift)
    older = heads[0, b]
    nodes[slot, 0] = tag
    nodes[slot, 1] = older
    nodes[slot, 2] = -1
    if older >= 0:
        nodes[older, 2] = slot
    heads[0, b] = slot
    b = _bucket(row_tag, shift)
    nodes[slot, 3] = row_tag
    nodes[slot, 4] = heads[1, b]
    heads[1, b] = slot


@njit(
    "int64(int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64, int64, int64)",
    cache=True,
    nogil=True,
)
def _unlink_bag(
    heads: Int64Array, nodes: Int64Array, words: Int64Array, rows: Int64Array, i: int, row_tag: int, shift: int
) -> int:
    """Take a row equal to rows[i] out of both its buckets; returns its slot, or -1 when none is held."""
    width = rows.shape[1]
    b = _bucket(row_tag, shift)
    newer = int64(-1)
    slot = heads[1, b]
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
        return slot
    if newer < 0:
        heads[1, b] = nodes[slot, 4]
    else:
        nodes[newer, 4] = nodes[slot, 4]
    newer = nodes[slot, 2]
    older = nodes[slot, 1]
    if newer < 0:
        heads[0, _bucket(nodes[slot, 0], shift)] = older
    else:
        nodes[newer, 1] = older
    if older >= 0:
        nodes[older, 2] = newer
    nodes[slot, 2] = UNLINKED
    return slot


@njit("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64)", cache=True, nogil=True)
def relink(heads: Int64Array, nodes: Int64Array, first: int, last: int, mask: int, shift: int) -> None:
    """Fill empty buckets with the slots [first, last), whose tags stand in `nodes`."""
    is_bag = nodes.shape[1] > 2
    for slot in range(first, last):
        if is_bag:
            _link_bag(heads, nodes, slot, nodes[slot, 0], nodes[slot, 3], shift)
        elif nodes[slot & mask, 1] != UNLINKED:
            _link(heads, nodes, slot, nodes[slot & mask, 0], mask, shift)


_SIDE = (
    "Tuple((int64[::1], int8[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1],"
    " int64[:, ::1], int64[::1], int64[::1], int64[::1]))"
)


@njit(f"int64({_SIDE}, int64[::1], int64, int64, int64)", cache=True, nogil=True, inline="always")
def _enter(side, state, i, insert_only, sign):  # type: ignore[no-untyped-def]
    """Let element i of a side in or out; returns its slot if it is to be probed, -1 if not, -2 if it cancels nothing."""
    _, _, tags, heads, nodes, words, rows, row_tags, fresh, freed = side
    if sign > 0:
        k = state[INSERTED]
        state[INSERTED] = k + 1
        if state[FIFO] != 0:
            slot = state[HI]
            state[HI] = slot + 1
            if sign == KEYLESS:
                nodes[slot & state[MASK], 1] = UNLINKED
                return int64(-1)
            _link(heads, nodes, slot, tags[k], state[MASK], state[SHIFT])
            return slot
        slot = fresh[k]
        _link_bag(heads, nodes, slot, tags[k], row_tags[i], state[SHIFT])
        return slot
    if state[FIFO] != 0:
        slot = state[LO]
        if slot >= state[HI]:
            return int64(-2)
        state[LO] = slot + 1
        if nodes[slot & state[MASK], 1] == UNLINKED:
            return int64(-1)
    else:
        slot = _unlink_bag(heads, nodes, words, rows, i, row_tags[i], state[SHIFT])
        if slot < 0:
            return int64(-2)
        freed[state[FREED]] = slot
        state[FREED] += 1
    return int64(-1) if insert_only != 0 else slot


@njit(
    f"int64({_SIDE}, {_SIDE}, int64[:, ::1], int64, int64, int64[:, ::1], int64[::1], int8[::1])",
    cache=True,
    nogil=True,
)
def join(left, right, state, key_width, insert_only, pairs, out_ts, out_sign):  # type: ignore[no-untyped-def]
    """Join what is left of both sides' batches; returns how many pairs were found, state[2, STATUS] how it ended.

    left, right: (ts, sign, tags of the insertions, heads, nodes, words, and of bag sides: rows, row hashes, slots for the
        insertions, slots freed).  state: (3, STATE_WORDS): left, right, joint.
    key_width: words to compare after equal tags; 0 where equal tags are equal keys.
    pairs: (2, m) slots of left and right, with out_ts and out_sign of the pair: in ts order, deletions first.
    O(elements + pairs + slots inspected); a probe inspects the live slots of one bucket.
    """
    lts, lsign, _, lheads, lnodes, lwords, _, _, _, _ = left
    rts, rsign, _, rheads, rnodes, rwords, _, _, _, _ = right
    limit = len(out_ts)
    found = 0
    inspected = 0
    li, ri = state[0, POSITION], state[1, POSITION]
    ln, rn = len(lts), len(rts)
    side, own, s = state[2, PENDING_SIDE], state[2, PENDING_OWN], state[2, PENDING_NEXT]
    lmask, rmask = state[0, MASK], state[1, MASK]
    lshift, rshift = state[0, SHIFT], state[1, SHIFT]
    status = DONE
    sign = int64(0)
    ts = int64(0)
    if s >= 0:
        # The interrupted element is the one before its side's position.
        ts = lts[li - 1] if side == 0 else rts[ri - 1]
        sign = int64(1) if (lsign[li - 1] if side == 0 else rsign[ri - 1]) > 0 else int64(-1)
    while True:
        if s >= 0:
            if side == 0:
                lo = state[1, LO]
                tag = lnodes[own & lmask, 0]
                while s >= lo and found < limit:
                    at = s & rmask
                    inspected += 1
                    if rnodes[at, 0] == tag:
                        equal = True
                        for j in range(key_width):
                            if lwords[own & lmask, j] != rwords[at, j]:
                                equal = False
                                break
                        if equal:
                            pairs[0, found] = own
                            pairs[1, found] = s
                            out_ts[found] = ts
                            out_sign[found] = sign
                            found += 1
                    s = rnodes[at, 1]
            else:
                lo = state[0, LO]
                tag = rnodes[own & rmask, 0]
                while s >= lo and found < limit:
                    at = s & lmask
                    inspected += 1
                    if lnodes[at, 0] == tag:
                        equal = True
                        for j in range(key_width):
                            if rwords[own & rmask, j] != lwords[at, j]:
                                equal = False
                                break
                        if equal:
                            pairs[0, found] = s
                            pairs[1, found] = own
                            out_ts[found] = ts
                            out_sign[found] = sign
                            found += 1
                    s = lnodes[at, 1]
            if found == limit:
                if s < lo:
                    s = int64(-1)
                status = FULL
                break
        # Left deletions, right deletions, left insertions, right insertions: each instant in this order.
        if li < ln and (
            ri == rn or lts[li] < rts[ri] or (lts[li] == rts[ri] and (lsign[li] < 0 or rsign[ri] > 0))
        ):
            side = int64(0)
            ts = lts[li]
            sign = int64(1) if lsign[li] > 0 else int64(-1)
            own = _enter(left, state[0], li, insert_only, int64(lsign[li]))
            li += 1
            if own >= 0:
                s = rheads[0, _bucket(lnodes[own & lmask, 0], rshift)]
            else:
                s = int64(-1)
        elif ri < rn:
            side = int64(1)
            ts = rts[ri]
            sign = int64(1) if rsign[ri] > 0 else int64(-1)
            own = _enter(right, state[1], ri, insert_only, int64(rsign[ri]))
            ri += 1
            if own >= 0:
                s = lheads[0, _bucket(rnodes[own & rmask, 0], lshift)]
            else:
                s = int64(-1)
        else:
            s = int64(-1)
            break
        if own == -2:
            status = MISSING
            break
    state[0, POSITION], state[1, POSITION] = li, ri
    state[2, PENDING_SIDE], state[2, PENDING_OWN], state[2, PENDING_NEXT] = side, own, s
    state[2, INSPECTED] += inspected
    state[2, STATUS] = status
    return found


def pair_buffers(capacity: int) -> tuple[Int64Array, Int64Array, Int8Array]:
    """(pairs, out_ts, out_sign) for `join`."""
    return np.empty((2, capacity), np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int8)
