"""Joining n windows with caches in the pipelines: CacheLookup and CacheUpdate as loops over arrays.

The windows and their index are those of `join_layout`; how caches stand in arrays says `kernels.join_cache_layout`.
A pipeline's step may begin a CacheLookup: on a hit the tuples of its segment come from the entry, on a miss they are
computed and collected into a new one. Behind other steps stand CacheUpdates, which take what has been joined so far,
the change of a segment, into the entries that are there.

A tuple is dead once a slot of it has left its window. Dead tuples are left out and swept when a hit meets them; caches
marked EAGER have them deleted by the deletion's own pipeline instead. Babu 2005, sections 5.4 and 5.7.

Where 98 of 100 lookups hit, it takes 0.6 of the time of plain pipelines; where all changes of windows are put out, 0.2.

Invariant: between elements the live tuples of an entry are the join of its segment for its key; where the segment is
reduced by other inputs Y, at least those that join with Y.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.join_cache_layout import CacheArrays, CachePlan
from minidsms.kernels.join_layout import JoinRun, Output, Pipelines, Windows
from minidsms.machine_code import Int64s, Int64Table

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.machine_code import helper, int64, kernel, uint64
from minidsms.kernels.join_cache_entries import (
    append, begin_entry, bucket_of, find, mixed, note_miss, remove, sweep_when_due, tuple_at, tuple_behind,
)
from minidsms.kernels.join_cache_layout import (
    AFTER, BUCKETS, BUCKET_HEAD, COLLECT, CREATED, CURSOR, DELETES, EAGER, HITS, IGNORED, INLINE, INSERTS, IS_REDUCED,
    IS_SIMPLE, KEY_WORDS, LEVEL_WORDS, LOOKUP, LOOKUP_PARTS, MEMBERS, PAGE, PAGE_BITS, PART_INPUT, PART_KEY, PART_MASK,
    PART_NODES, PENDING, PROBES, REST, SIZE, STRIDE, SWEPT, TABLE, TAG, UP, UPDATE, UPDATES_END, WITNESS, WITNESSES,
)
from minidsms.kernels.join_instants import next_element
from minidsms.kernels.join_layout import (
    CANCEL, CHECK, CHECKS_END, DELETE, DEPTH, DONE, FULL, INPUT, INSERT, INSPECTED, INSTANT, MASK, MOST, NODES, PAUSED,
    PHASE, PROBE_LO, STATUS, TARGET,
)
from minidsms.kernels.join_stamps import are_stamped, put_tuple
from minidsms.kernels.chains import (
    chain_of, checks_hold, first_slot, next_slot, older, place_steps, step_tag,
)
# fmt: on
# isort: on


# ------------------------------------------------------------------------------------------------- entries


@helper
def _place_parts(windows: Windows, parts: Int64Table) -> None:
    """Write where the nodes of the parts of keys are, as `chains.place_steps` does."""
    for q in range(len(parts)):
        parts[q, PART_NODES] = windows.keys[parts[q, PART_KEY], NODES]
        parts[q, PART_MASK] = windows.inputs[parts[q, PART_INPUT], MASK]


@helper
def _hash(caches: Int64Table, c: int, q: int, chosen: Int64s, plan: CachePlan, nodes: Int64s) -> Any:
    """Write the key of the slots chosen, whose parts begin at q, into `key`; its hash."""
    parts, key = plan.parts, plan.key
    h = uint64(0)
    for w in range(caches[c, KEY_WORDS]):
        part = uint64(q + w)
        slot = chosen[uint64(parts[part, PART_INPUT])]
        word = nodes[uint64(parts[part, PART_NODES] + 2 * (slot & parts[part, PART_MASK]))]
        key[uint64(w)] = word
        h = mixed(h, word)
    return h


@helper
def _entry_of(store: CacheArrays, c: int, entry: int, place: int, key: Int64s) -> Any:
    """The bucket that has the key, of the two from `place` on in the page of tables[entry]; -1 where neither has."""
    caches, tables, pool = store.caches, store.tables, store.pool
    b = int64(-1)
    page = tables[uint64(entry)]
    other = place ^ caches[c, STRIDE] if caches[c, BUCKETS] > 1 else place
    for at in (place, other):
        if b < 0 and page >= 0:
            is_hit = pool[uint64(page + at)] >= 0
            for w in range(caches[c, KEY_WORDS]):
                is_hit &= pool[uint64(page + at + BUCKET_HEAD + w)] == key[uint64(w)]
            if is_hit:
                b = page + at
    return b


@helper
def _begin_entry(store: CacheArrays, c: int, entry: int, place: int, same: int, key: Int64s) -> Any:
    """Begin the key's entry, empty; its address, -1 where there is no room. As of `begin_entry`."""
    caches, pool = store.caches, store.pool
    b = begin_entry(store, c, entry, place, same)
    if b >= 0:
        for w in range(caches[c, KEY_WORDS]):
            pool[b + BUCKET_HEAD + w] = key[w]
        for w in range(caches[c, WITNESSES]):
            pool[b + BUCKET_HEAD + caches[c, KEY_WORDS] + w] = -1
    caches[c, PENDING] = b
    return b


@helper
def _has_witness(store: CacheArrays, c: int, inputs: Int64Table, b: int, i: int, begin: int) -> Any:
    """The latest tuple of pipeline i that looked the entry up is still there. begin: of its inputs among `members`."""
    caches, members, pool = store.caches, store.members, store.pool
    at = b + BUCKET_HEAD + caches[c, KEY_WORDS]
    lives = pool[at] == i
    if lives:
        for w in range(1, caches[c, WITNESSES]):
            lives &= pool[at + w] >= inputs[members[begin + w - 1], PROBE_LO]
    return lives


@helper
def _witness(store: CacheArrays, c: int, chosen: Int64s, b: int, i: int, begin: int) -> Any:
    """Note the tuple of pipeline i that looks the entry up now."""
    caches, members, pool = store.caches, store.members, store.pool
    at = b + BUCKET_HEAD + caches[c, KEY_WORDS]
    pool[at] = i
    for w in range(1, caches[c, WITNESSES]):
        pool[at + w] = chosen[members[begin + w - 1]]


@helper
def _insert(store: CacheArrays, c: int, inputs: Int64Table, chosen: Int64s, b: int) -> Any:
    """The segment's join has gained the slots chosen."""
    caches = store.caches
    sweep_when_due(store, c, inputs, b)
    if caches[c, IS_REDUCED] == 0 or find(store, c, chosen, b) < 0:
        caches[c, INSERTS] += 1
        append(store, c, chosen, b)


@helper
def _delete(store: CacheArrays, c: int, chosen: Int64s, b: int) -> Any:
    """The segment's join has lost the slots chosen."""
    caches, pool = store.caches, store.pool
    at = find(store, c, chosen, b)
    if at >= 0:
        caches[c, DELETES] += 1
        remove(caches, c, pool, b, at)


# ------------------------------------------------------------------------------------------------- the pipeline


@helper
def _look_up(
    i: int, r: int, c: int, phase: int, windows: Windows, plan: CachePlan, chosen: Int64s, store: CacheArrays
) -> Any:
    """CacheLookup: the bucket with the entry of the slots chosen; -1 where there is none, then one is begun."""
    inputs, nodes = windows.inputs, windows.nodes
    caches, ghosts = store.caches, store.ghosts
    lookups, key = plan.lookups, plan.key
    h = _hash(caches, c, lookups[r, LOOKUP_PARTS], chosen, plan, nodes)
    place = bucket_of(h, caches[c, BUCKETS]) * caches[c, STRIDE]
    entry, place = caches[c, TABLE] + (place >> PAGE_BITS), place & (PAGE - 1)
    b = _entry_of(store, c, entry, place, key)
    begin = lookups[r, WITNESS]
    is_hit = b >= 0 and (begin < 0 or _has_witness(store, c, inputs, b, i, begin))
    caches[c, PROBES] += 1
    if is_hit:
        caches[c, HITS] += 1
    else:
        if b < 0 and phase == INSERT:
            note_miss(caches, c, ghosts, h)
        b = _begin_entry(store, c, entry, place, b, key)
    if begin >= 0 and b >= 0:
        _witness(store, c, chosen, b, i, begin)
    return b if is_hit else int64(-1)


@helper
def _update(
    r: int, is_computed: int, phase: int, windows: Windows, plan: CachePlan, chosen: Int64s, store: CacheArrays
) -> Any:
    """Behind a segment's last step: what a miss has computed goes into the entry begun, and what has been joined so far
    into those of the caches whose segments it changes (CacheUpdate).
    """
    inputs, nodes = windows.inputs, windows.nodes
    caches = store.caches
    lookups, updates, key = plan.lookups, plan.updates, plan.key
    c = lookups[r, COLLECT]
    if c >= 0 and is_computed and caches[c, PENDING] >= 0:
        caches[c, CREATED] += 1
        if not append(store, c, chosen, caches[c, PENDING]):
            caches[c, PENDING] = -1
    for u in range(lookups[r, UPDATE], lookups[r, UPDATES_END]):
        c = updates[u, 0]
        if phase == INSERT or caches[c, EAGER] != 0:
            h = _hash(caches, c, updates[u, 1], chosen, plan, nodes)
            place = bucket_of(h, caches[c, BUCKETS]) * caches[c, STRIDE]
            entry = caches[c, TABLE] + (place >> PAGE_BITS)
            b = _entry_of(store, c, entry, place & (PAGE - 1), key)
            if b < 0:
                caches[c, IGNORED] += 1
            elif phase == DELETE:
                _delete(store, c, chosen, b)
            else:
                _insert(store, c, inputs, chosen, b)


@helper(inline=True)
def _level(levels: Int64s, depth: int) -> Any:
    """Where the walk at a depth is: TAG, CURSOR and REST."""
    at = uint64(depth * LEVEL_WORDS)
    return levels[at + uint64(TAG)], levels[at + uint64(CURSOR)], levels[at + uint64(REST)]


@helper(inline=True)
def _leave(levels: Int64s, depth: int, tag: int, s: int, rest: int) -> None:
    """Note it."""
    at = uint64(depth * LEVEL_WORDS)
    levels[at + uint64(TAG)], levels[at + uint64(CURSOR)], levels[at + uint64(REST)] = tag, s, rest


@helper(inline=True)
def _choose(store: CacheArrays, c: int, at: int, inputs: Int64Table, chosen: Int64s) -> Any:
    """Choose the slots of the tuple at an address; False where one has left."""
    caches, members, pool = store.caches, store.members, store.pool
    lives = True
    for m in range(caches[c, SIZE]):
        j = uint64(members[uint64(caches[c, MEMBERS] + m)])
        chosen[j] = pool[uint64(at + m)]
        lives &= chosen[j] >= inputs[j, PROBE_LO]
    return lives


class Element(NamedTuple):
    """What is joined: in which phase of which instant, and the sign of its tuples."""

    phase: int
    instant: int
    sign: int


class Walk(NamedTuple):
    """Through a bucket: the tag, the slot to look at next, whether the step is the pipeline's last, and whether it is
    and nothing stands behind it.
    """

    tag: int
    s: int
    is_last: bool
    is_simple: bool


@helper(inline=True)
def _next_of_bucket(
    windows: Windows, pipelines: Pipelines, run: JoinRun, output: Output, element: Element, r: int, walk: Walk,
    found: int,
) -> Any:  # fmt: skip
    """Choose the next slot that step r finds; tuples of a last step that nothing stands behind are put
    out, as long as there is room. (the slot to go on at, whether one is chosen, slots inspected, tuples in `out`)
    """
    nodes, chosen, steps = windows.nodes, run.chosen, pipelines.steps
    tag, s, is_last, is_simple = walk
    chain = chain_of(windows, steps, r)
    j, begin, end = uint64(steps[r, TARGET]), steps[r, CHECK], steps[r, CHECKS_END]
    is_found, inspected = False, int64(0)
    while not is_found:
        s, looked = next_slot(nodes, chain, tag, s)
        inspected += looked
        if s < chain.low:
            break
        chosen[j] = s
        is_found = checks_hold(windows, pipelines.checks, chosen, begin, end)
        if is_found and element.phase == CANCEL and is_last:
            is_found = are_stamped(windows, run)
        if is_found and is_last and found == len(output.out_ts):
            run.state[STATUS] = FULL
            break
        if is_found and is_simple:
            is_found = False
            put_tuple(output, chosen, found, element.instant, element.sign)
            found += 1
        s = older(nodes, chain, s)
    return s, is_found, inspected, found


@kernel
def cached_mjoin(
    windows: Windows, pipelines: Pipelines, plan: CachePlan, run: JoinRun, store: CacheArrays, output: Output,
    found: int,
) -> int:  # fmt: skip
    """As `kernels.mjoin.mjoin`, with caches; of streams with ranges (`of_streams`, netted) by when rows came.

    pipelines: all of n - 1 steps, without bands and bits.
    O(elements + tuples + slots inspected + tuples cached and swept).
    """
    inputs, chosen, levels, state = windows.inputs, run.chosen, run.levels, run.state
    caches, pool, steps, lookups = store.caches, store.pool, pipelines.steps, plan.lookups
    place_steps(windows, steps)
    _place_parts(windows, plan.parts)
    # The walk through an entry stays in this loop: written as a function of its own it took a tenth longer.
    last, limit, most = len(inputs) - 1, len(output.out_ts), state[MOST]
    depth, enters = state[DEPTH], False
    inspected, turns = int64(0), int64(0)
    tag, s, rest = _level(levels, max(depth, 0))
    state[STATUS] = DONE
    while True:
        # The pipeline of the element, as far as the buffer has room. tag, s, rest: of this depth.
        i, phase = state[INPUT], state[PHASE]
        instant, sign = state[INSTANT], 1 if phase == INSERT else -1
        element = Element(phase, instant, sign)
        while depth >= 0 and (inspected + turns < most or enters):
            turns += 1
            r = uint64(i * last + depth)
            c = lookups[r, LOOKUP] if phase != CANCEL else int64(-1)
            if enters:
                enters = False
                tag = _look_up(i, r, c, phase, windows, plan, chosen, store) if c >= 0 else int64(-1)
                if tag >= 0:
                    s, rest = pool[uint64(tag + 1)], min(pool[uint64(tag)], caches[c, INLINE])
                else:
                    tag = step_tag(windows, steps, r, pipelines.checks, chosen)
                    s = first_slot(windows, steps, r, tag)
                    rest = int64(-1)
            is_found = False
            if rest >= 0:
                # The next live tuple of the entry; dead ones are swept.
                following = lookups[r, AFTER]
                q = uint64(i * last + following - 1)
                is_simple = following == last and lookups[q, UPDATE] == lookups[q, UPDATES_END]
                while s != 0 or rest > 0:
                    at = tuple_at(caches, c, tag, s, rest)
                    is_found = _choose(store, c, at, inputs, chosen)
                    if is_found and following == last and found == limit:
                        state[STATUS] = FULL
                        break
                    s, rest = tuple_behind(pool, s, rest)
                    if not is_found:
                        remove(caches, c, pool, tag, at)
                        caches[c, SWEPT] += 1
                    elif is_simple:
                        is_found = False
                        put_tuple(output, chosen, found, instant, sign)
                        found += 1
                    else:
                        break
            else:
                # The next slot of the bucket that matches.
                following = depth + 1
                walk = Walk(tag, s, following == last, following == last and lookups[r, IS_SIMPLE] != 0)
                s, is_found, looked, found = _next_of_bucket(windows, pipelines, run, output, element, r, walk, found)
                inspected += looked
            if state[STATUS] == FULL:
                break
            if not is_found:
                if c >= 0 and rest < 0:
                    caches[c, PENDING] = -1
                depth = levels[uint64(depth * LEVEL_WORDS + UP)]
                tag, s, rest = _level(levels, max(depth, 0))
                continue
            # What stands behind the segment's last step: CacheUpdates.
            r = uint64(i * last + following - 1)
            if lookups[r, IS_SIMPLE] == 0 and phase != CANCEL:
                _update(r, rest < 0, phase, windows, plan, chosen, store)
            if following < last:
                _leave(levels, depth, tag, s, rest)
                levels[uint64(following * LEVEL_WORDS + UP)] = depth
                depth, enters = following, True
            else:
                put_tuple(output, chosen, found, instant, sign)
                found += 1
        if inspected + turns >= most and state[STATUS] == DONE:
            state[STATUS] = PAUSED
        own = next_element(windows, run, output, found) if state[STATUS] == DONE else int64(-1)
        if own < 0:
            break
        chosen[state[INPUT]] = own
        levels[UP] = -1
        depth, enters = int64(0), True
    if depth >= 0:
        _leave(levels, depth, tag, s, rest)
    state[DEPTH] = depth
    state[INSPECTED] += inspected
    return found
