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

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import (
    DONE, FULL, HEADS, HI, INSPECTED, KEY, LENGTH, LINKED, LO, MASK, NODES, SHIFT, STATUS, STOP, Windows,
)
from minidsms.kernels.links import Arrivals, arrivals_of, came_at, has_link, head_slot, older_slot, set_link, upper_half
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Bools, Int8s, Int64s, Int64Table, byte_at, helper, int32, int64, uint64, word_at
from minidsms.machine_code.templates import template
# fmt: on
# isort: on

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


class Given(NamedTuple):
    """What the template is given."""

    windows: Windows
    source: Source
    room: Room


class Side(NamedTuple):
    """An input. number: which it is.  nodes, heads, shift: of its key.  mask: of its slots.  came: when they came.
    length: of its window.
    """

    number: int
    nodes: int
    heads: int
    shift: int
    mask: int
    came: Arrivals
    length: Any


class Now(NamedTuple):
    """An instant, and its serial."""

    instant: int
    serial: int


class Tally(NamedTuple):
    """Rows that stand in the room, slots inspected, and whether all rows had room."""

    found: int
    inspected: int
    fits: bool


@helper(inline=True)
def _side(windows: Windows, number: int) -> Any:
    inputs, keys = windows.inputs, windows.keys
    key, mask, length = inputs[number, KEY], inputs[number, MASK], uint64(inputs[number, LENGTH])
    return Side(
        number, keys[key, NODES], keys[key, HEADS], keys[key, SHIFT], mask, arrivals_of(windows, number), length
    )


@helper(inline=True)
def _came(windows: Windows, side: Side, slot: int) -> Any:
    """The instant of a slot."""
    return came_at(windows.nodes, side.came, slot)


@helper(inline=True)
def _behind(windows: Windows, side: Side, slot: int, end: int, instant: int, leaves: bool) -> Any:
    """The first slot from this one on that has not left before the instant; leaves: nor at it. Rows came before it:
    differences are seen right even where they wrap.
    """
    while slot < end:
        age = uint64(instant) - uint64(_came(windows, side, slot))
        if age < side.length or (age == side.length and not leaves):
            break
        slot += 1
    return slot


@helper(inline=True)
def _node(side: Side, slot: int) -> Any:
    """Where the tag of a slot's key stands, and behind it what `links` says."""
    return uint64(side.nodes + 2 * (slot & side.mask))


@helper(inline=True)
def _is_linked(windows: Windows, side: Side, slot: int) -> Any:
    """The key is not NULL."""
    return not HAS_NULLS[side.number] or has_link(windows.nodes, _node(side, slot))


@helper(inline=True)
def _head(side: Side, tag: int) -> Any:
    """Where the first slot of a tag's bucket stands."""
    return uint64(side.heads + bucket(tag, side.shift))


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


@helper(inline=True)
def _meet(
    given: Given, own: Side, other: Side, slot: int, among: tuple[int, int], now: Now, sign: int, tally: Tally
) -> Any:
    """A row of the slot and each of the other input with its key in [low, end), as long as there is room."""
    windows, source, room = given
    nodes = windows.nodes
    low, end = among
    found, inspected, fits = tally
    at = _node(own, slot)
    tag = nodes[at]
    s = head_slot(windows.heads, _head(other, tag), low)
    while s >= low and fits:
        inspected += 1
        node = _node(other, s)
        if nodes[node] == tag and s < end:
            fits = found < len(room.sign)
            if fits:
                first, second = (at, node) if own.number == 0 else (node, at)
                _put(room, source, found, now.instant, sign, upper_half(nodes, first), upper_half(nodes, second))
                found += 1
        s = older_slot(nodes, node, s)
    return Tally(found, inspected, fits)


@helper(inline=True)
def _enter(given: Given, own: Side, other: Side, slot: int, low: int, now: Now, tally: Tally) -> Any:
    """An element comes: it meets what stands on the other side from `low` on, and is linked if all that has room."""
    windows = given.windows
    if _is_linked(windows, own, slot):
        before = tally.found
        tally = _meet(given, own, other, slot, (low, MAX_INSTANT), now, 1, tally)
        if tally.fits:
            tag = windows.nodes[_node(own, slot)]
            if tally.found > before:
                given.source.marked[uint64(bucket(tag, _MARKS_SHIFT))] = now.serial
            head = _head(own, tag)
            set_link(windows.nodes, _node(own, slot), slot - int64(windows.heads[head]))
            windows.heads[head] = int32(slot)
    return tally


@helper(inline=True)
def _leave(
    given: Given, own: Side, other: Side, slot: int, among: tuple[int, int], now: Now, tally: Tally
) -> Any:  # fmt: skip
    """A row leaves those in [low, end), if the instant has put out one of its key."""
    tag = given.windows.nodes[_node(own, slot)]
    if _is_linked(given.windows, own, slot) and given.source.marked[uint64(bucket(tag, _MARKS_SHIFT))] == now.serial:
        tally = _meet(given, own, other, slot, among, now, -1, tally)
    return tally


@helper(inline=True)
def _unlink(windows: Windows, side: Side, slot: int) -> Any:
    """Take back what was linked last: it is first in its bucket."""
    node = _node(side, slot)
    if _is_linked(windows, side, slot):
        windows.heads[_head(side, windows.nodes[node])] = int32(older_slot(windows.nodes, node, slot))


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
    given, inputs = Given(windows, source, room), windows.inputs
    left, right = _side(windows, 0), _side(windows, 1)
    a, b, stop_a, stop_b = inputs[0, HI], inputs[1, HI], inputs[0, STOP], inputs[1, STOP]
    lo0, lo1 = inputs[0, LO], inputs[1, LO]
    was0, was1 = lo0, lo1
    serial = source.serial[0]
    tally = Tally(int64(found), int64(0), True)
    while True:
        instant = int64(MAX_INSTANT)
        if a < stop_a:
            instant = _came(windows, left, a)
        if b < stop_b:
            instant = min(instant, _came(windows, right, b))
        if instant == MAX_INSTANT:
            break
        # [was, lo) leaves at the instant itself.
        was0 = _behind(windows, left, lo0, a, instant, False)
        lo0 = _behind(windows, left, was0, a, instant, True)
        was1 = _behind(windows, right, lo1, b, instant, False)
        lo1 = _behind(windows, right, was1, b, instant, True)
        first, first_a, first_b = tally.found, a, b
        serial += 1
        now = Now(instant, serial)
        while tally.fits and a < stop_a and _came(windows, left, a) == instant:
            tally = _enter(given, left, right, a, lo1, now, tally)
            a += tally.fits
        while tally.fits and b < stop_b and _came(windows, right, b) == instant:
            tally = _enter(given, right, left, b, lo0, now, tally)
            b += tally.fits
        if tally.fits and tally.found > first and (was0 < lo0 or was1 < lo1):
            middle = tally.found
            for x in range(was0, lo0):
                tally = _leave(given, left, right, x, (was1, first_b), now, tally)
            for y in range(was1, lo1):
                tally = _leave(given, right, left, y, (lo0, first_a), now, tally)
            if tally.fits and tally.found > middle:
                settled = _settle(room, source.serial, first, middle, tally.found)
                tally = Tally(settled, tally.inspected, True)
        if not tally.fits:
            # Of the instant that does not fit nothing stands.
            while a > first_a:
                a -= 1
                _unlink(windows, left, a)
            while b > first_b:
                b -= 1
                _unlink(windows, right, b)
            tally = Tally(first, tally.inspected, False)
            lo0, lo1 = was0, was1
            break
    inputs[0, HI], inputs[0, LINKED], inputs[0, LO] = a, a, was0
    inputs[1, HI], inputs[1, LINKED], inputs[1, LO] = b, b, was1
    source.serial[0] = serial
    state[STATUS] = DONE if tally.fits else FULL
    state[INSPECTED] += tally.inspected
    return tally.found
