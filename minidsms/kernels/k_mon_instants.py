"""What a reduced join needs to go from instant to instant: runs of arrivals, heaps of ends, and the order of an answer.

A heap is two arrays, keys and slots, of which the first places are taken; the least key stands first. Babu 2005,
section 6.3.2.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.merging import exchange
from minidsms.machine_code import Bools, Int8s, Int64s, Int64Table, helper, int64, kernel


@helper(inline=True)
def sift_up(keys: Int64s, slots: Int64s, size: int, key: int, slot: int) -> None:
    """Put a slot into a heap of `size`, by its key."""
    at = size
    while at > 0 and keys[(at - 1) >> 1] > key:
        keys[at], slots[at] = keys[(at - 1) >> 1], slots[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], slots[at] = key, slot


@helper(inline=True)
def take_least(keys: Int64s, slots: Int64s, size: int) -> Any:
    """Take the least out of a heap of `size`; returns its slot."""
    least = slots[0]
    key, slot = keys[size - 1], slots[size - 1]
    at = 0
    child = 1
    while child < size - 1:
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], slots[at] = keys[child], slots[child]
        at = child
        child = 2 * at + 1
    keys[at], slots[at] = key, slot
    return least


@helper
def put_first(out: Int64Table, out_sign: Int8s, first: int, middle: int, end: int) -> None:
    """Exchange the rows [first, middle) and [middle, end), which are of one instant and each of one sign."""
    for c in range(out.shape[1]):
        exchange(out[:, c], first, middle, end)
    for x in range(first, end):
        out_sign[x] = -1 if x < first + end - middle else 1


@kernel
def take_runs(ts: Int64s, kept: Bools, every: bool, total: int, slot: int, runs: Int64Table, at: int) -> int:
    """Write (instant, arrivals up to it, slot after its rows) into runs[at:]; returns where they end.

    kept: which arrivals have slots, from `slot` on.  every: instants without such rows count, too.  total: arrivals
    before these.
    """
    n = len(ts)
    i = 0
    while i < n:
        instant = ts[i]
        before = slot
        while i < n and ts[i] == instant:
            slot += int64(kept[i])
            i += 1
        if every or slot > before:
            runs[at, 0], runs[at, 1], runs[at, 2] = instant, total + i, slot
            at += 1
    return at
