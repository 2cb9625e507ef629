"""Joining n windows with caches, a block of elements at a time.

Rows of an input leave in the order they came (no bags), and caches hold whole segments. The elements of a block, of all
inputs, are cut into *turns*: elements of one input at one instant, insertions or deletions. All that arrive are linked
at once; what a turn's elements meet are then the slots of each input between two bounds, and so it does not matter when
they are joined. Work goes operation by operation (`kernels.join_program`), each a loop over the rows of a list:
  1. pipelines run until every change of a cached segment is known, and entries that are there are updated;
  2. keys are looked up. An entry holds what joins over all rows of the block, those that are still to come among them:
     a hit leaves out what is beyond the bounds. So rows of one key that all miss compute its segment once;
  3. the answer is put out, turn by turn: from entries, or by the last steps of a pipeline, depth first.

Invariant: between blocks the tuples of an entry whose slots are all there are its segment's join for its key; others
are swept when there are too many of them. Babu 2005, section 5.4; the index is that of `kernels.mjoin`.
"""

from __future__ import annotations

# A name to a line would be a sixth of the file.
# isort: off
# fmt: off
from minidsms.machine_code import helper, int64, kernel, uint64
from minidsms.kernels.join_cache_layout import (
    CHUNK_HEAD, FILL, INLINE, INLINE_AT, MEMBERS, PLACED_WORDS, SIZE, SOURCE, SOURCE_MASK, SOURCE_NODES, STEP_CHECK,
    STEP_CHECKS_END, STEP_TARGET, SWEEP_AT, TARGET_HEADS, TARGET_MASK, TARGET_NODES, TARGET_SHIFT,
)
from minidsms.kernels.join_instants import (
    CANCEL, DELETE, INSERT, START, deletions_first, next_arrivals, next_runs, stamp,
)
from minidsms.kernels.join_program import (
    ANSWERED, AT_DEPTH, BLOCK, BUCKET, CANCELS, CROWDED, ENTRY, FINAL_WORDS,
    IS_ACTIVE, IS_OPEN, IS_STAMPED, LEAST_ROOM, LEAVER, LEFT, LEVEL, MOST_ROOM, NEXT, OP, OP_WORDS, ROOM, ROW, ROWS,
    SETTLES, SIDE, STAMPS_ALL, TURN, TURNS, T_BEGIN, T_BOUNDS, T_END, T_INPUT,
    T_KIND, T_TS,
)
from minidsms.kernels.mjoin import (
    DELETED, DONE, FIRST, FULL, HAS_NULLS, HEADS, HI, INPUT, INSPECTED, INSTANT, KEY, KEYS_END, LEAVING, LINKED, LO,
    MARKS, MASK, MIDDLE, MISSING, NODES, OLD_HI, OLD_LO, PASSED, PHASE, PROBE_LO, SERIAL, SHIFT, SLOT, STAMPS, STATUS,
    UNLINKED,
)
from minidsms.kernels.join_operations import operate
from minidsms.kernels.mixing import bucket
# fmt: on
# isort: on


# ------------------------------------------------------------------------------------------------ taking up a block


@helper
def _take_turns(runs, instants, inputs, stops, state, work, turns, begins, netted, of_streams):  # type: ignore[no-untyped-def]
    """Cut the elements that come next, at most work[ROOM], into turns; returns how many turns there are.

    begins: (2, n) of each input its first slot that an element of the block may meet, and the first that arrives.
    """
    n = len(inputs)
    words = T_BOUNDS + 2 * n
    room = work[ROOM]
    phase, i = state[PHASE], state[INPUT]
    count = int64(0)
    for j in range(n):
        begins[1, j] = inputs[j, HI]
    while room > 0 and (count + 1) * words <= len(turns):
        if phase == START:
            if of_streams != 0:
                phase = next_arrivals(instants, inputs, stops, state)
            else:
                phase = next_runs(runs, inputs, stops, state, netted)
            if phase == START or state[STATUS] == MISSING:
                break
            i, state[SLOT] = int64(0), int64(-1)
        if count == 0:
            for j in range(n):
                begins[0, j] = inputs[j, OLD_LO]
        # What input i does in this phase; where the block has no room for all of it, the rest comes in the next.
        kind, begin, stop, is_over = int64(SETTLES), int64(0), int64(0), True
        if phase == INSERT:
            kind, begin = int64(1), inputs[i, HI]
            stop = min(stops[i], begin + room)
            inputs[i, HI], is_over = stop, stop == stops[i]
        elif phase == DELETE:
            kind, begin = int64(-1), max(inputs[i, OLD_LO], state[SLOT])
            stop = min(inputs[i, LO], begin + room)
            state[SLOT], is_over = stop, stop == inputs[i, LO]
        elif i < 0:
            kind = int64(STAMPS_ALL)
        elif i < n:
            kind, begin, stop = int64(CANCELS), inputs[i, OLD_LO], inputs[i, LO]
        if begin < stop or i < 0 or i == n:
            t = count * words
            turns[t + T_INPUT], turns[t + T_BEGIN], turns[t + T_END] = max(i, 0) % n, begin, stop
            turns[t + T_KIND], turns[t + T_TS] = kind, state[INSTANT]
            for j in range(n):
                is_past = j < i
                low, high = inputs[j, LO], inputs[j, OLD_HI]
                if phase == INSERT and is_past:
                    high = stops[j]
                elif phase != INSERT and not is_past:
                    low = inputs[j, OLD_LO]
                turns[t + T_BOUNDS + 2 * j], turns[t + T_BOUNDS + 2 * j + 1] = low, high
            count += 1
            if phase != CANCEL:
                room -= stop - begin
        if is_over:
            i += 1
            state[SLOT] = -1
            if phase == DELETE and i == n:
                phase, i = int64(INSERT), int64(0)
            elif phase == INSERT and i == n:
                phase = int64(CANCEL) if netted != 0 and state[LEAVING] > 0 else int64(START)
                i = int64(-1)
            elif i > n:
                phase = int64(START)
    state[PHASE], state[INPUT] = phase, i
    return count


@helper
def _link(inputs, keys, nodes, heads, i, first):  # type: ignore[no-untyped-def]
    """Put the slots of input i from `first` up to HI at the head of their buckets; those with a NULL key into none."""
    stop, mask, has_nulls = inputs[i, HI], inputs[i, MASK], inputs[i, HAS_NULLS] != 0
    if has_nulls:
        for slot in range(first, stop):
            at = 2 * (slot & mask) + 1
            linked = True
            for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                linked &= nodes[keys[x, NODES] + at] != UNLINKED
            for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                if not linked:
                    nodes[keys[x, NODES] + at] = UNLINKED
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        base, buckets, shift = keys[x, NODES], keys[x, HEADS], keys[x, SHIFT]
        for slot in range(first, stop):
            k = uint64(base + 2 * (slot & mask))
            if not has_nulls or nodes[k + uint64(1)] != UNLINKED:
                b = uint64(buckets + bucket(nodes[k], shift))
                nodes[k + uint64(1)] = heads[b]
                heads[b] = slot
    inputs[i, LINKED] = stop


@helper
def _begin_lists(capacity, turns, count, inputs, keys, nodes, lists, rows):  # type: ignore[no-untyped-def]
    """Write the elements of the turns into the lists of their inputs."""
    n = len(inputs)
    width = n + 1
    for l in range(n + 1):
        rows[l, ROWS] = rows[l, SIDE] = rows[l, ROW] = 0
    for t in range(count):
        turn = t * (T_BOUNDS + 2 * n)
        kind, i = turns[turn + T_KIND], turns[turn + T_INPUT]
        base, mask, has_nulls = keys[inputs[i, KEY], NODES], inputs[i, MASK], inputs[i, HAS_NULLS] != 0
        at = (i * capacity + rows[i, ROWS]) * width
        for slot in range(turns[turn + T_BEGIN], turns[turn + T_END] if kind == 1 or kind == -1 else 0):
            if not has_nulls or nodes[uint64(base + 2 * (slot & mask) + 1)] != UNLINKED:
                lists[uint64(at)], lists[uint64(at + 1 + i)] = t, slot
                rows[i, ROWS] += 1
                at += width


@helper
def _open_block(  # type: ignore[no-untyped-def]
    runs, instants, inputs, keys, nodes, heads, stops, state, work, turns, begins, capacity, lists, rows, netted,
    of_streams,
):  # fmt: skip
    """Take up a block: its turns, its arrivals in the index, its elements in lists. False where nothing waits."""
    n = len(inputs)
    count = _take_turns(runs, instants, inputs, stops, state, work, turns, begins, netted, of_streams)
    for i in range(n):
        _link(inputs, keys, nodes, heads, i, begins[1, i])
        if count > 0:
            inputs[i, PROBE_LO] = begins[0, i]
    _begin_lists(capacity, turns, count, inputs, keys, nodes, lists, rows)
    work[IS_OPEN] = 1 if count > 0 else 0
    work[OP] = work[TURN] = work[IS_ACTIVE] = state[PASSED] = 0
    work[TURNS] = count
    work[LEAVER] = -1
    work[BLOCK] += 1
    return count > 0


# ------------------------------------------------------------------------------------------------------ the answer


@helper
def _emit(  # type: ignore[no-untyped-def]
    capacity, turns, lists, rows, entries, finals, placed, checks, inputs, keys, nodes, heads, marks, stamps, chosen,
    levels, state, work, caches, members, pool, out, out_ts, out_sign, found,
):  # fmt: skip
    """Put out the turns from work[TURN] on, as far as `out` has room; returns how many tuples stand in it."""
    n = len(inputs)
    last, limit, width, words = n - 2, len(out_ts), n + 1, T_BOUNDS + 2 * n
    b, s, rest, depth = work[BUCKET], work[NEXT], work[LEFT], work[AT_DEPTH]
    is_active = work[IS_ACTIVE] != 0
    is_full = False
    inspected = int64(0)
    t = work[TURN]
    while t < work[TURNS]:
        turn = uint64(t * words)
        i, kind = turns[turn + uint64(T_INPUT)], turns[turn + uint64(T_KIND)]
        ts, bounds = turns[turn + uint64(T_TS)], turn + uint64(T_BOUNDS)
        sign = 1 if kind == 1 else -1
        if ts != work[ANSWERED]:
            work[ANSWERED], state[FIRST] = ts, found
        if kind == STAMPS_ALL:
            work[IS_STAMPED], work[LEAVER] = int64(found > state[FIRST]), -1
            if found > state[FIRST]:
                stamp(inputs, marks, stamps, state, out, found)
        elif kind == SETTLES and work[IS_STAMPED] != 0:
            work[IS_STAMPED] = 0
            if found > state[MIDDLE]:
                deletions_first(out, out_sign, state[FIRST], state[MIDDLE], found)
                state[DELETED] += found - state[MIDDLE]
        level, c = finals[i * FINAL_WORDS + LEVEL], finals[i * FINAL_WORDS + ENTRY]
        if kind == CANCELS:
            level = 0
        # The turn's elements one by one: from their entries, or by the steps from `level` on.
        while kind == 1 or kind == -1 or (kind == CANCELS and work[IS_STAMPED] != 0):
            if not is_active:
                b = s = int64(-1)
                if kind == CANCELS:
                    slot = max(work[LEAVER], turns[turn + uint64(T_BEGIN)])
                    start, mask, base = inputs[i, MARKS], inputs[i, MASK], keys[inputs[i, KEY], NODES]
                    while slot < turns[turn + uint64(T_END)] and (
                        stamps[i, marks[start + (slot & mask)] & (STAMPS - 1)] != state[SERIAL]
                        or nodes[base + 2 * (slot & mask) + 1] == UNLINKED
                    ):
                        slot += 1
                    if slot >= turns[turn + uint64(T_END)]:
                        work[LEAVER] = -1
                        break
                    work[LEAVER], chosen[i] = slot + 1, slot
                else:
                    r = rows[i, ROW]
                    at = uint64(((rows[i, SIDE] * width + i) * capacity + r) * width)
                    if r == rows[i, ROWS] or lists[at] != t:
                        break
                    rows[i, ROW] = r + 1
                    for m in range(n):
                        chosen[uint64(m)] = lists[at + uint64(1 + m)]
                    s = entries[uint64(i * capacity + r)]
                    if c >= 0:
                        b = s if s >= 0 and pool[s] >= 0 else int64(-1)
                        s = int64(-1)
                is_active = True
                if b >= 0:
                    s, rest = pool[uint64(b + 1)], min(pool[uint64(b)], caches[c, INLINE])
                else:
                    depth = level
                    p = uint64((i * (n - 1) + depth) * PLACED_WORDS)
                    source = chosen[uint64(placed[p + uint64(SOURCE)])]
                    tag = nodes[
                        uint64(placed[p + uint64(SOURCE_NODES)] + 2 * (source & placed[p + uint64(SOURCE_MASK)]))
                    ]
                    if s < 0:
                        head = bucket(tag, placed[p + uint64(TARGET_SHIFT)])
                        s = heads[uint64(placed[p + uint64(TARGET_HEADS)] + head)]
                    levels[uint64(2 * depth)], levels[uint64(2 * depth + 1)] = tag, s
            if b >= 0:
                size, first, absent = caches[c, SIZE], caches[c, MEMBERS], int64(0)
                while s != 0 or rest > 0:
                    if s != 0:
                        at_tuple = uint64((s & ~FILL) + CHUNK_HEAD + ((s & FILL) - 1) * size)
                    else:
                        at_tuple = uint64(b + caches[c, INLINE_AT] + (rest - 1) * size)
                    is_there = True
                    for m in range(size):
                        j, x = uint64(members[uint64(first + m)]), pool[at_tuple + uint64(m)]
                        j2 = bounds + uint64(2) * j
                        is_there &= turns[j2] <= x < turns[j2 + uint64(1)]
                        chosen[j] = x
                    if is_there:
                        if found == limit:
                            is_full = True
                            break
                        for m in range(n):
                            out[uint64(m), uint64(found)] = chosen[uint64(m)]
                        out_ts[uint64(found)], out_sign[uint64(found)] = ts, sign
                        found += 1
                    else:
                        absent += 1
                    if s == 0:
                        rest -= 1
                    else:
                        s = s - 1 if s & FILL > 1 else pool[uint64(s & ~FILL)]
                if 2 * absent > pool[uint64(b)]:
                    pool[uint64(b + SWEEP_AT)] = 0
            else:
                while depth >= level and not is_full:
                    p = uint64((i * (n - 1) + depth) * PLACED_WORDS)
                    j = uint64(placed[p + uint64(STEP_TARGET)])
                    base, mask = placed[p + uint64(TARGET_NODES)], placed[p + uint64(TARGET_MASK)]
                    low, high = turns[bounds + uint64(2) * j], turns[bounds + uint64(2) * j + uint64(1)]
                    tag, s = levels[uint64(2 * depth)], levels[uint64(2 * depth + 1)]
                    goes_on = False
                    while s >= low:
                        k = uint64(base + 2 * (s & mask))
                        inspected += 1
                        if nodes[k] == tag and s < high:
                            chosen[j] = s
                            joins = True
                            for e in range(placed[p + uint64(STEP_CHECK)], placed[p + uint64(STEP_CHECKS_END)]):
                                x, y = checks[e, 0], checks[e, 2]
                                at_x = keys[checks[e, 1], NODES] + 2 * (chosen[x] & inputs[x, MASK])
                                at_y = keys[checks[e, 3], NODES] + 2 * (chosen[y] & inputs[y, MASK])
                                joins &= nodes[at_x] == nodes[at_y]
                            if joins and kind == CANCELS:
                                mark = marks[uint64(inputs[j, MARKS] + (s & mask))]
                                joins = stamps[j, mark & (STAMPS - 1)] == state[SERIAL]
                            if joins and depth < last:
                                goes_on = True
                                s = nodes[k + uint64(1)]
                                break
                            if joins:
                                if found == limit:
                                    is_full = True
                                    break
                                for m in range(n):
                                    out[uint64(m), uint64(found)] = chosen[uint64(m)]
                                out_ts[uint64(found)], out_sign[uint64(found)] = ts, sign
                                found += 1
                        s = nodes[k + uint64(1)]
                    levels[uint64(2 * depth + 1)] = s
                    if goes_on:
                        depth += 1
                        p = uint64((i * (n - 1) + depth) * PLACED_WORDS)
                        source = chosen[uint64(placed[p + uint64(SOURCE)])]
                        tag = nodes[
                            uint64(placed[p + uint64(SOURCE_NODES)] + 2 * (source & placed[p + uint64(SOURCE_MASK)]))
                        ]
                        head = bucket(tag, placed[p + uint64(TARGET_SHIFT)])
                        levels[uint64(2 * depth)] = tag
                        levels[uint64(2 * depth + 1)] = heads[uint64(placed[p + uint64(TARGET_HEADS)] + head)]
                    elif not is_full:
                        depth -= 1
            if is_full:
                break
            is_active = False
        if is_full:
            break
        t += 1
    work[TURN], work[IS_ACTIVE] = t, int64(is_active)
    work[BUCKET], work[NEXT], work[LEFT], work[AT_DEPTH] = b, s, rest, depth
    state[INSPECTED] += inspected
    return found


@helper
def _adapt_room(begins, inputs, state, work):  # type: ignore[no-untyped-def]
    """A block as large as pays: rows passed over because they come later are the price of linking them first."""
    total = int64(0)
    for j in range(len(inputs)):
        total += inputs[j, HI] - begins[1, j] + inputs[j, LO] - begins[0, j]
    if state[PASSED] > 4 * total:
        work[ROOM] = max(LEAST_ROOM, work[ROOM] // 2)
    elif state[PASSED] < 2 * total:
        work[ROOM] = min(MOST_ROOM, work[ROOM] * 2)


@kernel(
    "int64(int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1],"
    " int64[::1], int16[::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64,"
    " int64, int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,"
    " ::1], int64[::1], int8[::1], int64)"
)
def block_mjoin(  # type: ignore[no-untyped-def]
    runs, instants, inputs, keys, placed, checks, nodes, heads, marks, stamps, chosen, levels, stops, state, work,
    netted, of_streams, program, finals, begins, turns, lists, rows, firsts, entries, parts, caches, ghosts, members,
    tables, pool, owners, free, out, out_ts, out_sign, found,
):  # fmt: skip
    """Join what waits, block by block; returns how many tuples stand in `out`.

    As `kernels.cached_mjoin.cached_mjoin`, but: levels: (2 n,).  work: (WORK_WORDS,), how far the block is.
    program, finals: see `kernels.join_program`.  begins: (2, n).  turns: (t * (T_BOUNDS + 2 n),).  lists: of both
    halves and n + 1 lists, (capacity, n + 1) each, flat; rows: (n + 1, 3).  firsts: (capacity,).  entries: (n,
    capacity), flat. state[STATUS] is FULL where `out` has no room, CROWDED where a list has none: call again with more.
    O(elements + tuples + slots inspected + tuples cached and swept).
    """
    capacity = len(firsts)
    state[STATUS] = DONE
    while state[STATUS] == DONE:
        if work[IS_OPEN] == 0 and not _open_block(
            runs, instants, inputs, keys, nodes, heads, stops, state, work, turns, begins, capacity, lists, rows,
            netted, of_streams,
        ):  # fmt: skip
            break
        while work[OP] < len(program) and state[STATUS] == DONE:
            if operate(
                work[OP], program, capacity, begins, turns, lists, rows, firsts, entries, placed, checks, parts,
                inputs, keys, nodes, heads, state, work, caches, ghosts, members, tables, pool, owners, free,
            ):  # fmt: skip
                work[OP] += OP_WORDS
            else:
                state[STATUS] = CROWDED
        if state[STATUS] == DONE:
            found = _emit(
                capacity, turns, lists, rows, entries, finals, placed, checks, inputs, keys, nodes, heads, marks,
                stamps, chosen, levels, state, work, caches, members, pool, out, out_ts, out_sign, found,
            )  # fmt: skip
            if work[TURN] < work[TURNS]:
                state[STATUS] = FULL
            else:
                work[IS_OPEN] = 0
                _adapt_room(begins, inputs, state, work)
    return found
