"""Rows of a stream on their way through the frames of OVER: which come into a frame, and which leave it.

A row comes behind all rows of its partition that are there, and none is taken back. From the first row of its frame on
a partition's rows stand in a ring, a stretch of `rows` (cap,): that of position p at offset + (p & (size - 1)). A ring
that is full moves to the end of `rows`, and has twice the size there.

Invariant: gone <= entered <= come. Kernels never raise; they return why they stopped and go on from their cursor.
docs/semantics R7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.machine_code import Int8s, Int64s, Int64Table, Record, Rows, helper, int64, kernel, uint64

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


class FramePartition(Record):
    """A partition: its rows have come up to position `come`, into the frame up to `entered`, out of it up to `gone`.

    offset, size: of its ring.  word, valid: the value that is kept of a frame that only grows, and 1 where it is one, 2
    where it is NULL.  keys: how many different sort keys have come.  stamp, at: instant and place of the last row of a
    slice.
    """

    come: int
    entered: int
    gone: int
    offset: int
    size: int
    word: int
    valid: int
    keys: int
    stamp: int
    at: int


class FrameRow(Record):
    """Of a row the word of the argument, whether it is not NULL, and the instant."""

    word: int
    valid: int
    instant: int


class FrameFigures(Record):
    """used: the end of the last ring.  held: rows that stand in rings.  rings: how many there are."""

    used: int
    held: int
    rings: int


class FrameCursor(Record):
    """next: the first row that is not done.  arrived: it stands in its ring.  written: elements.  needed: how many rows
    its ring is to have.
    """

    next: int
    arrived: int
    written: int
    needed: int


class FrameRows(NamedTuple):
    """What is kept (see above)."""

    partitions: Rows[FramePartition]
    rows: Rows[FrameRow]
    figures: FrameFigures


class Moves(NamedTuple):
    """Elements for aggregates: a value comes to its group (sign 1), leaves it (-1), or neither (0), so that the answer
    behind it is there. weight: 0 where it is NULL, too.  stamps: which do not decrease; behind the last element of a
    group and stamp there is an answer.  numbers: of their rows, in the order of which those of a group stand.
    """

    ids: Int64s
    stamps: Int64s
    numbers: Int64s
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
def _move_ring(kept: FrameRows, group: int, target: Rows[FrameRow], to: int, wide: int) -> None:
    """Move the rows of a partition into a ring of another size, which begins at target[to]."""
    partitions, rows, _ = kept
    offset, size = partitions[group].offset, partitions[group].size
    for p in range(partitions[group].gone, partitions[group].come):
        row, at = rows[offset + (p & (size - 1))], to + (p & (wide - 1))
        target[at].word, target[at].valid, target[at].instant = row.word, row.valid, row.instant
    partitions[group].offset, partitions[group].size = to, wide


@helper(typed=True)
def _has_room(kept: FrameRows, group: int, more: int) -> bool:
    """Whether the ring of a partition takes so many more; it moves where it must."""
    partitions, rows, figures = kept
    wanted, size = partitions[group].come - partitions[group].gone + more, partitions[group].size
    if wanted <= size:
        return True
    greater = _ring_size(wanted)
    to = figures.used
    if to + greater > rows.shape[0]:
        return False
    _move_ring(kept, group, rows, to, greater)
    figures.used = to + greater
    figures.rings += int64(size == 0)
    return True


@kernel
def pack(kept: FrameRows, packed: Rows[FrameRow]) -> int:
    """Copy all rings to the front of `packed`, as small as they may be; returns how much of it they take."""
    partitions = kept.partitions
    to = int64(0)
    for group in range(partitions.shape[0]):
        held = partitions[group].come - partitions[group].gone
        smaller = _ring_size(held) if partitions[group].size > 0 else int64(0)
        _move_ring(kept, group, packed, to, smaller)
        to += smaller
    return int(to)


@helper(inline=True)
def _move(moves: Moves, m: int, group: int, sign: int, number: int, word: int, valid: int) -> Any:
    """The value of a row comes to its group, or leaves it; how many elements there are then."""
    moves.ids[m], moves.stamps[m], moves.numbers[m] = group, m, number
    moves.sign[m], moves.weight[m], moves.words[m], moves.valid[m] = sign, sign * valid, word, valid
    return m + 1


@helper(inline=True)
def _enter(
    partition: FramePartition, frame: FrameAsked, moves: Moves, m: int, group: int, word: int, valid: int
) -> Any:
    """The next value comes into its frame; how many elements there are then."""
    place = frame.place
    if place == AGGREGATE:
        m = _move(moves, m, group, 1, partition.entered, word, valid)
    elif frame.is_growing and (place == LAST or partition.entered == place - 1):
        partition.word, partition.valid = word, 2 - valid
    partition.entered += 1
    return m


@helper(inline=True)
def _value_at(partition: FramePartition, frame: FrameAsked, rows: Rows[FrameRow]) -> Any:
    """The value that is asked for of the frame of a partition, and whether it is not NULL."""
    place = frame.place
    if frame.is_growing:
        return partition.word, int64(partition.valid == 1)
    at = partition.entered - 1 if place == LAST else partition.gone + place - 1
    if at < partition.gone or at >= partition.entered:
        return int64(0), int64(0)
    row = partition.offset + (at & (partition.size - 1))
    return rows[row].word, rows[row].valid


@helper(inline=True)
def _let_come(partition: FramePartition, kept: FrameRows, arriving: Arriving, i: int, j: int) -> Any:
    """Arriving rows from i up to j take their places in the ring of their partition."""
    for r in range(i, j):
        row = kept.rows[partition.offset + (partition.come & (partition.size - 1))]
        row.word, row.valid, row.instant = arriving.words[r], arriving.valid[r], arriving.ts[r]
        partition.come += 1
    kept.figures.held += j - i


@helper(inline=True)
def _let_leave(
    partition: FramePartition, frame: FrameAsked, kept: FrameRows, moves: Moves, m: int, group: int, now: int,
    peers: int,
) -> Any:  # fmt: skip
    """Rows leave a frame by value that begins at `now`, as long as there is room for moves; how many elements there
    are then.  peers: the first row of those that have come with `now`.
    """
    rows, back, of_ring = kept.rows, frame.back, partition.size - 1
    while partition.gone < partition.come and m + 1 < len(moves.ids):
        gone = partition.gone
        row = rows[partition.offset + (gone & of_ring)]
        if back == 0 and gone >= peers:
            break
        if back != 0 and uint64(now) - uint64(row.instant) <= uint64(back):
            break
        if gone == partition.entered:
            partition.entered += 1
        elif frame.place == AGGREGATE:
            m = _move(moves, m, group, -1, gone, row.word, row.valid)
        partition.gone += 1
        kept.figures.held -= 1
    return m


@helper(inline=True)
def _let_enter(
    partition: FramePartition, frame: FrameAsked, kept: FrameRows, moves: Moves, m: int, group: int, now: int
) -> Any:
    """Rows enter a frame, as long as there is room for moves; how many elements there are then."""
    rows, by_value, ahead, come = kept.rows, frame.by_value, frame.ahead, partition.come
    while partition.entered < come and m + 1 < len(moves.ids):
        row = rows[partition.offset + (partition.entered & (partition.size - 1))]
        if by_value and ahead != 0 and uint64(now) - uint64(row.instant) < uint64(ahead):
            break
        if not by_value and partition.entered >= come - ahead:
            break
        m = _enter(partition, frame, moves, m, group, row.word, row.valid)
        if frame.is_growing:
            partition.gone += 1
            kept.figures.held -= 1
    return m


@kernel
def slide(
    arriving: Arriving, frame: FrameAsked, kept: FrameRows, moves: Moves, answers: Int64s, told: Int8s,
    cursor: FrameCursor,
) -> int:  # fmt: skip
    """Let rows arrive; returns DONE, or what is full.

    Of an aggregate, answers[i] is the element behind which the answer for row i stands; else it is the value itself,
    and told[i] says whether it is not NULL.
    """
    ids, ts, words, valid, is_peer = arriving
    by_value, back, ahead, is_growing, place = frame
    partitions, rows, figures = kept
    n, room, has_peers = len(ids), len(moves.ids), len(is_peer) > 0
    passes = is_growing and ahead == 0  # a row is in all frames from its own on: none is kept
    i, m, status = cursor.next, 0, DONE
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
            r = i + cursor.arrived
            while r < j and m < room:
                m = _enter(partition, frame, moves, m, group, int64(words[r]), int64(valid[r]))
                r += 1
            cursor.arrived = r - i
            partition.come = partition.gone = partition.entered
        elif cursor.arrived == 0:
            if not _has_room(kept, group, j - i):
                cursor.needed = partition.come - partition.gone + j - i
                status = RINGS_FULL
                break
            _let_come(partition, kept, arriving, i, j)
            cursor.arrived = 1
        come, offset, of_ring = partition.come, partition.offset, partition.size - 1
        if by_value and not is_growing:
            m = _let_leave(partition, frame, kept, moves, m, group, now, come - (j - i))
        m = _let_enter(partition, frame, kept, moves, m, group, now)
        if (passes and cursor.arrived < j - i) or (by_value and not passes and m + 1 >= room):
            status = ELEMENTS_FULL
            break
        if place == AGGREGATE:
            if m == began:
                m = _move(moves, m, group, 0, 0, 0, 0)
            for r in range(i, j):
                answers[r] = m - 1
        else:
            for r in range(i, j):
                answers[r], told[r] = _value_at(partition, frame, rows)
        # Not looked at again: the next row's frame begins behind it.
        if not by_value and not is_growing and partition.gone < come - back:
            if place == AGGREGATE:
                row = rows[offset + (partition.gone & of_ring)]
                m = _move(moves, m, group, -1, partition.gone, row.word, row.valid)
            partition.gone += 1
            figures.held -= 1
        i = j
        cursor.arrived = 0
    cursor.next, cursor.written = i, m
    return status


@kernel
def count_rows(arriving: Arriving, function: int, partitions: Rows[FramePartition], answers: Int64s) -> None:
    """ROW_NUMBER, RANK and DENSE_RANK of rows that arrive, none of which is kept. `word` is the rank of the last."""
    ids, is_peer = arriving.ids, arriving.is_peer
    for i in range(len(ids)):
        partition = partitions[ids[i]]
        come, rank, keys = partition.come + 1, partition.word, partition.keys
        if len(is_peer) == 0 or is_peer[i] == 0:
            rank, keys = come, keys + 1
        partition.come = partition.entered = partition.gone = come
        partition.word, partition.keys = rank, keys
        answers[i] = come if function == ROW_NUMBER else rank if function == RANK else keys


@kernel
def mark_ties(ids: Int64s, ts: Int64s, partitions: Rows[FramePartition], role: Int8s, following: Int64s) -> int:
    """role[i]: whether row i is ALONE of its partition at its instant, FIRST, or A_FOLLOWER; following[i]: the next row
    of both, or -1. Returns how many are not alone.
    """
    ties = 0
    for i in range(len(ids)):
        role[i], following[i] = ALONE, -1
        partition = partitions[ids[i]]
        last = partition.at
        # A partition that is new has zeros, which say nothing.
        if partition.stamp == ts[i] and last < i and ids[last] == ids[i]:
            ties += 2 if role[last] == ALONE else 1
            role[last] = max(role[last], int64(FIRST))
            role[i], following[last] = A_FOLLOWER, i
        partition.stamp, partition.at = ts[i], i
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
