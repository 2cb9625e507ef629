"""What a relation has of the keys of a stream's elements, at their own instants, element by element in ts order.

The relation stands in a window like those of other joins (`kernels.join_layout`), whose last key is that of the join,
all its columns hashed as one where there are several; of the stream nothing is kept. All changes of an instant are made
before its elements ask, so that each asks once, and nobody asks for it.

So it does not link, unlink and ask anew what lasts an instant, as the other joins do: about a tenth of the time of
`kernels.pair_join`.
"""

from __future__ import annotations

from typing import NamedTuple

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
from minidsms.machine_code import Bools, Int64s, Int64Table, Record, helper, int64, kernel

NOT_BEGUN = -2

DONE, FULL, MISSING = range(3)
"""All elements have asked, and all changes are made; there is no more room: call again; a deletion cancels no row."""


class LookupState(Record):
    """at: the element where a call stopped.  slot: it is to look at next (NOT_BEGUN: it has not asked yet).  has_match:
    it has found any.  inspected: slots so far.  is_run: the elements found follow one another, each once.  status: how
    the call ended.
    """

    at: int
    slot: int
    has_match: int
    inspected: int
    is_run: int
    status: int


class Asking(NamedTuple):
    """The elements of the stream. ts: (n,).  words: (n, w) of their keys.  keyed: (n,) whose key has no NULL, empty
    where all have none.
    """

    ts: Int64s
    words: Int64Table
    keyed: Bools


class Met(NamedTuple):
    """(m,) each: which element, and when; slots: (1, m) of the row that it meets, -1 for none."""

    elements: Int64s
    ts: Int64s
    slots: Int64Table


@helper(typed=True)
def _change(windows: Windows) -> int:
    """Make the changes of the window's next run; the status."""
    inputs, runs = windows.inputs, windows.runs
    at = inputs[0].run
    leaving, coming = runs[at].deletions, runs[at].insertions
    inputs[0].run += 1
    if inputs[0].is_bag != 0:
        for _ in range(leaving):
            leave(windows, 0, slot_of(windows, 0, inputs[0].hi))
            inputs[0].hi += 1
        for _ in range(coming):
            link_slot(windows, 0, slot_of(windows, 0, inputs[0].hi))
            inputs[0].hi += 1
        return DONE
    inputs[0].lo += leaving
    link_slots(windows, 0, inputs[0].hi, inputs[0].hi + coming)
    inputs[0].hi += coming
    return DONE if inputs[0].lo <= inputs[0].hi else MISSING


@helper(typed=True)
def _ask(windows: Windows, asking: Asking, state: LookupState, outer: bool, until: int, met: Met, found: int) -> int:
    """Let the elements before an instant ask; returns how many rows were found. Where one does not fit the state is
    before it, and state.status FULL.
    """
    ts, words, keyed = asking
    elements, out_ts, slots = met
    limit, x = len(elements), windows.inputs[0].keys_end - 1
    low = lowest_slot(windows, 0)
    chain = Chain(windows.keys[x].nodes, int64(2), windows.inputs[0].mask, low, int64(NO_LIMIT))
    at, s, has_match = state.at, state.slot, state.has_match != 0
    is_run, inspected = state.is_run != 0, int64(0)
    while at < len(ts) and ts[at] < until:
        tag = tag_of_words(words, at)
        if s == NOT_BEGUN:
            s, has_match = int64(-1), False
            if len(keyed) == 0 or keyed[at]:
                s = first_of_key(windows, 0, x, tag)
        s, looked = next_slot(windows.nodes, chain, tag, s)
        inspected += looked
        while s >= low and found < limit:
            if has_words(windows, s, words, at):
                elements[found], out_ts[found], slots[0, found] = at, ts[at], s
                is_run &= not has_match and at == elements[0] + found
                has_match = True
                found += 1
            s, looked = next_slot(windows.nodes, chain, tag, older(windows.nodes, chain, s))
            inspected += looked
        lacks = outer and not has_match
        if found == limit and (s >= low or lacks):
            state.status = FULL
            break
        if lacks:
            elements[found], out_ts[found], slots[0, found] = at, ts[at], -1
            is_run &= at == elements[0] + found
            found += 1
        at += 1
        s = int64(NOT_BEGUN)
    state.at, state.slot, state.has_match, state.is_run = at, s, int64(has_match), int64(is_run)
    state.inspected += inspected
    return int64(found)


@kernel
def lookup_join(windows: Windows, asking: Asking, state: LookupState, outer: bool, met: Met) -> int:
    """The rows that elements meet; returns how many were found, and in state.status how the call ended.

    windows: of the relation alone, with its changes waiting.  state: with `at` 0 and `slot` NOT_BEGUN where
    a slice begins.  outer: an element that meets no row is put out with slot -1.
    """
    inputs, runs = windows.inputs, windows.runs
    found, status = int64(0), int64(-1)
    state.status, state.is_run = DONE, 1
    while status < 0:
        changes = inputs[0].run < inputs[0].runs_end
        until = runs[inputs[0].run].ts if changes else int64(MAX_INSTANT)
        found = _ask(windows, asking, state, outer, until, met, found)
        if state.status == FULL:
            status = int64(FULL)
        elif not changes:
            status = int64(DONE)
        elif _change(windows) != DONE:
            status = int64(MISSING)
    state.status = status
    return found
