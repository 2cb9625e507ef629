"""Joins with caches, instant by instant: which elements come next, and which deletions cancel what was put out.

Streams with ranges say by the instants of their slots when rows come and leave, other windows by their runs
(`kernels.mjoin`).
"""

from __future__ import annotations

from minidsms.elements import MAX_INSTANT, Int8Array, Int16Array, Int64Array
from minidsms.kernels.mjoin import (
    FIRST,
    HI,
    INSTANT,
    IS_BAG,
    LEAVING,
    LENGTH,
    LINKED,
    LO,
    MARKS,
    MASK,
    MIDDLE,
    MISSING,
    OLD_HI,
    OLD_LO,
    PROBE_HI,
    PROBE_LO,
    RUN,
    RUN_DELETIONS,
    RUN_INSERTIONS,
    RUN_TS,
    RUNS_END,
    SERIAL,
    STAMPS,
    STATUS,
    STOP,
)
from minidsms.machine_code import helper, int64, uint64

START, DELETE, INSERT, CANCEL = 0, 1, 2, 3
"""Phases of an instant: it is taken up; then deletions and insertions, or where netted insertions and those deletions
that may cancel one."""

NO_LIMIT = 2**62
"""More than any slot."""


@helper("void(int64[:, ::1], int8[::1], int64, int64, int64)")
def deletions_first(out: Int64Array, sign: Int8Array, first: int, middle: int, end: int) -> None:
    """Swap [first, middle), insertions, with [middle, end), deletions, each in some order (rotation by reversals)."""
    for j in range(len(out)):
        row = out[j]
        for a, b in ((first, middle), (middle, end), (first, end)):
            x, y = a, b - 1
            while x < y:
                row[x], row[y] = row[y], row[x]
                x += 1
                y -= 1
    for p in range(first, end):
        sign[p] = -1 if p < first + end - middle else 1


@helper
def next_runs(runs, inputs, stops, state, netted):  # type: ignore[no-untyped-def]
    """Take every input's run of the next instant; returns the phase it begins with, START when there is none."""
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


@helper
def next_arrivals(instants, inputs, stops, state):  # type: ignore[no-untyped-def]
    """As `next_runs`, of streams with ranges: each lo moves past the rows that have left, OLD_LO stands before those
    of this very instant.
    """
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        if inputs[j, HI] < inputs[j, STOP]:
            instant = min(instant, instants[inputs[j, MARKS] + (inputs[j, HI] & inputs[j, MASK])])
    leaving = int64(0)
    for j in range(n if instant < MAX_INSTANT else 0):
        lo, hi, base, mask = inputs[j, LO], inputs[j, HI], inputs[j, MARKS], inputs[j, MASK]
        length = uint64(inputs[j, LENGTH])
        # Rows came before the instant, so that the difference is seen right even where it wraps.
        while lo < hi and uint64(instant) - uint64(instants[base + (lo & mask)]) > length:
            lo += 1
        inputs[j, OLD_LO], inputs[j, OLD_HI] = lo, hi
        while lo < hi and uint64(instant) - uint64(instants[base + (lo & mask)]) == length:
            lo += 1
        leaving += lo - inputs[j, OLD_LO]
        stop = hi
        while stop < inputs[j, STOP] and instants[base + (stop & mask)] == instant:
            stop += 1
        inputs[j, LO], inputs[j, LINKED], stops[j] = lo, stop, stop
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo, NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
    return int64(INSERT if instant < MAX_INSTANT else START)


@helper
def stamp(
    inputs: Int64Array, marks: Int16Array, stamps: Int64Array, state: Int64Array, out: Int64Array, found: int
) -> None:
    """Stamp the marks of the instant's insertions, which stand in `out` from state[FIRST] on."""
    state[SERIAL] += 1
    state[MIDDLE] = found
    for j in range(len(inputs)):
        start, mask = inputs[j, MARKS], inputs[j, MASK]
        for p in range(state[FIRST], found):
            stamps[j, marks[start + (out[j, p] & mask)] & (STAMPS - 1)] = state[SERIAL]
