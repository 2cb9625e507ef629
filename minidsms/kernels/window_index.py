"""The index of the windows that an n-way join probes: slots are filled, put into their buckets and taken out again.

How it stands in arrays says `kernels.join_layout`. A slot of which a key is NULL stands in no bucket: it joins with
nothing.

Invariant: a bucket leads from its newest slot to ever older ones; of a bag all that stand in it are there.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import Int8Array, Int32Array, Int64Array
from minidsms.kernels.join_layout import (
    BACKS,
    HAS_NULLS,
    HEADS,
    HI,
    IS_BAG,
    KEY,
    KEYS_END,
    LO,
    MASK,
    NODES,
    RUN,
    RUNS_END,
    SHIFT,
    UNLINKED,
    Windows,
)
from minidsms.kernels.mixing import bucket, mixed
from minidsms.machine_code import Int64s, Int64Table, helper, int16, int32, int64, kernel, uint64


@helper
def link_slots(windows: Windows, i: int, first: Any, stop: int) -> Any:
    """Put the slots [first, stop) of input i, no bag, at the head of their buckets."""
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    mask, has_nulls = inputs[i, MASK], inputs[i, HAS_NULLS] != 0
    if has_nulls:
        for slot in range(first, stop):
            at = 2 * (slot & mask) + 1
            linked = True
            for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                linked &= nodes[keys[x, NODES] + at] != UNLINKED
            for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                if not linked:
                    nodes[keys[x, NODES] + at] = UNLINKED
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        base, buckets, shift = keys[x, NODES], keys[x, HEADS], keys[x, SHIFT]
        for slot in range(first, stop):
            k = uint64(base + 2 * (slot & mask))
            if not has_nulls or nodes[k + uint64(1)] != UNLINKED:
                b = uint64(buckets + bucket(nodes[k], shift))
                nodes[k + uint64(1)] = heads[b]
                heads[b] = slot


@helper(inline=True)
def link_slot(windows: Windows, i: int, slot: int) -> Any:
    """Put a slot of input i at the head of its buckets; False where it stands in none."""
    inputs, keys, nodes, heads, backs = windows.inputs, windows.keys, windows.nodes, windows.heads, windows.backs
    at = 2 * (slot & inputs[i, MASK])
    linked = True
    if inputs[i, HAS_NULLS] != 0:
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + at + 1] != UNLINKED
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k = uint64(keys[x, NODES] + at)
        if linked:
            b = uint64(keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT]))
            if inputs[i, IS_BAG] != 0:
                if heads[b] >= 0:
                    backs[keys[x, BACKS] + heads[b]] = slot
                backs[keys[x, BACKS] + slot] = -1
            nodes[k + uint64(1)] = heads[b]
            heads[b] = slot
        else:
            nodes[k + uint64(1)] = UNLINKED
    return linked


@helper(inline=True)
def unlink_slot(windows: Windows, i: int, slot: int) -> Any:
    """Take a slot of bag i, which stands in its buckets, out of them."""
    inputs, keys, nodes, heads, backs = windows.inputs, windows.keys, windows.nodes, windows.heads, windows.backs
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k, back = keys[x, NODES] + 2 * slot, keys[x, BACKS]
        newer, older = backs[back + slot], nodes[k + 1]
        if older >= 0:
            backs[back + older] = newer
        if newer >= 0:
            nodes[keys[x, NODES] + 2 * newer + 1] = older
        else:
            heads[keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])] = older
        backs[back + slot] = UNLINKED


@helper(inline=True)
def hashed_tag(windows: Windows, checks: Int64Table, slots: Int64s, first: int, begin: int, end: int) -> Any:
    """The tag that the slots chosen give for the keys that checks[begin:end] compare, hashed as one (`combine_keys`).

    slots: that of input i stands at first + i.
    """
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    tag = int64(1)
    for c in range(begin, end):
        f = checks[c, 0]
        tag = mixed(tag, nodes[keys[checks[c, 1], NODES] + 2 * (slots[first + f] & inputs[f, MASK])])
    return tag


@helper(inline=True)
def checks_hold(windows: Windows, checks: Int64Table, chosen: Int64s, begin: int, end: int) -> Any:
    """The further keys that a step compares, checks[begin:end], are equal of the slots chosen."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    equal = True
    for c in range(begin, end):
        a, b = checks[c, 0], checks[c, 2]
        at_a = keys[checks[c, 1], NODES] + 2 * (chosen[a] & inputs[a, MASK])
        at_b = keys[checks[c, 3], NODES] + 2 * (chosen[b] & inputs[b, MASK])
        equal &= nodes[at_a] == nodes[at_b]
    return equal


@kernel("int64(int64[::1], int8[::1], boolean, int64[:, ::1], int64[::1])")
def take_runs(ts, sign, has_signs, runs, figures):  # type: ignore[no-untyped-def]
    """Count each instant's deletions and insertions into runs[figures[RUN]:]; returns the most rows held after any.

    sign: read where has_signs; else all are insertions.  figures: of the input; RUNS_END is set.
    """
    n = len(ts)
    i = 0
    at = figures[RUN]
    held = figures[HI] - figures[LO]
    most = held
    while i < n:
        instant = ts[i]
        first = i
        if has_signs:
            while i < n and ts[i] == instant and sign[i] < 0:
                i += 1
        middle = i
        while i < n and ts[i] == instant:
            i += 1
        runs[at, 0], runs[at, 1], runs[at, 2] = instant, middle - first, i - middle
        at += 1
        held += i - middle - (middle - first)
        most = max(most, held)
    figures[RUNS_END] = at
    return int64(most)


@kernel("int64(int64[::1], int8[::1], boolean, int32[::1], int64)")
def take_numbers(seq: Int64Array, sign: Int8Array, has_signs: bool, ring: Int32Array, hi: int) -> Any:
    """Write the insertions' numbers into the ring from slot hi on; returns the new hi."""
    mask = len(ring) - 1
    for i in range(len(seq)):
        if not has_signs or sign[i] > 0:
            ring[hi & mask] = int32(seq[i])
            hi += 1
    return int64(hi)


@kernel(
    "int64(int64[::1], boolean[::1], int64, int32[::1], int64, int64, int64[::1], int64)",
    "int64(int8[::1], boolean[::1], int64, int32[::1], int64, int64, int64[::1], int64)",
)
def take_key(  # type: ignore[no-untyped-def]
    values, valid, store_mask, ring, lo, hi, nodes, base
):
    """Copy the words of the slots [lo, hi) into a key's nodes; returns how many are NULL.

    values[number & store_mask] is a slot's word; valid alike, or empty where nothing is NULL.
    """
    mask = len(ring) - 1
    nulls = 0
    may_be_null = len(valid) > 0
    for slot in range(lo, hi):
        k = slot & mask
        at = ring[k] & store_mask
        nodes[base + 2 * k] = values[at]
        nodes[base + 2 * k + 1] = -1
        if may_be_null and not valid[at]:
            nodes[base + 2 * k + 1] = UNLINKED
            nulls += 1
    return int64(nulls)


@kernel("void(int64[::1], int64, int64[::1], int64, int64, int64, int64)")
def combine_keys(nodes, base, parts, mask, lo, hi, has_nulls):  # type: ignore[no-untyped-def]
    """Give a composite key the hash of its parts, whose nodes begin at `parts`; NULL where any part is."""
    for slot in range(lo, hi):
        k = 2 * (slot & mask)
        h = int64(1)
        following = int64(-1)
        for p in parts:
            h = mixed(h, nodes[p + k])
            if has_nulls != 0 and nodes[p + k + 1] == UNLINKED:
                following = int64(UNLINKED)
        nodes[base + k] = h
        nodes[base + k + 1] = following


@kernel(
    "void(int64[::1], int64, int32[::1], int64, int64, int16[::1], int64, boolean)",
    "void(int8[::1], int64, int32[::1], int64, int64, int16[::1], int64, boolean)",
)
def take_marks(values, store_mask, ring, lo, hi, marks, base, is_first):  # type: ignore[no-untyped-def]
    """Hash a column that the answer shows into the marks of the slots [lo, hi)."""
    mask = len(ring) - 1
    for slot in range(lo, hi):
        k = slot & mask
        before = int64(1) if is_first else int64(marks[base + k])
        marks[base + k] = int16(mixed(before, values[ring[k] & store_mask]))


@kernel
def relink(windows: Windows, i: int) -> None:
    """Fill empty buckets of input i with its slots."""
    inputs = windows.inputs
    link_slots(windows, i, inputs[i, LO], inputs[i, HI])


@kernel
def relink_bag(windows: Windows, i: int, slots: Int64s) -> None:
    """Put slots of bag i at the head of its buckets; one of which any key is NULL stands in none."""
    nodes, heads, backs, inputs, keys = windows.nodes, windows.heads, windows.backs, windows.inputs, windows.keys
    for slot in slots:
        linked = True
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + 2 * slot + 1] != UNLINKED
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            k, back = keys[x, NODES] + 2 * slot, keys[x, BACKS]
            if linked:
                b = keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])
                older = heads[b]
                if older >= 0:
                    backs[back + older] = slot
                nodes[k + 1], backs[back + slot], heads[b] = older, -1, slot
            else:
                nodes[k + 1], backs[back + slot] = UNLINKED, UNLINKED
