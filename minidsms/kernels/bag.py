"""Kernel of RSTREAM: a bag of rows that changes, shown whole at chosen instants.

The bag is dense: row s of `words` with `counts[s]` copies, s < figures.size; a row that goes is replaced by the last
one, so showing the bag is one pass over the front of the array. Rows are chained in buckets through `next_in_bucket`.

Invariant: kernels never raise; they return why they stopped and leave their cursor where to resume.
docs/semantics S2.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.elements import Int64Array
from minidsms.kernels.mixing import bucket_of_row
from minidsms.machine_code import Int8s, Int64s, Int64Table, Record, helper, kernel

DONE, FULL, NEEDS_SLOTS, NEEDS_ROOM = 0, 1, 2, 3

_A = "int64[::1]"


class BagFigures(Record):
    """size: rows.  total: with their copies.  missing: deletions of rows that were not there."""

    size: int
    total: int
    missing: int


class BagCursor(Record):
    """change, event: to go on with.  slot, copy: to be shown next, if it is showing.  written: rows, by the call."""

    change: int
    event: int
    slot: int
    copy: int
    is_showing: int
    written: int


class BagArrays(NamedTuple):
    """The rows of a bag (`synopses.bag`): words, copies, the next of each bucket, buckets, and figures."""

    words: Int64Table
    counts: Int64s
    next_in_bucket: Int64s
    buckets: Int64s
    figures: BagFigures


class BagChanges(NamedTuple):
    """Rows that come (sign +1) and go (-1), in the order of ts, as words."""

    ts: Int64s
    sign: Int8s
    rows: Int64Table


@kernel(f"void(int64[:, ::1], int64, {_A}, {_A})")
def chain_rows(words: Int64Array, size: int, buckets: Int64Array, next_in_bucket: Int64Array) -> None:
    """Fill empty buckets with the rows [0, size)."""
    for s in range(size):
        b = bucket_of_row(words, s, buckets)
        next_in_bucket[s] = buckets[b]
        buckets[b] = s


@helper(f"void(int64, int64, int64, {_A}, {_A})")
def _replace_link(old: int, new: int, bucket: int, buckets: Int64Array, next_in_bucket: Int64Array) -> None:
    """Let whatever points at `old` in the chain of the bucket point at `new`."""
    if buckets[bucket] == old:
        buckets[bucket] = new
        return
    s = buckets[bucket]
    while next_in_bucket[s] != old:
        s = next_in_bucket[s]
    next_in_bucket[s] = new


@helper(typed=True)
def _change(changes: Int64Table, row: int, sign: int, bag: BagArrays) -> int:
    """Add or take away one copy of a row; returns whether there was room."""
    words, counts, next_in_bucket = bag.words, bag.counts, bag.next_in_bucket
    buckets, figures = bag.buckets, bag.figures
    b = bucket_of_row(changes, row, buckets)
    s = buckets[b]
    while s >= 0:
        is_same = True
        for c in range(words.shape[1]):
            if words[s, c] != changes[row, c]:
                is_same = False
                break
        if is_same:
            break
        s = next_in_bucket[s]
    if sign > 0:
        if s < 0:
            s = figures.size
            if s == len(counts):
                return 0
            for c in range(words.shape[1]):
                words[s, c] = changes[row, c]
            counts[s] = 0
            next_in_bucket[s] = buckets[b]
            buckets[b] = s
            figures.size += 1
        counts[s] += 1
        figures.total += 1
        return 1
    if s < 0:
        figures.missing += 1
        return 1
    counts[s] -= 1
    figures.total -= 1
    if counts[s] == 0:
        _replace_link(s, next_in_bucket[s], b, buckets, next_in_bucket)
        last = figures.size - 1
        if s != last:
            b = bucket_of_row(words, last, buckets)
            _replace_link(last, s, b, buckets, next_in_bucket)
            for c in range(words.shape[1]):
                words[s, c] = words[last, c]
            counts[s] = counts[last]
            next_in_bucket[s] = next_in_bucket[last]
        figures.size = last
    return 1


@kernel
def show_bag(
    changes: BagChanges, events: Int64s, is_whole: bool, bag: BagArrays, cursor: BagCursor, out_ts: Int64s,
    out_words: Int64Table,
) -> int:  # fmt: skip
    """Write the whole bag at each event instant, changes up to it applied; returns why it stopped.

    is_whole: never split an instant between two outputs (they are sorted afterwards).
    """
    words, counts, figures = bag.words, bag.counts, bag.figures
    change_ts, change_sign, rows = changes
    e, i, k, room = cursor.event, cursor.change, 0, len(out_ts)
    status = DONE
    while True:
        if cursor.is_showing == 0:
            while i < len(change_ts) and (e >= len(events) or change_ts[i] <= events[e]):
                if _change(rows, i, change_sign[i], bag) == 0:
                    status = NEEDS_SLOTS
                    break
                i += 1
            if status != DONE or e >= len(events):
                break
            if is_whole and figures.total > room - k:
                status = FULL if k > 0 else NEEDS_ROOM
                break
            cursor.is_showing, cursor.slot, cursor.copy = 1, 0, 0
        s, copy = cursor.slot, cursor.copy
        while s < figures.size and k < room:
            out_ts[k] = events[e]
            for c in range(words.shape[1]):
                out_words[k, c] = words[s, c]
            k += 1
            copy += 1
            if copy >= counts[s]:
                s += 1
                copy = 0
        cursor.slot, cursor.copy = s, copy
        if s < figures.size:
            status = FULL
            break
        cursor.is_showing = 0
        e += 1
    cursor.event, cursor.change, cursor.written = e, i, k
    return status
