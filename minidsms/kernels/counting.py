"""Multiplicities per row: the loop of DISTINCT and of the set operators.

For every distinct row (by id) `counts` (cap, 3) int64 keeps: how often it stands on the left, on the right, and in
the output as last put out. The rule says how often it should be there. At the end of an instant each row that came to a
side, or left it, and under ALL each of which an element came, is compared and the difference put out, deletions first.
Every rule changes its answer by at most one per element, so n elements give at most n output rows. Naming a row twice
does no harm: the second time nothing differs. What an instant leaves nowhere at all is named too, so that its id can be
given back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.grouped_slice import Elements, Groups, find_by_one_key
from minidsms.kernels.key_table import Table, release
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, kernel

DISTINCT, UNION, EXCEPT, EXCEPT_ALL, INTERSECT, INTERSECT_ALL = range(6)


@helper(typed=True)
def _multiplicity(rule: int, left: int, right: int) -> int:
    """How often a row is in the output."""
    if rule in (DISTINCT, UNION):
        return 1 if left + right > 0 else 0
    if rule == EXCEPT:
        return 1 if left > 0 and right <= 0 else 0
    if rule == EXCEPT_ALL:
        return max(left - right, 0)
    if rule == INTERSECT:
        return 1 if left > 0 and right > 0 else 0
    return max(min(left, right), 0)


@helper(inline=True)
def _take(counts: Int64Table, row: int, side: int, sign: int) -> Any:
    """Take an element in; whether its row was not there before, or is not now."""
    before = counts[row, side]
    counts[row, side] = before + sign
    return before == 0 or before + sign == 0


@kernel
def find_rows(elements: Elements, groups: Groups, ids: Int64s, start: int) -> int:
    """The ids of elements of one column, which stands in a store, from element `start` on: see `find_by_one_key`."""
    return find_by_one_key(elements, groups, None, ids, start)


class Side(NamedTuple):
    """Elements of an input: instants, signs, and the ids of their rows."""

    ts: Int64s
    sign: Int8s
    ids: Int64s


@kernel
def count_rows(
    rule: int, left_side: Side, right_side: Side, table: Table, counts: Int64Table, answer: Side, gone: Int64s
) -> int:
    """Take whole instants of both sides in, and give the ids of rows that are nowhere then back; returns how many rows
    of the answer there are.

    answer, gone: room for n_left + n_right.
    """
    left_ts, left_sign, left_ids = left_side.ts, left_side.sign, left_side.ids
    right_ts, right_sign, right_ids = right_side.ts, right_side.sign, right_side.ids
    out_ts, out_sign, out_ids = answer.ts, answer.sign, answer.ids
    n_left = left_ts.shape[0]
    n_right = right_ts.shape[0]
    left = 0
    right = 0
    out = 0
    n_gone = 0
    counts_all = rule in (EXCEPT_ALL, INTERSECT_ALL)
    while left < n_left or right < n_right:
        if right == n_right or (left < n_left and left_ts[left] <= right_ts[right]):
            now = left_ts[left]
        else:
            now = right_ts[right]
        # The rows named wait behind those that are gone.
        named = n_gone
        while left < n_left and left_ts[left] == now:
            gone[named] = left_ids[left]
            named += int64(_take(counts, left_ids[left], 0, left_sign[left]) or counts_all)
            left += 1
        while right < n_right and right_ts[right] == now:
            gone[named] = right_ids[right]
            named += int64(_take(counts, right_ids[right], 1, right_sign[right]) or counts_all)
            right += 1
        # A deletion of an output row stands before its instant's insertions, so rows are looked at once per sign.
        first_named = n_gone
        for sign in (-1, 1):
            for i in range(first_named, named):
                row = gone[i]
                change = sign * (_multiplicity(rule, counts[row, 0], counts[row, 1]) - counts[row, 2])
                if change > 0:
                    counts[row, 2] += sign * change
                    for _ in range(change):
                        out_ts[out] = now
                        out_sign[out] = sign
                        out_ids[out] = row
                        out += 1
                if sign > 0 and counts[row, 0] == 0 and counts[row, 1] == 0:
                    gone[n_gone] = row
                    n_gone += 1
    # A row that is gone may have come back at a later instant.
    m = 0
    for i in range(n_gone):
        row = gone[i]
        gone[m] = row
        m += int64(counts[row, 0] == 0 and counts[row, 1] == 0)
    release(gone[:m], table.slots, table.keys, table.links, table.meta)
    return out
