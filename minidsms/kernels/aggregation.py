"""What the kernels of grouped aggregation share, and DISTINCT.

A batch is `ids` (n,) int64, the group of each element, with `weight` (n,) int8: +1 where the element's value comes
to the group, -1 where it leaves, 0 where it does not count (NULL, or a duplicate under DISTINCT). Every aggregate
is one pass that moves its state, an array with a row per group, and writes what it would answer after each element, or
at least after the last of those of a group that come one after the other in an instant: results[i, j] (the word;
`floats` is the same memory as float64) and status[i, j], one of NULL, VALUE, FAILED. `grouping.close_instants` then
takes, per instant and group, the answers after the group's last element. A state whose last value has left is all zeros
again, so a freed group needs no cleaning.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.key_table import Table, acquire_pair, give_up
from minidsms.machine_code import Int8s, Int8Table, Int32s, Int64s, Int64Table, int64, kernel

NULL, VALUE, FAILED = range(3)


class Answers(NamedTuple):
    """Where the answer behind each element goes: into one column of (n, k)."""

    results: Int64Table
    status: Int8Table
    column: int


@kernel
def weigh_distinct(
    start: int, ids: Int64s, words: Int64s, weight: Int8s, pairs: Table, ring: Int32s, ends: Int64s, counts: Int64s
) -> int:
    """DISTINCT: of equal values the first that comes and the last that leaves weigh. Returns how far it came: to the
    end, or to a value for which the table is full.

    pairs: the ids of (group, value).  counts: how often each is there.  ring, ends: as in `key_table.recall`; without
    a ring what leaves is looked up.
    """
    slots, keys, links, meta = pairs
    mask = len(ring) - 1
    done = len(ids)
    for i in range(start, len(ids)):
        if weight[i] == 0:
            continue
        if mask >= 0 and weight[i] < 0:
            pair = int64(ring[ends[0] & mask])
            ends[0] += 1
        else:
            pair = acquire_pair(ids[i], words[i], slots, keys, links, meta)
            if pair < 0:
                done = i
                break
            if mask >= 0:
                ring[ends[1] & mask] = pair
                ends[1] += 1
        before = counts[pair]
        after = before + weight[i]
        counts[pair] = after
        weight[i] = 1 if before == 0 and after > 0 else (-1 if before > 0 and after == 0 else 0)
        if after == 0:
            give_up(pair, slots, keys, links, meta)
    return done
