"""The entries of caches: begun, found, added to, swept and dropped, in pages taken from the pool.

`kernels.join_cache_layout` says how they stand in arrays. The kernels that join with caches call these functions, and
so do those that move entries between slices.

Invariant: every chunk of a cache is either on its free list or in the chain of the bucket that it names; a page has one
owner or none. Babu 2005, section 5.4.1.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_cache_layout import (
    CHUNK,
    CHUNK_HEAD,
    FILL,
    GHOSTS,
    LEAST_SWEEP,
    PAGE,
    SAMPLE_BITS,
    SWEEP_AT,
    Cache,
    CacheArrays,
)
from minidsms.kernels.join_layout import JoinInput
from minidsms.machine_code import Int64s, Rows, helper, int64, kernel, uint64


@helper(inline=True)
def mixed(h: Any, word: int) -> Any:
    """The hash of a key, with one more word."""
    h = (h ^ uint64(word)) * uint64(0xFF51AFD7ED558CCD)
    return h ^ (h >> uint64(32))


@helper(inline=True)
def bucket_of(h: Any, buckets: int) -> Any:
    """The bucket of so many, a power of two, that a key of this hash asks for first."""
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(32)) & (buckets - 1)


@helper(inline=True)
def note_miss(caches: Rows[Cache], c: int, ghosts: Int64s, h: Any) -> None:
    """The key of this hash was looked up by an insertion, and has no entry."""
    x = h * uint64(0x9E3779B97F4A7C15)
    if x & uint64((1 << SAMPLE_BITS) - 1) == uint64(0):
        at = uint64(c * GHOSTS) + ((x >> uint64(40)) & uint64(GHOSTS - 1))
        if ghosts[at] == int64(x):
            caches[c].regrets += 1
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
        caches[c].pages += 1
        at = CHUNK + page * PAGE
    else:
        caches[c].wanted += 1
    return at


@helper
def take_table_page(store: CacheArrays, c: int, entry: int) -> Any:
    """Give a part of the table its page of empty buckets, where there is one."""
    caches, tables, pool = store.caches, store.tables, store.pool
    if caches[c].table_pages < caches[c].most_table_pages:
        page = take_page(store, c, 0)
        if page >= 0:
            for b in range(page, page + PAGE, caches[c].stride):
                pool[b] = -1
                pool[b + 1] = 0
            caches[c].table_pages += 1
        tables[entry] = page
    else:
        caches[c].wanted += 1


@helper
def take_chunk(store: CacheArrays, c: int) -> Any:
    """The address of an unused chunk; -1 where there is no room."""
    caches, pool = store.caches, store.pool
    if caches[c].free_chunk < 0:
        page = take_page(store, c, 1)
        if page >= 0:
            for at in range(page + PAGE - CHUNK, page - CHUNK, -CHUNK):
                pool[at] = caches[c].free_chunk
                pool[at + 1] = -1
                caches[c].free_chunk = at
    chunk = caches[c].free_chunk
    if chunk >= 0:
        caches[c].free_chunk = pool[chunk]
    return chunk


@helper
def free_chunk(store: CacheArrays, c: int, chunk: int) -> None:
    """Put a chunk on the free list of its cache."""
    caches, pool = store.caches, store.pool
    pool[chunk] = caches[c].free_chunk
    pool[chunk + 1] = -1
    caches[c].free_chunk = chunk


# -------------------------------------------------------------------------------------------------------- entries


@helper
def free_chain(store: CacheArrays, c: int, head: int) -> None:
    """Free the chunks of an entry."""
    pool = store.pool
    while head != 0:
        chunk = head & ~FILL
        head = pool[chunk]
        free_chunk(store, c, chunk)


@helper
def drop(store: CacheArrays, c: int, b: int) -> None:
    """Drop the entry of a bucket."""
    caches, pool = store.caches, store.pool
    free_chain(store, c, pool[b + 1])
    caches[c].entries -= 1
    caches[c].tuples -= pool[b]
    caches[c].evictions += 1
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
        other = tables[entry] + (place ^ caches[c].stride) if caches[c].buckets > 1 else one
        if pool[one] >= 0 and (pool[other] < 0 or caches[c].creates & 1 != 0):
            one, other = other, one
        b = one
    if b >= 0:
        if pool[b] >= 0:
            drop(store, c, b)
        pool[b] = 0
        pool[b + SWEEP_AT] = LEAST_SWEEP
        caches[c].entries += 1
        caches[c].creates += 1
    return b


@helper
def append(store: CacheArrays, c: int, chosen: Int64s, b: int) -> Any:
    """Add the slots chosen of the segment's inputs to an entry; False where there is no room: then the entry goes."""
    caches, members, pool = store.caches, store.members, store.pool
    size = caches[c].size
    at = int64(-1)
    if pool[b] < caches[c].inline:
        at = b + caches[c].inline_at + pool[b] * size
    else:
        head = pool[b + 1]
        if head == 0 or head & FILL == caches[c].per_chunk:
            chunk = take_chunk(store, c)
            if chunk >= 0:
                pool[chunk], pool[chunk + 1] = head, b
            head = chunk
        if head >= 0:
            at = (head & ~FILL) + CHUNK_HEAD + (head & FILL) * size
            pool[b + 1] = head + 1
    if at >= 0:
        for m in range(size):
            pool[at + m] = chosen[members[caches[c].members + m]]
        pool[b] += 1
        caches[c].tuples += 1
    else:
        drop(store, c, b)
    return at >= 0


@helper
def remove(store: CacheArrays, c: int, b: int, at: int) -> None:
    """Take the tuple at an address out of an entry: the newest takes its place."""
    caches, pool = store.caches, store.pool
    size, head = caches[c].size, pool[b + 1]
    first = b + caches[c].inline_at
    newest = first + (pool[b] - 1) * size if head == 0 else (head & ~FILL) + CHUNK_HEAD + ((head & FILL) - 1) * size
    for m in range(size):
        pool[at + m] = pool[newest + m]
    if head & FILL == 1:
        pool[b + 1] = pool[head & ~FILL]
        free_chunk(store, c, head & ~FILL)
    elif head != 0:
        pool[b + 1] = head - 1
    pool[b] -= 1
    caches[c].tuples -= 1


@helper(inline=True)
def tuple_at(caches: Rows[Cache], c: int, b: int, s: int, rest: int) -> Any:
    """Where the next tuple of the entry in bucket b stands: the newest of chunk s, where that is 0 the last of `rest`
    in the bucket.
    """
    if s != 0:
        return (s & ~FILL) + CHUNK_HEAD + ((s & FILL) - 1) * caches[c].size
    return b + caches[c].inline_at + (rest - 1) * caches[c].size


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
    head, rest = pool[b + 1], min(pool[b], caches[c].inline)
    found = int64(-1)
    while found < 0 and (head != 0 or rest > 0):
        at = tuple_at(caches, c, b, head, rest)
        head, rest = tuple_behind(pool, head, rest)
        same = True
        for m in range(caches[c].size):
            same &= pool[at + m] == chosen[members[caches[c].members + m]]
        if same:
            found = at
    return found


@helper
def sweep(store: CacheArrays, c: int, inputs: Rows[JoinInput], b: int) -> None:
    """Take the dead tuples out of an entry: those of which a slot is below `probe_lo` of its input."""
    caches, members, pool = store.caches, store.members, store.pool
    head, rest = pool[b + 1], min(pool[b], caches[c].inline)
    while head != 0 or rest > 0:
        at = tuple_at(caches, c, b, head, rest)
        head, rest = tuple_behind(pool, head, rest)
        lives = True
        for m in range(caches[c].size):
            lives &= pool[at + m] >= inputs[members[caches[c].members + m]].probe_lo
        if not lives:
            remove(store, c, b, at)
            caches[c].swept += 1


@helper(inline=True)
def sweep_when_due(store: CacheArrays, c: int, inputs: Rows[JoinInput], b: int) -> None:
    """Sweep an entry that is about to grow, once there have been as many insertions as it was long."""
    pool = store.pool
    if pool[b] >= pool[b + SWEEP_AT]:
        sweep(store, c, inputs, b)
        pool[b + SWEEP_AT] = max(LEAST_SWEEP, 2 * pool[b])


@kernel
def sweep_page(store: CacheArrays, c: int, inputs: Rows[JoinInput], page: int) -> None:
    """Take the dead tuples out of the entries of a page of buckets, at this address."""
    for b in range(page, page + PAGE, store.caches[c].stride):
        if store.pool[b] > 0:
            sweep(store, c, inputs, b)
