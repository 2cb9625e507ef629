"""The loop of grouped aggregation: elements into their groups, and the rows an instant changes out of them.

All that is known of a group stands in one row of `records` (cap, w) int64, so that an element touches few cache lines:
  [rows, stamp, last element, flags.., words put out last (k), states of the aggregates at their offsets]
flags: bit j % 32 of word j / 32 says that word j as put out last is not NULL; bit SHOWN of the first, that the group
is put out at all. The states, by kind of aggregate:
  COUNT     [count]
  SUM, AVG  [count, low, high word of a sum in 128 bits, two's complement]: exact
  EXTREME   [front | back << 32, values come, values gone]: a monotone deque in `nodes` (cap, 4) = [key, number in its
            group, previous, next] for MIN and MAX when deletions come in the order of insertions. A value that comes
            strikes out those before it that it beats, for they leave earlier. Node 0 is nobody.
  TOP       [key, is there]: MIN and MAX when nothing is ever deleted
  STACKED   [values, least key on the front stack, on the back stack]: MIN and MAX when the elements of all groups leave
            in the order in which they came. Values come onto the back stack and leave the front one; where that is
            empty the back one is turned over. All groups share both, which are the rows of `key_table.recall`'s ring:
            `stacks` (2^m, s) has a word for each row and aggregate of this kind. On the back stack it is the key, on
            the front one the least key of those of its group that leave later, so that no branch depends on values.
STAR (COUNT(*)) is the number of rows; EXTERNAL has been computed elsewhere.
`move_sums` and `move_extremes` take elements in and write what each aggregate would answer after each: results[i, j]
(the word) and status[i, j], one of NULL, VALUE, FAILED. `close_instants` then takes, per instant and group, the answers
after the group's last element. The steps that these share with `grouped_form` are helpers on one group's record.
A group whose rows have left is all zeros but for its stamp, so its id can be given to another group as it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from minidsms.kernels.aggregation import FAILED, NULL, VALUE
from minidsms.machine_code import (
    Float64Table,
    Int8s,
    Int8Table,
    Int32s,
    Int64s,
    Int64Table,
    Record,
    Rows,
    helper,
    int64,
    kernel,
    uint64,
)
from minidsms.machine_code.prefetching import prefetch

STAR, COUNT, SUM, AVG, EXTREME, TOP, STACKED, EXTERNAL = range(8)
ROWS, STAMP, LAST, FLAGS = range(4)
SHOWN = 62

_EXACT = 1 << 53
"""Whole numbers up to here are floats."""
_KEY, _NUMBER, _BEFORE, _AFTER, NODE_WORDS = range(5)
_LOW = 0xFFFFFFFF
LARGEST = 0x7FFFFFFFFFFFFFFF
AHEAD = 16
"""Rows, or elements, before one for which its group is on its way into the cache."""


class Called(Record):
    """An aggregate: which it is; its row of `weights` and `values`; where its state is; of COUNT and AVG the row of
    `values` that says for how many values each stands, or -1: for one.
    """

    place: int
    kind: int
    argument: int
    offset: int
    is_largest: int
    is_float: int
    times: int


class SliceState(Record):
    """How far a slice is. instant: the count of instants.  out, dead: rows and emptied groups written.  culprit: on a
    failure, 1 + the aggregate; culprit_at: the element.

    step, at: to go on with, and the element.  nulls: a NULL is put out.  closed, resumes: groups of the instant, and
    whether it goes on amid one, whose first element is `first`.  pauses: it returns for the states outside.
    """

    instant: int
    out: int
    dead: int
    culprit: int
    culprit_at: int
    step: int
    at: int
    nulls: int
    closed: int
    resumes: int
    first: int
    pauses: int


class NodePool(Record):
    """free: the first free node.  used: nodes ever used.  held: nodes in use."""

    free: int
    used: int
    held: int


# ------------------------------------------------------------------------------------------------- states of a group


@helper(inline=True)
def add(record: Int64s, at: int, value: int, weight: int) -> Any:
    """Into the 128 bits at record[at]: the value where weight > 0, else out of them."""
    low = record[at]
    before = uint64(low)
    if weight > 0:
        low = int64(before + uint64(value))
        record[at + 1] += (value >> 63) + int64(uint64(low) < before)
    else:
        low = int64(before - uint64(value))
        record[at + 1] -= (value >> 63) + int64(uint64(value) > before)
    record[at] = low


@helper(typed=True)
def _quotient(high: int, low: int, count: int) -> float:
    """A sum of 128 bits, from 2^53 on in magnitude, divided by a count and rounded once."""
    negative = high < 0
    if negative:
        low = -low
        high = ~high + int64(low == 0)
    if high == 0 and low > 0 and count < 1 << 31:
        # The quotient has 23 bits or more: with 32 behind the point there are two beside those of a float.
        whole, rest = low // count, (low % count) << 32
        behind, places = rest // count, 32
        while places > 0 and whole >> (63 - places) > 0:
            places -= 1
        lost = behind & ((int64(1) << (32 - places)) - 1) | rest % count
        mantissa = whole << places | behind >> (32 - places)
        power = -places
    else:
        mantissa, left, power = int64(0), uint64(0), 128
        while mantissa >> 54 == 0:  # bit by bit
            power -= 1
            word = high if power >= 64 else low if power >= 0 else int64(0)
            left = left << uint64(1) | uint64(word >> (power & 63) & 1)
            fits = left >= uint64(count)
            if fits:
                left -= uint64(count)
            mantissa = mantissa << 1 | int64(fits)
        lost = int64(left != 0)
        if power > 64:
            lost |= low | high & ((int64(1) << (power - 64)) - 1)
        elif power > 0:
            lost |= low if power == 64 else low & ((int64(1) << power) - 1)
    exact = math.ldexp(float(mantissa | int64(lost != 0)), power)
    return -exact if negative else exact


@helper(inline=True)
def mean(record: Int64s, at: int) -> Any:
    """Of a count and the 128 bits behind it, at record[at], rounded once."""
    count, low, high = record[at], record[at + 1], record[at + 2]
    if count == 0:
        return 0.0
    if high == low >> 63 and -_EXACT <= low <= _EXACT:
        return float(low) / count
    return _quotient(high, low, count)


@helper(inline=True)
def turned(word: int, is_largest: int, is_float: int) -> Any:
    """A value as a key of which the least is the extreme: bits of negative floats run backwards, ~x turns the order of
    int64 round.
    """
    return word ^ ((word >> 63) & (LARGEST * is_float)) ^ -is_largest


@helper(inline=True)
def turned_back(key: int, is_largest: int, is_float: int) -> Any:
    """The value of a key."""
    word = key ^ -is_largest
    return word ^ ((word >> 63) & (LARGEST * is_float))


@helper(inline=True)
def take_top(record: Int64s, at: int, key: int) -> Any:
    """Into a TOP at record[at]."""
    if record[at + 1] == 0 or key < record[at]:
        record[at] = key
        record[at + 1] = 1


class Spare(NamedTuple):
    """The words of a pool, where a loop keeps them: what stands in an array is read again after each write to another.

    free: the first free node.  used: nodes ever used.  held: nodes in use.
    """

    free: int
    used: int
    held: int


@helper(inline=True)
def put_in(record: Int64s, at: int, key: int, nodes: Int64Table, spare: Spare) -> Any:
    """A value comes into the deque of an EXTREME at record[at]; the pool has a node for it."""
    free, used, held = spare
    front = record[at] & _LOW
    newest = back = record[at] >> 32
    come = record[at + 1] + 1
    record[at + 1] = come
    node = int64(0)
    while back > 0 and nodes[uint64(back), _KEY] >= key:
        node = back
        back = nodes[uint64(back), _BEFORE]
        held -= 1
    if node > 0:
        # The eldest that is beaten gives its place; the others are a chain of free nodes as they stand.
        nodes[uint64(newest), _AFTER] = free
        free = nodes[uint64(node), _AFTER]
    else:
        node = free
        if node > 0:
            free = nodes[uint64(node), _AFTER]
        else:
            node = used
            used += 1
        nodes[uint64(node), _BEFORE] = back
        nodes[uint64(back), _AFTER] = node
    nodes[uint64(node), _KEY] = key
    nodes[uint64(node), _NUMBER] = come
    nodes[uint64(node), _AFTER] = 0
    record[at] = (front if back > 0 else node) | node << 32
    return Spare(free, used, held + 1)


@helper(inline=True)
def take_out(record: Int64s, at: int, nodes: Int64Table, spare: Spare) -> Any:
    """The oldest value leaves the deque of an EXTREME at record[at], unless a later one had struck it out."""
    front = record[at] & _LOW
    back = record[at] >> 32
    gone = record[at + 2] + 1
    record[at + 2] = gone
    if front == 0 or nodes[uint64(front), _NUMBER] != gone:
        return spare
    following = nodes[uint64(front), _AFTER]
    nodes[uint64(front), _AFTER] = spare.free
    nodes[uint64(following), _BEFORE] = 0
    record[at] = following | back << 32
    if following == 0:
        # No value is left: what came and went need not be told apart any more.
        record[at] = 0
        record[at + 1] = 0
        record[at + 2] = 0
    return Spare(front, spare.used, spare.held - 1)


@helper(inline=True)
def first_of(record: Int64s, at: int, nodes: Int64Table) -> Any:
    """The extreme of the deque at record[at], and whether there is one."""
    front = record[at] & _LOW
    return nodes[uint64(front), _KEY], int64(front > 0)


@helper(inline=True)
def push(record: Int64s, at: int, key: int) -> Any:
    """A value comes onto the back stack of a STACKED at record[at]."""
    values = record[at]
    record[at] = values + 1
    record[at + 1] = record[at + 1] if values > 0 else int64(LARGEST)
    record[at + 2] = min(record[at + 2], key) if values > 0 else key


@helper(inline=True)
def pop(record: Int64s, at: int, rest: int) -> Any:
    """The oldest value leaves the front stack of a STACKED at record[at]. rest: its word in `stacks`."""
    values = record[at] - 1
    record[at] = values
    record[at + 1] = rest if values > 0 else int64(0)
    record[at + 2] = record[at + 2] if values > 0 else int64(0)


@helper(inline=True)
def least_of(record: Int64s, at: int) -> Any:
    """The extreme of a STACKED at record[at], and whether there is one."""
    return min(record[at + 1], record[at + 2]), int64(record[at] > 0)


@helper(typed=True)
def turn(
    records: Int64Table, at: int, ring: Int32s, stacks: Int64Table, column: int, oldest: int, following: int
) -> None:
    """Turn the back stack of a STACKED at record[at] over: the rows from `oldest` to before `following`. O(rows).

    Nothing is on the front stack, so that a group's least key there is LARGEST, or 0 where it has no values.
    """
    mask = len(ring) - 1
    for row in range(following - 1, oldest - 1, -1):
        prefetch(records, int64(ring[uint64(max(row - AHEAD, oldest) & mask)]) * records.shape[1] + at)
        record = records[uint64(ring[uint64(row & mask)])]
        key, rest = stacks[uint64(row & mask), column], record[at + 1]
        stacks[uint64(row & mask), column] = rest
        record[at + 1] = min(rest, key)
        record[at + 2] = int64(LARGEST) if record[at] > 0 else int64(0)


# -------------------------------------------------------------------------------------------------- taking values in


@kernel
def move_sums(
    ids: Int64s,
    calls: Rows[Called],
    values: Int64Table,
    weights: Int8Table,
    records: Int64Table,
    results: Int64Table,
    floats: Float64Table,
    status: Int8Table,
) -> None:
    """COUNT, SUM and AVG.

    ids (n,) the groups; values (m, n) words and weights (m, n): +1 where a value comes, -1 where it leaves, 0 where it
    does not count.  floats is results, seen as float64.
    """
    for i in range(ids.shape[0]):
        record = records[ids[i]]
        for c in range(calls.shape[0]):
            at = calls[c].offset
            j = calls[c].place
            weight = int64(weights[calls[c].argument, i])
            times = calls[c].times
            record[at] += weight if times < 0 else weight * values[times, i]
            if calls[c].kind == COUNT:
                results[i, j] = record[at]
                status[i, j] = VALUE
                continue
            if weight != 0:
                add(record, at + 1, values[calls[c].argument, i], weight)
            some, fits = record[at] != 0, record[at + 2] == record[at + 1] >> 63
            if calls[c].kind == SUM:
                results[i, j] = record[at + 1]
                status[i, j] = NULL if not some else (VALUE if fits else FAILED)
            else:
                floats[i, j] = mean(record, at)
                status[i, j] = VALUE if some else NULL


@kernel
def move_extremes(
    start: int,
    ids: Int64s,
    calls: Rows[Called],
    values: Int64Table,
    weights: Int8Table,
    records: Int64Table,
    nodes: Int64Table,
    pool: NodePool,
    results: Int64Table,
    status: Int8Table,
) -> int:
    """MIN and MAX. Returns how far it came: to an element for which the pool has no room, or to the end."""
    spare = Spare(pool.free, pool.used, pool.held)
    done = len(ids)
    for i in range(start, ids.shape[0]):
        if spare.used + calls.shape[0] > nodes.shape[0]:
            done = i
            break
        record = records[ids[i]]
        for c in range(calls.shape[0]):
            at, j, is_largest, is_float = calls[c].offset, calls[c].place, calls[c].is_largest, calls[c].is_float
            weight = weights[calls[c].argument, i]
            key = turned(values[calls[c].argument, i], is_largest, is_float)
            if calls[c].kind == TOP:
                if weight > 0:
                    take_top(record, at, key)
                key, told = record[at], record[at + 1]
            else:
                if weight > 0:
                    spare = put_in(record, at, key, nodes, spare)
                elif weight < 0:
                    spare = take_out(record, at, nodes, spare)
                key, told = first_of(record, at, nodes)
            results[i, j] = turned_back(key, is_largest, is_float) if told else 0
            status[i, j] = told
    pool.free, pool.used, pool.held = spare
    return done


@helper(inline=True)
def rows_before(sign: Int8s, i: int, ends: Int64s) -> Any:
    """The ends (oldest, following) of the rows present before element i, given those behind the last element."""
    come = 0
    for j in range(i, len(sign)):
        come += sign[j] > 0
    return ends[0] - (len(sign) - i - come), ends[1] - come


@helper(inline=True)
def all_leave(ts: Int64s, sign: Int8s, i: int, rows: int) -> Any:
    """Whether these rows, all that are present before element i, leave at its instant: then what turning the back stack
    over would tell is not asked for. Deletions come first.
    """
    last = i + rows - 1
    return last < len(ts) and ts[last] == ts[i] and sign[last] < 0


@helper(typed=True)
def move_stacks(
    ts: Int64s,
    sign: Int8s,
    ids: Int64s,
    calls: Rows[Called],
    values: Int64Table,
    weights: Int8Table,
    records: Int64Table,
    ring: Int32s,
    ends: Int64s,
    stacks: Int64Table,
    results: Int64Table,
    status: Int8Table,
) -> None:
    """MIN and MAX that are STACKED. ends: the oldest and the following row of the ring behind the last element, and
    where the front stack ends.
    """
    mask, turned_until = len(ring) - 1, ends[2]
    for c in range(calls.shape[0]):
        at, j, is_largest, is_float = calls[c].offset, calls[c].place, calls[c].is_largest, calls[c].is_float
        oldest, following = rows_before(sign, 0, ends)
        turned_until = ends[2]
        for i in range(ids.shape[0]):
            record, weight = records[ids[i]], weights[calls[c].argument, i]
            if sign[i] > 0:
                key = turned(values[calls[c].argument, i], is_largest, is_float)
                stacks[following & mask, c] = key if weight > 0 else LARGEST
                if weight > 0:
                    push(record, at, key)
                following += 1
            else:
                if oldest == turned_until:
                    if not all_leave(ts, sign, i, following - oldest):
                        turn(records, at, ring, stacks, c, oldest, following)
                    turned_until = following
                if weight < 0:
                    pop(record, at, stacks[oldest & mask, c])
                oldest += 1
            key, told = least_of(record, at)
            results[i, j] = turned_back(key, is_largest, is_float) if told else 0
            status[i, j] = told
    ends[2] = turned_until


# -------------------------------------------------------------------------------------------- the rows of an instant


class Answered(NamedTuple):
    """Elements, and what the aggregates answer behind each. ts, sign, ids (n,): the groups.  results, status (n, m).
    stars: which aggregates are COUNT(*), sums: which may have failed.
    """

    ts: Int64s
    sign: Int8s
    ids: Int64s
    results: Int64Table
    status: Int8Table
    stars: Int64s
    sums: Int64s


class Changed(NamedTuple):
    """Room for the rows that are put out. words: of the key columns, then of the results.  status: whether the
    words are values; written from the first NULL on.
    """

    ts: Int64s
    sign: Int8s
    words: Int64Table
    status: Int8Table


@helper(typed=True)
def _note_status(changed: Changed, out: int, keys: int, key: Int64s, flags: Int64s, is_first: bool) -> None:
    """Write which words of a row are values. is_first: the first one that has a NULL; all before it are."""
    at, status = uint64(out), changed.status
    for c in range(status.shape[0]):
        for i in range(out if is_first else 0):
            status[c, i] = 1
    for c in range(keys):
        status[c, at] = key[keys + c // 62] >> (c % 62) & 1 == 0
    for j in range(status.shape[0] - keys):
        status[keys + j, at] = flags[j >> 5] >> (j & 31) & 1


@helper(inline=True)
def put_row(
    changed: Changed, out: int, now: int, sign: int, keys: int, key: Int64s, record: Int64s, results: int, nulls: bool,
    is_shown: bool,
) -> Any:  # fmt: skip
    """Put out the row of a group, of so many keys and results; whether one that was put out has a NULL.

    is_shown: there is such a row; else what is written stands for nothing.
    """
    at = uint64(out)
    changed.ts[at], changed.sign[at] = now, sign
    words, lacking = FLAGS + 1 + (results >> 5), int64(0)
    for c in range(keys):
        changed.words[c, at] = key[c]
    for c in range(1 + keys // 62 if keys > 0 else 0):
        lacking |= key[keys + c]
    for j in range(results):
        changed.words[keys + j, at] = record[words + j]
    for c in range((results + 31) >> 5):
        lacking |= ~record[FLAGS + c] & ((int64(1) << min(results - 32 * c, 32)) - 1)
    if nulls or (is_shown and lacking != 0):
        _note_status(changed, out, keys, key, record[FLAGS:], not nulls)
        nulls = True
    return nulls


@helper(inline=True)
def _keep_row(record: Int64s, exists: bool, answer: Int64s, status: Int8s, k: int) -> Any:
    """From now on the row of the group is these k results, or there is none."""
    words = FLAGS + 1 + (k >> 5)
    for c in range(FLAGS, words):
        record[c] = 0
    record[FLAGS] = int64(exists) << SHOWN
    for j in range(k):
        record[words + j] = answer[j] if exists else 0
        record[FLAGS + (j >> 5)] |= int64(status[j] if exists else 0) << (j & 31)


@helper(inline=True)
def _take_instant(answered: Answered, records: Int64Table, i: int, stamp: int, touched: Int64s) -> Any:
    """Note the last element of each group of the instant that begins with element i; the element behind it, and how
    many groups there are.
    """
    ts, sign, ids = answered.ts, answered.sign, answered.ids
    now, groups = ts[i], 0
    while i < ts.shape[0] and ts[i] == now:
        group = ids[i]
        records[group, ROWS] += sign[i]
        records[group, LAST] = i
        if records[group, STAMP] != stamp:
            records[group, STAMP] = stamp
            touched[groups] = group
            groups += 1
        i += 1
    return i, groups


@helper(inline=True)
def _has_failed(answered: Answered, records: Int64Table, touched: Int64s, groups: int, cursor: SliceState) -> Any:
    """Whether an aggregate of a group fails; the cursor says which."""
    failed = False
    for s in range(answered.sums.shape[0]):
        for t in range(groups):
            at = records[touched[t], LAST]
            if not failed and answered.status[at, answered.sums[s]] == FAILED:
                cursor.culprit = answered.sums[s] + 1
                cursor.culprit_at = at
                failed = True
    return failed


@helper(inline=True)
def _is_shown(answered: Answered, at: int, records: Int64Table, group: int) -> Any:
    """The row of the group that is shown has the results of element `at`."""
    results, status = answered.results, answered.status
    k = status.shape[1]
    words, same = FLAGS + 1 + (k >> 5), True
    for j in range(k):
        same = same and results[at, j] == records[group, words + j]
        same = same and status[at, j] == records[group, FLAGS + (j >> 5)] >> (j & 31) & 1
    return same


@helper
def close_instants(
    answered: Answered, n_keys: int, keys: Int64Table, records: Int64Table, is_global: bool, start: int, until: int,
    cursor: SliceState, touched: Int64s, dead: Int64s, changes: Changed,
) -> Any:  # fmt: skip
    """Close the instants before `until`: -old row, +new row of each group whose row changed. False where there is no
    room for those of an instant.

    keys (cap, w): the first n_keys words of each are put out before the results.  is_global: the one group of a query
    without GROUP BY exists from `start` on, rows or no rows; else a group exists while it has rows.  touched, dead:
    room for n. An instant that fails puts out nothing.
    """
    ts, _, _, results, status, stars, _ = answered
    k = status.shape[1]
    i, out, nulls, groups, resumes = cursor.at, cursor.out, cursor.nulls != 0, cursor.closed, cursor.resumes != 0
    cursor.resumes = 0
    while resumes or (i < ts.shape[0] and ts[i] < until):
        if not resumes:
            cursor.instant += 1
            i, groups = _take_instant(answered, records, i, cursor.instant, touched)
        resumes = False
        now = ts[i - 1]
        if (now >= start or not is_global) and _has_failed(answered, records, touched, groups, cursor):
            break
        if out + 2 * groups > changes.ts.shape[0]:
            cursor.at, cursor.closed, cursor.resumes = i, groups, 1
            return False
        changed = 0
        for t in range(groups):
            group = touched[t]
            at, rows = records[group, LAST], records[group, ROWS]
            exists = now >= start if is_global else rows > 0
            was_shown = records[group, FLAGS] >> SHOWN & 1 == 1
            if rows == 0:
                dead[cursor.dead] = group
                cursor.dead += 1
            for s in range(stars.shape[0] if exists else 0):
                results[at, stars[s]] = rows
                status[at, stars[s]] = VALUE
            if exists == was_shown and (not exists or _is_shown(answered, at, records, group)):
                continue
            touched[changed] = group
            changed += 1
            if was_shown:
                nulls = put_row(changes, out, now, -1, n_keys, keys[group], records[group], k, nulls, True)
                out += 1
            _keep_row(records[group], exists, results[at], status[at], k)
        for t in range(changed):
            group = touched[t]
            if records[group, FLAGS] >> SHOWN & 1:
                nulls = put_row(changes, out, now, 1, n_keys, keys[group], records[group], k, nulls, True)
                out += 1
        cursor.out, cursor.nulls = out, nulls
    return True


@kernel("int64(int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1])")
def pack_nodes(
    records: np.ndarray, groups: np.ndarray, offsets: np.ndarray, nodes: np.ndarray, packed: np.ndarray
) -> int:
    """Copy the deques of these groups to the front of `packed`, in order; returns how many nodes that uses."""
    to = 1
    for g in range(groups.shape[0]):
        group = groups[g]
        for o in range(offsets.shape[0]):
            at = offsets[o]
            node = records[group, at] & _LOW
            if node == 0:
                continue
            front = to
            while node > 0:
                packed[to, _KEY] = nodes[node, _KEY]
                packed[to, _NUMBER] = nodes[node, _NUMBER]
                packed[to, _BEFORE] = to - 1 if to > front else 0
                packed[to, _AFTER] = to + 1 if nodes[node, _AFTER] > 0 else 0
                node = nodes[node, _AFTER]
                to += 1
            records[group, at] = front | (to - 1) << 32
    return to
