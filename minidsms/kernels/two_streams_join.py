"""Joining two streams with ranges where the consumer is ISTREAM, in one pass that ends in rows: a template.

As `kernels.entering_join`, of one pipeline each, but everything that holds in a plan is a constant, and nothing is
written that somebody else reads again: an element is linked as it is taken, meets the rows of the other stream in
their chain, where all that stands has come before it, and the columns of what it finds are copied out of the streams'
stores at once. Rows leave by a pointer. What leaves at an instant with insertions and may cancel one is told by the
key, which the answer shows: the rows are compared, and both are left out; so most answers have no deletions at all.

Invariant: the answer below an ISTREAM is that of `entering_join`, in the same order.  docs/semantics S1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import (
    DONE,
    FULL,
    HEADS,
    HI,
    INSPECTED,
    KEY,
    LENGTH,
    LINKED,
    LO,
    MASK,
    NODES,
    SHIFT,
    STATUS,
    STOP,
    Windows,
)
from minidsms.kernels.links import arrivals_of, came_at, has_link, head_slot, older_slot, set_link, upper_half
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import (
    Bools,
    Int8s,
    Int64s,
    Int64Table,
    byte_at,
    helper,
    int32,
    int64,
    uint64,
    word_at,
)
from minidsms.machine_code.templates import template

HAS_NULLS: tuple[bool, ...] = (True, True)
"""Of each input, whether there may be NULL keys."""
COLUMNS: tuple[tuple[int, int, bool], ...] = ((0, 8, True), (1, 1, True))
"""Of each column of the answer, its input, the bytes of a value in the store, and whether there may be NULLs."""
NETS: bool = True
"""The answer is netted by all these columns, so that rows of the join that are equal cancel."""

ADDRESS, VALID, STORE_MASK, SOURCE_WORDS = range(4)
"""Of a column of the answer: where its values and their bytes of validity stand, and the mask of the store's ring."""

_MARKS = 1024
_MARKS_SHIFT = 54
"""Keys are marked in so many places: what shifts a hash to one of them."""
_FEW = 64
"""Rows of an instant that are compared with its deletions one by one."""


class Room(NamedTuple):
    """What is put out. words: (1 + c, m) instants and columns.  valid: (c m,), of the columns that may have NULLs,
    column by column.  sign: (m,), all 1.
    """

    words: Int64Table
    valid: Bools
    sign: Int8s


class Source(NamedTuple):
    """Of what it is made. columns: (c, SOURCE_WORDS).

    marked: (1024,) the serial of the last instant that put out a row of such a key; serial: (2,), the last serial, and
    how many deletions stand in the room.
    """

    columns: Int64Table
    marked: Int64s
    serial: Int64s


@helper(inline=True)
def _put(room: Room, source: Source, at: int, instant: int, sign: int, row0: int, row1: int) -> Any:
    """Write one row, made of rows of these numbers."""
    words, columns = room.words, source.columns
    words[0, uint64(at)] = instant
    if sign < 0:
        room.sign[uint64(at)] = sign
    for c in range(len(COLUMNS)):
        number = (row0 if COLUMNS[c][0] == 0 else row1) & columns[c, STORE_MASK]
        if COLUMNS[c][1] == 8:
            words[1 + c, uint64(at)] = word_at(columns[c, ADDRESS], number)
        else:
            words[1 + c, uint64(at)] = byte_at(columns[c, ADDRESS], number)
        if COLUMNS[c][2]:
            is_valid = columns[c, VALID] == 0 or byte_at(columns[c, VALID], number) != 0
            room.valid[uint64(c * words.shape[1] + at)] = is_valid


@helper
def _equal(room: Room, a: int, b: int) -> Any:
    """Two rows are."""
    words, same = room.words, True
    for c in range(len(COLUMNS)):
        same &= words[1 + c, uint64(a)] == words[1 + c, uint64(b)]
        if COLUMNS[c][2]:
            first = c * words.shape[1]
            same &= room.valid[uint64(first + a)] == room.valid[uint64(first + b)]
    return same


@helper
def _move(room: Room, source: int, target: int, count: int) -> Any:
    """Move rows towards the beginning."""
    words = room.words
    for c in range(1 + len(COLUMNS)):
        for p in range(count):
            words[c, target + p] = words[c, source + p]
    for c in range(len(COLUMNS)):
        first = c * words.shape[1]
        for p in range(count if COLUMNS[c][2] else 0):
            room.valid[first + target + p] = room.valid[first + source + p]


@helper
def _turn(values: Any, first: int, end: int) -> Any:
    """Reverse [first, end)."""
    x, y = first, end - 1
    while x < y:
        values[x], values[y] = values[y], values[x]
        x += 1
        y -= 1


@helper
def _settle(room: Room, serial: Int64s, first: int, middle: int, end: int) -> Any:
    """Of an instant's insertions [first, middle) and the deletions behind them; returns where its rows end.

    They are netted where that is quick, else the deletions come to stand first, for the ISTREAM.
    """
    words, sign = room.words, room.sign
    if NETS and middle - first <= _FEW:
        for d in range(middle, end):
            for p in range(first, middle):
                if _equal(room, p, d):
                    _move(room, p + 1, p, middle - p - 1)
                    middle -= 1
                    break
        sign[first:end] = 1
        return int64(middle)
    for c in range(1 + len(COLUMNS)):
        _turn(words[c], first, middle)
        _turn(words[c], middle, end)
        _turn(words[c], first, end)
    for c in range(len(COLUMNS)):
        begin = c * words.shape[1]
        if COLUMNS[c][2]:
            _turn(room.valid, begin + first, begin + middle)
            _turn(room.valid, begin + middle, begin + end)
            _turn(room.valid, begin + first, begin + end)
    _turn(sign, first, end)
    serial[1] += end - middle
    return int64(end)


@template("HAS_NULLS", "COLUMNS", "NETS", gain=0.4, compile_s=4.0)
def join_two_streams(windows: Windows, source: Source, room: Room, found: int, state: Int64s) -> int:
    """Join the elements that wait, behind so many rows found; returns how many stand in the room.

    state[STATUS] is FULL where the next instant does not fit: call again with an empty room, and a larger one where
    nothing was returned.  O(elements + rows + slots inspected).
    """
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    marked, limit = source.marked, len(room.sign)
    key0, key1 = inputs[0, KEY], inputs[1, KEY]
    base0, heads0, shift0 = keys[key0, NODES], keys[key0, HEADS], keys[key0, SHIFT]
    base1, heads1, shift1 = keys[key1, NODES], keys[key1, HEADS], keys[key1, SHIFT]
    mask0, came0, length0 = inputs[0, MASK], arrivals_of(windows, 0), uint64(inputs[0, LENGTH])
    mask1, came1, length1 = inputs[1, MASK], arrivals_of(windows, 1), uint64(inputs[1, LENGTH])
    a, b, stop_a, stop_b = inputs[0, HI], inputs[1, HI], inputs[0, STOP], inputs[1, STOP]
    lo0, lo1 = inputs[0, LO], inputs[1, LO]
    was0, was1 = lo0, lo1
    inspected = int64(0)
    serial = source.serial[0]
    state[STATUS] = DONE
    while True:
        instant = int64(MAX_INSTANT)
        if a < stop_a:
            instant = came_at(nodes, came0, a)
        if b < stop_b:
            instant = min(instant, came_at(nodes, came1, b))
        if instant == MAX_INSTANT:
            break
        # [was, lo) leaves at the instant itself. Rows came before it: differences are seen right even where they wrap.
        was0 = lo0
        while was0 < a and uint64(instant) - uint64(came_at(nodes, came0, was0)) > length0:
            was0 += 1
        lo0 = was0
        while lo0 < a and uint64(instant) - uint64(came_at(nodes, came0, lo0)) == length0:
            lo0 += 1
        was1 = lo1
        while was1 < b and uint64(instant) - uint64(came_at(nodes, came1, was1)) > length1:
            was1 += 1
        lo1 = was1
        while lo1 < b and uint64(instant) - uint64(came_at(nodes, came1, lo1)) == length1:
            lo1 += 1
        first, first_a, first_b, fits = found, a, b, True
        serial += 1
        while fits and a < stop_a and came_at(nodes, came0, a) == instant:
            k = uint64(base0 + 2 * (a & mask0))
            if not HAS_NULLS[0] or has_link(nodes, k):
                tag = nodes[k]
                s = head_slot(heads, heads1 + bucket(tag, shift1), lo1)
                before = found
                while s >= lo1:
                    inspected += 1
                    q = uint64(base1 + 2 * (s & mask1))
                    if nodes[q] == tag:
                        if found == limit:
                            fits = False
                            break
                        _put(room, source, found, instant, 1, upper_half(nodes, k), upper_half(nodes, q))
                        found += 1
                    s = older_slot(nodes, q, s)
                if not fits:
                    break
                if found > before:
                    marked[uint64(bucket(tag, _MARKS_SHIFT))] = serial
                own = uint64(heads0 + bucket(tag, shift0))
                set_link(nodes, k, a - int64(heads[own]))
                heads[own] = int32(a)
            a += 1
        while fits and b < stop_b and came_at(nodes, came1, b) == instant:
            k = uint64(base1 + 2 * (b & mask1))
            if not HAS_NULLS[1] or has_link(nodes, k):
                tag = nodes[k]
                s = head_slot(heads, heads0 + bucket(tag, shift0), lo0)
                before = found
                while s >= lo0:
                    inspected += 1
                    q = uint64(base0 + 2 * (s & mask0))
                    if nodes[q] == tag:
                        if found == limit:
                            fits = False
                            break
                        _put(room, source, found, instant, 1, upper_half(nodes, q), upper_half(nodes, k))
                        found += 1
                    s = older_slot(nodes, q, s)
                if not fits:
                    break
                if found > before:
                    marked[uint64(bucket(tag, _MARKS_SHIFT))] = serial
                own = uint64(heads1 + bucket(tag, shift1))
                set_link(nodes, k, b - int64(heads[own]))
                heads[own] = int32(b)
            b += 1
        if fits and found > first and (was0 < lo0 or was1 < lo1):
            middle = found
            for x in range(was0, lo0):
                k = uint64(base0 + 2 * (x & mask0))
                tag = nodes[k]
                is_linked = not HAS_NULLS[0] or has_link(nodes, k)
                if is_linked and marked[uint64(bucket(tag, _MARKS_SHIFT))] == serial:
                    s = head_slot(heads, heads1 + bucket(tag, shift1), lo1)
                    while s >= was1 and fits:
                        inspected += 1
                        q = uint64(base1 + 2 * (s & mask1))
                        if nodes[q] == tag and s < first_b:
                            fits = found < limit
                            if fits:
                                _put(room, source, found, instant, -1, upper_half(nodes, k), upper_half(nodes, q))
                                found += 1
                        s = older_slot(nodes, q, s)
            for y in range(was1, lo1):
                k = uint64(base1 + 2 * (y & mask1))
                tag = nodes[k]
                is_linked = not HAS_NULLS[1] or has_link(nodes, k)
                if is_linked and marked[uint64(bucket(tag, _MARKS_SHIFT))] == serial:
                    s = head_slot(heads, heads0 + bucket(tag, shift0), lo0)
                    while s >= lo0 and fits:
                        inspected += 1
                        q = uint64(base0 + 2 * (s & mask0))
                        if nodes[q] == tag and s < first_a:
                            fits = found < limit
                            if fits:
                                _put(room, source, found, instant, -1, upper_half(nodes, q), upper_half(nodes, k))
                                found += 1
                        s = older_slot(nodes, q, s)
            if fits and found > middle:
                found = _settle(room, source.serial, first, middle, found)
        if not fits:
            # Of the instant that does not fit nothing stands: what it linked is first in its buckets.
            while a > first_a:
                a -= 1
                k = uint64(base0 + 2 * (a & mask0))
                if not HAS_NULLS[0] or has_link(nodes, k):
                    heads[uint64(heads0 + bucket(nodes[k], shift0))] = int32(older_slot(nodes, k, a))
            while b > first_b:
                b -= 1
                k = uint64(base1 + 2 * (b & mask1))
                if not HAS_NULLS[1] or has_link(nodes, k):
                    heads[uint64(heads1 + bucket(nodes[k], shift1))] = int32(older_slot(nodes, k, b))
            found = first
            state[STATUS] = FULL
            lo0, lo1 = was0, was1
            break
    inputs[0, HI], inputs[0, LINKED], inputs[0, LO] = a, a, was0
    inputs[1, HI], inputs[1, LINKED], inputs[1, LO] = b, b, was1
    source.serial[0] = serial
    state[INSPECTED] += inspected
    return int64(found)
