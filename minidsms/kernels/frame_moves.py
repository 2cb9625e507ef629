"""Frames of OVER on a relation as moves: which values come to a state of groups, and leave it, from row to row.

As `kernels.sorted_frames` has it a change concerns the rows of a span, and frames slide over the span once as it was
and once as it is. A state of groups takes many elements at once, so the changes of many instants are carried out first:
`visit` notes the rows of the spans and what their frames hold. `move_frames` slides over all of that with one group,
which is empty in the end, and `tell` compares what was before with what is now.

Visits (n,) are rows, in slots: those of each partition and instant as they were, then as they are. `seen` has the slots
of the rows in their frames, one behind the other, and a frame is a stretch of it; frames that overlap share their rows.
Slots that rows have left are free only when all that was noted has been told.

Invariant: kernels never raise; they return what they lack before an instant begins, and go on from their cursors.
docs/semantics R7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.frames import Moves
from minidsms.kernels.sorted_frames import FrameOf, end_of, find_spans, first_in_reach, start_of
from minidsms.kernels.sorted_partitions import (
    COUNT,
    DONE,
    KEEPS_LAST,
    OFFSET,
    ChangeCursor,
    RankAsked,
    Work,
    begin_instant,
    carry_out,
    differ,
    end_partition,
    free_dead,
    is_null,
    let_go,
    place_changes,
    write_come,
)
from minidsms.machine_code import Int64s, Int64Table, Record, helper, int64, kernel

START, WERE, WERE_END, ARE, ARE_END, NOTED_WORDS = range(6)
"""A span that is noted: the first change of its instant, and its visits, as it was and as it is."""


class VisitFigures(Record):
    """How many visits, slots that their frames see, and spans are noted."""

    visits: int
    seen: int
    noted: int


class Visits(NamedTuple):
    """Rows that are visited (see above), room for n. start, end: of the frame, in `seen`.  spans: room for those of a
    partition, of `sorted_frames.Sliding`.
    """

    slots: Int64s
    start: Int64s
    end: Int64s
    seen: Int64s
    noted: Int64Table
    spans: Int64Table
    figures: VisitFigures


class MoveCursor(Record):
    """next: the first visit that is not answered.  head, tail: the rows from one to before the other are there.
    is_done: all are answered, and no row is there.
    """

    next: int
    head: int
    tail: int
    is_done: int


@helper(typed=True)
def _visit_spans(
    side: int, n: int, slots: Int64s, rows: Int64Table, asked: RankAsked, frame: FrameOf, to: Visits
) -> None:
    """Visit the rows of n spans of a partition. side: 0 as they were, 2 as they are."""
    figures = to.figures
    first = figures.noted - n
    start, end, copied, ahead = int64(0), int64(0), int64(0), int64(0)
    v = figures.visits
    for s in range(n):
        to.noted[first + s, WERE + side] = v
        for place in range(to.spans[s, side], to.spans[s, side + 1]):
            start = int64(start_of(place, start, slots, rows, asked, frame))
            end = max(start, int64(end_of(place, end, slots, rows, asked, frame)))
            if start >= copied:
                copied, ahead = start, figures.seen - start
            while copied < end:
                to.seen[copied + ahead] = slots[copied]
                copied += 1
            figures.seen = copied + ahead
            to.slots[v], to.start[v], to.end[v] = slots[place], start + ahead, end + ahead
            v += 1
        to.noted[first + s, WERE_END + side] = v
    figures.visits = v


@helper(typed=True)
def _visit_partition(work: Work, partition: int, frame: FrameOf, start: int, to: Visits) -> None:
    """Carry the changes of an instant, the first of which is `start`, to a partition out, and visit who sees them."""
    kept, asked = work.kept, work.asked
    of, rows, figures = kept.partitions[partition], kept.rows, to.figures
    slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
    m = int64(place_changes(work, partition))
    n = int64(find_spans(work, slots, m, frame, to.spans))
    for s in range(n):
        to.noted[figures.noted + s, START] = start
    figures.noted += n
    _visit_spans(0, n, slots, rows, asked, frame, to)
    carry_out(work, partition, m)
    slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
    _visit_spans(2, n, slots, rows, asked, frame, to)
    if asked.keeps == KEEPS_LAST:
        begin = int64(first_in_reach(slots, rows, asked, frame))
        if begin > 0:
            let_go(work, partition, begin, len(slots))


@kernel
def visit(work: Work, frame: FrameOf, to: Visits, cursor: ChangeCursor) -> int:
    """Carry out changes, instant by instant, as long as there is room for visits; returns DONE, or what is lacking."""
    changes, spans, figures = work.changes, work.spans, to.figures
    figures.visits, figures.seen, figures.noted = 0, 0, 0
    status = DONE
    while cursor.next < len(changes.ts) and status == DONE:
        # What may be told of an instant bounds what is noted of it.
        spans.taken = max(figures.visits, figures.seen, spans.dead)
        status = begin_instant(work, cursor)
        if status == DONE:
            for t in range(spans.touched):
                _visit_partition(work, changes.touched[t], frame, cursor.next, to)
                end_partition(work, changes.touched[t], cursor)
            cursor.next = spans.end
    return status


@kernel
def visit_all(work: Work, frame: FrameOf, to: Visits) -> None:
    """Visit all rows that there are."""
    kept, figures = work.kept, to.figures
    figures.visits, figures.seen, figures.noted = 0, 0, 0
    for partition in range(kept.partitions.shape[0]):
        of = kept.partitions[partition]
        if of[COUNT] > 0:
            figures.noted = 1
            to.spans[0, 0], to.spans[0, 1] = 0, of[COUNT]
            slots = kept.places[of[OFFSET] : of[OFFSET] + of[COUNT]]
            _visit_spans(0, 1, slots, kept.rows, work.asked, frame, to)


@helper(inline=True)
def _move(moves: Moves, m: int, stamp: int, sign: int, at: int, row: Int64s, asked: RankAsked) -> Any:
    """The argument of a row comes, or leaves; how many elements there are then."""
    valid = int64(1 - is_null(row, asked.arg, asked.columns))
    moves.ids[m], moves.stamps[m], moves.numbers[m] = 0, stamp, at
    moves.sign[m], moves.weight[m], moves.words[m], moves.valid[m] = sign, sign * valid, row[asked.arg], valid
    return m + 1


@kernel
def move_frames(
    to: Visits, rows: Int64Table, asked: RankAsked, moves: Moves, answers: Int64s, cursor: MoveCursor
) -> int:
    """Slide over the visits as far as there is room for elements; returns how many there are.

    answers[v]: the element behind which the answer for a visit stands. Rows are numbered by their places in `seen`.
    """
    n, room, m = to.figures.visits, len(moves.ids), int64(0)
    v, head, tail = cursor.next, cursor.head, cursor.tail
    while v < n:
        start, end = to.start[v], to.end[v]
        while head < min(start, tail) and m < room:
            m = _move(moves, m, v, -1, head, rows[to.seen[head]], asked)
            head += 1
        if head == tail:
            head = tail = start
        while head == start and tail < end and m < room:
            m = _move(moves, m, v, 1, tail, rows[to.seen[tail]], asked)
            tail += 1
        if m == room and (head < start or tail < end):
            break
        if m == 0:  # an answer stands behind an element
            moves.ids[0], moves.stamps[0], moves.numbers[0] = 0, v, tail
            moves.sign[0], moves.weight[0], moves.words[0], moves.valid[0] = 0, 0, 0, 0
            m = int64(1)
        answers[v] = m - 1
        v += 1
    while v == n and head < tail and m < room:
        m = _move(moves, m, n, -1, head, rows[to.seen[head]], asked)
        head += 1
    cursor.next, cursor.head, cursor.tail, cursor.is_done = v, head, tail, int64(v == n and head == tail)
    return int(m)


@kernel
def tell(work: Work, to: Visits, cursor: ChangeCursor) -> None:
    """Write what has become of the rows that were visited, whose results are there, instant by instant."""
    changes, beside, spans, noted = work.changes, work.beside, work.spans, to.noted
    spans.taken = 0
    for s in range(to.figures.noted):
        spans.now = changes.ts[noted[s, START]]
        spans.low, spans.were = noted[s, WERE], noted[s, WERE_END]
        spans.low_now, spans.are = noted[s, ARE], noted[s, ARE_END]
        differ(work, beside.before)
        if s + 1 == to.figures.noted or noted[s + 1, START] != noted[s, START]:
            write_come(work)
    free_dead(work)
    cursor.written = spans.taken
