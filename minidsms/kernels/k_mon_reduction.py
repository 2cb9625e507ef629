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

from minidsms.kernels.chains import first_of_key
from minidsms.kernels.chains import older as older_of
from minidsms.kernels.k_mon_keys import (
    DeadFigures,
    DeadKeyArrays,
    Limit,
    RowArrays,
    Side,
    StreamFigures,
    key_of_words,
)
from minidsms.kernels.k_mon_rows import CHANGES, RANGE, chain_of_side, first_equal, next_equal, row_at, stands
from minidsms.kernels.links import older_slot, set_link
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
def _dead(rows: RowArrays, at: int, s: int, t: int, dead: DeadKeyArrays) -> Any:
    """The place in `no_marks` of the dead key of side t that equals the columns of side s of the row at `at`; -1: there
    is none."""
    cells, parts, sides = rows.windows.nodes, rows.parts, rows.sides
    no, no_keys, no_marks, no_heads = dead.no, dead.no_keys, dead.no_marks, dead.no_heads
    place = int64(-1)
    if no[t].count > 0:
        begin, end = sides[s].part, sides[s].parts_end
        first = no[t].first
        x = int64(no_heads[no[t].heads + bucket(cells[at + sides[s].tag_at], no[t].shift)])
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
    cells, sides = rows.windows.nodes, rows.sides
    closed = cells[at] < limits[s].before
    if limits[s].order != UNORDERED:
        closed |= _ordered(cells[at + sides[s].tag_at], limits[s].order) < limits[s].below
    if sides[s].cluster >= 0:
        count = cells[at + sides[s].cluster]
        closed |= count >= 0 and count < limits[s].clustered
    return closed


@helper(inline=True)
def _ways(rows: RowArrays, messages: Uint8s, first: Int64s, t: int, x: int) -> Any:
    """What a row in slot x gives to those that reach it by its side t: MATCH, FULL by all its other sides, NEW by
    some."""
    j = rows.sides[t].stream
    every, some = int64(MATCH | FULL), int64(0)
    for y in range(rows.windows.inputs[j].key, rows.streams[j].sides_end):
        u = rows.of_key[y]
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
    inputs, streams, sides, cells = rows.windows.inputs, rows.streams, rows.sides, rows.windows.nodes
    no_marks = dead.no_marks
    all_ways = int64(MATCH | NEW | FULL)
    for s in order:
        t = s ^ 1
        i, j = sides[s].stream, sides[t].stream
        low = inputs[j].lo
        is_leaf = streams[j].sides_end - inputs[j].key == 1
        tag_at, key = sides[s].tag_at, sides[t].key
        # A row that has left may still tell that its key is known.
        chain = chain_of_side(rows, t, int64(0))
        for slot in range(inputs[i].lo, inputs[i].hi):
            at = row_at(rows, i, slot)
            bits, fewer = int64(0), int64(0)
            if stands(rows, i, slot):
                tag = cells[at + tag_at]
                x = next_equal(rows, at, s, t, chain, tag, first_of_key(rows.windows, j, key, tag))
                is_known = x >= 0
                while x >= 0:
                    if x >= low and is_leaf:
                        # Nobody stands beyond it, and no other tells more.
                        bits, fewer = int64(STANDS | MATCH | FULL), int64(STANDS | MATCH | FULL)
                        break
                    if x >= low:
                        bits |= STANDS | _ways(rows, messages, first, t, x)
                        if is_limited:
                            fewer |= STANDS | _ways(rows, limited, first, t, x)
                    if bits & all_ways == all_ways and (not is_limited or fewer & all_ways == all_ways):
                        break
                    x = next_equal(rows, at, s, t, chain, tag, older_of(cells, chain, x))
                is_open = True
                if sides[t].unique != 0:
                    is_open = not is_known
                    if is_open:
                        place = _dead(rows, at, s, t, dead)
                        is_open = place < 0
                        if place >= 0 and no_marks[NO_CLUSTER, place] < 0:
                            # The cluster that asks began by now.
                            no_marks[NO_CLUSTER, place] = int32(streams[i].count & CLOCK_MASK)
                if is_open:
                    bits |= MATCH | NEW
                    if is_limited and not _is_closed(rows, at, s, limits):
                        fewer |= MATCH | NEW
            messages[first[s] + slot] = uint8(bits)
            if is_limited:
                limited[first[s] + slot] = uint8(fewer)


@kernel
def judge(rows: RowArrays, messages: Uint8s, first: Int64s, keeps_full: bool, verdicts: Uint8s, begin: Int64s) -> None:
    """Write the verdict on each row into verdicts[begin[stream] + slot]; keeps_full: parts of results that hold
    stay. Rows of relations stay until they are deleted."""
    inputs, streams = rows.windows.inputs, rows.streams
    for i in range(len(inputs)):
        for slot in range(inputs[i].hi):
            verdict = DROPPED
            if slot >= inputs[i].lo and stands(rows, i, slot):
                every, some = int64(MATCH | FULL), int64(0)
                for y in range(inputs[i].key, streams[i].sides_end):
                    their = int64(messages[first[rows.of_key[y]] + slot])
                    every &= their
                    some |= their
                if streams[i].clock == CHANGES or (every & MATCH and some & NEW) or (keeps_full and every & FULL):
                    verdict = KEPT
                elif not every & MATCH:
                    verdict = DEAD
            verdicts[begin[i] + slot] = verdict


@kernel
def pack(
    before: Rows[StreamFigures], strides: Int64s, cells: Int64s, highs: Int64s, into: RowArrays, verdicts: Uint8s,
    begin: Int64s,
) -> int:  # fmt: skip
    """Copy the rows that stay to their places in other arrays; returns how many there are.

    before, strides, cells, highs: of the streams where they stand.  A row may get longer, never shorter.
    """
    inputs, total = into.windows.inputs, 0
    for i in range(len(before)):
        base, stride = before[i].begins_at, strides[i]
        to, wide = into.streams[i].begins_at, into.strides[i]
        held = 0
        for slot in range(highs[i]):
            if verdicts[begin[i] + slot] == KEPT:
                for w in range(stride):
                    into.windows.nodes[to + held * wide + w] = cells[base + slot * stride + w]
                for w in range(stride, wide):
                    into.windows.nodes[to + held * wide + w] = 0
                held += 1
        inputs[i].lo, inputs[i].hi = 0, held
        total += held
    return total


@helper(inline=True)
def _buckets(rows: RowArrays, y: int) -> Any:
    """Where the buckets of a key begin and end."""
    first = rows.windows.keys[y].heads
    return first, first + (int64(1) << (64 - rows.windows.keys[y].shift))


@kernel
def slide(rows: RowArrays) -> None:
    """Move the rows that stand in their windows to the front of their room; who points before them points nowhere."""
    inputs, cells, heads = rows.windows.inputs, rows.windows.nodes, rows.windows.heads
    for i in range(len(inputs)):
        base, stride, low, high = rows.streams[i].begins_at, rows.strides[i], inputs[i].lo, inputs[i].hi
        if low > 0:
            for w in range((high - low) * stride):
                cells[base + w] = cells[base + low * stride + w]
            for y in range(inputs[i].key, inputs[i].keys_end):
                first, end = _buckets(rows, y)
                for b in range(first, end):
                    heads[b] = max(int64(heads[b]) - low, int64(-1))
            inputs[i].lo, inputs[i].hi = 0, high - low


@kernel
def pack_in_place(rows: RowArrays, verdicts: Uint8s, begin: Int64s, forward: Int32s) -> None:
    """Move the rows that stay together where they stand, and let their chains pass over those that go.

    forward: room for a word for each row of a stream: in its chain the place to come of the row itself, if it stays,
    or of the next that does. Chains lead to rows that are older, so that those have theirs already.
    O(rows times sides), in the order in which they stand.
    """
    inputs, cells, heads = rows.windows.inputs, rows.windows.nodes, rows.windows.heads
    for i in range(len(inputs)):
        base, stride, low, high = rows.streams[i].begins_at, rows.strides[i], inputs[i].lo, inputs[i].hi
        for y in range(inputs[i].key, inputs[i].keys_end):
            nodes = rows.windows.keys[y].nodes
            held = int64(0)
            for slot in range(low, high):
                # What stands in no bucket may seem to follow itself, or what comes behind it.
                older = older_slot(cells, nodes + slot * stride, slot)
                older = int64(forward[older]) if low <= older < slot else int64(-1)
                if verdicts[begin[i] + slot] == KEPT:
                    set_link(cells, nodes + slot * stride, held - older)
                    forward[slot] = held
                    held += 1
                else:
                    forward[slot] = older
            first, end = _buckets(rows, y)
            for b in range(first, end):
                heads[b] = forward[heads[b]] if heads[b] >= low else -1
        held = int64(0)
        for slot in range(low, high):
            if verdicts[begin[i] + slot] == KEPT:
                if held < slot:
                    for w in range(stride):
                        cells[base + held * stride + w] = cells[base + slot * stride + w]
                held += 1
        inputs[i].lo, inputs[i].hi = 0, held


@kernel
def insert_rows(rows: RowArrays, i: int, back: Int64Table, slots: Int64s, forward: Int32s) -> None:
    """Put rows among those of stream i, in the order of their clocks, and into their buckets; there is room.

    back: (m, stride), in that order.  slots: (m,) where they will stand is written here.  forward: room for a word for
    each row of the stream: where it will stand, if it moves.
    O(rows behind the first of them), and the buckets of the stream.
    """
    inputs, streams, cells, heads = rows.windows.inputs, rows.streams, rows.windows.nodes, rows.windows.heads
    base, stride, low, high = streams[i].begins_at, rows.strides[i], inputs[i].lo, inputs[i].hi
    clock = max(streams[i].number, int64(0))
    left = len(back)
    first = streams[i].end  # of those that move
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
    inputs[i].hi += len(back)
    streams[i].end += len(back)
    for y in range(inputs[i].key, inputs[i].keys_end):
        nodes = rows.windows.keys[y].nodes
        for slot in range(first, high):
            moved = int64(forward[slot])
            if stands(rows, i, moved):
                older = older_slot(cells, nodes + moved * stride, slot)
                set_link(cells, nodes + moved * stride, moved - (int64(forward[older]) if older >= first else older))
        begin, end = _buckets(rows, y)
        for b in range(begin, end):
            if heads[b] >= first:
                heads[b] = forward[heads[b]]
        for slot in slots:
            b = begin + bucket(cells[nodes + slot * stride], rows.windows.keys[y].shift)
            younger, older = int64(-1), int64(heads[b])
            while older > slot:
                younger, older = older, older_slot(cells, nodes + older * stride, older)
            set_link(cells, nodes + slot * stride, slot - older)
            if younger < 0:
                heads[b] = slot
            else:
                set_link(cells, nodes + younger * stride, younger - slot)


@kernel
def expire(rows: RowArrays, until: int) -> None:
    """Let the rows of ranges go that have left at `until`."""
    inputs, streams, cells = rows.windows.inputs, rows.streams, rows.windows.nodes
    for i in range(len(inputs)):
        if streams[i].clock == RANGE:
            low = inputs[i].lo
            while low < inputs[i].hi and cells[row_at(rows, i, low)] <= until - streams[i].length:
                low += 1
            inputs[i].lo = low


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
    inputs, sides = rows.windows.inputs, rows.sides
    for i in range(len(inputs)):
        for slot in range(inputs[i].hi):
            is_there = slot >= inputs[i].lo and stands(rows, i, slot)
            components[begin[i] + slot] = YES if is_there else GONE
    for s in down:
        t = s ^ 1
        i, j = sides[s].stream, sides[t].stream
        chain = chain_of_side(rows, t, int64(0))
        for slot in range(inputs[i].lo, inputs[i].hi):
            mine = components[begin[i] + slot]
            at = row_at(rows, i, slot)
            if mine != GONE and mine != NO:
                x = first_equal(rows, at, s, t, chain)
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
