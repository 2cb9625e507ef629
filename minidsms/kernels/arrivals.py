"""Rows of streams with ranges in the slots of a join's windows: they come, and leave when their time has passed.

The slots are those of `kernels.join_layout`; when a row came says its store.
"""

from __future__ import annotations

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import (
    HI,
    INSTANTS,
    LEAVES,
    LENGTH,
    LINKED,
    LO,
    MASK,
    NO_RANGE,
    ROWS,
    STOP,
    STORE_MASK,
)
from minidsms.kernels.links import Arrivals, came_at, set_upper_half
from minidsms.machine_code import int64, kernel, uint64


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[::1])")
def take_arrivals(seq, ts, nodes, figures):  # type: ignore[no-untyped-def]
    """Write the numbers of a stream's elements into the slots from HI on; STOP is set.

    Returns the most rows held at once, and at least one.
    """
    figures[LINKED] = figures[HI]
    rows, mask, length = figures[ROWS], figures[MASK], figures[LENGTH]
    arrivals = Arrivals(rows, mask, figures[INSTANTS], figures[STORE_MASK])
    hi = figures[HI]
    lo = figures[LO]
    most = int64(1)
    for i in range(len(seq)):
        t = ts[i]
        set_upper_half(nodes, rows + 2 * (hi & mask), seq[i])
        hi += 1
        # ts[lo] <= t, so that the difference is seen right even where it wraps; NO_RANGE is the greatest.
        while uint64(t) - uint64(came_at(nodes, arrivals, lo)) >= uint64(length):
            lo += 1
        most = max(most, hi - lo)
    figures[STOP] = hi
    return int64(most)


@kernel("void(int64[::1], int64[:, ::1], int64)")
def expire(nodes, inputs, until):  # type: ignore[no-untyped-def]
    """Let go the rows that have left at `until`, and say when the next one leaves; no element waits."""
    for j in range(len(inputs)):
        arrivals = Arrivals(inputs[j, ROWS], inputs[j, MASK], inputs[j, INSTANTS], inputs[j, STORE_MASK])
        lo = inputs[j, LO]
        while lo < inputs[j, HI]:
            came = came_at(nodes, arrivals, lo)
            if came > until or uint64(until) - uint64(came) < uint64(inputs[j, LENGTH]):
                break
            lo += 1
        inputs[j, LO] = lo
        inputs[j, LEAVES] = MAX_INSTANT
        if lo < inputs[j, HI] and inputs[j, LENGTH] != NO_RANGE:
            came = came_at(nodes, arrivals, lo)
            if came <= MAX_INSTANT - inputs[j, LENGTH]:
                inputs[j, LEAVES] = came + inputs[j, LENGTH]
