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

from minidsms.kernels.mixing import bucket_of_row
from minidsms.machine_code import Int8s, Int64s, Int64Table, Record, Rows, helper, kernel

TS, NUMBER, KEY, NEXT_OF_KEY, OLDER, NEWER = 0, 1, 2, 3, 4, 5
SLOT_FIELDS, TIMELESS_SLOT_FIELDS = 6, 4
DONE, FULL, NEEDS_SLOTS, NEEDS_KEYS = 0, 1, 2, 3


class KeyRows(Record):
    """Of a key: how many rows it has, the first and the last, the next key of its bucket, and the instant and the
    number of the row with which it came.
    """

    rows: int
    first_row: int
    last_row: int
    next_in_bucket: int
    began_at: int
    began_with: int


class WindowFigures(Record):
    """Of the whole window: the ends of the list of all rows, how many slots and keys are free, and rows so far."""

    oldest: int
    newest: int
    free_slots: int
    free_keys: int
    arrived: int


class SliceCursor(Record):
    """phase, next, first, shown: where a slice is to be gone on with.  written: changes, by the call."""

    phase: int
    next: int
    first: int
    shown: int
    written: int


class PartitionArrays(NamedTuple):
    """A window's state (`synopses.partition_stub`): its figures, slots and those free, keys with their words and those
    free, and the buckets of keys.
    """

    figures: WindowFigures
    slots: Int64Table
    free_slots: Int64s
    keys: Rows[KeyRows]
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


@kernel
def chain_keys(key_words: Int64Table, live: Int64s, buckets: Int64s, keys: Rows[KeyRows]) -> None:
    """Fill empty buckets with the keys of these numbers."""
    for key in live:
        b = bucket_of_row(key_words, key, buckets)
        keys[key].next_in_bucket = buckets[b]
        buckets[b] = key


@helper(typed=True)
def _free_key(
    key_words: Int64Table, key: int, buckets: Int64s, keys: Rows[KeyRows], free_keys: Int64s, figures: WindowFigures
) -> None:
    """Forget a key without rows."""
    b = bucket_of_row(key_words, key, buckets)
    if buckets[b] == key:
        buckets[b] = keys[key].next_in_bucket
    else:
        k = buckets[b]
        while keys[k].next_in_bucket != key:
            k = keys[k].next_in_bucket
        keys[k].next_in_bucket = keys[key].next_in_bucket
    free_keys[figures.free_keys] = key
    figures.free_keys += 1


@helper(typed=True)
def _unlink(slots: Int64Table, slot: int, figures: WindowFigures) -> None:
    """Take a row off the list of all rows."""
    before, after = slots[slot, OLDER], slots[slot, NEWER]
    if before >= 0:
        slots[before, NEWER] = after
    else:
        figures.oldest = after
    if after >= 0:
        slots[after, OLDER] = before
    else:
        figures.newest = before


@helper(typed=True)
def _leave(
    slots: Int64Table, free_slots: Int64s, keys: Rows[KeyRows], slot: int, figures: WindowFigures, place: Int64s
) -> int:
    """Take the oldest row of its key, which is on no other list, away; returns how many rows the key has left.

    place: see `partition_window`.
    """
    key = slots[slot, KEY]
    keys[key].first_row = slots[slot, NEXT_OF_KEY]
    keys[key].rows -= 1
    free_slots[figures.free_slots] = slot
    figures.free_slots += 1
    arrival = slots[slot, NUMBER] - (figures.arrived - len(place))
    if arrival >= 0:
        place[arrival] = -1
    return int(keys[key].rows)


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
        key = keys[key].next_in_bucket
    if figures.free_keys == 0:
        return -1
    figures.free_keys -= 1
    key = free_keys[figures.free_keys]
    for c in range(words.shape[1]):
        key_words[key, c] = words[row, c]
    keys[key].rows = 0
    keys[key].next_in_bucket = buckets[b]
    buckets[b] = key
    return int(key)


@helper(typed=True)
def _enter(stub: PartitionArrays, key: int, ts: int, number: int, is_timeless: bool) -> int:
    """Give an arrival a slot, at the end of its lists; returns the slot. There is a free one."""
    slots, free_slots, keys, figures = stub.slots, stub.free_slots, stub.keys, stub.figures
    figures.free_slots -= 1
    slot = free_slots[figures.free_slots]
    slots[slot, TS], slots[slot, NUMBER], slots[slot, KEY], slots[slot, NEXT_OF_KEY] = ts, number, key, -1
    if not is_timeless:
        newest = figures.newest
        slots[slot, OLDER], slots[slot, NEWER] = newest, -1
        if newest >= 0:
            slots[newest, NEWER] = slot
        else:
            figures.oldest = slot
        figures.newest = slot
    if keys[key].rows == 0:
        keys[key].first_row, keys[key].began_at, keys[key].began_with = slot, ts, number
    else:
        slots[keys[key].last_row, NEXT_OF_KEY] = slot
    keys[key].last_row = slot
    keys[key].rows += 1
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
        out[3, k], out[4, k] = stub.keys[key].began_at, stub.keys[key].began_with


@helper(inline=True)
def _put_entered(
    stub: PartitionArrays, slot: int, at: int, arrival: int, base: int, changes: Changes, k: int, in_sessions: bool
) -> Any:
    """An arrival that has entered a slot is put out."""
    out = changes.rows
    out[0, k], out[1, k], out[2, k], changes.sign[k] = at, base + arrival, arrival, 1
    if in_sessions:
        key = stub.slots[slot, KEY]
        out[3, k], out[4, k] = stub.keys[key].began_at, stub.keys[key].began_with


@helper(inline=True)
def _expire(stub: PartitionArrays, kept: Kept, bound: int, place: Int64s, base: int, changes: Changes, k: int) -> Any:
    """What expires up to an instant leaves, as long as there is room; how many changes there are then."""
    figures, slots, free_slots, keys, key_words, free_keys, buckets = stub
    _, length, _, in_sessions = kept
    slot = figures.oldest
    while slot >= 0 and slots[slot, TS] <= bound and k < changes.rows.shape[1]:
        key = slots[slot, KEY]
        if in_sessions and keys[key].last_row != slot:
            _unlink(slots, slot, figures)
            slot = figures.oldest
            continue
        row = keys[key].first_row
        _put_leaving(stub, row, slots[slot, TS] + length, base, changes, k, in_sessions)
        k += 1
        if row == slot:
            _unlink(slots, slot, figures)
        if _leave(slots, free_slots, keys, row, figures, place) == 0:
            _free_key(key_words, key, buckets, keys, free_keys, figures)
        slot = figures.oldest
    return k


@kernel
def partition_window(
    ts: Int64s,
    words: Int64Table,
    kept: Kept,
    stub: PartitionArrays,
    place: Int64s,
    cursor: SliceCursor,
    changes: Changes,
) -> int:
    """Put arrivals (ts, key words) through the window and write the changes; returns why it stopped.

    place: (n,) the slot each arrival stands in, -1 once it has left or before it has come.

    An instant has three phases: what expires leaves (0); each arrival enters and pushes out the oldest of a full key,
    which is put out unless it came at this very instant (1); the arrivals that are left are put out (2).
    """
    rows, length, last_expiring, in_sessions = kept
    figures, slots, free_slots, keys, _, _, _ = stub
    n, room = len(ts), changes.rows.shape[1]
    base, is_timeless = figures.arrived - n, length == 0
    phase, i, first, shown = cursor.phase, cursor.next, cursor.first, cursor.shown
    k, status = 0, DONE
    while status == DONE:
        if phase == 0:
            bound = last_expiring
            if i < n and bound > ts[i] - length:
                bound = ts[i] - length
            k = _expire(stub, kept, bound, place, base, changes, k)
            if figures.oldest >= 0 and slots[figures.oldest, TS] <= bound:
                status = FULL
                continue
            if i >= n:
                break
            first, phase = i, 1
        if phase == 1:
            while i < n and ts[i] == ts[first]:
                if k >= room or figures.free_slots == 0:
                    status = FULL if k >= room else NEEDS_SLOTS
                    break
                key = _key_of(words, i, stub)
                if key < 0:
                    status = NEEDS_KEYS
                    break
                place[i] = _enter(stub, key, ts[i], base + i, is_timeless)
                if keys[key].rows > rows:
                    slot = keys[key].first_row
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
                _put_entered(stub, place[shown], ts[shown], shown, base, changes, k, in_sessions)
                k += 1
            shown += 1
        if shown < i:
            status = FULL
        else:
            phase = 0
    cursor.phase, cursor.next, cursor.first, cursor.shown, cursor.written = phase, i, first, shown, k
    return status
