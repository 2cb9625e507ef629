"""Rows of a stream on their way through the frames of OVER: which come into a frame, and which leave it.

A row comes behind all rows of its partition that are there, and none is taken back. From the first row of its frame on
a partition's rows stand in a ring, a stretch of `rows` (cap, 3) = [word of the argument, whether it is not NULL,
instant]: that of position p at OFFSET + (p & (SIZE - 1)). `partitions` (cap, w) has a row per partition with the fields
below; rows have come up to position COME, into the frame up to ENTERED, and out of it up to GONE. A ring that is full
moves to the end of `rows`, and has twice the size there.

Invariant: GONE <= ENTERED <= COME. Kernels never raise; they return why they stopped and go on from their cursor.
docs/semantics R7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, kernel, uint64

COME, ENTERED, GONE, OFFSET, SIZE, WORD, VALID, KEYS, STAMP, AT, FIELDS = range(11)
"""WORD, VALID: the value that is kept of a frame that only grows, and 1 where it is one, 2 where it is NULL.  KEYS: how
many different sort keys have come.  STAMP, AT: instant and place of the last row of a slice.
"""
ROW_WORDS = 3
_WORD, _VALID, _INSTANT = range(ROW_WORDS)
USED, HELD, RINGS, FIGURES = range(4)
"""Columns of `figures`: the end of the last ring, how many rows stand in rings, and how many rings there are."""
NEXT, ARRIVED, WRITTEN, NEEDED, CURSOR_SIZE = range(5)
"""Columns of `cursor`: the first row that is not done, whether it stands in its ring, elements written, and how many
rows its ring is to have.
"""
DONE, ELEMENTS_FULL, RINGS_FULL = range(3)
ROW_NUMBER, RANK, DENSE_RANK = range(3)
ALONE, FIRST, A_FOLLOWER = range(3)
_FEW = 8
"""Rows that are sorted by insertion."""
LAST, AGGREGATE = 0, -1
_LEAST_RING = 2


class Arriving(NamedTuple):
    """Rows (n,) by instant, those of a partition in its order: their partitions, instants and arguments.

    is_peer: 1 where a row is equal in all sort keys to the one before it, of its partition; empty where none is.
    """

    ids: Int64s
    ts: Int64s
    words: Int64s
    valid: Int8s
    is_peer: Int8s


class Ties(NamedTuple):
    """Of rows (n,) what `mark_ties` tells, and room for two words of each."""

    role: Int8s
    following: Int64s
    number: Int64s
    beside: Int64s


class FrameAsked(NamedTuple):
    """back, ahead: how many rows before the row the frame begins and ends, or by_value what its instant is ahead of
    theirs; 0 are the rows equal in all keys.  is_growing: it has no beginning.  place: which value is asked for, from 1
    on, or LAST; AGGREGATE for none.
    """

    by_value: bool
    back: int
    ahead: int
    is_growing: bool
    place: int


class FrameRows(NamedTuple):
    """What is kept (see above)."""

    partitions: Int64Table
    rows: Int64Table
    figures: Int64s


class Moves(NamedTuple):
    """Elements for aggregates: a value comes to its group (sign 1), leaves it (-1), or neither (0), so that the answer
    behind it is there. weight: 0 where it is NULL, too.
    """

    ids: Int64s
    sign: Int8s
    weight: Int8s
    words: Int64s
    valid: Int8s


@helper(inline=True)
def _ring_size(rows: int) -> Any:
    size = int64(_LEAST_RING)
    while size < rows:
        size *= 2
    return size


@helper(typed=True)
def _move_ring(kept: FrameRows, group: int, target: Int64Table, to: int, wide: int) -> None:
    """Move the rows of a partition into a ring of another size, which begins at target[to]."""
    partitions, rows, _ = kept
    offset, size = partitions[group, OFFSET], partitions[group, SIZE]
    for p in range(partitions[group, GONE], partitions[group, COME]):
        for c in range(ROW_WORDS):
            target[to + (p & (wide - 1)), c] = rows[offset + (p & (size - 1)), c]
    partitions[group, OFFSET], partitions[group, SIZE] = to, wide


@helper(typed=True)
def _has_room(kept: FrameRows, group: int, more: int) -> bool:
    """Whether the ring of a partition takes so many more; it moves where it must."""
    partitions, rows, figures = kept
    wanted, size = partitions[group, COME] - partitions[group, GONE] + more, partitions[group, SIZE]
    if wanted <= size:
        return True
    greater = _ring_size(wanted)
    to = figures[USED]
    if to + greater > rows.shape[0]:
        return False
    _move_ring(kept, group, rows, to, greater)
    figures[USED] = to + greater
    figures[RINGS] += int64(size == 0)
    return True


@kernel
def pack(kept: FrameRows, packed: Int64Table) -> int:
    """Copy all rings to the front of `packed`, as small as they may be; returns how much of it they take."""
    partitions = kept.partitions
    to = int64(0)
    for group in range(partitions.shape[0]):
        held = partitions[group, COME] - partitions[group, GONE]
        smaller = _ring_size(held) if partitions[group, SIZE] > 0 else int64(0)
        _move_ring(kept, group, packed, to, smaller)
        to += smaller
    return int(to)


@helper(inline=True)
def _move(moves: Moves, m: int, group: int, sign: int, word: int, valid: int) -> Any:
    """A value comes to its group, or leaves it; how many elements there are then."""
    moves.ids[m], moves.sign[m], moves.weight[m], moves.words[m], moves.valid[m] = (
        group, sign, sign * valid, word, valid
    )  # fmt: skip
    return m + 1


@helper(inline=True)
def _enter(partition: Int64s, frame: FrameAsked, moves: Moves, m: int, group: int, word: int, valid: int) -> Any:
    """The next value comes into its frame; how many elements there are then."""
    place = frame.place
    if place == AGGREGATE:
        m = _move(moves, m, group, 1, word, valid)
    elif frame.is_growing and (place == LAST or partition[ENTERED] == place - 1):
        partition[WORD], partition[VALID] = word, 2 - valid
    partition[ENTERED] += 1
    return m


@helper(inline=True)
def _value_at(partition: Int64s, frame: FrameAsked, rows: Int64Table) -> Any:
    """The value that is asked for of the frame of a partition, and whether it is not NULL."""
    place = frame.place
    if frame.is_growing:
        return partition[WORD], int64(partition[VALID] == 1)
    at = partition[ENTERED] - 1 if place == LAST else partition[GONE] + place - 1
    if at < partition[GONE] or at >= partition[ENTERED]:
        return int64(0), int64(0)
    row = partition[OFFSET] + (at & (partition[SIZE] - 1))
    return rows[row, _WORD], rows[row, _VALID]


@kernel
def slide(
    arriving: Arriving, frame: FrameAsked, kept: FrameRows, moves: Moves, answers: Int64s, told: Int8s, cursor: Int64s
) -> int:
    """Let rows arrive; returns DONE, or what is full.

    Of an aggregate, answers[i] is the element behind which the answer for row i stands; else it is the value itself,
    and told[i] says whether it is not NULL.
    """
    ids, ts, words, valid, is_peer = arriving
    by_value, back, ahead, is_growing, place = frame
    partitions, rows, figures = kept
    n, room, has_peers = len(ids), len(moves.ids), len(is_peer) > 0
    passes = is_growing and ahead == 0  # a row is in all frames from its own on: none is kept
    i, m, status = cursor[NEXT], 0, DONE
    while i < n:
        group, now, began = ids[i], ts[i], m
        partition = partitions[group]
        if m + 3 > room:
            status = ELEMENTS_FULL
            break
        j = i + 1
        while has_peers and by_value and j < n and is_peer[j] != 0:
            j += 1
        if passes:
            r = i + cursor[ARRIVED]
            while r < j and m < room:
                m = _enter(partition, frame, moves, m, group, int64(words[r]), int64(valid[r]))
                r += 1
            cursor[ARRIVED] = r - i
            partition[COME] = partition[GONE] = partition[ENTERED]
        elif cursor[ARRIVED] == 0:
            if not _has_room(kept, group, j - i):
                cursor[NEEDED] = partition[COME] - partition[GONE] + j - i
                status = RINGS_FULL
                break
            for r in range(i, j):
                row = rows[partition[OFFSET] + (partition[COME] & (partition[SIZE] - 1))]
                row[_WORD], row[_VALID], row[_INSTANT] = words[r], valid[r], ts[r]
                partition[COME] += 1
            figures[HELD] += j - i
            cursor[ARRIVED] = 1
        come, offset, of_ring = partition[COME], partition[OFFSET], partition[SIZE] - 1
        while by_value and not is_growing and partition[GONE] < come and m + 1 < room:
            gone = partition[GONE]
            row = rows[offset + (gone & of_ring)]
            if back == 0 and gone >= come - (j - i):
                break
            if back != 0 and uint64(now) - uint64(row[_INSTANT]) <= uint64(back):
                break
            if gone == partition[ENTERED]:
                partition[ENTERED] += 1
            elif place == AGGREGATE:
                m = _move(moves, m, group, -1, row[_WORD], row[_VALID])
            partition[GONE] += 1
            figures[HELD] -= 1
        while partition[ENTERED] < come and m + 1 < room:
            row = rows[offset + (partition[ENTERED] & of_ring)]
            if by_value and ahead != 0 and uint64(now) - uint64(row[_INSTANT]) < uint64(ahead):
                break
            if not by_value and partition[ENTERED] >= come - ahead:
                break
            m = _enter(partition, frame, moves, m, group, row[_WORD], row[_VALID])
            if is_growing:
                partition[GONE] += 1
                figures[HELD] -= 1
        if (passes and cursor[ARRIVED] < j - i) or (by_value and not passes and m + 1 >= room):
            status = ELEMENTS_FULL
            break
        if place == AGGREGATE:
            if m == began:
                m = _move(moves, m, group, 0, 0, 0)
            for r in range(i, j):
                answers[r] = m - 1
        else:
            for r in range(i, j):
                answers[r], told[r] = _value_at(partition, frame, rows)
        # Not looked at again: the next row's frame begins behind it.
        if not by_value and not is_growing and partition[GONE] < come - back:
            if place == AGGREGATE:
                row = rows[offset + (partition[GONE] & of_ring)]
                m = _move(moves, m, group, -1, row[_WORD], row[_VALID])
            partition[GONE] += 1
            figures[HELD] -= 1
        i = j
        cursor[ARRIVED] = 0
    cursor[NEXT], cursor[WRITTEN] = i, m
    return status


@kernel
def count_rows(arriving: Arriving, function: int, partitions: Int64Table, answers: Int64s) -> None:
    """ROW_NUMBER, RANK and DENSE_RANK of rows that arrive, none of which is kept. WORD is the rank of the last."""
    ids, is_peer = arriving.ids, arriving.is_peer
    for i in range(len(ids)):
        partition = partitions[ids[i]]
        come = partition[COME] + 1
        partition[COME], partition[ENTERED], partition[GONE] = come, come, come
        if len(is_peer) == 0 or is_peer[i] == 0:
            partition[WORD] = come
            partition[KEYS] += 1
        answers[i] = come if function == ROW_NUMBER else partition[WORD] if function == RANK else partition[KEYS]


@kernel
def mark_ties(ids: Int64s, ts: Int64s, partitions: Int64Table, role: Int8s, following: Int64s) -> int:
    """role[i]: whether row i is ALONE of its partition at its instant, FIRST, or A_FOLLOWER; following[i]: the next row
    of both, or -1. Returns how many are not alone.
    """
    ties = 0
    for i in range(len(ids)):
        role[i], following[i] = ALONE, -1
        partition = partitions[ids[i]]
        last = partition[AT]
        # A partition that is new has zeros, which say nothing.
        if partition[STAMP] == ts[i] and last < i and ids[last] == ids[i]:
            ties += 2 if role[last] == ALONE else 1
            role[last] = max(role[last], int64(FIRST))
            role[i], following[last] = A_FOLLOWER, i
        partition[STAMP], partition[AT] = ts[i], i
    return ties


@helper(inline=True)
def _stands_behind(row: int, other: int, by: Int64Table, number: Int64s) -> Any:
    """Whether a row is greater than another one by the first column in which they differ."""
    c, columns = 0, by.shape[1]
    while c < columns and by[number[row], c] == by[number[other], c]:
        c += 1
    return c < columns and by[number[row], c] > by[number[other], c]


@helper(typed=True)
def _sort_stretch(order: Int64s, first: int, last: int, by: Int64Table, number: Int64s, beside: Int64s) -> None:
    """Sort order[first:last], stably: by insertion a few at a time, then by merging. beside: room for as much."""
    for low in range(first, last, _FEW):
        for i in range(low + 1, min(low + _FEW, last)):
            row, at = order[i], i
            while at > low and _stands_behind(order[at - 1], row, by, number):
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
    width = int64(_FEW)
    while width < last - first:
        for low in range(first, last - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, last)
            for i in range(low, middle):
                beside[i] = order[i]
            left, right, at = low, middle, low
            while left < middle:
                if right < high and _stands_behind(beside[left], order[right], by, number):
                    order[at] = order[right]
                    right += 1
                else:
                    order[at] = beside[left]
                    left += 1
                at += 1
        width *= 2


@kernel
def place_ties(ties: Ties, by: Int64Table, keys: int, order: Int64s, is_peer: Int8s) -> None:
    """order: the rows, those that share partition and instant one behind the other, sorted by the columns of `by`
    (all rows or those that are not alone, columns).  is_peer: which are equal in the first `keys` columns to the one
    before them.
    """
    role, following, number, beside = ties
    at, k, has_all = 0, 0, by.shape[0] == len(role)
    for i in range(len(role)):
        number[i] = k
        k += int64(has_all or role[i] != ALONE)
    for i in range(len(role)):
        if role[i] == A_FOLLOWER:
            continue
        first, row = at, i
        while row >= 0:
            order[at], is_peer[at] = row, 0
            at += 1
            row = following[row]
        if at == first + 1:
            continue
        _sort_stretch(order, first, at, by, number, beside)
        for j in range(first + 1, at):
            c = 0
            while c < keys and by[number[order[j]], c] == by[number[order[j - 1]], c]:
                c += 1
            is_peer[j] = c == keys
