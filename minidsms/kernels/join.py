"""Joining two varying relations, element by element in ts order.

A side is a table of slots and buckets of them by key. `nodes[slot & mask]` is (tag, next): the tag is the key itself
where it is one word, else its hash (then `words` holds the key's words first, and they are compared); next leads to an
older slot of the bucket. Probing walks a bucket from its newest slot and ends at the first slot below `lo`:
  - a FIFO side numbers its slots by arrival (a ring); deletion is lo += 1 and leaves the buckets alone, because
    whatever lies below lo ends a walk;
  - a bag side reuses slots and has lo = 0, ends being -1. Its nodes are (tag, next, previous, row hash, next of equal
    row hash), so that a deletion finds its row and unlinks it without a walk along a hot key.
Rows are written into their slots before the kernel runs; it only links them. Slots that leave stay readable until the
caller has gathered the pairs found. A semi-join keeps its left side so, and of its right side a count per key.

docs/design, point 3; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.elements import Int8Array, Int64Array
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import helper, int64, kernel

LO, HI, POSITION, INSERTED, FREED, MASK, SHIFT, FIFO, STATE_WORDS = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""A side's state: a FIFO side's [lo, hi); elements, insertions, deletions done of a batch; slot mask, bucket shift."""

PENDING_SIDE, PENDING_OWN, PENDING_NEXT, INSPECTED, STATUS = 0, 1, 2, 3, 4
"""The joint state: the walk that a full buffer interrupted, slots inspected so far, and how the call ended."""

DONE, FULL, MISSING = 0, 1, 2
"""The batch is joined; the pair buffer is full: call again; a deletion cancels no row that is held."""

UNLINKED = -2
"""As a node's next: the row has a NULL key and stands in no bucket. As a bag node's previous: the slot is free."""

KEYED, KEYLESS = 1, 2
"""Signs of insertions: KEYLESS has a NULL key and matches nothing."""


@helper("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64)")
def _link(heads: Int64Array, nodes: Int64Array, slot: int, tag: int, mask: int, shift: int) -> None:
    """Put a slot of a FIFO side at the head of its bucket."""
    at = slot & mask
    b = bucket(tag, shift)
    nodes[at, 0] = tag
    nodes[at, 1] = heads[0, b]
    heads[0, b] = slot


@helper("void(int64[:, ::1], int64[:, ::1], int64, int64, int64, int64, boolean)")
def _link_bag(
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
def _unlink_bag(
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
            _link_bag(heads, nodes, slot, nodes[slot, 0], nodes[slot, 3], shift, nodes[slot, 1] != UNLINKED)
        elif nodes[slot & mask, 1] != UNLINKED:
            _link(heads, nodes, slot, nodes[slot & mask, 0], mask, shift)


_SIDE = (
    "Tuple((int64[::1], int8[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1],"
    " int64[:, ::1], int64[::1], int64[::1], int64[::1]))"
)


@kernel(f"int64({_SIDE}, {_SIDE}, int64[:, ::1], int64, int64, int64[:, ::1], int64[::1], int8[::1])")
def join(left, right, state, key_width, insert_only, pairs, out_ts, out_sign):  # type: ignore[no-untyped-def]
    """Join what is left of both sides' batches; returns how many pairs were found, state[2, STATUS] how it ended.

    left, right: (ts, sign, tags of the insertions, heads, nodes, words, and of bag sides: rows, row hashes, slots for
        the insertions, slots freed).  state: (3, STATE_WORDS): left, right, joint.
    key_width: words to compare after equal tags; 0 where equal tags are equal keys.
    pairs: (2, m) slots of left and right, with out_ts and out_sign of the pair: in ts order, deletions first.
    O(elements + pairs + slots inspected); a probe inspects the live slots of one bucket.

    Both sides' figures are local variables, and both halves of the loop are written out: calls that pass the arrays on
    were measured to cost three times the join itself.
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
                    _link_bag(lheads, lnodes, own, ltags[lins], lrow_tags[li], lshift, True)
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
                s = rheads[0, bucket(lnodes[own & lmask, 0], rshift)]
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
                    _link_bag(rheads, rnodes, own, rtags[rins], rrow_tags[ri], rshift, True)
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
                s = lheads[0, bucket(rnodes[own & rmask, 0], lshift)]
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


COUNT, BEFORE, KEY_NODE_WORDS = 2, 3, 4
"""A key's node is (tag, next, rows that have it, whether it had any before this instant or -1 while unchanged)."""

FREE, LIVE, TOUCHED, GROW = 3, 5, 7, 3
"""In the counted side's state: the free list, keys held, keys changed at this instant. GROW: no node is free."""

PHASE, INSTANT, TOUCH, NEXT = 0, 1, 2, 5
"""In the joint state of `semi_join`: where a call stopped."""


@helper("int64(int64[:, ::1], int64[:, ::1], int64[:, ::1], int64, int64[:, ::1], int64, int64, int64)")
def _find_key(
    heads: Int64Array,
    nodes: Int64Array,
    words: Int64Array,
    tag: int,
    rows: Int64Array,
    i: int,
    key_width: int,
    shift: int,
) -> Any:
    """The node of the key with this tag and the words of rows[i], or -1."""
    e: np.int64 = heads[0, bucket(tag, shift)]
    while e >= 0:
        if nodes[e, 0] == tag:
            equal = True
            for j in range(key_width):
                equal &= words[e, j] == rows[i, j]
            if equal:
                break
        e = nodes[e, 1]
    return e


@helper(
    "int64(int64[::1], int8[::1], int64[::1], int64[:, ::1], int64, int64, int64[:, ::1], int64[:, ::1], int64[:,"
    " ::1], int64, int64[::1], int64[::1])"
)
def _count(  # type: ignore[no-untyped-def]
    ts, sign, tags, rows, i, instant, heads, nodes, words, key_width, state, touched
):
    """Count the instant's elements from the i-th on; returns where it stopped, state[STATUS] says why."""
    shift = state[SHIFT]
    state[STATUS] = DONE
    while i < len(ts) and ts[i] == instant:
        tag = tags[i]
        e = _find_key(heads, nodes, words, tag, rows, i, key_width, shift)
        if e < 0:
            if sign[i] < 0:
                state[STATUS] = MISSING
                break
            e = state[FREE]
            if e < 0:
                state[STATUS] = GROW
                break
            state[FREE] = nodes[e, 1]
            state[LIVE] += 1
            b = bucket(tag, shift)
            nodes[e, 0], nodes[e, 1], nodes[e, COUNT], nodes[e, BEFORE] = tag, heads[0, b], 0, -1
            heads[0, b] = e
            for j in range(key_width):
                words[e, j] = rows[i, j]
        if nodes[e, BEFORE] < 0:
            nodes[e, BEFORE] = int64(nodes[e, COUNT] > 0)
            touched[state[TOUCHED]] = e
            state[TOUCHED] += 1
        nodes[e, COUNT] += int64(sign[i])
        i += 1
    return i


@helper("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1])")
def _settle(heads: Int64Array, nodes: Int64Array, state: Int64Array, touched: Int64Array) -> None:
    """The instant's changes are done: free the keys that no row has any more."""
    for k in range(state[TOUCHED]):
        e = touched[k]
        nodes[e, BEFORE] = -1
        if nodes[e, COUNT] == 0:
            b = bucket(nodes[e, 0], state[SHIFT])
            at = heads[0, b]
            if at == e:
                heads[0, b] = nodes[e, 1]
            else:
                while nodes[at, 1] != e:
                    at = nodes[at, 1]
                nodes[at, 1] = nodes[e, 1]
            nodes[e, 1] = state[FREE]
            state[FREE] = e
            state[LIVE] -= 1
    state[TOUCHED] = 0


@kernel("void(int64[:, ::1], int64[:, ::1], int64, int64)")
def relink_keys(heads: Int64Array, nodes: Int64Array, n: int, shift: int) -> None:
    """Fill empty buckets with the first n nodes, whose tags they hold."""
    for e in range(n):
        b = bucket(nodes[e, 0], shift)
        nodes[e, 1] = heads[0, b]
        heads[0, b] = e


@kernel(
    f"int64({_SIDE}, int64[::1], int8[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1],"
    " int64[::1], int64[:, ::1], int64, int64, int64[::1], int64[::1], int8[::1])"
)
def semi_join(  # type: ignore[no-untyped-def]
    left, rts, rsign, rtags, rrows, heads, nodes, words, touched, state, key_width, anti, out, out_ts, out_sign
):
    """Left slots that come to have a partner or lose it (anti: the reverse); returns how many were found.

    left: as in `join`.  rts, rsign, rtags, rrows: the right elements with their keys' words.  heads, nodes, words,
    touched: the keys counted.  state: (3, STATE_WORDS): left, right, joint; state[2, STATUS] says how the call ended.
    out: (m,) slots, in ts order.

    Each instant in phases: (1) right rows are counted; (2) left deletions leave with the standing they had; then rows
    whose key's standing changed (3) leave or (4) enter; (5) dead keys are freed; (6) left insertions enter with the new
    standing. So no row is put out twice at one instant.
    """
    lts, lsign, ltags, lheads, lnodes, lwords, lrows, lrow_tags, lfresh, lfreed = left
    lo, hi, li, lins, lfree = state[0, LO], state[0, HI], state[0, POSITION], state[0, INSERTED], state[0, FREED]
    mask, lshift, fifo = state[0, MASK], state[0, SHIFT], state[0, FIFO] != 0
    ri, shift = state[1, POSITION], state[1, SHIFT]
    phase, instant, touch, s = state[2, PHASE], state[2, INSTANT], state[2, TOUCH], state[2, NEXT]
    ln, rn = len(lts), len(rts)
    limit = len(out)
    found = 0
    inspected = 0
    status = -1
    while status < 0:
        if phase == 0:
            if li == ln and ri == rn:
                status = DONE
                break
            instant = rts[ri] if li == ln or (ri < rn and rts[ri] < lts[li]) else lts[li]
            phase = int64(1)
        if phase == 1:
            ri = _count(rts, rsign, rtags, rrows, ri, instant, heads, nodes, words, key_width, state[1], touched)
            if state[1, STATUS] != DONE:
                status = state[1, STATUS]
                break
            phase = int64(2)
        if phase == 2 or phase == 6:
            wanted = 1 if phase == 6 else -1
            while li < ln and lts[li] == instant and (lsign[li] > 0) == (wanted > 0):
                if found == limit:
                    status = FULL
                    break
                if wanted > 0:
                    own = hi if fifo else lfresh[lins]
                    hi += 1
                    if not fifo:
                        _link_bag(lheads, lnodes, own, ltags[lins], lrow_tags[li], lshift, lsign[li] != KEYLESS)
                    elif lsign[li] == KEYLESS:
                        lnodes[own & mask, 1] = UNLINKED
                    else:
                        _link(lheads, lnodes, own, ltags[lins], mask, lshift)
                    lins += 1
                elif fifo:
                    own = lo if lo < hi else int64(-2)
                    lo += 1
                else:
                    # A slot that leaves keeps the mark of a row without a key.
                    own = _unlink_bag(lheads, lnodes, lwords, lrows, li, lrow_tags[li], lshift)
                    if own >= 0:
                        lfreed[lfree] = own
                        lfree += 1
                if own < 0:
                    status = MISSING
                    break
                li += 1
                at = own & mask
                matched = False
                if lnodes[at, 1] != UNLINKED:
                    e = _find_key(heads, nodes, words, lnodes[at, 0], lwords, at, key_width, shift)
                    if e >= 0:
                        matched = nodes[e, BEFORE] > 0 or (nodes[e, BEFORE] < 0 and nodes[e, COUNT] > 0)
                if matched == (anti == 0):
                    out[found], out_ts[found], out_sign[found] = own, instant, wanted
                    found += 1
            if status < 0:
                phase = int64(3) if phase == 2 else int64(0)
                touch = int64(0)
        while (phase == 3 or phase == 4) and status < 0:
            while touch < state[1, TOUCHED] and status < 0:
                e = touched[touch]
                now = nodes[e, COUNT] > 0
                if now != (nodes[e, BEFORE] > 0) and (now == (anti == 0)) == (phase == 4):
                    if s < 0:
                        s = lheads[0, bucket(nodes[e, 0], lshift)]
                    while s >= lo:
                        at = s & mask
                        equal = lnodes[at, 0] == nodes[e, 0]
                        for j in range(key_width if equal else 0):
                            equal &= lwords[at, j] == words[e, j]
                        if equal:
                            if found == limit:
                                status = FULL
                                break
                            out[found], out_ts[found], out_sign[found] = s, instant, 1 if phase == 4 else -1
                            found += 1
                        inspected += 1
                        s = lnodes[at, 1]
                if status < 0:
                    s = int64(-1)
                    touch += 1
            if status < 0:
                phase += 1
                touch = int64(0)
        if phase == 5:
            _settle(heads, nodes, state[1], touched)
            phase = int64(6)
    if fifo:
        state[0, HI] = hi
    state[0, LO], state[0, POSITION], state[0, INSERTED], state[0, FREED] = lo, li, lins, lfree
    state[1, POSITION] = ri
    state[2, PHASE], state[2, INSTANT], state[2, TOUCH], state[2, NEXT] = phase, instant, touch, s
    state[2, INSPECTED] += inspected
    state[2, STATUS] = status
    return found


def pair_buffers(capacity: int) -> tuple[Int64Array, Int64Array, Int8Array]:
    """(pairs, out_ts, out_sign) for `join`."""
    return np.empty((2, capacity), np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int8)
