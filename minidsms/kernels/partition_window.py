"""Kernel of the windows that keep rows by key: the last N rows of each, or its present session.

Rows stand in slots: slots[s] holds the fields below. Each slot is on the list of the rows of its key, oldest first
(NEXT_OF_KEY); and, where rows leave as time passes, on that of all rows in the order of arrival (OLDER, NEWER, doubly
linked, so that a row may leave from the middle). keys[k] holds the ends of the first list, the next key of the same
bucket, and instant and number of the row with which the key came. Free slots and keys are stacked. One record is one
stretch of memory, since all of it is touched together. In a window of sessions the list of all rows holds only those of
which it is not known whether a later one of their key has come in time.

Invariant: kernels never raise; they return why they stopped and leave their cursor where to resume.
docs/semantics W5, W11; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import Int64Array
from minidsms.kernels.mixing import bucket_of_row
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, kernel

TS, NUMBER, KEY, NEXT_OF_KEY, OLDER, NEWER = 0, 1, 2, 3, 4, 5
SLOT_FIELDS, TIMELESS_SLOT_FIELDS = 6, 4
ROWS, FIRST_ROW, LAST_ROW, NEXT_IN_BUCKET, BEGAN_AT, BEGAN_WITH = 0, 1, 2, 3, 4, 5
KEY_FIELDS = 6
# The figures of the whole window, and the cursor of a slice.
OLDEST, NEWEST, FREE_SLOTS, FREE_KEYS, ARRIVED = 0, 1, 2, 3, 4
PHASE, NEXT, FIRST, SHOWN, WRITTEN = 0, 1, 2, 3, 4
DONE, FULL, NEEDS_SLOTS, NEEDS_KEYS = 0, 1, 2, 3

_A = "int64[::1]"
_M = "int64[:, ::1]"


class PartitionArrays(NamedTuple):
    """A window's state (`synopses.partition_stub`): its figures, slots and those free, keys with their words and those
    free, and the buckets of keys.
    """

    figures: Int64s
    slots: Int64Table
    free_slots: Int64s
    keys: Int64Table
    key_words: Int64Table
    free_keys: Int64s
    buckets: Int64s


class Kept(NamedTuple):
    """What a window keeps in a slice. rows: N per key.  length: T, 0 where only newer rows of their keys push rows out;
    rows with ts <= last_expiring leave, at ts + T.

    in_sessions: all rows of a key leave together, `length` after the last of them.
    """

    rows: int
    length: int
    last_expiring: int
    in_sessions: bool


class Changes(NamedTuple):
    """What leaves and enters. rows: (3, m) ts, arrival number, where the row stands (arrival i of this batch as i, slot
    s of earlier ones as -1 - s); of sessions (5, m), instant and arrival number of the first row of the key as well.
    """

    sign: Int8s
    rows: Int64Table


@kernel(f"void({_M}, {_A}, {_A}, {_M})")
def chain_keys(key_words: Int64Array, live: Int64Array, buckets: Int64Array, keys: Int64Array) -> None:
    """Fill empty buckets with the keys of these numbers."""
    for key in live:
        b = bucket_of_row(key_words, key, buckets)
        keys[key, NEXT_IN_BUCKET] = buckets[b]
        buckets[b] = key


@helper(f"void({_M}, int64, {_A}, {_M}, {_A}, {_A})")
def _free_key(
    key_words: Int64Array, key: int, buckets: Int64Array, keys: Int64Array, free_keys: Int64Array, figures: Int64Array
) -> None:
    """Forget a key without rows."""
    b = bucket_of_row(key_words, key, buckets)
    if buckets[b] == key:
        buckets[b] = keys[key, NEXT_IN_BUCKET]
    else:
        k = buckets[b]
        while keys[k, NEXT_IN_BUCKET] != key:
            k = keys[k, NEXT_IN_BUCKET]
        keys[k, NEXT_IN_BUCKET] = keys[key, NEXT_IN_BUCKET]
    free_keys[figures[FREE_KEYS]] = key
    figures[FREE_KEYS] += 1


@helper(f"void({_M}, int64, {_A})")
def _unlink(slots: Int64Array, slot: int, figures: Int64Array) -> None:
    """Take a row off the list of all rows."""
    before, after = slots[slot, OLDER], slots[slot, NEWER]
    if before >= 0:
        slots[before, NEWER] = after
    else:
        figures[OLDEST] = after
    if after >= 0:
        slots[after, OLDER] = before
    else:
        figures[NEWEST] = before


@helper(f"int64({_M}, {_A}, {_M}, int64, {_A}, {_A})")
def _leave(
    slots: Int64Array, free_slots: Int64Array, keys: Int64Array, slot: int, figures: Int64Array, place: Int64Array
) -> int:
    """Take the oldest row of its key, which is on no other list, away; returns how many rows the key has left.

    place: see `partition_window`.
    """
    key = slots[slot, KEY]
    keys[key, FIRST_ROW] = slots[slot, NEXT_OF_KEY]
    keys[key, ROWS] -= 1
    free_slots[figures[FREE_SLOTS]] = slot
    figures[FREE_SLOTS] += 1
    arrival = slots[slot, NUMBER] - (figures[ARRIVED] - len(place))
    if arrival >= 0:
        place[arrival] = -1
    return int(keys[key, ROWS])


@helper(typed=True)
def _key_of(words: Int64Table, row: int, stub: PartitionArrays) -> int:
    """The number of a key, a new one if it has no rows; -1 if that needs more keys."""
    key_words, buckets, keys, free_keys, figures = stub.key_words, stub.buckets, stub.keys, stub.free_keys, stub.figures
    b = bucket_of_row(words, row, buckets)
    key = buckets[b]
    while key >= 0:
        is_same = True
        for c in range(words.shape[1]):
            if key_words[key, c] != words[row, c]:
                is_same = False
                break
        if is_same:
            return int(key)
        key = keys[key, NEXT_IN_BUCKET]
    if figures[FREE_KEYS] == 0:
        return -1
    figures[FREE_KEYS] -= 1
    key = free_keys[figures[FREE_KEYS]]
    for c in range(words.shape[1]):
        key_words[key, c] = words[row, c]
    keys[key, ROWS] = 0
    keys[key, NEXT_IN_BUCKET] = buckets[b]
    buckets[b] = key
    return int(key)


@helper(typed=True)
def _enter(stub: PartitionArrays, key: int, ts: int, number: int, is_timeless: bool) -> int:
    """Give an arrival a slot, at the end of its lists; returns the slot. There is a free one."""
    slots, free_slots, keys, figures = stub.slots, stub.free_slots, stub.keys, stub.figures
    figures[FREE_SLOTS] -= 1
    slot = free_slots[figures[FREE_SLOTS]]
    slots[slot, TS], slots[slot, NUMBER], slots[slot, KEY], slots[slot, NEXT_OF_KEY] = ts, number, key, -1
    if not is_timeless:
        newest = figures[NEWEST]
        slots[slot, OLDER], slots[slot, NEWER] = newest, -1
        if newest >= 0:
            slots[newest, NEWER] = slot
        else:
            figures[OLDEST] = slot
        figures[NEWEST] = slot
    if keys[key, ROWS] == 0:
        keys[key, FIRST_ROW], keys[key, BEGAN_AT], keys[key, BEGAN_WITH] = slot, ts, number
    else:
        slots[keys[key, LAST_ROW], NEXT_OF_KEY] = slot
    keys[key, LAST_ROW] = slot
    keys[key, ROWS] += 1
    return int(slot)


@helper(inline=True)
def _put_leaving(
    stub: PartitionArrays, slot: int, at: int, base: int, changes: Changes, k: int, in_sessions: bool
) -> Any:
    """The row of a slot leaves at an instant."""
    key, number, out = stub.slots[slot, KEY], stub.slots[slot, NUMBER], changes.rows
    out[0, k], out[1, k], changes.sign[k] = at, number, -1
    out[2, k] = number - base if number >= base else -1 - slot
    if in_sessions:
        out[3, k], out[4, k] = stub.keys[key, BEGAN_AT], stub.keys[key, BEGAN_WITH]


@kernel
def partition_window(
    ts: Int64s, words: Int64Table, kept: Kept, stub: PartitionArrays, place: Int64s, cursor: Int64s, changes: Changes
) -> int:
    """Put arrivals (ts, key words) through the window and write the changes; returns why it stopped.

    place: (n,) the slot each arrival stands in, -1 once it has left or before it has come.

    An instant has three phases: what expires leaves (0); each arrival enters and pushes out the oldest of a full key,
    which is put out unless it came at this very instant (1); the arrivals that are left are put out (2).
    """
    rows, length, last_expiring, in_sessions = kept
    figures, slots, free_slots, keys, key_words, free_keys, buckets = stub
    out = changes.rows
    n, room = len(ts), out.shape[1]
    base, is_timeless = figures[ARRIVED] - n, length == 0
    phase, i, first, shown = cursor[PHASE], cursor[NEXT], cursor[FIRST], cursor[SHOWN]
    k, status = 0, DONE
    while status == DONE:
        if phase == 0:
            bound = last_expiring
            if i < n and bound > ts[i] - length:
                bound = ts[i] - length
            slot = figures[OLDEST]
            while slot >= 0 and slots[slot, TS] <= bound and k < room:
                key = slots[slot, KEY]
                if in_sessions and keys[key, LAST_ROW] != slot:
                    _unlink(slots, slot, figures)
                    slot = figures[OLDEST]
                    continue
                row = keys[key, FIRST_ROW]
                _put_leaving(stub, row, slots[slot, TS] + length, base, changes, k, in_sessions)
                k += 1
                if row == slot:
                    _unlink(slots, slot, figures)
                if _leave(slots, free_slots, keys, row, figures, place) == 0:
                    _free_key(key_words, key, buckets, keys, free_keys, figures)
                slot = figures[OLDEST]
            if slot >= 0 and slots[slot, TS] <= bound:
                status = FULL
                continue
            if i >= n:
                break
            first, phase = i, 1
        if phase == 1:
            while i < n and ts[i] == ts[first]:
                if k >= room or figures[FREE_SLOTS] == 0:
                    status = FULL if k >= room else NEEDS_SLOTS
                    break
                key = _key_of(words, i, stub)
                if key < 0:
                    status = NEEDS_KEYS
                    break
                place[i] = _enter(stub, key, ts[i], base + i, is_timeless)
                if keys[key, ROWS] > rows:
                    slot = keys[key, FIRST_ROW]
                    if slots[slot, TS] != ts[i]:
                        _put_leaving(stub, slot, ts[i], base, changes, k, in_sessions)
                        k += 1
                    if not is_timeless:
                        _unlink(slots, slot, figures)
                    _leave(slots, free_slots, keys, slot, figures, place)
                i += 1
            if status != DONE:
                continue
            shown, phase = first, 2
        while shown < i and k < room:
            if place[shown] >= 0:
                out[0, k], out[1, k], out[2, k], changes.sign[k] = ts[shown], base + shown, shown, 1
                if in_sessions:
                    key = slots[place[shown], KEY]
                    out[3, k], out[4, k] = keys[key, BEGAN_AT], keys[key, BEGAN_WITH]
                k += 1
            shown += 1
        if shown < i:
            status = FULL
        else:
            phase = 0
    cursor[PHASE], cursor[NEXT], cursor[FIRST], cursor[SHOWN], cursor[WRITTEN] = phase, i, first, shown, k
    return status
