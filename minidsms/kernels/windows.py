"""Kernels of the windows: merging what enters with what leaves.

A first-in-first-out window keeps its elements at consecutive positions [lo, hi). Two runs of positions describe a slice
of time: those that enter (ins_at[i] is the instant at which position ins_pos + i enters) and those that leave
(del_at[d], for position del_pos + d). Both runs are nondecreasing in time. The merge puts deletions before insertions
at each instant and leaves out what would enter and leave at one instant.

Invariant: kernels never raise; they return how much they wrote and leave their cursor where to resume.
docs/semantics W1 to W7; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from numba import njit

from minidsms.elements import Int8Array, Int64Array


@njit(
    "int64(int64[::1], int64[::1], int64, int64[::1], int64[::1], int64, int64[::1],int64[::1], int8[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def merge_changes(
    ins_at: Int64Array,
    ins_seq: Int64Array,
    ins_pos: int,
    del_at: Int64Array,
    del_seq: Int64Array,
    del_pos: int,
    cursor: Int64Array,
    out_ts: Int64Array,
    out_sign: Int8Array,
    out_seq: Int64Array,
) -> int:
    """Write the merged changes; returns how many. cursor: (2,) next insertion and next deletion, moved on.

    A transient at instant t stands in both runs. Windows being first-in-first-out, the transients of t are the first
    insertions of t and the last deletions of t, so comparing positions at the two cursors finds them.
    """
    i, d = cursor[0], cursor[1]
    n_ins, n_del, room = len(ins_at), len(del_at), len(out_ts)
    k = 0
    while k < room:
        if d < n_del and (i >= n_ins or del_at[d] <= ins_at[i]):
            if i < n_ins and del_at[d] == ins_at[i] and del_pos + d >= ins_pos + i:
                i += 1
                d += 1
                continue
            out_ts[k] = del_at[d]
            out_sign[k] = -1
            out_seq[k] = del_seq[d]
            d += 1
        elif i < n_ins:
            out_ts[k] = ins_at[i]
            out_sign[k] = 1
            out_seq[k] = ins_seq[i]
            i += 1
        else:
            break
        k += 1
    cursor[0], cursor[1] = i, d
    return k


@njit("int64(int64[::1], int64[::1], int64[::1])", cache=True, nogil=True)
def merge_instants(left: Int64Array, right: Int64Array, out: Int64Array) -> int:
    """The instants of two nondecreasing runs, each once, ascending; returns how many. out has room for all of both."""
    i = j = k = 0
    while i < len(left) or j < len(right):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            t = left[i]
            i += 1
        else:
            t = right[j]
            j += 1
        if k == 0 or out[k - 1] != t:
            out[k] = t
            k += 1
    return k


# Partition windows. Rows stand in slots; each slot is on two lists: the order of arrival of all rows (`older`, `newer`,
# doubly linked, so that a row may leave from the middle) and the rows of its key, oldest first (`next_of_key`). Keys
# are chained in buckets. Free slots and free keys are stacked in `free_slots` and `free_keys`.
# The bookkeeping figures stand in one array, at these places:
OLDEST, NEWEST, FREE_SLOTS, FREE_KEYS, ARRIVED = 0, 1, 2, 3, 4
# and the cursor of a slice at these: what is being done, the next arrival, the first of its instant, the next shown.
PHASE, NEXT, FIRST, SHOWN = 0, 1, 2, 3
DONE, FULL, NEEDS_SLOTS, NEEDS_KEYS = 0, 1, 2, 3

_P = "int64[::1]"


@njit(f"int64(int64[:, ::1], int64, {_P})", cache=True, nogil=True)
def _bucket_of(words: Int64Array, row: int, buckets: Int64Array) -> int:
    """The bucket of a key: a multiply-and-shift mix of its words (an odd multiplier spreads runs of small integers)."""
    h = 0
    for c in range(words.shape[1]):
        h = (h ^ words[row, c]) * -7046029254386353131
        h ^= (h >> 32) & 0xFFFFFFFF
    return h & (len(buckets) - 1)


@njit(f"void(int64[:, ::1], {_P}, int64, {_P}, {_P})", cache=True, nogil=True)
def chain_keys(
    key_words: Int64Array, live: Int64Array, n_live: int, buckets: Int64Array, next_in_bucket: Int64Array
) -> None:
    """Fill empty buckets with the keys whose numbers stand in live[:n_live]."""
    for j in range(n_live):
        key = live[j]
        b = _bucket_of(key_words, key, buckets)
        next_in_bucket[key] = buckets[b]
        buckets[b] = key


@njit(
    f"void(int64, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, int64[:, ::1], {_P}, {_P}, {_P}, {_P}, {_P})",
    cache=True,
    nogil=True,
)
def _remove_oldest(
    slot: int,
    figures: Int64Array,
    slot_key: Int64Array,
    older: Int64Array,
    newer: Int64Array,
    next_of_key: Int64Array,
    free_slots: Int64Array,
    key_rows: Int64Array,
    key_oldest: Int64Array,
    key_words: Int64Array,
    buckets: Int64Array,
    next_in_bucket: Int64Array,
    free_keys: Int64Array,
    numbers: Int64Array,
    place: Int64Array,
) -> None:
    """Take away the oldest row of its key, and the key with its last row. place: slots of this batch's arrivals."""
    key = slot_key[slot]
    key_oldest[key] = next_of_key[slot]
    key_rows[key] -= 1
    before, after = older[slot], newer[slot]
    if before >= 0:
        newer[before] = after
    else:
        figures[OLDEST] = after
    if after >= 0:
        older[after] = before
    else:
        figures[NEWEST] = before
    free_slots[figures[FREE_SLOTS]] = slot
    figures[FREE_SLOTS] += 1
    arrival = numbers[slot] - (figures[ARRIVED] - len(place))
    if arrival >= 0:
        place[arrival] = -1
    if key_rows[key] == 0:
        b = _bucket_of(key_words, key, buckets)
        if buckets[b] == key:
            buckets[b] = next_in_bucket[key]
        else:
            k = buckets[b]
            while next_in_bucket[k] != key:
                k = next_in_bucket[k]
            next_in_bucket[k] = next_in_bucket[key]
        free_keys[figures[FREE_KEYS]] = key
        figures[FREE_KEYS] += 1


@njit(
    f"int64({_P}, int64[:, ::1], int64, int64, int64, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P}, {_P},"
    f" int64[:, ::1], {_P}, {_P}, {_P}, {_P}, {_P}, int8[::1], {_P}, {_P}, {_P})",
    cache=True,
    nogil=True,
)
def partition_window(
    ts: Int64Array,
    words: Int64Array,
    rows: int,
    length: int,
    last_expiring: int,
    figures: Int64Array,
    slot_ts: Int64Array,
    numbers: Int64Array,
    slot_key: Int64Array,
    older: Int64Array,
    newer: Int64Array,
    next_of_key: Int64Array,
    free_slots: Int64Array,
    key_rows: Int64Array,
    key_oldest: Int64Array,
    key_newest: Int64Array,
    key_words: Int64Array,
    buckets: Int64Array,
    next_in_bucket: Int64Array,
    free_keys: Int64Array,
    place: Int64Array,
    out_ts: Int64Array,
    out_sign: Int8Array,
    out_number: Int64Array,
    out_origin: Int64Array,
    cursor: Int64Array,
) -> int:
    """Put arrivals (ts, key words) through the window and write the changes; returns why it stopped.

    rows: N per key.  length: T; rows with ts <= last_expiring leave in this slice, at ts + T (MIN for no RANGE).
    place: (n,) the slot each arrival stands in, -1 once it has left or before it has come.  out_origin: where the row
    stands: arrival i of this batch as i, slot s of earlier ones as -1 - s.  cursor: (5,), the last: how much it wrote.

    An instant has three phases: what expires leaves (0); each arrival enters and pushes out the oldest of a full key,
    which is put out unless it came at this very instant (1); the arrivals that are left are put out (2).
    """
    n, room = len(ts), len(out_ts)
    base = figures[ARRIVED] - n
    phase, i, first, shown = cursor[PHASE], cursor[NEXT], cursor[FIRST], cursor[SHOWN]
    k = 0
    status = DONE
    while True:
        if phase == 0:
            bound = last_expiring
            if i < n and bound > ts[i] - length:
                bound = ts[i] - length
            slot = figures[OLDEST]
            while slot >= 0 and slot_ts[slot] <= bound and k < room:
                out_ts[k] = slot_ts[slot] + length
                out_sign[k] = -1
                out_number[k] = numbers[slot]
                out_origin[k] = numbers[slot] - base if numbers[slot] >= base else -1 - slot
                k += 1
                _remove_oldest(
                    slot, figures, slot_key, older, newer, next_of_key, free_slots, key_rows, key_oldest, key_words,
                    buckets, next_in_bucket, free_keys, numbers, place,
                )  # fmt: skip
                slot = figures[OLDEST]
            if slot >= 0 and slot_ts[slot] <= bound:
                status = FULL
                break
            if i >= n:
                break
            first = i
            phase = 1
        if phase == 1:
            while i < n and ts[i] == ts[first]:
                if k >= room:
                    status = FULL
                    break
                b = _bucket_of(words, i, buckets)
                key = buckets[b]
                while key >= 0:
                    same = True
                    for c in range(words.shape[1]):
                        if key_words[key, c] != words[i, c]:
                            same = False
                            break
                    if same:
                        break
                    key = next_in_bucket[key]
                if figures[FREE_SLOTS] == 0:
                    status = NEEDS_SLOTS
                    break
                if key < 0:
                    if figures[FREE_KEYS] == 0:
                        status = NEEDS_KEYS
                        break
                    figures[FREE_KEYS] -= 1
                    key = free_keys[figures[FREE_KEYS]]
                    key_words[key, :] = words[i, :]
                    key_rows[key] = 0
                    next_in_bucket[key] = buckets[b]
                    buckets[b] = key
                figures[FREE_SLOTS] -= 1
                slot = free_slots[figures[FREE_SLOTS]]
                slot_ts[slot] = ts[i]
                numbers[slot] = base + i
                slot_key[slot] = key
                next_of_key[slot] = -1
                newer[slot] = -1
                older[slot] = figures[NEWEST]
                if figures[NEWEST] >= 0:
                    newer[figures[NEWEST]] = slot
                else:
                    figures[OLDEST] = slot
                figures[NEWEST] = slot
                if key_rows[key] == 0:
                    key_oldest[key] = slot
                else:
                    next_of_key[key_newest[key]] = slot
                key_newest[key] = slot
                key_rows[key] += 1
                place[i] = slot
                if key_rows[key] > rows:
                    leaving = key_oldest[key]
                    if slot_ts[leaving] != ts[i]:
                        out_ts[k] = ts[i]
                        out_sign[k] = -1
                        out_number[k] = numbers[leaving]
                        out_origin[k] = numbers[leaving] - base if numbers[leaving] >= base else -1 - leaving
                        k += 1
                    _remove_oldest(
                        leaving, figures, slot_key, older, newer, next_of_key, free_slots, key_rows, key_oldest,
                        key_words, buckets, next_in_bucket, free_keys, numbers, place,
                    )  # fmt: skip
                i += 1
            if status != DONE:
                break
            shown = first
            phase = 2
        if phase == 2:
            while shown < i and k < room:
                if place[shown] >= 0:
                    out_ts[k] = ts[shown]
                    out_sign[k] = 1
                    out_number[k] = base + shown
                    out_origin[k] = shown
                    k += 1
                shown += 1
            if shown < i:
                status = FULL
                break
            phase = 0
    cursor[PHASE], cursor[NEXT], cursor[FIRST], cursor[SHOWN] = phase, i, first, shown
    cursor[4] = k
    return status
