"""The operations on lists of rows by which `kernels.block_mjoin` joins a block of elements (`kernels.join_program`).

A list stands in one of two halves of its room, and what an operation makes of it in the other. A row is the turn of its
element, or in the list of misses the bucket of its entry, and a slot of each input, as far as one is chosen.

Loops over a list find all buckets first and then follow them, so that a row does not wait for another.

Invariant: an operation that found no room has changed nothing, and is done anew with more; one that is PAUSED goes on
where it was. Babu 2005, section 5.4.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_cache_layout import CacheArrays, PlacedPlan
from minidsms.kernels.join_layout import Windows
from minidsms.kernels.join_program import Block
from minidsms.machine_code import Int64s, Int64Table

# A name to a line would be a sixth of the file.
# isort: off
# fmt: off
from minidsms.machine_code import helper, int64, uint64
from minidsms.kernels.join_cache_entries import (
    append, begin_entry, bucket_of, mixed, note_miss, sweep_when_due, tuple_at, tuple_behind,
)
from minidsms.kernels.join_cache_layout import (
    BUCKETS, BUCKET_HEAD, CREATED, HITS, IGNORED, INLINE, INSERTS, KEY_WORDS, MEMBERS, PAGE, PAGE_BITS, PART_INPUT,
    PART_MASK, PART_NODES, PART_WORDS, PINNED, PLACED_WORDS, PROBES, SIZE, STRIDE, TABLE,
)
from minidsms.kernels.join_layout import NO_LIMIT
from minidsms.kernels.join_program import (
    AFTER, BLOCK, CACHE, COMPLETE, COMPUTE, EXPAND, EXPANDED, FIRST_MET, KIND, LOOKUP, MADE, PARTS, PIPELINE, ROWS,
    SIDE, SPREAD, SPREAD_MADE, SPREAD_ROW, SPREAD_STEP, STEP, T_BOUNDS, T_KIND, UPDATE,
)
from minidsms.kernels.mixing import bucket
from minidsms.kernels.access_methods.hashes import hashed_tag
from minidsms.kernels.chains import Chain, next_slot, older
from minidsms.kernels.links import head_slot
from minidsms.kernels.join_layout import (
    CHECK, CHECKS_END, FROM, HASHED, INSPECTED, LO, MASK, NODES, PASSED, PAUSED, STATUS, TARGET, UNTIL,
)
from minidsms.kernels.placed_steps import (
    SOURCE_MASK, SOURCE_NODES, TARGET_HEADS, TARGET_MASK, TARGET_NODES, TARGET_SHIFT,
)
# fmt: on
# isort: on


@helper(inline=True)
def _rows_of(blocks: Block, l: int) -> Any:
    """Where the rows of list l begin, and how many words each has."""
    width = len(blocks.rows)
    return (blocks.rows[l, SIDE] * width + l) * len(blocks.firsts) * width, width


@helper
def _find_firsts(p: int, l: int, blocks: Block, plan: PlacedPlan, windows: Windows) -> None:
    """firsts[r]: the newest slot of the bucket in which the step at placed[p] finds what row r of list l asks for."""
    placed, checks = plan.placed, plan.checks
    lists, firsts = blocks.lists, blocks.firsts
    begin, width = _rows_of(blocks, l)
    source, source_nodes, source_mask = placed[p + FROM], placed[p + SOURCE_NODES], placed[p + SOURCE_MASK]
    buckets, shift, near = placed[p + TARGET_HEADS], placed[p + TARGET_SHIFT], windows.inputs[placed[p + TARGET], LO]
    check, hashed = placed[p + CHECK], placed[p + CHECK] + placed[p + HASHED]
    for r in range(blocks.rows[l, ROWS]):
        slot = lists[uint64(begin + r * width + 1 + source)]
        tag = windows.nodes[uint64(source_nodes + 2 * (slot & source_mask))]
        if hashed > check:
            tag = hashed_tag(windows, checks, lists, begin + r * width + 1, check, hashed)
        firsts[uint64(r)] = head_slot(windows.heads, buckets + bucket(tag, shift), near)


@helper
def _expand(p: int, l: int, is_free: int, blocks: Block, plan: PlacedPlan, windows: Windows, state: Int64s) -> Any:
    """Replace the list l by what the step at placed[p] makes of its rows; False where there is no room for that, or it
    is PAUSED: called again, it goes on behind the rows that are done.

    is_free: no bounds hold but those of the block.
    """
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    placed, checks = plan.placed, plan.checks
    bounds, turns, lists, rows, firsts = blocks.bounds, blocks.turns, blocks.lists, blocks.rows, blocks.firsts
    work = blocks.work
    n, capacity = len(inputs), len(firsts)
    width, words = n + 1, T_BOUNDS + 2 * n
    side = rows[l, SIDE]
    begin, target = (side * width + l) * capacity * width, ((1 - side) * width + l) * capacity * width
    j, source, source_nodes = placed[p + TARGET], placed[p + FROM], placed[p + SOURCE_NODES]
    source_mask, base, mask = placed[p + SOURCE_MASK], placed[p + TARGET_NODES], placed[p + TARGET_MASK]
    check, checks_end = placed[p + CHECK], placed[p + CHECKS_END]
    hashed = check + placed[p + HASHED]
    done, made = work[EXPANDED], work[MADE]
    work[EXPANDED] = work[MADE] = 0
    if done == 0:
        _find_firsts(p, l, blocks, plan, windows)
    passed = inspected = int64(0)
    most = state[UNTIL] - state[INSPECTED]
    low, high = bounds[FIRST_MET, j], int64(NO_LIMIT)
    for r in range(done, rows[l, ROWS]):
        if inspected >= most:
            state[STATUS], work[EXPANDED], work[MADE] = PAUSED, r, made
            break
        at = begin + r * width
        tag = nodes[uint64(source_nodes + 2 * (lists[uint64(at + 1 + source)] & source_mask))]
        if hashed > check:
            tag = hashed_tag(windows, checks, lists, at + 1, check, hashed)
        if not is_free:
            turn = uint64(lists[uint64(at)] * words + T_BOUNDS + 2 * j)
            low, high = turns[turn], turns[turn + uint64(1)]
        chain = Chain(base, int64(2), mask, low, int64(NO_LIMIT))
        s, looked = next_slot(nodes, chain, tag, firsts[uint64(r)])
        inspected += looked
        while s >= low:
            if s >= high:
                passed += 1
            elif made == capacity:
                return False
            else:
                to = target + made * width
                for m in range(width):
                    lists[uint64(to + m)] = lists[uint64(at + m)]
                lists[uint64(to + 1 + j)] = s
                made += 1
                for e in range(check, checks_end):
                    x, y = checks[e, 0], checks[e, 2]
                    at_x = keys[checks[e, 1], NODES] + 2 * (lists[to + 1 + x] & inputs[x, MASK])
                    at_y = keys[checks[e, 3], NODES] + 2 * (lists[to + 1 + y] & inputs[y, MASK])
                    if nodes[at_x] != nodes[at_y]:
                        made -= 1
                        break
            s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
            inspected += looked
    state[INSPECTED] += inspected
    state[PASSED] += passed
    if state[STATUS] == PAUSED:
        return False
    rows[l, ROWS], rows[l, SIDE] = made, 1 - side
    return True


@helper
def _find_buckets(c: int, q: int, l: int, blocks: Block, parts: Int64s, nodes: Int64s, caches: Int64Table) -> Any:
    """firsts[r]: where in the table of cache c the first bucket for the key of row r of list l stands.

    q: where the parts of the key begin.
    """
    lists, firsts = blocks.lists, blocks.firsts
    begin, width = _rows_of(blocks, l)
    words, buckets, stride = caches[c, KEY_WORDS], caches[c, BUCKETS], caches[c, STRIDE]
    for r in range(blocks.rows[l, ROWS]):
        h = uint64(0)
        part = uint64(q)
        for _ in range(words):
            slot = lists[uint64(begin + r * width + 1 + parts[part + uint64(PART_INPUT)])]
            h = mixed(h, nodes[uint64(parts[part + uint64(PART_NODES)] + 2 * (slot & parts[part + uint64(PART_MASK)]))])
            part += uint64(PART_WORDS)
        firsts[uint64(r)] = bucket_of(h, buckets) * stride


@helper(inline=True)
def _has_key(b, q, words, at, lists, parts, nodes, pool):  # type: ignore[no-untyped-def]
    """The bucket has an entry for the key of the row at lists[at]."""
    same = pool[uint64(b)] >= 0
    part = uint64(q)
    for w in range(words):
        slot = lists[uint64(at + 1 + parts[part + uint64(PART_INPUT)])]
        word = nodes[uint64(parts[part + uint64(PART_NODES)] + 2 * (slot & parts[part + uint64(PART_MASK)]))]
        same &= pool[uint64(b + BUCKET_HEAD + w)] == word
        part += uint64(PART_WORDS)
    return same


@helper
def _update(c: int, q: int, l: int, blocks: Block, parts: Int64s, windows: Windows, store: CacheArrays) -> Any:
    """CacheUpdate: the insertions among the rows of list l are what the segment of cache c gains."""
    inputs, nodes = windows.inputs, windows.nodes
    caches, tables, pool = store.caches, store.tables, store.pool
    turns, lists, rows, firsts = blocks.turns, blocks.lists, blocks.rows, blocks.firsts
    n = len(inputs)
    begin, width = _rows_of(blocks, l)
    words, stride = caches[c, KEY_WORDS], caches[c, STRIDE] if caches[c, BUCKETS] > 1 else int64(0)
    _find_buckets(c, q, l, blocks, parts, nodes, caches)
    for r in range(rows[l, ROWS]):
        at = begin + r * width
        if turns[uint64(lists[uint64(at)] * (T_BOUNDS + 2 * n) + T_KIND)] != 1:
            continue
        b = int64(-1)
        page = tables[uint64(caches[c, TABLE] + (firsts[uint64(r)] >> PAGE_BITS))]
        if page >= 0:
            b = page + (firsts[uint64(r)] & (PAGE - 1))
            if not _has_key(b, q, words, at, lists, parts, nodes, pool):
                b = page + ((firsts[uint64(r)] & (PAGE - 1)) ^ stride)
                if not _has_key(b, q, words, at, lists, parts, nodes, pool):
                    b = int64(-1)
        if b < 0:
            caches[c, IGNORED] += 1
        else:
            sweep_when_due(store, c, inputs, b)
            caches[c, INSERTS] += 1
            append(store, c, lists[at + 1 : at + width], b)


@helper
def _look_up(c: int, q: int, l: int, blocks: Block, parts: Int64s, windows: Windows, store: CacheArrays) -> Any:
    """CacheLookup: the entry of each row of list l, -1 for none, into `entries`; those begun are in the list of misses
    once.
    """
    inputs, nodes = windows.inputs, windows.nodes
    caches, ghosts, tables, pool = store.caches, store.ghosts, store.tables, store.pool
    turns, lists, rows, firsts, entries = blocks.turns, blocks.lists, blocks.rows, blocks.firsts, blocks.entries
    n, block, capacity = len(inputs), blocks.work[BLOCK], len(firsts)
    begin, width = _rows_of(blocks, l)
    miss = n * capacity * width
    words, stride = caches[c, KEY_WORDS], caches[c, STRIDE] if caches[c, BUCKETS] > 1 else int64(0)
    rows[n, ROWS] = rows[n, SIDE] = 0
    _find_buckets(c, q, l, blocks, parts, nodes, caches)
    hits = int64(0)
    for r in range(rows[l, ROWS]):
        at, place = begin + r * width, firsts[uint64(r)] & (PAGE - 1)
        entry = caches[c, TABLE] + (firsts[uint64(r)] >> PAGE_BITS)
        b = page = tables[uint64(entry)]
        if page >= 0:
            b = page + place
            if not _has_key(b, q, words, at, lists, parts, nodes, pool):
                b = page + (place ^ stride)
                if not _has_key(b, q, words, at, lists, parts, nodes, pool):
                    b = int64(-1)
        if b >= 0:
            hits += 1
            if pool[b + PINNED] != block:
                sweep_when_due(store, c, inputs, b)
            pool[b + PINNED] = block
        else:
            b = begin_entry(store, c, entry, place, -1, block)
            h, part = uint64(0), uint64(q)
            for w in range(words):
                slot = lists[uint64(at + 1 + parts[part + uint64(PART_INPUT)])]
                mask = parts[part + uint64(PART_MASK)]
                word = nodes[uint64(parts[part + uint64(PART_NODES)] + 2 * (slot & mask))]
                h = mixed(h, word)
                if b >= 0:
                    pool[b + BUCKET_HEAD + w] = word
                part += uint64(PART_WORDS)
            if turns[uint64(lists[at] * (T_BOUNDS + 2 * n) + T_KIND)] == 1:
                note_miss(caches, c, ghosts, h)
            if b >= 0:
                to = miss + rows[n, ROWS] * width
                for m in range(width):
                    lists[to + m] = lists[at + m]
                lists[to] = b
                rows[n, ROWS] += 1
        entries[uint64(l * capacity + r)] = b
    caches[c, PROBES] += rows[l, ROWS]
    caches[c, HITS] += hits


@helper
def _complete(c: int, blocks: Block, store: CacheArrays) -> Any:
    """Add the rows of the list of misses to the entries begun; one that has no room for them is dropped."""
    caches, pool = store.caches, store.pool
    lists, rows = blocks.lists, blocks.rows
    n = len(rows) - 1
    begin, width = _rows_of(blocks, n)
    caches[c, CREATED] += rows[n, ROWS]
    for r in range(rows[n, ROWS]):
        at = begin + r * width
        if pool[lists[at]] >= 0:
            append(store, c, lists[at + 1 : at + width], lists[at])


@helper
def _spread(op: int, blocks: Block, plan: PlacedPlan, windows: Windows, state: Int64s, store: CacheArrays) -> Any:
    """Replace the list of the operation's pipeline by its rows with the tuples of their entries; where there is none,
    its steps from STEP to AFTER say what joins. False as of `_expand`.
    """
    inputs, program = windows.inputs, plan.program
    i, c = program[op + PIPELINE], program[op + CACHE]
    position, after = program[op + STEP], program[op + AFTER]
    caches, members, pool = store.caches, store.members, store.pool
    turns, lists, rows, entries, work = blocks.turns, blocks.lists, blocks.rows, blocks.entries, blocks.work
    n, capacity = len(inputs), len(blocks.firsts)
    words, side = T_BOUNDS + 2 * n, rows[i, SIDE]
    begin, width = _rows_of(blocks, i)
    target = ((1 - side) * width + i) * capacity * width
    size, first = caches[c, SIZE], caches[c, MEMBERS]
    begun, made, step = work[SPREAD_ROW], work[SPREAD_MADE], work[SPREAD_STEP] - 1
    work[SPREAD_ROW] = work[SPREAD_MADE] = work[SPREAD_STEP] = 0
    for r in range(begun, rows[i, ROWS]):
        at, b = begin + r * width, entries[i * capacity + r]
        if b >= 0 and pool[b] >= 0:
            s, rest = pool[b + 1], min(pool[b], caches[c, INLINE])
            while s != 0 or rest > 0:
                cached = tuple_at(caches, c, b, s, rest)
                s, rest = tuple_behind(pool, s, rest)
                if made == capacity:
                    return False
                to = target + made * width
                for m in range(width):
                    lists[uint64(to + m)] = lists[uint64(at + m)]
                is_there = True
                for m in range(size):
                    j, slot = members[uint64(first + m)], pool[uint64(cached + m)]
                    at_bounds = uint64(lists[at] * words + T_BOUNDS + 2 * j)
                    is_there &= turns[at_bounds] <= slot < turns[at_bounds + uint64(1)]
                    lists[uint64(to + 1 + j)] = slot
                made += int64(is_there)
        else:
            # As the rest of a list whose earlier rows are done: it stands at the beginning of the room for misses.
            if step < 0:
                step = position
                for m in range(width):
                    lists[n * capacity * width + m] = lists[at + m]
                rows[n, ROWS], rows[n, SIDE] = 1, 0
            for d in range(step, after):
                if not _expand((i * (n - 1) + d) * PLACED_WORDS, n, False, blocks, plan, windows, state):
                    if state[STATUS] == PAUSED:
                        work[SPREAD_ROW], work[SPREAD_MADE], work[SPREAD_STEP] = r, made, d + 1
                    return False
            step = int64(-1)
            if made + rows[n, ROWS] > capacity:
                return False
            found = _rows_of(blocks, n)[0]
            for x in range(rows[n, ROWS] * width):
                lists[target + made * width + x] = lists[found + x]
            made += rows[n, ROWS]
    rows[i, ROWS], rows[i, SIDE] = made, 1 - side
    return True


@helper
def _probe(p: int, i: int, blocks: Block, plan: PlacedPlan, windows: Windows, state: Int64s) -> Any:
    """Drop the rows of the list of pipeline i for which the step at placed[p] finds nothing; the first slot that it
    finds for the others goes into `entries`.
    """
    nodes, placed, checks = windows.nodes, plan.placed, plan.checks
    turns, lists, rows, firsts, entries = blocks.turns, blocks.lists, blocks.rows, blocks.firsts, blocks.entries
    capacity, words = len(firsts), T_BOUNDS + 2 * len(windows.inputs)
    begin, width = _rows_of(blocks, i)
    j, source, source_nodes = placed[p + TARGET], placed[p + FROM], placed[p + SOURCE_NODES]
    source_mask, base, mask = placed[p + SOURCE_MASK], placed[p + TARGET_NODES], placed[p + TARGET_MASK]
    check, hashed = placed[p + CHECK], placed[p + CHECK] + placed[p + HASHED]
    _find_firsts(p, i, blocks, plan, windows)
    kept = passed = inspected = int64(0)
    for r in range(rows[i, ROWS]):
        at = begin + r * width
        tag = nodes[uint64(source_nodes + 2 * (lists[uint64(at + 1 + source)] & source_mask))]
        if hashed > check:
            tag = hashed_tag(windows, checks, lists, at + 1, check, hashed)
        turn = uint64(lists[uint64(at)] * words + T_BOUNDS + 2 * j)
        low, high = turns[turn], turns[turn + uint64(1)]
        chain = Chain(base, int64(2), mask, low, int64(NO_LIMIT))
        s, looked = next_slot(nodes, chain, tag, firsts[uint64(r)])
        inspected += looked
        while s >= high:
            passed += 1
            s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
            inspected += looked
        if s >= low:
            to = begin + kept * width
            for m in range(width):
                lists[uint64(to + m)] = lists[uint64(at + m)]
            entries[uint64(i * capacity + kept)] = s
            kept += 1
    rows[i, ROWS] = kept
    state[INSPECTED] += inspected
    state[PASSED] += passed


@helper
def operate(op: int, plan: PlacedPlan, blocks: Block, windows: Windows, state: Int64s, store: CacheArrays) -> Any:
    """Do one operation of the program; False where it needs more room, or is PAUSED."""
    inputs = windows.inputs
    program, parts = plan.program, plan.parts
    n = len(inputs)
    i, d, c, q = program[op + PIPELINE], program[op + STEP], program[op + CACHE], program[op + PARTS]
    p = (i * (n - 1) + d) * PLACED_WORDS
    kind = program[op + KIND]
    is_done = True
    if kind in (EXPAND, COMPUTE):
        is_done = _expand(p, i if kind == EXPAND else n, kind == COMPUTE, blocks, plan, windows, state)
    elif kind == UPDATE:
        _update(c, q, i, blocks, parts, windows, store)
    elif kind == LOOKUP:
        _look_up(c, q, i, blocks, parts, windows, store)
    elif kind == COMPLETE:
        _complete(c, blocks, store)
    elif kind == SPREAD:
        is_done = _spread(op, blocks, plan, windows, state, store)
    else:
        _probe(p, i, blocks, plan, windows, state)
    return is_done
