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
    CLOSED,
    DELETE,
    DELETED,
    FIRST,
    HI,
    INPUT,
    INSERT,
    INSTANT,
    IS_BAG,
    LEAVING,
    LENGTH,
    LINKED,
    LO,
    MIDDLE,
    MISSING,
    NO_LIMIT,
    NO_RANGE,
    OLD_HI,
    OLD_LO,
    PHASE,
    PROBE_HI,
    PROBE_LO,
    RUN,
    RUN_DELETIONS,
    RUN_INSERTIONS,
    RUN_TS,
    RUNS_END,
    SLOT,
    START,
    STATUS,
    STOP,
    SURVIVOR,
    SURVIVORS,
    Blocks,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_stamps import deletions_first, is_stamped, stamp
from minidsms.kernels.links import arrivals_of, came_at
from minidsms.machine_code import Int64s, Int64Table, helper, int64, uint64


@helper(inline=True)
def next_runs(windows: Windows, run: JoinRun) -> Any:
    """Take every input's run of the next instant; returns the phase it begins with, START when there is none."""
    runs, inputs = windows.runs, windows.inputs
    stops, state, netted = run.stops, run.state, run.netted
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        if inputs[j, RUN] < inputs[j, RUNS_END]:
            instant = min(instant, runs[inputs[j, RUN], RUN_TS])
    phase = int64(START)
    leaving = int64(0)
    for j in range(n):
        if inputs[j, RUN] < inputs[j, RUNS_END]:
            phase = int64(INSERT)
    for j in range(n):
        is_bag = inputs[j, IS_BAG] != 0
        lo, hi = inputs[j, HI] if is_bag else inputs[j, LO], inputs[j, HI]
        inputs[j, OLD_LO], inputs[j, OLD_HI], inputs[j, LO], inputs[j, STOP] = lo, hi, lo, hi
        at = inputs[j, RUN]
        if at < inputs[j, RUNS_END] and runs[at, RUN_TS] == instant:
            leave = runs[at, RUN_DELETIONS]
            leaving += leave
            if is_bag:
                hi += leave
                inputs[j, HI] = hi
            elif lo + leave > hi:
                state[STATUS] = MISSING
            inputs[j, LO] = lo + leave
            inputs[j, STOP] = hi + runs[at, RUN_INSERTIONS]
            inputs[j, RUN] = at + 1
            if netted != 0:
                lo += leave
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = 0 if is_bag else lo, NO_LIMIT
        stops[j] = inputs[j, STOP]
    state[INSTANT] = instant
    state[LEAVING] = leaving
    if phase == INSERT and netted == 0 and leaving > 0:
        phase = int64(DELETE)
    return phase


@helper(inline=True)
def next_arrivals(windows: Windows, run: JoinRun, netted: bool) -> Any:
    """As `next_runs`, of streams with ranges: each lo moves past the rows that have left, OLD_LO stands before those
    of this very instant. Where not netted, rows leave up to the instant state[CLOSED], also while no other comes.
    """
    inputs, nodes = windows.inputs, windows.nodes
    stops, state = run.stops, run.state
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        lo, hi, length = inputs[j, LO], inputs[j, HI], inputs[j, LENGTH]
        if hi < inputs[j, STOP]:
            instant = min(instant, came_at(nodes, arrivals_of(windows, j), hi))
        if not netted and lo < hi and length != NO_RANGE:
            came = came_at(nodes, arrivals_of(windows, j), lo)
            # Rows came before the instant, so that the difference is seen right even where it wraps.
            if uint64(state[CLOSED]) - uint64(came) >= uint64(length):
                instant = min(instant, came + length)
    leaving = int64(0)
    for j in range(n if instant < MAX_INSTANT else 0):
        lo, hi, arrivals = inputs[j, LO], inputs[j, HI], arrivals_of(windows, j)
        length = uint64(inputs[j, LENGTH])
        while netted and lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) > length:
            lo += 1
        inputs[j, OLD_LO], inputs[j, OLD_HI] = lo, hi
        while lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) >= length:
            lo += 1
        leaving += lo - inputs[j, OLD_LO]
        stop = hi
        while stop < inputs[j, STOP] and came_at(nodes, arrivals, stop) == instant:
            stop += 1
        inputs[j, LO], inputs[j, LINKED], stops[j] = lo, stop, stop
        # Not netted, what leaves is found by what leaves of the inputs before.
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo if netted else inputs[j, OLD_LO], NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
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
        if inputs[j, SURVIVOR] < inputs[j, SURVIVORS]:
            slot = blocks.alive[j, inputs[j, SURVIVOR]]
            instant = min(instant, came_at(nodes, arrivals_of(windows, j), slot))
    leaving = int64(0)
    for j in range(len(inputs) if instant < MAX_INSTANT else 0):
        arrivals, length, linked = arrivals_of(windows, j), uint64(inputs[j, LENGTH]), inputs[j, LINKED]
        lo, hi = inputs[j, LO], inputs[j, HI]
        while hi < linked and came_at(nodes, arrivals, hi) < instant:
            hi += 1
        while lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) > length:
            lo += 1
        inputs[j, OLD_LO], inputs[j, OLD_HI], inputs[j, HI] = lo, hi, hi
        while lo < hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) >= length:
            lo += 1
        leaving += lo - inputs[j, OLD_LO]
        stop = hi
        while stop < linked and came_at(nodes, arrivals, stop) == instant:
            stop += 1
        inputs[j, LO], run.stops[j], inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo, stop, lo, hi
    state[INSTANT], state[LEAVING] = instant, leaving
    return int64(INSERT if instant < MAX_INSTANT else START)


@helper(inline=True)
def _next_survivor(inputs: Int64Table, stops: Int64s, blocks: Blocks, i: int) -> Any:
    """The next of them that comes at the instant, of an input from i on; -1 where none does."""
    own = int64(-1)
    while own < 0 and i < len(inputs):
        at = inputs[i, SURVIVOR]
        if at < inputs[i, SURVIVORS] and blocks.alive[i, at] < stops[i]:
            own, inputs[i, SURVIVOR] = blocks.alive[i, at], at + 1
        else:
            # Of two elements of an instant, that of the later input finds the other.
            inputs[i, HI] = inputs[i, PROBE_HI] = stops[i]
            i += 1
    return i, own


@helper(inline=True)
def next_changes(windows: Windows, run: JoinRun, netted: bool) -> Any:
    """Take what changes at the next instant; as `next_runs`."""
    return next_arrivals(windows, run, netted) if run.of_streams != 0 else next_runs(windows, run)


@helper(inline=True)
def next_element(windows: Windows, run: JoinRun, blocks: Blocks | None, output: Output, found: int) -> Any:
    """The slot of the element of input state[INPUT] that comes next in state[PHASE]; -1 where none waits.

    Elements with a NULL key, and what leaves and can cancel nothing, are passed over. stops: (n,), where the insertions
    of the instant stop.
    """
    inputs = windows.inputs
    stops, state, netted = run.stops, run.state, run.netted
    out, out_sign = output.out, output.out_sign
    n = len(inputs)
    phase, i, slot = state[PHASE], state[INPUT], state[SLOT]
    own = int64(-1)
    waits = True
    while own < 0 and waits:
        if phase == INSERT:
            if blocks is not None:
                i, own = _next_survivor(inputs, stops, blocks, i)
            while blocks is None and i < n and inputs[i, HI] >= stops[i]:
                i += 1
            if i < n and blocks is None:
                slot = inputs[i, HI]
                inputs[i, HI] = slot + 1
                at = slot_of(windows, i, slot)
                if link_slot(windows, i, at):
                    own = at
            elif i == n and netted != 0 and state[LEAVING] > 0 and found > state[FIRST]:
                stamp(windows, run, out, state[FIRST], found)
                state[MIDDLE] = found
                for j in range(n):
                    inputs[j, PROBE_LO], inputs[j, PROBE_HI] = inputs[j, OLD_LO], inputs[j, OLD_HI]
                phase, i, slot = int64(CANCEL), int64(0), inputs[0, OLD_LO] - 1
            elif i == n:
                phase = int64(START)
        elif phase != START:
            slot += 1
            while i < n and slot >= inputs[i, LO]:
                inputs[i, PROBE_LO] = lowest_slot(windows, i)
                i += 1
                if i < n:
                    slot = inputs[i, OLD_LO]
            if i < n:
                at = slot_of(windows, i, slot)
                if leave(windows, i, at) and (phase == DELETE or is_stamped(windows, run, i, at)):
                    own = at
            elif phase == DELETE:
                phase, i = int64(INSERT), int64(0)
            else:
                if found > state[MIDDLE]:
                    deletions_first(out, out_sign, state[FIRST], state[MIDDLE], found)
                    state[DELETED] += found - state[MIDDLE]
                phase = int64(START)
        if phase == START:
            if blocks is not None:
                phase = _next_survivors(windows, run, blocks)
            else:
                phase = next_changes(windows, run, netted != 0)
            waits = phase != START and state[STATUS] != MISSING
            if waits:
                i, slot = int64(0), inputs[0, OLD_LO] - 1
                state[FIRST] = found
    state[PHASE], state[INPUT], state[SLOT] = phase, i, slot
    return own
