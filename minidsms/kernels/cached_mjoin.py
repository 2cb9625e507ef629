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

from functools import partial
from typing import Any

import numpy as np
from numba import int64, njit, uint64

from minidsms.elements import MAX_INSTANT, Int8Array, Int16Array, Int64Array

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.kernels.join_cache_layout import (
    AFTER, BUCKETS, BUCKET_HEAD, CACHE_WORDS, CHUNK, CHUNK_HEAD, COLLECT, CREATED, CREATES, CURSOR, DELETES, EAGER,
    ENTRIES, EVICTIONS, FILL, FREE_CHUNK, HITS, IGNORED, INLINE, INLINE_AT, INSERTS, IS_REDUCED, IS_SIMPLE,
    KEY_WORDS, LEAST_SWEEP, LEVEL_WORDS, LOOKUP, LOOKUP_PARTS, MEMBERS, MOST_TABLE_PAGES, PAGE, PAGES, PAGE_BITS,
    PART_INPUT, PART_MASK, PART_NODES, PART_WORDS, PENDING, PER_CHUNK, PLACED_WORDS, PROBES, REST, SIZE, SOURCE,
    SOURCE_MASK, SOURCE_NODES, STEP_CHECK, STEP_CHECKS_END, STEP_TARGET, STRIDE, SWEEP_AT, SWEPT, TABLE,
    TABLE_PAGES, TAG, TARGET_HEADS, TARGET_MASK, TARGET_NODES, TARGET_SHIFT, TUPLES, UP, UPDATE, UPDATES_END,
    WANTED, WITNESS, WITNESSES,
)
# Numba's cache does not see that these change: who changes them changes this file.
from minidsms.kernels.mjoin import (
    BACKS, DELETED, DEPTH, DONE, FIRST, FULL, HAS_NULLS, HEADS, HI, INPUT, INSPECTED, INSTANT, IS_BAG, KEY,
    KEYS_END, LEAVING, LENGTH, LINKED, LO, MARKS, MASK, MIDDLE, MISSING, NODES, OLD_HI, OLD_LO, PHASE, PROBE_HI,
    PROBE_LO, RUN, RUNS_END, RUN_DELETIONS, RUN_INSERTIONS, RUN_TS, SERIAL, SHIFT, SLOT, STAMPS, STATUS, STOP,
    UNLINKED,
)
# fmt: on
# isort: on

_kernel: Any = partial(njit, cache=True, nogil=True, _nrt=False)
"""No function here makes an array, so that numba need not count the references to them, atomically, at every call."""

_START, _DELETE, _INSERT, _CANCEL = 0, 1, 2, 3
_NO_LIMIT = 2**62


@_kernel("int64(int64, int64)", inline="always")
def _bucket(tag: int, shift: int) -> np.int64:
    h = uint64(tag)
    h ^= h >> uint64(32)
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(shift))


# ------------------------------------------------------------------------------------------------- caches


@_kernel()
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


@_kernel()
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


@_kernel()
def _free_chunk(caches, c, pool, chunk):  # type: ignore[no-untyped-def]
    pool[chunk] = caches[c, FREE_CHUNK]
    pool[chunk + 1] = -1
    caches[c, FREE_CHUNK] = chunk


@_kernel()
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


@_kernel()
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


@_kernel()
def _begin_entry(caches, c, tables, entry, place, same, pool, owners, free, key):  # type: ignore[no-untyped-def]
    """Begin the key's entry, empty, in place of any other in its bucket; its address, -1 where there is no room.

    entry: of the table.  place: of the first bucket in its page.  same: the bucket that has the key, -1 for none.
    """
    if tables[entry] < 0:
        _take_table_page(caches, c, tables, entry, pool, owners, free)
    b = same
    if b < 0 and tables[entry] >= 0:
        b = tables[entry] + place
        other = tables[entry] + (place ^ caches[c, STRIDE]) if caches[c, BUCKETS] > 1 else b
        if pool[b] >= 0 and (pool[other] < 0 or caches[c, CREATES] & 1 != 0):
            b = other
    if b >= 0:
        if pool[b] >= 0:
            _drop(caches, c, pool, b)
        pool[b] = 0
        pool[b + SWEEP_AT] = LEAST_SWEEP
        for w in range(caches[c, KEY_WORDS]):
            pool[b + BUCKET_HEAD + w] = key[w]
        for w in range(caches[c, WITNESSES]):
            pool[b + BUCKET_HEAD + caches[c, KEY_WORDS] + w] = -1
        caches[c, ENTRIES] += 1
        caches[c, CREATES] += 1
    caches[c, PENDING] = b
    return b


@_kernel()
def _has_witness(caches, c, members, inputs, pool, b, i, begin):  # type: ignore[no-untyped-def]
    """The latest tuple of pipeline i that looked the entry up is still there. begin: of its inputs among `members`."""
    at = b + BUCKET_HEAD + caches[c, KEY_WORDS]
    lives = pool[at] == i
    if lives:
        for w in range(1, caches[c, WITNESSES]):
            lives &= pool[at + w] >= inputs[members[begin + w - 1], PROBE_LO]
    return lives


@_kernel()
def _witness(caches, c, members, chosen, pool, b, i, begin):  # type: ignore[no-untyped-def]
    """Note the tuple of pipeline i that looks the entry up now."""
    at = b + BUCKET_HEAD + caches[c, KEY_WORDS]
    pool[at] = i
    for w in range(1, caches[c, WITNESSES]):
        pool[at + w] = chosen[members[begin + w - 1]]


@_kernel()
def _append(caches, c, members, chosen, pool, owners, free, b):  # type: ignore[no-untyped-def]
    """Add the slots chosen of the segment's inputs to an entry; False where there is no room: then the entry goes."""
    size = caches[c, SIZE]
    at = int64(-1)
    if pool[b] < caches[c, INLINE]:
        at = b + caches[c, INLINE_AT] + pool[b] * size
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
            pool[at + m] = chosen[members[caches[c, MEMBERS] + m]]
        pool[b] += 1
        caches[c, TUPLES] += 1
    else:
        _drop(caches, c, pool, b)
    return at >= 0


@_kernel()
def _remove(caches, c, pool, b, at):  # type: ignore[no-untyped-def]
    """Take the tuple at an address out of an entry: the newest takes its place."""
    size, head = caches[c, SIZE], pool[b + 1]
    first = b + caches[c, INLINE_AT]
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


@_kernel()
def _find(caches, c, members, chosen, pool, b):  # type: ignore[no-untyped-def]
    """The address of the slots chosen of the segment's inputs in an entry; -1 where they are not in it."""
    size, head, rest = caches[c, SIZE], pool[b + 1], min(pool[b], caches[c, INLINE])
    first = b + caches[c, INLINE_AT]
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
            same &= pool[at + m] == chosen[members[caches[c, MEMBERS] + m]]
        if same:
            found = at
    return found


@_kernel()
def _sweep(caches, c, members, inputs, pool, b):  # type: ignore[no-untyped-def]
    """Take the dead tuples out of an entry."""
    size, head, rest = caches[c, SIZE], pool[b + 1], min(pool[b], caches[c, INLINE])
    while head != 0 or rest > 0:
        if head != 0:
            at = (head & ~FILL) + CHUNK_HEAD + ((head & FILL) - 1) * size
            head = head - 1 if head & FILL > 1 else pool[head & ~FILL]
        else:
            rest -= 1
            at = b + caches[c, INLINE_AT] + rest * size
        lives = True
        for m in range(size):
            lives &= pool[at + m] >= inputs[members[caches[c, MEMBERS] + m], PROBE_LO]
        if not lives:
            _remove(caches, c, pool, b, at)
            caches[c, SWEPT] += 1


@_kernel()
def _insert(caches, c, members, inputs, chosen, pool, owners, free, b):  # type: ignore[no-untyped-def]
    """The segment's join has gained the slots chosen."""
    if pool[b] >= pool[b + SWEEP_AT]:
        # At least as many insertions as it is long stand between two sweeps of an entry.
        _sweep(caches, c, members, inputs, pool, b)
        pool[b + SWEEP_AT] = max(LEAST_SWEEP, 2 * pool[b])
    if caches[c, IS_REDUCED] == 0 or _find(caches, c, members, chosen, pool, b) < 0:
        caches[c, INSERTS] += 1
        _append(caches, c, members, chosen, pool, owners, free, b)


@_kernel()
def _delete(caches, c, members, chosen, pool, b):  # type: ignore[no-untyped-def]
    """The segment's join has lost the slots chosen."""
    at = _find(caches, c, members, chosen, pool, b)
    if at >= 0:
        caches[c, DELETES] += 1
        _remove(caches, c, pool, b, at)


# --------------------------------------------------------------------------------------------- instants


@_kernel("void(int64[:, ::1], int8[::1], int64, int64, int64)")
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


@_kernel()
def _next_runs(runs, inputs, stops, state, netted):  # type: ignore[no-untyped-def]
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
        is_bag = inputs[j, IS_BAG] != 0
        lo, hi = inputs[j, HI] if is_bag else inputs[j, LO], inputs[j, HI]
        inputs[j, OLD_LO], inputs[j, OLD_HI], inputs[j, LO], inputs[j, STOP] = lo, hi, lo, hi
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
            inputs[j, STOP] = hi + runs[at, RUN_INSERTIONS]
            inputs[j, RUN] = at + 1
            if netted != 0:
                lo += leave
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = 0 if is_bag else lo, _NO_LIMIT
        stops[j] = inputs[j, STOP]
    state[INSTANT] = instant
    state[LEAVING] = leaving
    if phase == _INSERT and netted == 0 and leaving > 0:
        phase = int64(_DELETE)
    return phase


@_kernel()
def _next_arrivals(instants, inputs, stops, state):  # type: ignore[no-untyped-def]
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
        inputs[j, LO], inputs[j, LINKED], stops[j] = lo, stop, stop
        inputs[j, PROBE_LO], inputs[j, PROBE_HI] = lo, _NO_LIMIT
    state[INSTANT] = instant
    state[LEAVING] = leaving
    return int64(_INSERT if instant < MAX_INSTANT else _START)


@_kernel()
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
            heads[keys[x, HEADS] + _bucket(nodes[k], keys[x, SHIFT])] = older
        backs[back + slot] = UNLINKED


@_kernel()
def _stamp(
    inputs: Int64Array, marks: Int16Array, stamps: Int64Array, state: Int64Array, out: Int64Array, found: int
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


@_kernel(
    "int64(int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int16[::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64,"
    " int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[:, ::1], int64[::1], int8[::1], int64)",
)
def cached_mjoin(  # type: ignore[no-untyped-def]
    runs, instants, inputs, keys, placed, checks, nodes, heads, places, backs, marks, stamps, chosen, levels, stops,
    state, netted, of_streams, caches, rows, members, parts, updates, tables, pool, owners, free, key,
    out, out_ts, out_sign, found,
):  # fmt: skip
    """As `kernels.mjoin.mjoin`, with caches; of streams with ranges (`of_streams`, netted) by their `instants`.

    placed: see `kernels.join_caches.place`.  chosen, stops: (n,) of each input the slot chosen and where the insertions
    of the instant end.  levels: (n * LEVEL_WORDS,).  caches: (m, CACHE_WORDS); rows: the same, flat.  members: the
    caches' segments one after the other.  parts: of keys, PART_WORDS each.  updates: (u, 2): cache, where the parts of
    its key begin.  owners: of each page of the pool, 2 * cache + kind.  free: how many pages nobody has, and which.
    key: room for one.
    O(elements + tuples + slots inspected + tuples cached and swept).
    """
    # What is read at every element stands here in full, with unsigned places: numba would count references to the
    # arrays at every call, and test every place for being negative.
    n = len(inputs)
    last = n - 1
    limit = len(out_ts)
    phase, i, slot, depth = state[PHASE], state[INPUT], state[SLOT], state[DEPTH]
    enters = False
    own = int64(0)
    inspected = int64(0)
    tag, s, rest = int64(0), int64(0), int64(-1)
    if depth >= 0:
        level = uint64(depth * LEVEL_WORDS)
        tag, s, rest = levels[level + uint64(TAG)], levels[level + uint64(CURSOR)], levels[level + uint64(REST)]
    state[STATUS] = DONE
    while True:
        # The pipeline of the element `slot` of input i, as far as the buffer has room. tag, s, rest: of this depth.
        sign = 1 if phase == _INSERT else -1
        instant = state[INSTANT]
        while depth >= 0:
            p = uint64((i * last + depth) * PLACED_WORDS)
            c = placed[p + uint64(LOOKUP)] if phase != _CANCEL else int64(-1)
            row = uint64(c * CACHE_WORDS)
            if enters:
                enters = False
                rest = int64(-1)
                if c >= 0:
                    words = rows[row + uint64(KEY_WORDS)]
                    q = uint64(placed[p + uint64(LOOKUP_PARTS)])
                    h = uint64(0)
                    for w in range(words):
                        s = chosen[uint64(parts[q + uint64(PART_INPUT)])]
                        k = uint64(parts[q + uint64(PART_NODES)] + 2 * (s & parts[q + uint64(PART_MASK)]))
                        key[uint64(w)] = nodes[k]
                        h = (h ^ uint64(nodes[k])) * uint64(0xFF51AFD7ED558CCD)
                        h ^= h >> uint64(32)
                        q += uint64(PART_WORDS)
                    h *= uint64(0x9E3779B97F4A7C15)
                    at = (int64(h >> uint64(32)) & (rows[row + uint64(BUCKETS)] - 1)) * rows[row + uint64(STRIDE)]
                    entry = rows[row + uint64(TABLE)] + (at >> PAGE_BITS)
                    page = tables[uint64(entry)]
                    at &= PAGE - 1
                    partner = rows[row + uint64(STRIDE)] if rows[row + uint64(BUCKETS)] > 1 else int64(0)
                    begin = placed[p + uint64(WITNESS)]
                    rows[row + uint64(PROBES)] += 1
                    tag = int64(-1)
                    # Both buckets; `at` is the first again where neither has the key.
                    for _ in range(2 if page >= 0 else 0):
                        is_hit = pool[uint64(page + at)] >= 0
                        for w in range(words):
                            is_hit &= pool[uint64(page + at + BUCKET_HEAD + w)] == key[uint64(w)]
                        if is_hit:
                            tag = page + at
                            break
                        at ^= partner
                    is_hit = tag >= 0
                    if is_hit and begin >= 0:
                        is_hit = _has_witness(caches, c, members, inputs, pool, tag, i, begin)
                    if is_hit:
                        rows[row + uint64(HITS)] += 1
                        s = pool[uint64(tag + 1)]
                        rest = min(pool[uint64(tag)], rows[row + uint64(INLINE)])
                    else:
                        tag = _begin_entry(caches, c, tables, entry, at, tag, pool, owners, free, key)
                    if begin >= 0 and tag >= 0:
                        _witness(caches, c, members, chosen, pool, tag, i, begin)
                if rest < 0:
                    s = chosen[uint64(placed[p + uint64(SOURCE)])]
                    tag = nodes[uint64(placed[p + uint64(SOURCE_NODES)] + 2 * (s & placed[p + uint64(SOURCE_MASK)]))]
                    s = heads[uint64(placed[p + uint64(TARGET_HEADS)] + _bucket(tag, placed[p + uint64(TARGET_SHIFT)]))]
            is_found = False
            if rest >= 0:
                # The next live tuple of the entry; dead ones are swept.
                following = placed[p + uint64(AFTER)]
                q = uint64((i * last + following - 1) * PLACED_WORDS)
                is_simple = following == last and placed[q + uint64(UPDATE)] == placed[q + uint64(UPDATES_END)]
                size = rows[row + uint64(SIZE)]
                begin = rows[row + uint64(MEMBERS)]
                while s != 0 or rest > 0:
                    if s != 0:
                        at = (s & ~FILL) + CHUNK_HEAD + ((s & FILL) - 1) * size
                    else:
                        at = tag + rows[row + uint64(INLINE_AT)] + (rest - 1) * size
                    is_found = True
                    for m in range(size):
                        j = uint64(members[uint64(begin + m)])
                        chosen[j] = pool[uint64(at + m)]
                        is_found &= chosen[j] >= inputs[j, PROBE_LO]
                    if is_found and following == last and found == limit:
                        state[STATUS] = FULL
                        break
                    if s == 0:
                        rest -= 1
                    else:
                        s = s - 1 if s & FILL > 1 else pool[uint64(s & ~FILL)]
                    if not is_found:
                        _remove(caches, c, pool, tag, at)
                        rows[row + uint64(SWEPT)] += 1
                    elif is_simple:
                        is_found = False
                        for m in range(n):
                            out[uint64(m), uint64(found)] = chosen[uint64(m)]
                        out_ts[uint64(found)], out_sign[uint64(found)] = instant, sign
                        found += 1
                    else:
                        break
            else:
                # The next slot of the bucket that matches.
                following = depth + 1
                is_simple = following == last and placed[p + uint64(IS_SIMPLE)] != 0
                j = uint64(placed[p + uint64(STEP_TARGET)])
                base, jmask = placed[p + uint64(TARGET_NODES)], placed[p + uint64(TARGET_MASK)]
                low, high = inputs[j, PROBE_LO], inputs[j, PROBE_HI]
                begin, end = placed[p + uint64(STEP_CHECK)], placed[p + uint64(STEP_CHECKS_END)]
                while s >= low:
                    k = uint64(base + 2 * (s & jmask))
                    inspected += 1
                    if nodes[k] == tag and s < high:
                        chosen[j] = s
                        is_found = True
                        for e in range(begin, end):
                            x, y = checks[e, 0], checks[e, 2]
                            at_x = keys[checks[e, 1], NODES] + 2 * (chosen[x] & inputs[x, MASK])
                            at_y = keys[checks[e, 3], NODES] + 2 * (chosen[y] & inputs[y, MASK])
                            is_found &= nodes[at_x] == nodes[at_y]
                        if is_found and phase == _CANCEL and following == last:
                            for m in range(n):
                                mark = marks[inputs[m, MARKS] + (chosen[m] & inputs[m, MASK])]
                                is_found &= stamps[m, mark & (STAMPS - 1)] == state[SERIAL]
                        if is_found:
                            if following == last and found == limit:
                                state[STATUS] = FULL
                                break
                            if not is_simple:
                                s = nodes[k + uint64(1)]
                                break
                            is_found = False
                            for m in range(n):
                                out[uint64(m), uint64(found)] = chosen[uint64(m)]
                            out_ts[uint64(found)], out_sign[uint64(found)] = instant, sign
                            found += 1
                    s = nodes[k + uint64(1)]
            if state[STATUS] == FULL:
                break
            if not is_found:
                if c >= 0 and rest < 0:
                    rows[row + uint64(PENDING)] = -1
                depth = levels[uint64(depth * LEVEL_WORDS + UP)]
                level = uint64(depth * LEVEL_WORDS)
                if depth >= 0:
                    tag, s = levels[level + uint64(TAG)], levels[level + uint64(CURSOR)]
                    rest = levels[level + uint64(REST)]
                continue
            # What stands behind the segment's last step: CacheUpdates.
            p = uint64((i * last + following - 1) * PLACED_WORDS)
            if placed[p + uint64(IS_SIMPLE)] == 0 and phase != _CANCEL:
                c = placed[p + uint64(COLLECT)]
                if c >= 0 and rest < 0:
                    rows[uint64(c * CACHE_WORDS + CREATED)] += 1
                    if caches[c, PENDING] >= 0 and not _append(
                        caches, c, members, chosen, pool, owners, free, caches[c, PENDING]
                    ):
                        caches[c, PENDING] = -1
                for u in range(placed[p + uint64(UPDATE)], placed[p + uint64(UPDATES_END)]):
                    c = updates[u, 0]
                    row = uint64(c * CACHE_WORDS)
                    if phase == _DELETE and rows[row + uint64(EAGER)] == 0:
                        continue
                    words = rows[row + uint64(KEY_WORDS)]
                    q = uint64(updates[u, 1])
                    h = uint64(0)
                    for w in range(words):
                        x = chosen[uint64(parts[q + uint64(PART_INPUT)])]
                        k = uint64(parts[q + uint64(PART_NODES)] + 2 * (x & parts[q + uint64(PART_MASK)]))
                        key[uint64(w)] = nodes[k]
                        h = (h ^ uint64(nodes[k])) * uint64(0xFF51AFD7ED558CCD)
                        h ^= h >> uint64(32)
                        q += uint64(PART_WORDS)
                    h *= uint64(0x9E3779B97F4A7C15)
                    at = (int64(h >> uint64(32)) & (rows[row + uint64(BUCKETS)] - 1)) * rows[row + uint64(STRIDE)]
                    page = tables[uint64(rows[row + uint64(TABLE)] + (at >> PAGE_BITS))]
                    at &= PAGE - 1
                    partner = rows[row + uint64(STRIDE)] if rows[row + uint64(BUCKETS)] > 1 else int64(0)
                    is_hit = False
                    for _ in range(2 if page >= 0 else 0):
                        is_hit = pool[uint64(page + at)] >= 0
                        for w in range(words):
                            is_hit &= pool[uint64(page + at + BUCKET_HEAD + w)] == key[uint64(w)]
                        if is_hit:
                            break
                        at ^= partner
                    b = page + at
                    if not is_hit:
                        rows[row + uint64(IGNORED)] += 1
                    elif phase == _DELETE:
                        _delete(caches, c, members, chosen, pool, b)
                    else:
                        _insert(caches, c, members, inputs, chosen, pool, owners, free, b)
            if following < last:
                level = uint64(depth * LEVEL_WORDS)
                levels[level + uint64(TAG)], levels[level + uint64(CURSOR)] = tag, s
                levels[level + uint64(REST)] = rest
                levels[uint64(following * LEVEL_WORDS + UP)] = depth
                depth, enters = following, True
            else:
                for m in range(n):
                    out[uint64(m), uint64(found)] = chosen[uint64(m)]
                out_ts[uint64(found)], out_sign[uint64(found)] = instant, sign
                found += 1
        if state[STATUS] == FULL:
            level = uint64(depth * LEVEL_WORDS)
            levels[level + uint64(TAG)], levels[level + uint64(CURSOR)] = tag, s
            levels[level + uint64(REST)] = rest
            break
        # The next element of the instant, or the next phase.
        begins = False
        if phase == _INSERT:
            while i < n and inputs[i, HI] >= stops[i]:
                i += 1
            if i < n:
                slot = inputs[i, HI]
                inputs[i, HI] = slot + 1
                is_bag = inputs[i, IS_BAG] != 0
                own = places[slot] if is_bag else slot
                at = 2 * (own & inputs[i, MASK])
                begins = True
                if inputs[i, HAS_NULLS] != 0:
                    for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                        begins &= nodes[keys[x, NODES] + at + 1] != UNLINKED
                for x in range(inputs[i, KEY], inputs[i, KEYS_END]):
                    k = uint64(keys[uint64(x), NODES] + at)
                    if begins:
                        e = uint64(keys[uint64(x), HEADS] + _bucket(nodes[k], keys[uint64(x), SHIFT]))
                        if is_bag:
                            if heads[e] >= 0:
                                backs[keys[x, BACKS] + heads[e]] = own
                            backs[keys[x, BACKS] + own] = -1
                        nodes[k + uint64(1)] = heads[e]
                        heads[e] = own
                    else:
                        nodes[k + uint64(1)] = UNLINKED
            elif netted != 0 and state[LEAVING] > 0 and found > state[FIRST]:
                _stamp(inputs, marks, stamps, state, out, found)
                phase, i, slot = int64(_CANCEL), int64(0), inputs[0, OLD_LO] - 1
            else:
                phase = int64(_START)
        elif phase != _START:
            slot += 1
            while i < n and slot >= inputs[i, LO]:
                if inputs[i, IS_BAG] == 0:
                    inputs[i, PROBE_LO] = inputs[i, LO]
                i += 1
                if i < n:
                    slot = inputs[i, OLD_LO]
            if i < n:
                own = places[slot] if inputs[i, IS_BAG] != 0 else slot
                at = own & inputs[i, MASK]
                begins = nodes[keys[inputs[i, KEY], NODES] + 2 * at + 1] != UNLINKED
                if begins and inputs[i, IS_BAG] != 0:
                    _unlink(inputs, keys, nodes, heads, backs, i, own)
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
            chosen[i] = own
            levels[UP] = -1
            depth, enters = int64(0), True
        elif phase == _START:
            if of_streams != 0:
                phase = _next_arrivals(instants, inputs, stops, state)
            else:
                phase = _next_runs(runs, inputs, stops, state, netted)
            if phase == _START or state[STATUS] == MISSING:
                break
            i, slot = int64(0), inputs[0, OLD_LO] - 1
            state[FIRST] = found
    state[PHASE], state[INPUT], state[SLOT], state[DEPTH] = phase, i, slot, depth
    state[INSPECTED] += inspected
    return found


@_kernel("void(int64[:, ::1], int64, int64[::1], int64[:, ::1], int64[::1], int64)")
def sweep_page(caches, c, members, inputs, pool, page):  # type: ignore[no-untyped-def]
    """Take the dead tuples out of the entries of a page of buckets, at this address."""
    for b in range(page, page + PAGE, caches[c, STRIDE]):
        if pool[b] > 0:
            _sweep(caches, c, members, inputs, pool, b)
