"""Joining n windows by a tree of joins whose inner results are kept: XJoins, and trees of MJoins.

The windows are those of `kernels.mjoin`. Every inner node of the tree but its root has a *subresult*: a ring of cells
numbered by creation, [lo, hi), each the slots of a tuple's rows, and before them (tag, next) for each key that the
subresult is probed by. A cell dies when one of its rows leaves, and nothing is done then: probes pass over cells with a
row that is not in its window, `sweep` moves lo past dead cells and `compact` squeezes the others out of a full ring.

The slots of an input that is a bag (see `kernels.mjoin`) are used again, so that a slot alone does not tell a row. The
rows of bags are counted as they come: `births` has the number of the row that each slot holds, NEVER where it holds
none, and a cell with rows of bags ends with how many had come when it was made. The cell is dead if a row in one of its
slots came later. births[i] is where those of input i begin.

An element's pipeline climbs the tree: it probes its siblings, windows or subresults, adds the tuples found to the
subresult of their node, goes on with them to the node's siblings, and so forth; depth first, so that what is not kept
is not written anywhere. Babu 2005, section 5.3, figures 5.5 and 5.6.

Invariant: between two elements a subresult holds every tuple of its inputs' present rows, once.
"""

from __future__ import annotations

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.mixing import bucket
from minidsms.kernels.mjoin import (
    BACKS,
    CHECK,
    CHECKS_END,
    DELETED,
    DEPTH,
    DONE,
    FIRST,
    FROM,
    FROM_KEY,
    FULL,
    HAS_NULLS,
    HEADS,
    HI,
    INPUT,
    INSPECTED,
    INSTANT,
    IS_BAG,
    IS_SHOWN,
    KEY,
    KEYS_END,
    LEAVING,
    LENGTH,
    LINKED,
    LO,
    MARKS,
    MASK,
    MIDDLE,
    MISSING,
    NEEDED,
    NODES,
    OLD_HI,
    OLD_LO,
    PHASE,
    PROBE_HI,
    PROBE_LO,
    PROBED,
    RUN,
    RUN_DELETIONS,
    RUN_INSERTIONS,
    RUN_TS,
    RUNS_END,
    SERIAL,
    SHIFT,
    SLOT,
    STAMPS,
    STATE_WORDS,
    STATUS,
    STEP_WORDS,
    STOP,
    TARGET,
    UNLINKED,
)
from minidsms.machine_code import helper, int64, kernel, uint64

KEPT = STEP_WORDS
TREE_STEP_WORDS = STEP_WORDS + 1
"""Of a step, beyond those of `kernels.mjoin`: the subresult that takes the tuple it completes, or -1. TARGET counts
subresults after the inputs; then PROBED is a key of the subresult.
"""

VIEW_LO, VIEW_HI, VIEW_MASK, CELLS, WIDTH, MEMBER, BAG, MEMBERS_END, VIEW_KEY, VIEW_KEYS_END, VIEW_WORDS = range(11)
"""Of a subresult: its cells, ring mask, where they begin and how many words each has, its inputs, of which those from
BAG on are bags, its keys."""

LEAF, LEAF_KEY, VIEW_HEADS, VIEW_SHIFT, VIEW_KEY_WORDS = range(5)
"""Of a subresult's key: the input and its key that give the tag, where its bucket heads begin, and their shift."""

FILLED, BORN, TREE_STATE_WORDS = range(STATE_WORDS, STATE_WORDS + 3)
"""Of the whole: the subresult that is filled from the windows, or -1, and how many rows of bags have come."""

NEVER = 2**62
"""The birth of a slot that holds no row that joins."""

CROWDED = 4
"""A status: subresult state[NEEDED] is full; make room and call again."""

START, DELETE, INSERT, CANCEL, FILL = range(5)
"""Phases: those of `kernels.mjoin`, and that of filling a subresult from the rows of state[INPUT]."""

TAG, FOLLOWING, CHOSEN = range(3)
"""Rows of `walks`: tag and slot to look at next per depth, and the slot chosen of each input."""

_NO_LIMIT = 2**62


@helper("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64, int64)")
def _link_cell(views, view_keys, cells, view_heads, v, number):  # type: ignore[no-untyped-def]
    """Put a cell whose tags are written at the head of its buckets."""
    first = views[v, VIEW_KEY]
    at = views[v, CELLS] + views[v, WIDTH] * (number & views[v, VIEW_MASK])
    for y in range(first, views[v, VIEW_KEYS_END]):
        k = at + 2 * (y - first)
        b = view_keys[y, VIEW_HEADS] + bucket(cells[k], view_keys[y, VIEW_SHIFT])
        cells[k + 1] = view_heads[b]
        view_heads[b] = number


@kernel("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64)")
def relink(views, view_keys, cells, view_heads, v):  # type: ignore[no-untyped-def]
    """Fill the empty buckets of a subresult."""
    for number in range(views[v, VIEW_LO], views[v, VIEW_HI]):
        _link_cell(views, view_keys, cells, view_heads, v, number)


@helper("boolean(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64, int64, int64)")
def _is_live(inputs, views, members, cells, births, v, number, bound):  # type: ignore[no-untyped-def]
    """All rows of a cell are in their windows. bound: the word of an input where its window begins."""
    at = views[v, CELLS] + views[v, WIDTH] * (number & views[v, VIEW_MASK])
    at += 2 * (views[v, VIEW_KEYS_END] - views[v, VIEW_KEY]) - views[v, MEMBER]
    live = True
    for r in range(views[v, MEMBER], views[v, BAG]):
        live &= cells[at + r] >= inputs[members[r], bound]
    for r in range(views[v, BAG], views[v, MEMBERS_END]):
        live &= births[births[members[r]] + cells[at + r]] <= cells[at + views[v, MEMBERS_END]]
    return live


@kernel("int64(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64, int64[::1])")
def live_cells(inputs, views, members, cells, births, v, live):  # type: ignore[no-untyped-def]
    """Write the numbers of a subresult's tuples of present rows into `live`, ascending; returns how many there are."""
    count = int64(0)
    for number in range(views[v, VIEW_LO], views[v, VIEW_HI]):
        if _is_live(inputs, views, members, cells, births, v, number, LO):
            live[count] = number
            count += 1
    return count


@kernel("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64)")
def sweep(inputs, views, members, cells, births, v):  # type: ignore[no-untyped-def]
    """Move a subresult's lo past cells that are dead. What left at the present instant may still be probed."""
    lo, hi = views[v, VIEW_LO], views[v, VIEW_HI]
    while lo < hi and not _is_live(inputs, views, members, cells, births, v, lo, OLD_LO):
        lo += 1
    views[v, VIEW_LO] = lo


@kernel("void(int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int64)")
def compact(inputs, views, view_keys, members, cells, view_heads, births, v):  # type: ignore[no-untyped-def]
    """Squeeze dead cells out of a subresult: the live ones get the numbers from lo on, in their order."""
    base, width, mask = views[v, CELLS], views[v, WIDTH], views[v, VIEW_MASK]
    for y in range(views[v, VIEW_KEY], views[v, VIEW_KEYS_END]):
        heads = view_keys[y, VIEW_HEADS]
        view_heads[heads : heads + (int64(1) << (int64(64) - view_keys[y, VIEW_SHIFT]))] = -1
    new = views[v, VIEW_LO]
    for number in range(new, views[v, VIEW_HI]):
        if _is_live(inputs, views, members, cells, births, v, number, OLD_LO):
            source, target = base + width * (number & mask), base + width * (new & mask)
            if source != target:
                for w in range(width):
                    cells[target + w] = cells[source + w]
            _link_cell(views, view_keys, cells, view_heads, v, new)
            new += 1
    views[v, VIEW_HI] = new


@helper(inline=True)
def _next_run(runs, inputs, stops, state, netted):  # type: ignore[no-untyped-def]
    """Take every input's run of the next instant; returns the phase it begins with, START when there is none."""
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    is_any = False
    for j in range(n):
        if inputs[j, RUN] < inputs[j, RUNS_END]:
            instant = min(instant, runs[inputs[j, RUN], RUN_TS])
            is_any = True
    leaving = int64(0)
    for j in range(n):
        is_bag = inputs[j, IS_BAG] != 0
        lo, hi = inputs[j, LO], inputs[j, HI]
        if is_bag:
            lo = hi
            inputs[j, LO] = hi
        inputs[j, OLD_LO], inputs[j, OLD_HI], stops[j] = lo, hi, hi
        at = inputs[j, RUN]
        if at < inputs[j, RUNS_END] and runs[at, RUN_TS] == instant:
            leave = runs[at, RUN_DELETIONS]
            leaving += leave
            if is_bag:
                hi += leave
                inputs[j, HI] = hi
            elif lo + leave > hi:
                state[STATUS] = MISSING
            inputs[j, LO] = lo + leave
            inputs[j, STOP] = stops[j] = hi + runs[at, RUN_INSERTIONS]
            inputs[j, RUN] = at + 1
            if netted != 0:
                lo += leave
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = 0 if is_bag else lo, _NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
    phase = int64(DELETE) if netted == 0 and leaving > 0 else int64(INSERT)
    return phase if is_any else int64(START)


@helper(inline=True)
def _next_arrivals(instants, inputs, stops, state):  # type: ignore[no-untyped-def]
    """The next instant at which something comes into streams with ranges, and what has left by then."""
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    is_any = False
    for j in range(n):
        if inputs[j, HI] < inputs[j, STOP]:
            instant = min(instant, instants[inputs[j, MARKS] + (inputs[j, HI] & inputs[j, MASK])])
            is_any = True
    leaving = int64(0)
    for j in range(n):
        base, mask, length = inputs[j, MARKS], inputs[j, MASK], uint64(inputs[j, LENGTH])
        lo, hi, stop = inputs[j, LO], inputs[j, HI], inputs[j, HI]
        if is_any:
            while lo < hi and uint64(instant) - uint64(instants[base + (lo & mask)]) > length:
                lo += 1
            inputs[j, OLD_LO] = lo
            while lo < hi and uint64(instant) - uint64(instants[base + (lo & mask)]) >= length:
                lo += 1
            while stop < inputs[j, STOP] and instants[base + (stop & mask)] == instant:
                stop += 1
            leaving += lo - inputs[j, OLD_LO]
            inputs[j, LO] = lo
        inputs[j, OLD_HI], stops[j] = hi, stop
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo, _NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
    return int64(INSERT) if is_any else int64(START)


@helper(inline=True)
def _link(inputs, keys, nodes, heads, backs, i, slot):  # type: ignore[no-untyped-def]
    """Put a slot at the head of its buckets; False where a key is NULL, then it stands in none."""
    at = 2 * (slot & inputs[i, MASK])
    linked = True
    if inputs[i, HAS_NULLS] != 0:
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + at + 1] != UNLINKED
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k = uint64(keys[x, NODES] + at)
        if linked:
            b = uint64(keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT]))
            if inputs[i, IS_BAG] != 0:
                if heads[b] >= 0:
                    backs[keys[x, BACKS] + heads[b]] = slot
                backs[keys[x, BACKS] + slot] = -1
            nodes[k + uint64(1)] = heads[b]
            heads[b] = slot
        else:
            nodes[k + uint64(1)] = UNLINKED
    if inputs[i, IS_BAG] == 0:
        inputs[i, LINKED] = slot + 1
    return linked


@helper(inline=True)
def _unlink(inputs, keys, nodes, heads, backs, i, slot):  # type: ignore[no-untyped-def]
    """Take a slot of bag i, which stands in its buckets, out of them."""
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k, back = keys[x, NODES] + 2 * slot, keys[x, BACKS]
        newer, older = backs[back + slot], nodes[k + 1]
        if older >= 0:
            backs[back + older] = newer
        if newer >= 0:
            nodes[keys[x, NODES] + 2 * newer + 1] = older
        else:
            heads[keys[x, HEADS] + bucket(nodes[k], keys[x, SHIFT])] = older
        backs[back + slot] = UNLINKED


@helper(inline=True)
def _stamp_of(inputs, keys, nodes, marks, j, slot):  # type: ignore[no-untyped-def]
    """Where a slot of input j is stamped: by its mark, or where there are none by the keys that the answer shows."""
    at = slot & inputs[j, MASK]
    h = uint64(1)
    if len(marks) > 0:
        h = uint64(marks[inputs[j, MARKS] + at])
    else:
        for x in range(inputs[j, KEY], inputs[j, KEYS_END]):
            if keys[x, IS_SHOWN] != 0:
                h = (h ^ uint64(nodes[uint64(keys[x, NODES] + 2 * at)])) * uint64(0x9E3779B97F4A7C15)
                h ^= h >> uint64(32)
    return int64(h & uint64(STAMPS - 1))


@helper(inline=True)
def _stamp(inputs, keys, nodes, marks, stamps, state, out, found):  # type: ignore[no-untyped-def]
    """Stamp the marks of the instant's insertions, and let pipelines join what was there before the instant."""
    state[SERIAL] += 1
    state[MIDDLE] = found
    for j in range(len(inputs)):
        for p in range(state[FIRST], found):
            stamps[j, _stamp_of(inputs, keys, nodes, marks, j, out[j, p])] = state[SERIAL]
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = inputs[j, OLD_LO], inputs[j, OLD_HI]


@helper(inline=True)
def _checks_hold(inputs, keys, nodes, checks, walks, begin, end):  # type: ignore[no-untyped-def]
    """The further keys of a step are equal."""
    equal = True
    for c in range(begin, end):
        a, b = checks[c, 0], checks[c, 2]
        at_a = keys[checks[c, 1], NODES] + 2 * (walks[CHOSEN, a] & inputs[a, MASK])
        at_b = keys[checks[c, 3], NODES] + 2 * (walks[CHOSEN, b] & inputs[b, MASK])
        equal &= nodes[at_a] == nodes[at_b]
    return equal


@helper(inline=True)
def _begin_step(  # type: ignore[no-untyped-def]
    inputs, keys, nodes, heads, view_keys, view_heads, steps, walks, i, depth
):
    """Where the walk of a step begins: its tag, and the newest slot or cell of the bucket."""
    f, x = steps[i, depth, FROM], steps[i, depth, PROBED]
    tag = nodes[keys[steps[i, depth, FROM_KEY], NODES] + 2 * (walks[CHOSEN, f] & inputs[f, MASK])]
    walks[TAG, depth] = tag
    if steps[i, depth, TARGET] < len(inputs):
        walks[FOLLOWING, depth] = heads[keys[x, HEADS] + bucket(tag, keys[x, SHIFT])]
    else:
        walks[FOLLOWING, depth] = view_heads[view_keys[x, VIEW_HEADS] + bucket(tag, view_keys[x, VIEW_SHIFT])]


@kernel(
    "int64(int64[:, ::1], int64[::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[:, :, ::1], int64[::1],"
    " int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int16[::1], int64[:, ::1], int64[:, ::1],"
    " int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64, int64,"
    " int64[:, ::1], int64[::1], int8[::1], int64)"
)
def tree_join(  # type: ignore[no-untyped-def]
    runs, instants, inputs, stops, keys, steps, lengths, checks, nodes, heads, places, backs, marks, stamps, views,
    view_keys, members, cells, view_heads, births, walks, state, netted, by_instants, out, out_ts, out_sign, found,
):  # fmt: skip
    """Join what waits; returns how many tuples stand in `out`, state[STATUS] how the call ended.

    Arguments as of `kernels.mjoin.mjoin`, and: stops (n,), scratch.  steps (n, most, TREE_STEP_WORDS), of which
    lengths[i] make the pipeline of input i.  by_instants: the inputs are streams with ranges, whose slots [HI, STOP)
    wait; else the runs tell.  births: see above; empty where no input is a bag.  In `out`, deletions of a netted
    instant stand behind its insertions; state[DELETED] counts them.  With state[PHASE] = FILL the subresult
    state[FILLED] gets the tuples of the windows' present rows, found from the rows of state[INPUT], and nothing is put
    out.
    O(elements + tuples + tuples kept + slots and cells inspected).
    """
    n = len(inputs)
    limit = len(out_ts)
    phase, i, slot, depth = state[PHASE], state[INPUT], state[SLOT], state[DEPTH]
    filled = state[FILLED]
    inspected = 0
    own = int64(0)
    state[STATUS] = DONE
    while True:
        while depth >= 0:
            j, x, kept = steps[i, depth, TARGET], steps[i, depth, PROBED], steps[i, depth, KEPT]
            check, checks_end = steps[i, depth, CHECK], steps[i, depth, CHECKS_END]
            tag, s = walks[TAG, depth], walks[FOLLOWING, depth]
            following = int64(-1)
            matches = False
            if j < n:
                base, mask, low, high = keys[x, NODES], inputs[j, MASK], inputs[j, PROBE_LO], inputs[j, PROBE_HI]
                while s >= low and not matches:
                    k = uint64(base + 2 * (s & mask))
                    following = nodes[k + uint64(1)]
                    inspected += 1
                    if nodes[k] == tag and s < high:
                        walks[CHOSEN, j] = s
                        matches = check == checks_end or _checks_hold(
                            inputs, keys, nodes, checks, walks, check, checks_end
                        )
                    if not matches:
                        s = following
            else:
                v = j - n
                mask, low, width = views[v, VIEW_MASK], views[v, VIEW_LO], views[v, WIDTH]
                base = views[v, CELLS] + 2 * (x - views[v, VIEW_KEY])
                member, bag, end = views[v, MEMBER], views[v, BAG], views[v, MEMBERS_END]
                rows = 2 * (views[v, VIEW_KEYS_END] - x) - member
                while s >= low and not matches:
                    k = uint64(base + width * (s & mask))
                    following = cells[k + uint64(1)]
                    inspected += 1
                    if cells[k] == tag:
                        matches = True
                        for r in range(member, end):
                            row, m = cells[int64(k) + rows + r], members[r]
                            walks[CHOSEN, m] = row
                            matches &= row >= inputs[m, PROBE_LO] and row < inputs[m, PROBE_HI]
                        for r in range(bag, end):
                            row = cells[int64(k) + rows + r]
                            matches &= births[births[members[r]] + row] <= cells[int64(k) + rows + end]
                        if matches and check < checks_end:
                            matches = _checks_hold(inputs, keys, nodes, checks, walks, check, checks_end)
                    if not matches:
                        s = following
            if not matches:
                depth -= 1
                continue
            if kept >= 0 and (phase == INSERT or kept == filled):
                number = views[kept, VIEW_HI]
                if number - views[kept, VIEW_LO] > views[kept, VIEW_MASK]:
                    walks[FOLLOWING, depth] = s
                    state[STATUS], state[NEEDED] = CROWDED, kept
                    break
                first, end = views[kept, VIEW_KEY], views[kept, VIEW_KEYS_END]
                at = views[kept, CELLS] + views[kept, WIDTH] * (number & views[kept, VIEW_MASK])
                for y in range(first, end):
                    f = view_keys[y, LEAF]
                    cells[at] = nodes[keys[view_keys[y, LEAF_KEY], NODES] + 2 * (walks[CHOSEN, f] & inputs[f, MASK])]
                    at += 2
                for r in range(views[kept, MEMBER], views[kept, MEMBERS_END]):
                    cells[at] = walks[CHOSEN, members[r]]
                    at += 1
                if views[kept, BAG] < views[kept, MEMBERS_END]:
                    cells[at] = state[BORN]
                views[kept, VIEW_HI] = number + 1
                _link_cell(views, view_keys, cells, view_heads, kept, number)
            if kept >= 0 and kept == filled:
                walks[FOLLOWING, depth] = following
            elif depth + 1 < lengths[i]:
                walks[FOLLOWING, depth] = following
                depth += 1
                _begin_step(inputs, keys, nodes, heads, view_keys, view_heads, steps, walks, i, depth)
            else:
                is_wanted = True
                if phase == CANCEL:
                    for m in range(n):
                        at = _stamp_of(inputs, keys, nodes, marks, m, walks[CHOSEN, m])
                        is_wanted &= stamps[m, at] == state[SERIAL]
                if is_wanted:
                    if found == limit:
                        walks[FOLLOWING, depth] = s
                        state[STATUS] = FULL
                        break
                    for m in range(n):
                        out[m, found] = walks[CHOSEN, m]
                    out_ts[found] = state[INSTANT]
                    out_sign[found] = 1 if phase == INSERT else -1
                    found += 1
                walks[FOLLOWING, depth] = following
        if state[STATUS] != DONE:
            break
        # The next element of the instant, or the next phase.
        begins = False
        if phase == FILL:
            slot += 1
            is_bag = inputs[i, IS_BAG] != 0
            if slot >= (inputs[i, MASK] + 1 if is_bag else inputs[i, HI]):
                phase = int64(START)
                break
            own = slot
            if is_bag:
                begins = backs[keys[inputs[i, KEY], BACKS] + slot] != UNLINKED
            else:
                begins = nodes[keys[inputs[i, KEY], NODES] + 2 * (slot & inputs[i, MASK]) + 1] != UNLINKED
        elif phase == INSERT:
            while i < n and inputs[i, HI] >= stops[i]:
                i += 1
            if i < n:
                slot = inputs[i, HI]
                inputs[i, HI] = slot + 1
                own = places[slot] if inputs[i, IS_BAG] != 0 else slot
                begins = _link(inputs, keys, nodes, heads, backs, i, own)
                if begins and inputs[i, IS_BAG] != 0:
                    state[BORN] += 1
                    births[births[i] + own] = state[BORN]
            elif netted != 0 and state[LEAVING] > 0 and found > state[FIRST]:
                _stamp(inputs, keys, nodes, marks, stamps, state, out, found)
                phase, i, slot = int64(CANCEL), int64(0), inputs[0, OLD_LO] - 1
            else:
                phase = int64(START)
        elif phase != START:
            slot += 1
            while i < n and slot >= inputs[i, LO]:
                if inputs[i, IS_BAG] == 0:
                    inputs[i, PROBE_LO] = inputs[i, LO]
                i += 1
                if i < n:
                    slot = inputs[i, OLD_LO]
            if i < n:
                own = places[slot] if inputs[i, IS_BAG] != 0 else slot
                begins = nodes[keys[inputs[i, KEY], NODES] + 2 * (own & inputs[i, MASK]) + 1] != UNLINKED
                if begins and inputs[i, IS_BAG] != 0:
                    _unlink(inputs, keys, nodes, heads, backs, i, own)
                    births[births[i] + own] = NEVER
                if phase == CANCEL:
                    begins &= stamps[i, _stamp_of(inputs, keys, nodes, marks, i, own)] == state[SERIAL]
            elif phase == DELETE:
                phase, i = int64(INSERT), int64(0)
            else:
                state[DELETED] += found - state[MIDDLE]
                phase = int64(START)
        if begins:
            walks[CHOSEN, i] = own
            depth = int64(0)
            _begin_step(inputs, keys, nodes, heads, view_keys, view_heads, steps, walks, i, depth)
        elif phase == START:
            if by_instants != 0:
                phase = _next_arrivals(instants, inputs, stops, state)
            else:
                phase = _next_run(runs, inputs, stops, state, netted)
            if phase == START or state[STATUS] == MISSING:
                break
            i, slot = int64(0), inputs[0, OLD_LO] - 1
            state[FIRST] = found
    state[PHASE], state[INPUT], state[SLOT], state[DEPTH] = phase, i, slot, depth
    state[INSPECTED] += inspected
    return found
