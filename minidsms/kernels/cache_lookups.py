"""Caches in the pipelines of `kernels.mjoin`: CacheLookup and CacheUpdate.

The windows and their index are those of `join_layout`; how caches stand in arrays says `kernels.join_cache_layout`.
A pipeline's step may begin a CacheLookup: on a hit the tuples of its segment come from the entry, on a miss they are
computed and collected into a new one. Behind other steps stand CacheUpdates, which take what has been joined so far,
the change of a segment, into the entries that are there.

A tuple is dead once a slot of it has left its window. Dead tuples are left out and swept when a hit meets them; caches
marked EAGER have them deleted by the deletion's own pipeline instead. Babu 2005, sections 5.4 and 5.7.

Where 98 of 100 lookups hit, a join takes 0.6 of the time of plain pipelines; where all changes of windows are put out,
0.2.

Invariant: between elements the live tuples of an entry are the join of its segment for its key; where the segment is
reduced by other inputs Y, at least those that join with Y.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.chains import first_slot, step_tag
from minidsms.kernels.join_cache_entries import (
    append,
    begin_entry,
    bucket_of,
    find,
    mixed,
    note_miss,
    remove,
    sweep_when_due,
    tuple_at,
    tuple_behind,
)
from minidsms.kernels.join_cache_layout import (
    BUCKET_HEAD,
    PAGE,
    PAGE_BITS,
    Cache,
    CacheArrays,
    CachePlan,
    Caching,
    KeyPart,
)
from minidsms.kernels.join_layout import (
    CANCEL,
    DELETE,
    FULL,
    INSERT,
    JoinInput,
    JoinRun,
    Output,
    Pipelines,
    Windows,
)
from minidsms.kernels.join_stamps import put_tuple
from minidsms.machine_code import Int64s, Rows, helper, int64, uint64

# ------------------------------------------------------------------------------------------------- entries


@helper
def place_parts(windows: Windows, parts: Rows[KeyPart]) -> None:
    """Write where the nodes of the parts of keys are, as `chains.place_steps` does."""
    for q in range(len(parts)):
        parts[q].nodes = windows.keys[parts[q].key].nodes
        parts[q].mask = windows.inputs[parts[q].input].mask


@helper
def _hash(caches: Rows[Cache], c: int, q: int, chosen: Int64s, plan: CachePlan, nodes: Int64s) -> Any:
    """Write the key of the slots chosen, whose parts begin at q, into `key`; its hash."""
    parts, key = plan.parts, plan.key
    h = uint64(0)
    for w in range(caches[c].key_words):
        part = uint64(q + w)
        slot = chosen[uint64(parts[part].input)]
        word = nodes[uint64(parts[part].nodes + 2 * (slot & parts[part].mask))]
        key[uint64(w)] = word
        h = mixed(h, word)
    return h


@helper
def _entry_of(store: CacheArrays, c: int, entry: int, place: int, key: Int64s) -> Any:
    """The bucket that has the key, of the two from `place` on in the page of tables[entry]; -1 where neither has."""
    caches, tables, pool = store.caches, store.tables, store.pool
    b = int64(-1)
    page = tables[uint64(entry)]
    other = place ^ caches[c].stride if caches[c].buckets > 1 else place
    for at in (place, other):
        if b < 0 and page >= 0:
            is_hit = pool[uint64(page + at)] >= 0
            for w in range(caches[c].key_words):
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
        for w in range(caches[c].key_words):
            pool[b + BUCKET_HEAD + w] = key[w]
        for w in range(caches[c].witnesses):
            pool[b + BUCKET_HEAD + caches[c].key_words + w] = -1
    caches[c].pending = b
    return b


@helper
def _has_witness(store: CacheArrays, c: int, inputs: Rows[JoinInput], b: int, i: int, begin: int) -> Any:
    """The latest tuple of pipeline i that looked the entry up is still there. begin: of its inputs among `members`."""
    caches, members, pool = store.caches, store.members, store.pool
    at = b + BUCKET_HEAD + caches[c].key_words
    lives = pool[at] == i
    if lives:
        for w in range(1, caches[c].witnesses):
            lives &= pool[at + w] >= inputs[members[begin + w - 1]].probe_lo
    return lives


@helper
def _witness(store: CacheArrays, c: int, chosen: Int64s, b: int, i: int, begin: int) -> Any:
    """Note the tuple of pipeline i that looks the entry up now."""
    caches, members, pool = store.caches, store.members, store.pool
    at = b + BUCKET_HEAD + caches[c].key_words
    pool[at] = i
    for w in range(1, caches[c].witnesses):
        pool[at + w] = chosen[members[begin + w - 1]]


@helper
def _insert(store: CacheArrays, c: int, inputs: Rows[JoinInput], chosen: Int64s, b: int) -> Any:
    """The segment's join has gained the slots chosen."""
    caches = store.caches
    sweep_when_due(store, c, inputs, b)
    if caches[c].is_reduced == 0 or find(store, c, chosen, b) < 0:
        caches[c].inserts += 1
        append(store, c, chosen, b)


@helper
def _delete(store: CacheArrays, c: int, chosen: Int64s, b: int) -> Any:
    """The segment's join has lost the slots chosen."""
    at = find(store, c, chosen, b)
    if at >= 0:
        store.caches[c].deletes += 1
        remove(store, c, b, at)


# ------------------------------------------------------------------------------------------------- the pipeline


@helper
def _look_up(
    i: int, r: int, c: int, phase: int, windows: Windows, plan: CachePlan, chosen: Int64s, store: CacheArrays
) -> Any:
    """CacheLookup: the bucket with the entry of the slots chosen; -1 where there is none, then one is begun."""
    inputs, nodes = windows.inputs, windows.nodes
    caches, ghosts = store.caches, store.ghosts
    lookups, key = plan.lookups, plan.key
    h = _hash(caches, c, lookups[r].parts, chosen, plan, nodes)
    place = bucket_of(h, caches[c].buckets) * caches[c].stride
    entry, place = caches[c].table + (place >> PAGE_BITS), place & (PAGE - 1)
    b = _entry_of(store, c, entry, place, key)
    begin = lookups[r].witness
    is_hit = b >= 0 and (begin < 0 or _has_witness(store, c, inputs, b, i, begin))
    caches[c].probes += 1
    if is_hit:
        caches[c].hits += 1
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
    c = lookups[r].collected
    if c >= 0 and is_computed and caches[c].pending >= 0:
        caches[c].created += 1
        if not append(store, c, chosen, caches[c].pending):
            caches[c].pending = -1
    for u in range(lookups[r].updates, lookups[r].updates_end):
        c = updates[u].cache
        if phase == INSERT or caches[c].is_eager != 0:
            h = _hash(caches, c, updates[u].parts, chosen, plan, nodes)
            place = bucket_of(h, caches[c].buckets) * caches[c].stride
            entry = caches[c].table + (place >> PAGE_BITS)
            b = _entry_of(store, c, entry, place & (PAGE - 1), key)
            if b < 0:
                caches[c].ignored += 1
            elif phase == DELETE:
                _delete(store, c, chosen, b)
            else:
                _insert(store, c, inputs, chosen, b)


@helper(inline=True)
def _choose(store: CacheArrays, c: int, at: int, inputs: Rows[JoinInput], chosen: Int64s) -> Any:
    """Choose the slots of the tuple at an address; False where one has left."""
    caches, members, pool = store.caches, store.members, store.pool
    lives = True
    for m in range(caches[c].size):
        j = uint64(members[uint64(caches[c].members + m)])
        chosen[j] = pool[uint64(at + m)]
        lives &= chosen[j] >= inputs[j].probe_lo
    return lives


class Step(NamedTuple):
    """Of a pipeline: its number, its depth, and the pipeline's last depth; its tag, and the slot to look at next."""

    r: int
    depth: int
    last: int
    tag: int
    s: int


@helper(inline=True)
def _cache_of(caching: Caching, r: int, phase: int) -> Any:
    """The cache that step r looks up in a phase; -1 where it does not."""
    return caching.plan.lookups[uint64(r)].cache if phase != CANCEL else int64(-1)


@helper(inline=True)
def enter(windows: Windows, pipelines: Pipelines, run: JoinRun, caching: Caching, begin: int, depth: int) -> Any:
    """A tuple goes on from a depth, -1 that of the element, of the pipeline that begins at this step: begin the walk
    through an entry or a bucket; its depth, tag and slot, as of `Step`.
    """
    walks, chosen, state, pool = run.walks, run.chosen, run.state, caching.store.pool
    at = depth + 1
    if depth >= 0 and walks[uint64(depth)].rest >= 0:
        at = caching.plan.lookups[uint64(begin + depth)].after
    r, d = begin + at, uint64(at)
    c, b = _cache_of(caching, r, state.phase), int64(-1)
    if c >= 0:
        b = _look_up(state.input, r, c, state.phase, windows, caching.plan, chosen, caching.store)
    if b >= 0:
        s, rest = pool[uint64(b + 1)], min(pool[uint64(b)], caching.store.caches[c].inline)
    else:
        b = step_tag(windows, pipelines.steps, r, pipelines.checks, chosen)
        s, rest = first_slot(windows, pipelines.steps, r, b), int64(-1)
    walks[d].tag, walks[d].following, walks[d].rest, walks[d].up = b, s, rest, depth
    return at, b, s


@helper(inline=True)
def leave(run: JoinRun, caching: Caching, r: int, depth: int) -> Any:
    """Step r has found all: the depth to go back to."""
    d = uint64(depth)
    c = _cache_of(caching, r, run.state.phase)
    if c >= 0 and run.walks[d].rest < 0:
        caching.store.caches[c].pending = -1
    return run.walks[d].up


@helper(inline=True)
def complete(windows: Windows, run: JoinRun, caching: Caching, r: int, is_computed: bool) -> None:
    """What stands behind step r, which has been chosen, and which may end a segment: CacheUpdates."""
    if caching.plan.lookups[uint64(r)].is_simple == 0 and run.state.phase != CANCEL:
        _update(r, is_computed, run.state.phase, windows, caching.plan, run.chosen, caching.store)


@helper(inline=True)
def next_of_entry(windows: Windows, run: JoinRun, caching: Caching, output: Output, step: Step, found: int) -> Any:
    """Go on to the next live tuple of the entry at a depth, which is chosen; dead ones are swept. (whether there is
    one, tuples looked at, tuples in `out`: where its segment ends the pipeline, all are put there that fit)
    """
    walks, chosen, state, d = run.walks, run.chosen, run.state, uint64(step.depth)
    store = caching.store
    caches, pool = store.caches, store.pool
    c, following = caching.plan.lookups[uint64(step.r)].cache, caching.plan.lookups[uint64(step.r)].after
    end, is_last = step.r + following - 1 - step.depth, following > step.last
    instant, sign = state.instant, 1 if state.phase == INSERT else -1
    b, s, rest = step.tag, step.s, walks[d].rest
    is_chosen, looked = False, int64(0)
    while not is_chosen and (s != 0 or rest > 0):
        at = tuple_at(caches, c, b, s, rest)
        lives = _choose(store, c, at, windows.inputs, chosen)
        if lives and is_last and found == len(output.out_ts):
            state.status = FULL
            break
        s, rest = tuple_behind(pool, s, rest)
        looked += 1
        if not lives:
            remove(store, c, b, at)
            caches[c].swept += 1
        else:
            complete(windows, run, caching, end, False)
            if is_last:
                put_tuple(output, chosen, found, instant, sign)
                found += 1
            is_chosen = not is_last
    walks[d].following, walks[d].rest = s, rest
    return is_chosen, looked, found
