"""Joining streams with ranges in one pass that ends in rows: a template, for what an ISTREAM reads and, of two streams,
for a relation.

As `kernels.mjoin`, but everything that holds in a plan is a constant, its pipelines among it: each is compiled
to loops within each other. Nothing is written that somebody else reads again: an element is linked as it is taken,
meets the rows of the other streams in their chains, where all that stands has come before it, and the columns of what
it finds are copied out of the streams' stores at once. Rows leave by a pointer. What leaves at an instant with
insertions and may cancel one is told by the keys, which the answer shows: the rows are compared, and both are left out;
so most answers have no deletions at all.

Of a relation of two streams, which may be an outer join, every deletion is put out, at its own instant, and an instant
goes as in `kernels.pair_join`. What may cancel is told by the row's key, where the answer shows it: then both are left
out, mostly.

Invariant: the answer below an ISTREAM is that of `entering_mjoin`, in the same order; a relation, netted, is that of
`pair_join`.  docs/semantics S1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.kernels.join_layout import JoinState
from minidsms.elements import MAX_INSTANT
from minidsms.kernels.chains import Chain, next_slot
from minidsms.kernels.join_layout import (
    DONE, FULL, NO_LIMIT, PAUSED, Windows,
)
from minidsms.kernels.links import (
    UNLINKED, Arrivals, arrivals_of, came_at, has_link, head_slot, older_slot, set_link, upper_half,
)
from minidsms.kernels.merging import exchange
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import (
    Bools, Int8s, Int32s, Int64s, Int64Table, byte_at, helper, int32, int64, uint64, word_at,
)
from minidsms.machine_code.prefetching import prefetch
from minidsms.machine_code.templates import Constant, series, template
# fmt: on
# isort: on

KEYS: tuple[tuple[int], ...] = ((0,), (1,))
"""Of all windows: KEY_ROW, where `Windows.keys` has it. Other constants count the keys from 0."""
KEY_ROW: int = 0
COLUMNS: tuple[tuple[int, bool], ...] = ((8, True), (1, True))
"""Of each column of the answer, the bytes of a value in the store, and whether there may be NULLs."""
NETS: bool = True
"""The answer is netted by all these columns, so that rows of the join that are equal cancel; of a relation: each input
has one key, and the answer shows that of input 0, so that such rows have the same."""
DELETES: bool = False
"""Of two inputs: all deletions are put out."""
OUTER: bool = False
"""Of two inputs with a key each, where DELETES holds: rows of input 0 without a match are put out, too, with NULLs for
the columns of input 1."""
PIPELINES: tuple[tuple[Constant, ...], ...] = ()
"""Of each input: INPUT, HAS_NULLS, SHOWS, MARKS, AHEAD, STEPS, LINKED_BY, POSITIONS."""

INPUT: int = 0
"""The input whose element is joined."""
HAS_NULLS: bool = True
"""It may have NULL keys."""
LINKED_BY: tuple[tuple[int], ...] = ()
"""Its keys: LINKED_KEY."""
LINKED_KEY: int = 0
POSITIONS: tuple[int, ...] = ()
"""Of each column of the answer, at which position of the pipeline its input is; the element's own is 0."""
STEPS: tuple[tuple[Constant, ...], ...] = ()
"""Of its pipeline: TARGET, PROBED, SOURCE, SOURCE_INPUT, SOURCE_KEY, IS_KNOWN, DEPTH, CHECKS, SHOWS, MARKS, AHEAD."""
SHOWS: bool = True
"""The answer has a column of the input chosen last."""

TARGET: int = 0
PROBED: int = 0
"""The input that a step visits, and its key that is probed."""
SOURCE: int = 0
SOURCE_INPUT: int = 0
SOURCE_KEY: int = 0
"""The position, the input and the key that give the tag."""
DEPTH: int = 0
IS_KNOWN: bool = True
"""Which step it is; whether the first row that it finds has been looked up already."""
CHECKS: tuple[tuple[int, ...], ...] = ()
"""Further keys that are equal: SOURCE, SOURCE_INPUT, SOURCE_KEY, TARGET_KEY."""
TARGET_KEY: int = 0
AHEAD: tuple[tuple[int, ...], ...] = ()
"""Steps that ask for keys of the row chosen last: TARGET, PROBED, SOURCE_INPUT, SOURCE_KEY, DEPTH. Empty where that is
the next step alone, which finds out by itself."""
MARKS: tuple[tuple[int, ...], ...] = ()
"""Keys of the row chosen last that the answer shows, and that are equal to none of a row chosen before: MARK_INPUT,
MARK_KEY, MARK_ROW."""
MARK_INPUT: int = 0
MARK_KEY: int = 0
MARK_ROW: int = 0

ADDRESS, VALID, STORE_MASK, SOURCE_WORDS = range(4)
"""Of a column of the answer: where its values and their bytes of validity stand, and the mask of the store's ring."""

_MARKS_SHIFT = 54
"""Keys are marked in 1024 places: what shifts a hash to one of them."""
_FEW = 64
"""Rows of an instant that are compared with its deletions one by one; of a relation, of either kind."""

_SOON, _NEXT = 8, 4
"""Of two inputs with a key each, unless DELETES holds: how many elements before one asks for them its heads are sent
for, and the node that its head names."""
_MANY = 1 << 14
"""Slots of a ring, from which on its nodes are sent for: else they are mostly near."""


class Room(NamedTuple):
    """What is put out. words: (1 + c, m) instants and columns.  valid: (c m,), of the columns that may have NULLs,
    column by column.  sign: (m,), all 1.
    """

    words: Int64Table
    valid: Bools
    sign: Int8s


class Source(NamedTuple):
    """Of what it is made. columns: (c, SOURCE_WORDS).

    marked: (k, 1024), of each class of equal columns the serial of the last instant that put out a row with such a key
    (DELETES: a deletion).  firsts: of each step the first row that it finds.  serial: (4,), the last serial, how many
    deletions stand in the room, and (DELETES) how many instants that are not netted, and the serial of the last one
    with rows that may cancel.
    """

    columns: Int64Table
    marked: Int64Table
    firsts: Int64s
    serial: Int64s


class Side(NamedTuple):
    """An input. mask: of its slots.  came: when they came.  length: of its window, NO_RANGE: for ever.  stop: behind
    the last element.
    """

    mask: int
    came: Arrivals
    length: int
    stop: int


class Key(NamedTuple):
    """Where its nodes and heads begin."""

    nodes: int
    heads: int
    shift: int


class Turn(NamedTuple):
    """Of an input: its rows, [lo, hi), and [was, before) before what leaves and comes at this instant did; when the
    next element comes and the row at `lo` leaves, MAX_INSTANT where there is none.
    """

    lo: int
    hi: int
    was: int
    before: int
    comes: int
    due: int


class Given(NamedTuple):
    """What the template is given, as far as pipelines need it. sides, keys: of each input, and each key."""

    nodes: Int64s
    heads: Int32s
    room: Room
    columns: Int64Table
    marked: Int64Table
    firsts: Int64s
    serials: Int64s
    sides: Any
    keys: Any


class Now(NamedTuple):
    """An instant, its serial, whether rows are put out, 1, or deletions, -1, and whether with NULLs for the columns of
    input 1.
    """

    instant: int
    serial: int
    sign: int
    pads: bool


class Tally(NamedTuple):
    """Rows that stand in the room, slots inspected, and whether all rows had room."""

    found: int
    inspected: int
    fits: bool


# ------------------------------------------------------------------------------------------------------------ a row


@helper(inline=True)
def _node(side: Side, key: Key, slot: int) -> Any:
    """Where the word of a slot stands, and behind it what `links` says."""
    return uint64(key.nodes + 2 * (slot & side.mask))


@helper(inline=True)
def _number(nodes: Int64s, side: Side, slot: int) -> Any:
    """The number of its row in the store."""
    return upper_half(nodes, side.came.rows + 2 * (slot & side.mask))


@helper(inline=True)
def _first(heads: Int32s, key: Key, low: int, tag: int) -> Any:
    """The newest slot of a tag's bucket."""
    return head_slot(heads, key.heads + bucket(tag, key.shift), low)


@helper(inline=True)
def _put(given: Given, turns: Any, slots: Any, numbers: Any, now: Now, tally: Tally) -> Any:
    """Write one row, made of rows of these numbers."""
    room, columns = given.room, given.columns
    words, at = room.words, tally.found
    fits = at < len(room.sign)
    if fits:
        words[0, uint64(at)] = now.instant
        if now.sign < 0:
            room.sign[uint64(at)] = now.sign
        for c in range(len(COLUMNS)):
            if OUTER and now.pads and POSITIONS[c] != INPUT:
                # A column of input 1.
                words[1 + c, uint64(at)] = 0
                room.valid[uint64(c * words.shape[1] + at)] = False
                continue
            number = numbers[POSITIONS[c]] & columns[c, STORE_MASK]
            if COLUMNS[c][0] == 8:
                words[1 + c, uint64(at)] = word_at(columns[c, ADDRESS], number)
            else:
                words[1 + c, uint64(at)] = byte_at(columns[c, ADDRESS], number)
            if COLUMNS[c][1]:
                is_valid = columns[c, VALID] == 0 or byte_at(columns[c, VALID], number) != 0
                room.valid[uint64(c * words.shape[1] + at)] = is_valid
        at += 1
    return Tally(at, tally.inspected, fits)


# ------------------------------------------------------------------------------------------------------------ marks


@helper(inline=True)
def _place(nodes: Int64s, node: int) -> Any:
    return uint64(bucket(nodes[node], _MARKS_SHIFT))


@helper(inline=True)
def _marked_all(given: Given, slot: int, serial: int) -> None:
    """All are."""


@helper(inline=True)
def _mark_one(given: Given, slot: int, serial: int) -> None:
    place = _place(given.nodes, _node(given.sides[MARK_INPUT], given.keys[MARK_KEY], slot))
    given.marked[MARK_ROW, place] = serial
    _mark(given, slot, serial)


_mark = series(_mark_one, "MARKS", ("MARK_INPUT", "MARK_KEY", "MARK_ROW"), _marked_all)
"""Mark the keys of a slot: a row of them was put out at this instant."""


@helper(inline=True)
def _are_marked(given: Given, slot: int, serial: int) -> Any:
    return True


@helper(inline=True)
def _is_one_marked(given: Given, slot: int, serial: int) -> Any:
    place = _place(given.nodes, _node(given.sides[MARK_INPUT], given.keys[MARK_KEY], slot))
    return given.marked[MARK_ROW, place] == serial and _is_marked(given, slot, serial)


_is_marked = series(_is_one_marked, "MARKS", ("MARK_INPUT", "MARK_KEY", "MARK_ROW"), _are_marked)
"""The keys of a slot are."""


# ------------------------------------------------------------------------------------------------------------ steps


@helper(inline=True)
def _chain(side: Side, key: Key, turn: Turn, leaves: bool, is_behind: bool) -> Any:
    """Where a step walks. leaves: for a row that leaves, which meets what stood there before the instant, and of what
    leaves at it, too, that of the inputs behind its own.
    """
    low, high = turn.lo, int64(NO_LIMIT)
    if leaves:
        high = turn.before
        if is_behind:
            low = turn.was
    return Chain(key.nodes, int64(2), side.mask, low, high)


@helper(inline=True)
def _all_find(given: Given, turns: Any, slot: int, leaves: bool, inspected: int) -> Any:
    return True, inspected


@helper(inline=True)
def _one_finds(given: Given, turns: Any, slot: int, leaves: bool, inspected: int) -> Any:
    nodes, key = given.nodes, given.keys[PROBED]
    chain = _chain(given.sides[TARGET], key, turns[TARGET], leaves, TARGET > INPUT)
    tag = nodes[_node(given.sides[SOURCE_INPUT], given.keys[SOURCE_KEY], slot)]
    s, looked = next_slot(nodes, chain, tag, _first(given.heads, key, chain.low, tag))
    inspected += looked
    finds = s >= chain.low
    if finds:
        given.firsts[DEPTH] = s
        finds, inspected = _find(given, turns, slot, leaves, inspected)
    return finds, inspected


_find = series(_one_finds, "AHEAD", ("TARGET", "PROBED", "SOURCE_INPUT", "SOURCE_KEY", "DEPTH"), _all_find)
"""Whether all steps ahead find a row for the slot chosen, and how many slots have been inspected."""


@helper(inline=True)
def _all_equal(given: Given, slots: Any, slot: int) -> Any:
    return True


@helper(inline=True)
def _is_one_equal(given: Given, slots: Any, slot: int) -> Any:
    source = _node(given.sides[SOURCE_INPUT], given.keys[SOURCE_KEY], slots[SOURCE])
    target = _node(given.sides[TARGET], given.keys[TARGET_KEY], slot)
    return given.nodes[source] == given.nodes[target] and _are_equal(given, slots, slot)


_are_equal = series(_is_one_equal, "CHECKS", ("SOURCE", "SOURCE_INPUT", "SOURCE_KEY", "TARGET_KEY"), _all_equal)
"""The further keys of the slots chosen and of one more are equal."""


@helper(inline=True)
def _go_on(given: Given, turns: Any, slots: Any, numbers: Any, slot: int, now: Now, tally: Tally) -> Any:
    """Join the slots chosen, of which this is the last, as long as there is room."""
    found, inspected, fits = tally
    passes = now.sign > 0 or _is_marked(given, slot, now.serial)
    if passes:
        passes, inspected = _find(given, turns, slot, now.sign < 0, inspected)
    tally = Tally(found, inspected, fits)
    if passes:
        tally = _steps(given, turns, slots, numbers, now, tally)
        if now.sign > 0 and tally.found > found:
            _mark(given, slot, now.serial)
    return tally


@helper(inline=True)
def _prefetch(given: Given, slot: int) -> None:
    """Send for what the slots behind this one are going to ask the step for, and for the heads of their own buckets."""
    nodes, heads, key, side = given.nodes, given.heads, given.keys[PROBED], given.sides[TARGET]
    asking, own = given.sides[SOURCE_INPUT], given.keys[SOURCE_KEY]
    soon = nodes[_node(asking, own, slot + _SOON)]
    prefetch(heads, uint64(key.heads + bucket(soon, key.shift)))
    prefetch(heads, uint64(own.heads + bucket(soon, own.shift)))
    if side.mask >= _MANY:
        tag = nodes[_node(asking, own, slot + _NEXT)]
        prefetch(nodes, _node(side, key, int64(heads[uint64(key.heads + bucket(tag, key.shift))])))


@helper(inline=True)
def _visit(given: Given, turns: Any, slots: Any, numbers: Any, now: Now, tally: Tally) -> Any:
    """Go on with each row that a step finds."""
    if len(KEYS) == 2 and not DELETES:
        _prefetch(given, slots[SOURCE])
    nodes, side, key = given.nodes, given.sides[TARGET], given.keys[PROBED]
    chain = _chain(side, key, turns[TARGET], now.sign < 0, TARGET > INPUT)
    tag = nodes[_node(given.sides[SOURCE_INPUT], given.keys[SOURCE_KEY], slots[SOURCE])]
    s = given.firsts[DEPTH] if IS_KNOWN else _first(given.heads, key, chain.low, tag)
    found, inspected, fits = tally
    while s >= chain.low and fits:
        node = _node(side, key, s)
        inspected += 1
        if nodes[node] == tag and s < chain.high and _are_equal(given, slots, s):
            number = _number(nodes, side, s) if SHOWS else int64(0)
            tally = Tally(found, inspected, fits)
            found, inspected, fits = _go_on(given, turns, (*slots, s), (*numbers, number), s, now, tally)
        s = older_slot(nodes, node, s)
    return Tally(found, inspected, fits)


_OF_STEP = (
    "TARGET", "PROBED", "SOURCE", "SOURCE_INPUT", "SOURCE_KEY", "IS_KNOWN", "DEPTH", "CHECKS", "SHOWS", "MARKS",
    "AHEAD",
)  # fmt: skip
_steps = series(_visit, "STEPS", _OF_STEP, _put)


# ------------------------------------------------------------------------------------------------- coming and leaving


@helper(inline=True)
def _due(nodes: Int64s, side: Side, slot: int, hi: int) -> Any:
    """When the row at a slot leaves; never, where there is none."""
    due = int64(MAX_INSTANT)
    if slot < hi and side.length >= 0:
        came = came_at(nodes, side.came, slot)
        if came <= MAX_INSTANT - side.length:
            due = came + side.length
    return due


@helper(inline=True)
def _comes(nodes: Int64s, side: Side, slot: int) -> Any:
    """When the element at a slot comes."""
    instant = int64(MAX_INSTANT)
    if slot < side.stop:
        instant = came_at(nodes, side.came, slot)
    return instant


@helper(inline=True)
def _have_links(given: Given, slot: int) -> Any:
    return True


@helper(inline=True)
def _has_one_link(given: Given, slot: int) -> Any:
    return has_link(given.nodes, _node(given.sides[INPUT], given.keys[LINKED_KEY], slot)) and _has_links(given, slot)


_has_links = series(_has_one_link, "LINKED_BY", ("LINKED_KEY",), _have_links)
"""No key of a slot is NULL."""


@helper(inline=True)
def _linked_all(given: Given, slot: int, is_linked: bool) -> None:
    """All are."""


@helper(inline=True)
def _link_one(given: Given, slot: int, is_linked: bool) -> None:
    nodes, heads, key = given.nodes, given.heads, given.keys[LINKED_KEY]
    node = _node(given.sides[INPUT], key, slot)
    if is_linked:
        head = uint64(key.heads + bucket(nodes[node], key.shift))
        set_link(nodes, node, slot - int64(heads[head]))
        heads[head] = int32(slot)
    else:
        set_link(nodes, node, UNLINKED)
    _link(given, slot, is_linked)


_link = series(_link_one, "LINKED_BY", ("LINKED_KEY",), _linked_all)
"""Put a slot into the buckets of its keys, or note that it stands in none."""


@helper(inline=True)
def _unlinked_all(given: Given, slot: int) -> None:
    """All are."""


@helper(inline=True)
def _unlink_one(given: Given, slot: int) -> None:
    nodes, key = given.nodes, given.keys[LINKED_KEY]
    node = _node(given.sides[INPUT], key, slot)
    if has_link(nodes, node):
        given.heads[uint64(key.heads + bucket(nodes[node], key.shift))] = int32(older_slot(nodes, node, slot))
    _unlink(given, slot)


_unlink = series(_unlink_one, "LINKED_BY", ("LINKED_KEY",), _unlinked_all)
"""Take back what was linked last: it is first in its buckets."""


# ------------------------------------------------------------------------------------------- input after input

_OF_PIPELINE = "INPUT", "HAS_NULLS", "SHOWS", "MARKS", "AHEAD", "STEPS", "LINKED_BY", "POSITIONS"


@helper(inline=True)
def _has_begun(windows: Windows, sides: Any, turns: Any, instant: int) -> Any:
    return sides, turns, instant


@helper(inline=True)
def _one_begins(windows: Windows, sides: Any, turns: Any, instant: int) -> Any:
    inputs, nodes = windows.inputs, windows.nodes
    side = Side(inputs[INPUT].mask, arrivals_of(windows, INPUT), inputs[INPUT].length, inputs[INPUT].stop)
    lo, hi = inputs[INPUT].lo, inputs[INPUT].hi
    comes = _comes(nodes, side, hi)
    turn = Turn(lo, hi, lo, hi, comes, _due(nodes, side, lo, hi))
    return _begin(windows, (*sides, side), (*turns, turn), min(instant, comes))


_begin = series(_one_begins, "PIPELINES", _OF_PIPELINE, _has_begun)
"""The sides, the turns as the windows have them, and the first instant."""


@helper(inline=True)
def _all_keys(windows: Windows, keys: Any) -> Any:
    return keys


@helper(inline=True)
def _one_key(windows: Windows, keys: Any) -> Any:
    x = KEY_ROW
    return _keys(windows, (*keys, Key(windows.keys[x].nodes, windows.keys[x].heads, windows.keys[x].shift)))


_keys = series(_one_key, "KEYS", ("KEY_ROW",), _all_keys)


@helper(inline=True)
def _has_passed(given: Given, turns: Any, made: Any, instant: int, leaving: int) -> Any:
    return made, leaving


@helper(inline=True)
def _one_passes(given: Given, turns: Any, made: Any, instant: int, leaving: int) -> Any:
    nodes, side = given.nodes, given.sides[INPUT]
    was, hi, _, _, comes, due = turns[INPUT]
    while due < instant:
        was += 1
        due = _due(nodes, side, was, hi)
    lo = was
    while due == instant:
        lo += 1
        due = _due(nodes, side, lo, hi)
    return _pass(given, turns, (*made, Turn(lo, hi, was, hi, comes, due)), instant, leaving + lo - was)


_pass = series(_one_passes, "PIPELINES", _OF_PIPELINE, _has_passed)
"""The turns, `made` one by one, when time has passed up to an instant; and how many rows leave at it."""


@helper(inline=True)
def _change(given: Given, turns: Any, slot: int, now: Now, tally: Tally) -> Any:
    """A row comes or leaves, with each of its matches; where there is none, that of an outer join alone."""
    found = tally.found
    number = _number(given.nodes, given.sides[INPUT], slot) if SHOWS else int64(0)
    if not HAS_NULLS or _has_links(given, slot):
        tally = _go_on(given, turns, (slot,), (number,), slot, now, tally)
    if OUTER and INPUT == 0 and tally.fits and tally.found == found:
        pads = Now(now.instant, now.serial, now.sign, True)
        tally = _put(given, turns, (slot, slot), (number, number), pads, tally)
    if DELETES and NETS and tally.found > found:
        place = _place(given.nodes, _node(given.sides[INPUT], given.keys[INPUT], slot))
        if now.sign < 0:
            given.marked[0, place] = now.serial
        elif given.marked[0, place] == now.serial:
            given.serials[3] = now.serial
    return tally


@helper(inline=True)
def _toggle(given: Given, turns: Any, slot: int, low: int, now: Now, tally: Tally) -> Any:
    """Take from left rows the NULLs that they had for want of this right row's key, or give them, where no other right
    row from `low` on has it.
    """
    nodes, side, key = given.nodes, given.sides[INPUT], given.keys[INPUT]
    if not HAS_NULLS or _has_links(given, slot):
        tag = nodes[_node(side, key, slot)]
        chain = Chain(key.nodes, int64(2), side.mask, low, int64(NO_LIMIT))
        other, looked = next_slot(nodes, chain, tag, _first(given.heads, key, low, tag))
        tally = Tally(tally.found, tally.inspected + looked, tally.fits)
        if other < low:
            tally = _change(given, turns, slot, Now(now.instant, now.serial, now.sign, True), tally)
    return tally


@helper(inline=True)
def _take(given: Given, turns: Any, now: Now, tally: Tally) -> Any:
    """The elements of the instant come, one by one, and are linked. Gives the turn then, and the tally."""
    nodes, side = given.nodes, given.sides[INPUT]
    lo, hi, was, before, comes, due = turns[INPUT]
    while tally.fits and comes == now.instant:
        if OUTER and INPUT == 1:
            tally = _toggle(given, turns, hi, was, now, tally)
        else:
            tally = _change(given, turns, hi, now, tally)
        if tally.fits:
            _link(given, hi, not HAS_NULLS or _has_links(given, hi))
            hi += 1
            comes = _comes(nodes, side, hi)
    if lo == before:
        due = _due(nodes, side, lo, hi)
    return Turn(lo, hi, was, before, comes, due), tally


@helper(inline=True)
def _have_entered(given: Given, turns: Any, made: Any, now: Now, tally: Tally, following: int) -> Any:
    return made, tally, following


@helper(inline=True)
def _one_enters(given: Given, turns: Any, made: Any, now: Now, tally: Tally, following: int) -> Any:
    turn, tally = _take(given, turns, now, tally)
    return _enter(given, turns, (*made, turn), now, tally, min(following, turn.comes))


_enter = series(_one_enters, "PIPELINES", _OF_PIPELINE, _have_entered)
"""The elements of the instant come, meet what stands on the other sides, and are linked if all that has room. Gives the
turns then, the tally, and the instant that follows.
"""


@helper(inline=True)
def _have_left(given: Given, turns: Any, now: Now, tally: Tally) -> Any:
    return tally


@helper(inline=True)
def _one_leaves(given: Given, turns: Any, now: Now, tally: Tally) -> Any:
    for slot in range(turns[INPUT].was, turns[INPUT].lo):
        tally = _change(given, turns, slot, now, tally)
    return _leave(given, turns, now, tally)


_leave = series(_one_leaves, "PIPELINES", _OF_PIPELINE, _have_left)
"""What leaves at the instant leaves the others, where the instant has put out rows of its keys."""


@helper(inline=True)
def _right_changes(given: Given, turns: Any, leave: Now, come: Now, tally: Tally) -> Any:
    """Of input 1, behind which there is none."""
    turn = turns[INPUT]
    if OUTER:
        turn, tally = _take(given, turns, leave, tally)
    for slot in range(turn.was, turn.lo):
        tally = _change(given, turns, slot, leave, tally)
    middle = tally.found
    if OUTER:
        for slot in range(turn.before, turn.hi):
            tally = _change(given, turns, slot, come, tally)
        for slot in range(turn.was, turn.lo):
            tally = _toggle(given, turns, slot, slot + 1, come, tally)
    else:
        turn, tally = _take(given, turns, come, tally)
    return (turns[0], turn), middle, tally


@helper(inline=True)
def _left_changes(given: Given, turns: Any, leave: Now, come: Now, tally: Tally) -> Any:
    """Of input 0, whose rows leave first and come last."""
    for slot in range(turns[INPUT].was, turns[INPUT].lo):
        tally = _change(given, turns, slot, leave, tally)
    turns, middle, tally = _change_right(given, turns, leave, come, tally)
    turn, tally = _take(given, turns, come, tally)
    return (turn, turns[1]), middle, tally


_change_right = series(_right_changes, "PIPELINES", _OF_PIPELINE, _right_changes)
_change_both = series(_left_changes, "PIPELINES", _OF_PIPELINE, _left_changes)
"""An instant of a relation, in the order of `kernels.pair_join`. Gives the turns then, how many rows stand in the
room behind its deletions, and the tally.
"""


@helper(inline=True)
def _next_change(turns: Any, closed: int) -> Any:
    """When the next element comes or, up to an instant, the next row leaves."""
    due = min(turns[0].due, turns[1].due)
    return min(turns[0].comes, turns[1].comes, due if due <= closed else int64(MAX_INSTANT))


@helper(inline=True)
def _has_ended(windows: Windows, given: Given, turns: Any, fits: bool) -> None:
    """All have."""


@helper(inline=True)
def _one_ends(windows: Windows, given: Given, turns: Any, fits: bool) -> None:
    inputs, turn = windows.inputs, turns[INPUT]
    hi = turn.hi
    while hi > turn.before and not fits:
        hi -= 1
        _unlink(given, hi)
    lo = turn.lo if DELETES and fits else turn.was
    inputs[INPUT].lo, inputs[INPUT].hi, inputs[INPUT].linked = lo, hi, hi
    _end(windows, given, turns, fits)


_end = series(_one_ends, "PIPELINES", _OF_PIPELINE, _has_ended)
"""Tell the windows. Of an instant that does not fit, what came is to come, and what left to leave, once more."""


# ----------------------------------------------------------------------------------------------------------- an instant


@helper
def _equal(room: Room, a: int, b: int) -> Any:
    """Two rows are."""
    words, same = room.words, True
    for c in range(len(COLUMNS)):
        same &= words[1 + c, uint64(a)] == words[1 + c, uint64(b)]
        if COLUMNS[c][1]:
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
        for p in range(count if COLUMNS[c][1] else 0):
            room.valid[first + target + p] = room.valid[first + source + p]


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
        exchange(words[c], first, middle, end)
    for c in range(len(COLUMNS)):
        begin = c * words.shape[1]
        if COLUMNS[c][1]:
            exchange(room.valid, begin + first, begin + middle, begin + end)
    exchange(sign, first, middle, end)
    serial[1] += end - middle
    return int64(end)


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
            room.sign[middle] = 1
        else:
            d += 1
    return int64(end)


@template("KEYS", "COLUMNS", "NETS", "DELETES", "OUTER", "PIPELINES", gain=0.4, compile_s=6.0)
def join_streams(windows: Windows, source: Source, room: Room, found: int, state: JoinState) -> int:
    """Join the elements that wait, behind so many rows found; returns how many stand in the room.

    state.status is FULL where the next instant does not fit: call again with an empty room, and a larger one where
    nothing was returned.  PAUSED: behind an instant at which state.most slots had been inspected; call again.
    O(elements + rows + slots inspected).
    """
    columns, marked, firsts, serials = source
    sides, turns, instant = _begin(windows, (), (), int64(MAX_INSTANT))
    given = Given(windows.nodes, windows.heads, room, columns, marked, firsts, serials, sides, _keys(windows, ()))
    serial, most, closed = serials[0], state.most, state.closed
    tally = Tally(int64(found), int64(0), True)
    if DELETES:
        instant = _next_change(turns, closed)
    while instant < MAX_INSTANT and tally.fits and tally.inspected < most:
        turns, leaving = _pass(given, turns, (), instant, int64(0))
        first = tally.found
        serial += 1
        leave, come = Now(instant, serial, -1, False), Now(instant, serial, 1, False)
        if DELETES:
            turns, middle, tally = _change_both(given, turns, leave, come, tally)
            following = _next_change(turns, closed)
            if tally.fits:
                serials[1] += middle - first
                if NETS and serials[3] == serial:
                    if min(middle - first, tally.found - middle) <= _FEW:
                        tally = Tally(_cancel(room, first, middle, tally.found), tally.inspected, True)
                    else:
                        serials[2] += 1
        else:
            turns, tally, following = _enter(given, turns, (), come, tally, int64(MAX_INSTANT))
            if tally.fits and tally.found > first and leaving > 0:
                middle = tally.found
                tally = _leave(given, turns, leave, tally)
                if tally.fits and tally.found > middle:
                    settled = _settle(room, serials, first, middle, tally.found)
                    tally = Tally(settled, tally.inspected, True)
        if not tally.fits:
            # Of the instant that does not fit nothing stands.
            room.sign[first:] = 1
            tally = Tally(first, tally.inspected, False)
        instant = following
    _end(windows, given, turns, tally.fits)
    serials[0] = serial
    state.status = FULL if not tally.fits else PAUSED if instant < MAX_INSTANT else DONE
    state.inspected += tally.inspected
    return tally.found
