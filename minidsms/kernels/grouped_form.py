"""A slice through a grouped aggregation whose aggregates are constants: a template.

As `kernels.grouped_slice`, over the same records, but an element is taken into all aggregates before the next one, and
an aggregate answers once for each group and instant, not after each element: behind the instant's last element, when it
is compared with the row that is shown, as in `grouping.put_out`, and stands nowhere between.

Invariant: the rows put out are those of `aggregate_slice`, in the same order.
"""

from __future__ import annotations

import numpy as np

from minidsms.kernels.aggregation import NULL, VALUE
from minidsms.kernels.grouped_slice import (
    AT,
    CLOSED,
    DONE,
    ENTER,
    FIRST,
    GONE,
    IDS,
    NULLS,
    POOL_FULL,
    PUT_OUT,
    RESUMES,
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
from minidsms.machine_code import Int64s, helper, int64, uint64
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
def _take_instants(
    elements: Elements,
    groups: Groups,
    of_groups: Records,
    work: Work,
    start: int,
    until: int,
    k: int,
    state: Int64s,
    changed: Changed,
) -> bool:
    """Take elements into the states, and close each instant behind its last: -old row, +new row of each group whose row
    changed. False where the pool is full. An instant that fails puts out nothing.
    """
    ts, sign, keys = elements.ts, elements.sign, groups.keys
    records, nodes, pool = of_groups
    values, weights = work.words[k:], work.weights
    answer, status = work.results[0], work.status[0]
    floats = answer.view(np.float64)
    ids, touched, dead, waiting = work.scratch[IDS], work.scratch[TOUCHED], work.scratch[GONE], work.scratch[FIRST]
    out_ts, out_sign, out_words, out_status = changed
    words = FLAGS + 1 + (len(CALLS) >> 5)
    # What stands in an array is read again after each write to another one.
    i, m, out, gone_groups, instant = state[AT], state[CLOSED], state[OUT], state[DEAD], state[INSTANT]
    free, used, held = pool[FREE], pool[USED], pool[HELD]
    resumes, is_full, some_null = state[RESUMES] != 0, False, state[NULLS] != 0
    while i < len(ts) and ts[i] < until:
        now = ts[i]
        if not resumes:
            instant += 1
            m = 0
        resumes = False
        while i < len(ts) and ts[i] == now:
            if used + len(CALLS) > nodes.shape[0]:
                is_full = True
                break
            group = ids[i]
            records[group, ROWS] += sign[i]
            touched[m] = group
            m += records[group, STAMP] != instant
            records[group, STAMP] = instant
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
                        nodes[beaten, _AFTER] = free
                        free = beaten
                        held -= 1
                    node = free
                    if node > 0:
                        free = nodes[node, _AFTER]
                    else:
                        node = used
                        used += 1
                    held += 1
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
                        nodes[front, _AFTER] = free
                        free = front
                        held -= 1
                        nodes[following, _BEFORE] = 0
                        records[group, at] = following | back << 32
                        if following == 0:
                            records[group, at] = 0
                            records[group, at + 1] = 0
                            records[group, at + 2] = 0
            i += 1
        if is_full:
            break
        for j in range(len(CALLS)):
            if CALLS[j][_KIND] == SUM and (now >= start or not IS_GLOBAL):
                at = CALLS[j][_OFFSET]
                for t in range(m):
                    group = touched[t]
                    if records[group, at] != 0 and records[group, at + 2] != records[group, at + 1] >> 63:
                        state[CULPRIT] = j + 1
                        break
                if state[CULPRIT] != 0:
                    break
        if state[CULPRIT] != 0:
            state[CULPRIT_AT] = i - 1
            break
        n_waiting = 0
        for t in range(m):
            group = touched[t]
            rows = records[group, ROWS]
            exists = now >= start if IS_GLOBAL else rows > 0
            was_shown = records[group, FLAGS] >> SHOWN & 1 == 1
            dead[gone_groups] = group
            gone_groups += rows == 0
            same = exists == was_shown
            for j in range(len(CALLS)):
                kind, at = CALLS[j][_KIND], CALLS[j][_OFFSET]
                if kind == STAR:
                    answer[j] = rows
                    status[j] = VALUE
                elif kind == COUNT:
                    answer[j] = records[group, at]
                    status[j] = VALUE
                elif kind <= AVG:
                    count, low, high = records[group, at], records[group, at + 1], records[group, at + 2]
                    if kind == SUM:
                        answer[j] = low
                    else:
                        exact = float(low) if high == low >> 63 else float(high) * _TWO_64 + float(uint64(low))
                        floats[j] = exact / count if count != 0 else 0.0
                    status[j] = NULL if count == 0 else VALUE
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
                    answer[j] = key if told else 0
                    status[j] = told
                if exists:
                    same = same and answer[j] == records[group, words + j]
                    same = same and status[j] == records[group, FLAGS + (j >> 5)] >> (j & 31) & 1
            if same:
                continue
            if was_shown:
                out_ts[out] = now
                out_sign[out] = -1
                for c in range(KEY_WORDS):
                    out_words[c, out] = keys[group, c]
                for j in range(len(CALLS)):
                    out_words[KEY_WORDS + j, out] = records[group, words + j]
                    is_value = records[group, FLAGS + (j >> 5)] >> (j & 31) & 1
                    out_status[j, out] = is_value
                    some_null = some_null or is_value == 0
                out += 1
            for c in range(FLAGS, words):
                records[group, c] = 0
            records[group, FLAGS] = int64(exists) << SHOWN
            for j in range(len(CALLS)):
                records[group, words + j] = answer[j] if exists else 0
                records[group, FLAGS + (j >> 5)] |= int64(status[j] if exists else 0) << (j & 31)
            waiting[n_waiting] = group
            n_waiting += exists
        for w in range(n_waiting):
            group = waiting[w]
            out_ts[out] = now
            out_sign[out] = 1
            for c in range(KEY_WORDS):
                out_words[c, out] = keys[group, c]
            for j in range(len(CALLS)):
                out_words[KEY_WORDS + j, out] = records[group, words + j]
                is_value = records[group, FLAGS + (j >> 5)] >> (j & 31) & 1
                out_status[j, out] = is_value
                some_null = some_null or is_value == 0
            out += 1
    state[AT], state[CLOSED], state[OUT], state[DEAD], state[INSTANT] = i, m, out, gone_groups, instant
    state[RESUMES], state[NULLS] = is_full, some_null
    pool[FREE], pool[USED], pool[HELD] = free, used, held
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
    state: Int64s,
    changed: Changed,
) -> int:
    """See `grouped_slice.aggregate_slice`."""
    if not find_groups(elements, groups, asked.k, work, state):
        return TABLE_FULL
    if state[STEP] == ENTER:
        if not _take_instants(elements, groups, of_groups, work, start, until, asked.k, state, changed):
            return POOL_FULL
        state[STEP] = PUT_OUT
    give_back(groups, of_groups.records, work.scratch[GONE], until, state)
    return DONE
