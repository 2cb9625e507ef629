"""Joining n streams with ranges where the consumer is ISTREAM: what enters, instant by instant.

The index is that of `kernels.mjoin`, but no deletion is ever an element: `instants` of a slot say when it came, and lo
moves on when an instant has insertions. Rows that leave at that very instant are probed only to cancel insertions
(docs/semantics S1).

Invariant: an instant is joined whole or, where `out` is full, not at all: then its insertions are unlinked again,
newest first. What calls each other stands in one file, so two short functions are here as well as in `kernels.mjoin`.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from minidsms.elements import MAX_INSTANT, Int8Array, Int64Array
from minidsms.kernels.mjoin import (
    CHECK,
    CHECKS_END,
    DELETED,
    DONE,
    FROM,
    FROM_KEY,
    FULL,
    HAS_NULLS,
    HEADS,
    HI,
    INSPECTED,
    KEY,
    KEYS_END,
    LEAVES,
    LENGTH,
    LO,
    MARKS,
    MASK,
    NEXT,
    NO_RANGE,
    NODES,
    OLD_HI,
    OLD_LO,
    PROBE_LO,
    PROBED,
    SERIAL,
    SHIFT,
    STAMPS,
    STATUS,
    STEP_WORDS,
    STOP,
    TARGET,
    UNLINKED,
)

TARGET_NODES, TARGET_MASK, TARGET_HEADS, TARGET_SHIFT, SOURCE_NODES, SOURCE_MASK = range(STEP_WORDS, STEP_WORDS + 6)
PLACED_WORDS = STEP_WORDS + 6
"""Of a placed step, beyond what a step has: where the index holds what it reads."""

_NO_LIMIT = 2**62


@njit("int64(int64, int64)", cache=True, nogil=True, inline="always")
def _bucket(tag: int, shift: int) -> np.int64:
    h = uint64(tag)
    h ^= h >> uint64(32)
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(shift))


@njit("void(int64[:, ::1], int8[::1], int64, int64, int64)", cache=True, nogil=True)
def _deletions_first(out: Int64Array, sign: Int8Array, first: int, middle: int, end: int) -> None:
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


@njit("void(int64[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[::1])", cache=True, nogil=True)
def place_steps(steps, inputs, keys, placed):  # type: ignore[no-untyped-def]
    """Write the steps with the places of their nodes and heads, which hold until the index is laid out anew."""
    at = 0
    for i in range(steps.shape[0]):
        for d in range(steps.shape[1]):
            step = placed[at : at + PLACED_WORDS]
            step[:STEP_WORDS] = steps[i, d]
            x, y = step[PROBED], step[FROM_KEY]
            step[TARGET_NODES], step[TARGET_HEADS], step[TARGET_SHIFT] = keys[x, NODES], keys[x, HEADS], keys[x, SHIFT]
            step[SOURCE_NODES] = keys[y, NODES]
            step[TARGET_MASK], step[SOURCE_MASK] = inputs[step[TARGET], MASK], inputs[step[FROM], MASK]
            at += PLACED_WORDS


@njit("int64(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", cache=True, nogil=True)
def take_arrivals(seq, ts, ring, instants, figures):  # type: ignore[no-untyped-def]
    """Write a stream's elements into the slots from HI on: numbers into the ring, instants; STOP and NEXT are set.

    Returns the most rows held at once, and at least one.
    """
    mask, base, length = figures[MASK], figures[MARKS], figures[LENGTH]
    hi = figures[HI]
    lo = figures[LO]
    most = int64(1)
    for i in range(len(seq)):
        t = ts[i]
        k = hi & mask
        ring[k] = seq[i]
        instants[base + k] = t
        hi += 1
        if length != NO_RANGE:
            # ts[lo] <= t, so that the difference is seen right even where it wraps.
            while uint64(t) - uint64(instants[base + (lo & mask)]) >= uint64(length):
                lo += 1
        most = max(most, hi - lo)
    if len(seq) > 0 and figures[STOP] <= figures[HI]:
        figures[NEXT] = ts[0]
    figures[STOP] = hi
    return int64(most)


@njit(inline="always")
def _leaves(instants: Int64Array, inputs: Int64Array, j: int, lo: int) -> np.int64:
    """When the row in slot lo of input j leaves."""
    ts = instants[uint64(inputs[j, MARKS] + (lo & inputs[j, MASK]))]
    length = inputs[j, LENGTH]
    return int64(MAX_INSTANT) if length == NO_RANGE or ts > MAX_INSTANT - length else ts + length


@njit("void(int64[::1], int64[:, ::1], int64)", cache=True, nogil=True)
def expire(instants, inputs, until):  # type: ignore[no-untyped-def]
    """Let go the rows that have left at `until`; no element waits."""
    for j in range(len(inputs)):
        lo, hi = inputs[j, LO], inputs[j, HI]
        while lo < hi and _leaves(instants, inputs, j, lo) <= until:
            lo += 1
        inputs[j, LO] = lo
        inputs[j, LEAVES] = _leaves(instants, inputs, j, lo) if lo < hi else MAX_INSTANT


@njit(inline="always")
def _leave(instants: Int64Array, inputs: Int64Array, instant: int) -> np.int64:
    """Move each lo past the rows that have left; OLD_LO stands before those of this very instant: returns how many."""
    leaving = int64(0)
    for j in range(len(inputs)):
        lo, hi = inputs[j, LO], inputs[j, HI]
        inputs[j, OLD_LO], inputs[j, OLD_HI] = lo, hi
        if inputs[j, LEAVES] <= instant:
            base, mask = inputs[j, MARKS], inputs[j, MASK]
            came = instant - inputs[j, LENGTH]
            while lo < hi and instants[uint64(base + (lo & mask))] < came:
                lo += 1
            inputs[j, OLD_LO] = lo
            while lo < hi and instants[uint64(base + (lo & mask))] == came:
                lo += 1
            leaving += lo - inputs[j, OLD_LO]
            inputs[j, LO] = lo
            inputs[j, LEAVES] = _leaves(instants, inputs, j, lo) if lo < hi else MAX_INSTANT
    return leaving


@njit(inline="always")
def _probe(  # type: ignore[no-untyped-def]
    i, slot, cancels, instant, inputs, placed, checks, keys, nodes, heads, marks, stamps, walks, serial,
    out, out_ts, out_sign, found,
):  # fmt: skip
    """The pipeline of one slot of input i; returns how many tuples stand in `out`, -1 where it is full, and the slots
    inspected.  cancels: deletions are found, of tuples all of whose marks are stamped.
    """
    n = len(inputs)
    last, limit = n - 2, len(out_ts)
    inspected = 0
    depth = 0
    # Unsigned, for then no index is tested for being negative.
    p = uint64(i * (n - 1) * PLACED_WORDS)
    walks[2, i] = slot
    tag = nodes[uint64(placed[p + uint64(SOURCE_NODES)] + 2 * (slot & placed[p + uint64(SOURCE_MASK)]))]
    s = heads[uint64(placed[p + uint64(TARGET_HEADS)] + _bucket(tag, placed[p + uint64(TARGET_SHIFT)]))]
    while depth >= 0:
        j = uint64(placed[p + uint64(TARGET)])
        base, jmask = placed[p + uint64(TARGET_NODES)], placed[p + uint64(TARGET_MASK)]
        low = inputs[j, PROBE_LO] if cancels else inputs[j, LO]
        high = inputs[j, OLD_HI] if cancels else int64(_NO_LIMIT)
        descends = False
        while s >= low:
            k = uint64(base + 2 * (s & jmask))
            following = nodes[k + uint64(1)]
            inspected += 1
            if nodes[k] == tag and s < high:
                walks[2, j] = s
                equal = True
                for c in range(placed[p + uint64(CHECK)], placed[p + uint64(CHECKS_END)]):
                    a, b = checks[c, 0], checks[c, 2]
                    at_a = keys[checks[c, 1], NODES] + 2 * (walks[2, a] & inputs[a, MASK])
                    at_b = keys[checks[c, 3], NODES] + 2 * (walks[2, b] & inputs[b, MASK])
                    equal &= nodes[at_a] == nodes[at_b]
                if equal and depth < last:
                    descends = True
                    s = following
                    break
                if cancels and equal:
                    for m in range(n):
                        mark = marks[inputs[m, MARKS] + (walks[2, m] & inputs[m, MASK])]
                        equal &= stamps[m, mark & (STAMPS - 1)] == serial
                if equal:
                    if found == limit:
                        found = int64(-1)
                        break
                    for m in range(n):
                        out[m, uint64(found)] = walks[2, m]
                    out_ts[uint64(found)] = instant
                    out_sign[uint64(found)] = -1 if cancels else 1
                    found += 1
            s = following
        if found < 0:
            depth = -1
        elif descends:
            walks[0, depth], walks[1, depth] = tag, s
            depth += 1
            p += uint64(PLACED_WORDS)
            slot = walks[2, uint64(placed[p + uint64(FROM)])]
            tag = nodes[uint64(placed[p + uint64(SOURCE_NODES)] + 2 * (slot & placed[p + uint64(SOURCE_MASK)]))]
            s = heads[uint64(placed[p + uint64(TARGET_HEADS)] + _bucket(tag, placed[p + uint64(TARGET_SHIFT)]))]
        else:
            depth -= 1
            p -= uint64(PLACED_WORDS)
            if depth >= 0:
                tag, s = walks[0, depth], walks[1, depth]
    return found, inspected


@njit(
    "int64(int64, int64, int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1], int8[::1], int64)",
    cache=True,
    nogil=True,
)
def _cancel(  # type: ignore[no-untyped-def]
    first, instant, inputs, placed, checks, keys, nodes, heads, marks, stamps, walks, state,
    out, out_ts, out_sign, found,
):  # fmt: skip
    """Put those deletions of the instant that may cancel one of its insertions out[:, first:found] before them.

    Returns how many tuples stand in `out`, -1 where it is full.
    """
    n = len(inputs)
    state[SERIAL] += 1
    serial = state[SERIAL]
    middle = found
    for j in range(n):
        start, mask = inputs[j, MARKS], inputs[j, MASK]
        for p in range(first, found):
            stamps[j, marks[start + (out[j, p] & mask)] & (STAMPS - 1)] = serial
        inputs[j, PROBE_LO] = inputs[j, OLD_LO]
    for i in range(n):
        start, mask, base = inputs[i, MARKS], inputs[i, MASK], keys[inputs[i, KEY], NODES]
        for slot in range(inputs[i, OLD_LO], inputs[i, LO]):
            at = slot & mask
            if stamps[i, marks[start + at] & (STAMPS - 1)] == serial and nodes[base + 2 * at + 1] != UNLINKED:
                found, inspected = _probe(
                    i, slot, True, instant, inputs, placed, checks, keys, nodes, heads, marks, stamps, walks, serial,
                    out, out_ts, out_sign, found,
                )  # fmt: skip
                state[INSPECTED] += inspected
                if found < 0:
                    return int64(-1)
        inputs[i, PROBE_LO] = inputs[i, LO]
    if found > middle:
        _deletions_first(out, out_sign, first, middle, found)
        state[DELETED] += found - middle
    return int64(found)


@njit(inline="always")
def _undo(  # type: ignore[no-untyped-def]
    inputs, keys, nodes, heads, instant
):
    """Take back the instant: its insertions leave their buckets, newest first, and what left at it is there again."""
    for i in range(len(inputs)):
        mask = inputs[i, MASK]
        for slot in range(inputs[i, HI] - 1, inputs[i, OLD_HI] - 1, -1):
            for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                k = keys[x, NODES] + 2 * (slot & mask)
                if nodes[k + 1] != UNLINKED:
                    heads[keys[x, HEADS] + _bucket(nodes[k], keys[x, SHIFT])] = nodes[k + 1]
        if inputs[i, HI] > inputs[i, OLD_HI]:
            inputs[i, HI], inputs[i, NEXT] = inputs[i, OLD_HI], instant
        if inputs[i, LO] > inputs[i, OLD_LO]:
            inputs[i, LO], inputs[i, LEAVES] = inputs[i, OLD_LO], instant
        elif inputs[i, LO] >= inputs[i, HI]:
            inputs[i, LEAVES] = MAX_INSTANT


@njit(
    "int64(int64[::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1], int8[::1])",
    cache=True,
    nogil=True,
)
def join_entering(  # type: ignore[no-untyped-def]
    instants, inputs, placed, checks, keys, nodes, heads, marks, stamps, walks, state, out, out_ts, out_sign
):
    """Join the elements that wait, instant by instant; returns how many tuples stand in `out`.

    state[STATUS] is FULL where the next instant does not fit; call again with `out` empty, and larger where nothing was
    returned. Arguments as of `mjoin`.  O(elements + tuples + slots inspected).
    """
    n = len(inputs)
    found = int64(0)
    total = int64(0)
    state[STATUS] = DONE
    while state[STATUS] == DONE:
        instant = int64(MAX_INSTANT)
        for j in range(n):
            instant = min(instant, inputs[j, NEXT])
        if instant == MAX_INSTANT:
            break
        leaving = _leave(instants, inputs, instant)  # type: ignore[arg-type]
        first = found
        for i in range(n):
            if inputs[i, NEXT] != instant or found < 0:
                continue
            base, mask, stop = inputs[i, MARKS], inputs[i, MASK], inputs[i, STOP]
            slot, has_nulls = inputs[i, HI], inputs[i, HAS_NULLS] != 0
            if inputs[i, LO] == slot:
                inputs[i, LEAVES] = _leaves(instants, inputs, i, slot)
            following = instant
            while following == instant and found >= 0:
                # As `_link`, written out: inlined, it counts references to the arrays, atomically, at every element.
                at = 2 * (slot & mask)
                linked = True
                if has_nulls:
                    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                        linked &= nodes[keys[x, NODES] + at + 1] != UNLINKED
                for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                    k = uint64(keys[x, NODES] + at)
                    if linked:
                        b = uint64(keys[x, HEADS] + _bucket(nodes[k], keys[x, SHIFT]))
                        nodes[k + uint64(1)] = heads[b]
                        heads[b] = slot
                    else:
                        nodes[k + uint64(1)] = UNLINKED
                if linked:
                    found, inspected = _probe(
                        i, slot, False, instant, inputs, placed, checks, keys, nodes, heads, marks, stamps, walks,
                        int64(0), out, out_ts, out_sign, found,
                    )  # fmt: skip
                    total += inspected
                slot += 1
                following = instants[uint64(base + (slot & mask))] if slot < stop else int64(MAX_INSTANT)
            inputs[i, HI], inputs[i, NEXT] = slot, following
        if found > first and leaving > 0:
            found = _cancel(
                first, instant, inputs, placed, checks, keys, nodes, heads, marks, stamps, walks, state,
                out, out_ts, out_sign, found,
            )  # fmt: skip
        if found < 0:
            _undo(inputs, keys, nodes, heads, instant)
            found = first
            state[STATUS] = FULL
    state[INSPECTED] += total
    return found
