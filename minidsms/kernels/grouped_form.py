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
from minidsms.kernels.aggregation import NULL, VALUE
from minidsms.kernels.grouped_slice import (
    DONE, ENTER, FIRST, GONE, IDS, POOL_FULL, PUT_OUT, TABLE_FULL, TOUCHED, Asked, Elements, Groups, Records, Work,
    find_groups, give_back, has_null_keys,
)
from minidsms.kernels.grouping import (
    AVG, COUNT, EXTREME, FLAGS, ROWS, SHOWN, STAMP, STAR, SUM, TOP, Changed, SliceState, Spare, add, first_of, keep_row,
    mean, put_in, take_out, take_top, turned, turned_back,
)
from minidsms.machine_code import Int8s, Int8Table, Int64s, Int64Table, helper, int64
from minidsms.machine_code.templates import template
# fmt: on
# isort: on

CALLS: tuple[tuple[int, int, int, bool, bool, int], ...] = ((STAR, 0, 0, False, False, -1),)
"""Of each aggregate in the order of the answer: kind, argument, where its state is, whether it is the largest, of
floats; the argument that says for how many values each stands, or -1.
"""
KEY_WORDS: int = 2
"""That a group has."""
IS_GLOBAL: bool = False
"""The one group of a query without GROUP BY."""

_KIND, _ARGUMENT, _OFFSET, _LARGER, _FLOAT, _TIMES = range(6)


@helper(inline=True)
def _take(record: Int64s, i: int, values: Int64Table, weights: Int8Table, nodes: Int64Table, spare: Spare) -> Any:
    """Take element i into the states of its group."""
    for c in range(len(CALLS)):
        kind, argument, at = CALLS[c][_KIND], CALLS[c][_ARGUMENT], CALLS[c][_OFFSET]
        if kind == STAR:
            continue
        weight = int64(weights[argument, i])
        if weight == 0:
            continue
        if kind <= AVG:
            times = CALLS[c][_TIMES]
            record[at] += weight if times < 0 else weight * values[times, i]
            if kind != COUNT:
                add(record, at + 1, values[argument, i], weight)
            continue
        key = turned(values[argument, i], int64(CALLS[c][_LARGER]), int64(CALLS[c][_FLOAT]))
        if kind == TOP:
            if weight > 0:
                take_top(record, at, key)
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
                record = records[touched[t]]
                if record[at] != 0 and record[at + 2] != record[at + 1] >> 63:
                    return j + 1
    return 0


@helper(inline=True)
def _answer(record: Int64s, nodes: Int64Table, answer: Int64s, status: Int8s) -> Any:
    """What the aggregates of a group are."""
    floats = answer.view(np.float64)
    for j in range(len(CALLS)):
        kind, at = CALLS[j][_KIND], CALLS[j][_OFFSET]
        if kind <= COUNT:
            answer[j] = record[ROWS if kind == STAR else at]
            status[j] = VALUE
        elif kind <= AVG:
            if kind == SUM:
                answer[j] = record[at + 1]
            else:
                floats[j] = mean(record, at)
            status[j] = NULL if record[at] == 0 else VALUE
        else:
            key, told = record[at], record[at + 1] > 0
            if kind == EXTREME:
                key, told = first_of(record, at, nodes)
            answer[j] = turned_back(key, int64(CALLS[j][_LARGER]), int64(CALLS[j][_FLOAT])) if told else 0
            status[j] = told


@helper(inline=True)
def _shows(record: Int64s, answer: Int64s, status: Int8s) -> Any:
    """The row of a group that is put out is this answer."""
    words = FLAGS + 1 + (len(CALLS) >> 5)
    same = True
    for j in range(len(CALLS)):
        same = same and answer[j] == record[words + j]
        same = same and status[j] == record[FLAGS + (j >> 5)] >> (j & 31) & 1
    return same


@helper(inline=True)
def _put_row(changed: Changed, out: int, now: int, sign: int, key: Int64s, record: Int64s) -> Any:
    """Put out the row of a group; whether some result is NULL."""
    words = FLAGS + 1 + (len(CALLS) >> 5)
    changed.ts[out] = now
    changed.sign[out] = sign
    for c in range(KEY_WORDS):
        changed.words[c, out] = key[c]
    some_null = False
    for j in range(len(CALLS)):
        changed.words[KEY_WORDS + j, out] = record[words + j]
        is_value = record[FLAGS + (j >> 5)] >> (j & 31) & 1
        changed.status[j, out] = is_value
        some_null = some_null or is_value == 0
    return some_null


@helper(typed=True)
def _take_instants(
    elements: Elements, groups: Groups, of_groups: Records, work: Work, start: int, until: int, k: int,
    state: SliceState, changed: Changed,
) -> bool:  # fmt: skip
    """Take elements into the states, and close each instant behind its last: -old row, +new row of each group whose row
    changed. False where the pool is full. An instant that fails puts out nothing.
    """
    ts, sign, keys = elements.ts, elements.sign, groups.keys
    records, nodes, pool = of_groups
    values, weights = work.words[k:], work.weights
    answer, status = work.results[0], work.status[0]
    ids, touched, dead, waiting = work.scratch[IDS], work.scratch[TOUCHED], work.scratch[GONE], work.scratch[FIRST]
    # What stands in an array is read again after each write to another one.
    i, m, out, gone_groups, instant = state.at, state.closed, state.out, state.dead, state.instant
    resumes, is_full, some_null = state.resumes != 0, False, state.nulls != 0
    spare = Spare(pool.free, pool.used, pool.held)
    while i < len(ts) and ts[i] < until:
        now = ts[i]
        if not resumes:
            instant += 1
            m = 0
        resumes = False
        while i < len(ts) and ts[i] == now:
            if spare.used + len(CALLS) > nodes.shape[0]:
                is_full = True
                break
            record = records[ids[i]]
            record[ROWS] += sign[i]
            touched[m] = ids[i]
            m += record[STAMP] != instant
            record[STAMP] = instant
            spare = _take(record, i, values, weights, nodes, spare)
            i += 1
        if is_full:
            break
        if now >= start or not IS_GLOBAL:
            state.culprit = _overflow(records, touched, m)
        if state.culprit != 0:
            state.culprit_at = i - 1
            break
        n_waiting = 0
        for t in range(m):
            group = touched[t]
            record = records[group]
            rows = record[ROWS]
            exists = now >= start if IS_GLOBAL else rows > 0
            was_shown = record[FLAGS] >> SHOWN & 1 == 1
            dead[gone_groups] = group
            gone_groups += rows == 0
            _answer(record, nodes, answer, status)
            if exists == was_shown and (not exists or _shows(record, answer, status)):
                continue
            if was_shown:
                some_null |= _put_row(changed, out, now, -1, keys[group], record)
                out += 1
            keep_row(record, exists, answer, status, len(CALLS))
            waiting[n_waiting] = group
            n_waiting += exists
        for w in range(n_waiting):
            group = waiting[w]
            some_null |= _put_row(changed, out, now, 1, keys[group], records[group])
            out += 1
    state.at, state.closed, state.out, state.dead, state.instant = i, m, out, gone_groups, instant
    state.resumes, state.nulls = is_full, some_null
    pool.free, pool.used, pool.held = spare
    return not is_full


@template("CALLS", "KEY_WORDS", "IS_GLOBAL", gain=0.2, compile_s=6.0)
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
    if not find_groups(elements, groups, asked.k, work, state):
        return TABLE_FULL
    if state.step == ENTER:
        if not _take_instants(elements, groups, of_groups, work, start, until, asked.k, state, changed):
            return POOL_FULL
        state.step = PUT_OUT
    state.nulls |= has_null_keys(changed, asked.k, state.out)
    give_back(groups, of_groups.records, work.scratch[GONE], until, state)
    return DONE
