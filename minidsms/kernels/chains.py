"""The access method of a join's windows: chains of slots whose keys share a bucket.

What every kernel that joins asks of an index stands here, and nowhere else: `link` and `unlink` a slot, the tag that a
step of a pipeline asks for, the `first` slot of its bucket and the `next` one that has the tag. A chain leads from its
newest slot to ever older ones; of a window whose rows leave in order it ends at the first that has left, of a bag all
that stand in it are there. A slot of which a key is NULL stands in no bucket: it joins with nothing.

Which rows have a tag in common is the access method. A *hash*: those whose column has a word, or columns a hash of
words. A *band*: those whose column lies in a cell; the step asks for a second one (`further`), REACH away. *Cells*:
those whose columns have words and lie in cells, hashed as one; the step asks for all choices among two cells of each
band. An *order*: those whose column lies in a cell of so many, as many rows in each; the step asks for all on one side.
A *bit address*: those whose columns' hashes begin with the same bits, so many of each as the configuration says that
was in use when the row came; the step asks for every address that has the bits it knows, under each configuration.

How it all stands in arrays says `kernels.join_layout`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.join_layout import (
    BACKS,
    BY_ADDRESS,
    BY_CELLS,
    BY_ORDER,
    CHECK,
    CHECKS_END,
    CONFIGURATION,
    FROM,
    FROM_KEY,
    HAS_NULLS,
    HASHED,
    HEADS,
    IS_BAG,
    IS_LINKED,
    KEY,
    KEYS_END,
    LAST_CELL,
    MASK,
    NODES,
    PROBE_HI,
    PROBE_LO,
    PROBED,
    REACH,
    REQUESTS,
    SHIFT,
    TARGET,
    UNLINKED,
    Windows,
)
from minidsms.kernels.mixing import address_part, bucket, mixed
from minidsms.machine_code import Int64s, Int64Table, helper, int64, uint64

# --------------------------------------------------------------------------------------------------- link and unlink


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
        for slot in range(first, stop if keys[x, IS_LINKED] != 0 else first):
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
        if not linked:
            nodes[k + uint64(1)] = UNLINKED
            if inputs[i, IS_BAG] != 0:
                backs[keys[x, BACKS] + slot] = UNLINKED
            continue
        if inputs[i, IS_BAG] != 0:
            backs[keys[x, BACKS] + slot] = -1
        if keys[x, IS_LINKED] != 0:
            b = uint64(keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT]))
            if inputs[i, IS_BAG] != 0 and heads[b] >= 0:
                backs[keys[x, BACKS] + heads[b]] = slot
            nodes[k + uint64(1)] = heads[b]
            heads[b] = slot
    return linked


@helper(inline=True)
def unlink_slot(windows: Windows, i: int, slot: int) -> Any:
    """Take a slot of bag i, which stands in its buckets, out of them."""
    inputs, keys, nodes, heads, backs = windows.inputs, windows.keys, windows.nodes, windows.heads, windows.backs
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k, back = keys[x, NODES] + 2 * slot, keys[x, BACKS]
        newer, older = backs[back + slot], nodes[k + 1]
        backs[back + slot] = UNLINKED
        if keys[x, IS_LINKED] == 0:
            continue
        if older >= 0:
            backs[back + older] = newer
        if newer >= 0:
            nodes[keys[x, NODES] + 2 * newer + 1] = older
        else:
            heads[keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])] = older


# -------------------------------------------------------------------------------------------------------- the tag


@helper(inline=True)
def step_tag(windows: Windows, steps: Int64Table, r: int, checks: Int64Table, chosen: Int64s) -> Any:
    """The tag that step r asks for first: of a slot chosen, or hashed of several inputs'.  steps: (m, STEP_WORDS)."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    f = steps[r, FROM]
    tag = nodes[keys[steps[r, FROM_KEY], NODES] + 2 * (chosen[f] & inputs[f, MASK])]
    if steps[r, HASHED] > 0:
        tag = hashed_tag(windows, checks, chosen, 0, steps[r, CHECK], steps[r, CHECK] + steps[r, HASHED])
    elif steps[r, HASHED] == BY_ADDRESS:
        steps[r, REQUESTS] += 1
        tag = address_tag(windows, checks, chosen, steps[r, CHECKS_END] + 1)
    elif steps[r, HASHED] == BY_CELLS:
        tag = cells_tag(windows, checks, chosen, steps[r, CHECKS_END], 0)
    return tag


@helper
def cells_tag(windows: Windows, checks: Int64Table, chosen: Int64s, at: int, choice: int) -> Any:
    """The tag that the slots chosen give for a choice among the cells of the parts at checks[at] (see BY_CELLS).

    choice: a bit for each part that is a cell, whether it is the one away.
    """
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    tag, left = int64(1), int64(choice)
    for p in range(at + 1, at + 1 + checks[at, 1]):
        f, reach = checks[p, 0], checks[p, 2]
        word = nodes[keys[checks[p, 1], NODES] + 2 * (chosen[f] & inputs[f, MASK])]
        if reach != 0:
            word += (left & 1) * reach
            left >>= 1
        tag = mixed(tag, word)
    return tag


@helper
def next_tag(
    windows: Windows, checks: Int64Table, chosen: Int64s, at: int, hashed: int, reach: int, last: int, origin: int,
    tag: int,
) -> Any:  # fmt: skip
    """The tag that a step, no address, asks for behind this one; the same where there is none.

    at: where its parts stand in `checks`.  last: of the cells in order.  origin: the tag of FROM_KEY.
    """
    following = tag
    if hashed == BY_ORDER:
        if tag != (last if reach > 0 else int64(0)):
            following = tag + reach
    elif hashed == BY_CELLS:
        choice = int64(0)
        while cells_tag(windows, checks, chosen, at, choice) != tag:
            choice += 1
        is_new = False
        while not is_new and choice + 1 < checks[at, 0]:
            choice += 1
            following = cells_tag(windows, checks, chosen, at, choice)
            # A hash that two choices have in common is asked for once.
            is_new = True
            for before in range(choice):
                is_new &= cells_tag(windows, checks, chosen, at, before) != following
        if not is_new:
            following = tag
    elif tag == origin:
        following = origin + reach
    return following


@helper
def address_tag(windows: Windows, checks: Int64Table, chosen: Int64s, way: int) -> Any:
    """The first address that the slots chosen ask for under the configuration at checks[way] (see BY_ADDRESS)."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    tag = checks[way, 0]
    for p in range(way + 1, way + 1 + checks[way, 2]):
        f = checks[p, 0]
        word = nodes[keys[checks[p, 1], NODES] + 2 * (chosen[f] & inputs[f, MASK])]
        tag |= address_part(word, checks[p, 3], checks[p, 2])
    return tag


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


class Stay(NamedTuple):
    """Of a stream with a range, what is there at an instant: rows that came before `before`, in less than `length`.

    base, mask: of the key's nodes.  came: of the instants.  low: no slot below it is there.
    """

    base: int
    mask: int
    came: int
    low: int
    instant: int
    before: int
    length: int


@helper(inline=True)
def chain_of(windows: Windows, steps: Int64Table, r: int) -> Any:
    """Where step r walks, among what pipelines may join now."""
    inputs, j = windows.inputs, steps[r, TARGET]
    base = windows.keys[steps[r, PROBED], NODES]
    return Chain(base, int64(2), inputs[j, MASK], inputs[j, PROBE_LO], inputs[j, PROBE_HI])


@helper(inline=True)
def first_slot(windows: Windows, steps: Int64Table, r: int, tag: int) -> Any:
    """The newest slot of the bucket in which step r finds the tag."""
    return first_of_key(windows, steps[r, PROBED], tag)


@helper(inline=True)
def first_of_key(windows: Windows, x: int, tag: int) -> Any:
    """The newest slot of the bucket in which key x has the tag."""
    return windows.heads[windows.keys[x, HEADS] + bucket(tag, windows.keys[x, SHIFT])]


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
        slot = nodes[k + uint64(1)]
    return slot, inspected


@helper(inline=True)
def older(nodes: Int64s, chain: Chain, slot: int) -> Any:
    """The slot behind this one."""
    return nodes[uint64(chain.base + chain.width * (slot & chain.mask) + 1)]


@helper(inline=True)
def tag_at(nodes: Int64s, walk: Any, slot: int) -> Any:
    """The tag of a slot.  walk: a Chain of a window, or a Stay."""
    return nodes[uint64(walk.base + 2 * (slot & walk.mask))]


@helper(inline=True)
def next_present(nodes: Int64s, instants: Int64s, stay: Stay, tag: int, slot: int) -> Any:
    """As `next_slot`, of the rows that are there at an instant. Also, how many had the tag but come later."""
    base, mask, came, low, instant, before, length = stay
    inspected = passed = int64(0)
    while slot >= low:
        k = uint64(base + 2 * (slot & mask))
        inspected += 1
        if nodes[k] == tag:
            ts = instants[uint64(came + (slot & mask))]
            if ts < before:
                if uint64(instant) - uint64(ts) >= length:
                    slot = int64(-1)
                break
            passed += 1
        slot = nodes[k + uint64(1)]
    return slot, inspected, passed


# -------------------------------------------------------------------------------------------------- further tags


@helper
def further(
    windows: Windows, steps: Int64Table, r: int, checks: Int64Table, chosen: Int64s, chain: Chain, tag: int
) -> Any:
    """Where step r finds no more for a tag: the next one that it asks for, the first slot for it, below chain.low where
    there is none, and how many were inspected; an address is one, too.
    """
    inputs, f = windows.inputs, steps[r, FROM]
    origin = windows.nodes[windows.keys[steps[r, FROM_KEY], NODES] + 2 * (chosen[f] & inputs[f, MASK])]
    slot, inspected = int64(-1), int64(0)
    if steps[r, HASHED] == BY_ADDRESS:
        way, left = steps[r, CHECKS_END] + 1, checks[steps[r, CHECKS_END], 0]
        while checks[way, 0] >> CONFIGURATION != tag >> CONFIGURATION:
            way += 1 + checks[way, 2]
            left -= 1
        while slot < chain.low and left > 0:
            wild = checks[way, 1]
            rest = ((tag | ~wild) + 1) & wild
            if rest != 0:
                tag = (tag & ~wild) | rest
            else:
                way += 1 + checks[way, 2]
                left -= 1
                if left > 0:
                    tag = address_tag(windows, checks, chosen, way)
            if left > 0:
                slot, looked = next_slot(windows.nodes, chain, tag, first_slot(windows, steps, r, tag))
                inspected += looked + 1
    else:
        at, hashed, reach = steps[r, CHECKS_END], steps[r, HASHED], steps[r, REACH]
        last = windows.keys[steps[r, PROBED], LAST_CELL]
        following = next_tag(windows, checks, chosen, at, hashed, reach, last, origin, tag)
        while slot < chain.low and following != tag:
            tag = following
            slot, looked = next_slot(windows.nodes, chain, tag, first_slot(windows, steps, r, tag))
            inspected += looked
            if slot < chain.low:
                following = next_tag(windows, checks, chosen, at, hashed, reach, last, origin, tag)
    return tag, slot, inspected
