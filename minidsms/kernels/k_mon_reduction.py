"""Which rows of a tree of joined windows can still be part of a new result, and packing those that can.

Seen from a row, a side leads to rows of the neighbour stream that join it, and each of those by its other sides further
on. By a side a row has
  - MATCH, if a row that joins it stands there and has MATCH by all its other sides, or may still come;
  - NEW, if such a row may still come, or one that stands there has NEW by some other side;
  - FULL, if one stands there that has FULL by all its other sides.
A row can be part of a new result when it has MATCH by every side and NEW by some, and is part of one that holds when it
has FULL by every side. By the sides to its children alone: a row of Yes has FULL by each, a row of No lacks MATCH by
one, and all others are Unknown (Babu 2005, definition 6.3.1 and theorems 6.3.1, 6.3.2, 6.3.5 and 6.7.1).

Messages go along the tree to one stream and back, so that each side of each row is looked at once.

A row may still come unless something closes the side: the columns are a key of the neighbour, and a row that has it is
known to have come; or one of the k-constraints says so (sections 6.6.2, 6.7.2, 6.8.2, 6.8.6).

The dead of a key are known by their keys alone, the No components without the columns that no one asks for (section
6.3.1): `no_keys` holds their words, side by side, `no_marks` (3, m) what else there is of each.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.k_mon_join import CHANGES, RANGE, UNLINKED, agree
from minidsms.kernels.k_mon_keys import (
    DeadFigures,
    DeadKeyArrays,
    Limit,
    RowArrays,
    Side,
    StreamFigures,
    key_of,
    key_of_words,
)
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import (
    Int32s,
    Int32Table,
    Int64s,
    Int64Table,
    Rows,
    Uint8s,
    helper,
    int32,
    int64,
    kernel,
    uint8,
)

MATCH, NEW, FULL, STANDS = 1, 2, 4, 8
"""What a row has by a side; STANDS: some row that joins it stands there."""

DROPPED, KEPT, DEAD = 0, 1, 2
"""Verdicts on a row: it goes, complete; it stays; it goes, since it will never be part of a result."""

NO_CLOCK, NO_CLUSTER, NO_NEXT, NO_MARKS = range(4)
"""Of a dead key: the instant or number of its row, and its counter C_v, both made to fit; the next of its bucket."""
CLOCK_MASK = 0x7FFFFFFF
"""Differences of clocks and counters are known up to so much."""

UNORDERED, INTEGERS, FLOATS = 0, 1, 2
"""Orders of words."""

YES, NO, UNKNOWN, GONE = 0, 1, 2, 3
"""Components; GONE has left its window, or was dropped."""


@helper(inline=True)
def _hash(cells: Int64s, at: int, parts: Int64s, sides: Rows[Side], s: int) -> Any:
    return key_of(cells, at, parts, sides[s].part, sides[s].parts_end)


@helper(inline=True)
def _dead(rows: RowArrays, at: int, s: int, t: int, dead: DeadKeyArrays) -> Any:
    """The place in `no_marks` of the dead key of side t that equals the columns of side s of the row at `at`; -1: there
    is none."""
    cells, parts, sides = rows.cells, rows.parts, rows.sides
    no, no_keys, no_marks, no_heads = dead.no, dead.no_keys, dead.no_marks, dead.no_heads
    place = int64(-1)
    if no[t].count > 0:
        begin, end = sides[s].part, sides[s].parts_end
        first = no[t].first
        x = int64(no_heads[no[t].heads + bucket(_hash(cells, at, parts, sides, s), no[t].shift)])
        while x >= 0 and place < 0:
            key = no[t].words_at + x * (end - begin)
            equal = True
            for p in range(end - begin):
                equal &= no_keys[key + p] == cells[at + parts[begin + p]]
            if equal:
                place = first + x
            x = int64(no_marks[NO_NEXT, first + x])
    return place


@helper(inline=True)
def _ordered(word: int, order: int) -> Any:
    """The word as an integer in the order of its values."""
    return word if order == INTEGERS or word >= 0 else word ^ int64(0x7FFFFFFFFFFFFFFF)


@helper(inline=True)
def _is_closed(rows: RowArrays, at: int, s: int, limits: Rows[Limit]) -> Any:
    """Whether a k-constraint says that no row will come by side s of the row at `at`."""
    cells, parts, sides = rows.cells, rows.parts, rows.sides
    closed = cells[at] < limits[s].before
    if limits[s].order != UNORDERED:
        closed |= _ordered(cells[at + parts[sides[s].part]], limits[s].order) < limits[s].below
    if sides[s].cluster >= 0:
        count = cells[at + sides[s].cluster]
        closed |= count >= 0 and count < limits[s].clustered
    return closed


@helper(inline=True)
def _ways(messages: Uint8s, first: Int64s, of_stream: Int64s, begin: int, end: int, t: int, x: int) -> Any:
    """What a row in slot x gives to those that reach it by its side t: MATCH, FULL by all its other sides, NEW by some.

    of_stream[begin:end]: its sides.
    """
    every, some = int64(MATCH | FULL), int64(0)
    for y in range(begin, end):
        u = of_stream[y]
        if u != t:
            their = int64(messages[first[u] + x])
            every &= their
            some |= their
    return every | (some & NEW if every & MATCH else int64(0))


@kernel
def send_messages(
    order: Int64s,
    rows: RowArrays,
    dead: DeadKeyArrays,
    limits: Rows[Limit],
    is_limited: bool,
    messages: Uint8s,
    limited: Uint8s,
    first: Int64s,
) -> None:
    """Write what each row has by each side into messages[first[side] + slot], and into `limited` what it has if
    `limits` hold (is_limited).

    order: the sides, each after those its neighbours' other sides lead by.
    O(rows times sides), and the rows that share keys.
    """
    figures, of_stream, sides = rows.figures, rows.of_stream, rows.sides
    parts, cells, heads = rows.parts, rows.cells, rows.heads
    no_marks = dead.no_marks
    all_ways = int64(MATCH | NEW | FULL)
    for s in order:
        t = s ^ 1
        i, j = sides[s].stream, sides[t].stream
        base, stride = figures[i].begins_at, figures[i].stride
        other, other_stride, low = figures[j].begins_at, figures[j].stride, figures[j].lo
        begin, end = figures[j].side, figures[j].sides_end
        is_leaf = end - begin == 1
        following, heads_at, shift = sides[t].next, sides[t].heads, sides[t].shift
        mine, theirs = parts[sides[s].part], parts[sides[t].part]
        is_single = sides[s].parts_end - sides[s].part == 1
        for slot in range(figures[i].lo, figures[i].hi):
            at = base + slot * stride
            bits, fewer = int64(0), int64(0)
            if cells[at + 1] != UNLINKED:
                word = cells[at + mine]
                x = int64(heads[heads_at + bucket(word if is_single else _hash(cells, at, parts, sides, s), shift)])
                is_known = False
                while x >= 0:
                    row = other + x * other_stride
                    if cells[row + theirs] == word and (is_single or agree(rows, at, s, row, t)):
                        is_known = True
                        if x >= low and is_leaf:
                            # Nobody stands beyond it, and no other tells more.
                            bits, fewer = int64(STANDS | MATCH | FULL), int64(STANDS | MATCH | FULL)
                            break
                        if x >= low:
                            bits |= STANDS | _ways(messages, first, of_stream, begin, end, t, x)
                            if is_limited:
                                fewer |= STANDS | _ways(limited, first, of_stream, begin, end, t, x)
                        if bits & all_ways == all_ways and (not is_limited or fewer & all_ways == all_ways):
                            break
                    x = cells[row + following]
                is_open = True
                if sides[t].unique != 0:
                    is_open = not is_known
                    if is_open:
                        place = _dead(rows, at, s, t, dead)
                        is_open = place < 0
                        if place >= 0 and no_marks[NO_CLUSTER, place] < 0:
                            # The cluster that asks began by now.
                            no_marks[NO_CLUSTER, place] = int32(figures[i].count & CLOCK_MASK)
                if is_open:
                    bits |= MATCH | NEW
                    if is_limited and not _is_closed(rows, at, s, limits):
                        fewer |= MATCH | NEW
            messages[first[s] + slot] = uint8(bits)
            if is_limited:
                limited[first[s] + slot] = uint8(fewer)


@kernel
def judge(
    figures: Rows[StreamFigures], of_stream: Int64s, cells: Int64s, messages: Uint8s, first: Int64s, keeps_full: bool,
    verdicts: Uint8s, begin: Int64s,
) -> None:  # fmt: skip
    """Write the verdict on each row into verdicts[begin[stream] + slot]; keeps_full: parts of results that hold
    stay. Rows of relations stay until they are deleted."""
    for i in range(len(figures)):
        base, stride = figures[i].begins_at, figures[i].stride
        for slot in range(figures[i].hi):
            verdict = DROPPED
            if slot >= figures[i].lo and cells[base + slot * stride + 1] != UNLINKED:
                every, some = int64(MATCH | FULL), int64(0)
                for y in range(figures[i].side, figures[i].sides_end):
                    their = int64(messages[first[of_stream[y]] + slot])
                    every &= their
                    some |= their
                if figures[i].clock == CHANGES or (every & MATCH and some & NEW) or (keeps_full and every & FULL):
                    verdict = KEPT
                elif not every & MATCH:
                    verdict = DEAD
            verdicts[begin[i] + slot] = verdict


@kernel
def pack(
    figures: Rows[StreamFigures], packed: Rows[StreamFigures], cells: Int64s, into: Int64s, verdicts: Uint8s,
    begin: Int64s,
) -> int:  # fmt: skip
    """Copy the rows that stay to their places in another array; returns how many there are.

    packed: the figures there: `begins_at` and `stride` are set; `lo` and `hi` are written. A row may get longer,
    never shorter.
    """
    total = 0
    for i in range(len(figures)):
        base, stride = figures[i].begins_at, figures[i].stride
        to, wide = packed[i].begins_at, packed[i].stride
        held = 0
        for slot in range(figures[i].hi):
            if verdicts[begin[i] + slot] == KEPT:
                for w in range(stride):
                    into[to + held * wide + w] = cells[base + slot * stride + w]
                for w in range(stride, wide):
                    into[to + held * wide + w] = 0
                held += 1
        packed[i].lo, packed[i].hi = 0, held
        total += held
    return total


@kernel
def slide(figures: Rows[StreamFigures], of_stream: Int64s, sides: Rows[Side], cells: Int64s, heads: Int32s) -> None:
    """Move the rows that stand in their windows to the front of their room; who points before them points nowhere."""
    for i in range(len(figures)):
        base, stride, low, high = figures[i].begins_at, figures[i].stride, figures[i].lo, figures[i].hi
        if low > 0:
            for w in range((high - low) * stride):
                cells[base + w] = cells[base + low * stride + w]
            for y in range(figures[i].side, figures[i].sides_end):
                s = of_stream[y]
                following = base + sides[s].next
                for slot in range(high - low):
                    at = base + slot * stride
                    if cells[at + 1] != UNLINKED:
                        cells[following + slot * stride] = max(cells[following + slot * stride] - low, int64(-1))
                first = sides[s].heads
                for b in range(first, first + (int64(1) << (64 - sides[s].shift))):
                    heads[b] = max(int64(heads[b]) - low, int64(-1))
            figures[i].lo, figures[i].hi = 0, high - low


@kernel
def pack_in_place(
    figures: Rows[StreamFigures], of_stream: Int64s, sides: Rows[Side], cells: Int64s, heads: Int32s, verdicts: Uint8s,
    begin: Int64s, forward: Int32s,
) -> None:  # fmt: skip
    """Move the rows that stay together where they stand, and let their chains pass over those that go.

    forward: room for a word for each row of a stream: in its chain the place to come of the row itself, if it stays,
    or of the next that does. Chains lead to rows that are older, so that those have theirs already.
    O(rows times sides), in the order in which they stand.
    """
    for i in range(len(figures)):
        base, stride, low, high = figures[i].begins_at, figures[i].stride, figures[i].lo, figures[i].hi
        for y in range(figures[i].side, figures[i].sides_end):
            s = of_stream[y]
            following = sides[s].next
            held = int64(0)
            for slot in range(low, high):
                at = base + slot * stride
                older = cells[at + following]
                older = int64(forward[older]) if older >= low else int64(-1)
                if verdicts[begin[i] + slot] == KEPT:
                    forward[slot] = held
                    held += 1
                    if cells[at + 1] != UNLINKED:
                        cells[at + following] = older
                else:
                    forward[slot] = older
            first = sides[s].heads
            for b in range(first, first + (int64(1) << (64 - sides[s].shift))):
                heads[b] = forward[heads[b]] if heads[b] >= low else -1
        held = int64(0)
        for slot in range(low, high):
            if verdicts[begin[i] + slot] == KEPT:
                if held < slot:
                    for w in range(stride):
                        cells[base + held * stride + w] = cells[base + slot * stride + w]
                held += 1
        figures[i].lo, figures[i].hi = 0, held


@kernel
def insert_rows(rows: RowArrays, i: int, back: Int64Table, slots: Int64s, forward: Int32s) -> None:
    """Put rows among those of stream i, in the order of their clocks, and into their buckets; there is room.

    back: (m, stride), in that order.  slots: (m,) where they will stand is written here.  forward: room for a word for
    each row of the stream: where it will stand, if it moves.
    O(rows behind the first of them), and the buckets of the stream.
    """
    figures, of_stream, parts = rows.figures, rows.of_stream, rows.parts
    sides, cells, heads = rows.sides, rows.cells, rows.heads
    base, stride, low, high = figures[i].begins_at, figures[i].stride, figures[i].lo, figures[i].hi
    clock = max(figures[i].number, int64(0))
    left = len(back)
    first = figures[i].end  # of those that move
    while left > 0:
        slot = first - 1
        if slot >= low and (slot >= high or cells[base + slot * stride + clock] > back[left - 1, clock]):
            for w in range(stride):
                cells[base + (slot + left) * stride + w] = cells[base + slot * stride + w]
            forward[slot] = slot + left
            first = slot
        else:
            left -= 1
            slots[left] = slot + 1 + left
            for w in range(stride):
                cells[base + slots[left] * stride + w] = back[left, w]
    figures[i].hi += len(back)
    figures[i].end += len(back)
    for y in range(figures[i].side, figures[i].sides_end):
        s = of_stream[y]
        following = sides[s].next
        for slot in range(first, high):
            at = base + int64(forward[slot]) * stride
            if cells[at + 1] != UNLINKED and cells[at + following] >= first:
                cells[at + following] = forward[cells[at + following]]
        begin = sides[s].heads
        for b in range(begin, begin + (int64(1) << (64 - sides[s].shift))):
            if heads[b] >= first:
                heads[b] = forward[heads[b]]
        for x in range(len(back)):
            b = begin + bucket(_hash(cells, base + slots[x] * stride, parts, sides, s), sides[s].shift)
            younger, older = int64(-1), int64(heads[b])
            while older > slots[x]:
                younger, older = older, cells[base + older * stride + following]
            cells[base + slots[x] * stride + following] = older
            if younger < 0:
                heads[b] = slots[x]
            else:
                cells[base + younger * stride + following] = slots[x]


@kernel
def expire(figures: Rows[StreamFigures], cells: Int64s, until: int) -> None:
    """Let the rows of ranges go that have left at `until`."""
    for i in range(len(figures)):
        if figures[i].clock == RANGE:
            low = figures[i].lo
            while low < figures[i].hi:
                if cells[figures[i].begins_at + low * figures[i].stride] > until - figures[i].length:
                    break
                low += 1
            figures[i].lo = low


@kernel
def link_dead(
    no: Rows[DeadFigures], sides: Rows[Side], no_keys: Int64s, no_marks: Int32Table, no_heads: Int32s, linked: Int64s
) -> None:
    """Put the dead keys from linked[side] on into their buckets."""
    for t in range(len(no)):
        words = sides[t].parts_end - sides[t].part
        for x in range(linked[t], no[t].count):
            key = no[t].words_at + x * words
            h = key_of_words(no_keys, key, words)
            b = no[t].heads + bucket(h, no[t].shift)
            no_marks[NO_NEXT, no[t].first + x] = no_heads[b]
            no_heads[b] = x
        linked[t] = no[t].count


@kernel
def classify(
    down: Int64s,
    rows: RowArrays,
    dead: DeadKeyArrays,
    limits: Rows[Limit],
    is_limited: bool,
    components: Uint8s,
    begin: Int64s,
) -> None:
    """Write each row's component into components[begin[stream] + slot] (definition 6.3.1).

    down: the sides that lead to children, those of a stream after those of its children.
    """
    figures, sides, parts, cells, heads = rows.figures, rows.sides, rows.parts, rows.cells, rows.heads
    for i in range(len(figures)):
        for slot in range(figures[i].hi):
            is_gone = slot < figures[i].lo or cells[figures[i].begins_at + slot * figures[i].stride + 1] == UNLINKED
            components[begin[i] + slot] = GONE if is_gone else YES
    for s in down:
        t = s ^ 1
        i, j = sides[s].stream, sides[t].stream
        for slot in range(figures[i].lo, figures[i].hi):
            mine = components[begin[i] + slot]
            at = figures[i].begins_at + slot * figures[i].stride
            if mine != GONE and mine != NO:
                x = int64(heads[sides[t].heads + bucket(_hash(cells, at, parts, sides, s), sides[t].shift)])
                while x >= 0:
                    row = figures[j].begins_at + x * figures[j].stride
                    if agree(rows, at, s, row, t):
                        break
                    x = cells[row + sides[t].next]
                theirs = UNKNOWN
                if x >= 0:
                    theirs = components[begin[j] + x]
                    theirs = NO if theirs == GONE else theirs
                else:
                    closed = _dead(rows, at, s, t, dead) >= 0
                    if not closed and is_limited:
                        closed = _is_closed(rows, at, s, limits)
                    if closed:
                        theirs = NO
                if theirs != YES:
                    components[begin[i] + slot] = theirs
