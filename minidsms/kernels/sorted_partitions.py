"""Rows of a relation by partition, each partition in an order, and what a change does to their places and neighbours.

Rows stand in slots of `rows` (cap, w), as `elements.row_words` writes them; free slots are stacked in `free`. The slots
of a partition stand in order in a stretch of `places`, `partitions` (cap, FIELDS) says where; one that is full moves to
the end of `places`, and has twice the size there. Equal rows have a slot each.

A change moves the slots behind it. What was before and what is now are told apart only from the first place that has
changed on, and up to the last one whose result may have.

Invariant: kernels never raise; they return what they lack before an instant begins, and go on from their cursor.
docs/semantics R7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.text_order import WrittenTexts, compare_texts
from minidsms.machine_code import Float64Table, Int8s, Int8Table, Int64s, Int64Table, helper, int64, kernel

OFFSET, COUNT, SIZE, HEAD, TAIL, STAMP, COMING, FIELDS = range(8)
"""Where a partition's slots stand, how many there are, and for how many there is room.  HEAD, TAIL, COMING: of the
instant STAMP, the first and last of its changes, and how many rows come.
"""
COLUMN, IS_DESCENDING, NULLS_FIRST, KIND, BY_WIDTH = range(5)
"""Columns of `by`, a row per column that sorts."""
WORDS, FLOATS, TEXTS = range(3)
"""KIND: of what the words are."""
USED, FREE, HELD, STAMPS, FIGURES = range(5)
"""Columns of `figures`: the end of the last stretch of `places`, free slots, rows held, instants stamped."""
NEXT, WRITTEN, EMPTIED, NEEDED, LEAST, CURSOR_SIZE = range(6)
"""Columns of `cursor`: the first change that is not done, rows written, partitions noted as emptied, how much of what
is lacking is needed, and how many rows must stay where others leave.
"""
DONE, OUTPUT_FULL, SLOTS_FULL, PLACES_FULL, ROWS_FEW = range(5)
ROW_NUMBER, SHOWN, NTILE, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, LAG, LEAD = range(9)
"""SHOWN: no value, of the rows up to `at_most` but the first `distance`. It, ROW_NUMBER and NTILE look at places alone.
"""
LOW, WERE, ARE, BEFORE, AFTER, TAKEN, COME, TOUCHED, BOUND, SPANS = range(10)
"""What a step of `change` tells the next one: the place from which on rows may have other results, up to where they had
them and have them, how many rows there were and are, rows taken back and noted to come; partitions of an instant, and
how many rows it may put out.
"""
KEEPS_ALL, KEEPS_SHOWN, KEEPS_LAST = range(3)
UNBOUNDED = -1
_LEAST_STRETCH = 4
_LARGEST = 0x7FFFFFFFFFFFFFFF


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
    figures: Int64s


class RankAsked(NamedTuple):
    """by: how rows are sorted, at first by `keys` sort keys.  columns: of a row.  at_most: ranks above are of no
    interest, or UNBOUNDED.  keeps: which rows of a partition; of LEAD the last `distance`, where no more come between.
    texts: of all codes by which rows are sorted.
    """

    function: int
    distance: int
    arg: int
    at_most: int
    keeps: int
    keys: int
    columns: int
    by: Int64Table
    texts: WrittenTexts


class Beside(NamedTuple):
    """Room for what was before and is now: slots, and of both the results, seen as floats, too, and whether these are
    not NULL.

    come: slots and results of the rows that are put out behind those taken back.  dead: slots of rows that have gone
    at an instant.
    """

    before: Int64s
    results: Int64Table
    floats: Float64Table
    told: Int8Table
    come: Int64Table
    dead: Int64s


class RankedRows(NamedTuple):
    """The rows that are taken back and put out, with their results."""

    ts: Int64s
    sign: Int8s
    words: Int64Table
    results: Int64s
    told: Int8s


@helper(inline=True)
def _is_null(row: Int64s, column: int, columns: int) -> Any:
    return row[columns + column // 62] >> (column % 62) & 1


@helper(typed=True)
def _compare(row: Int64s, other: Int64s, asked: RankAsked, n: int) -> int:
    """By the first n columns that sort: -1 where the row stands before the other one, 1 behind, 0 with it."""
    by, columns = asked.by, asked.columns
    for c in range(n):
        column = by[c, COLUMN]
        is_null, other_is = _is_null(row, column, columns), _is_null(other, column, columns)
        if is_null != other_is:
            return -1 if is_null == by[c, NULLS_FIRST] else 1
        one, two = row[column], other[column]
        if is_null == 0 and one != two:
            if by[c, KIND] == FLOATS:
                one, two = one ^ ((one >> 63) & _LARGEST), two ^ ((two >> 63) & _LARGEST)
            is_less = compare_texts(one, two, asked.texts) < 0 if by[c, KIND] == TEXTS else one < two
            return -1 if is_less != (by[c, IS_DESCENDING] != 0) else 1
    return 0


@helper(typed=True)
def _find(row: Int64s, kept: SortedArrays, partition: int, asked: RankAsked) -> int:
    """The place, from 0, of the first row of a partition that does not stand before this one."""
    offset, low, high = kept.partitions[partition, OFFSET], int64(0), kept.partitions[partition, COUNT]
    n = asked.by.shape[0]
    if high > 0 and _compare(kept.rows[kept.places[offset + high - 1]], row, asked, n) < 0:
        return int(high)
    while low < high:
        middle = (low + high) >> 1
        if _compare(kept.rows[kept.places[offset + middle]], row, asked, n) < 0:
            low = middle + 1
        else:
            high = middle
    return int(low)


@helper(typed=True)
def _wanted(of: Int64s) -> int:
    """How large a stretch a partition needs for the rows that come to it; 0 where they have room."""
    rows, size = of[COUNT] + of[COMING], int64(_LEAST_STRETCH)
    if rows <= of[SIZE]:
        return 0
    while size < rows:
        size *= 2
    return int(size)


@helper(typed=True)
def _make_room(changes: RowChanges, touched: int, kept: SortedArrays) -> int:
    """For the rows that come to so many partitions; 0, or for how many `places` must have room, and nothing is done."""
    partitions, places, figures = kept.partitions, kept.places, kept.figures
    needed = int64(0)
    for t in range(touched):
        needed += _wanted(partitions[changes.touched[t]])
    if figures[USED] + needed > len(places):
        return int(needed)
    for t in range(touched):
        of = partitions[changes.touched[t]]
        size, offset, to = _wanted(of), of[OFFSET], figures[USED]
        if size > 0:
            for i in range(of[COUNT]):
                places[to + i] = places[offset + i]
            of[OFFSET], of[SIZE] = to, size
            figures[USED] = to + size
    return 0


@kernel
def pack(kept: SortedArrays, packed: Int64s) -> int:
    """Copy the slots of all partitions to the front of `packed`; returns how much of it they take."""
    partitions, places = kept.partitions, kept.places
    to = int64(0)
    for partition in range(partitions.shape[0]):
        count, offset = partitions[partition, COUNT], partitions[partition, OFFSET]
        size = int64(_LEAST_STRETCH) if partitions[partition, SIZE] > 0 else int64(0)
        while size < count:
            size *= 2
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
        if place > 0 and _compare(rows[slots[place - 1]], rows[slots[place]], asked, asked.keys) != 0:
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
    function, arg, keys, count = asked.function, asked.arg, asked.keys, len(slots)
    to, floats, told = beside.results[side], beside.floats[side], beside.told[side]
    if function >= LAG:
        by = -asked.distance if function == LAG else asked.distance
        for place in range(low, high):
            other = place + by
            is_there = other >= 0 and other < count
            row = rows[slots[other if is_there else place]]
            is_value = is_there and _is_null(row, arg, asked.columns) == 0
            to[place], told[place] = row[arg] if is_value else 0, is_value
        return
    if low >= high:
        return
    if function == CUME_DIST:
        up_to = high
        while up_to < count and _compare(rows[slots[up_to - 1]], rows[slots[up_to]], asked, keys) == 0:
            up_to += 1
        for place in range(high - 1, low - 1, -1):
            if place < high - 1 and _compare(rows[slots[place]], rows[slots[place + 1]], asked, keys) != 0:
                up_to = place + 1
            floats[place], told[place] = up_to / count, 1
        return
    rank = int64(low + 1)
    if function in (RANK, PERCENT_RANK):
        while rank > 1 and _compare(rows[slots[rank - 2]], rows[slots[low]], asked, keys) == 0:
            rank -= 1
    elif function == DENSE_RANK:
        rank = 1 + int64(_steps(slots, 1, low, rows, asked))
    for place in range(low, high):
        if function <= NTILE:
            rank = place + 1
            if function != ROW_NUMBER:
                rank = int64(_tile(place, count, asked.distance)) if function == NTILE else int64(0)
        elif place > low and _compare(rows[slots[place - 1]], rows[slots[place]], asked, keys) != 0:
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
        n += int64(_compare(rows[slots[place - 1]], rows[slots[place]], asked, asked.keys) != 0)
    return int(n)


@helper(typed=True)
def _write(out: RankedRows, k: int, ts: int, sign: int, row: Int64s, result: int, told: int) -> None:
    out.ts[k], out.sign[k], out.results[k], out.told[k] = ts, sign, result, told
    for c in range(len(row)):
        out.words[k, c] = row[c]


@helper(typed=True)
def _has_stayed(i: int, j: int, slots: Int64s, spans: Int64s, asked: RankAsked, beside: Beside) -> bool:
    """What stood at place i and stands at j is one row, with one result."""
    before, results = beside.before, beside.results
    if before[i] != slots[j]:
        return False
    if asked.function < LAG:
        return bool(results[0, i] == results[1, j])
    by = -asked.distance if asked.function == LAG else asked.distance
    was_there, is_there = 0 <= i + by < spans[BEFORE], 0 <= j + by < spans[AFTER]
    return was_there == is_there and (not was_there or before[i + by] == slots[j + by])


@helper(typed=True)
def _differ(
    slots: Int64s, spans: Int64s, now: int, come: int, kept: SortedArrays, asked: RankAsked, beside: Beside,
    out: RankedRows, k: int,
) -> None:  # fmt: skip
    """Take back what was before and is no more, and note what has come: rows of both, with their results, are in one
    order, and what is equal cancels. k, come: how many there are; spans then has both.
    """
    rows, before, results, told = kept.rows, beside.before, beside.results, beside.told
    were, are, n = spans[WERE], spans[ARE], asked.by.shape[0]
    i, j = spans[LOW], spans[LOW]
    while i < were or j < are:
        if i < were and j < are and _has_stayed(i, j, slots, spans, asked, beside):
            i, j = i + 1, j + 1
            continue
        order = int64(1)
        if j >= are:
            order = int64(-1)
        elif i < were:
            order = int64(_compare(rows[before[i]], rows[slots[j]], asked, n))
        ends, starts = i + int64(order <= 0), j + int64(order >= 0)
        if order == 0:  # of rows that are equal, each may have another result
            while ends < were and _compare(rows[before[i]], rows[before[ends]], asked, n) == 0:
                ends += 1
            while starts < are and _compare(rows[slots[j]], rows[slots[starts]], asked, n) == 0:
                starts += 1
        if asked.function >= LAG:
            _results(before[: spans[BEFORE]], i, ends, rows, asked, beside, 0)
            _results(slots[: spans[AFTER]], j, starts, rows, asked, beside, 1)
        if order == 0:
            first = j
            for p in range(i, ends):
                for q in range(first, starts):
                    is_same = results[0, p] == results[1, q] and told[0, p] == told[1, q]
                    if told[1, q] < 2 and is_same:
                        told[0, p], told[1, q] = 2, 2
                        while first < starts and told[1, first] == 2:
                            first += 1
                        break
        for p in range(i, ends):
            if told[0, p] < 2:
                _write(out, k, now, -1, rows[before[p]], results[0, p], int64(told[0, p]))
                k += 1
        for q in range(j, starts):
            if told[1, q] < 2:
                note = beside.come[come]
                note[0], note[1], note[2] = slots[q], results[1, q], told[1, q]
                come += 1
        i, j = ends, starts
    spans[TAKEN], spans[COME] = k, come


@helper(typed=True)
def _move(
    changes: RowChanges, partition: int, kept: SortedArrays, asked: RankAsked, spans: Int64s, dead: int, beside: Beside
) -> int:
    """Carry the changes of an instant to a partition out, rows that come first. spans: then has how many of its first
    places (LOW) and of its last (WERE) have stayed as they were. dead: slots of rows that have gone.
    """
    partitions, places, rows, free, figures = kept
    offset = partitions[partition, OFFSET]
    first, last = partitions[partition, COUNT], partitions[partition, COUNT]
    for sign in (1, -1):
        i = partitions[partition, HEAD]
        while i >= 0:
            if changes.sign[i] == sign:
                count = partitions[partition, COUNT]
                at = _find(changes.words[i], kept, partition, asked)
                first = min(first, at)
                if sign > 0:
                    last = min(last, count - at)
                    figures[FREE] -= 1
                    slot = free[figures[FREE]]
                    for c in range(rows.shape[1]):
                        rows[slot, c] = changes.words[i, c]
                    for p in range(offset + count, offset + at, -1):
                        places[p] = places[p - 1]
                    places[offset + at] = slot
                else:
                    last = min(last, count - at - 1)
                    beside.dead[dead] = places[offset + at]
                    dead += 1
                    for p in range(offset + at, offset + count - 1):
                        places[p] = places[p + 1]
                partitions[partition, COUNT] += sign
                figures[HELD] += sign
            i = changes.following[i]
    spans[LOW], spans[WERE] = first, last
    return dead


@helper(typed=True)
def _forget(partition: int, kept: SortedArrays, asked: RankAsked, dead: int, beside: Beside) -> int:
    """Let go of the rows of a partition that are of no interest any more; how many slots are dead then."""
    of, places = kept.partitions[partition], kept.places
    offset, count = of[OFFSET], of[COUNT]
    if asked.keeps == KEEPS_ALL:
        return dead
    begin, end = int64(0), count
    if asked.keeps == KEEPS_SHOWN:
        end = int64(_shown(places[offset : offset + count], count, kept.rows, asked))
    else:
        begin = max(int64(0), count - asked.distance)
    for p in range(count):
        if p < begin or p >= end:
            beside.dead[dead] = places[offset + p]
            dead += 1
        else:
            places[offset + p - begin] = places[offset + p]
    of[COUNT] = end - begin
    kept.figures[HELD] -= count - (end - begin)
    return dead


@helper(typed=True)
def _begin(changes: RowChanges, start: int, kept: SortedArrays, asked: RankAsked, spans: Int64s, cursor: Int64s) -> int:
    """Chain the changes of the instant that begins at `start` by partition, and make room for them in `places`, or say
    how much is needed. Returns the end of the instant.
    """
    partitions, figures = kept.partitions, kept.figures
    ts, sign, ids, following = changes.ts, changes.sign, changes.ids, changes.following
    figures[STAMPS] += 1
    i, touched, bound = int64(start), int64(0), int64(0)
    while i < len(ts) and ts[i] == ts[start]:
        of = partitions[ids[i]]
        following[i] = -1
        if of[STAMP] != figures[STAMPS]:
            of[STAMP], of[HEAD], of[COMING] = figures[STAMPS], i, 0
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
    cursor[NEEDED] = _make_room(changes, touched, kept)
    spans[TOUCHED], spans[BOUND] = touched, bound
    return int(i)


@helper(inline=True)
def _leaving(changes: RowChanges, start: int, end: int) -> Any:
    n = int64(0)
    for i in range(start, end):
        n += int64(changes.sign[i] < 0)
    return n


@kernel
def change(
    changes: RowChanges, kept: SortedArrays, asked: RankAsked, beside: Beside, out: RankedRows, spans: Int64s,
    cursor: Int64s,
) -> int:  # fmt: skip
    """Carry out changes, instant by instant, and write what becomes of the rows with their results; returns DONE, or
    what is full.
    """
    partitions, places, rows, free, figures = kept
    function, distance = asked.function, asked.distance
    i, k = cursor[NEXT], int64(0)
    while i < len(changes.ts):
        end = _begin(changes, i, kept, asked, spans, cursor)
        cursor[WRITTEN] = k
        if cursor[LEAST] > 0 and figures[HELD] - _leaving(changes, i, end) < cursor[LEAST]:
            return ROWS_FEW
        if cursor[NEEDED] > 0:
            return PLACES_FULL
        if k + spans[BOUND] > len(out.ts):
            cursor[NEEDED] = spans[BOUND]
            return OUTPUT_FULL
        if end - i > figures[FREE]:
            cursor[NEEDED] = end - i
            return SLOTS_FULL
        now, dead, come = changes.ts[i], 0, int64(0)
        for t in range(spans[TOUCHED]):
            partition = changes.touched[t]
            of = partitions[partition]
            slots, count = places[of[OFFSET] : of[OFFSET] + of[SIZE]], of[COUNT]
            were = _shown(slots, count, rows, asked)
            for p in range(were):
                beside.before[p] = slots[p]
            dead = _move(changes, partition, kept, asked, spans, dead, beside)
            first, last, after = spans[LOW], spans[WERE], of[COUNT]
            are = _shown(slots, after, rows, asked)
            if function >= LAG:
                first = max(0, first - (distance if function == LEAD else 0))
                behind = distance if function == LAG else 0
                were, are = min(were, count - last + behind), min(are, after - last + behind)
            elif function <= NTILE and count == after:
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
            if function < LAG:
                _results(beside.before[:count], first, were, rows, asked, beside, 0)
                _results(slots[:after], first, are, rows, asked, beside, 1)
            spans[LOW], spans[WERE], spans[ARE], spans[BEFORE], spans[AFTER] = first, were, are, count, after
            _differ(slots, spans, now, come, kept, asked, beside, out, k)
            k, come = spans[TAKEN], spans[COME]
            dead = _forget(partition, kept, asked, dead, beside)
            if of[COUNT] == 0:
                changes.emptied[cursor[EMPTIED]] = partition
                cursor[EMPTIED] += 1
        for c in range(come):
            note = beside.come[c]
            _write(out, k, now, 1, rows[note[0]], note[1], note[2])
            k += 1
        for d in range(dead):
            free[figures[FREE]] = beside.dead[d]
            figures[FREE] += 1
        i = end
        cursor[NEXT] = i
    cursor[WRITTEN] = k
    return DONE


@kernel
def tell(kept: SortedArrays, asked: RankAsked, beside: Beside, out: RankedRows) -> int:
    """Write all rows that are put out at present; returns how many there are."""
    partitions, k = kept.partitions, int64(0)
    for partition in range(partitions.shape[0]):
        offset, count = partitions[partition, OFFSET], partitions[partition, COUNT]
        slots = kept.places[offset : offset + count]
        are = _shown(slots, count, kept.rows, asked)
        _results(slots, 0, are, kept.rows, asked, beside, 0)
        for p in range(asked.distance if asked.function == SHOWN else 0, are):
            _write(out, k, 0, 1, kept.rows[slots[p]], beside.results[0, p], int64(beside.told[0, p]))
            k += 1
    return int(k)
