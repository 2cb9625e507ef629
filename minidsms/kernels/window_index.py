"""The index of the windows that an n-way join probes: slots are put into their buckets and taken out again.

How it stands in arrays says `kernels.mjoin`. A slot of which a key is NULL stands in no bucket: it joins with nothing.

Invariant: a bucket leads from its newest slot to ever older ones; of a bag all that stand in it are there.
"""

from __future__ import annotations

from minidsms.kernels.mixing import bucket
from minidsms.kernels.mjoin import HAS_NULLS, HEADS, KEY, KEYS_END, LINKED, MASK, NODES, SHIFT, UNLINKED
from minidsms.machine_code import helper, uint64


@helper
def link_slots(inputs, keys, nodes, heads, i, first, stop):  # type: ignore[no-untyped-def]
    """Put the slots [first, stop) of input i, no bag, at the head of their buckets."""
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
    inputs[i, LINKED] = max(first, stop)
