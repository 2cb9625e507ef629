"""Drop probing of elements of streams with ranges, block by block, where the consumer is ISTREAM.

A *block* has some whole instants of all inputs. Its elements are linked, key by key; then, step after step that asks
for the element's own key, those of each input are dropped for which the other input has no row, and where the first row
was found is kept; and, while it pays, step after step that asks for the key of such a row, alone. `kernels.mjoin` walks
from what is left, in the order of the instants.

Loops over a block's elements keep their figures in registers and do not wait for one another, which one loop over all
inputs' elements would. Probes pass over rows of the block that come later; a block shrinks where these are many.
Without it, whole queries take 1.8 times as long where hardly an element of three streams finds something.
Babu 2005, 5.2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.chains import Chain, link_slots, next_slot, older
from minidsms.kernels.join_layout import (
    CROWDED,
    DROPPED,
    TRIED,
    Blocks,
    JoinState,
    JoinStep,
    Pipelines,
    Windows,
)
from minidsms.kernels.join_routes import Routes, pipeline_of
from minidsms.kernels.links import Arrivals, arrivals_of, came_at, has_link, head_slot, older_slot
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64s, Rows, helper, int64, uint64

_LEAST_BLOCK = 4

_ENOUGH = 64
"""Elements after which a step that drops less than a quarter of them behind another one is not asked so any more."""


@helper(inline=True)
def is_dropping(steps: Rows[JoinStep], r: int) -> Any:
    """Drop probing asks step r: for the one tag of a row."""
    return steps[uint64(r)].hashed == 0 and steps[uint64(r)].reach == 0


@helper(inline=True)
def pays(drops: Int64s) -> Any:
    """A step has not been asked behind another one long, or drops a quarter of what it is asked for."""
    return drops[TRIED] < _ENOUGH or drops[DROPPED] * 4 >= drops[TRIED]


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
    low, high, linked = inputs[j].lo, inputs[j].hi, inputs[j].linked
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
def _drop(i: int, step: JoinStep, count: int, alive: Int64s, firsts: Int64s, windows: Windows, state: JoinState) -> int:
    """Drop probing by a step of input i: which of the `count` slots alive find a row, and the first.

    firsts: see `Blocks`.  Returns how many of `alive` are left; state.passed counts rows passed over that come later.
    """
    inputs, nodes, heads = windows.inputs, windows.nodes, windows.heads
    base, mask, buckets, shift = step.target_nodes, step.target_mask, step.target_heads, step.target_shift
    own, own_mask, arrivals = step.source_nodes, step.source_mask, arrivals_of(windows, i)
    target, length = arrivals_of(windows, step.target), uint64(inputs[step.target].length)
    bounds = _bounds_of(windows, target, step.target)
    places, near = len(firsts) - 1, inputs[step.target].lo
    # Of two elements of an instant, that of the later input finds the other.
    is_later = int64(1) if step.target < i else int64(0)
    kept, inspected, passed, tried, most = 0, 0, 0, count, state.most
    # All heads first: nothing in this loop has to be guessed, so that many of them are under way at a time.
    for a in range(count):
        tag = nodes[uint64(own + 2 * (alive[a] & own_mask))]
        firsts[uint64(alive[a] & places)] = head_slot(heads, buckets + bucket(tag, shift), near)
    for a in range(count):
        slot = alive[a]
        tag, t = nodes[uint64(own + 2 * (slot & own_mask))], came_at(nodes, arrivals, slot)
        s = firsts[uint64(slot & places)]
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
        firsts[uint64(slot & places)] = s
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
    state.inspected += inspected
    state.passed += passed
    return int64(kept)


@helper(typed=True)
def _drop_behind(
    i: int,
    step: JoinStep,
    behind: JoinStep,
    alive: Int64s,
    firsts: Int64s,
    drops: Int64s,
    windows: Windows,
    state: JoinState,
) -> int:
    """Drop probing by the step `behind`, which asks for the keys of the rows that another step finds.

    Of the slots alive those are left for which a row found by the other finds a row; `firsts`, as of `_drop`, moves on
    to it. What is passed by joins with nothing.
    """
    inputs, nodes, heads = windows.inputs, windows.nodes, windows.heads
    base, mask = step.target_nodes, step.target_mask
    own, own_mask, places, arrivals = step.source_nodes, step.source_mask, len(firsts) - 1, arrivals_of(windows, i)
    target, target2 = arrivals_of(windows, step.target), arrivals_of(windows, behind.target)
    source, near = behind.source_nodes, inputs[behind.target].lo
    base2, mask2 = behind.target_nodes, behind.target_mask
    length, length2 = uint64(inputs[step.target].length), uint64(inputs[behind.target].length)
    bounds, bounds2 = _bounds_of(windows, target, step.target), _bounds_of(windows, target2, behind.target)
    buckets, shift = behind.target_heads, behind.target_shift
    is_later, is_later2 = int64(step.target < i), int64(behind.target < i)
    kept, inspected, most = 0, 0, state.most
    for a in range(len(alive)):
        slot = alive[a]
        tag, t = nodes[uint64(own + 2 * (slot & own_mask))], came_at(nodes, arrivals, slot)
        bounds = _present(nodes, target, length, bounds, t, t + is_later)
        bounds2 = _present(nodes, target2, length2, bounds2, t, t + is_later2)
        low, high, low2, high2 = bounds.low, bounds.high, bounds2.low, bounds2.high
        chain, chain2 = Chain(base, int64(2), mask, low, high), Chain(base2, int64(2), mask2, low2, high2)
        s = firsts[uint64(slot & places)]
        r = int64(-1)
        while s >= low and inspected < most:
            tag2 = nodes[uint64(source + 2 * (s & mask))]
            r, looked = next_slot(nodes, chain2, tag2, head_slot(heads, buckets + bucket(tag2, shift), near))
            inspected += looked
            if r >= low2:
                break
            s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
            inspected += looked
        firsts[uint64(slot & places)] = s
        alive[uint64(kept)] = slot
        if r >= low2 or (s >= low and inspected >= most):
            kept += 1
    drops[TRIED] += len(alive)
    drops[DROPPED] += len(alive) - kept
    state.inspected += inspected
    return int64(kept)


@helper(typed=True)
def _survivors(
    i: int, stop: int, windows: Windows, pipelines: Pipelines, routes: Routes, blocks: Blocks, state: JoinState
) -> int:
    """Drop probing of the slots [hi, stop) of input i; returns how many of alive[i] it leaves, ascending."""
    inputs, nodes = windows.inputs, windows.nodes
    alive, part, firsts = blocks.alive[i], blocks.alive[len(inputs)], blocks.firsts[i]
    steps = pipelines.steps
    base, mask, has_nulls = inputs[i].nodes, inputs[i].mask, inputs[i].has_nulls != 0
    count = int64(0)
    for slot in range(inputs[i].hi, stop):
        alive[uint64(count)] = slot
        if not has_nulls or has_link(nodes, base + 2 * (slot & mask)):
            count += 1
    if routes.begins[i] < 0:
        return _probed(i, i, count, windows, alive, steps, blocks, state)
    # Route after route; who is left of one is marked until all are done.
    for pipeline in range(len(steps) // len(firsts)):
        size = int64(0)
        for a in range(count):
            slot = alive[uint64(a)]
            part[uint64(size)] = slot
            if slot >= 0 and pipeline_of(windows, routes, i, slot) == pipeline:
                size += 1
        kept = _probed(i, pipeline, size, windows, part, steps, blocks, state)
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
    steps: Rows[JoinStep],
    blocks: Blocks,
    state: JoinState,
) -> int:
    """Drop probing of the `count` slots alive of input i by the steps of a pipeline; returns how many it leaves."""
    firsts, drops = blocks.firsts[i], blocks.drops
    begin = pipeline * len(firsts)
    for d in range(len(firsts)):
        r = begin + d
        if steps[r].asked == 0 and is_dropping(steps, r) and count > 0:
            count = _drop(i, steps[r], count, alive, firsts[d], windows, state)
    for d in range(1, len(firsts)):
        q = begin + d
        e = steps[q].asked - 1
        p = begin + max(e, 0)
        asks = is_dropping(steps, p) and is_dropping(steps, q) and pays(drops[q])
        if e >= 0 and steps[p].asked == 0 and count > 0 and asks:
            count = _drop_behind(i, steps[p], steps[q], alive[:count], firsts[e], drops[q], windows, state)
    return count


@helper(typed=True)
def _first_from(windows: Windows, i: int, instant: int) -> int:
    """The first waiting slot of input i whose element comes at the instant or later."""
    low, high, arrivals = windows.inputs[i].hi, windows.inputs[i].stop, arrivals_of(windows, i)
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
        arrivals, hi = arrivals_of(windows, j), inputs[j].hi
        if hi < inputs[j].stop:
            least = min(least, came_at(nodes, arrivals, hi))
        if hi + size < inputs[j].stop:
            end = min(end, came_at(nodes, arrivals, hi + size))
    return int64(max(end, least + 1)) if least < MAX_INSTANT else int64(MAX_INSTANT)


@helper(inline=True)
def _let_go(windows: Windows, instant: int) -> None:
    """Let go what has left before an instant; what leaves at it may still be probed, to cancel."""
    inputs, nodes = windows.inputs, windows.nodes
    for j in range(len(inputs)):
        lo, arrivals, length = inputs[j].lo, arrivals_of(windows, j), uint64(inputs[j].length)
        while lo < inputs[j].hi and uint64(instant) - uint64(came_at(nodes, arrivals, lo)) > length:
            lo += 1
        inputs[j].lo = lo


@helper(typed=True)
def next_block(windows: Windows, pipelines: Pipelines, routes: Routes, blocks: Blocks, state: JoinState) -> bool:
    """Link the next block and note what drop probing leaves of it; False where no element waits, or state.status is
    CROWDED: `blocks` have no room for an instant.
    """
    inputs, capacity = windows.inputs, blocks.alive.shape[1]
    for j in range(len(inputs)):
        inputs[j].hi = inputs[j].linked
    end, total, least = _block_end(windows, min(state.size, capacity)), int64(0), int64(MAX_INSTANT)
    for j in range(len(inputs)):
        stop = inputs[j].survivor = _first_from(windows, j, end)
        waiting = stop - inputs[j].hi
        total += waiting
        if waiting > 0:
            least = min(least, came_at(windows.nodes, arrivals_of(windows, j), inputs[j].hi))
        if waiting > capacity:
            state.status, state.needed = CROWDED, waiting
    if total == 0 or state.status == CROWDED:
        for j in range(len(inputs)):
            inputs[j].survivor = inputs[j].survivors = 0
        return False
    _let_go(windows, least)
    for j in range(len(inputs)):
        link_slots(windows, j, inputs[j].linked, inputs[j].survivor)
        inputs[j].linked = inputs[j].survivor
    state.passed = 0
    for j in range(len(inputs)):
        inputs[j].survivors = _survivors(j, inputs[j].linked, windows, pipelines, routes, blocks, state)
        inputs[j].survivor = 0
    # A block as large as pays: rows passed over because they come later are the price of linking them first.
    if state.passed > total:
        state.size = max(_LEAST_BLOCK, state.size // 2)
    elif state.passed * 4 < total:
        state.size = min(capacity, state.size * 2)
    return True
