"""The entries of caches: begun, found, added to, swept and dropped, in pages taken from the pool.

`kernels.join_cache_layout` says how they stand in arrays. The kernels that join with caches call these functions, and
so do those that move entries between slices.

Invariant: every chunk of a cache is either on its free list or in the chain of the bucket that it names; a page has one
owner or none. Babu 2005, section 5.4.1.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_cache_layout import (
    BUCKETS,
    CHUNK,
    CHUNK_HEAD,
    CREATES,
    ENTRIES,
    EVICTIONS,
    FILL,
    FREE_CHUNK,
    GHOSTS,
    INLINE,
    INLINE_AT,
    LEAST_SWEEP,
    MEMBERS,
    MOST_TABLE_PAGES,
    PAGE,
    PAGES,
    PER_CHUNK,
    REGRETS,
    SAMPLE_BITS,
    SIZE,
    STRIDE,
    SWEEP_AT,
    SWEPT,
    TABLE_PAGES,
    TUPLES,
    WANTED,
    CacheArrays,
)
from minidsms.kernels.join_layout import JoinInput
from minidsms.machine_code import Int64s, Int64Table, Rows, helper, int64, kernel, uint64


@helper(inline=True)
def mixed(h, word):  # type: ignore[no-untyped-def]
    """The hash of a key, with one more word."""
    h = (h ^ uint64(word)) * uint64(0xFF51AFD7ED558CCD)
    return h ^ (h >> uint64(32))


@helper(inline=True)
def bucket_of(h, buckets):  # type: ignore[no-untyped-def]
    """The bucket of so many, a power of two, that a key of this hash asks for first."""
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(32)) & (buckets - 1)


@helper(inline=True)
def note_miss(caches, c, ghosts, h):  # type: ignore[no-untyped-def]
    """The key of this hash was looked up by an insertion, and has no entry."""
    x = h * uint64(0x9E3779B97F4A7C15)
    if x & uint64((1 << SAMPLE_BITS) - 1) == uint64(0):
        at = uint64(c * GHOSTS) + ((x >> uint64(40)) & uint64(GHOSTS - 1))
        if ghosts[at] == int64(x):
            caches[c, REGRETS] += 1
        ghosts[at] = int64(x)


# ------------------------------------------------------------------------------------------------ pages and chunks


@helper
def take_page(store: CacheArrays, c: int, kind: int) -> Any:
    """The address of a page for a cache, kind 0 for buckets, 1 for chunks; -1 where none is free."""
    caches, owners, free = store.caches, store.owners, store.free
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


@helper
def take_table_page(store: CacheArrays, c: int, entry: int) -> Any:
    """Give a part of the table its page of empty buckets, where there is one."""
    caches, tables, pool = store.caches, store.tables, store.pool
    if caches[c, TABLE_PAGES] < caches[c, MOST_TABLE_PAGES]:
        page = take_page(store, c, 0)
        if page >= 0:
            for b in range(page, page + PAGE, caches[c, STRIDE]):
                pool[b] = -1
                pool[b + 1] = 0
            caches[c, TABLE_PAGES] += 1
        tables[entry] = page
    else:
        caches[c, WANTED] += 1


@helper
def take_chunk(store: CacheArrays, c: int) -> Any:
    """The address of an unused chunk; -1 where there is no room."""
    caches, pool = store.caches, store.pool
    if caches[c, FREE_CHUNK] < 0:
        page = take_page(store, c, 1)
        if page >= 0:
            for at in range(page + PAGE - CHUNK, page - CHUNK, -CHUNK):
                pool[at] = caches[c, FREE_CHUNK]
                pool[at + 1] = -1
                caches[c, FREE_CHUNK] = at
    chunk = caches[c, FREE_CHUNK]
    if chunk >= 0:
        caches[c, FREE_CHUNK] = pool[chunk]
    return chunk


@helper
def free_chunk(caches, c, pool, chunk):  # type: ignore[no-untyped-def]
    """Put a chunk on the free list of its cache."""
    pool[chunk] = caches[c, FREE_CHUNK]
    pool[chunk + 1] = -1
    caches[c, FREE_CHUNK] = chunk


# -------------------------------------------------------------------------------------------------------- entries


@helper
def free_chain(caches, c, pool, head):  # type: ignore[no-untyped-def]
    """Free the chunks of an entry."""
    while head != 0:
        chunk = head & ~FILL
        head = pool[chunk]
        free_chunk(caches, c, pool, chunk)


@helper
def drop(caches, c, pool, b):  # type: ignore[no-untyped-def]
    """Drop the entry of a bucket."""
    free_chain(caches, c, pool, pool[b + 1])
    caches[c, ENTRIES] -= 1
    caches[c, TUPLES] -= pool[b]
    caches[c, EVICTIONS] += 1
    pool[b] = -1
    pool[b + 1] = 0


@helper
def begin_entry(store: CacheArrays, c: int, entry: int, place: int, same: int) -> Any:
    """The address of a bucket with an empty entry in it, whose key the caller writes; -1 where there is no room.

    same: a bucket that already has the key, -1 for none: then one of the two from `place` on in the page of
    tables[entry] gives way, an empty one first.
    """
    caches, tables, pool = store.caches, store.tables, store.pool
    if tables[entry] < 0:
        take_table_page(store, c, entry)
    b = same
    if b < 0 and tables[entry] >= 0:
        one = tables[entry] + place
        other = tables[entry] + (place ^ caches[c, STRIDE]) if caches[c, BUCKETS] > 1 else one
        if pool[one] >= 0 and (pool[other] < 0 or caches[c, CREATES] & 1 != 0):
            one, other = other, one
        b = one
    if b >= 0:
        if pool[b] >= 0:
            drop(caches, c, pool, b)
        pool[b] = 0
        pool[b + SWEEP_AT] = LEAST_SWEEP
        caches[c, ENTRIES] += 1
        caches[c, CREATES] += 1
    return b


@helper
def append(store: CacheArrays, c: int, chosen: Int64s, b: int) -> Any:
    """Add the slots chosen of the segment's inputs to an entry; False where there is no room: then the entry goes."""
    caches, members, pool = store.caches, store.members, store.pool
    size = caches[c, SIZE]
    at = int64(-1)
    if pool[b] < caches[c, INLINE]:
        at = b + caches[c, INLINE_AT] + pool[b] * size
    else:
        head = pool[b + 1]
        if head == 0 or head & FILL == caches[c, PER_CHUNK]:
            chunk = take_chunk(store, c)
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
        drop(caches, c, pool, b)
    return at >= 0


@helper
def remove(caches, c, pool, b, at):  # type: ignore[no-untyped-def]
    """Take the tuple at an address out of an entry: the newest takes its place."""
    size, head = caches[c, SIZE], pool[b + 1]
    first = b + caches[c, INLINE_AT]
    newest = first + (pool[b] - 1) * size if head == 0 else (head & ~FILL) + CHUNK_HEAD + ((head & FILL) - 1) * size
    for m in range(size):
        pool[at + m] = pool[newest + m]
    if head & FILL == 1:
        pool[b + 1] = pool[head & ~FILL]
        free_chunk(caches, c, pool, head & ~FILL)
    elif head != 0:
        pool[b + 1] = head - 1
    pool[b] -= 1
    caches[c, TUPLES] -= 1


@helper(inline=True)
def tuple_at(caches: Int64Table, c: int, b: int, s: int, rest: int) -> Any:
    """Where the next tuple of the entry in bucket b stands: the newest of chunk s, where that is 0 the last of `rest`
    in the bucket.
    """
    if s != 0:
        return (s & ~FILL) + CHUNK_HEAD + ((s & FILL) - 1) * caches[c, SIZE]
    return b + caches[c, INLINE_AT] + (rest - 1) * caches[c, SIZE]


@helper(inline=True)
def tuple_behind(pool: Int64s, s: int, rest: int) -> Any:
    """What tells `tuple_at` the tuple behind; (0, 0) behind the last."""
    if s == 0:
        return s, rest - 1
    return (s - 1 if s & FILL > 1 else pool[uint64(s & ~FILL)]), rest


@helper
def find(store: CacheArrays, c: int, chosen: Int64s, b: int) -> Any:
    """The address of the slots chosen of the segment's inputs in an entry; -1 where they are not in it."""
    caches, members, pool = store.caches, store.members, store.pool
    head, rest = pool[b + 1], min(pool[b], caches[c, INLINE])
    found = int64(-1)
    while found < 0 and (head != 0 or rest > 0):
        at = tuple_at(caches, c, b, head, rest)
        head, rest = tuple_behind(pool, head, rest)
        same = True
        for m in range(caches[c, SIZE]):
            same &= pool[at + m] == chosen[members[caches[c, MEMBERS] + m]]
        if same:
            found = at
    return found


@helper
def sweep(caches, c, members, inputs, pool, b):  # type: ignore[no-untyped-def]
    """Take the dead tuples out of an entry: those of which a slot is below `probe_lo` of its input."""
    head, rest = pool[b + 1], min(pool[b], caches[c, INLINE])
    while head != 0 or rest > 0:
        at = tuple_at(caches, c, b, head, rest)
        head, rest = tuple_behind(pool, head, rest)
        lives = True
        for m in range(caches[c, SIZE]):
            lives &= pool[at + m] >= inputs[members[caches[c, MEMBERS] + m]].probe_lo
        if not lives:
            remove(caches, c, pool, b, at)
            caches[c, SWEPT] += 1


@helper(inline=True)
def sweep_when_due(store: CacheArrays, c: int, inputs: Rows[JoinInput], b: int) -> None:
    """Sweep an entry that is about to grow, once there have been as many insertions as it was long."""
    caches, pool = store.caches, store.pool
    if pool[b] >= pool[b + SWEEP_AT]:
        sweep(caches, c, store.members, inputs, pool, b)
        pool[b + SWEEP_AT] = max(LEAST_SWEEP, 2 * pool[b])


@kernel
def sweep_page(caches: Int64Table, c: int, members: Int64s, inputs: Rows[JoinInput], pool: Int64s, page: int) -> None:
    """Take the dead tuples out of the entries of a page of buckets, at this address."""
    for b in range(page, page + PAGE, caches[c, STRIDE]):
        if pool[b] > 0:
            sweep(caches, c, members, inputs, pool, b)
