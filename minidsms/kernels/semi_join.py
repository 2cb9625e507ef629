"""Which rows of one relation have a partner in another, element by element in ts order.

The left side stands in a window like those of other joins (`kernels.join_layout`); of the right side only how many rows
have each key is kept, by the key's id in a table (`kernels.key_table`). The last of the window's keys is that of the
join, all its columns hashed as one where there are several; those before it are the columns. Babu 2005, section 2.2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.access_methods.hashes import has_words, tag_of_words
from minidsms.kernels.chains import Chain, first_of_key, leave, link_slot, lowest_slot, next_slot, older, slot_of
from minidsms.kernels.join_layout import NO_LIMIT, Windows
from minidsms.kernels.key_table import Table, acquire, find, release
from minidsms.machine_code import Int8s, Int64s, Int64Table, Record, Rows, helper, int64, kernel

DONE, FULL, MISSING, GROW = range(4)
"""The batch is joined; the buffer is full: call again; a deletion cancels no row that is held; no id is free."""

COUNTS, LEAVES, LOSES, GAINS, SETTLES, ENTERS, BEGINS = range(7)
"""Phases of an instant: right rows are counted; left deletions leave with the standing they had; rows whose key's
standing has changed leave, or enter; dead keys are freed; left insertions enter with the new standing.
"""


class KeyCount(Record):
    """count: rows that have the key.  before: whether any had before this instant, -1 while unchanged."""

    count: int
    before: int


class SemiJoinState(Record):
    """phase to next, at: where a call stopped, `at` an element of left.  left, entered: up to where left's elements
    leave and enter at the instant.  inspected: slots so far.  status: how the call ended.  position: right's elements
    done of a batch.  touched: keys changed at the instant.
    """

    phase: int
    instant: int
    touch: int
    next: int
    at: int
    left: int
    entered: int
    inspected: int
    status: int
    position: int
    touched: int


class Counted(NamedTuple):
    """The elements of a batch of right: their instants, signs and keys' words. table, counts: of the keys.

    ids: room for those of elements.  touched: for the keys changed at an instant.  key: for one that is looked up.
    """

    ts: Int64s
    sign: Int8s
    words: Int64Table
    ids: Int64s
    table: Table
    counts: Rows[KeyCount]
    touched: Int64s
    key: Int64Table


class Found(NamedTuple):
    """Left slots (m,) with instant and sign, in ts order."""

    slots: Int64s
    ts: Int64s
    sign: Int8s


# ---------------------------------------------------------------------------------------------------------- the keys


@helper(typed=True)
def _count(right: Counted, state: SemiJoinState) -> int:
    """Count the instant's elements; DONE, or why it stopped before one."""
    ts, sign, ids, counts, touched = right.ts, right.sign, right.ids, right.counts, right.touched
    slots, keys, links, meta = right.table
    begin = end = state.position
    while end < len(ts) and ts[end] == state.instant:
        end += 1
    done = acquire(right.words[:end], slots, keys, links, meta, ids, begin, True) if begin < end else end
    for i in range(begin, done):
        e = ids[i]
        if counts[e].before < 0:
            counts[e].before = int64(counts[e].count > 0)
            touched[state.touched] = e
            state.touched += 1
        counts[e].count += int64(sign[i])
        if counts[e].count < 0:
            return MISSING
    state.position = done
    return DONE if done == end else GROW


@helper(inline=True)
def _settle(right: Counted, state: SemiJoinState) -> None:
    """The instant's changes are done: free the keys that no row has any more."""
    counts, touched = right.counts, right.touched
    slots, keys, links, meta = right.table
    dead = 0
    for k in range(state.touched):
        e = touched[k]
        counts[e].before = -1
        touched[dead] = e
        dead += int64(counts[e].count == 0)
    if dead > 0:
        release(touched[:dead], slots, keys, links, meta)
    state.touched = 0


# ---------------------------------------------------------------------------------------------------------- the rows


@helper(inline=True)
def _word(windows: Windows, slot: int, j: int) -> Any:
    """Key column j of a slot of left."""
    inputs = windows.inputs
    return windows.nodes[windows.keys[inputs[0].key + j].nodes + 2 * (slot & inputs[0].mask)]


@helper(inline=True)
def _had_partner(windows: Windows, slot: int, right: Counted) -> Any:
    """A slot of left, which stands in its buckets, had a partner before the changes that are counted, or has without
    any.
    """
    counts = right.counts
    for j in range(right.key.shape[1]):
        right.key[0, j] = _word(windows, slot, j)
    e, _ = find(right.key, 0, right.table.slots, right.table.keys)
    return e >= 0 and (counts[e].before > 0 or (counts[e].before < 0 and counts[e].count > 0))


@helper(inline=True)
def _begin(windows: Windows, ts: Int64s, state: SemiJoinState) -> Any:
    """Take left's run of the next instant; the status. ts: of right's elements."""
    inputs, runs, position = windows.inputs, windows.runs, state.position
    at, has_left = inputs[0].run, inputs[0].run < inputs[0].runs_end
    instant = ts[position] if position < len(ts) else int64(MAX_INSTANT)
    if has_left:
        instant = min(instant, runs[at].ts)
    leave = come = int64(0)
    if has_left and runs[at].ts == instant:
        leave, come = runs[at].deletions, runs[at].insertions
        inputs[0].run += 1
    is_bag = inputs[0].is_bag != 0
    first = inputs[0].hi if is_bag else inputs[0].lo
    if is_bag:
        inputs[0].hi += leave
    state.instant, state.at, state.left, state.entered = instant, first, first + leave, inputs[0].hi + come
    return int64(DONE if is_bag or first + leave <= inputs[0].hi else MISSING)


@helper(typed=True)
def _pass_left(windows: Windows, right: Counted, state: SemiJoinState, anti: bool, output: Found, found: int) -> int:
    """Rows of left leave or enter; returns how many were found. Where one does not fit state.at is before it."""
    inputs = windows.inputs
    out, out_ts, out_sign = output
    limit, enters, is_bag = len(output.slots), state.phase == ENTERS, inputs[0].is_bag != 0
    instant, at, end = state.instant, state.at, state.entered if enters else state.left
    while at < end and found < limit:
        own = slot_of(windows, 0, at)
        is_keyed = link_slot(windows, 0, own) if enters else leave(windows, 0, own)
        at += 1
        if (is_keyed and _had_partner(windows, own, right)) != anti:
            out[found], out_ts[found], out_sign[found] = own, instant, 1 if enters else -1
            found += 1
    state.at = at
    if enters or is_bag:
        inputs[0].hi = max(inputs[0].hi, at)
    else:
        inputs[0].lo = at
    return int64(found)


@helper(typed=True)
def _toggle(windows: Windows, right: Counted, state: SemiJoinState, anti: bool, output: Found, found: int) -> int:
    """Rows of left whose key's standing has changed leave or enter; returns how many were found. Where one does not fit
    state.touch and state.next are before it.
    """
    inputs, nodes = windows.inputs, windows.nodes
    out, out_ts, out_sign = output
    counts, keys, limit = right.counts, right.table.keys, len(output.slots)
    gains = state.phase == GAINS
    x = inputs[0].keys_end - 1
    low = lowest_slot(windows, 0)
    chain = Chain(windows.keys[x].nodes, int64(2), inputs[0].mask, low, int64(NO_LIMIT))
    touch, s = state.touch, state.next
    while touch < state.touched:
        e = right.touched[touch]
        has = counts[e].count > 0
        if has != (counts[e].before > 0) and (has != anti) == gains:
            tag = tag_of_words(keys, e)
            s, looked = next_slot(nodes, chain, tag, first_of_key(windows, 0, x, tag) if s < 0 else s)
            state.inspected += looked
            while s >= low and found < limit:
                if has_words(windows, s, keys, e):
                    out[found], out_ts[found], out_sign[found] = s, state.instant, 1 if gains else -1
                    found += 1
                s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
                state.inspected += looked
            if s >= low:
                break
        s = int64(-1)
        touch += 1
    state.touch, state.next = touch, s
    return int64(found)


@kernel
def semi_join(windows: Windows, right: Counted, state: SemiJoinState, anti: bool, output: Found) -> int:
    """Left slots that come to have a partner or lose it (anti: the reverse); returns how many were found.

    windows: of left alone.  state.status says how the call ended.

    Each instant in phases (COUNTS to ENTERS), so that no row is put out twice at one instant.
    """
    found, status = int64(0), int64(-1)
    while status < 0:
        phase = state.phase
        if phase == BEGINS:
            if windows.inputs[0].run >= windows.inputs[0].runs_end and state.position == len(right.ts):
                status = int64(DONE)
                break
            if _begin(windows, right.ts, state) != DONE:
                status = int64(MISSING)
        elif phase == COUNTS:
            stopped = _count(right, state)
            if stopped != DONE:
                status = int64(stopped)
        elif phase in (LEAVES, ENTERS):
            if phase == ENTERS:
                state.at = windows.inputs[0].hi
            found = _pass_left(windows, right, state, anti, output, found)
            if state.at < (state.entered if phase == ENTERS else state.left):
                status = int64(FULL)
            state.touch = 0
        elif phase in (LOSES, GAINS):
            found = _toggle(windows, right, state, anti, output, found)
            if state.touch < state.touched:
                status = int64(FULL)
            else:
                state.touch = 0
        else:
            _settle(right, state)
        if status < 0:
            state.phase = int64(COUNTS) if phase == BEGINS else phase + 1
    state.status = status
    return found
