"""Joining n windows with caches in the pipelines: CacheLookup and CacheUpdate as loops over arrays.

The windows and their index are those of `kernels.mjoin`; how caches stand in arrays says `kernels.join_cache_layout`.
A pipeline's step may begin a CacheLookup: on a hit the tuples of its segment come from the entry, on a miss they are
computed and collected into a new one. Behind other steps stand CacheUpdates, which take what has been joined so far,
the change of a segment, into the entries that are there.

A tuple is dead once a slot of it has left its window. Dead tuples are left out and swept when a hit meets them; caches
marked EAGER have them deleted by the deletion's own pipeline instead. Babu 2005, sections 5.4 and 5.7.

Invariant: between elements the live tuples of an entry are the join of its segment for its key; where the segment is
reduced by other inputs Y, at least those that join with Y.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from minidsms.elements import MAX_INSTANT, Int8Array, Int64Array
from minidsms.kernels.join_cache_layout import (
    AFTER,
    BUCKET_HEAD,
    BUCKETS,
    CHOSEN,
    CHUNK,
    CHUNK_HEAD,
    COLLECT,
    CREATED,
    CREATES,
    CURSOR,
    DELETES,
    EAGER,
    ENTRIES,
    EVICTIONS,
    FILL,
    FREE_CHUNK,
    HITS,
    IGNORED,
    INLINE,
    INSERTS,
    IS_HIT,
    IS_REDUCED,
    KEY_WORDS,
    LOOKUP,
    LOOKUP_PARTS,
    MEMBERS,
    MOST_TABLE_PAGES,
    PAGE,
    PAGE_BITS,
    PAGES,
    PART_INPUT,
    PART_MASK,
    PART_NODES,
    PENDING,
    PER_CHUNK,
    PLACED_WORDS,
    PROBES,
    REST,
    SIZE,
    SOURCE,
    SOURCE_MASK,
    SOURCE_NODES,
    STEP_CHECK,
    STEP_CHECKS_END,
    STEP_TARGET,
    STOPS,
    STRIDE,
    SWEPT,
    TABLE,
    TABLE_PAGES,
    TAG,
    TARGET_HEADS,
    TARGET_MASK,
    TARGET_NODES,
    TARGET_SHIFT,
    TUPLES,
    UP,
    UPDATE,
    UPDATES_END,
    WANTED,
    WITNESS,
    WITNESSES,
)
from minidsms.kernels.mjoin import (
    DELETED,
    DEPTH,
    DONE,
    FIRST,
    FULL,
    HAS_NULLS,
    HEADS,
    HI,
    INPUT,
    INSPECTED,
    INSTANT,
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
    NODES,
    OLD_HI,
    OLD_LO,
    PHASE,
    PROBE_HI,
    PROBE_LO,
    RUN,
    RUN_DELETIONS,
    RUN_INSERTIONS,
    RUN_TS,
    RUNS_END,
    SERIAL,
    SHIFT,
    SLOT,
    STAMPS,
    STATUS,
    STOP,
    UNLINKED,
)

_START, _DELETE, _INSERT, _CANCEL = 0, 1, 2, 3
_NO_LIMIT = 2**62


@njit("int64(int64, int64)", cache=True, nogil=True, inline="always")
def _bucket(tag: int, shift: int) -> np.int64:
    h = uint64(tag)
    h ^= h >> uint64(32)
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(shift))


# ------------------------------------------------------------------------------------------------- caches


@njit(cache=True, nogil=True)
def _take_page(caches, c, owners, free, kind):  # type: ignore[no-untyped-def]
    """The address of a page for a cache, kind 0 for buckets, 1 for chunks; -1 where none is free."""
    at = int64(-1)
    if free[0] > 0:
        page = free[free[0]]
        free[0] -= 1
        owners[page] = 2 * c + kind
        caches[c, PAGES] += 1
        at = CHUNK + page * PAGE
    else:
        caches[c, WANTED] += 1
    return at


@njit(cache=True, nogil=True)
def _take_chunk(caches, c, pool, owners, free):  # type: ignore[no-untyped-def]
    """The address of an unused chunk; -1 where there is no room."""
    if caches[c, FREE_CHUNK] < 0:
        page = _take_page(caches, c, owners, free, 1)
        if page >= 0:
            for at in range(page + PAGE - CHUNK, page - CHUNK, -CHUNK):
                pool[at] = caches[c, FREE_CHUNK]
                pool[at + 1] = -1
                caches[c, FREE_CHUNK] = at
    chunk = caches[c, FREE_CHUNK]
    if chunk >= 0:
        caches[c, FREE_CHUNK] = pool[chunk]
    return chunk


@njit(cache=True, nogil=True)
def _free_chunk(caches, c, pool, chunk):  # type: ignore[no-untyped-def]
    pool[chunk] = caches[c, FREE_CHUNK]
    pool[chunk + 1] = -1
    caches[c, FREE_CHUNK] = chunk


@njit(cache=True, nogil=True)
def _drop(caches, c, pool, b):  # type: ignore[no-untyped-def]
    """Drop the entry of a bucket."""
    head = pool[b + 1]
    while head != 0:
        chunk = head & ~FILL
        head = pool[chunk]
        _free_chunk(caches, c, pool, chunk)
    caches[c, ENTRIES] -= 1
    caches[c, TUPLES] -= pool[b]
    caches[c, EVICTIONS] += 1
    pool[b] = -1
    pool[b + 1] = 0


@njit(cache=True, nogil=True)
def _take_table_page(caches, c, tables, entry, pool, owners, free):  # type: ignore[no-untyped-def]
    """Give a part of the table its page of empty buckets, where there is one."""
    if caches[c, TABLE_PAGES] < caches[c, MOST_TABLE_PAGES]:
        page = _take_page(caches, c, owners, free, 0)
        if page >= 0:
            for b in range(page, page + PAGE, caches[c, STRIDE]):
                pool[b] = -1
                pool[b + 1] = 0
            caches[c, TABLE_PAGES] += 1
        tables[entry] = page
    else:
        caches[c, WANTED] += 1


@njit(cache=True, nogil=True)
def _locate(caches, c, tables, key):  # type: ignore[no-untyped-def]
    """Where the table says in which page the key's bucket is, and its place in the page."""
    h = uint64(0)
    for w in range(caches[c, KEY_WORDS]):
        h = (h ^ uint64(key[w])) * uint64(0xFF51AFD7ED558CCD)
        h ^= h >> uint64(32)
    h *= uint64(0x9E3779B97F4A7C15)
    at = (int64(h >> uint64(32)) & (caches[c, BUCKETS] - 1)) * caches[c, STRIDE]
    return caches[c, TABLE] + (at >> PAGE_BITS), at & (PAGE - 1)


@njit(cache=True, nogil=True)
def _holds(caches, c, pool, b, key):  # type: ignore[no-untyped-def]
    """The bucket has an entry of this key."""
    same = pool[b] >= 0
    for w in range(caches[c, KEY_WORDS]):
        same &= pool[b + BUCKET_HEAD + w] == key[w]
    return same


@njit(cache=True, nogil=True)
def _create(caches, c, pool, b, key):  # type: ignore[no-untyped-def]
    """Begin the key's entry, empty, in place of any other there."""
    if pool[b] >= 0:
        _drop(caches, c, pool, b)
    pool[b] = 0
    for w in range(caches[c, KEY_WORDS]):
        pool[b + BUCKET_HEAD + w] = key[w]
    for w in range(caches[c, WITNESSES]):
        pool[b + BUCKET_HEAD + caches[c, KEY_WORDS] + w] = -1
    caches[c, ENTRIES] += 1
    caches[c, CREATES] += 1


@njit(cache=True, nogil=True)
def _has_witness(caches, c, members, inputs, pool, b, i, begin):  # type: ignore[no-untyped-def]
    """The latest tuple of pipeline i that looked the entry up is still there. begin: of its inputs among `members`."""
    at = b + BUCKET_HEAD + caches[c, KEY_WORDS]
    lives = pool[at] == i
    if lives:
        for w in range(1, caches[c, WITNESSES]):
            lives &= pool[at + w] >= inputs[members[begin + w - 1], PROBE_LO]
    return lives


@njit(cache=True, nogil=True)
def _witness(caches, c, members, walks, pool, b, i, begin):  # type: ignore[no-untyped-def]
    """Note the tuple of pipeline i that looks the entry up now."""
    at = b + BUCKET_HEAD + caches[c, KEY_WORDS]
    pool[at] = i
    for w in range(1, caches[c, WITNESSES]):
        pool[at + w] = walks[CHOSEN, members[begin + w - 1]]


@njit(cache=True, nogil=True)
def _append(caches, c, members, walks, pool, owners, free, b):  # type: ignore[no-untyped-def]
    """Add the slots chosen of the segment's inputs to an entry; False where there is no room: then the entry goes."""
    size = caches[c, SIZE]
    at = int64(-1)
    if pool[b] < caches[c, INLINE]:
        at = b + BUCKET_HEAD + caches[c, KEY_WORDS] + caches[c, WITNESSES] + pool[b] * size
    else:
        head = pool[b + 1]
        if head == 0 or head & FILL == caches[c, PER_CHUNK]:
            chunk = _take_chunk(caches, c, pool, owners, free)
            if chunk >= 0:
                pool[chunk], pool[chunk + 1] = head, b
            head = chunk
        if head >= 0:
            at = (head & ~FILL) + CHUNK_HEAD + (head & FILL) * size
            pool[b + 1] = head + 1
    if at >= 0:
        for m in range(size):
            pool[at + m] = walks[CHOSEN, members[caches[c, MEMBERS] + m]]
        pool[b] += 1
        caches[c, TUPLES] += 1
    else:
        _drop(caches, c, pool, b)
    return at >= 0


@njit(cache=True, nogil=True)
def _remove(caches, c, pool, b, at):  # type: ignore[no-untyped-def]
    """Take the tuple at an address out of an entry: the newest takes its place."""
    size, head = caches[c, SIZE], pool[b + 1]
    first = b + BUCKET_HEAD + caches[c, KEY_WORDS] + caches[c, WITNESSES]
    newest = first + (pool[b] - 1) * size if head == 0 else (head & ~FILL) + CHUNK_HEAD + ((head & FILL) - 1) * size
    for m in range(size):
        pool[at + m] = pool[newest + m]
    if head & FILL == 1:
        pool[b + 1] = pool[head & ~FILL]
        _free_chunk(caches, c, pool, head & ~FILL)
    elif head != 0:
        pool[b + 1] = head - 1
    pool[b] -= 1
    caches[c, TUPLES] -= 1


@njit(cache=True, nogil=True)
def _find(caches, c, members, walks, pool, b):  # type: ignore[no-untyped-def]
    """The address of the slots chosen of the segment's inputs in an entry; -1 where they are not in it."""
    size, head, rest = caches[c, SIZE], pool[b + 1], min(pool[b], caches[c, INLINE])
    first = b + BUCKET_HEAD + caches[c, KEY_WORDS] + caches[c, WITNESSES]
    found = int64(-1)
    while found < 0 and (head != 0 or rest > 0):
        if head != 0:
            at = (head & ~FILL) + CHUNK_HEAD + ((head & FILL) - 1) * size
            head = head - 1 if head & FILL > 1 else pool[head & ~FILL]
        else:
            rest -= 1
            at = first + rest * size
        same = True
        for m in range(size):
            same &= pool[at + m] == walks[CHOSEN, members[caches[c, MEMBERS] + m]]
        if same:
            found = at
    return found


@njit(cache=True, nogil=True)
def _update(  # type: ignore[no-untyped-def]
    caches, c, at, members, parts, walks, nodes, tables, pool, owners, free, key, deletes
):
    """CacheUpdate: the slots chosen of the segment's inputs come into its join, or leave it.

    at: where the parts of the key begin, all of inputs of the segment.
    """
    for w in range(caches[c, KEY_WORDS]):
        slot = walks[CHOSEN, parts[at + w, PART_INPUT]]
        key[w] = nodes[parts[at + w, PART_NODES] + 2 * (slot & parts[at + w, PART_MASK])]
    entry, place = _locate(caches, c, tables, key)
    b = tables[entry] + place
    if tables[entry] < 0 or not _holds(caches, c, pool, b, key):
        caches[c, IGNORED] += 1
    elif deletes:
        there = _find(caches, c, members, walks, pool, b)
        if there >= 0:
            _remove(caches, c, pool, b, there)
            caches[c, DELETES] += 1
    elif caches[c, IS_REDUCED] == 0 or _find(caches, c, members, walks, pool, b) < 0:
        _append(caches, c, members, walks, pool, owners, free, b)
        caches[c, INSERTS] += 1


# --------------------------------------------------------------------------------------------- instants


@njit("void(int64[:, ::1], int8[::1], int64, int64, int64)", cache=True, nogil=True)
def _deletions_first(out: Int64Array, sign: Int8Array, first: int, middle: int, end: int) -> None:
    """Swap [first, middle), insertions, with [middle, end), deletions, each in some order (rotation by reversals)."""
    for j in range(len(out)):
        row = out[j]
        for a, b in ((first, middle), (middle, end), (first, end)):
            x, y = a, b - 1
            while x < y:
                row[x], row[y] = row[y], row[x]
                x += 1
                y -= 1
    for p in range(first, end):
        sign[p] = -1 if p < first + end - middle else 1


@njit(cache=True, nogil=True)
def _next_runs(runs, inputs, walks, state, netted):  # type: ignore[no-untyped-def]
    """Take every input's run of the next instant; returns the phase it begins with, _START when there is none."""
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        if inputs[j, RUN] < inputs[j, RUNS_END]:
            instant = min(instant, runs[inputs[j, RUN], RUN_TS])
    phase = int64(_START)
    leaving = int64(0)
    for j in range(n):
        if inputs[j, RUN] < inputs[j, RUNS_END]:
            phase = int64(_INSERT)
    for j in range(n):
        lo, hi = inputs[j, LO], inputs[j, HI]
        inputs[j, OLD_LO], inputs[j, OLD_HI], inputs[j, STOP] = lo, hi, hi
        at = inputs[j, RUN]
        if at < inputs[j, RUNS_END] and runs[at, RUN_TS] == instant:
            leave = runs[at, RUN_DELETIONS]
            leaving += leave
            if lo + leave > hi:
                state[STATUS] = MISSING
            inputs[j, LO] = lo + leave
            inputs[j, STOP] = hi + runs[at, RUN_INSERTIONS]
            inputs[j, RUN] = at + 1
            if netted != 0:
                lo += leave
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo, _NO_LIMIT
        walks[STOPS, j] = inputs[j, STOP]
    state[INSTANT] = instant
    state[LEAVING] = leaving
    if phase == _INSERT and netted == 0 and leaving > 0:
        phase = int64(_DELETE)
    return phase


@njit(cache=True, nogil=True)
def _next_arrivals(instants, inputs, walks, state):  # type: ignore[no-untyped-def]
    """As `_next_runs`, of streams with ranges: each lo moves past the rows that have left, OLD_LO stands before those
    of this very instant.
    """
    n = len(inputs)
    instant = int64(MAX_INSTANT)
    for j in range(n):
        if inputs[j, HI] < inputs[j, STOP]:
            instant = min(instant, instants[inputs[j, MARKS] + (inputs[j, HI] & inputs[j, MASK])])
    leaving = int64(0)
    for j in range(n if instant < MAX_INSTANT else 0):
        lo, hi, base, mask = inputs[j, LO], inputs[j, HI], inputs[j, MARKS], inputs[j, MASK]
        length = uint64(inputs[j, LENGTH])
        # Rows came before the instant, so that the difference is seen right even where it wraps.
        while lo < hi and uint64(instant) - uint64(instants[base + (lo & mask)]) > length:
            lo += 1
        inputs[j, OLD_LO], inputs[j, OLD_HI] = lo, hi
        while lo < hi and uint64(instant) - uint64(instants[base + (lo & mask)]) == length:
            lo += 1
        leaving += lo - inputs[j, OLD_LO]
        stop = hi
        while stop < inputs[j, STOP] and instants[base + (stop & mask)] == instant:
            stop += 1
        inputs[j, LO], inputs[j, LINKED], walks[STOPS, j] = lo, stop, stop
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo, _NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
    return int64(_INSERT if instant < MAX_INSTANT else _START)


@njit(cache=True, nogil=True)
def _link(inputs: Int64Array, keys: Int64Array, nodes: Int64Array, heads: Int64Array, i: int, slot: int) -> bool:
    """Put a slot at the head of its buckets; False where a key is NULL, then it stands in none."""
    at = 2 * (slot & inputs[i, MASK])
    linked = True
    if inputs[i, HAS_NULLS] != 0:
        for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
            linked &= nodes[keys[x, NODES] + at + 1] != UNLINKED
    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
        k = uint64(keys[x, NODES] + at)
        if linked:
            b = uint64(keys[x, HEADS] + _bucket(nodes[k], keys[x, SHIFT]))
            nodes[k + uint64(1)] = heads[b]
            heads[b] = slot
        else:
            nodes[k + uint64(1)] = UNLINKED
    return linked


@njit(cache=True, nogil=True)
def _stamp(
    inputs: Int64Array, marks: Int64Array, stamps: Int64Array, state: Int64Array, out: Int64Array, found: int
) -> None:
    """Stamp the marks of the instant's insertions, and let pipelines join what was there before the instant."""
    state[SERIAL] += 1
    state[MIDDLE] = found
    for j in range(len(inputs)):
        start, mask = inputs[j, MARKS], inputs[j, MASK]
        for p in range(state[FIRST], found):
            stamps[j, marks[start + (out[j, p] & mask)] & (STAMPS - 1)] = state[SERIAL]
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = inputs[j, OLD_LO], inputs[j, OLD_HI]


# --------------------------------------------------------------------------------------------- the join


@njit(
    "int64(int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64, int64,"
    " int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int8[::1], int64)",
    cache=True,
    nogil=True,
)
def cached_mjoin(  # type: ignore[no-untyped-def]
    runs, instants, inputs, keys, placed, checks, nodes, heads, marks, stamps, walks, state, netted, of_streams,
    caches, members, parts, updates, tables, pool, owners, free, key, reached, out, out_ts, out_sign, found,
):  # fmt: skip
    """As `kernels.mjoin.mjoin`, with caches; of streams with ranges (`of_streams`, netted) by their `instants`.

    placed: see `place`.  walks: (WALKS, n).  caches: (m, CACHE_WORDS).  members: the caches' segments one after the
    other.  updates: (u, 2): cache, where the parts of its key begin.  owners: of each page of the pool, 2 * cache +
    kind.  free: how many pages nobody has, and which.  key: room for one.  reached: (n, n): tuples that have come to
    each position of each pipeline, the last being the results.
    O(elements + tuples + slots inspected + tuples cached and swept).
    """
    n = len(inputs)
    last = n - 1
    limit = len(out_ts)
    phase, i, slot, depth = state[PHASE], state[INPUT], state[SLOT], state[DEPTH]
    enters = False
    inspected = 0
    state[STATUS] = DONE
    while True:
        # The pipeline of the element `slot` of input i, as far as the buffer has room.
        while depth >= 0:
            p = uint64((i * last + depth) * PLACED_WORDS)
            c = placed[p + uint64(LOOKUP)] if phase != _CANCEL else int64(-1)
            if enters:
                enters = False
                reached[i, depth] += 1
                walks[IS_HIT, depth] = 0
                if c >= 0:
                    caches[c, PROBES] += 1
                    at = placed[p + uint64(LOOKUP_PARTS)]
                    for w in range(caches[c, KEY_WORDS]):
                        s = walks[CHOSEN, parts[at + w, PART_INPUT]]
                        key[w] = nodes[parts[at + w, PART_NODES] + 2 * (s & parts[at + w, PART_MASK])]
                    entry, spot = _locate(caches, c, tables, key)
                    b = tables[entry] + spot
                    begin = placed[p + uint64(WITNESS)]
                    if (
                        tables[entry] >= 0
                        and _holds(caches, c, pool, b, key)
                        and (begin < 0 or _has_witness(caches, c, members, inputs, pool, b, i, begin))
                    ):
                        caches[c, HITS] += 1
                        walks[IS_HIT, depth] = 1
                        walks[TAG, depth], walks[CURSOR, depth] = b, pool[b + 1]
                        walks[REST, depth] = min(pool[b], caches[c, INLINE])
                    else:
                        if tables[entry] < 0:
                            _take_table_page(caches, c, tables, entry, pool, owners, free)
                            b = tables[entry] + spot
                        caches[c, PENDING] = -1
                        if tables[entry] >= 0:
                            _create(caches, c, pool, b, key)
                            caches[c, PENDING] = b
                    if begin >= 0 and tables[entry] >= 0:
                        _witness(caches, c, members, walks, pool, b, i, begin)
                if walks[IS_HIT, depth] == 0:
                    s = walks[CHOSEN, placed[p + uint64(SOURCE)]]
                    tag = nodes[uint64(placed[p + uint64(SOURCE_NODES)] + 2 * (s & placed[p + uint64(SOURCE_MASK)]))]
                    walks[TAG, depth] = tag
                    walks[CURSOR, depth] = heads[
                        uint64(placed[p + uint64(TARGET_HEADS)] + _bucket(tag, placed[p + uint64(TARGET_SHIFT)]))
                    ]
            is_found = False
            following = depth + 1
            if walks[IS_HIT, depth] != 0:
                # The next live tuple of the entry; dead ones are swept.
                following = placed[p + uint64(AFTER)]
                b, s, rest = walks[TAG, depth], walks[CURSOR, depth], walks[REST, depth]
                size, begin = caches[c, SIZE], caches[c, MEMBERS]
                first = b + BUCKET_HEAD + caches[c, KEY_WORDS] + caches[c, WITNESSES]
                while not is_found and (s != 0 or rest > 0):
                    at = (s & ~FILL) + CHUNK_HEAD + ((s & FILL) - 1) * size if s != 0 else first + (rest - 1) * size
                    is_found = True
                    for m in range(size):
                        is_found &= pool[at + m] >= inputs[members[begin + m], PROBE_LO]
                    if is_found and following == last and found == limit:
                        state[STATUS] = FULL
                        break
                    if s == 0:
                        rest -= 1
                    else:
                        s = s - 1 if s & FILL > 1 else pool[s & ~FILL]
                    if is_found:
                        for m in range(size):
                            walks[CHOSEN, members[begin + m]] = pool[at + m]
                    else:
                        _remove(caches, c, pool, b, at)
                        caches[c, SWEPT] += 1
                walks[CURSOR, depth], walks[REST, depth] = s, rest
            else:
                # The next slot of the bucket that matches.
                j, tag, s = placed[p + uint64(STEP_TARGET)], walks[TAG, depth], walks[CURSOR, depth]
                base, jmask = placed[p + uint64(TARGET_NODES)], placed[p + uint64(TARGET_MASK)]
                low, high = inputs[j, PROBE_LO], inputs[j, PROBE_HI]
                while s >= low:
                    k = uint64(base + 2 * (s & jmask))
                    inspected += 1
                    if nodes[k] == tag and s < high:
                        walks[CHOSEN, j] = s
                        is_found = True
                        for e in range(placed[p + uint64(STEP_CHECK)], placed[p + uint64(STEP_CHECKS_END)]):
                            x, y = checks[e, 0], checks[e, 2]
                            at_x = keys[checks[e, 1], NODES] + 2 * (walks[CHOSEN, x] & inputs[x, MASK])
                            at_y = keys[checks[e, 3], NODES] + 2 * (walks[CHOSEN, y] & inputs[y, MASK])
                            is_found &= nodes[at_x] == nodes[at_y]
                        if is_found and phase == _CANCEL and following == last:
                            for m in range(n):
                                mark = marks[inputs[m, MARKS] + (walks[CHOSEN, m] & inputs[m, MASK])]
                                is_found &= stamps[m, mark & (STAMPS - 1)] == state[SERIAL]
                        if is_found:
                            if following == last and found == limit:
                                state[STATUS] = FULL
                            else:
                                s = nodes[k + uint64(1)]
                            break
                    s = nodes[k + uint64(1)]
                walks[CURSOR, depth] = s
            if state[STATUS] == FULL:
                break
            if not is_found:
                if c >= 0:
                    caches[c, PENDING] = -1
                depth = walks[UP, depth]
                continue
            if phase != _CANCEL:
                # What stands behind the segment's last step: CacheUpdates.
                p = uint64((i * last + following - 1) * PLACED_WORDS)
                c = placed[p + uint64(COLLECT)]
                if c >= 0 and walks[IS_HIT, depth] == 0 and caches[c, PENDING] >= 0:
                    caches[c, CREATED] += 1
                    if not _append(caches, c, members, walks, pool, owners, free, caches[c, PENDING]):
                        caches[c, PENDING] = -1
                for u in range(placed[p + uint64(UPDATE)], placed[p + uint64(UPDATES_END)]):
                    c = updates[u, 0]
                    if phase == _INSERT or caches[c, EAGER] != 0:
                        _update(
                            caches, c, updates[u, 1], members, parts, walks, nodes, tables, pool, owners, free, key,
                            phase == _DELETE,
                        )  # fmt: skip
            if following < last:
                walks[UP, following] = depth
                depth, enters = following, True
            else:
                for m in range(n):
                    out[m, found] = walks[CHOSEN, m]
                out_ts[found] = state[INSTANT]
                out_sign[found] = 1 if phase == _INSERT else -1
                found += 1
                reached[i, last] += 1
        if state[STATUS] == FULL:
            break
        # The next element of the instant, or the next phase.
        begins = False
        if phase == _INSERT:
            while i < n and inputs[i, HI] >= walks[STOPS, i]:
                i += 1
            if i < n:
                slot = inputs[i, HI]
                inputs[i, HI] = slot + 1
                begins = _link(inputs, keys, nodes, heads, i, slot)
            elif netted != 0 and state[LEAVING] > 0 and found > state[FIRST]:
                _stamp(inputs, marks, stamps, state, out, found)
                phase, i, slot = int64(_CANCEL), int64(0), inputs[0, OLD_LO] - 1
            else:
                phase = int64(_START)
        elif phase != _START:
            slot += 1
            while i < n and slot >= inputs[i, LO]:
                inputs[i, PROBE_LO] = inputs[i, LO]
                i += 1
                if i < n:
                    slot = inputs[i, OLD_LO]
            if i < n:
                at = slot & inputs[i, MASK]
                begins = nodes[keys[inputs[i, KEY], NODES] + 2 * at + 1] != UNLINKED
                if phase == _CANCEL:
                    begins &= stamps[i, marks[inputs[i, MARKS] + at] & (STAMPS - 1)] == state[SERIAL]
            elif phase == _DELETE:
                phase, i = int64(_INSERT), int64(0)
            else:
                if found > state[MIDDLE]:
                    _deletions_first(out, out_sign, state[FIRST], state[MIDDLE], found)
                    state[DELETED] += found - state[MIDDLE]
                phase = int64(_START)
        if begins:
            walks[CHOSEN, i] = slot
            walks[UP, 0] = -1
            depth, enters = int64(0), True
        elif phase == _START:
            if of_streams != 0:
                phase = _next_arrivals(instants, inputs, walks, state)
            else:
                phase = _next_runs(runs, inputs, walks, state, netted)
            if phase == _START or state[STATUS] == MISSING:
                break
            i, slot = int64(0), inputs[0, OLD_LO] - 1
            state[FIRST] = found
    state[PHASE], state[INPUT], state[SLOT], state[DEPTH] = phase, i, slot, depth
    state[INSPECTED] += inspected
    return found
