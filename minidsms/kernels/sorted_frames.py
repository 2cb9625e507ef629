"""What the frames of OVER give of rows that stand in order (`kernels.sorted_partitions`): aggregates, and one row's
value.

A change concerns the rows whose frames hold its row or hold rows on both sides of it: those of a span of places around
it. Spans that touch are one, and rows that are equal are in one span, so that what is equal cancels there. Frames slide
over a span once as it was and once as it is: values come to the aggregate in `state`, and leave it, in the order of
their places. Of MIN and MAX the places that may be the extreme, once those before them have left, stand in `extremes`.

Where rows come in order and no frame has a beginning, rows that no later one can change pass: what the aggregate has of
them stands behind their partition's fields, as a state.

Invariant: sums are exact, so that a state is what its values are, in whatever order they came.  docs/semantics R7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.kernels.decimal_sums import add_digits
from minidsms.kernels.exact_sums import add_float, position_of, rounded
from minidsms.kernels.grouping import add, mean
from minidsms.kernels.sorted_partitions import (
    COUNT,
    DONE,
    FIELDS,
    FLOATS,
    KEEPS_LAST,
    OFFSET,
    OVERFLOWS,
    ChangeCursor,
    RankAsked,
    Work,
    begin_instant,
    carry_out,
    compare,
    differ,
    end_instant,
    end_partition,
    is_null,
    let_go,
    order_of,
    place_changes,
    write,
    write_result,
)
from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel, uint64
from minidsms.values.coded import CODE_OF_ZERO
from minidsms.values.types import MOST_DIGITS

VALUES_OF, SUM, MEAN, SUM_OF_DIGITS, LEAST, GREATEST, NTH, LAST, OF_GROUPS = range(9)
"""What is asked for. OF_GROUPS: what states of groups give (`kernels.frame_moves`)."""
VALUES, SUM_LOW, SUM_MIDDLE, SUM_HIGH, ROWS, WORD, IS_VALUE, BELOW, ABOVE, FIRST_LIMB, END_LIMB, LIMBS = range(12)
"""A state: how many values are not NULL; their sum, or that of digits, in 128 and in 192 bits; rows that have passed,
and their extreme, or n-th value, and whether there is one; infinite values, below and above; of floats the limbs of
their sum that are not all zeros, and the limbs.
"""
SPAN_WORDS = 4
_MOST_LIMBS = 68
STATE_SIZE = LIMBS + _MOST_LIMBS
_GREATEST_HIGH, _GREATEST_LOW = divmod(10**MOST_DIGITS - 1, 2**64)
_NO_DIGIT = 48


class FrameOf(NamedTuple):
    """The frame from `start` to `end`, in places, or, by_value, in the distance of keys: how far, and whether behind
    (1) or before (-1).  kind: of the argument's words.  nth: of which row a value is asked for.  default: the column of
    the row itself that is given where the frame has no such row, or -1.  reach: how far behind the last row those stand
    that are kept, where rows come in order. carries: and something is kept of the others.
    """

    function: int
    kind: int
    nth: int
    default: int
    by_value: bool
    has_start: bool
    has_end: bool
    start: int
    end: int
    start_way: int
    end_way: int
    reach: int
    carries: bool


class Sliding(NamedTuple):
    """Room for a state, for the limbs of its sum, for places of extremes, and for spans: the places between which rows
    see changes, as they were and as they are, and one more.
    """

    state: Int64s
    digits: Int64s
    extremes: Int64s
    spans: Int64Table


# ------------------------------------------------------------------------------------------------------------- places


@helper(typed=True)
def _beside(row: Int64s, other: Int64s, way: int, distance: int, asked: RankAsked) -> int:
    """Where a row stands beside the keys of another one and so much more: -1 before, 1 behind. distance: unsigned."""
    if distance == 0:
        return compare(row, other, asked, asked.keys)
    by = asked.by[0]
    column = by.column
    is_none, other_is = is_null(row, column, asked.columns), is_null(other, column, asked.columns)
    if is_none or other_is:
        return 0 if is_none == other_is else -1 if is_none == by.nulls_first else 1
    one, two = row[column], other[column]
    if by.is_descending:
        one, two = two, one
    is_behind = one >= two
    if (way > 0) != is_behind:
        return 1 if is_behind else -1
    apart = uint64(one) - uint64(two) if is_behind else uint64(two) - uint64(one)
    if apart == uint64(distance):
        return 0
    return 1 if (apart > uint64(distance)) == is_behind else -1


@helper(typed=True)
def seek(
    at: int, slots: Int64s, row: Int64s, way: int, distance: int, is_behind: bool, rows: Int64Table, asked: RankAsked
) -> int:
    """The first place, from `at` on, of a row that does not stand before the row's keys and so much; is_behind: that
    stands behind them. It is looked for near `at` first.
    """
    low, high, step = int64(at), int64(at), int64(1)
    while high < len(slots) and _beside(rows[slots[high]], row, way, distance, asked) < int64(is_behind):
        low = high + 1
        high += step
        step *= 2
    high = min(high, len(slots))
    while low < high:
        middle = (low + high) >> 1
        if _beside(rows[slots[middle]], row, way, distance, asked) < int64(is_behind):
            low = middle + 1
        else:
            high = middle
    return int(low)


@helper(typed=True)
def _find_concerned(work: Work, slots: Int64s, c: int, frame: FrameOf, span: Int64s) -> None:
    """From which place to before which rows see the c-th change, as they were: the first two words of a span."""
    changes, kept, asked, beside, _, _ = work
    at, i = beside.moves[c].place, beside.moves[c].change
    row, count = changes.words[i], len(slots)
    first, last = at, at + int64(changes.sign[i] < 0)
    if frame.by_value:
        low, high = int64(0), int64(count)
        if frame.has_end:
            low = min(first, int64(seek(0, slots, row, -frame.end_way, frame.end, False, kept.rows, asked)))
        if frame.has_start:
            high = max(last, int64(seek(at, slots, row, -frame.start_way, frame.start, True, kept.rows, asked)))
        span[0], span[1] = low, high
        return
    low = max(int64(0), first - max(int64(0), frame.end)) if frame.has_end else int64(0)
    high = min(int64(count), last + max(int64(0), -frame.start)) if frame.has_start else int64(count)
    n = asked.by.shape[0]
    first_row = kept.rows[slots[low]] if low < first else row
    while low > 0 and compare(kept.rows[slots[low - 1]], first_row, asked, n) == 0:
        low -= 1
    last_row = kept.rows[slots[high - 1]] if high > last else row
    while high < count and compare(kept.rows[slots[high]], last_row, asked, n) == 0:
        high += 1
    span[0], span[1] = low, high


@helper(typed=True)
def find_spans(work: Work, slots: Int64s, m: int, frame: FrameOf, spans: Int64Table) -> int:
    """The spans of rows that see changes, as they were and as they will be; returns how many there are."""
    sign, moves = work.changes.sign, work.beside.moves
    n, by = int64(0), int64(0)
    for c in range(m):
        _find_concerned(work, slots, c, frame, spans[n])
        high = spans[n, 1]
        if n == 0 or spans[n, 0] > spans[n - 1, 1]:
            spans[n, 2] = spans[n, 0] + by
            n += 1
        by += int64(sign[moves[c].change])
        spans[n - 1, 1] = max(spans[n - 1, 1], high)
        spans[n - 1, 3] = spans[n - 1, 1] + by
    return int(n)


@helper(typed=True)
def start_of(place: int, at: int, slots: Int64s, rows: Int64Table, asked: RankAsked, frame: FrameOf) -> int:
    """The place where the frame of the row at a place begins; at: where that of one before it does, or 0."""
    if not frame.has_start:
        return 0
    if frame.by_value:
        return int(seek(at, slots, rows[slots[place]], frame.start_way, frame.start, False, rows, asked))
    return int(min(max(place + frame.start, 0), len(slots)))


@helper(typed=True)
def end_of(place: int, at: int, slots: Int64s, rows: Int64Table, asked: RankAsked, frame: FrameOf) -> int:
    """The place behind its last row; at: up to where one before it reaches, or 0."""
    if not frame.has_end:
        return len(slots)
    if frame.by_value:
        return int(seek(at, slots, rows[slots[place]], frame.end_way, frame.end, True, rows, asked))
    return int(min(max(place + frame.end + 1, 0), len(slots)))


# ------------------------------------------------------------------------------------------------------------- states


@helper(typed=True)
def _digits_of(code: int, asked: RankAsked, digits: Int64s) -> None:
    """The digits of a DECIMAL, without the point, in 128 bits."""
    at, high, low = asked.texts.starts[code], uint64(0), uint64(0)
    for _ in range(MOST_DIGITS + 1):  # its text is that of 10 ** MOST_DIGITS more
        carry = ((low >> uint64(32)) * uint64(10) + ((low & uint64(0xFFFFFFFF)) * uint64(10) >> uint64(32))) >> uint64(
            32
        )
        low = low * uint64(10)
        digit = uint64(asked.texts.written[at]) - uint64(_NO_DIGIT)
        high = high * uint64(10) + carry + uint64(low + digit < digit)
        low += digit
        at += 1
    less = uint64(_GREATEST_LOW) + uint64(1)
    digits[1] = int64(high - uint64(_GREATEST_HIGH) - uint64(low < less))
    digits[0] = int64(low - less)


@helper(typed=True)
def _count(row: Int64s, weight: int, asked: RankAsked, frame: FrameOf, sliding: Sliding) -> None:
    """The argument of a row comes to the state (1), or leaves it (-1)."""
    state, arg = sliding.state, asked.arg
    if arg >= 0 and is_null(row, arg, asked.columns) != 0:
        return
    state[VALUES] += weight
    if frame.function == VALUES_OF or frame.function >= LEAST:
        return
    word = row[arg]
    if frame.function == SUM_OF_DIGITS:
        if word < 0:
            add_digits(state, weight * (word - CODE_OF_ZERO))
            return
        _digits_of(word, asked, sliding.digits)
        low, high = sliding.digits[0], sliding.digits[1]
        # The lower word is unsigned: its upper bit counts apart.
        if weight < 0:
            low, high = -low, ~high + int64(low == 0)
        before = uint64(state[SUM_LOW])
        state[SUM_LOW] = int64(before + uint64(low))
        carry = uint64(uint64(state[SUM_LOW]) < before)
        before = uint64(state[SUM_MIDDLE])
        after = before + uint64(high)
        over = int64(after < before)
        state[SUM_MIDDLE] = int64(after + carry)
        over += int64(after + carry < after)
        state[SUM_HIGH] += (high >> 63) + over
    elif frame.kind != FLOATS:
        add(state, SUM_LOW, word, weight)
    elif (word >> 52) & 2047 == 2047:
        state[ABOVE if word >= 0 else BELOW] += weight
    elif word << 1 != 0:
        first = int64(position_of(word)) >> 5
        if state[END_LIMB] == 0:
            state[FIRST_LIMB] = first
        state[FIRST_LIMB] = min(state[FIRST_LIMB], first)
        state[END_LIMB] = max(state[END_LIMB], first + 3)
        add_float(state[LIMBS:], 0, word, weight)


@helper(typed=True)
def _begin(sliding: Sliding, carried: Int64s) -> None:
    """A state of no values, or of those that have passed."""
    state = sliding.state
    for w in range(len(state) if len(carried) > 0 else LIMBS + state[END_LIMB]):
        state[w] = carried[w] if len(carried) > 0 else 0


@helper(typed=True)
def _answer_sum(side: int, place: int, work: Work, frame: FrameOf, sliding: Sliding) -> bool:
    """Write the sum or mean of a state; False where the sum does not fit."""
    state, beside, function = sliding.state, work.beside, frame.function
    values, low, middle, high = state[VALUES], state[SUM_LOW], state[SUM_MIDDLE], state[SUM_HIGH]
    beside.told[side, place] = values != 0
    if function == SUM_OF_DIGITS:
        beside.results[side, place], beside.high[side, place] = low, middle
        if high < 0:
            low, middle, high = -low, ~middle + int64(low == 0), ~high + int64(low == 0 and middle == 0)
        return bool(
            high == 0
            and middle >= 0
            and (
                middle < int64(_GREATEST_HIGH)
                or (middle == int64(_GREATEST_HIGH) and uint64(low) <= uint64(_GREATEST_LOW))
            )
        )
    if frame.kind != FLOATS:
        if function == MEAN:
            beside.floats[side, place] = mean(state, VALUES)
            return True
        beside.results[side, place] = low
        return bool(middle == low >> 63)
    beside.floats[side, place] = 0.0
    if state[BELOW] and state[ABOVE]:
        beside.told[side, place] = 0
    elif state[BELOW] or state[ABOVE]:
        beside.floats[side, place] = np.inf if state[ABOVE] else -np.inf
    elif state[END_LIMB] > 0 and values > 0:
        first, end = state[FIRST_LIMB], state[END_LIMB]
        limbs = state[LIMBS + first : LIMBS + end]
        digits = sliding.digits[: end - first + 2]
        beside.floats[side, place] = rounded(limbs, digits, first, values if function == MEAN else 1)
    return True


@helper(inline=True)
def _is_better(word: int, other: int, asked: RankAsked, frame: FrameOf) -> Any:
    """As an extreme."""
    return word != other and (order_of(word, other, frame.kind, asked.texts) < 0) == (frame.function == LEAST)


@helper(typed=True)
def _slide(
    side: int, slots: Int64s, low: int, high: int, work: Work, frame: FrameOf, sliding: Sliding, carried: Int64s
) -> bool:
    """What the frames of the rows at places from `low` to before `high` give; False where a sum does not fit. carried:
    the state of what has passed, or empty.
    """
    asked, beside, rows = work.asked, work.beside, work.kept.rows
    arg, function, extremes = asked.arg, frame.function, sliding.extremes
    if function < NTH and low < high:
        _begin(sliding, carried)
    state = sliding.state
    start, end, head, tail = int64(0), int64(0), int64(0), int64(0)
    front, back = int64(0), int64(0)
    fits = True
    for place in range(low, high):
        start = int64(start_of(place, start, slots, rows, asked, frame))
        end = int64(end_of(place, tail, slots, rows, asked, frame))
        if place == low or start >= tail:  # nothing that is there is in the frame
            if place > low:
                for p in range(head, tail):
                    _count(rows[slots[p]], -1, asked, frame, sliding)
            head, tail, front, back = start, start, 0, 0
        if function >= NTH:
            tail = max(tail, end)
            _answer_place(side, place, start, end, slots, work, frame, carried)
            continue
        while tail < end:
            row = rows[slots[tail]]
            _count(row, 1, asked, frame, sliding)
            if function >= LEAST and is_null(row, arg, asked.columns) == 0:
                while back > front and not _is_better(rows[slots[extremes[back - 1]], arg], row[arg], asked, frame):
                    back -= 1
                extremes[back] = tail
                back += 1
            tail += 1
        while head < min(start, tail):
            _count(rows[slots[head]], -1, asked, frame, sliding)
            front += int64(front < back and extremes[front] == head)
            head += 1
        if function == VALUES_OF:
            beside.results[side, place], beside.told[side, place] = state[VALUES], 1
        elif function < LEAST:
            fits = _answer_sum(side, place, work, frame, sliding) and fits
        else:
            word, is_value = state[WORD], state[IS_VALUE] != 0
            if front < back:
                found = rows[slots[extremes[front]], arg]
                word = word if is_value and _is_better(word, found, asked, frame) else found
                is_value = True
            beside.results[side, place], beside.told[side, place] = word if is_value else 0, is_value
    return bool(fits)


@helper(typed=True)
def _answer_place(
    side: int, place: int, start: int, end: int, slots: Int64s, work: Work, frame: FrameOf, carried: Int64s
) -> None:
    """Write the value of one row of the frame."""
    asked, beside = work.asked, work.beside
    passed = carried[ROWS] if len(carried) > 0 else int64(0)
    at = end - 1 if frame.function == LAST else start + frame.nth - 1 - passed
    is_there = at >= start and at < end
    column = int64(asked.arg) if is_there else int64(frame.default)
    word, is_value = int64(0), False
    if at < start and passed > 0:
        word, is_value = carried[WORD], carried[IS_VALUE] != 0
    elif column >= 0:
        row = work.kept.rows[slots[at if is_there else place]]
        is_value = is_null(row, column, asked.columns) == 0
        word = row[column] if is_value else int64(0)
    beside.results[side, place], beside.told[side, place] = word, is_value


@helper(typed=True)
def first_in_reach(slots: Int64s, rows: Int64Table, asked: RankAsked, frame: FrameOf) -> int:
    """The place of the first row that a later one can change, or see, of rows that come in order."""
    if frame.by_value and len(slots) > 0:
        return int(seek(0, slots, rows[slots[len(slots) - 1]], -1, frame.reach, False, rows, asked))
    return int(max(int64(0), len(slots) - frame.reach))


@helper(typed=True)
def _pass(work: Work, partition: int, frame: FrameOf, sliding: Sliding) -> None:
    """Let go of the rows that no later one can change, and that none sees but as a part of what has passed."""
    kept, asked = work.kept, work.asked
    of, rows = kept.partitions[partition], kept.rows
    slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
    begin = int64(first_in_reach(slots, rows, asked, frame))
    if begin == 0:
        return
    if frame.carries:
        carried = of[FIELDS:]
        _begin(sliding, carried)
        for p in range(begin):
            row = rows[slots[p]]
            _count(row, 1, asked, frame, sliding)
            state = sliding.state
            state[ROWS] += 1
            if frame.function < LEAST:
                continue
            is_value = is_null(row, asked.arg, asked.columns) == 0
            word = row[asked.arg] if is_value else int64(0)
            if frame.function == NTH:
                if state[ROWS] == frame.nth:
                    state[WORD], state[IS_VALUE] = word, is_value
            elif is_value and (state[IS_VALUE] == 0 or _is_better(word, state[WORD], asked, frame)):
                state[WORD], state[IS_VALUE] = word, 1
        for w in range(STATE_SIZE):
            carried[w] = sliding.state[w]
    let_go(work, partition, begin, len(slots))


# ------------------------------------------------------------------------------------------------------------ changes


@helper(typed=True)
def _change_partition(work: Work, partition: int, frame: FrameOf, sliding: Sliding) -> bool:
    """Carry the changes of the instant to a partition out, and tell what was before from what is now; False where a sum
    does not fit.
    """
    kept, beside, told = work.kept, work.beside, work.spans
    of, spans = kept.partitions[partition], sliding.spans
    carried = of[FIELDS:]
    slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
    m = place_changes(work, partition)
    n = find_spans(work, slots, m, frame, spans)
    for s in range(n):
        for p in range(spans[s, 0], spans[s, 1]):
            beside.before[p] = slots[p]
        _slide(0, slots, spans[s, 0], spans[s, 1], work, frame, sliding, carried)
    carry_out(work, partition, m)
    slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
    fits = True
    for s in range(n):
        fits = _slide(1, slots, spans[s, 2], spans[s, 3], work, frame, sliding, carried) and fits
        told.low, told.were, told.low_now, told.are = spans[s, 0], spans[s, 1], spans[s, 2], spans[s, 3]
        differ(work, slots)
    if work.asked.keeps == KEEPS_LAST:
        _pass(work, partition, frame, sliding)
    return bool(fits)


@kernel
def change_frames(work: Work, frame: FrameOf, sliding: Sliding, cursor: ChangeCursor) -> int:
    """Carry out changes, instant by instant, and write what becomes of the rows with their results; returns DONE, or
    what is lacking; OVERFLOWS where the sums of an instant do not fit, of which nothing counts then.
    """
    changes, spans = work.changes, work.spans
    spans.taken = 0
    status = DONE
    while cursor.next < len(changes.ts) and status == DONE:
        status = begin_instant(work, cursor)
        if status == DONE:
            fits = True
            for t in range(spans.touched):
                fits = _change_partition(work, changes.touched[t], frame, sliding) and fits
                end_partition(work, changes.touched[t], cursor)
            if not fits:
                return OVERFLOWS
            end_instant(work, cursor)
    return status


@kernel
def tell_frames(work: Work, frame: FrameOf, sliding: Sliding) -> int:
    """Write all rows that are put out at present; returns how many there are."""
    kept, k = work.kept, int64(0)
    for partition in range(kept.partitions.shape[0]):
        of = kept.partitions[partition]
        slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
        _slide(0, slots, 0, len(slots), work, frame, sliding, of[FIELDS:])
        for p in range(len(slots)):
            write(work.out, k, 0, 1, kept.rows[slots[p]])
            write_result(work.out, k, work.beside, p)
            k += 1
    return int(k)
