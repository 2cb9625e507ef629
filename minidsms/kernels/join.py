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
    """Take a row equal to rows[i] out of both its buckets; returns its slot, or -2 when none is held."""
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
        return int64(-2)
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


@njit(
    f"int64({_SIDE}, {_SIDE}, int64[:, ::1], int64, int64, int64[:, ::1], int64[::1], int8[::1])",
    cache=True,
    nogil=True,
)
def join(left, right, state, key_width, insert_only, pairs, out_ts, out_sign):  # type: ignore[no-untyped-def]
    """Join what is left of both sides' batches; returns how many pairs were found, state[2, STATUS] how it ended.

    left, right: (ts, sign, tags of the insertions, heads, nodes, words, and of bag sides: rows, row hashes, slots for
        the insertions, slots freed).  state: (3, STATE_WORDS): left, right, joint.
    key_width: words to compare after equal tags; 0 where equal tags are equal keys.
    pairs: (2, m) slots of left and right, with out_ts and out_sign of the pair: in ts order, deletions first.
    O(elements + pairs + slots inspected); a probe inspects the live slots of one bucket.

    Both sides' figures are local variables, and both halves of the loop are written out: passing them around costs
    more than the join itself.
    """
    lts, lsign, ltags, lheads, lnodes, lwords, lrows, lrow_tags, lfresh, lfreed = left
    rts, rsign, rtags, rheads, rnodes, rwords, rrows, rrow_tags, rfresh, rfreed = right
    llo, lhi, li, lins, lfree = state[0, LO], state[0, HI], state[0, POSITION], state[0, INSERTED], state[0, FREED]
    rlo, rhi, ri, rins, rfree = state[1, LO], state[1, HI], state[1, POSITION], state[1, INSERTED], state[1, FREED]
    lmask, lshift, lfifo = state[0, MASK], state[0, SHIFT], state[0, FIFO] != 0
    rmask, rshift, rfifo = state[1, MASK], state[1, SHIFT], state[1, FIFO] != 0
    side, own, s = state[2, PENDING_SIDE], state[2, PENDING_OWN], state[2, PENDING_NEXT]
    ln, rn = len(lts), len(rts)
    limit = len(out_ts)
    found = 0
    inspected = 0
    status = DONE
    while True:
        # Walk one bucket of the other side: s is the slot to look at, own the slot of the element that probes.
        if s >= 0 and side == 0:
            at = own & lmask
            tag = lnodes[at, 0]
            ts, sign = lts[li - 1], lsign[li - 1]
            while s >= rlo and found < limit:
                k = s & rmask
                inspected += 1
                if rnodes[k, 0] == tag:
                    equal = True
                    for j in range(key_width):
                        equal &= lwords[at, j] == rwords[k, j]
                    if equal:
                        pairs[0, found] = own
                        pairs[1, found] = s
                        out_ts[found] = ts
                        out_sign[found] = sign
                        found += 1
                s = rnodes[k, 1]
            if found == limit:
                s = s if s >= rlo else int64(-1)
                status = FULL
                break
        elif s >= 0:
            at = own & rmask
            tag = rnodes[at, 0]
            ts, sign = rts[ri - 1], rsign[ri - 1]
            while s >= llo and found < limit:
                k = s & lmask
                inspected += 1
                if lnodes[k, 0] == tag:
                    equal = True
                    for j in range(key_width):
                        equal &= rwords[at, j] == lwords[k, j]
                    if equal:
                        pairs[0, found] = s
                        pairs[1, found] = own
                        out_ts[found] = ts
                        out_sign[found] = sign
                        found += 1
                s = lnodes[k, 1]
            if found == limit:
                s = s if s >= llo else int64(-1)
                status = FULL
                break
        # The next element: left deletions, right deletions, left insertions, right insertions of each instant.
        s = int64(-1)
        if li < ln and (ri == rn or lts[li] < rts[ri] or (lts[li] == rts[ri] and (lsign[li] < 0 or rsign[ri] > 0))):
            side = int64(0)
            if lsign[li] > 0:
                if lfifo:
                    own = lhi
                    lhi += 1
                    if lsign[li] == KEYLESS:
                        lnodes[own & lmask, 1] = UNLINKED
                        own = int64(-1)
                    else:
                        _link(lheads, lnodes, own, ltags[lins], lmask, lshift)
                else:
                    own = lfresh[lins]
                    _link_bag(lheads, lnodes, own, ltags[lins], lrow_tags[li], lshift)
                lins += 1
            else:
                if lfifo:
                    own = llo if llo < lhi else int64(-2)
                    llo += 1
                    if own >= 0 and lnodes[own & lmask, 1] == UNLINKED:
                        own = int64(-1)
                else:
                    own = _unlink_bag(lheads, lnodes, lwords, lrows, li, lrow_tags[li], lshift)
                    if own >= 0:
                        lfreed[lfree] = own
                        lfree += 1
                if own >= 0 and insert_only != 0:
                    own = int64(-1)
            li += 1
            if own >= 0:
                s = rheads[0, _bucket(lnodes[own & lmask, 0], rshift)]
        elif ri < rn:
            side = int64(1)
            if rsign[ri] > 0:
                if rfifo:
                    own = rhi
                    rhi += 1
                    if rsign[ri] == KEYLESS:
                        rnodes[own & rmask, 1] = UNLINKED
                        own = int64(-1)
                    else:
                        _link(rheads, rnodes, own, rtags[rins], rmask, rshift)
                else:
                    own = rfresh[rins]
                    _link_bag(rheads, rnodes, own, rtags[rins], rrow_tags[ri], rshift)
                rins += 1
            else:
                if rfifo:
                    own = rlo if rlo < rhi else int64(-2)
                    rlo += 1
                    if own >= 0 and rnodes[own & rmask, 1] == UNLINKED:
                        own = int64(-1)
                else:
                    own = _unlink_bag(rheads, rnodes, rwords, rrows, ri, rrow_tags[ri], rshift)
                    if own >= 0:
                        rfreed[rfree] = own
                        rfree += 1
                if own >= 0 and insert_only != 0:
                    own = int64(-1)
            ri += 1
            if own >= 0:
                s = lheads[0, _bucket(rnodes[own & rmask, 0], lshift)]
        else:
            break
        if own == -2:
            status = MISSING
            break
    state[0, LO], state[0, HI], state[0, POSITION], state[0, INSERTED], state[0, FREED] = llo, lhi, li, lins, lfree
    state[1, LO], state[1, HI], state[1, POSITION], state[1, INSERTED], state[1, FREED] = rlo, rhi, ri, rins, rfree
    state[2, PENDING_SIDE], state[2, PENDING_OWN], state[2, PENDING_NEXT] = side, own, s
    state[2, INSPECTED] += inspected
    state[2, STATUS] = status
    return found


def pair_buffers(capacity: int) -> tuple[Int64Array, Int64Array, Int8Array]:
    """(pairs, out_ts, out_sign) for `join`."""
    return np.empty((2, capacity), np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int8)
