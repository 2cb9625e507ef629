"""Chains of slots whose keys share a bucket, by which the rows of a join's windows are found.

What every kernel that joins asks of an index stands here, and nowhere else: `link` and `unlink` a slot, the tag that a
step of a pipeline asks for, the `first` slot of its bucket and the `next` one that has the tag. A chain leads from its
newest slot to ever older ones; of a window whose rows leave in order it ends at the first that has left, of a bag all
that stand in it are there. A slot of which a key is NULL stands in no bucket: it joins with nothing.

Which rows have a tag in common, and which tags a step asks for, one after the other (`further`), says its access method
(`access_methods.methods`).

How it all stands in arrays says `kernels.join_layout`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.access_methods.bit_addresses import BY_ADDRESS
from minidsms.kernels.access_methods.hashes import hashed_tag
from minidsms.kernels.access_methods.methods import first_tag, next_tag
from minidsms.kernels.join_layout import (
    JoinStep,
    Windows,
)
from minidsms.kernels.links import (
    LOWER,
    UNLINKED,
    has_link,
    head_slot,
    older_slot,
    set_link,
    set_upper_half,
    upper_half,
)
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64s, Int64Table, Rows, helper, int32, int64, uint64

# ------------------------------------------------------------------------------------------------------ rows held


@helper(inline=True)
def width_of(strides: Int64s | None, i: int) -> Any:
    """Words from a slot's node to the next slot's, of a key of input i: those of the node, or where nodes stand in rows
    (`strides`), those of a row.
    """
    return int64(2) if strides is None else strides[uint64(i)]


@helper(inline=True)
def slot_of(windows: Windows, i: int, at: int) -> Any:
    """The slot of the element of input i that stands at a position: of a bag, `places` says which."""
    return windows.places[at] if windows.inputs[i].is_bag != 0 else at


@helper(inline=True)
def lowest_slot(windows: Windows, i: int) -> Any:
    """Below it no row of input i is there. In the buckets of a bag stands only what is there."""
    return int64(0) if windows.inputs[i].is_bag != 0 else windows.inputs[i].lo


@helper(inline=True)
def is_linked(windows: Windows, i: int, slot: int, strides: Int64s | None = None) -> Any:
    """No key of the slot of input i is NULL."""
    inputs = windows.inputs
    return has_link(windows.nodes, inputs[i].nodes + width_of(strides, i) * (slot & inputs[i].mask))


@helper
def next_held(windows: Windows, i: int, slot: int, strides: Int64s | None = None) -> Any:
    """The next slot of input i after this one that stands in its buckets; -1 where there is none."""
    inputs, nodes = windows.inputs, windows.nodes
    is_bag = inputs[i].is_bag != 0
    end = inputs[i].mask + 1 if is_bag else inputs[i].hi
    found = int64(-1)
    while found < 0 and slot + 1 < end:
        slot += 1
        if is_bag:
            is_there = upper_half(nodes, inputs[i].nodes + width_of(strides, i) * slot) != UNLINKED
        else:
            is_there = is_linked(windows, i, slot, strides)
        if is_there:
            found = slot
    return found


# --------------------------------------------------------------------------------------------------- link and unlink


@helper
def link_slots(windows: Windows, i: int, first: Any, stop: int) -> Any:
    """Put the slots [first, stop) of input i, no bag, at the head of their buckets."""
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    mask, has_nulls = inputs[i].mask, inputs[i].has_nulls != 0
    if has_nulls:
        for slot in range(first, stop):
            at = 2 * (slot & mask)
            linked = True
            for x in range(inputs[i].key, inputs[i].keys_end):
                linked &= has_link(nodes, keys[x].nodes + at)
            for x in range(inputs[i].key, inputs[i].keys_end):
                if not linked:
                    set_link(nodes, keys[x].nodes + at, UNLINKED)
    for x in range(inputs[i].key, inputs[i].keys_end):
        base, buckets, shift = keys[x].nodes, keys[x].heads, keys[x].shift
        for slot in range(first, stop if keys[x].is_linked != 0 else first):
            k = uint64(base + 2 * (slot & mask))
            if not has_nulls or has_link(nodes, k):
                b = uint64(buckets + bucket(nodes[k], shift))
                set_link(nodes, k, slot - int64(heads[b]))
                heads[b] = int32(slot)


@helper(inline=True)
def link_slot(windows: Windows, i: int, slot: int, strides: Int64s | None = None) -> Any:
    """Put a slot of input i at the head of its buckets; False where it stands in none."""
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    width = width_of(strides, i)
    at, is_bag = width * (slot & inputs[i].mask), inputs[i].is_bag != 0
    linked = True
    if inputs[i].has_nulls != 0:
        for x in range(inputs[i].key, inputs[i].keys_end):
            linked &= has_link(nodes, keys[x].nodes + at)
    for x in range(inputs[i].key, inputs[i].keys_end):
        k = uint64(keys[x].nodes + at)
        if not linked:
            set_link(nodes, k, UNLINKED)
            if is_bag:
                set_upper_half(nodes, k, UNLINKED)
            continue
        before = int64(-1)
        if keys[x].is_linked != 0:
            b = uint64(keys[x].heads + bucket(nodes[k], keys[x].shift))
            before = int64(heads[b])
            if is_bag and before >= 0:
                set_upper_half(nodes, keys[x].nodes + width * before, slot - before)
            heads[b] = int32(slot)
        if is_bag:
            nodes[k + uint64(1)] = ((-1 - slot) << 32) | ((slot - before) & LOWER)
        elif keys[x].is_linked != 0:
            set_link(nodes, k, slot - before)
    return linked


@helper(inline=True)
def unlink_slot(windows: Windows, i: int, slot: int, strides: Int64s | None = None) -> Any:
    """Take a slot of bag i, which stands in its buckets, out of them."""
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    width = width_of(strides, i)
    for x in range(inputs[i].key, inputs[i].keys_end):
        base = keys[x].nodes
        k = base + width * slot
        newer, older = slot + upper_half(nodes, k), older_slot(nodes, k, slot)
        set_upper_half(nodes, k, UNLINKED)
        if keys[x].is_linked == 0:
            continue
        if older >= 0:
            set_upper_half(nodes, base + width * older, newer - older)
        if newer >= 0:
            set_link(nodes, base + width * newer, newer - older)
        else:
            heads[uint64(keys[x].heads + bucket(nodes[k], keys[x].shift))] = int32(older)


@helper(inline=True)
def leave(windows: Windows, i: int, slot: int) -> Any:
    """A row of input i leaves: of a bag, out of its buckets. False where it stood in none."""
    stood = is_linked(windows, i, slot)
    if stood and windows.inputs[i].is_bag != 0:
        unlink_slot(windows, i, slot)
    return stood


# ----------------------------------------------------------------------------------------------- steps, and their tags


@helper
def place_steps(windows: Windows, steps: Rows[JoinStep]) -> None:
    """Write into steps, (m,), where the index holds what they read; of a subresult its own file says it."""
    inputs, keys = windows.inputs, windows.keys
    for r in range(len(steps)):
        f, y, j, x = steps[r].source, steps[r].source_key, steps[r].target, steps[r].probed
        steps[r].source_nodes, steps[r].source_mask = keys[y].nodes, inputs[f].mask
        if j < len(inputs):
            steps[r].target_nodes, steps[r].target_mask = keys[x].nodes, inputs[j].mask
            steps[r].target_heads, steps[r].target_shift = keys[x].heads, keys[x].shift


@helper(inline=True)
def step_tag(
    windows: Windows, steps: Rows[JoinStep], r: int, checks: Int64Table, chosen: Int64s, strides: Int64s | None = None
) -> Any:
    """The tag that step r asks for first: of a slot chosen, or hashed of several inputs'.  steps: placed."""
    q = uint64(r)
    f = uint64(steps[q].source)
    tag = windows.nodes[uint64(steps[q].source_nodes + width_of(strides, f) * (chosen[f] & steps[q].source_mask))]
    if strides is None and steps[q].hashed > 0:
        tag = hashed_tag(windows, checks, chosen, steps[q].check, steps[q].check + steps[q].hashed)
    elif strides is None and steps[q].hashed < 0:
        steps[q].requests += 1
        tag = first_tag(windows, steps[q], checks, chosen, tag)
    return tag


@helper(inline=True)
def checks_hold(
    windows: Windows, checks: Int64Table, chosen: Int64s, begin: int, end: int, strides: Int64s | None = None
) -> Any:
    """The further keys that a step compares, checks[begin:end], are equal of the slots chosen."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    equal = True
    for c in range(begin, end):
        a, b = checks[c, 0], checks[c, 2]
        at_a = keys[checks[c, 1]].nodes + width_of(strides, a) * (chosen[a] & inputs[a].mask)
        at_b = keys[checks[c, 3]].nodes + width_of(strides, b) * (chosen[b] & inputs[b].mask)
        equal &= nodes[at_a] == nodes[at_b]
    return equal


# -------------------------------------------------------------------------------------------------- first and next


class Chain(NamedTuple):
    """Where a walk goes. base: of the key's nodes, `width` words each.  mask: of slots.  low, high: only slots in
    [low, high) are met.
    """

    base: int
    width: int
    mask: int
    low: int
    high: int


@helper(inline=True)
def chain_of(windows: Windows, steps: Rows[JoinStep], r: int, strides: Int64s | None = None) -> Any:
    """Where step r walks, among what pipelines may join now."""
    j = uint64(steps[uint64(r)].target)
    return chain_between(steps, r, windows.inputs[j].probe_lo, windows.inputs[j].probe_hi, strides)


@helper(inline=True)
def chain_between(steps: Rows[JoinStep], r: int, low: int, high: int, strides: Int64s | None = None) -> Any:
    """Where step r walks, among the slots [low, high)."""
    q = uint64(r)
    width = width_of(strides, uint64(steps[q].target))
    return Chain(steps[q].target_nodes, width, steps[q].target_mask, low, high)


@helper(inline=True)
def first_slot(windows: Windows, steps: Rows[JoinStep], r: int, tag: int) -> Any:
    """The newest slot of the bucket in which step r finds the tag."""
    q = uint64(r)
    b = steps[q].target_heads + bucket(tag, steps[q].target_shift)
    return head_slot(windows.heads, b, windows.inputs[uint64(steps[q].target)].lo)


@helper(inline=True)
def first_of_key(windows: Windows, j: int, x: int, tag: int) -> Any:
    """The newest slot of the bucket in which key x, of input j, has the tag."""
    b = windows.keys[x].heads + bucket(tag, windows.keys[x].shift)
    return head_slot(windows.heads, b, windows.inputs[j].lo)


@helper(inline=True)
def next_slot(nodes: Int64s, chain: Chain, tag: int, slot: int) -> Any:
    """From this slot on the first that has the tag, below chain.low where none has, and how many were inspected."""
    base, width, mask, low, high = chain
    inspected = int64(0)
    while slot >= low:
        k = uint64(base + width * (slot & mask))
        inspected += 1
        if nodes[k] == tag and slot < high:
            break
        slot = older_slot(nodes, k, slot)
    return slot, inspected


@helper(inline=True)
def older(nodes: Int64s, chain: Chain, slot: int) -> Any:
    """The slot behind this one."""
    return older_slot(nodes, chain.base + chain.width * (slot & chain.mask), slot)


@helper(inline=True)
def tag_at(nodes: Int64s, chain: Chain, slot: int) -> Any:
    """The tag of a slot."""
    return nodes[uint64(chain.base + 2 * (slot & chain.mask))]


# -------------------------------------------------------------------------------------------------- further tags


@helper
def further(
    windows: Windows, steps: Rows[JoinStep], r: int, checks: Int64Table, chosen: Int64s, chain: Chain, tag: int
) -> Any:
    """Where step r finds no more for a tag: the next one that it asks for, the first slot for it, below chain.low where
    there is none, and how many were inspected.
    """
    step, slot, inspected = steps[r], int64(-1), int64(0)
    following = next_tag(windows, step, checks, chosen, tag)
    while slot < chain.low and following != tag:
        tag = following
        slot, looked = next_slot(windows.nodes, chain, tag, first_slot(windows, steps, r, tag))
        # An address visits buckets that nothing may stand in: that is work, too.
        inspected += looked + int64(step.hashed == BY_ADDRESS)
        if slot < chain.low:
            following = next_tag(windows, step, checks, chosen, tag)
    return tag, slot, inspected
