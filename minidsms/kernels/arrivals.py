"""Rows of streams with ranges in the slots of a join's windows: they come, and leave when their time has passed.

The slots are those of `kernels.join_layout`; `instants` says of each when its row came.
"""

from __future__ import annotations

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import HI, LEAVES, LENGTH, LINKED, LO, MARKS, MASK, NO_RANGE, STOP
from minidsms.machine_code import int32, int64, kernel, uint64


@kernel("int64(int64[::1], int64[::1], int32[::1], int64[::1], int64[::1])")
def take_arrivals(seq, ts, ring, instants, figures):  # type: ignore[no-untyped-def]
    """Write a stream's elements into the slots from HI on: numbers into the ring, instants; STOP is set.

    Returns the most rows held at once, and at least one.
    """
    figures[LINKED] = figures[HI]
    mask, base, length = figures[MASK], figures[MARKS], figures[LENGTH]
    hi = figures[HI]
    lo = figures[LO]
    most = int64(1)
    for i in range(len(seq)):
        t = ts[i]
        k = hi & mask
        ring[k] = int32(seq[i])
        instants[base + k] = t
        hi += 1
        # ts[lo] <= t, so that the difference is seen right even where it wraps; NO_RANGE is the greatest.
        while uint64(t) - uint64(instants[base + (lo & mask)]) >= uint64(length):
            lo += 1
        most = max(most, hi - lo)
    figures[STOP] = hi
    return int64(most)


@kernel("void(int64[::1], int64[:, ::1], int64)")
def expire(instants, inputs, until):  # type: ignore[no-untyped-def]
    """Let go the rows that have left at `until`, and say when the next one leaves; no element waits."""
    for j in range(len(inputs)):
        lo, base, mask = inputs[j, LO], inputs[j, MARKS], inputs[j, MASK]
        while lo < inputs[j, HI]:
            came = instants[base + (lo & mask)]
            if came > until or uint64(until) - uint64(came) < uint64(inputs[j, LENGTH]):
                break
            lo += 1
        inputs[j, LO] = lo
        inputs[j, LEAVES] = MAX_INSTANT
        if lo < inputs[j, HI] and inputs[j, LENGTH] != NO_RANGE:
            came = instants[base + (lo & mask)]
            if came <= MAX_INSTANT - inputs[j, LENGTH]:
                inputs[j, LEAVES] = came + inputs[j, LENGTH]
