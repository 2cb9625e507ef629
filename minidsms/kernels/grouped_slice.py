"""A slice through a grouped aggregation in one call: the steps of `kernels.key_table` and `kernels.grouping`, in turn.

What a call of a kernel costs is paid once and not five times, and what stands between the steps needs no Python; so a
slice of one element costs a few microseconds. The steps are those that an aggregation takes one by one where states of
its own stand between them.

  1. the words of the keys and arguments, out of the store's ring where the elements refer to it;
  2. the groups of what comes; those of what leaves are remembered in the order of arrival;
  3. the aggregates' states, and their answers after each element;
  4. the rows that each instant changes; groups without rows give their ids back.
Where a table or the pool is full the call returns, and goes on where it was when it is called again with larger ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.gathering import gather
from minidsms.kernels.grouping import (
    CULPRIT,
    CURSOR_SIZE,
    DEAD,
    OUT,
    ROWS,
    Answered,
    Changed,
    close_instants,
    move_extremes,
    move_sums,
)
from minidsms.kernels.key_table import acquire, acquire_pairs, recall, release
from minidsms.machine_code import Int8s, Int8Table, Int32s, Int64s, Int64Table, helper, kernel

STEP, AT, NULLS, CLOSED, OPEN_FROM, RESUMES, STATE_SIZE = range(CURSOR_SIZE, CURSOR_SIZE + 7)
"""Words of `state` behind those of a cursor of `grouping.put_out`: the step to go on with, the element; whether a NULL
is put out. Of `kernels.grouped_form`: changes of groups noted, the first of the instant, whether it goes on amid one.
"""
DONE, TABLE_FULL, POOL_FULL = range(3)
GATHER, ACQUIRE, ENTER, EXTREMES, PUT_OUT = range(5)
IDS, TOUCHED, GONE, FIRST, SECOND, SCRATCH_ROWS = range(6)
"""Rows of `scratch`: the group of each element; room for `grouping.put_out`; words and NULLs of the keys that come."""


class Elements(NamedTuple):
    """A slice. ts, sign, seq (n,): its elements.  places, mask, numbers: see `gathering.gather`; without numbers the
    words are given.
    """

    ts: Int64s
    sign: Int8s
    seq: Int64s
    places: Int64Table
    mask: int
    numbers: Int64s


class Groups(NamedTuple):
    """slots, keys, links, meta: of `kernels.key_table`.  ring, ends: of its `recall`; without a ring what leaves is
    looked up.
    """

    slots: Int32s
    keys: Int64Table
    links: Int64s
    meta: Int64s
    ring: Int32s
    ends: Int64s


class Asked(NamedTuple):
    """k: key columns.  calls: of `grouping.move_sums` the first `sums`, of `move_extremes` the others.  marks: the
    aggregates that are COUNT(*), `stars` of them, then those that may fail.  is_global: there are no keys.
    """

    k: int
    calls: Int64Table
    sums: int
    marks: Int64s
    stars: int
    is_global: bool


class Records(NamedTuple):
    """The groups' states (`synopses.group_records`): a row of each group, and the nodes of its extremes in a pool."""

    records: Int64Table
    nodes: Int64Table
    pool: Int64s


class Work(NamedTuple):
    """words, valid (c, >= n): of the key columns, then of the arguments, as the calls number them.  scratch: see IDS.
    rows: takes the keys of several columns.  weights, results, status: of arguments and answers, by element.
    """

    words: Int64Table
    valid: Int8Table
    scratch: Int64Table
    rows: Int64Table
    weights: Int8Table
    results: Int64Table
    status: Int8Table


@helper(typed=True)
def _acquire_keys(elements: Elements, k: int, only_insertions: bool, work: Work, groups: Groups, start: int) -> int:
    """The groups of the elements, or of the insertions among them, into scratch[IDS] from its beginning; returns how
    many are done, and -1 - that where the table is full.
    """
    ts, sign, words, valid, scratch, rows = elements.ts, elements.sign, work.words, work.valid, work.scratch, work.rows
    slots, keys, links, meta = groups.slots, groups.keys, groups.links, groups.meta
    n = len(ts)
    m = 0
    if k == 1:
        first, second = scratch[FIRST], scratch[SECOND]
        for i in range(n):
            if sign[i] > 0 or not only_insertions:
                first[m] = words[0, i]
                second[m] = 1 - valid[0, i]
                m += 1
        done = acquire_pairs(first[:m], second[:m], slots, keys, links, meta, scratch[IDS], start)
    else:
        for i in range(n):
            if sign[i] > 0 or not only_insertions:
                for c in range(k, keys.shape[1]):
                    rows[m, c] = 0
                for c in range(k):
                    rows[m, c] = words[c, i]
                    if valid[c, i] == 0:
                        rows[m, k + c // 62] |= np.int64(1) << (c % 62)
                m += 1
        done = acquire(rows[:m], slots, keys, links, meta, scratch[IDS], start, True)
    return done if done == m else -1 - done


@helper(typed=True)
def find_groups(elements: Elements, groups: Groups, k: int, work: Work, state: Int64s) -> bool:
    """The first two steps: the words, and scratch[IDS]; False where the table is full."""
    sign = elements.sign
    words, valid, scratch, weights = work.words, work.valid, work.scratch, work.weights
    n = len(elements.ts)
    ids = scratch[IDS, :n]
    if state[STEP] == GATHER:
        if len(elements.numbers) > 0:
            gather(elements.places, elements.mask, elements.numbers, elements.seq, words, valid)
        for r in range(weights.shape[0]):
            for i in range(n):
                weights[r, i] = sign[i] * valid[k + r, i]
        state[STEP] = ACQUIRE
        state[AT] = 0
    if state[STEP] == ACQUIRE:
        if k == 0:
            for i in range(n):
                ids[i] = 0
        else:
            has_ring = len(groups.ring) > 0
            done = _acquire_keys(elements, k, has_ring, work, groups, state[AT])
            if done < 0:
                state[AT] = -1 - done
                return False
            if has_ring:
                for i in range(done):
                    scratch[FIRST, i] = ids[i]
                recall(sign, scratch[FIRST], groups.ring, groups.ends, ids)
        state[STEP] = ENTER
        state[AT] = 0
    return True


@helper(typed=True)
def give_back(groups: Groups, records: Int64Table, dead: Int64s, until: int, state: Int64s, status: Int8Table) -> None:
    """The last step: whether NULLs were put out; the ids of groups that are without rows now, unless the query fails.

    dead: state[DEAD] groups that lost their last row, and may have got another since.
    """
    state[NULLS] = 0
    for j in range(status.shape[0]):
        for i in range(state[OUT]):
            state[NULLS] |= status[j, i] == 0
    if groups.keys.shape[1] > 0 and state[CULPRIT] == 0 and until == MAX_INSTANT:
        gone = 0
        for i in range(state[DEAD]):
            if records[dead[i], ROWS] == 0:
                dead[gone] = dead[i]
                gone += 1
        release(dead[:gone], groups.slots, groups.keys, groups.links, groups.meta)


@kernel
def aggregate_slice(
    elements: Elements,
    groups: Groups,
    asked: Asked,
    of_groups: Records,
    work: Work,
    start: int,
    until: int,
    state: Int64s,
    changed: Changed,
) -> int:
    """Take a slice in and write the rows it changes; returns DONE, TABLE_FULL or POOL_FULL.

    start, until: see `grouping.put_out`.
    state: STATE_SIZE words; 0 from STEP on for a new slice.
    """
    ts, sign = elements.ts, elements.sign
    k, calls, sums, marks, stars, is_global = asked
    keys = groups.keys
    records, nodes, pool = of_groups
    words, scratch, weights, results, status = work.words, work.scratch, work.weights, work.results, work.status
    n = len(ts)
    if not find_groups(elements, groups, k, work, state):
        return TABLE_FULL
    ids = scratch[IDS, :n]
    values = words[k:]
    if state[STEP] == ENTER:
        if sums > 0:
            move_sums(ids, calls[:sums], values, weights, records, results, results.view(np.float64), status)
        state[STEP] = EXTREMES
        state[AT] = 0
    if state[STEP] == EXTREMES:
        if len(calls) > sums:
            done = move_extremes(state[AT], ids, calls[sums:], values, weights, records, nodes, pool, results, status)
            if done < n:
                state[AT] = done
                return POOL_FULL
        state[STEP] = PUT_OUT
    dead, touched = scratch[GONE], scratch[TOUCHED]
    answered = Answered(ts, sign, ids, results, status, marks[:stars], marks[stars:])
    close_instants(answered, keys, records, is_global, start, until, state, touched, dead, changed)
    give_back(groups, records, dead, until, state, changed.status)
    return DONE
