"""A slice through a grouped aggregation whose aggregates are constants: a template.

As `kernels.grouped_slice`, over the same records, but an element is taken into all aggregates before the next one, and
an aggregate answers once for each group and instant, not after each element: behind the instant's last element, when it
is compared with the row that is shown, as in `grouping.close_instants`, and stands nowhere between.

Invariant: the rows put out are those of `aggregate_slice`, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.kernels.grouped_slice import (
    DONE, ENTER, FIRST, GONE, IDS, MISFIT, POOL_FULL, PUT_OUT, ROOM_FULL, TABLE_FULL, TOUCHED, Asked, Elements, Groups,
    Records, Work, find_groups, give_back,
)
from minidsms.kernels.grouping import (
    AHEAD, AVG, COUNT, EXTREME, FLAGS, LARGEST, NODE_WORDS, ROWS, SHOWN, STACKED, STAMP, STAR, SUM, TOP, Changed,
    SliceState, Spare, add, all_leave, first_of, least_of, mean, pop, push, put_in, put_row, rows_before, take_out,
    take_top, turn, turned, turned_back,
)
from minidsms.machine_code import Float64s, Int8Table, Int32s, Int64s, Int64Table, helper, int64, uint64
from minidsms.machine_code.prefetching import prefetch
from minidsms.machine_code.templates import template
# fmt: on
# isort: on

CALLS: tuple[tuple[int, int, int, bool, bool, int], ...] = ((STAR, 0, 0, False, False, -1),)
"""Of each aggregate in the order of the answer: kind, argument, where its state is, whether it is the largest, of
floats; the argument that says for how many values each stands, or -1. At most 32, whose flags are one word.
"""
KEYS: int = 1
"""Columns that groups are found by."""
IS_GLOBAL: bool = False
"""The one group of a query without GROUP BY."""
WORDS: int = 5
"""Of a record."""

_KIND, _ARGUMENT, _OFFSET, _LARGER, _FLOAT, _TIMES = range(6)


@helper(inline=True)
def _of_kind(kind: int, until: int) -> Any:
    """How many of the first aggregates are of a kind."""
    n = 0
    for c in range(until):
        n += CALLS[c][_KIND] == kind
    return n


@helper(inline=True)
def _turn(records: Int64Table, ring: Int32s, stacks: Int64Table, oldest: int, following: int) -> Any:
    """Turn the back stack over for all aggregates that have one."""
    for c in range(len(CALLS)):
        if CALLS[c][_KIND] == STACKED:
            turn(records, CALLS[c][_OFFSET], ring, stacks, _of_kind(STACKED, c), oldest, following)


@helper(inline=True)
def _take(
    record: Int64s, i: int, values: Int64Table, weights: Int8Table, nodes: Int64Table, spare: Spare, stacks: Int64Table,
    row: int, comes: bool,
) -> Any:  # fmt: skip
    """Take element i into the states of its group. row: where its words are in the stacks."""
    for c in range(len(CALLS)):
        kind, argument, at = CALLS[c][_KIND], CALLS[c][_ARGUMENT], CALLS[c][_OFFSET]
        if kind == STAR:
            continue
        weight = int64(weights[argument, uint64(i)])
        if kind == STACKED and comes and weight == 0:
            stacks[row, _of_kind(STACKED, c)] = LARGEST
        if weight == 0:
            continue
        if kind <= AVG:
            times = CALLS[c][_TIMES]
            record[at] += weight if times < 0 else weight * values[times, uint64(i)]
            if kind != COUNT:
                add(record, at + 1, values[argument, uint64(i)], weight)
            continue
        key = turned(values[argument, uint64(i)], int64(CALLS[c][_LARGER]), int64(CALLS[c][_FLOAT]))
        if kind == TOP:
            if weight > 0:
                take_top(record, at, key)
        elif kind == STACKED:
            column = _of_kind(STACKED, c)
            if weight > 0:
                stacks[row, column] = key
                push(record, at, key)
            else:
                pop(record, at, stacks[row, column])
        elif weight > 0:
            spare = put_in(record, at, key, nodes, spare)
        else:
            spare = take_out(record, at, nodes, spare)
    return spare


@helper(inline=True)
def _overflow(records: Int64Table, touched: Int64s, m: int) -> Any:
    """1 + the first aggregate of a sum that fits no INTEGER in one of these m groups; 0: there is none."""
    for j in range(len(CALLS)):
        if CALLS[j][_KIND] == SUM:
            at = CALLS[j][_OFFSET]
            for t in range(m):
                record = records[uint64(touched[uint64(t)])]
                if record[at] != 0 and record[at + 2] != record[at + 1] >> 63:
                    return j + 1
    return 0


@helper(inline=True)
def _result(record: Int64s, j: int, nodes: Int64Table, floats: Float64s) -> Any:
    """What aggregate j of a group is, a word, and whether it is a value. floats: room for one."""
    kind, at = CALLS[j][_KIND], CALLS[j][_OFFSET]
    if kind <= COUNT:
        return record[ROWS if kind == STAR else at], int64(1)
    if kind <= AVG:
        some = int64(record[at] != 0)
        if kind == SUM:
            return record[at + 1], some
        floats[0] = mean(record, at)
        return floats.view(np.int64)[0], some
    key, told = record[at], int64(record[at + 1] > 0)
    if kind == EXTREME:
        key, told = first_of(record, at, nodes)
    if kind == STACKED:
        key, told = least_of(record, at)
    return turned_back(key, int64(CALLS[j][_LARGER]), int64(CALLS[j][_FLOAT])) if told > 0 else int64(0), told


@helper(inline=True)
def _show(record: Int64s, exists: bool, nodes: Int64Table, floats: Float64s) -> Any:
    """From now on the row of a group is what its aggregates are, or there is none; whether that is another."""
    words = FLAGS + 1 + (len(CALLS) >> 5)
    flags, differs = int64(1) << SHOWN, int64(0)
    for j in range(len(CALLS)):
        word, told = _result(record, j, nodes, floats)
        word = word if exists else int64(0)
        flags |= told << j
        differs |= word ^ record[words + j]
        record[words + j] = word
    flags = flags if exists else int64(0)
    differs |= flags ^ record[FLAGS]
    record[FLAGS] = flags
    return differs != 0


@helper(typed=True)
def _take_instants(
    elements: Elements, groups: Groups, of_groups: Records, work: Work, start: int, until: int, k: int,
    state: SliceState, changed: Changed,
) -> int:  # fmt: skip
    """Take elements into the states, and close each instant behind its last: -old row, +new row of each group whose row
    changed. An instant that fails puts out nothing. Returns DONE, or what is full.
    """
    ts, sign, keys = elements.ts, elements.sign, groups.keys
    records, nodes, pool, stacks = of_groups
    ring, ends = groups.ring, groups.ends
    values, weights = work.words[k:], work.weights
    floats = work.results[0].view(np.float64)
    ids, touched, dead, waiting = work.scratch[IDS], work.scratch[TOUCHED], work.scratch[GONE], work.scratch[FIRST]
    n, room, nodes_held = len(ts), len(changed.ts), nodes.shape[0]
    # What stands in an array is read again after each write to another one.
    i, first, m, out, gone_groups, instant = state.at, state.first, state.closed, state.out, state.dead, state.instant
    resumes, full, nulls = state.resumes != 0, DONE, state.nulls != 0
    spare = Spare(pool.free, pool.used, pool.held)
    oldest = following = front = 0
    if _of_kind(STACKED, len(CALLS)) > 0:
        oldest, following = rows_before(sign, i, ends)
        front = ends[2]
    while resumes or (i < n and ts[uint64(i)] < until):
        if not resumes:
            instant += 1
            first, m = i, 0
        resumes = False
        now = ts[uint64(first)]
        while i < n and ts[uint64(i)] == now:
            if spare.used + _of_kind(EXTREME, len(CALLS)) > nodes_held:
                full = POOL_FULL
                break
            at, ahead = uint64(i), ids[uint64(min(i + AHEAD, n - 1))]
            prefetch(records, ahead * WORDS)
            prefetch(records, ahead * WORDS + WORDS - 1)
            if KEYS > 0:
                prefetch(keys, ahead * keys.shape[1])
            group = uint64(ids[at])
            record = records[group]
            record[ROWS] += sign[at]
            touched[uint64(m)] = int64(group)
            m += record[STAMP] != instant
            record[STAMP] = instant
            comes = sign[at] > 0
            if _of_kind(STACKED, len(CALLS)) > 0 and not comes and oldest == front:
                if not all_leave(ts, sign, i, following - oldest):
                    _turn(records, ring, stacks, oldest, following)
                front = following
            row = uint64((following if comes else oldest) & (len(ring) - 1))
            spare = _take(record, i, values, weights, nodes, spare, stacks, row, comes)
            following += comes
            oldest += not comes
            i += 1
        if full == DONE and out + 2 * m > room:
            full = ROOM_FULL
        if full != DONE:
            break
        if now >= start or not IS_GLOBAL:
            state.culprit = _overflow(records, touched, m)
        if state.culprit != 0:
            state.culprit_at = i - 1
            break
        n_waiting = 0
        for t in range(m):
            group = uint64(touched[uint64(t)])
            record = records[group]
            rows = record[ROWS]
            exists = now >= start if IS_GLOBAL else rows > 0
            was_shown = record[FLAGS] >> SHOWN & 1 == 1
            dead[uint64(gone_groups)] = int64(group)
            gone_groups += rows == 0
            # The row that was shown is written in any case, and stands if there is one, and now another or none. There
            # is room: no more rows than groups stand before it.
            nulls = put_row(changed, out, now, -1, KEYS, keys[group], record, len(CALLS), nulls, was_shown)
            is_changed = _show(record, exists, nodes, floats)
            out += is_changed and was_shown
            waiting[uint64(n_waiting)] = int64(group)
            n_waiting += is_changed and exists
        for w in range(n_waiting):
            group = uint64(waiting[uint64(w)])
            nulls = put_row(changed, out, now, 1, KEYS, keys[group], records[group], len(CALLS), nulls, True)
            out += 1
    state.at, state.first, state.closed, state.out, state.dead, state.instant = i, first, m, out, gone_groups, instant
    state.resumes, state.nulls = full != DONE, nulls
    pool.free, pool.used, pool.held = spare
    if _of_kind(STACKED, len(CALLS)) > 0:
        ends[2] = front
    return full


@template("CALLS", "KEYS", "IS_GLOBAL", "WORDS", gain=0.2, compile_s=6.0)
def aggregate_form(
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
    """See `grouped_slice.aggregate_slice`."""
    # Behind this the widths of rows are constants to the compiler, which then multiplies no index by a variable.
    if (
        of_groups.records.shape[1] != WORDS
        or of_groups.nodes.shape[1] != NODE_WORDS
        or of_groups.stacks.shape[1] != _of_kind(STACKED, len(CALLS))
        or groups.keys.shape[1] != (KEYS + KEYS // 62 + 1 if KEYS > 0 else 0)
        or changed.status.shape[0] != KEYS + len(CALLS)
    ):
        return MISFIT
    if not find_groups(elements, groups, KEYS, work, state):
        return TABLE_FULL
    if state.step == ENTER:
        full = _take_instants(elements, groups, of_groups, work, start, until, KEYS, state, changed)
        if full != DONE:
            return full
        state.step = PUT_OUT
    give_back(groups, of_groups.records, work.scratch[GONE], until, state)
    return DONE
