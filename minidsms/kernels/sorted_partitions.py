"""Rows of a relation by partition, each partition in an order, and what a change does to their ranks and shares.

Rows stand in slots of `rows` (cap, w), as `elements.row_words` writes them; free slots are stacked in `free`. The slots
of a partition stand in order in a stretch of `places`, `partitions` (cap, FIELDS) says where; one that is full moves to
the end of `places`, and has up to three times the size there. Equal rows have a slot each.

The changes of an instant are sorted, and carried out in one pass over the slots behind the first; where rows leave at
the front, the stretch begins behind them. What was before and what is now are told apart only from the first place that
has changed on, and up to the last one whose result may have.

Invariant: kernels never raise; they return what they lack before an instant begins, and go on from their cursor.
docs/semantics R7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.text_order import WrittenTexts, compare_texts
from minidsms.machine_code import (
    Float64Table,
    Int8s,
    Int8Table,
    Int64s,
    Int64Table,
    Record,
    Rows,
    helper,
    int64,
    kernel,
)

OFFSET, COUNT, SIZE, HEAD, TAIL, STAMP, COMING, FIELDS = range(8)
"""Where a partition's slots stand, how many there are, and for how many there is room.  HEAD, TAIL, COMING: of the
instant STAMP, the first and last of its changes, and how many rows come.
"""
WORDS, FLOATS, TEXTS = range(3)
"""Of what the words of a column that sorts are."""
DONE, OUTPUT_FULL, SLOTS_FULL, PLACES_FULL, ROWS_FEW, OVERFLOWS = range(6)
CANCELLED = 2
"""In place of whether a result is not NULL."""
ROW_NUMBER, SHOWN, NTILE, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, FRAMED = range(8)
"""SHOWN: no value, of the rows up to `at_most` but the first `distance`. It, ROW_NUMBER and NTILE look at places alone.
FRAMED: of the rows of a frame (`kernels.sorted_frames`).
"""
KEEPS_ALL, KEEPS_SHOWN, KEEPS_LAST = range(3)
UNBOUNDED = -1
_LEAST_STRETCH = 4
_FEW = 16
"""Rows that are moved rather than their stretch."""
_LARGEST = 0x7FFFFFFFFFFFFFFF


class SortKey(Record):
    """A column that sorts. kind: WORDS, FLOATS or TEXTS."""

    column: int
    is_descending: int
    nulls_first: int
    kind: int


class PartitionFigures(Record):
    """used: the end of the last stretch of `places`.  free: free slots.  held: rows.  stamps: instants stamped."""

    used: int
    free: int
    held: int
    stamps: int


class ChangeCursor(Record):
    """next: the first change that is not done.  written: rows.  emptied: partitions noted as such.  needed: how much of
    what is lacking.  least: rows that must stay where others leave.
    """

    next: int
    written: int
    emptied: int
    needed: int
    least: int


class InstantSpans(Record):
    """What a step of `change` tells the next one, of an instant: when it is, up to where its changes stand, how many
    partitions they are of, how many rows it may put out, rows written, those noted to come, slots to be freed; of a
    partition the places between which rows may have had other results, and have them now.
    """

    now: int
    end: int
    touched: int
    bound: int
    taken: int
    come: int
    dead: int
    low: int
    were: int
    low_now: int
    are: int


class Move(Record):
    """A change, and where its row stands, or would, before all changes."""

    change: int
    place: int


class RowChanges(NamedTuple):
    """Changes (n,) by instant: the partitions and words of their rows.

    Room for n: following, the next change of the same partition and instant; touched, the partitions of an instant;
    emptied, those that have lost their last row, and may have got others since.
    """

    ts: Int64s
    sign: Int8s
    ids: Int64s
    words: Int64Table
    following: Int64s
    touched: Int64s
    emptied: Int64s


class SortedArrays(NamedTuple):
    """What is kept (see above)."""

    partitions: Int64Table
    places: Int64s
    rows: Int64Table
    free: Int64s
    figures: PartitionFigures


class RankAsked(NamedTuple):
    """by: how rows are sorted, at first by `keys` sort keys.  columns: of a row.  arg: which is asked for; -1 for none.
    at_most: ranks above are of no interest, or UNBOUNDED.  keeps: which rows of a partition.  texts: of all codes that
    are compared.
    """

    function: int
    distance: int
    arg: int
    at_most: int
    keeps: int
    keys: int
    columns: int
    by: Rows[SortKey]
    texts: WrittenTexts


class Beside(NamedTuple):
    """Room for what was before and is now: slots, and of both the results, seen as floats, too, and whether these are
    not NULL.

    high: of sums of DECIMAL, whose digits results have the lower words of, the higher ones; else empty.  come: slots
    and results of the rows that are put out behind those taken back.  dead: slots of rows that have gone at an instant.
    moves: of the changes to a partition.
    """

    before: Int64s
    results: Int64Table
    floats: Float64Table
    told: Int8Table
    high: Int64Table
    come: Int64Table
    dead: Int64s
    moves: Rows[Move]


class RankedRows(NamedTuple):
    """The rows that are taken back and put out, with their results. high: as above."""

    ts: Int64s
    sign: Int8s
    words: Int64Table
    results: Int64s
    told: Int8s
    high: Int64s


class Work(NamedTuple):
    """All that a slice takes."""

    changes: RowChanges
    kept: SortedArrays
    asked: RankAsked
    beside: Beside
    out: RankedRows
    spans: InstantSpans


@helper(inline=True)
def is_null(row: Int64s, column: int, columns: int) -> Any:
    return row[columns + column // 62] >> (column % 62) & 1


@helper(typed=True)
def order_of(one: int, two: int, kind: int, texts: WrittenTexts) -> int:
    """Below 0 where a word stands before another one, else above. They differ."""
    if kind == TEXTS:
        return compare_texts(one, two, texts)
    if kind == FLOATS:
        one, two = one ^ ((one >> 63) & _LARGEST), two ^ ((two >> 63) & _LARGEST)
    return -1 if one < two else 1


@helper(typed=True)
def compare(row: Int64s, other: Int64s, asked: RankAsked, n: int) -> int:
    """By the first n columns that sort: -1 where the row stands before the other one, 1 behind, 0 with it."""
    by, columns = asked.by, asked.columns
    for c in range(n):
        column = by[c].column
        is_none, other_is = is_null(row, column, columns), is_null(other, column, columns)
        if is_none != other_is:
            return -1 if is_none == by[c].nulls_first else 1
        one, two = row[column], other[column]
        if is_none == 0 and one != two:
            is_less = order_of(one, two, by[c].kind, asked.texts) < 0
            return -1 if is_less != (by[c].is_descending != 0) else 1
    return 0


@helper(typed=True)
def _find(row: Int64s, kept: SortedArrays, partition: int, asked: RankAsked) -> int:
    """The place, from 0, of the first row of a partition that does not stand before this one."""
    offset, low, high = kept.partitions[partition, OFFSET], int64(0), kept.partitions[partition, COUNT]
    n = asked.by.shape[0]
    if high > 0 and compare(kept.rows[kept.places[offset + high - 1]], row, asked, n) < 0:
        return int(high)
    while low < high:
        middle = (low + high) >> 1
        if compare(kept.rows[kept.places[offset + middle]], row, asked, n) < 0:
            low = middle + 1
        else:
            high = middle
    return int(low)


@helper(inline=True)
def _stretch(rows: int) -> Any:
    """Half as much again at least, for stretches whose first rows leave get shorter."""
    size = int64(_LEAST_STRETCH)
    while size < rows + (rows >> 1):
        size *= 2
    return size


@helper(inline=True)
def _wanted(of: Int64s) -> Any:
    """How large a stretch a partition needs for the rows that come to it; 0 where they have room."""
    rows = of[COUNT] + of[COMING]
    return _stretch(rows) if rows > of[SIZE] else int64(0)


@helper(typed=True)
def _make_room(changes: RowChanges, touched: int, kept: SortedArrays) -> int:
    """For the rows that come to so many partitions; 0, or for how many `places` must have room, and nothing is done."""
    partitions, places, figures = kept.partitions, kept.places, kept.figures
    needed = int64(0)
    for t in range(touched):
        needed += _wanted(partitions[changes.touched[t]])
    if figures.used + needed > len(places):
        return int(needed)
    for t in range(touched):
        of = partitions[changes.touched[t]]
        size, offset, to = _wanted(of), of[OFFSET], figures.used
        if size > 0:
            for i in range(of[COUNT]):
                places[to + i] = places[offset + i]
            of[OFFSET], of[SIZE] = to, size
            figures.used = to + size
    return 0


@kernel
def pack(kept: SortedArrays, packed: Int64s) -> int:
    """Copy the slots of all partitions to the front of `packed`; returns how much of it they take."""
    partitions, places = kept.partitions, kept.places
    to = int64(0)
    for partition in range(partitions.shape[0]):
        count, offset = partitions[partition, COUNT], partitions[partition, OFFSET]
        size = _stretch(count) if partitions[partition, SIZE] > 0 else int64(0)
        for i in range(count):
            packed[to + i] = places[offset + i]
        partitions[partition, OFFSET], partitions[partition, SIZE] = to, size
        to += size
    return int(to)


@helper(typed=True)
def _shown(slots: Int64s, count: int, rows: Int64Table, asked: RankAsked) -> int:
    """How many of the first rows of a partition are of interest."""
    at_most, function = asked.at_most, asked.function
    if at_most < 0 or count == 0:
        return count
    if function <= SHOWN or at_most == 0:
        return min(at_most, count)
    place, keys = int64(0), int64(1)
    while place < count:
        if place > 0 and compare(rows[slots[place - 1]], rows[slots[place]], asked, asked.keys) != 0:
            keys += 1
            if (place >= at_most) if function == RANK else (keys > at_most):
                break
        place += 1
    return int(place)


@helper(typed=True)
def _results(slots: Int64s, low: int, high: int, rows: Int64Table, asked: RankAsked, beside: Beside, side: int) -> None:
    """What the rows of a partition, in these slots, have from place low to before high. side: 0 before the changes, 1
    behind them.
    """
    function, keys, count = asked.function, asked.keys, len(slots)
    to, floats, told = beside.results[side], beside.floats[side], beside.told[side]
    if low >= high:
        return
    if function == CUME_DIST:
        up_to = high
        while up_to < count and compare(rows[slots[up_to - 1]], rows[slots[up_to]], asked, keys) == 0:
            up_to += 1
        for place in range(high - 1, low - 1, -1):
            if place < high - 1 and compare(rows[slots[place]], rows[slots[place + 1]], asked, keys) != 0:
                up_to = place + 1
            floats[place], told[place] = up_to / count, 1
        return
    rank = int64(low + 1)
    if function in (RANK, PERCENT_RANK):
        while rank > 1 and compare(rows[slots[rank - 2]], rows[slots[low]], asked, keys) == 0:
            rank -= 1
    elif function == DENSE_RANK:
        rank = 1 + int64(_steps(slots, 1, low, rows, asked))
    for place in range(low, high):
        if function <= NTILE:
            rank = place + 1
            if function != ROW_NUMBER:
                rank = int64(_tile(place, count, asked.distance)) if function == NTILE else int64(0)
        elif place > low and compare(rows[slots[place - 1]], rows[slots[place]], asked, keys) != 0:
            rank = rank + 1 if function == DENSE_RANK else place + 1
        if function == PERCENT_RANK:
            floats[place] = (rank - 1) / (count - 1) if count > 1 else 0.0
        else:
            to[place] = rank
        told[place] = 1


@helper(inline=True)
def _tile(place: int, rows: int, tiles: int) -> Any:
    """In which of so many parts a row stands, from 1: the parts are as equal as can be, the greater ones first."""
    size, greater = rows // tiles, rows % tiles
    in_greater = greater * (size + 1)
    return place // (size + 1) + 1 if place < in_greater else greater + (place - in_greater) // max(size, 1) + 1


@helper(typed=True)
def _steps(slots: Int64s, first: int, last: int, rows: Int64Table, asked: RankAsked) -> int:
    """How many rows from place first to last have other sort keys than the one before them."""
    n = int64(0)
    for place in range(max(first, 1), last + 1):
        n += int64(compare(rows[slots[place - 1]], rows[slots[place]], asked, asked.keys) != 0)
    return int(n)


@helper(typed=True)
def write(out: RankedRows, k: int, now: int, sign: int, row: Int64s) -> None:
    """A row, to which its result is still to come."""
    out.ts[k], out.sign[k] = now, sign
    for c in range(len(row)):
        out.words[k, c] = row[c]


@helper(inline=True)
def are_same(beside: Beside, i: int, j: int) -> Any:
    """The result of the row at place i before, and of that at place j now."""
    results, told, high = beside.results, beside.told, beside.high
    is_same = results[0, i] == results[1, j] and told[0, i] == told[1, j]
    return is_same and (high.shape[1] == 0 or high[0, i] == high[1, j])


@helper(inline=True)
def write_result(out: RankedRows, k: int, beside: Beside, place: int) -> Any:
    """Write the result before of the row at a place."""
    out.results[k], out.told[k] = beside.results[0, place], beside.told[0, place]
    if len(out.high) > 0:
        out.high[k] = beside.high[0, place]


@helper(typed=True)
def differ(work: Work, slots: Int64s) -> None:
    """Take back what was before and is no more, and note what has come: rows of both, with their results, are in one
    order, and what is equal cancels.
    """
    _, kept, asked, beside, out, spans = work
    rows, before, told = kept.rows, beside.before, beside.told
    were, are, n = spans.were, spans.are, asked.by.shape[0]
    i, j, k, come = spans.low, spans.low_now, spans.taken, spans.come
    while i < were or j < are:
        if i < were and j < are and before[i] == slots[j] and are_same(beside, i, j):
            i, j = i + 1, j + 1
            continue
        order = int64(1)
        if j >= are:
            order = int64(-1)
        elif i < were:
            order = int64(0 if before[i] == slots[j] else compare(rows[before[i]], rows[slots[j]], asked, n))
        ends, starts = i + int64(order <= 0), j + int64(order >= 0)
        if order == 0:  # of rows that are equal, each may have another result
            while ends < were and compare(rows[before[i]], rows[before[ends]], asked, n) == 0:
                ends += 1
            while starts < are and compare(rows[slots[j]], rows[slots[starts]], asked, n) == 0:
                starts += 1
            first = j
            for p in range(i, ends):
                for q in range(first, starts):
                    if told[1, q] != CANCELLED and are_same(beside, p, q):
                        told[0, p], told[1, q] = CANCELLED, CANCELLED
                        while first < starts and told[1, first] == CANCELLED:
                            first += 1
                        break
        for p in range(i, ends):
            if told[0, p] != CANCELLED:
                write(out, k, spans.now, -1, rows[before[p]])
                write_result(out, k, beside, p)
                k += 1
        for q in range(j, starts):
            if told[1, q] != CANCELLED:
                note = beside.come[come]
                note[0], note[1], note[2] = slots[q], beside.results[1, q], told[1, q]
                if beside.high.shape[1] > 0:
                    note[3] = beside.high[1, q]
                come += 1
        i, j = ends, starts
    spans.taken, spans.come = k, come


@helper(typed=True)
def _sort(moves: Rows[Move], m: int, words: Int64Table, asked: RankAsked) -> None:
    """Sort changes by their rows: as a heap, if they are not in order."""
    n, at = asked.by.shape[0], int64(1)
    while at < m and compare(words[moves[at - 1].change], words[moves[at].change], asked, n) <= 0:
        at += 1
    if at >= m:
        return
    size, root = int64(m), m >> 1
    while size > 1:
        if root > 0:
            root -= 1
        else:
            size -= 1
            moves[0].change, moves[size].change = moves[size].change, moves[0].change
        parent, sinking = root, moves[root].change
        while 2 * parent + 1 < size:
            child = 2 * parent + 1
            if child + 1 < size:
                beside = words[moves[child + 1].change]
                child += int64(compare(words[moves[child].change], beside, asked, n) < 0)
            if compare(words[sinking], words[moves[child].change], asked, n) >= 0:
                break
            moves[parent].change = moves[child].change
            parent = child
        moves[parent].change = sinking


@helper(typed=True)
def _net(moves: Rows[Move], m: int, changes: RowChanges, asked: RankAsked) -> int:
    """Leave out of sorted changes what comes and goes; returns how many are left."""
    n, kept, first = asked.by.shape[0], int64(0), int64(0)
    while first < m:
        last, net = first, int64(0)
        while last < m and (
            last == first
            or compare(changes.words[moves[first].change], changes.words[moves[last].change], asked, n) == 0
        ):
            net += changes.sign[moves[last].change]
            last += 1
        for c in range(first, last):
            if net * changes.sign[moves[c].change] > 0:
                moves[kept].change = moves[c].change
                kept += 1
                net -= changes.sign[moves[c].change]
        first = last
    return int(kept)


@helper(typed=True)
def place_changes(work: Work, partition: int) -> int:
    """Note what the changes of the instant to a partition come to, in the order of their rows, and where these stand,
    or would; returns how many changes there are.
    """
    changes, kept, asked, beside, _, _ = work
    moves, words = beside.moves, changes.words
    i, m = kept.partitions[partition, HEAD], int64(0)
    while i >= 0:
        moves[m].change = i
        m += 1
        i = changes.following[i]
    if m > 1:
        _sort(moves, m, words, asked)
        m = int64(_net(moves, m, changes, asked))
    for c in range(m):
        i = moves[c].change
        before = moves[c - 1].change if c > 0 else i
        is_again = c > 0 and changes.sign[i] < 0 and changes.sign[before] < 0
        if is_again and compare(words[before], words[i], asked, asked.by.shape[0]) == 0:
            moves[c].place = moves[c - 1].place + 1  # of rows that are equal one each
        else:
            moves[c].place = _find(words[i], kept, partition, asked)
    return int(m)


@helper(typed=True)
def _shift(work: Work, partition: int, m: int, front: int, to_the_left: bool) -> None:
    """Move the slots between the changes that move to the left, the first ones first, or those that move to the right,
    the last ones first. front: so much farther to the right.
    """
    changes, kept, _, beside, _, _ = work
    moves, places = beside.moves, kept.places
    offset, end = kept.partitions[partition, OFFSET], kept.partitions[partition, COUNT]
    by = int64(front)
    if to_the_left:
        for c in range(m):
            sign = int64(changes.sign[moves[c].change])
            by += sign
            if by < 0:
                last = moves[c + 1].place if c + 1 < m else end
                for p in range(offset + moves[c].place + int64(sign < 0), offset + last):
                    places[p + by] = places[p]
        return
    for c in range(m):
        by += int64(changes.sign[moves[c].change])
    for c in range(m - 1, -1, -1):
        sign = int64(changes.sign[moves[c].change])
        if by > 0:
            for p in range(offset + end - 1, offset + moves[c].place + int64(sign < 0) - 1, -1):
                places[p + by] = places[p]
        by -= sign
        end = moves[c].place


@helper(typed=True)
def carry_out(work: Work, partition: int, m: int) -> None:
    """Carry the changes out that `place_changes` has noted."""
    changes, kept, _, beside, _, spans = work
    moves, places, figures = beside.moves, kept.places, kept.figures
    of = kept.partitions[partition]
    front = int64(0)
    while of[COUNT] > _FEW and front < m and moves[front].place == front and changes.sign[moves[front].change] < 0:
        front += 1
    for c in range(m):
        if changes.sign[moves[c].change] < 0:
            beside.dead[spans.dead] = places[of[OFFSET] + moves[c].place]
            spans.dead += 1
    _shift(work, partition, m, front, True)
    _shift(work, partition, m, front, False)
    by = front
    for c in range(m):
        i = moves[c].change
        if changes.sign[i] > 0:
            figures.free -= 1
            slot = kept.free[figures.free]
            for w in range(kept.rows.shape[1]):
                kept.rows[slot, w] = changes.words[i, w]
            places[of[OFFSET] + moves[c].place + by] = slot
        by += int64(changes.sign[i])
    of[OFFSET] += front
    of[SIZE] -= front
    of[COUNT] += by - front
    figures.held += by - front


@helper(typed=True)
def let_go(work: Work, partition: int, begin: int, end: int) -> None:
    """Keep of a partition the rows at places from `begin` to before `end`."""
    _, kept, _, beside, _, spans = work
    of, places = kept.partitions[partition], kept.places
    offset, count = of[OFFSET], of[COUNT]
    for p in range(count):
        if p < begin or p >= end:
            beside.dead[spans.dead] = places[offset + p]
            spans.dead += 1
        else:
            places[offset + p - begin] = places[offset + p]
    of[COUNT] = end - begin
    kept.figures.held -= count - of[COUNT]


@helper(typed=True)
def _begin(work: Work, start: int) -> int:
    """Chain the changes of the instant that begins at `start` by partition, and make room for them in `places`; returns
    how much is lacking.
    """
    changes, kept, asked, _, _, spans = work
    partitions, figures = kept.partitions, kept.figures
    ts, sign, ids, following = changes.ts, changes.sign, changes.ids, changes.following
    figures.stamps += 1
    i, touched, bound = int64(start), int64(0), int64(0)
    while i < len(ts) and ts[i] == ts[start]:
        of = partitions[ids[i]]
        following[i] = -1
        if of[STAMP] != figures.stamps:
            of[STAMP], of[HEAD], of[COMING] = figures.stamps, i, 0
            changes.touched[touched] = ids[i]
            touched += 1
            is_limited = asked.function <= SHOWN and asked.at_most >= 0
            bound += 2 * (min(of[COUNT], asked.at_most) if is_limited else of[COUNT])
        else:
            following[of[TAIL]] = i
        of[TAIL] = i
        of[COMING] += int64(sign[i] > 0)
        bound += 2
        i += 1
    spans.now, spans.end, spans.touched, spans.bound = ts[start], i, touched, bound
    return _make_room(changes, touched, kept)


@helper(inline=True)
def _leaving(changes: RowChanges, start: int, end: int) -> Any:
    n = int64(0)
    for i in range(start, end):
        n += int64(changes.sign[i] < 0)
    return n


@helper(typed=True)
def begin_instant(work: Work, cursor: ChangeCursor) -> int:
    """DONE, or what is lacking for the next instant, and nothing is done."""
    changes, kept, _, _, out, spans = work
    start = cursor.next
    lacking = int64(_begin(work, start))
    end = spans.end
    cursor.written = spans.taken
    if cursor.least > 0 and kept.figures.held - _leaving(changes, start, end) < cursor.least:
        return ROWS_FEW
    if lacking > 0:
        cursor.needed = lacking
        return PLACES_FULL
    if spans.taken + spans.bound > len(out.ts):
        cursor.needed = spans.bound
        return OUTPUT_FULL
    if end - start > kept.figures.free:
        cursor.needed = end - start
        return SLOTS_FULL
    return DONE


@helper(typed=True)
def end_partition(work: Work, partition: int, cursor: ChangeCursor) -> None:
    if work.kept.partitions[partition, COUNT] == 0:
        work.changes.emptied[cursor.emptied] = partition
        cursor.emptied += 1


@helper(typed=True)
def write_come(work: Work) -> None:
    """Write the rows that come at an instant, behind those that are taken back."""
    _, kept, _, beside, out, spans = work
    k = spans.taken
    for c in range(spans.come):
        note = beside.come[c]
        write(out, k, spans.now, 1, kept.rows[note[0]])
        out.results[k], out.told[k] = note[1], note[2]
        if len(out.high) > 0:
            out.high[k] = note[3]
        k += 1
    spans.taken, spans.come = k, 0


@helper(typed=True)
def free_dead(work: Work) -> None:
    """Free the slots of the rows that have gone."""
    _, kept, _, beside, _, spans = work
    figures = kept.figures
    for d in range(spans.dead):
        kept.free[figures.free] = beside.dead[d]
        figures.free += 1
    spans.dead = 0


@helper(typed=True)
def end_instant(work: Work, cursor: ChangeCursor) -> None:
    """Write the rows that come, and free the slots of those that have gone."""
    write_come(work)
    free_dead(work)
    cursor.written, cursor.next = work.spans.taken, work.spans.end


@helper(typed=True)
def _change_ranks(work: Work, partition: int) -> None:
    """Carry the changes of the instant to a partition out, and tell what was before from what is now."""
    changes, kept, asked, beside, _, spans = work
    rows, moves, function, distance = kept.rows, beside.moves, asked.function, asked.distance
    of = kept.partitions[partition]
    slots, count = kept.places[of[OFFSET] : of[OFFSET] + of[SIZE]], of[COUNT]
    m = place_changes(work, partition)
    if m == 0:
        return
    first = moves[0].place
    last = count - moves[m - 1].place - int64(changes.sign[moves[m - 1].change] < 0)
    were = _shown(slots, count, rows, asked)
    for p in range(first if function == ROW_NUMBER else 0, were):
        beside.before[p] = slots[p]
    carry_out(work, partition, m)
    slots, after = kept.places[of[OFFSET] : of[OFFSET] + of[SIZE]], of[COUNT]
    are = _shown(slots, after, rows, asked)
    if function <= NTILE and count == after:
        were, are = min(were, count - last), min(are, after - last)
    elif function in (NTILE, PERCENT_RANK, CUME_DIST):
        first = 0
    elif function == DENSE_RANK and count - last < were and after - last < are:
        steps = _steps(beside.before, first, count - last, rows, asked)
        if steps == _steps(slots, first, after - last, rows, asked):
            were, are = count - last, after - last
    if function == SHOWN:
        first, were, are = max(first, distance), max(were, distance), max(are, distance)
    first = min(first, were, are)
    _results(beside.before[:count], first, were, rows, asked, beside, 0)
    _results(slots[:after], first, are, rows, asked, beside, 1)
    spans.low, spans.were, spans.low_now, spans.are = first, were, first, are
    differ(work, slots)
    if asked.keeps == KEEPS_SHOWN:
        let_go(work, partition, 0, _shown(slots, after, rows, asked))


@kernel
def change(work: Work, cursor: ChangeCursor) -> int:
    """Carry out changes, instant by instant, and write what becomes of the rows with their results; returns DONE, or
    what is lacking.
    """
    changes, spans = work.changes, work.spans
    spans.taken = 0
    status = DONE
    while cursor.next < len(changes.ts) and status == DONE:
        status = begin_instant(work, cursor)
        if status == DONE:
            for t in range(spans.touched):
                _change_ranks(work, changes.touched[t])
                end_partition(work, changes.touched[t], cursor)
            end_instant(work, cursor)
    return status


@kernel
def tell(work: Work) -> int:
    """Write all rows that are put out at present; returns how many there are."""
    kept, asked, beside, out = work.kept, work.asked, work.beside, work.out
    partitions, k = kept.partitions, int64(0)
    for partition in range(partitions.shape[0]):
        offset, count = partitions[partition, OFFSET], partitions[partition, COUNT]
        slots = kept.places[offset : offset + count]
        are = _shown(slots, count, kept.rows, asked)
        _results(slots, 0, are, kept.rows, asked, beside, 0)
        for p in range(asked.distance if asked.function == SHOWN else 0, are):
            write(out, k, 0, 1, kept.rows[slots[p]])
            write_result(out, k, beside, p)
            k += 1
    return int(k)
