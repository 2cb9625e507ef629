"""Joining two streams with ranges, below an ISTREAM or by a left outer join, in one pass that ends in rows: a template.

As `kernels.entering_join`, of one pipeline each, but everything that holds in a plan is a constant, and nothing is
written that somebody else reads again: an element is linked as it is taken, meets the rows of the other stream in
their chain, where all that stands has come before it, and the columns of what it finds are copied out of the streams'
stores at once. Rows leave by a pointer. What leaves at an instant with insertions and may cancel one is told by the
key, which the answer shows: the rows are compared, and both are left out; so most answers have no deletions at all.

Of an outer join every deletion is put out, at its own instant, and an instant goes as in `kernels.pair_join`. What may
cancel is told by the left row's key, where the answer shows it: then both are left out, mostly.

Invariant: the answer below an ISTREAM is that of `entering_join`, in the same order; that of an outer join, netted, is
that of `pair_join`.  docs/semantics S1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import (
    CLOSED, DONE, FULL, HEADS, HI, INSPECTED, KEY, LENGTH, LINKED, LO, MASK, NO_RANGE, NODES, SHIFT, STATUS, STOP,
    Windows,
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
"""The answer is netted by all these columns, so that rows of the join that are equal cancel; of an outer join: it shows
the left key, so that such rows have the same."""
OUTER: bool = False
"""Rows of input 0 without a match are put out, too, with NULLs for the columns of input 1, and so are all deletions."""

ADDRESS, VALID, STORE_MASK, SOURCE_WORDS = range(4)
"""Of a column of the answer: where its values and their bytes of validity stand, and the mask of the store's ring."""

_MARKS = 1024
_MARKS_SHIFT = 54
"""Keys are marked in so many places: what shifts a hash to one of them."""
_FEW = 64
"""Rows of an instant that are compared with its deletions one by one; of an outer join, of either kind."""


class Room(NamedTuple):
    """What is put out. words: (1 + c, m) instants and columns.  valid: (c m,), of the columns that may have NULLs,
    column by column.  sign: (m,), all 1; of an outer join anything.
    """

    words: Int64Table
    valid: Bools
    sign: Int8s


class Source(NamedTuple):
    """Of what it is made. columns: (c, SOURCE_WORDS).

    marked: (1024,) the serial of the last instant that put out a row of such a key (OUTER: a deletion).  serial: (3,),
    the last serial, how many deletions stand in the room (OUTER: instants that are not netted), and (OUTER) that of the
    last instant with rows that may cancel.
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
def _put(room: Room, source: Source, at: int, instant: int, sign: int, row0: int, row1: int, pads: bool) -> Any:
    """Write one row, made of rows of these numbers. pads: there is none of input 1."""
    words, columns = room.words, source.columns
    words[0, uint64(at)] = instant
    if OUTER or sign < 0:
        room.sign[uint64(at)] = sign
    for c in range(len(COLUMNS)):
        if pads and COLUMNS[c][0] == 1:
            words[1 + c, uint64(at)] = 0
            room.valid[uint64(c * words.shape[1] + at)] = False
            continue
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
    given: Given, own: Side, other: Side, slot: int, among: tuple[int, int], now: Now, sign: int, tally: Tally,
    pads: bool = False,
) -> Any:  # fmt: skip
    """A row of the slot and each of the other input with its key in [low, end), as long as there is room. pads: the
    other one alone.
    """
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
                _put(room, source, found, now.instant, sign, upper_half(nodes, first), upper_half(nodes, second), pads)
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
            _link(windows, own, slot)
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
def _link(windows: Windows, side: Side, slot: int) -> Any:
    """Put a slot at the head of its bucket."""
    head = _head(side, windows.nodes[_node(side, slot)])
    set_link(windows.nodes, _node(side, slot), slot - int64(windows.heads[head]))
    windows.heads[head] = int32(slot)


@helper(inline=True)
def _unlink(windows: Windows, side: Side, slot: int) -> Any:
    """Take back what was linked last: it is first in its bucket."""
    node = _node(side, slot)
    if _is_linked(windows, side, slot):
        windows.heads[_head(side, windows.nodes[node])] = int32(older_slot(windows.nodes, node, slot))


# --------------------------------------------------------------------------------------------------------- outer joins


@helper(inline=True)
def _leaves(windows: Windows, side: Side, slot: int, end: int, closed: int) -> Any:
    """When the row of the slot leaves, if that is up to an instant; MAX_INSTANT else."""
    leaves = int64(MAX_INSTANT)
    if slot < end and int64(side.length) != NO_RANGE:
        at = _came(windows, side, slot) + int64(side.length)
        if at <= closed:
            leaves = at
    return leaves


@helper(inline=True)
def _noted(given: Given, own: Side, slot: int, now: Now, sign: int) -> Any:
    """A row of this slot's key has been put out: of a deletion its key is marked, an insertion may cancel one."""
    if NETS:
        source = given.source
        place = uint64(bucket(given.windows.nodes[_node(own, slot)], _MARKS_SHIFT))
        if sign < 0:
            source.marked[place] = now.serial
        elif source.marked[place] == now.serial:
            source.serial[2] = now.serial


@helper(inline=True)
def _change(
    given: Given, own: Side, other: Side, slot: int, low: int, now: Now, sign: int, tally: Tally, pads: bool
) -> Any:
    """As `_meet`, of all from `low` on; what is put out is noted."""
    if _is_linked(given.windows, own, slot):
        before = tally.found
        tally = _meet(given, own, other, slot, (low, MAX_INSTANT), now, sign, tally, pads)
        if tally.found > before:
            _noted(given, own, slot, now, sign)
    return tally


@helper(inline=True)
def _keep_or_pad(given: Given, left: Side, right: Side, slot: int, low: int, now: Now, sign: int, tally: Tally) -> Any:
    """A left row comes or leaves, with each of its matches or with none."""
    before = tally.found
    tally = _change(given, left, right, slot, low, now, sign, tally, False)
    found, inspected, fits = tally
    if fits and found == before:
        fits = found < len(given.room.sign)
        if fits:
            row = upper_half(given.windows.nodes, _node(left, slot))
            _put(given.room, given.source, found, now.instant, sign, row, 0, True)
            found += 1
            _noted(given, left, slot, now, sign)
    return Tally(found, inspected, fits)


@helper(inline=True)
def _toggle(
    given: Given, left: Side, right: Side, slot: int, among: tuple[int, int], low: int, now: Now, sign: int,
    tally: Tally,
) -> Any:  # fmt: skip
    """Take from left rows, from `low` on, the NULLs that they had for want of this right row's key, or give them, where
    no other row in among[0] >= .. >= among[1] has it.
    """
    nodes = given.windows.nodes
    s, lowest = among
    tag = nodes[_node(right, slot)]
    inspected = int64(0)
    while s >= lowest:
        node = _node(right, s)
        inspected += 1
        if nodes[node] == tag:
            break
        s = older_slot(nodes, node, s)
    tally = Tally(tally.found, tally.inspected + inspected, tally.fits)
    if s < lowest:
        tally = _change(given, right, left, slot, low, now, sign, tally, True)
    return tally


@helper
def _cancel(room: Room, first: int, middle: int, end: int) -> Any:
    """Leave out equal ones of an instant's deletions [first, middle) and insertions behind them; its end."""
    d = first
    while d < middle:
        p = middle
        while p < end and not _equal(room, d, p):
            p += 1
        if p < end:
            _move(room, p + 1, p, end - p - 1)
            _move(room, d + 1, d, end - d - 2)
            end -= 2
            middle -= 1
        else:
            d += 1
    room.sign[first:middle] = -1
    room.sign[middle:end] = 1
    return int64(end)


# -------------------------------------------------------------------------------------------------------------- netting


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


@template("HAS_NULLS", "COLUMNS", "NETS", "OUTER", gain=0.4, compile_s=4.0)
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
    serial, closed = source.serial[0], state[CLOSED]
    tally = Tally(int64(found), int64(0), True)
    while True:
        instant = int64(MAX_INSTANT)
        if a < stop_a:
            instant = _came(windows, left, a)
        if b < stop_b:
            instant = min(instant, _came(windows, right, b))
        if OUTER:
            instant = min(instant, _leaves(windows, left, lo0, a, closed), _leaves(windows, right, lo1, b, closed))
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
        if OUTER:
            for x in range(was0, lo0):
                tally = _keep_or_pad(given, left, right, x, was1, now, -1, tally)
            while tally.fits and b < stop_b and _came(windows, right, b) == instant:
                if _is_linked(windows, right, b):
                    _link(windows, right, b)
                    others = older_slot(windows.nodes, _node(right, b), b), was1
                    tally = _toggle(given, left, right, b, others, lo0, now, -1, tally)
                b += 1
            for y in range(was1, lo1):
                tally = _change(given, right, left, y, lo0, now, -1, tally, False)
            middle = tally.found
            for y in range(first_b, b):
                tally = _change(given, right, left, y, lo0, now, 1, tally, False)
            for y in range(was1, lo1):
                if _is_linked(windows, right, y):
                    head = _head(right, windows.nodes[_node(right, y)])
                    others = head_slot(windows.heads, head, lo1), int64(y + 1)
                    tally = _toggle(given, left, right, y, others, lo0, now, 1, tally)
            while tally.fits and a < stop_a and _came(windows, left, a) == instant:
                tally = _keep_or_pad(given, left, right, a, lo1, now, 1, tally)
                if tally.fits:
                    if _is_linked(windows, left, a):
                        _link(windows, left, a)
                    a += 1
            if NETS and tally.fits and source.serial[2] == serial:
                if min(middle - first, tally.found - middle) <= _FEW:
                    tally = Tally(_cancel(room, first, middle, tally.found), tally.inspected, True)
                else:
                    source.serial[1] += 1
        else:
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
    if OUTER:
        was0, was1 = lo0, lo1
    inputs[0, HI], inputs[0, LINKED], inputs[0, LO] = a, a, was0
    inputs[1, HI], inputs[1, LINKED], inputs[1, LO] = b, b, was1
    source.serial[0] = serial
    state[STATUS] = DONE if tally.fits else FULL
    state[INSPECTED] += tally.inspected
    return tally.found
