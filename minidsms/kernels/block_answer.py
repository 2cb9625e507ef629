"""The answer of a block, put out turn by turn: from the entries that rows hit, or by the last steps of their pipelines.

A row that a full buffer interrupts goes on where it stopped: `work` and `levels` say where. See `kernels.block_mjoin`.

Invariant: tuples stand in the order of their instants; where netted, those of an instant with its deletions first.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_cache_layout import CacheArrays, PlacedPlan
from minidsms.kernels.join_layout import JoinRun, Output, Windows
from minidsms.kernels.join_program import Block
from minidsms.machine_code import Int64s

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.machine_code import helper, int64, uint64
from minidsms.kernels.join_cache_entries import remove, tuple_at, tuple_behind
from minidsms.kernels.join_cache_layout import (
    INLINE, MEMBERS, PLACED_WORDS, SIZE, SWEPT,
)
from minidsms.kernels.join_stamps import deletions_first, is_stamped, stamp
from minidsms.kernels.join_program import (
    ANSWERED, AT_DEPTH, BUCKET, CANCELS, ENTRY, FINAL_WORDS, IS_ACTIVE, IS_STAMPED, LEAVER, LEFT, LEVEL, NEXT, ROW,
    ROWS, SETTLES, SIDE, STAMPS_ALL, TURN, TURNS, T_BEGIN, T_BOUNDS, T_END, T_INPUT, T_KIND, T_TS,
)
from minidsms.kernels.chains import checks_hold, next_slot, older
from minidsms.kernels.join_layout import (
    CHECK, CHECKS_END, DELETED, DONE, FIRST, FULL, INSPECTED, KEY, LO, MASK, MIDDLE, NODES, PAUSED, STATUS, TARGET,
    UNTIL,
)
from minidsms.kernels.links import has_link
from minidsms.kernels.placed_steps import placed_chain, placed_first, placed_tag
# fmt: on
# isort: on


@helper
def _next_leaver(turn: int, i: int, blocks: Block, windows: Windows, run: JoinRun) -> Any:
    """The next slot of the turn that leaves and may cancel what is stamped; -1 where there is none."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    turns, work = blocks.turns, blocks.work
    slot, end = max(work[LEAVER], turns[turn + T_BEGIN]), turns[turn + T_END]
    mask, base = inputs[i, MASK], keys[inputs[i, KEY], NODES]
    while slot < end and (not is_stamped(windows, run, i, slot) or not has_link(nodes, base + 2 * (slot & mask))):
        slot += 1
    work[LEAVER] = slot + 1 if slot < end else int64(-1)
    return slot if slot < end else int64(-1)


@helper
def _begin_step(i: int, depth: int, plan: PlacedPlan, windows: Windows, run: JoinRun, first: Any) -> Any:
    """Where the walk of a step begins: its tag, and the newest slot of the bucket, unless `first` is known."""
    chosen, levels, placed = run.chosen, run.levels, plan.placed
    p = uint64((i * (len(chosen) - 1) + depth) * PLACED_WORDS)
    tag = placed_tag(windows, placed, p, plan.checks, chosen)
    if first < 0:
        first = placed_first(windows, placed, p, tag, windows.inputs[uint64(placed[p + uint64(TARGET)]), LO])
    levels[uint64(2 * depth)], levels[uint64(2 * depth + 1)] = tag, first


@helper(inline=True)
def _final_of(turn: int, blocks: Block, plan: PlacedPlan) -> Any:
    """What completes the rows of a turn's list: its pipeline, the position from which steps do, and the cache whose
    entries do, -1 for none.
    """
    turns, finals = blocks.turns, plan.finals
    i = turns[turn + uint64(T_INPUT)]
    cancels = turns[turn + uint64(T_KIND)] == CANCELS
    return i, int64(0) if cancels else finals[i * FINAL_WORDS + LEVEL], finals[i * FINAL_WORDS + ENTRY]


@helper
def _begin_row(turn: int, blocks: Block, plan: PlacedPlan, windows: Windows, run: JoinRun, store: CacheArrays) -> Any:
    """Choose the slots of the turn's next row; False where there is no more. Its tuples come from work[BUCKET], or
    where that is -1 by steps.
    """
    inputs = windows.inputs
    chosen = run.chosen
    caches, pool = store.caches, store.pool
    turns, lists, rows, entries, work = blocks.turns, blocks.lists, blocks.rows, blocks.entries, blocks.work
    n, capacity = len(inputs), len(blocks.firsts)
    i, level, c = _final_of(turn, blocks, plan)
    width = n + 1
    b = first = int64(-1)
    if turns[turn + uint64(T_KIND)] == CANCELS:
        slot = _next_leaver(turn, i, blocks, windows, run)
        is_row = slot >= 0
        chosen[i] = slot
    else:
        r = rows[i, ROW]
        at = uint64(((rows[i, SIDE] * width + i) * capacity + r) * width)
        is_row = r < rows[i, ROWS] and lists[at] == work[TURN]
        if is_row:
            rows[i, ROW] = r + 1
            for m in range(n):
                chosen[uint64(m)] = lists[at + uint64(1 + m)]
            first = entries[uint64(i * capacity + r)]
            if c >= 0:
                b = first if first >= 0 and pool[uint64(first)] >= 0 else int64(-1)
                first = int64(-1)
    if b >= 0:
        work[NEXT], work[LEFT] = pool[uint64(b + 1)], min(pool[uint64(b)], caches[c, INLINE])
    elif is_row:
        work[AT_DEPTH] = level
        _begin_step(i, level, plan, windows, run, first)
    work[BUCKET] = b
    return is_row


@helper
def _from_entry(
    b: int, c: int, turn: int, blocks: Block, run: JoinRun, store: CacheArrays, output: Output, found: int
) -> Any:
    """Put out what the entry at b has for the slots chosen; a tuple that has left goes out of the entry.

    Segments have two inputs or more: the first two are looked at together.
    """
    chosen, state = run.chosen, run.state
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    caches, members, pool = store.caches, store.members, store.pool
    turns, work = blocks.turns, blocks.work
    n, limit = len(chosen), len(out_ts)
    ts, sign = turns[turn + uint64(T_TS)], turns[turn + uint64(T_KIND)]
    size, first = caches[c, SIZE], uint64(caches[c, MEMBERS])
    i, j = uint64(members[first]), uint64(members[first + uint64(1)])
    bounds = turn + uint64(T_BOUNDS)
    low_i, high_i = turns[bounds + uint64(2) * i], turns[bounds + uint64(2) * i + uint64(1)]
    low_j, high_j = turns[bounds + uint64(2) * j], turns[bounds + uint64(2) * j + uint64(1)]
    s, rest = work[NEXT], work[LEFT]
    while s != 0 or rest > 0:
        at = uint64(tuple_at(caches, c, b, s, rest))
        behind, left = tuple_behind(pool, s, rest)
        x, y = pool[at], pool[at + uint64(1)]
        has_left = (x < low_i) | (y < low_j)
        is_there = (x < high_i) & (y < high_j)
        for m in range(2, size):
            k, z = uint64(members[first + uint64(m)]), pool[at + uint64(m)]
            has_left |= z < turns[bounds + uint64(2) * k]
            is_there &= z < turns[bounds + uint64(2) * k + uint64(1)]
        if is_there and not has_left:
            if found == limit:
                state[STATUS] = FULL
                break
            f = uint64(found)
            for m in range(n):
                out[uint64(m), f] = chosen[uint64(m)]
            out[i, f], out[j, f] = x, y
            for m in range(2, size):
                out[uint64(members[first + uint64(m)]), f] = pool[at + uint64(m)]
            out_ts[f], out_sign[f] = ts, sign
            found += 1
        s, rest = behind, left
        if has_left:
            remove(caches, c, pool, b, int64(at))
            caches[c, SWEPT] += 1
    work[NEXT], work[LEFT] = s, rest
    return found


@helper(inline=True)
def _chain(p: int, bounds: int, turns: Int64s, placed: Int64s) -> Any:
    """Where the step at placed[p] walks in a turn. bounds: where those of its window stand among the turns."""
    return placed_chain(placed, p, turns[bounds], turns[bounds + uint64(1)])


@helper
def _by_last_step(
    p: int, turn: int, turns: Int64s, placed: Int64s, nodes: Int64s, run: JoinRun, output: Output, found: int
) -> Any:
    """Put out the slots chosen with each one that the last step, which has no further checks, finds from levels on."""
    chosen, levels, state = run.chosen, run.levels, run.state
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    n, limit = len(chosen), len(out_ts)
    ts, sign = turns[turn + uint64(T_TS)], turns[turn + uint64(T_KIND)]
    j = uint64(placed[p + uint64(TARGET)])
    chain = _chain(p, turn + uint64(T_BOUNDS) + uint64(2) * j, turns, placed)
    tag, s = levels[uint64(2 * (n - 2))], levels[uint64(2 * (n - 2) + 1)]
    s, inspected = next_slot(nodes, chain, tag, s)
    while s >= chain.low:
        if found == limit:
            state[STATUS] = FULL
            break
        f = uint64(found)
        for m in range(n):
            out[uint64(m), f] = chosen[uint64(m)]
        out[j, f] = s
        out_ts[f], out_sign[f] = ts, sign
        found += 1
        s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
        inspected += looked
    levels[uint64(2 * (n - 2) + 1)] = s
    state[INSPECTED] += inspected
    return found


@helper
def _next_match(p: int, depth: int, turn: int, turns: Int64s, plan: PlacedPlan, windows: Windows, run: JoinRun) -> Any:
    """Choose the next slot that the step at placed[p] finds from levels[depth] on; False where there is none."""
    nodes = windows.nodes
    chosen, levels, state = run.chosen, run.levels, run.state
    placed, checks = plan.placed, plan.checks
    is_cancelling = turns[turn + uint64(T_KIND)] == CANCELS
    j = uint64(placed[p + uint64(TARGET)])
    chain = _chain(p, turn + uint64(T_BOUNDS) + uint64(2) * j, turns, placed)
    tag, s = levels[uint64(2 * depth)], levels[uint64(2 * depth + 1)]
    joins = False
    inspected = int64(0)
    while not joins:
        s, looked = next_slot(nodes, chain, tag, s)
        inspected += looked
        if s < chain.low:
            break
        chosen[j] = s
        joins = checks_hold(windows, checks, chosen, placed[p + uint64(CHECK)], placed[p + uint64(CHECKS_END)])
        if joins and is_cancelling:
            joins = is_stamped(windows, run, j, s)
        s = older(nodes, chain, s)
    levels[uint64(2 * depth + 1)] = s
    state[INSPECTED] += inspected
    return joins


@helper
def _by_steps(
    turn: int, blocks: Block, plan: PlacedPlan, windows: Windows, run: JoinRun, output: Output, found: int
) -> Any:
    """Put out what the last steps of the turn's pipeline make of the slots chosen, depth first."""
    nodes = windows.nodes
    chosen, state = run.chosen, run.state
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    placed = plan.placed
    turns, work = blocks.turns, blocks.work
    n = len(chosen)
    i, level, _ = _final_of(turn, blocks, plan)
    last, limit, is_cancelling = n - 2, len(out_ts), turns[turn + uint64(T_KIND)] == CANCELS
    depth = work[AT_DEPTH]
    while depth >= level and state[STATUS] == DONE:
        p = uint64((i * (n - 1) + depth) * PLACED_WORDS)
        has_checks = placed[p + uint64(CHECK)] < placed[p + uint64(CHECKS_END)]
        if state[INSPECTED] >= state[UNTIL]:
            state[STATUS] = PAUSED
        elif depth == last and not has_checks and not is_cancelling:
            found = _by_last_step(p, turn, turns, placed, nodes, run, output, found)
            depth -= int64(state[STATUS] == DONE)
        elif depth == last and found == limit:
            state[STATUS] = FULL
        elif not _next_match(p, depth, turn, turns, plan, windows, run):
            depth -= 1
        elif depth < last:
            depth += 1
            _begin_step(i, depth, plan, windows, run, int64(-1))
        else:
            for m in range(n):
                out[uint64(m), uint64(found)] = chosen[uint64(m)]
            out_ts[uint64(found)] = turns[turn + uint64(T_TS)]
            out_sign[uint64(found)] = 1 if turns[turn + uint64(T_KIND)] == 1 else -1
            found += 1
    work[AT_DEPTH] = depth
    return found


@helper
def _begin_turn(turn: int, blocks: Block, windows: Windows, run: JoinRun, output: Output, found: int) -> Any:
    """Begin an instant, stamp its insertions, or put its deletions in front; whether the turn has rows to put out."""
    state = run.state
    out, out_sign = output.out, output.out_sign
    turns, work = blocks.turns, blocks.work
    kind = turns[turn + uint64(T_KIND)]
    if turns[turn + uint64(T_TS)] != work[ANSWERED]:
        work[ANSWERED], state[FIRST] = turns[turn + uint64(T_TS)], found
    if kind == STAMPS_ALL:
        work[IS_STAMPED], work[LEAVER] = int64(found > state[FIRST]), -1
        if found > state[FIRST]:
            stamp(windows, run, out, state[FIRST], found)
            state[MIDDLE] = found
    elif kind == SETTLES and work[IS_STAMPED] != 0:
        work[IS_STAMPED] = 0
        if found > state[MIDDLE]:
            deletions_first(out, out_sign, state[FIRST], state[MIDDLE], found)
            state[DELETED] += found - state[MIDDLE]
    return kind == 1 or kind == -1 or (kind == CANCELS and work[IS_STAMPED] != 0)


@helper
def put_out(
    blocks: Block, plan: PlacedPlan, windows: Windows, run: JoinRun, store: CacheArrays, output: Output, found: int
) -> Any:
    """Put out the turns from work[TURN] on; returns how many tuples stand in `out`. state[STATUS] is FULL where it has
    no room for more, PAUSED where steps have inspected enough.
    """
    state, work = run.state, blocks.work
    words = T_BOUNDS + 2 * len(windows.inputs)
    while work[TURN] < work[TURNS] and state[STATUS] == DONE:
        turn = uint64(work[TURN] * words)
        c = _final_of(turn, blocks, plan)[2]
        goes_on = _begin_turn(turn, blocks, windows, run, output, found)
        while goes_on:
            if work[IS_ACTIVE] == 0 and not _begin_row(turn, blocks, plan, windows, run, store):
                break
            if work[BUCKET] >= 0:
                found = _from_entry(work[BUCKET], c, turn, blocks, run, store, output, found)
            else:
                found = _by_steps(turn, blocks, plan, windows, run, output, found)
            goes_on = state[STATUS] == DONE
            work[IS_ACTIVE] = int64(not goes_on)
        if state[STATUS] == DONE:
            work[TURN] += 1
    return found
