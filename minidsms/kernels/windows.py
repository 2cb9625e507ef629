"""Kernels of the windows: merging what enters with what leaves.

A first-in-first-out window keeps its elements at consecutive positions [lo, hi). Two runs of positions describe a slice
of time: those that enter and those that leave. Both are nondecreasing in time. The merge puts deletions before
insertions at each instant and leaves out what would enter and leave at one instant.

Invariant: kernels never raise; they return how much they wrote and leave their cursor where to resume.
docs/semantics W1 to W7; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minidsms.machine_code import Int8s, Int64s, kernel


class Moves(NamedTuple):
    """Elements at consecutive positions of a window, from `first` on, that enter it or leave it: the number of each,
    and the instant at which it does, nondecreasing.
    """

    at: Int64s
    seq: Int64s
    first: int


@kernel
def merge_changes(
    entering: Moves, leaving: Moves, cursor: Int64s, out_ts: Int64s, out_sign: Int8s, out_seq: Int64s
) -> int:
    """Write the merged changes; returns how many. cursor: (2,) next insertion and next deletion, moved on.

    A transient at instant t stands in both runs. Windows being first-in-first-out, the transients of t are the first
    insertions of t and the last deletions of t, so comparing positions at the two cursors finds them.
    """
    ins_at, ins_seq, ins_pos = entering
    del_at, del_seq, del_pos = leaving
    i, d = cursor[0], cursor[1]
    n_ins, n_del, room = len(ins_at), len(del_at), len(out_ts)
    k = 0
    while k < room:
        if d < n_del and (i >= n_ins or del_at[d] <= ins_at[i]):
            if i < n_ins and del_at[d] == ins_at[i] and del_pos + d >= ins_pos + i:
                i += 1
                d += 1
                continue
            out_ts[k] = del_at[d]
            out_sign[k] = -1
            out_seq[k] = del_seq[d]
            d += 1
        elif i < n_ins:
            out_ts[k] = ins_at[i]
            out_sign[k] = 1
            out_seq[k] = ins_seq[i]
            i += 1
        else:
            break
        k += 1
    cursor[0], cursor[1] = i, d
    return k


@kernel
def slide_range(
    ring: Int64s, mask: int, lo: int, new_lo: int, hi: int, new_hi: int, length: int, out_ts: Int64s, out_sign: Int8s,
    out_seq: Int64s,
) -> int:  # fmt: skip
    """Write the changes of a window over elements that stand in a store without a gap, position for number, for which
    there is room; all of it is filled. Returns the first element that is still to leave.

    ring: the store's instants.  Elements [hi, new_hi) enter as they come, [lo, new_lo) leave `length` > 0 ticks after
    they came, so none does both at one instant.
    """
    for k in range(len(out_ts)):
        if lo < new_lo and (hi == new_hi or ring[np.uint64(lo & mask)] + length <= ring[np.uint64(hi & mask)]):
            out_ts[k] = ring[np.uint64(lo & mask)] + length
            out_sign[k] = -1
            out_seq[k] = lo
            lo += 1
        else:
            out_ts[k] = ring[np.uint64(hi & mask)]
            out_sign[k] = 1
            out_seq[k] = hi
            hi += 1
    return lo


@kernel
def merge_instants(left: Int64s, right: Int64s, out: Int64s) -> int:
    """The instants of two nondecreasing runs, each once, ascending; returns how many. out has room for all of both."""
    i = j = k = 0
    while i < len(left) or j < len(right):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            t = left[i]
            i += 1
        else:
            t = right[j]
            j += 1
        if k == 0 or out[k - 1] != t:
            out[k] = t
            k += 1
    return k
