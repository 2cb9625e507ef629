"""The second word of a node: how the slots of a bucket are linked, and which row of the store stands in a slot.

Its lower half is the *link*: how many slots back the older slot of the bucket is, UNLINKED where the slot stands in no
bucket. Slots of a window that may be met are less than 2^31 apart, whatever their numbers; a link that leads further
back leads to nothing. The upper half is, of a bag, the link to the newer slot of the bucket, and else, of an input's
first key, the row's number in the store. A bucket head is the lower half of a slot's number, and told by any slot less
than 2^31 from it: `synopses.window_index` empties buckets in which nothing has come for too long.

Invariant: whoever writes one half leaves the other as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.join_layout import Windows
from minidsms.machine_code import Int32s, Int64s, helper, int32, int64, uint64, word_at

UNLINKED = 0
"""As a link: the row has a NULL key and stands in no bucket. As the link to a newer slot: the slot stands in none."""

WAITING = 1
"""As a link, before a slot is linked: no key of the row is NULL."""

LOWER = 2**32 - 1
"""The bits of a link."""


@helper(inline=True)
def older_slot(nodes: Int64s, k: int, slot: int) -> Any:
    """The older slot of the bucket of a slot whose node is at k."""
    return slot - int64(int32(nodes[uint64(k) + uint64(1)]))


@helper(inline=True)
def set_link(nodes: Int64s, k: int, link: int) -> None:
    """Write the link of the node at k."""
    at = uint64(k) + uint64(1)
    nodes[at] = (nodes[at] & ~LOWER) | (link & LOWER)


@helper(inline=True)
def has_link(nodes: Int64s, k: int) -> Any:
    """The slot of the node at k stands in a bucket, or is to."""
    return nodes[uint64(k) + uint64(1)] & LOWER != UNLINKED


@helper(inline=True)
def upper_half(nodes: Int64s, k: int) -> Any:
    """The link to the newer slot, of a bag; else the row's number."""
    return nodes[uint64(k) + uint64(1)] >> 32


@helper(inline=True)
def set_upper_half(nodes: Int64s, k: int, value: int) -> None:
    """Write it."""
    at = uint64(k) + uint64(1)
    nodes[at] = (value << 32) | (nodes[at] & LOWER)


@helper(inline=True)
def head_slot(heads: Int32s, b: int, near: int) -> Any:
    """The newest slot of bucket b. near: any slot of the window."""
    return near + int64(int32(int64(heads[uint64(b)]) - near))


class Arrivals(NamedTuple):
    """Where it stands when the rows of an input came. rows: its first key's nodes.  mask: of slots.  instants: the
    address of the instants in the store.  store_mask: of its rows' numbers.
    """

    rows: int
    mask: int
    instants: int
    store_mask: int


@helper(inline=True)
def arrivals_of(windows: Windows, j: int) -> Any:
    """Of input j, a stream with a range that has rows, or has had."""
    inputs = windows.inputs
    return Arrivals(inputs[j].nodes, inputs[j].mask, inputs[j].instants, inputs[j].store_mask)


@helper(inline=True)
def came_at(nodes: Int64s, arrivals: Arrivals, slot: int) -> Any:
    """The instant at which the row in a slot came."""
    number = upper_half(nodes, arrivals.rows + 2 * (slot & arrivals.mask))
    return word_at(arrivals.instants, number & arrivals.store_mask)
