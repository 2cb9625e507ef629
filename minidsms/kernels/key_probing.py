"""Joins that keep the rows of one input alone: a window that is probed by keys, instant by instant.

The rows stand in a window like those of other joins (`kernels.join_layout`), whose last key is that of the join, all
its columns hashed as one where there are several; those before it are the columns. What asks has the words of its key,
and stands in no window. In a lookup join elements of a stream ask for the rows of a relation. In a semi-join the rows
are those of the left side, and of the right side only how many have each key is kept (`synopses.key_counts`): what asks
is a key that the right side gains or loses; besides, rows of the window are found as they come and leave, if their key
stands. Babu 2005, section 2.2.2.

An instant goes so: rows leave, keys that change ask, rows come, elements of a stream ask. So each element asks once,
and no row of a semi-join is put out twice at one instant.

As nothing of a stream is linked, unlinked and asked for that lasts an instant, a lookup takes about a tenth of the time
of `kernels.pair_join`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.access_methods.hashes import has_words, tag_of_words
from minidsms.kernels.chains import (
    Chain,
    first_of_key,
    leave,
    link_slot,
    link_slots,
    lowest_slot,
    next_slot,
    older,
    slot_of,
)
from minidsms.kernels.join_layout import NO_LIMIT, Windows
from minidsms.kernels.key_counts import STANDS, Asking, Counted, Standing, count_keys
from minidsms.kernels.key_table import find, release
from minidsms.machine_code import Int8s, Int64s, Int64Table, Record, helper, int64, kernel

NOT_BEGUN, NOT_COUNTED = -2, -1

DONE, FULL, MISSING, GROW = range(4)
"""All have asked, and all changes are made; there is no more room: call again; a deletion cancels no row; the table of
keys is to have room for twice as many: call again.
"""


class ProbeState(Record):
    """at: what a call stopped at, of the n that ask (NOT_COUNTED: those of a semi-join are not known).  gone: keys that
    are gone then.  slot: it is to look at next (NOT_BEGUN: it has not asked yet).  has_match: it has found any.  until:
    no later change of the window is made.  inspected: slots so far.  is_run: the elements found follow one another,
    each once.  status: how the call ended.
    """

    at: int
    n: int
    gone: int
    slot: int
    has_match: int
    until: int
    inspected: int
    is_run: int
    status: int


class Met(NamedTuple):
    """(m,) each, in ts order. slots: (1, m) of the row, -1 for none.  ts: when.  elements: which element asked.  sign:
    of a semi-join alone, which has no elements.
    """

    elements: Int64s
    ts: Int64s
    slots: Int64Table
    sign: Int8s


@helper(inline=True)
def _put(met: Met, found: int, slot: int, instant: int, sign: int) -> None:
    """A row of a semi-join comes or leaves."""
    met.slots[0, found], met.ts[found], met.sign[found] = slot, instant, sign


@helper(inline=True)
def _stands(windows: Windows, slot: int, keys: Standing) -> Any:
    """The key of a row of the window does."""
    inputs, nodes = windows.inputs, windows.nodes
    for j in range(keys.word.shape[1]):
        keys.word[0, j] = nodes[windows.keys[inputs[0].key + j].nodes + 2 * (slot & inputs[0].mask)]
    e, _ = find(keys.word, 0, keys.table.slots, keys.table.keys)
    return e >= 0 and keys.counts[e] & STANDS != 0


@helper(inline=True)
def _change(windows: Windows, keys: Standing | None, comes: bool, met: Met, found: int) -> Any:
    """The rows of the window's next run leave, or come; returns how many were found. What does not fit is left in the
    run.
    """
    inputs, runs = windows.inputs, windows.runs
    r, is_bag = inputs[0].run, inputs[0].is_bag != 0
    waits = runs[r].insertions if comes else runs[r].deletions
    at = inputs[0].hi if comes or is_bag else inputs[0].lo
    end = at + waits
    if keys is None and not is_bag:
        if comes:
            link_slots(windows, 0, at, end)
        at = end
    while at < end and (keys is None or found < len(met.ts)):
        slot = slot_of(windows, 0, at)
        is_keyed = link_slot(windows, 0, slot) if comes else leave(windows, 0, slot)
        at += 1
        if keys is not None and (is_keyed and _stands(windows, slot, keys)) != (keys.anti != 0):
            _put(met, found, slot, runs[r].ts, 1 if comes else -1)
            found += 1
    if comes or is_bag:
        inputs[0].hi = at
    else:
        inputs[0].lo = at
    if comes:
        runs[r].insertions = end - at
    else:
        runs[r].deletions = end - at
    return int64(found)


@helper
def _ask(
    windows: Windows, asking: Asking, keys: Standing | None, state: ProbeState, outer: bool, until: int, met: Met,
    found: int,
) -> Any:  # fmt: skip
    """Let those before an instant ask; returns how many rows were found. Where one does not fit the state is before
    it, and state.status FULL.
    """
    ts, words, keyed = asking
    limit, x = len(met.ts), windows.inputs[0].keys_end - 1
    low = lowest_slot(windows, 0)
    chain = Chain(windows.keys[x].nodes, int64(2), windows.inputs[0].mask, low, int64(NO_LIMIT))
    at, n, s, has_match = state.at, state.n, state.slot, state.has_match != 0
    is_run, inspected = state.is_run != 0, int64(0)
    while at < n and ts[at] < until:
        row = at
        if keys is not None:
            row = keys.ids[at]
            comes = (keys.sign[at] > 0) != (keys.anti != 0)
            keys.counts[row] = keys.counts[row] | STANDS if comes else keys.counts[row] & ~STANDS
        tag = tag_of_words(words, row)
        if s == NOT_BEGUN:
            s, has_match = int64(-1), False
            if len(keyed) == 0 or keyed[at]:
                s = first_of_key(windows, 0, x, tag)
        s, looked = next_slot(windows.nodes, chain, tag, s)
        inspected += looked
        while s >= low and found < limit:
            if has_words(windows, s, words, row):
                if keys is None:
                    met.elements[found], met.ts[found], met.slots[0, found] = at, ts[at], s
                    is_run &= not has_match and at == met.elements[0] + found
                else:
                    _put(met, found, s, ts[at], keys.sign[at])
                has_match = True
                found += 1
            s, looked = next_slot(windows.nodes, chain, tag, older(windows.nodes, chain, s))
            inspected += looked
        lacks = outer and not has_match
        if found == limit and (s >= low or lacks):
            state.status = FULL
            break
        if lacks:
            met.elements[found], met.ts[found], met.slots[0, found] = at, ts[at], -1
            is_run &= at == met.elements[0] + found
            found += 1
        at += 1
        s = int64(NOT_BEGUN)
    state.at, state.slot, state.has_match, state.is_run = at, s, int64(has_match), int64(is_run)
    state.inspected += inspected
    return int64(found)


@helper(inline=True)
def _join(
    windows: Windows, asking: Asking, keys: Standing | None, state: ProbeState, outer: bool, met: Met,
    found: int,
) -> Any:  # fmt: skip
    """Of both kernels. What a lookup does not ask for the compiler leaves out."""
    inputs, runs = windows.inputs, windows.runs
    status = int64(-1)
    state.status, state.is_run = DONE, 1
    while status < 0:
        r, until, leaving = inputs[0].run, int64(MAX_INSTANT), int64(0)
        changes = r < inputs[0].runs_end and runs[r].ts <= state.until
        if changes:
            until, leaving = runs[r].ts, runs[r].deletions
        if keys is not None and changes and leaving == 0:
            until += 1
        if state.at < state.n and asking.ts[state.at] < until:
            found = _ask(windows, asking, keys, state, outer, until, met, found)
        if state.status == FULL or not changes:
            status = state.status
        elif inputs[0].is_bag == 0 and inputs[0].lo + leaving > inputs[0].hi:
            status = int64(MISSING)
        else:
            comes = keys is None or leaving == 0
            if leaving > 0:
                found = _change(windows, keys, False, met, found)
            if comes:
                found = _change(windows, keys, True, met, found)
            if runs[r].deletions + (runs[r].insertions if comes else 0) > 0:
                status = int64(FULL)
            elif comes:
                inputs[0].run = r + 1
    state.status = status
    return found


@kernel
def lookup_join(windows: Windows, asking: Asking, state: ProbeState, outer: bool, met: Met) -> int:
    """The rows that elements meet; returns how many were found, and in state.status how the call ended.

    windows: of the relation alone, with its changes waiting.  state: with `at` 0, `slot` NOT_BEGUN and `until` where
    a slice, or a part of one, begins.  outer: an element that meets no row is put out with slot -1.
    O(elements + changes + slots inspected).
    """
    state.n = len(asking.ts)
    return int64(_join(windows, asking, None, state, outer, met, int64(0)))


@kernel
def semi_join(windows: Windows, rows: Counted, keys: Standing, state: ProbeState, met: Met, found: int) -> int:
    """The left rows that come to have a partner or lose it (anti: the reverse), behind so many that are found; as
    `lookup_join`.

    windows: of left alone.  rows: a part of right's, up to the instant state.until.  state: with `at`
    NOT_COUNTED where the part begins.
    """
    slots, words, links, meta = keys.table
    if state.at == NOT_COUNTED:
        state.n, state.gone = count_keys(rows, keys)
        if state.n < 0:
            state.status = GROW
            return found
        state.at, state.slot = 0, NOT_BEGUN
    found = _join(windows, keys.asking, keys, state, False, met, found)
    if state.status == DONE:
        release(keys.gone[: state.gone], slots, words, links, meta)
    return int64(found)
