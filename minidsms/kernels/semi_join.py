"""Which rows of one relation have a partner in another, element by element in ts order.

The left side stands in a window like those of other joins (`kernels.join_layout`); of the right side only how many rows
have each key is kept. The last of the window's keys is that of the join, all its columns hashed as one where there are
several; those before it are the columns. A key's node is found by the same tag. Babu 2005, section 2.2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import MAX_INSTANT, Int64Array
from minidsms.kernels.chains import Chain, first_of_key, leave, link_slot, lowest_slot, next_slot, older, slot_of
from minidsms.kernels.join_layout import (
    HI,
    IS_BAG,
    KEY,
    KEYS_END,
    LO,
    MASK,
    NO_LIMIT,
    NODES,
    RUN,
    RUN_DELETIONS,
    RUN_INSERTIONS,
    RUN_TS,
    RUNS_END,
    Windows,
)
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, kernel

COUNT, BEFORE, KEY_NODE_WORDS = 2, 3, 4
"""A key's node is (tag, next, rows that have it, whether it had any before this instant or -1 while unchanged)."""

POSITION, FREE, SHIFT, LIVE, TOUCHED = range(5)
"""In the counted side's state: elements done of a batch, the free list, bucket shift, keys held, and keys changed at
this instant.
"""

PHASE, INSTANT, TOUCH, NEXT, AT, LEFT, ENTERED, INSPECTED, STATUS, STATE_WORDS = range(10)
"""In the joint state: where a call stopped, AT an element of left; up to where left's elements leave and enter at the
instant; slots inspected so far, and how the call ended.
"""

DONE, FULL, MISSING, GROW = range(4)
"""The batch is joined; the buffer is full: call again; a deletion cancels no row that is held; no node is free."""

COUNTS, LEAVES, LOSES, GAINS, SETTLES, ENTERS, BEGINS = range(7)
"""Phases of an instant: right rows are counted; left deletions leave with the standing they had; rows whose key's
standing has changed leave, or enter; dead keys are freed; left insertions enter with the new standing.
"""


class Counted(NamedTuple):
    """The keys counted, and the elements of a batch: their instants, signs, tags and keys' words.

    heads, nodes, words: of the keys; no words where a tag is the key.  touched: those changed at the instant.
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


# ---------------------------------------------------------------------------------------------------------- the keys


@helper(typed=True)
def _count(right: Counted, instant: int, state: Int64s) -> int:
    """Count the instant's elements; DONE, or why it stopped before one."""
    ts, sign, tags, rows, heads, nodes, words, touched = right
    key_width = rows.shape[1]
    i = state[POSITION]
    while i < len(ts) and ts[i] == instant:
        b = bucket(tags[i], state[SHIFT])
        e = heads[0, b]
        while e >= 0:
            equal = nodes[e, 0] == tags[i]
            for j in range(key_width if equal else 0):
                equal &= words[e, j] == rows[i, j]
            if equal:
                break
            e = nodes[e, 1]
        state[POSITION] = i
        if e < 0:
            if sign[i] < 0:
                return MISSING
            e = state[FREE]
            if e < 0:
                return GROW
            state[FREE] = nodes[e, 1]
            state[LIVE] += 1
            nodes[e, 0], nodes[e, 1], nodes[e, COUNT], nodes[e, BEFORE] = tags[i], heads[0, b], 0, -1
            heads[0, b] = e
            for j in range(key_width):
                words[e, j] = rows[i, j]
        if nodes[e, BEFORE] < 0:
            nodes[e, BEFORE] = int64(nodes[e, COUNT] > 0)
            touched[state[TOUCHED]] = e
            state[TOUCHED] += 1
        nodes[e, COUNT] += int64(sign[i])
        i += 1
    state[POSITION] = i
    return DONE


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


# ---------------------------------------------------------------------------------------------------------- the rows


@helper(inline=True)
def _has_key(windows: Windows, slot: int, right: Counted, e: int) -> Any:
    """A slot of left, whose tag is that of node e, has its key."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    equal = True
    for j in range(right.words.shape[1]):
        equal &= nodes[keys[inputs[0, KEY] + j, NODES] + 2 * (slot & inputs[0, MASK])] == right.words[e, j]
    return equal


@helper(inline=True)
def _had_partner(windows: Windows, slot: int, right: Counted, shift: int) -> Any:
    """A slot of left, which stands in its buckets, had a partner before the changes that are counted, or has without
    any.
    """
    inputs, heads, nodes = windows.inputs, right.heads, right.nodes
    tag = windows.nodes[windows.keys[inputs[0, KEYS_END] - 1, NODES] + 2 * (slot & inputs[0, MASK])]
    e = heads[0, bucket(tag, shift)]
    while e >= 0 and not (nodes[e, 0] == tag and _has_key(windows, slot, right, e)):
        e = nodes[e, 1]
    return e >= 0 and (nodes[e, BEFORE] > 0 or (nodes[e, BEFORE] < 0 and nodes[e, COUNT] > 0))


@helper(inline=True)
def _begin(windows: Windows, right: Counted, position: int, state: Int64s) -> Any:
    """Take left's run of the next instant; the status."""
    inputs, runs, ts = windows.inputs, windows.runs, right.ts
    at, has_left = inputs[0, RUN], inputs[0, RUN] < inputs[0, RUNS_END]
    instant = ts[position] if position < len(ts) else int64(MAX_INSTANT)
    if has_left:
        instant = min(instant, runs[at, RUN_TS])
    leave = come = int64(0)
    if has_left and runs[at, RUN_TS] == instant:
        leave, come = runs[at, RUN_DELETIONS], runs[at, RUN_INSERTIONS]
        inputs[0, RUN] += 1
    is_bag = inputs[0, IS_BAG] != 0
    first = inputs[0, HI] if is_bag else inputs[0, LO]
    if is_bag:
        inputs[0, HI] += leave
    state[INSTANT], state[AT], state[LEFT], state[ENTERED] = instant, first, first + leave, inputs[0, HI] + come
    return int64(DONE if is_bag or first + leave <= inputs[0, HI] else MISSING)


@helper(typed=True)
def _pass_left(windows: Windows, right: Counted, state: Int64Table, anti: bool, output: Found, found: int) -> int:
    """Rows of left leave or enter; returns how many were found. Where one does not fit state[1, AT] is before it."""
    inputs = windows.inputs
    out, out_ts, out_sign = output
    joint, limit, shift = state[1], len(output.slots), state[0, SHIFT]
    enters = joint[PHASE] == ENTERS
    instant, end, is_bag = joint[INSTANT], joint[ENTERED] if enters else joint[LEFT], inputs[0, IS_BAG] != 0
    at = joint[AT]
    while at < end and found < limit:
        own = slot_of(windows, 0, at)
        is_keyed = link_slot(windows, 0, own) if enters else leave(windows, 0, own)
        at += 1
        if (is_keyed and _had_partner(windows, own, right, shift)) != anti:
            out[found], out_ts[found], out_sign[found] = own, instant, 1 if enters else -1
            found += 1
    joint[AT] = at
    if enters or is_bag:
        inputs[0, HI] = max(inputs[0, HI], at)
    else:
        inputs[0, LO] = at
    return int64(found)


@helper(typed=True)
def _toggle(windows: Windows, right: Counted, state: Int64Table, anti: bool, output: Found, found: int) -> int:
    """Rows of left whose key's standing has changed leave or enter; returns how many were found. Where one does not fit
    state[1, TOUCH] and state[1, NEXT] are before it.
    """
    inputs, nodes = windows.inputs, windows.nodes
    out, out_ts, out_sign = output
    counts, joint, limit = right.nodes, state[1], len(output.slots)
    gains = joint[PHASE] == GAINS
    x = inputs[0, KEYS_END] - 1
    low = lowest_slot(windows, 0)
    chain = Chain(windows.keys[x, NODES], int64(2), inputs[0, MASK], low, int64(NO_LIMIT))
    touch, s = joint[TOUCH], joint[NEXT]
    while touch < state[0, TOUCHED]:
        e = right.touched[touch]
        has = counts[e, COUNT] > 0
        if has != (counts[e, BEFORE] > 0) and (has != anti) == gains:
            tag = counts[e, 0]
            s, looked = next_slot(nodes, chain, tag, first_of_key(windows, 0, x, tag) if s < 0 else s)
            joint[INSPECTED] += looked
            while s >= low and found < limit:
                if _has_key(windows, s, right, e):
                    out[found], out_ts[found], out_sign[found] = s, joint[INSTANT], 1 if gains else -1
                    found += 1
                s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
                joint[INSPECTED] += looked
            if s >= low:
                break
        s = int64(-1)
        touch += 1
    joint[TOUCH], joint[NEXT] = touch, s
    return int64(found)


@kernel
def semi_join(windows: Windows, right: Counted, state: Int64Table, anti: bool, output: Found) -> int:
    """Left slots that come to have a partner or lose it (anti: the reverse); returns how many were found.

    windows: of left alone.  state: (2, STATE_WORDS): right, joint; state[1, STATUS] says how the call ended.

    Each instant in phases (COUNTS to ENTERS), so that no row is put out twice at one instant.
    """
    joint = state[1]
    found, status = int64(0), int64(-1)
    while status < 0:
        phase = joint[PHASE]
        if phase == BEGINS:
            if windows.inputs[0, RUN] >= windows.inputs[0, RUNS_END] and state[0, POSITION] == len(right.ts):
                status = int64(DONE)
                break
            if _begin(windows, right, state[0, POSITION], joint) != DONE:
                status = int64(MISSING)
        elif phase == COUNTS:
            stopped = _count(right, joint[INSTANT], state[0])
            if stopped != DONE:
                status = int64(stopped)
        elif phase in (LEAVES, ENTERS):
            if phase == ENTERS:
                joint[AT] = windows.inputs[0, HI]
            found = _pass_left(windows, right, state, anti, output, found)
            if joint[AT] < (joint[ENTERED] if phase == ENTERS else joint[LEFT]):
                status = int64(FULL)
            joint[TOUCH] = 0
        elif phase in (LOSES, GAINS):
            found = _toggle(windows, right, state, anti, output, found)
            if joint[TOUCH] < state[0, TOUCHED]:
                status = int64(FULL)
            else:
                joint[TOUCH] = 0
        else:
            _settle(right.heads, right.nodes, state[0], right.touched)
        if status < 0:
            joint[PHASE] = int64(COUNTS) if phase == BEGINS else phase + 1
    joint[STATUS] = status
    return found
