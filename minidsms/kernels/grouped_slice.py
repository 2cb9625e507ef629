"""A slice through a grouped aggregation in one call: the steps of `kernels.key_table` and `kernels.grouping`, in turn.

What a call of a kernel costs is paid once and not five times, and what stands between the steps needs no Python; so a
slice of one element costs a few microseconds. Where aggregates have states outside the records the call returns behind
the second step, so that these take the elements in and answer, and goes on when it is called again.

  1. the words of the keys and arguments, out of the store's ring where the elements refer to it;
  2. the groups of what comes; those of what leaves are remembered in the order of arrival;
  3. the aggregates' states, and their answers after each element;
  4. the rows that each instant changes; groups without rows give their ids back.
Where a table, the pool or the room for rows is full the call returns, and goes on where it was when it is called again
with larger ones, or another room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.kernels.gathering import gather
from minidsms.kernels.grouping import (
    ROWS,
    STACKED,
    Answered,
    Called,
    Changed,
    NodePool,
    SliceState,
    close_instants,
    move_extremes,
    move_stacks,
    move_sums,
)
from minidsms.kernels.key_table import acquire, acquire_pair, recall, release
from minidsms.machine_code import (
    Int8s,
    Int8Table,
    Int32s,
    Int64s,
    Int64Table,
    Rows,
    byte_at,
    helper,
    int64,
    kernel,
    uint64,
    word_at,
)

DONE, TABLE_FULL, POOL_FULL, ROOM_FULL, PAUSED, MISFIT = range(6)
"""What a call returns. MISFIT: a form was given what it was not made for, and has done nothing."""
GATHER, ACQUIRE, ENTER, EXTREMES, PUT_OUT = range(5)
IDS, TOUCHED, GONE, FIRST, SCRATCH_ROWS = range(5)
"""Rows of `scratch`: the group of each element; room for `grouping.close_instants`; the groups of the elements that
come.
"""


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
    """slots, keys, links, meta: of `kernels.key_table`.  ring, ends: of its `recall`, and behind these the end of the
    front stack (`grouping.STACKED`); without a ring what leaves is looked up.
    """

    slots: Int32s
    keys: Int64Table
    links: Int64s
    meta: Int64s
    ring: Int32s
    ends: Int64s


class Asked(NamedTuple):
    """k: key columns.  calls: of `grouping.move_sums` the first `sums`, then those of `move_extremes`, then those of
    `move_stacks`.  marks: the aggregates that are COUNT(*), `stars` of them, then those that may fail.  is_global:
    there are no keys.
    """

    k: int
    calls: Rows[Called]
    sums: int
    marks: Int64s
    stars: int
    is_global: bool


class Records(NamedTuple):
    """The groups' states (`synopses.group_records`): a row of each group, the nodes of its extremes in a pool, and the
    words of those that are STACKED.
    """

    records: Int64Table
    nodes: Int64Table
    pool: NodePool
    stacks: Int64Table


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


class Words(NamedTuple):
    """A column that has been read."""

    words: Int64s
    valid: Int8s


@helper(inline=True)
def find_by_one_key(elements: Elements, groups: Groups, column: Words | None, ids: Int64s, start: int) -> Any:
    """The ids of the elements from `start` on by a column, which is read in the store where it is not given: those that
    come are looked up, those that leave recalled. Returns how many are done: all, or those before one for which the
    table is full.
    """
    sign, seq, mask = elements.sign, elements.seq, elements.mask
    slots, keys, links, meta, ring, ends = groups
    values = present = is_word = int64(0)
    if column is None:
        place = elements.places[elements.numbers[0]]
        values, present, is_word = place[VALUES], place[VALID], int64(place[WIDTH] == 8)
    has_ring = len(ring) > 0
    of_ring = len(ring) - 1
    oldest = following = 0
    if has_ring:
        oldest, following = ends[0], ends[1]
    i = start
    while i < len(sign):
        if has_ring and sign[uint64(i)] <= 0:
            ids[uint64(i)] = ring[uint64(oldest & of_ring)]
            oldest += 1
        else:
            if column is None:
                at = seq[uint64(i)] & mask
                word = word_at(values, at) if is_word != 0 else int64(byte_at(values, at))
                is_null = int64(present != 0 and byte_at(present, at) == 0)
            else:
                word, is_null = column.words[uint64(i)], 1 - int64(column.valid[uint64(i)])
            found = acquire_pair(word, is_null, slots, keys, links, meta)
            if found < 0:
                break
            ids[uint64(i)] = found
            if has_ring:
                ring[uint64(following & of_ring)] = found
                following += 1
        i += 1
    if has_ring:
        ends[0], ends[1] = oldest, following
    return i


@helper(typed=True)
def _find_by_keys(elements: Elements, groups: Groups, k: int, work: Work, start: int) -> int:
    """The same for several keys. start: of the elements that are looked up, as are those done where it is not all."""
    sign, words, valid, scratch, rows = elements.sign, work.words, work.valid, work.scratch, work.rows
    slots, keys, links, meta, ring, ends = groups
    n = len(sign)
    m = 0
    for i in range(n):
        if sign[i] > 0 or len(ring) == 0:
            for c in range(k, keys.shape[1]):
                rows[m, c] = 0
            for c in range(k):
                rows[m, c] = words[c, i]
                if valid[c, i] == 0:
                    rows[m, k + c // 62] |= int64(1) << (c % 62)
            m += 1
    if len(ring) == 0:
        return acquire(rows[:m], slots, keys, links, meta, scratch[IDS], start, True)
    done = acquire(rows[:m], slots, keys, links, meta, scratch[FIRST], start, True)
    if done < m:
        return done
    recall(sign, scratch[FIRST], ring, ends, scratch[IDS])
    return n


@helper(typed=True)
def find_groups(elements: Elements, groups: Groups, k: int, work: Work, state: SliceState) -> bool:
    """The first two steps: the words, and scratch[IDS]; False where the table is full."""
    sign = elements.sign
    words, valid, scratch, weights = work.words, work.valid, work.scratch, work.weights
    n = len(elements.ts)
    ids = scratch[IDS, :n]
    in_store = len(elements.numbers) > 0
    if state.step == GATHER:
        if in_store:
            # One key is read where it stands, of what comes.
            first = int64(k == 1)
            numbers = elements.numbers[first:]
            gather(elements.places, elements.mask, numbers, elements.seq, words[first:], valid[first:])
        for r in range(weights.shape[0]):
            for i in range(n):
                weights[r, i] = sign[i] * valid[k + r, i]
        state.step = ACQUIRE
        state.at = 0
    if state.step == ACQUIRE:
        done = n
        if k == 0:
            for i in range(n):
                ids[i] = 0
        elif k == 1 and in_store:
            done = find_by_one_key(elements, groups, None, ids, state.at)
        elif k == 1:
            done = find_by_one_key(elements, groups, Words(words[0], valid[0]), ids, state.at)
        else:
            done = _find_by_keys(elements, groups, k, work, state.at)
        if done < n:
            state.at = done
            return False
        state.step = ENTER
        state.at = 0
    return True


@helper(typed=True)
def give_back(groups: Groups, records: Int64Table, dead: Int64s, until: int, state: SliceState) -> None:
    """The last step: the ids of groups that are without rows now, unless the query fails.

    dead: state.dead groups that lost their last row, and may have got another since.
    """
    if groups.keys.shape[1] > 0 and state.culprit == 0 and until == MAX_INSTANT:
        gone = 0
        for i in range(state.dead):
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
    state: SliceState,
    changed: Changed,
) -> int:
    """Take a slice in and write the rows it changes; returns DONE, PAUSED, or what is full.

    start, until: see `grouping.close_instants`.
    state: of a new slice 0 from `step` on, but for `pauses`.
    """
    ts, sign = elements.ts, elements.sign
    k, calls, sums, marks, stars, is_global = asked
    keys = groups.keys
    records, nodes, pool, stacks = of_groups
    words, scratch, weights, results, status = work.words, work.scratch, work.weights, work.results, work.status
    n = len(ts)
    if not find_groups(elements, groups, k, work, state):
        return TABLE_FULL
    if state.pauses != 0:
        state.pauses = 0
        return PAUSED
    ids = scratch[IDS, :n]
    values = words[k:]
    extremes = sums
    while extremes < len(calls) and calls[extremes].kind != STACKED:
        extremes += 1
    if state.step == ENTER:
        if sums > 0:
            move_sums(ids, calls[:sums], values, weights, records, results, results.view(np.float64), status)
        state.step = EXTREMES
        state.at = 0
    if state.step == EXTREMES:
        if extremes > sums:
            of_pool = calls[sums:extremes]
            done = move_extremes(state.at, ids, of_pool, values, weights, records, nodes, pool, results, status)
            if done < n:
                state.at = done
                return POOL_FULL
        if len(calls) > extremes:
            ring, ends, stacked = groups.ring, groups.ends, calls[extremes:]
            move_stacks(ts, sign, ids, stacked, values, weights, records, ring, ends, stacks, results, status)
        state.step = PUT_OUT
        state.at = 0
    dead, touched = scratch[GONE], scratch[TOUCHED]
    answered = Answered(ts, sign, ids, results, status, marks[:stars], marks[stars:])
    if not close_instants(answered, k, keys, records, is_global, start, until, state, touched, dead, changed):
        return ROOM_FULL
    give_back(groups, records, dead, until, state)
    return DONE
