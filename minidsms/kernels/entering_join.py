"""Joining n streams with ranges where the consumer is ISTREAM: what enters, instant by instant.

The index is that of `join_layout`, but no deletion is ever an element: when the row of a slot came says whether it is
there. Work goes by *blocks*, some whole instants of all inputs:
  1. every element of the block is linked, key by key;
  2. *drop probing*: of each input, step after step of its pipeline that asks for the element's own key, the elements
     for which the other input has no row are dropped, and where the first row was found is kept; then, while it pays,
     step after step that asks for the key of such a row, alone;
  3. *output generation*: what is left is joined depth first, in the order of the instants, going on at the rows found.
     A row chosen on the way is dropped, too, as soon as one of the steps that ask for its keys finds nothing.
Loops over a block's elements keep their figures in registers and do not wait for one another, which one loop over all
inputs' elements would. Probes pass over rows of the block that come later; a block shrinks where these are many.
So, where no form runs, whole queries take less time than by `kernels.mjoin`: it took 1.74 of it where hardly an element
finds something, 1.48 with windows of 30,000 rows, and 0.88 to 1.13 where a third or more do.

Rows that leave at an instant with insertions are probed only to cancel these (docs/semantics S1). Babu 2005, 5.2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.access_methods.hashes import hashed_tag
from minidsms.kernels.chains import (
    Chain,
    chain_between,
    checks_hold,
    first_slot,
    further,
    is_linked,
    link_slots,
    next_slot,
    older,
    place_steps,
    step_tag,
    tag_at,
)
from minidsms.kernels.join_layout import (
    ASKED,
    CHECK,
    CHECKS_END,
    CROWDED,
    DELETED,
    DONE,
    FOLLOWING,
    FOUND,
    FULL,
    HAS_NULLS,
    HASHED,
    HI,
    INSPECTED,
    INSTANT,
    LENGTH,
    LINKED,
    LO,
    MASK,
    MOST,
    NEEDED,
    PASSED,
    PAUSED,
    REACH,
    ROWS,
    SIZE,
    SOURCE_MASK,
    SOURCE_NODES,
    STATUS,
    STOP,
    SURVIVOR,
    SURVIVORS,
    TAG,
    TARGET,
    TARGET_HEADS,
    TARGET_MASK,
    TARGET_NODES,
    TARGET_SHIFT,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_routes import Routes, pipeline_of
from minidsms.kernels.join_stamps import deletions_first, is_stamped, put_tuple, stamp
from minidsms.kernels.links import Arrivals, arrivals_of, came_at, has_link, head_slot, older_slot
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64Cube, Int64s, Int64Table, helper, int64, kernel, uint64

TRIED, DROPPED, IS_DROPPING, LOOKS_AHEAD, DROP_WORDS = range(5)
"""Of a step: of how many elements drop probing behind another step has dropped how many, and whether drop probing asks
it: for the one tag of a row; whether its rows are looked up before any is gone on with (`_look_ahead`)."""

_LEAST_BLOCK = 4

_ENOUGH = 64
"""Elements after which a step that drops less than a quarter of them behind another one is not asked so any more."""


class Scratch(NamedTuple):
    """Of a block. alive: (n + 1, c) slots for c elements of an input, and of a part of them.  firsts: (n, n - 1, c),
    the first slot that a step finds for each.  there: (THERE_ROWS, n), see `_turn_to`.  ahead: (4, n - 1, AHEAD), see
    `_look_ahead`.  begun: (BEGUN_WORDS,).
    """

    alive: Int64Table
    firsts: Int64Cube
    there: Int64Table
    ahead: Int64Cube
    begun: Int64s


class Pipelines(NamedTuple):
    """steps, checks, routes: as of `mjoin`.  drops: DROP_WORDS of each step (`begin_part`)."""

    steps: Int64Table
    drops: Int64Table
    checks: Int64Table
    routes: Routes


AHEAD = 64
"""Rows of a step that are looked at together, before they are gone on with one by one."""
AHEAD_SLOT, AHEAD_FOUND, AHEAD_TAG, AHEAD_COUNTS, AHEAD_ROWS = range(5)
"""Of `ahead`, by step: rows for which the next step finds something, the first that it finds, the tags it asks for; and
how many of the rows have been gone on with, of how many."""

IS_BEGUN, IS_OPEN, AT_INPUT, AT_SLOT, AT_DEPTH, HAS_CHOSEN, KNOWN = range(7)
IN_OUT, OF_INSTANT, OF_CANCELS, BEGUN_WORDS = range(7, 11)
"""Of output generation that has stopped: there is a block that goes on, not at the beginning of an instant but amidst
one: its element, the depth of the pipeline, whether a row has just been chosen, and the first that the next step finds
for it; how many tuples stand in `out`, where those of the instant begin, and, -1 while rows that leave cancel nothing,
where those do that are cancelled."""


@kernel
def begin_part(windows: Windows, pipelines: Pipelines, most: int) -> None:
    """Before what has come is joined: place the steps, of pipelines of `most` each, and forget what they dropped."""
    steps, drops = pipelines.steps, pipelines.drops
    place_steps(windows, steps)
    for r in range(len(steps)):
        drops[r, TRIED] = drops[r, DROPPED] = 0
        drops[r, IS_DROPPING] = int64(steps[r, HASHED] == 0 and steps[r, REACH] == 0)
        drops[r, LOOKS_AHEAD] = 0
        d = r % most
        if d + 1 < most and steps[r, REACH] == 0:
            drops[r, LOOKS_AHEAD] = int64(steps[r + 1, HASHED] > 0 and steps[r + 1, ASKED] == d + 1)


LEAVING, STAYING, ARRIVING, LATER, THERE_ROWS = range(5)
"""Of each input, at an instant: the first slot that is there before it, the first that stays, the first whose row comes
at it or later, and the first whose row comes later."""


@helper(inline=True)
def _chain(steps: Int64Table, r: int, i: int, there: Int64Table, cancels: bool) -> Any:
    """Where step r of the pipeline of input i walks. cancels: by a row that leaves."""
    j = steps[uint64(r), TARGET]
    low, high = there[STAYING, j], there[ARRIVING, j]
    if cancels and j > i:
        low = there[LEAVING, j]
    if not cancels and j < i:
        # Of two elements of an instant, that of the later input finds the other.
        high = there[LATER, j]
    return chain_between(steps, r, low, high)


class Bounds(NamedTuple):
    """Of what a step may meet of its target: the slots [low, high) of `linked`, and when the rows at both came, where
    there are such.
    """

    low: int
    high: int
    low_came: int
    high_came: int
    linked: int


@helper(inline=True)
def _bounds_of(windows: Windows, target: Arrivals, j: int) -> Any:
    """The bounds of input j before the first element of a block."""
    inputs, nodes = windows.inputs, windows.nodes
    low, high, linked = inputs[j, LO], inputs[j, HI], inputs[j, LINKED]
    low_came = came_at(nodes, target, low) if low < linked else int64(0)
    high_came = came_at(nodes, target, high) if high < linked else int64(0)
    return Bounds(low, high, low_came, high_came, linked)


@helper(inline=True)
def _present(nodes: Int64s, target: Arrivals, length: Any, bounds: Bounds, instant: int, before: int) -> Any:
    """The bounds at an instant, of rows that came before `before`, moved on.  length: how long rows stay."""
    low, high, low_came, high_came, linked = bounds
    while high < linked and high_came < before:
        high += 1
        if high < linked:
            high_came = came_at(nodes, target, high)
    while low < high and uint64(instant) - uint64(low_came) >= length:
        low += 1
        if low < linked:
            low_came = came_at(nodes, target, low)
    return Bounds(low, high, low_came, high_came, linked)


@helper(typed=True)
def _drop(i: int, step: Int64s, count: int, alive: Int64s, firsts: Int64s, windows: Windows, state: Int64s) -> int:
    """Drop probing by a step of input i: which of the `count` slots alive find a row, and the first.

    firsts: by slot, counted from the block's first.  Returns how many of `alive` are left; state[PASSED] counts rows
    passed over that come later.
    """
    inputs, nodes, heads = windows.inputs, windows.nodes, windows.heads
    base, mask, buckets, shift = step[TARGET_NODES], step[TARGET_MASK], step[TARGET_HEADS], step[TARGET_SHIFT]
    own, own_mask, arrivals = step[SOURCE_NODES], step[SOURCE_MASK], arrivals_of(windows, i)
    target, length = arrivals_of(windows, step[TARGET]), uint64(inputs[step[TARGET], LENGTH])
    bounds = _bounds_of(windows, target, step[TARGET])
    first, near = inputs[i, HI], inputs[step[TARGET], LO]
    # Of two elements of an instant, that of the later input finds the other.
    is_later = int64(1) if step[TARGET] < i else int64(0)
    kept, inspected, passed, tried, most = 0, 0, 0, count, state[MOST]
    # All heads first: nothing in this loop has to be guessed, so that many of them are under way at a time.
    for a in range(count):
        tag = nodes[uint64(own + 2 * (alive[a] & own_mask))]
        firsts[uint64(alive[a] - first)] = head_slot(heads, buckets + bucket(tag, shift), near)
    for a in range(count):
        slot = alive[a]
        tag, t = nodes[uint64(own + 2 * (slot & own_mask))], came_at(nodes, arrivals, slot)
        s = firsts[uint64(slot - first)]
        bounds = _present(nodes, target, length, bounds, t, t + is_later)
        low, high = bounds.low, bounds.high
        # `chains.next_slot`, which does not tell what comes later.
        while s >= low:
            k = uint64(base + 2 * (s & mask))
            inspected += 1
            if nodes[k] == tag:
                if s < high:
                    break
                passed += 1
            s = older_slot(nodes, k, s)
        firsts[uint64(slot - first)] = s
        alive[uint64(kept)] = slot
        if s >= low:
            kept += 1
        if inspected >= most:
            tried = a + 1
            break
    # What takes too long is left to output generation, which may pause.
    for a in range(tried, count):
        alive[uint64(kept)] = alive[a]
        kept += 1
    state[INSPECTED] += inspected
    state[PASSED] += passed
    return int64(kept)


@helper(typed=True)
def _drop_behind(
    i: int, p: int, q: int, alive: Int64s, firsts: Int64s, pipelines: Pipelines, windows: Windows, state: Int64s
) -> int:
    """Drop probing by step q, which asks for the keys of the rows that step p finds.

    Of the slots alive those are left for which a row found by the first finds a row; `firsts`, as of `_drop`, moves on
    to it. What is passed by joins with nothing.
    """
    inputs, nodes, heads = windows.inputs, windows.nodes, windows.heads
    step, behind, drops = pipelines.steps[p], pipelines.steps[q], pipelines.drops[q]
    base, mask = step[TARGET_NODES], step[TARGET_MASK]
    own, own_mask, first, arrivals = step[SOURCE_NODES], step[SOURCE_MASK], inputs[i, HI], arrivals_of(windows, i)
    target, target2 = arrivals_of(windows, step[TARGET]), arrivals_of(windows, behind[TARGET])
    source, near = behind[SOURCE_NODES], inputs[behind[TARGET], LO]
    base2, mask2 = behind[TARGET_NODES], behind[TARGET_MASK]
    length, length2 = uint64(inputs[step[TARGET], LENGTH]), uint64(inputs[behind[TARGET], LENGTH])
    bounds, bounds2 = _bounds_of(windows, target, step[TARGET]), _bounds_of(windows, target2, behind[TARGET])
    buckets, shift = behind[TARGET_HEADS], behind[TARGET_SHIFT]
    is_later, is_later2 = int64(step[TARGET] < i), int64(behind[TARGET] < i)
    kept, inspected, most = 0, 0, state[MOST]
    for a in range(len(alive)):
        slot = alive[a]
        tag, t = nodes[uint64(own + 2 * (slot & own_mask))], came_at(nodes, arrivals, slot)
        bounds = _present(nodes, target, length, bounds, t, t + is_later)
        bounds2 = _present(nodes, target2, length2, bounds2, t, t + is_later2)
        low, high, low2, high2 = bounds.low, bounds.high, bounds2.low, bounds2.high
        chain, chain2 = Chain(base, int64(2), mask, low, high), Chain(base2, int64(2), mask2, low2, high2)
        s = firsts[uint64(slot - first)]
        r = int64(-1)
        while s >= low and inspected < most:
            tag2 = nodes[uint64(source + 2 * (s & mask))]
            r, looked = next_slot(nodes, chain2, tag2, head_slot(heads, buckets + bucket(tag2, shift), near))
            inspected += looked
            if r >= low2:
                break
            s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
            inspected += looked
        firsts[uint64(slot - first)] = s
        alive[uint64(kept)] = slot
        if r >= low2 or (s >= low and inspected >= most):
            kept += 1
    drops[TRIED] += len(alive)
    drops[DROPPED] += len(alive) - kept
    state[INSPECTED] += inspected
    return int64(kept)


@helper(typed=True)
def _survivors(i: int, stop: int, windows: Windows, scratch: Scratch, pipelines: Pipelines, state: Int64s) -> int:
    """Drop probing of the slots [HI, stop) of input i; returns how many of alive[i] it leaves, ascending."""
    inputs, nodes = windows.inputs, windows.nodes
    alive, part, firsts = scratch.alive[i], scratch.alive[len(inputs)], scratch.firsts[i]
    steps, routes = pipelines.steps, pipelines.routes
    base, mask, has_nulls = inputs[i, ROWS], inputs[i, MASK], inputs[i, HAS_NULLS] != 0
    count = int64(0)
    for slot in range(inputs[i, HI], stop):
        alive[uint64(count)] = slot
        if not has_nulls or has_link(nodes, base + 2 * (slot & mask)):
            count += 1
    if routes.begins[i] < 0:
        return _probed(i, i, count, windows, alive, firsts, pipelines, state)
    # Route after route; who is left of one is marked until all are done.
    for pipeline in range(len(steps) // len(firsts)):
        size = int64(0)
        for a in range(count):
            slot = alive[uint64(a)]
            part[uint64(size)] = slot
            if slot >= 0 and pipeline_of(windows, routes, i, slot) == pipeline:
                size += 1
        kept = _probed(i, pipeline, size, windows, part, firsts, pipelines, state)
        at = int64(0)
        for a in range(count):
            if at < kept and alive[uint64(a)] == part[uint64(at)]:
                alive[uint64(a)] = ~alive[uint64(a)]
                at += 1
    left = int64(0)
    for a in range(count):
        slot = alive[uint64(a)]
        alive[uint64(left)] = ~slot
        if slot < 0:
            left += 1
    return left


@helper(typed=True)
def _probed(
    i: int,
    pipeline: int,
    count: int,
    windows: Windows,
    alive: Int64s,
    firsts: Int64Table,
    pipelines: Pipelines,
    state: Int64s,
) -> int:
    """Drop probing of the `count` slots alive of input i by the steps of a pipeline; returns how many it leaves."""
    begin, steps, drops = pipeline * len(firsts), pipelines.steps, pipelines.drops
    for d in range(len(firsts)):
        r = begin + d
        if steps[r, ASKED] == 0 and drops[r, IS_DROPPING] != 0 and count > 0:
            count = _drop(i, steps[r], count, alive, firsts[d], windows, state)
    for d in range(1, len(firsts)):
        q = begin + d
        e = steps[q, ASKED] - 1
        p = begin + max(e, 0)
        pays = drops[q, TRIED] < _ENOUGH or drops[q, DROPPED] * 4 >= drops[q, TRIED]
        pays &= drops[p, IS_DROPPING] != 0 and drops[q, IS_DROPPING] != 0
        if e >= 0 and steps[p, ASKED] == 0 and count > 0 and pays:
            count = _drop_behind(i, p, q, alive[:count], firsts[e], pipelines, windows, state)
    return count


@helper(inline=True)
def _turn_to(windows: Windows, there: Int64Table, instant: int) -> None:
    """Move `there` on to an instant, that of no row below LATER."""
    inputs, nodes = windows.inputs, windows.nodes
    for j in range(len(inputs)):
        arrivals, length = arrivals_of(windows, j), uint64(inputs[j, LENGTH])
        leaving = staying = there[STAYING, j]
        while staying < inputs[j, LINKED]:
            ts = came_at(nodes, arrivals, staying)
            if ts >= instant or uint64(instant) - uint64(ts) < length:
                break
            staying += 1
            if uint64(instant) - uint64(ts) > length:
                leaving = staying
        there[LEAVING, j], there[STAYING, j] = leaving, staying
        arriving = later = there[LATER, j]
        while later < inputs[j, LINKED]:
            ts = came_at(nodes, arrivals, later)
            if ts > instant:
                break
            later += 1
            if ts < instant:
                arriving = later
        there[ARRIVING, j], there[LATER, j] = arriving, later


@helper(inline=True)
def _has_leaving(there: Int64Table) -> Any:
    """A row leaves at the instant."""
    has = False
    for j in range(there.shape[1]):
        has |= there[STAYING, j] > there[LEAVING, j]
    return has


@helper(typed=True)
def _drop_ahead(
    r: int, depth: int, i: int, count: int, windows: Windows, scratch: Scratch, pipelines: Pipelines, run: JoinRun
) -> int:
    """Of the `count` rows ahead at this depth, for which the step behind finds something, leave those for which the
    step behind that one may find something, too; returns how many.

    Only where that one asks as soon as the step before it has chosen, and while it drops a quarter and more.
    """
    nodes, heads, chosen, state, ahead = windows.nodes, windows.heads, run.chosen, run.state, scratch.ahead
    steps, checks = pipelines.steps, pipelines.checks
    behind, third, drops = steps[r + 1], steps[r + 2], pipelines.drops[r + 2]
    pays = drops[TRIED] < _ENOUGH or drops[DROPPED] * 4 >= drops[TRIED]
    if third[HASHED] <= 0 or third[ASKED] != depth + 2 or not pays:
        return count
    slots, tags, firsts = ahead[AHEAD_SLOT, depth], ahead[AHEAD_TAG, depth], ahead[AHEAD_FOUND, depth]
    # Pairs of rows of both steps: the place of the first one, and what the third step looks at.
    places, third_tags, third_firsts = (
        ahead[AHEAD_SLOT, depth + 1],
        ahead[AHEAD_TAG, depth + 1],
        ahead[AHEAD_FOUND, depth + 1],
    )
    j, k = steps[r, TARGET], behind[TARGET]
    chain, third_chain = _chain(steps, r + 1, i, scratch.there, False), _chain(steps, r + 2, i, scratch.there, False)
    buckets, shift, hashed = third[TARGET_HEADS], third[TARGET_SHIFT], third[CHECK]
    hashed_end = hashed + third[HASHED]
    inspected, pairs, tried = 0, 0, int64(0)
    while tried < count and pairs < AHEAD:
        chosen[j], s = slots[tried], firsts[tried]
        while s >= chain.low and pairs < AHEAD:
            chosen[k] = s
            third_tags[pairs] = hashed_tag(windows, checks, chosen, hashed, hashed_end)
            third_at = buckets + bucket(third_tags[pairs], shift)
            places[pairs], third_firsts[pairs] = tried, head_slot(heads, third_at, third_chain.low)
            pairs += 1
            s, looked = next_slot(nodes, chain, tags[tried], older(nodes, chain, s))
            inspected += looked
        if s < chain.low:
            tried += 1
    kept = int64(0)
    for a in range(pairs):
        s, looked = next_slot(nodes, third_chain, third_tags[a], third_firsts[a])
        inspected += looked
        place = places[a]
        if place < tried and s >= third_chain.low and (kept == 0 or slots[kept - 1] != slots[place]):
            slots[kept], firsts[kept] = slots[place], firsts[place]
            kept += 1
    drops[TRIED] += tried
    drops[DROPPED] += tried - kept
    for a in range(tried, count):
        slots[kept], firsts[kept] = slots[a], firsts[a]
        kept += 1
    state[INSPECTED] += inspected
    return kept


@helper(typed=True)
def _look_ahead(
    r: int, depth: int, i: int, s: int, windows: Windows, scratch: Scratch, pipelines: Pipelines, run: JoinRun
) -> int:
    """Fill `ahead` with rows of step r from slot s on for which the step behind it, whose tag is hashed
    of several inputs, finds something; returns the slot to go on at.

    All tags and heads first: the next row does not wait for what the last one finds. 100 values a column and
    windows of 8,192 rows, four inputs: 24 us an element instead of 41.
    """
    nodes, heads = windows.nodes, windows.heads
    walks, chosen, state, ahead = run.walks, run.chosen, run.state, scratch.ahead
    steps, checks = pipelines.steps, pipelines.checks
    step, behind = steps[r], steps[r + 1]
    j, tag = step[TARGET], walks[TAG, depth]
    chain = _chain(steps, r, i, scratch.there, False)
    check, checks_end = step[CHECK], step[CHECKS_END]
    buckets, shift, hashed = behind[TARGET_HEADS], behind[TARGET_SHIFT], behind[CHECK]
    hashed_end, near = hashed + behind[HASHED], windows.inputs[behind[TARGET], LO]
    slots, tags, firsts = ahead[AHEAD_SLOT, depth], ahead[AHEAD_TAG, depth], ahead[AHEAD_FOUND, depth]
    inspected, count = 0, 0
    while count < AHEAD:
        s, looked = next_slot(nodes, chain, tag, s)
        inspected += looked
        if s < chain.low:
            break
        chosen[j] = s
        if check == checks_end or checks_hold(windows, checks, chosen, check, checks_end):
            tags[count] = hashed_tag(windows, checks, chosen, hashed, hashed_end)
            slots[count], firsts[count] = s, head_slot(heads, buckets + bucket(tags[count], shift), near)
            count += 1
        s = older(nodes, chain, s)
    chain = _chain(steps, r + 1, i, scratch.there, False)
    kept = int64(0)
    for a in range(count):
        first, looked = next_slot(nodes, chain, tags[a], firsts[a])
        inspected += looked
        slots[kept], tags[kept], firsts[kept] = slots[a], tags[a], first
        if first >= chain.low:
            kept += 1
    state[INSPECTED] += inspected
    if depth + 2 < len(windows.inputs) - 1:
        kept = _drop_ahead(r, depth, i, kept, windows, scratch, pipelines, run)
    ahead[AHEAD_COUNTS, depth, 0], ahead[AHEAD_COUNTS, depth, 1] = 0, kept
    return int64(s)


@helper(inline=True)
def _next_survivor(windows: Windows, alive: Int64Table, i: int, slot: int, instant: int) -> Any:
    """The next element, from input i on, that comes at the instant: (input, slot, whether there is one)."""
    inputs = windows.inputs
    comes = False
    while i < len(inputs) and not comes:
        at = inputs[i, SURVIVOR]
        if at < inputs[i, SURVIVORS]:
            slot = alive[i, at]
            comes = came_at(windows.nodes, arrivals_of(windows, i), slot) == instant
        if comes:
            inputs[i, SURVIVOR] = at + 1
        else:
            i += 1
    return i, slot, comes


@helper(inline=True)
def _first_instant(windows: Windows, alive: Int64Table) -> Any:
    """The instant of the first element that is left; MAX_INSTANT where none is."""
    inputs = windows.inputs
    instant = int64(MAX_INSTANT)
    for j in range(len(inputs)):
        if inputs[j, SURVIVOR] < inputs[j, SURVIVORS]:
            slot = alive[j, inputs[j, SURVIVOR]]
            instant = min(instant, came_at(windows.nodes, arrivals_of(windows, j), slot))
    return instant


@helper(inline=True)
def _next_cancelling(windows: Windows, run: JoinRun, there: Int64Table, i: int, slot: int) -> Any:
    """The next row behind this one that leaves and may cancel something: (input, slot, whether there is one)."""
    n, cancels = len(windows.inputs), False
    while i < n and not cancels:
        slot += 1
        if slot < there[STAYING, i]:
            cancels = is_stamped(windows, run, i, slot) and is_linked(windows, i, slot)
        else:
            i += 1
            if i < n:
                slot = there[LEAVING, i] - 1
    return i, slot, cancels


@helper
def _take_back(windows: Windows, scratch: Scratch, instant: int) -> Any:
    """Let the elements of an instant that does not fit come, and what leaves at it leave, once more."""
    inputs, there = windows.inputs, scratch.there
    for j in range(len(inputs)):
        there[STAYING, j], there[LATER, j] = there[LEAVING, j], there[ARRIVING, j]
        while inputs[j, SURVIVOR] > 0:
            slot = scratch.alive[j, inputs[j, SURVIVOR] - 1]
            if came_at(windows.nodes, arrivals_of(windows, j), slot) != instant:
                break
            inputs[j, SURVIVOR] -= 1


class Element(NamedTuple):
    """Of output generation: the slot of input i that is joined, at which instant; where tuples of the instant begin in
    `out`, and those that cancel some; whether the row leaves, and may cancel.
    """

    i: int
    slot: int
    instant: int
    first: int
    middle: int
    cancels: bool


@helper(inline=True)
def _next_element(windows: Windows, scratch: Scratch, run: JoinRun, output: Output, at: Element, found: int) -> Any:
    """The next element: what arrives at the instant, then what leaves at it where that may cancel something; at
    MAX_INSTANT where there is none.
    """
    state, alive, there = run.state, scratch.alive, scratch.there
    i, slot, instant, first, middle, cancels = at
    begins = False
    while not begins and instant < MAX_INSTANT:
        if not cancels:
            i, slot, begins = _next_survivor(windows, alive, i, slot, instant)
            if not begins and found > first and _has_leaving(there):
                cancels, middle = True, found
                stamp(windows, run, output.out, first, found)
                i, slot = int64(0), there[LEAVING, 0] - 1
            elif not begins:
                i, first, instant = int64(0), found, _first_instant(windows, alive)
                if instant < MAX_INSTANT:
                    _turn_to(windows, there, instant)
        if cancels:
            i, slot, begins = _next_cancelling(windows, run, there, i, slot)
            if not begins:
                if found > middle:
                    deletions_first(output.out, output.out_sign, first, middle, found)
                    state[DELETED] += found - middle
                cancels, first = False, found
    return Element(i, slot, instant, first, middle, cancels)


@helper(inline=True)
def _drop_probe(
    windows: Windows, scratch: Scratch, pipelines: Pipelines, run: JoinRun, at: Element, r: int, position: int,
    known: int,
) -> Any:  # fmt: skip
    """Whether all steps that ask for the keys of the slot chosen at a position find a row, and how many slots were
    inspected. r: the step at this position.  known: what it finds, -1 where nobody has looked.
    """
    inputs, walks, chosen, there = windows.inputs, run.walks, run.chosen, scratch.there
    steps, checks = pipelines.steps, pipelines.checks
    finds, inspected = True, int64(0)
    for d in range(position, len(inputs) - 1):
        if steps[r, ASKED] == position:
            tag = step_tag(windows, steps, r, checks, chosen)
            if position == 0 and pipelines.drops[r, IS_DROPPING] != 0 and not at.cancels:
                s = scratch.firsts[at.i, d, at.slot - inputs[at.i, HI]]
            elif known >= 0 and d == position:
                s = known
            else:
                chain = _chain(steps, r, at.i, there, at.cancels)
                s, looked = next_slot(windows.nodes, chain, tag, first_slot(windows, steps, r, tag))
                inspected += looked
                if s < chain.low and steps[r, REACH] != 0:
                    tag, s, looked = further(windows, steps, int64(r), checks, chosen, chain, tag)
                    inspected += looked
                if s < chain.low:
                    s = int64(-1)  # where a walk ends that finds nothing, some other row may stand
            if s < inputs[steps[r, TARGET], LO]:
                finds = False
                break
            walks[TAG, uint64(d)] = tag
            walks[FOUND, uint64(d)] = s
        r += uint64(1)
    return finds, inspected


@helper(inline=True)
def _take_ahead(ahead: Int64Cube, depth: int, j: int, chosen: Int64s) -> Any:
    """Choose the next of the rows of input j that were looked at together; (whether there is one, the first row that
    the next step finds for it).
    """
    a, known = ahead[AHEAD_COUNTS, depth, 0], int64(-1)
    is_chosen = a < ahead[AHEAD_COUNTS, depth, 1]
    if is_chosen:
        ahead[AHEAD_COUNTS, depth, 0] = a + 1
        chosen[j], known = ahead[AHEAD_SLOT, depth, a], ahead[AHEAD_FOUND, depth, a]
    return is_chosen, known


@helper(inline=True)
def _stopped_at(begun: Int64s, instant: int) -> Any:
    """The element amidst which output generation stopped, and goes on."""
    begun[IS_OPEN], middle = 0, begun[OF_CANCELS]
    return Element(begun[AT_INPUT], begun[AT_SLOT], instant, begun[OF_INSTANT], middle, middle >= 0)


@helper(inline=True)
def _stop_at(begun: Int64s, at: Element) -> None:
    """Note it."""
    begun[IS_OPEN], begun[AT_INPUT], begun[AT_SLOT], begun[OF_INSTANT] = 1, at.i, at.slot, at.first
    begun[OF_CANCELS] = at.middle if at.cancels else int64(-1)


@helper(typed=True)
def _generate(
    windows: Windows, scratch: Scratch, pipelines: Pipelines, run: JoinRun, output: Output, found: int
) -> int:
    """Output generation of what drop probing left, by instants; returns how many tuples stand in `out`.

    Where `out` is full, state[STATUS] is FULL; of the instant that does not fit nothing stands in it, and the next call
    begins there. Where it has inspected state[MOST] slots it is PAUSED, and the next call goes on amidst the instant.
    """
    nodes, there, ahead, begun = windows.nodes, scratch.there, scratch.ahead, scratch.begun
    walks, chosen, state = run.walks, run.chosen, run.state
    steps, checks = pipelines.steps, pipelines.checks
    last, limit, until = len(windows.inputs) - 2, len(output.out_ts), state[INSPECTED] + state[MOST]
    inspected = 0
    element = Element(int64(last + 2), int64(0), int64(0), found, found, False)
    depth, is_chosen, known = int64(-1), False, int64(-1)
    goes_on = begun[IS_OPEN] != 0
    if goes_on:
        found, depth, is_chosen, known = begun[IN_OUT], begun[AT_DEPTH], begun[HAS_CHOSEN] != 0, begun[KNOWN]
        element = _stopped_at(begun, state[INSTANT])
    while True:
        if not goes_on:
            element = _next_element(windows, scratch, run, output, element, found)
            depth, is_chosen, known = int64(-1), True, int64(-1)
        goes_on = False
        i, slot, cancels = element.i, element.slot, element.cancels
        if element.instant == MAX_INSTANT:
            break
        # Its pipeline. `is_chosen`: a row has just been chosen, and the steps that ask for its keys have not been.
        chosen[i] = slot
        begin = pipeline_of(windows, pipelines.routes, i, slot) * (last + 1)
        while depth >= 0 or is_chosen:
            if is_chosen:
                r = uint64(begin + depth + 1)
                is_chosen, looked = _drop_probe(windows, scratch, pipelines, run, element, r, depth + 1, known)
                inspected += looked
                if is_chosen:
                    depth += 1
                    walks[FOLLOWING, uint64(depth)] = walks[FOUND, uint64(depth)]
                    ahead[AHEAD_COUNTS, depth, 0] = ahead[AHEAD_COUNTS, depth, 1] = 0
                elif depth < 0:
                    break
            # The next row of the step.
            r = uint64(begin + depth)
            j = steps[r, TARGET]
            chain = _chain(steps, r, i, there, cancels)
            if is_chosen and steps[r, REACH] != 0:
                # With the row chosen before, the walk may have gone on to another tag.
                walks[TAG, uint64(depth)] = tag_at(nodes, chain, walks[FOUND, uint64(depth)])
            tag, s = walks[TAG, uint64(depth)], walks[FOLLOWING, uint64(depth)]
            is_chosen, known = False, int64(-1)
            looks_ahead = pipelines.drops[r, LOOKS_AHEAD] != 0 and not cancels
            if looks_ahead:
                while ahead[AHEAD_COUNTS, depth, 0] == ahead[AHEAD_COUNTS, depth, 1] and s >= chain.low:
                    if inspected + state[INSPECTED] >= until:
                        break
                    s = _look_ahead(int64(r), depth, i, s, windows, scratch, pipelines, run)
                is_chosen, known = _take_ahead(ahead, depth, j, chosen)
            check, checks_end = steps[r, CHECK], steps[r, CHECKS_END]
            while not is_chosen and not looks_ahead:
                s, looked = next_slot(nodes, chain, tag, s)
                inspected += looked
                if s < chain.low and steps[r, REACH] != 0:
                    tag, s, looked = further(windows, steps, int64(r), checks, chosen, chain, tag)
                    walks[TAG, uint64(depth)] = tag
                    inspected += looked
                if s < chain.low:
                    break
                chosen[j] = s
                equal = check == checks_end or checks_hold(windows, checks, chosen, check, checks_end)
                equal = equal and (not cancels or is_stamped(windows, run, j, s))
                if equal and depth == last:
                    if found == limit:
                        state[STATUS] = FULL
                        break
                    put_tuple(output, chosen, found, element.instant, -1 if cancels else 1)
                    found += 1
                is_chosen = equal and depth < last
                s = older(nodes, chain, s)
            walks[FOLLOWING, uint64(depth)] = s
            if not is_chosen and not (looks_ahead and s >= chain.low):
                depth -= 1
            if state[STATUS] == FULL or inspected + state[INSPECTED] >= until:
                break
        if state[STATUS] == FULL:
            found = element.first
            _take_back(windows, scratch, element.instant)
            break
        if inspected + state[INSPECTED] >= until:
            state[STATUS] = PAUSED
            _stop_at(begun, element)
            begun[IN_OUT], begun[AT_DEPTH], begun[HAS_CHOSEN], begun[KNOWN] = found, depth, int64(is_chosen), known
            break
    state[INSTANT] = element.instant
    state[INSPECTED] += inspected
    return int64(found)


@helper(typed=True)
def _first_from(windows: Windows, i: int, instant: int) -> int:
    """The first waiting slot of input i whose element comes at the instant or later."""
    low, high, arrivals = windows.inputs[i, HI], windows.inputs[i, STOP], arrivals_of(windows, i)
    while low < high:
        middle = (low + high) >> 1
        if came_at(windows.nodes, arrivals, middle) < instant:
            low = middle + 1
        else:
            high = middle
    return int64(low)


@helper(typed=True)
def _block_end(windows: Windows, size: int) -> int:
    """The instant before which a block ends that has about `size` elements of each input, and whole instants."""
    inputs, nodes = windows.inputs, windows.nodes
    end, least = int64(MAX_INSTANT), int64(MAX_INSTANT)
    for j in range(len(inputs)):
        arrivals, hi = arrivals_of(windows, j), inputs[j, HI]
        if hi < inputs[j, STOP]:
            least = min(least, came_at(nodes, arrivals, hi))
        if hi + size < inputs[j, STOP]:
            end = min(end, came_at(nodes, arrivals, hi + size))
    return int64(max(end, least + 1)) if least < MAX_INSTANT else int64(MAX_INSTANT)


@kernel
def join_entering(windows: Windows, scratch: Scratch, pipelines: Pipelines, run: JoinRun, output: Output) -> int:
    """Join the elements that wait, block by block; returns how many tuples stand in `out`.

    state[STATUS] is FULL where the next instant does not fit; call again with `out` empty, and larger where nothing was
    returned: the block goes on at that instant, and is not probed anew. Where it is PAUSED, `out` keeps what is in it,
    and a later call tells how many tuples that are. It is CROWDED where the scratch arrays have no room for an instant:
    alive (n + 1, c), firsts (n, n - 1, c) for c elements of an input.  there: (THERE_ROWS, n), scratch.  Other
    arguments as of `mjoin`.
    O(elements + tuples + slots inspected).
    """
    inputs = windows.inputs
    state = run.state
    there = scratch.there
    n = len(inputs)
    capacity = scratch.alive.shape[1]
    found = int64(0)
    state[STATUS] = DONE
    while state[STATUS] == DONE:
        end = _block_end(windows, min(state[SIZE], capacity))
        total = int64(0)
        if scratch.begun[IS_BEGUN] == 0:
            for j in range(n):
                inputs[j, SURVIVOR] = _first_from(windows, j, end)
                waiting = inputs[j, SURVIVOR] - inputs[j, HI]
                total += waiting
                if waiting > capacity:
                    state[STATUS], state[NEEDED] = CROWDED, waiting
            if total == 0 or state[STATUS] == CROWDED:
                break
            least = int64(MAX_INSTANT)
            for j in range(n):
                if inputs[j, SURVIVOR] > inputs[j, HI]:
                    least = min(least, came_at(windows.nodes, arrivals_of(windows, j), inputs[j, HI]))
                link_slots(windows, j, inputs[j, LINKED], inputs[j, SURVIVOR])
                inputs[j, LINKED] = max(inputs[j, LINKED], inputs[j, SURVIVOR])
            for j in range(n):
                there[STAYING, j], there[LATER, j] = inputs[j, LO], inputs[j, HI]
            _turn_to(windows, there, least)
            state[PASSED] = 0
            for j in range(n):
                # What leaves at the first instant itself may still be probed, to cancel.
                inputs[j, LO] = there[STAYING, j] = there[LEAVING, j]
                there[LATER, j] = inputs[j, HI]
            for j in range(n):
                stop = inputs[j, SURVIVOR]
                inputs[j, SURVIVORS] = _survivors(j, stop, windows, scratch, pipelines, state)
                inputs[j, SURVIVOR] = 0
        found = _generate(windows, scratch, pipelines, run, output, found)
        scratch.begun[IS_BEGUN] = int64(1) if state[STATUS] != DONE else int64(0)
        if state[STATUS] != DONE:
            break
        for j in range(n):
            inputs[j, HI] = inputs[j, LINKED]
        # A block as large as pays: rows passed over because they come later are the price of linking them first.
        if total > 0 and state[PASSED] > total:
            state[SIZE] = max(_LEAST_BLOCK, state[SIZE] // 2)
        elif state[PASSED] * 4 < total:
            state[SIZE] = min(capacity, state[SIZE] * 2)
    return int64(found)
