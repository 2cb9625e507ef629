"""A slice through a grouped aggregation whose aggregates are constants: a template.

As `kernels.grouped_slice`, over the same records, but an element is taken into all aggregates before the next one, and
an aggregate answers once for each group and instant, not after each element. Then the answers are compared with the
rows that are shown, as in `grouping.put_out`.

Invariant: the rows put out are those of `aggregate_slice`, in the same order.
"""

from __future__ import annotations

import numpy as np

from minidsms.kernels.aggregation import FAILED, NULL, VALUE
from minidsms.kernels.grouped_slice import (
    AT,
    CLOSED,
    DONE,
    ENTER,
    FIRST,
    GONE,
    IDS,
    OPEN_FROM,
    POOL_FULL,
    PUT_OUT,
    RESUMES,
    SECOND,
    STEP,
    TABLE_FULL,
    TOUCHED,
    Asked,
    Elements,
    Groups,
    Records,
    Work,
    find_groups,
    give_back,
)
from minidsms.kernels.grouping import (
    AVG,
    COUNT,
    CULPRIT,
    CULPRIT_AT,
    DEAD,
    EXTREME,
    FLAGS,
    FREE,
    HELD,
    INSTANT,
    OUT,
    ROWS,
    SHOWN,
    STAMP,
    STAR,
    SUM,
    TOP,
    USED,
    Changed,
)
from minidsms.machine_code import Int64s, Int64Table, helper, int64, uint64
from minidsms.machine_code.templates import template

CALLS: tuple[tuple[int, int, int, bool, bool, int], ...] = ((STAR, 0, 0, False, False, -1),)
"""Of each aggregate in the order of the answer: kind, argument, where its state is, whether it is the largest, of
floats; the argument that says for how many values each stands, or -1.
"""
KEY_WORDS: int = 2
"""That a group has."""
IS_GLOBAL: bool = False
"""The one group of a query without GROUP BY."""

_KIND, _ARGUMENT, _OFFSET, _LARGER, _FLOAT, _TIMES = range(6)
_KEY, _NUMBER, _BEFORE, _AFTER = range(4)
_LOW = 0xFFFFFFFF
_LARGEST = 0x7FFFFFFFFFFFFFFF
_TWO_64 = 18446744073709551616.0


@helper(typed=True)
def _move(elements: Elements, of_groups: Records, work: Work, until: int, k: int, state: Int64s) -> bool:
    """Take elements into the states, and note each instant's groups with their answers: group, last element and rows in
    scratch[TOUCHED, FIRST, SECOND], answers in results and status. False where the pool is full.
    """
    ts, sign = elements.ts, elements.sign
    records, nodes, pool = of_groups
    results, status = work.results, work.status
    floats = results.view(np.float64)
    values, weights = work.words[k:], work.weights
    ids, closed, last, rows_of = work.scratch[IDS], work.scratch[TOUCHED], work.scratch[FIRST], work.scratch[SECOND]
    i, m, first = state[AT], state[CLOSED], state[OPEN_FROM]
    while i < len(ts) and ts[i] < until:
        now = ts[i]
        if state[RESUMES] == 0:
            state[INSTANT] += 1
            first = m
        state[RESUMES] = 0
        instant = state[INSTANT]
        while i < len(ts) and ts[i] == now:
            if pool[USED] + len(CALLS) > nodes.shape[0]:
                state[AT], state[CLOSED], state[OPEN_FROM], state[RESUMES] = i, m, first, 1
                return False
            group = ids[i]
            records[group, ROWS] += sign[i]
            if records[group, STAMP] != instant:
                records[group, STAMP] = instant
                closed[m] = group
                m += 1
            for c in range(len(CALLS)):
                kind = CALLS[c][_KIND]
                if kind == STAR:
                    continue
                at = CALLS[c][_OFFSET]
                weight = int64(weights[CALLS[c][_ARGUMENT], i])
                if weight == 0:
                    continue
                word = values[CALLS[c][_ARGUMENT], i]
                if kind <= AVG:
                    if CALLS[c][_TIMES] >= 0:
                        records[group, at] += weight * values[CALLS[c][_TIMES], i]
                    else:
                        records[group, at] += weight
                    if kind != COUNT:
                        low = records[group, at + 1]
                        before = uint64(low)
                        if weight > 0:
                            low = int64(before + uint64(word))
                            records[group, at + 2] += (word >> 63) + int64(uint64(low) < before)
                        else:
                            low = int64(before - uint64(word))
                            records[group, at + 2] -= (word >> 63) + int64(uint64(word) > before)
                        records[group, at + 1] = low
                    continue
                key = word
                if CALLS[c][_FLOAT]:
                    key ^= (key >> 63) & _LARGEST
                if CALLS[c][_LARGER]:
                    key = ~key
                if kind == TOP:
                    if weight > 0 and (records[group, at + 1] == 0 or key < records[group, at]):
                        records[group, at] = key
                        records[group, at + 1] = 1
                    continue
                front = records[group, at] & _LOW
                back = records[group, at] >> 32
                if weight > 0:
                    while back > 0 and nodes[back, _KEY] >= key:
                        beaten = back
                        back = nodes[beaten, _BEFORE]
                        nodes[beaten, _AFTER] = pool[FREE]
                        pool[FREE] = beaten
                        pool[HELD] -= 1
                    node = pool[FREE]
                    if node > 0:
                        pool[FREE] = nodes[node, _AFTER]
                    else:
                        node = pool[USED]
                        pool[USED] = node + 1
                    pool[HELD] += 1
                    come = records[group, at + 1] + 1
                    records[group, at + 1] = come
                    nodes[node, _KEY] = key
                    nodes[node, _NUMBER] = come
                    nodes[node, _BEFORE] = back
                    nodes[node, _AFTER] = 0
                    if back > 0:
                        nodes[back, _AFTER] = node
                    else:
                        front = node
                    records[group, at] = front | node << 32
                else:
                    gone = records[group, at + 2] + 1
                    records[group, at + 2] = gone
                    if front > 0 and nodes[front, _NUMBER] == gone:
                        following = nodes[front, _AFTER]
                        nodes[front, _AFTER] = pool[FREE]
                        pool[FREE] = front
                        pool[HELD] -= 1
                        nodes[following, _BEFORE] = 0
                        records[group, at] = following | back << 32
                        if following == 0:
                            records[group, at] = 0
                            records[group, at + 1] = 0
                            records[group, at + 2] = 0
            i += 1
        for t in range(first, m):
            group = closed[t]
            last[t] = i - 1
            rows_of[t] = records[group, ROWS]
            for j in range(len(CALLS)):
                kind, at = CALLS[j][_KIND], CALLS[j][_OFFSET]
                if kind == STAR:
                    results[t, j] = records[group, ROWS]
                    status[t, j] = VALUE
                elif kind == COUNT:
                    results[t, j] = records[group, at]
                    status[t, j] = VALUE
                elif kind <= AVG:
                    count, low, high = records[group, at], records[group, at + 1], records[group, at + 2]
                    fits = high == low >> 63
                    if kind == SUM:
                        results[t, j] = low
                        status[t, j] = NULL if count == 0 else (VALUE if fits else FAILED)
                    else:
                        exact = float(low) if fits else float(high) * _TWO_64 + float(uint64(low))
                        floats[t, j] = exact / count if count != 0 else 0.0
                        status[t, j] = NULL if count == 0 else VALUE
                else:
                    key = records[group, at]
                    told = records[group, at + 1] > 0
                    if kind == EXTREME:
                        front = key & _LOW
                        key = nodes[front, _KEY]
                        told = front > 0
                    if CALLS[j][_LARGER]:
                        key = ~key
                    if CALLS[j][_FLOAT]:
                        key ^= (key >> 63) & _LARGEST
                    results[t, j] = key if told else 0
                    status[t, j] = told
    state[AT], state[CLOSED] = i, m
    return True


@helper(typed=True)
def _put_out(
    ts: Int64s, keys: Int64Table, records: Int64Table, work: Work, start: int, state: Int64s, changed: Changed
) -> None:
    """Close the instants noted: -old row, +new row of each group whose row changed."""
    results, status = work.results, work.status
    closed, last, rows_of, dead = work.scratch[TOUCHED], work.scratch[FIRST], work.scratch[SECOND], work.scratch[GONE]
    waiting = work.scratch[IDS]
    out_ts, out_sign, out_words, out_status = changed
    k = len(CALLS)
    words = FLAGS + 1 + (k >> 5)
    t = 0
    out = state[OUT]
    while t < state[CLOSED]:
        at = last[t]
        now = ts[at]
        stop = t
        while stop < state[CLOSED] and last[stop] == at:
            stop += 1
        for j in range(k):
            if CALLS[j][_KIND] == SUM and (now >= start or not IS_GLOBAL):
                for g in range(t, stop):
                    if status[g, j] == FAILED:
                        state[CULPRIT] = j + 1
                        state[CULPRIT_AT] = at
                        return
        n_waiting = 0
        for g in range(t, stop):
            group = closed[g]
            exists = now >= start if IS_GLOBAL else rows_of[g] > 0
            flags = records[group, FLAGS]
            was_shown = flags >> SHOWN & 1 == 1
            if rows_of[g] == 0:
                dead[state[DEAD]] = group
                state[DEAD] += 1
            same = exists == was_shown
            if exists:
                for j in range(k):
                    same = same and results[g, j] == records[group, words + j]
                    same = same and status[g, j] == records[group, FLAGS + (j >> 5)] >> (j & 31) & 1
            if same:
                continue
            if was_shown:
                out_ts[out] = now
                out_sign[out] = -1
                for c in range(KEY_WORDS):
                    out_words[c, out] = keys[group, c]
                for j in range(k):
                    out_words[KEY_WORDS + j, out] = records[group, words + j]
                    out_status[j, out] = records[group, FLAGS + (j >> 5)] >> (j & 31) & 1
                out += 1
            for c in range(FLAGS, words):
                records[group, c] = 0
            records[group, FLAGS] = int64(exists) << SHOWN
            for j in range(k):
                records[group, words + j] = results[g, j] if exists else 0
                records[group, FLAGS + (j >> 5)] |= int64(status[g, j] if exists else 0) << (j & 31)
            if exists:
                waiting[n_waiting] = g
                n_waiting += 1
        for w in range(n_waiting):
            g = waiting[w]
            out_ts[out] = now
            out_sign[out] = 1
            for c in range(KEY_WORDS):
                out_words[c, out] = keys[closed[g], c]
            for j in range(k):
                out_words[KEY_WORDS + j, out] = results[g, j]
                out_status[j, out] = status[g, j]
            out += 1
        state[OUT] = out
        t = stop


@template("CALLS", "KEY_WORDS", "IS_GLOBAL", gain=0.2, compile_s=6.0)
def aggregate_form(
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
    """See `grouped_slice.aggregate_slice`."""
    if not find_groups(elements, groups, asked.k, work, state):
        return TABLE_FULL
    if state[STEP] == ENTER:
        if not _move(elements, of_groups, work, until, asked.k, state):
            return POOL_FULL
        state[STEP] = PUT_OUT
    _put_out(elements.ts, groups.keys, of_groups.records, work, start, state, changed)
    give_back(groups, of_groups.records, work.scratch[GONE], until, state, changed.status)
    return DONE
