"""Joins of n windows, instant by instant: which elements come next.

Streams with ranges say by the instants at which rows came when rows come and leave, other windows by their runs. The
deletions of an instant come before its insertions; where the consumer is ISTREAM (netted), insertions come first, and
then only what leaves and may cancel one of them (`join_stamps`).

Invariant: an element that is being joined stands in its buckets if it comes, and in none if it leaves a bag.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.chains import leave, link_slot, lowest_slot, slot_of
from minidsms.kernels.join_layout import (
    CANCEL,
    DELETE,
    INSERT,
    MISSING,
    NO_LIMIT,
    NO_RANGE,
    START,
    Blocks,
    JoinInput,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_stamps import deletions_first, is_stamped, stamp
from minidsms.kernels.links import arrivals_of, came_at
from minidsms.machine_code import Int64s, Rows, helper, int64, uint64


@helper(inline=True)
def next_runs(windows: Windows, run: JoinRun) -> Any:
    """Take every input's run of the next instant; returns the phase it begins with, START when there is none."""
    runs, inputs = windows.runs, windows.inputs
    stops, state, netted = run.stops, run.state, run.netted
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        if inputs[j].run < inputs[j].runs_end:
            instant = min(instant, runs[inputs[j].run].ts)
    phase = int64(START)
    leaving = int64(0)
    for j in range(n):
        if inputs[j].run < inputs[j].runs_end:
            phase = int64(INSERT)
    for j in range(n):
        is_bag = inputs[j].is_bag != 0
        lo, hi = inputs[j].hi if is_bag else inputs[j].lo, inputs[j].hi
        inputs[j].old_lo, inputs[j].old_hi, inputs[j].lo, inputs[j].stop = lo, hi, lo, hi
        at = inputs[j].run
        if at < inputs[j].runs_end and runs[at].ts == instant:
            leave = runs[at].deletions
            leaving += leave
            if is_bag:
                hi += leave
                inputs[j].hi = hi
            elif lo + leave > hi:
                state.status = MISSING
            inputs[j].lo = lo + leave
            inputs[j].stop = hi + runs[at].insertions
            inputs[j].run = at + 1
            if netted != 0:
                lo += leave
        inputs[j].probe_lo, inputs[j].probe_hi = 0 if is_bag else lo, NO_LIMIT
        stops[j] = inputs[j].stop
    state.instant = instant
    state.leaving = leaving
    if phase == INSERT and netted == 0 and leaving > 0:
        phase = int64(DELETE)
    return phase


@helper(inline=True)
def next_arrivals(windows: Windows, run: JoinRun, netted: bool) -> Any:
    """As `next_runs`, of streams with ranges: each lo moves past the rows that have left, old_lo stands before those
    of this very instant. Where not netted, rows leave up to the instant state.closed, also while no other comes.
    """
    inputs, nodes = windows.inputs, windows.nodes
    stops, state = run.stops, run.state
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        lo, hi, length = inputs[j].lo, inputs[j].hi, inputs[j].length
        if hi < inputs[j].stop:
            instant = min(instant, came_at(nodes, arrivals_of(windows, j), hi))
        if not netted and lo < hi and length != NO_RANGE:
            came = came_at(nodes, arrivals_of(windows, j), lo)
            # Rows came before the instant, so that the difference is seen right even where it wraps.
            if uint64(state.closed) - uint64(came) >= uint64(length):
                instant = min(instant, came + length)
    leaving = int64(0)
    for j in range(n if instant < MAX_INSTANT else 0):
        lo, hi, arrivals = inputs[j].lo, inputs[j].hi, arrivals_of(windows, j)
        length = uint64(inputs[j].length)
        while netted and lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) > length:
            lo += 1
        inputs[j].old_lo, inputs[j].old_hi = lo, hi
        while lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) >= length:
            lo += 1
        leaving += lo - inputs[j].old_lo
        stop = hi
        while stop < inputs[j].stop and came_at(nodes, arrivals, stop) == instant:
            stop += 1
        inputs[j].lo, inputs[j].linked, stops[j] = lo, stop, stop
        # Not netted, what leaves is found by what leaves of the inputs before.
        inputs[j].probe_lo, inputs[j].probe_hi = lo if netted else inputs[j].old_lo, NO_LIMIT
    state.instant = instant
    state.leaving = leaving
    phase = int64(START)
    if instant < MAX_INSTANT:
        phase = int64(DELETE if not netted and leaving > 0 else INSERT)
    return phase


@helper(inline=True)
def _next_survivors(windows: Windows, run: JoinRun, blocks: Blocks) -> Any:
    """As `next_arrivals`, netted, of the elements that drop probing has left of a block, which are linked: what comes
    later is not to be met.
    """
    inputs, nodes, state = windows.inputs, windows.nodes, run.state
    instant = int64(MAX_INSTANT)
    for j in range(len(inputs)):
        if inputs[j].survivor < inputs[j].survivors:
            slot = blocks.alive[j, inputs[j].survivor]
            instant = min(instant, came_at(nodes, arrivals_of(windows, j), slot))
    leaving = int64(0)
    for j in range(len(inputs) if instant < MAX_INSTANT else 0):
        arrivals, length, linked = arrivals_of(windows, j), uint64(inputs[j].length), inputs[j].linked
        lo, hi = inputs[j].lo, inputs[j].hi
        while hi < linked and came_at(nodes, arrivals, hi) < instant:
            hi += 1
        while lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) > length:
            lo += 1
        inputs[j].old_lo, inputs[j].old_hi, inputs[j].hi = lo, hi, hi
        while lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) >= length:
            lo += 1
        leaving += lo - inputs[j].old_lo
        stop = hi
        while stop < linked and came_at(nodes, arrivals, stop) == instant:
            stop += 1
        inputs[j].lo, run.stops[j], inputs[j].probe_lo, inputs[j].probe_hi = lo, stop, lo, hi
    state.instant, state.leaving = instant, leaving
    return int64(INSERT if instant < MAX_INSTANT else START)


@helper(inline=True)
def _next_survivor(inputs: Rows[JoinInput], stops: Int64s, blocks: Blocks, i: int) -> Any:
    """The next of them that comes at the instant, of an input from i on; -1 where none does."""
    own = int64(-1)
    while own < 0 and i < len(inputs):
        at = inputs[i].survivor
        if at < inputs[i].survivors and blocks.alive[i, at] < stops[i]:
            own, inputs[i].survivor = blocks.alive[i, at], at + 1
        else:
            # Of two elements of an instant, that of the later input finds the other.
            inputs[i].hi = inputs[i].probe_hi = stops[i]
            i += 1
    return i, own


@helper(inline=True)
def next_changes(windows: Windows, run: JoinRun, netted: bool) -> Any:
    """Take what changes at the next instant; as `next_runs`."""
    return next_arrivals(windows, run, netted) if run.of_streams != 0 else next_runs(windows, run)


@helper(inline=True)
def next_element(windows: Windows, run: JoinRun, blocks: Blocks | None, output: Output, found: int) -> Any:
    """The slot of the element of input state.input that comes next in state.phase; -1 where none waits.

    Elements with a NULL key, and what leaves and can cancel nothing, are passed over. stops: (n,), where the insertions
    of the instant stop.
    """
    inputs = windows.inputs
    stops, state, netted = run.stops, run.state, run.netted
    out, out_sign = output.out, output.out_sign
    n = len(inputs)
    phase, i, slot = state.phase, state.input, state.slot
    own = int64(-1)
    waits = True
    while own < 0 and waits:
        if phase == INSERT:
            if blocks is not None:
                i, own = _next_survivor(inputs, stops, blocks, i)
            while blocks is None and i < n and inputs[i].hi >= stops[i]:
                i += 1
            if i < n and blocks is None:
                slot = inputs[i].hi
                inputs[i].hi = slot + 1
                at = slot_of(windows, i, slot)
                if link_slot(windows, i, at):
                    own = at
            elif i == n and netted != 0 and state.leaving > 0 and found > state.first:
                stamp(windows, run, out, state.first, found)
                state.middle = found
                for j in range(n):
                    inputs[j].probe_lo, inputs[j].probe_hi = inputs[j].old_lo, inputs[j].old_hi
                phase, i, slot = int64(CANCEL), int64(0), inputs[0].old_lo - 1
            elif i == n:
                phase = int64(START)
        elif phase != START:
            slot += 1
            while i < n and slot >= inputs[i].lo:
                inputs[i].probe_lo = lowest_slot(windows, i)
                i += 1
                if i < n:
                    slot = inputs[i].old_lo
            if i < n:
                at = slot_of(windows, i, slot)
                if leave(windows, i, at) and (phase == DELETE or is_stamped(windows, run, i, at)):
                    own = at
            elif phase == DELETE:
                phase, i = int64(INSERT), int64(0)
            else:
                if found > state.middle:
                    deletions_first(out, out_sign, state.first, state.middle, found)
                    state.deleted += found - state.middle
                phase = int64(START)
        if phase == START:
            if blocks is not None:
                phase = _next_survivors(windows, run, blocks)
            else:
                phase = next_changes(windows, run, netted != 0)
            waits = phase != START and state.status != MISSING
            if waits:
                i, slot = int64(0), inputs[0].old_lo - 1
                state.first = found
    state.phase, state.input, state.slot = phase, i, slot
    return own
