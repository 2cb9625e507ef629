"""A block of elements as turns: which elements a join with caches takes up next, and what they meet.

A *turn* is elements of one input at one instant, insertions or deletions. What they meet are the slots of each input
between two bounds; from one turn to the next only the bounds of the first's input move. See `kernels.block_mjoin`.

Invariant: low bounds never fall from a turn of insertions or deletions to the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.join_layout import JoinRun, Windows
from minidsms.kernels.join_program import Block
from minidsms.machine_code import Int64s, Int64Table

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.machine_code import helper, int64, uint64
from minidsms.kernels.join_layout import CANCEL, DELETE, INSERT, START
from minidsms.kernels.join_instants import next_arrivals, next_runs
from minidsms.kernels.join_program import (
    ARRIVALS, BLOCK, CANCELS, FIRST_MET, HIGHS, IS_ACTIVE, IS_OPEN, LEAVER, LOWS, OP, ROOM, ROW, ROWS, SETTLES, SIDE,
    STAMPS_ALL, TURN, TURNS, T_BEGIN, T_BOUNDS, T_END, T_INPUT, T_KIND, T_TS,
)
from minidsms.kernels.join_layout import (
    HAS_NULLS, HI, INPUT, INSTANT, KEY, LEAVING, LINKED, LO, MASK, MISSING, NODES, OLD_HI, OLD_LO, PASSED, PHASE,
    PROBE_LO, SLOT, STATUS,
)
from minidsms.kernels.links import has_link
from minidsms.kernels.chains import link_slots
# fmt: on
# isort: on


@helper
def _begin_bounds(inputs, stops, bounds, phase, i):  # type: ignore[no-untyped-def]
    """What elements of input i meet in this phase of the instant, as bounds[LOWS] and bounds[HIGHS]."""
    for j in range(len(inputs)):
        bounds[LOWS, j], bounds[HIGHS, j] = inputs[j, LO], inputs[j, OLD_HI]
        if phase == START:
            bounds[HIGHS, j] = inputs[j, HI]
        elif phase == INSERT and j < i:
            bounds[HIGHS, j] = stops[j]
        elif phase != INSERT and j >= i:
            bounds[LOWS, j] = inputs[j, OLD_LO]


@helper
def _next_instant(windows: Windows, run: JoinRun, bounds: Int64Table) -> Any:
    """Take up the next instant; returns the phase it begins with, START where none waits."""
    inputs = windows.inputs
    stops, state, of_streams = run.stops, run.state, run.of_streams
    if of_streams != 0:
        phase = next_arrivals(windows, stops, state)
    else:
        phase = next_runs(windows, run)
    if phase == INSERT:
        for j in range(len(inputs)):
            bounds[LOWS, j] = inputs[j, LO]
    return phase


class Span(NamedTuple):
    """Elements of an input in a phase: the kind of their turn, their slots as far as the block has room, and up to
    where they go; the rest comes in the next block.
    """

    kind: int
    begin: int
    end: int
    whole: int


@helper(inline=True)
def _span(inputs: Int64Table, stops: Int64s, phase: int, i: int, done: int, room: int) -> Any:
    """What input i does in a phase. done: up to where its deletions are turns already."""
    kind, begin, whole = int64(SETTLES), int64(0), int64(1)
    if phase == INSERT:
        kind, begin, whole = int64(1), inputs[i, HI], stops[i]
    elif phase == DELETE:
        kind, begin, whole = int64(-1), max(inputs[i, OLD_LO], done), inputs[i, LO]
    elif i < 0:
        kind = int64(STAMPS_ALL)
    elif i < len(inputs):
        kind, begin, whole = int64(CANCELS), inputs[i, OLD_LO], inputs[i, LO]
    end = whole
    if phase in (INSERT, DELETE):
        end = min(whole, begin + room)
    return Span(kind, begin, end, whole)


@helper(inline=True)
def _write_turn(turns: Int64s, t: int, i: int, span: Span, instant: int, bounds: Int64Table) -> None:
    """Write the span's elements of input i as the turn that begins at t."""
    at = uint64(t)
    turns[at + uint64(T_INPUT)], turns[at + uint64(T_KIND)] = i, span.kind
    turns[at + uint64(T_BEGIN)], turns[at + uint64(T_END)] = span.begin, span.end
    turns[at + uint64(T_TS)] = instant
    at += uint64(T_BOUNDS)
    for j in range(bounds.shape[1]):
        turns[at], turns[at + uint64(1)] = bounds[LOWS, j], bounds[HIGHS, j]
        at += uint64(2)


@helper(inline=True)
def _next_input(inputs: Int64Table, bounds: Int64Table, phase: int, i: int, cancels: bool) -> Any:
    """The phase and the input behind those whose elements are all turns, and what they meet. Insertions are stamped,
    what may cancel them of each input is joined, and deletions are put in front.
    """
    n = len(inputs)
    if phase == INSERT:
        bounds[HIGHS, i] = inputs[i, HI]
    elif 0 <= i < n:
        bounds[LOWS, i] = inputs[i, LO]
    i += 1
    if phase == DELETE and i == n:
        phase, i = int64(INSERT), int64(0)
    elif phase == INSERT and i == n and cancels:
        phase, i = int64(CANCEL), int64(-1)
        for j in range(n):
            bounds[LOWS, j], bounds[HIGHS, j] = inputs[j, OLD_LO], inputs[j, OLD_HI]
    elif phase == INSERT and i == n:
        phase = int64(START)
    elif i > n:
        phase = int64(START)
        for j in range(n):
            bounds[HIGHS, j] = inputs[j, HI]
    return phase, i


@helper
def _take_turns(windows: Windows, run: JoinRun, blocks: Block) -> Any:
    """Cut the elements that come next, at most work[ROOM], into turns; returns how many turns there are."""
    inputs = windows.inputs
    stops, state = run.stops, run.state
    work, turns, bounds = blocks.work, blocks.turns, blocks.bounds
    n = len(inputs)
    words = T_BOUNDS + 2 * n
    room, phase, i, done = work[ROOM], state[PHASE], state[INPUT], state[SLOT]
    t = int64(0)
    for j in range(n):
        bounds[ARRIVALS, j] = inputs[j, HI]
    _begin_bounds(inputs, stops, bounds, phase, max(i, 0))
    while room > 0 and t + words <= len(turns):
        if phase == START:
            phase = _next_instant(windows, run, bounds)
            if phase == START or state[STATUS] == MISSING:
                break
            i, done = int64(0), int64(-1)
        if t == 0:
            for j in range(n):
                bounds[FIRST_MET, j] = inputs[j, OLD_LO]
        span = _span(inputs, stops, phase, i, done, room)
        if phase == INSERT:
            inputs[i, HI] = span.end
        if phase in (INSERT, DELETE):
            room -= span.end - span.begin
            done = span.end
        if span.begin < span.end:
            _write_turn(turns, t, max(i, 0) % n, span, state[INSTANT], bounds)
            t += words
        if span.end == span.whole:
            phase, i = _next_input(inputs, bounds, phase, i, run.netted != 0 and state[LEAVING] > 0)
            done = int64(-1)
    state[PHASE], state[INPUT], state[SLOT] = phase, i, done
    return t // words


@helper
def _begin_lists(blocks: Block, count: int, windows: Windows) -> Any:
    """Write the elements of the turns into the lists of their inputs."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    turns, lists, rows = blocks.turns, blocks.lists, blocks.rows
    n = len(inputs)
    width = n + 1
    for l in range(n + 1):
        rows[l, ROWS] = rows[l, SIDE] = rows[l, ROW] = 0
    for t in range(count):
        turn = t * (T_BOUNDS + 2 * n)
        kind, i = turns[turn + T_KIND], turns[turn + T_INPUT]
        if kind == 1 or kind == -1:
            base, mask, has_nulls = keys[inputs[i, KEY], NODES], inputs[i, MASK], inputs[i, HAS_NULLS] != 0
            made = rows[i, ROWS]
            at = uint64((i * len(blocks.firsts) + made) * width)
            for slot in range(turns[turn + T_BEGIN], turns[turn + T_END]):
                if not has_nulls or has_link(nodes, base + 2 * (slot & mask)):
                    lists[at], lists[at + uint64(1 + i)] = t, slot
                    made += 1
                    at += uint64(width)
            rows[i, ROWS] = made


@helper
def open_block(windows: Windows, run: JoinRun, blocks: Block) -> Any:
    """Take up a block: its turns, its arrivals in the index, its elements in lists. False where nothing waits.

    bounds: (BOUND_WORDS, n).
    """
    inputs = windows.inputs
    state = run.state
    work, bounds = blocks.work, blocks.bounds
    n = len(inputs)
    count = _take_turns(windows, run, blocks)
    for i in range(n):
        link_slots(windows, i, bounds[ARRIVALS, i], inputs[i, HI])
        inputs[i, LINKED] = inputs[i, HI]
        if count > 0:
            inputs[i, PROBE_LO] = bounds[FIRST_MET, i]
    _begin_lists(blocks, count, windows)
    work[IS_OPEN] = 1 if count > 0 else 0
    work[OP] = work[TURN] = work[IS_ACTIVE] = state[PASSED] = 0
    work[TURNS] = count
    work[LEAVER] = -1
    work[BLOCK] += 1
    return count > 0
