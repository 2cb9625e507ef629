"""What is done to the caches of an n-way join between slices: pages taken away, tables grown, pools made smaller.

See `kernels.join_cache_layout`. Invariant: every chunk of a cache is either on its free list or in the chain of the
bucket that it names; a page has one owner or none.
"""

from __future__ import annotations

from minidsms.kernels.join_cache_layout import (
    BUCKET_HEAD,
    BUCKETS,
    CHUNK,
    ENTRIES,
    EVICTIONS,
    FILL,
    FREE_CHUNK,
    KEY_WORDS,
    LOOKUP,
    MOST_TABLE_PAGES,
    PAGE,
    PAGE_BITS,
    PAGES,
    PART_INPUT,
    PART_MASK,
    PART_NODES,
    PART_WORDS,
    PLACED_WORDS,
    SOURCE,
    SOURCE_MASK,
    SOURCE_NODES,
    STEP_CHECK,
    STEP_CHECKS_END,
    STEP_HASHED,
    STEP_TARGET,
    STRIDE,
    TABLE,
    TABLE_PAGES,
    TARGET_HEADS,
    TARGET_MASK,
    TARGET_NODES,
    TARGET_SHIFT,
    TUPLES,
)
from minidsms.kernels.join_layout import (
    CHECK,
    CHECKS_END,
    FROM,
    FROM_KEY,
    HASHED,
    HEADS,
    MASK,
    NODES,
    PROBED,
    SHIFT,
    TARGET,
)
from minidsms.machine_code import helper, int64, kernel, uint64


@kernel("void(int64[:, :, ::1], int64[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1])")
def place(steps, lookups, key_parts, inputs, keys, placed, parts):  # type: ignore[no-untyped-def]
    """Write the steps, and the parts of the caches' keys, with the places of their nodes and heads, which hold until
    the index is laid out anew.

    steps: (n, n - 1, STEP_WORDS).  lookups: (n, n - 1, PLACED_WORDS - LOOKUP).  key_parts: (m, 2), input and key.
    """
    n = len(inputs)
    for i in range(n):
        for d in range(n - 1):
            step, at = steps[i, d], (i * (n - 1) + d) * PLACED_WORDS
            x, y = step[PROBED], step[FROM_KEY]
            placed[at + STEP_TARGET], placed[at + SOURCE] = step[TARGET], step[FROM]
            placed[at + TARGET_NODES], placed[at + TARGET_MASK] = keys[x, NODES], inputs[step[TARGET], MASK]
            placed[at + TARGET_HEADS], placed[at + TARGET_SHIFT] = keys[x, HEADS], keys[x, SHIFT]
            placed[at + SOURCE_NODES], placed[at + SOURCE_MASK] = keys[y, NODES], inputs[step[FROM], MASK]
            placed[at + STEP_CHECK], placed[at + STEP_CHECKS_END] = step[CHECK], step[CHECKS_END]
            placed[at + STEP_HASHED] = step[HASHED]
            for w in range(PLACED_WORDS - LOOKUP):
                placed[at + LOOKUP + w] = lookups[i, d, w]
    for m in range(len(key_parts)):
        at = m * PART_WORDS
        parts[at + PART_INPUT] = key_parts[m, 0]
        parts[at + PART_NODES] = keys[key_parts[m, 1], NODES]
        parts[at + PART_MASK] = inputs[key_parts[m, 0], MASK]


@helper
def _free_chain(caches, c, pool, head):  # type: ignore[no-untyped-def]
    while head != 0:
        chunk = head & ~FILL
        head = pool[chunk]
        pool[chunk], pool[chunk + 1] = caches[c, FREE_CHUNK], -1
        caches[c, FREE_CHUNK] = chunk


@helper
def _drop(caches, c, pool, b):  # type: ignore[no-untyped-def]
    """Drop the entry of a bucket."""
    _free_chain(caches, c, pool, pool[b + 1])
    caches[c, ENTRIES] -= 1
    caches[c, TUPLES] -= pool[b]
    caches[c, EVICTIONS] += 1
    pool[b] = -1
    pool[b + 1] = 0


@helper
def _give_back(caches, c, owners, free, page):  # type: ignore[no-untyped-def]
    free[0] += 1
    free[free[0]] = page
    owners[page] = -1
    caches[c, PAGES] -= 1


@kernel("void(int64[:, ::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int64)")
def release_page(caches, c, tables, pool, owners, free, page):  # type: ignore[no-untyped-def]
    """Take a page from cache c, with the entries in it. O(buckets of a page, or free chunks of the cache)."""
    at = CHUNK + page * PAGE
    if owners[page] & 1 == 0:
        for b in range(at, at + PAGE, caches[c, STRIDE]):
            if pool[b] >= 0:
                _drop(caches, c, pool, b)
        entry = caches[c, TABLE]
        while tables[entry] != at:
            entry += 1
        tables[entry] = -1
        caches[c, TABLE_PAGES] -= 1
    else:
        for chunk in range(at, at + PAGE, CHUNK):
            if pool[chunk + 1] >= 0:
                _drop(caches, c, pool, pool[chunk + 1])
        # Its chunks are all free now, and leave the list.
        kept, last = int64(-1), int64(-1)
        chunk = caches[c, FREE_CHUNK]
        while chunk >= 0:
            following = pool[chunk]
            if chunk < at or chunk >= at + PAGE:
                if last < 0:
                    kept = chunk
                else:
                    pool[last] = chunk
                last = chunk
            chunk = following
        if last >= 0:
            pool[last] = -1
        caches[c, FREE_CHUNK] = kept
    _give_back(caches, c, owners, free, page)


@helper
def _number(caches, c, pool, b, buckets):  # type: ignore[no-untyped-def]
    """The bucket, of so many, that the key of an entry asks for; as `kernels.cached_mjoin` has it."""
    h = uint64(0)
    for w in range(caches[c, KEY_WORDS]):
        h = (h ^ uint64(pool[b + BUCKET_HEAD + w])) * uint64(0xFF51AFD7ED558CCD)
        h ^= h >> uint64(32)
    h *= uint64(0x9E3779B97F4A7C15)
    return int64(h >> uint64(32)) & (buckets - 1)


@helper
def _bucket_at(caches, c, tables, table, number, buckets, pool, owners, free):  # type: ignore[no-untyped-def]
    """The address of a free bucket of two in a table, whose page is taken if it has none; -1 where there is none."""
    at = number * caches[c, STRIDE]
    entry = table + (at >> PAGE_BITS)
    if tables[entry] < 0 and free[0] > 0 and caches[c, TABLE_PAGES] < caches[c, MOST_TABLE_PAGES]:
        page = free[free[0]]
        free[0] -= 1
        owners[page] = 2 * c
        caches[c, PAGES] += 1
        caches[c, TABLE_PAGES] += 1
        tables[entry] = CHUNK + page * PAGE
        for b in range(tables[entry], tables[entry] + PAGE, caches[c, STRIDE]):
            pool[b] = -1
            pool[b + 1] = 0
    at &= PAGE - 1
    if tables[entry] >= 0 and pool[tables[entry] + at] >= 0 and buckets > 1:
        at ^= caches[c, STRIDE]
    return tables[entry] + at if tables[entry] >= 0 and pool[tables[entry] + at] < 0 else int64(-1)


@kernel(
    "void(int64[:, ::1], int64, int64[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64[::1], int64[::1])"
)
def rehash(caches, c, old, tables, table, buckets, pool, owners, free, page):  # type: ignore[no-untyped-def]
    """Move the entries of cache c from its table `old` to an empty one of so many buckets at `table` in `tables`; where
    too many want a bucket, or there is no page, one goes. Chunks stay where they are.  page: (PAGE,), for the time
    being.
    """
    stride = caches[c, STRIDE]
    for entry in range(len(old)):
        if old[entry] < 0:
            continue
        # Copied, so that its page is free for the new table at once.
        for w in range(PAGE):
            page[w] = pool[old[entry] + w]
        caches[c, TABLE_PAGES] -= 1
        _give_back(caches, c, owners, free, (old[entry] - CHUNK) >> PAGE_BITS)
        for b in range(0, PAGE, stride):
            if page[b] < 0:
                continue
            number = _number(caches, c, page, b, buckets)
            at = _bucket_at(caches, c, tables, table, number, buckets, pool, owners, free)
            if at >= 0:
                for w in range(stride):
                    pool[at + w] = page[b + w]
                head = pool[at + 1]
                while head != 0:
                    pool[(head & ~FILL) + 1] = at
                    head = pool[head & ~FILL]
            else:
                _free_chain(caches, c, pool, page[b + 1])
                caches[c, ENTRIES] -= 1
                caches[c, TUPLES] -= page[b]
                caches[c, EVICTIONS] += 1
    caches[c, TABLE] = table
    caches[c, BUCKETS] = buckets


@helper
def _new_chunk(caches, c, pool, owners, free):  # type: ignore[no-untyped-def]
    """The address of an unused chunk; -1 where there is no room."""
    if caches[c, FREE_CHUNK] < 0 and free[0] > 0:
        page = free[free[0]]
        free[0] -= 1
        owners[page] = 2 * c + 1
        caches[c, PAGES] += 1
        first = CHUNK + page * PAGE
        for at in range(first + PAGE - CHUNK, first - CHUNK, -CHUNK):
            pool[at], pool[at + 1] = caches[c, FREE_CHUNK], -1
            caches[c, FREE_CHUNK] = at
    chunk = caches[c, FREE_CHUNK]
    if chunk >= 0:
        caches[c, FREE_CHUNK] = pool[chunk]
    return chunk


@kernel(
    "void(int64[:, ::1], int64, int64[::1], int64[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64[::1])"
)
def transfer(caches, c, old, old_pool, tables, table, buckets, pool, owners, free):  # type: ignore[no-untyped-def]
    """As `rehash`, into another pool, with the chunks, as far as it has room."""
    stride, entries = caches[c, STRIDE], caches[c, ENTRIES]
    caches[c, FREE_CHUNK] = -1
    caches[c, PAGES] = caches[c, TABLE_PAGES] = caches[c, ENTRIES] = caches[c, TUPLES] = 0
    for entry in range(len(old)):
        for b in range(old[entry], old[entry] + PAGE if old[entry] >= 0 else old[entry], stride):
            if old_pool[b] < 0:
                continue
            number = _number(caches, c, old_pool, b, buckets)
            at = _bucket_at(caches, c, tables, table, number, buckets, pool, owners, free)
            if at < 0:
                continue
            for w in range(stride):
                pool[at + w] = old_pool[b + w]
            # The chain is copied from its newest chunk on; each copy is hung to the one before.
            head, link = old_pool[b + 1], at + 1
            pool[link] = 0
            fits = True
            while head != 0 and fits:
                chunk = _new_chunk(caches, c, pool, owners, free)
                fits = chunk >= 0
                if fits:
                    for w in range(CHUNK):
                        pool[chunk + w] = old_pool[(head & ~FILL) + w]
                    pool[link] = chunk | (head & FILL)
                    link, head = chunk, pool[chunk]
                    pool[chunk], pool[chunk + 1] = 0, at
            caches[c, ENTRIES] += 1
            caches[c, TUPLES] += pool[at]
            if not fits:
                _drop(caches, c, pool, at)
                caches[c, EVICTIONS] -= 1
    caches[c, EVICTIONS] += entries - caches[c, ENTRIES]
    caches[c, TABLE] = table
    caches[c, BUCKETS] = buckets
