"""Which rows of one relation have a partner in another, element by element in ts order.

The left side stands in slots (`kernels.keyed_slots`); of the right side only how many rows have each key is kept. A
key's node is found by its tag: the key itself where it is one word, else its hash. Babu 2005, section 2.2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.keyed_slots import (
    FIFO,
    FREED,
    HI,
    INSERTED,
    KEYLESS,
    LO,
    MASK,
    POSITION,
    SHIFT,
    UNLINKED,
    Side,
    link,
    link_bag,
    unlink_bag,
)
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, kernel

INSPECTED, STATUS = 3, 4
"""In the joint state: slots inspected so far, and how the call ended."""

DONE, FULL, MISSING = 0, 1, 2
"""The batch is joined; the buffer is full: call again; a deletion cancels no row that is held."""

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


class Counted(NamedTuple):
    """The keys counted, and the elements of a batch: their instants, signs, tags and keys' words.

    heads, nodes, words: of the keys.  touched: those changed at the instant.
    """

    ts: Int64s
    sign: Int8s
    tags: Int64s
    rows: Int64Table
    heads: Int64Table
    nodes: Int64Table
    words: Int64Table
    touched: Int64s


class Found(NamedTuple):
    """Left slots (m,) with instant and sign, in ts order."""

    slots: Int64s
    ts: Int64s
    sign: Int8s


@helper(typed=True)
def _count(right: Counted, i: int, instant: int, key_width: int, state: Int64s) -> int:
    """Count the instant's elements from the i-th on; returns where it stopped, state[STATUS] says why."""
    ts, sign, tags, rows, heads, nodes, words, touched = right
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


@kernel
def semi_join(left: Side, right: Counted, state: Int64Table, key_width: int, anti: bool, output: Found) -> int:
    """Left slots that come to have a partner or lose it (anti: the reverse); returns how many were found.

    state: (3, STATE_WORDS): left, right, joint; state[2, STATUS] says how the call ended.

    Each instant in phases: (1) right rows are counted; (2) left deletions leave with the standing they had; then rows
    whose key's standing changed (3) leave or (4) enter; (5) dead keys are freed; (6) left insertions enter with the new
    standing. So no row is put out twice at one instant.
    """
    lts, lsign, ltags, lheads, lnodes, lwords, lrows, lrow_tags, lfresh, lfreed = left
    rts, heads, nodes, words, touched = right.ts, right.heads, right.nodes, right.words, right.touched
    out, out_ts, out_sign = output
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
            ri = _count(right, ri, instant, key_width, state[1])
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
                        link_bag(lheads, lnodes, own, ltags[lins], lrow_tags[li], lshift, lsign[li] != KEYLESS)
                    elif lsign[li] == KEYLESS:
                        lnodes[own & mask, 1] = UNLINKED
                    else:
                        link(lheads, lnodes, own, ltags[lins], mask, lshift)
                    lins += 1
                elif fifo:
                    own = lo if lo < hi else int64(-2)
                    lo += 1
                else:
                    # A slot that leaves keeps the mark of a row without a key.
                    own = unlink_bag(lheads, lnodes, lwords, lrows, li, lrow_tags[li], lshift)
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
                if matched == (not anti):
                    out[found], out_ts[found], out_sign[found] = own, instant, wanted
                    found += 1
            if status < 0:
                phase = int64(3) if phase == 2 else int64(0)
                touch = int64(0)
        while (phase == 3 or phase == 4) and status < 0:
            while touch < state[1, TOUCHED] and status < 0:
                e = touched[touch]
                now = nodes[e, COUNT] > 0
                if now != (nodes[e, BEFORE] > 0) and (now == (not anti)) == (phase == 4):
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
