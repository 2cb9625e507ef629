"""The most frequent of each group's values: MODE.

A table has a number for each group and value that is there: how many rows have it. By these numbers the values of a
group stand in a treap (`kernels.ordered_values`), the equally frequent in their own order; a row that comes or leaves
takes its value from one place there to another.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.aggregation import NULL, VALUE, Answers
from minidsms.kernels.key_table import Table, acquire_pair, give_up
from minidsms.kernels.ordered_values import (
    LEFT,
    WORD,
    OrderedArrays,
    OrderedBy,
    Valued,
    add_to_treap,
    take_from_treap,
)
from minidsms.machine_code import Int64s, int64, kernel

_ROOT, _FIRST = 0, 1


class Counted(NamedTuple):
    """pairs: the ids of (group, value).  counts: how many rows there are of each."""

    pairs: Table
    counts: Int64s


@kernel
def most_frequent(
    start: int, elements: Valued, step: int, counted: Counted, by: OrderedBy, ordered: OrderedArrays, to: Answers
) -> int:
    """Take elements in, whose signs are weights, and answer behind each; returns how many are done: all, or those
    before one for which the table or the pool may be full.

    elements.keys: for the time being.  step: 1 where the greatest number is last in the order, -1 where it is first.
    """
    slots, keys, links, meta = counted.pairs
    counts, state, nodes = counted.counts, ordered.state, ordered.nodes
    results, status, j = to.results, to.status, to.column
    ids, words = elements.ids, elements.words
    for i in range(start, len(ids)):
        group = ids[i]
        way = int64(elements.sign[i])
        if way != 0:
            if ordered.meta[0] == 0 and ordered.meta[1] == nodes.shape[0]:
                return i
            pair = acquire_pair(group, words[i], slots, keys, links, meta)
            if pair < 0:
                return i
            number = counts[pair]
            if number > 0:
                elements.keys[i] = step * number
                take_from_treap(elements, i, by, ordered)
            number += way
            counts[pair] = number
            if number > 0:
                elements.keys[i] = step * number
                add_to_treap(elements, i, by, ordered)
            else:
                give_up(pair, slots, keys, links, meta)
            first = state[group, _ROOT]
            while first > 0 and nodes[first, LEFT] > 0:
                first = nodes[first, LEFT]
            state[group, _FIRST] = first
        first = state[group, _FIRST]
        results[i, j] = nodes[first, WORD] if first > 0 else 0
        status[i, j] = VALUE if first > 0 else NULL
    return len(ids)
