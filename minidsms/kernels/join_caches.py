"""What is done to the caches of an n-way join between slices: pages taken away, tables grown, pools made smaller.

See `kernels.join_cache_layout`. Invariant: every chunk of a cache is either on its free list or in the chain of the
bucket that it names; a page has one owner or none.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_cache_entries import bucket_of, drop, free_chain, mixed, take_chunk, take_table_page
from minidsms.kernels.join_cache_layout import (
    BUCKET_HEAD,
    CHUNK,
    FILL,
    PAGE,
    PAGE_BITS,
    CacheArrays,
)
from minidsms.machine_code import Int64s, helper, int64, kernel, uint64


@helper
def _give_back(store: CacheArrays, c: int, page: int) -> None:
    """A page has no owner any more."""
    free = store.free
    free[0] += 1
    free[free[0]] = page
    store.owners[page] = -1
    store.caches[c].pages -= 1


@kernel
def release_page(store: CacheArrays, c: int, page: int) -> None:
    """Take a page from cache c, with the entries in it. O(buckets of a page, or free chunks of the cache)."""
    caches, tables, pool = store.caches, store.tables, store.pool
    at = CHUNK + page * PAGE
    if store.owners[page] & 1 == 0:
        for b in range(at, at + PAGE, caches[c].stride):
            if pool[b] >= 0:
                drop(store, c, b)
        entry = caches[c].table
        while tables[entry] != at:
            entry += 1
        tables[entry] = -1
        caches[c].table_pages -= 1
    else:
        for chunk in range(at, at + PAGE, CHUNK):
            if pool[chunk + 1] >= 0:
                drop(store, c, pool[chunk + 1])
        # Its chunks are all free now, and leave the list.
        kept, last = int64(-1), int64(-1)
        chunk = caches[c].free_chunk
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
        caches[c].free_chunk = kept
    _give_back(store, c, page)


@helper
def _bucket_for(store: CacheArrays, c: int, words: Int64s, b: int) -> Any:
    """The address of a free bucket, of the two that the key of the entry at words[b] asks for; -1 where there is none.

    Their page is taken if they have none.
    """
    caches, tables, pool = store.caches, store.tables, store.pool
    h = uint64(0)
    for w in range(caches[c].key_words):
        h = mixed(h, words[b + BUCKET_HEAD + w])
    place = bucket_of(h, caches[c].buckets) * caches[c].stride
    entry, at = caches[c].table + (place >> PAGE_BITS), int64(-1)
    if tables[entry] < 0:
        take_table_page(store, c, entry)
    if tables[entry] >= 0:
        at = tables[entry] + (place & (PAGE - 1))
        if pool[at] >= 0 and caches[c].buckets > 1:
            at = tables[entry] + ((place & (PAGE - 1)) ^ caches[c].stride)
        if pool[at] >= 0:
            at = int64(-1)
    return at


@kernel
def rehash(store: CacheArrays, c: int, old: Int64s, page: Int64s) -> None:
    """Move the entries of cache c from its old table to the one that it has now, which is empty; where too many want a
    bucket, or there is no page, one goes. Chunks stay where they are.  page: (PAGE,), for the time being.
    """
    caches, pool = store.caches, store.pool
    stride, wanted = caches[c].stride, caches[c].wanted
    for entry in range(len(old)):
        if old[entry] < 0:
            continue
        # Copied, so that its page is free for the new table at once.
        for w in range(PAGE):
            page[w] = pool[old[entry] + w]
        caches[c].table_pages -= 1
        _give_back(store, c, (old[entry] - CHUNK) >> PAGE_BITS)
        for b in range(0, PAGE, stride):
            if page[b] < 0:
                continue
            at = _bucket_for(store, c, page, b)
            if at >= 0:
                for w in range(stride):
                    pool[at + w] = page[b + w]
                head = pool[at + 1]
                while head != 0:
                    pool[(head & ~FILL) + 1] = at
                    head = pool[head & ~FILL]
            else:
                free_chain(store, c, page[b + 1])
                caches[c].entries -= 1
                caches[c].tuples -= page[b]
                caches[c].evictions += 1
    caches[c].wanted = wanted


@kernel
def transfer(store: CacheArrays, c: int, old: Int64s, old_pool: Int64s) -> None:
    """As `rehash`, from another pool, with the chunks, as far as there is room."""
    caches, pool = store.caches, store.pool
    stride, entries, wanted = caches[c].stride, caches[c].entries, caches[c].wanted
    caches[c].free_chunk = -1
    caches[c].pages = caches[c].table_pages = caches[c].entries = caches[c].tuples = 0
    for entry in range(len(old)):
        for b in range(old[entry], old[entry] + PAGE if old[entry] >= 0 else old[entry], stride):
            if old_pool[b] < 0:
                continue
            at = _bucket_for(store, c, old_pool, b)
            if at < 0:
                continue
            for w in range(stride):
                pool[at + w] = old_pool[b + w]
            # The chain is copied from its newest chunk on; each copy is hung to the one before.
            head, link = old_pool[b + 1], at + 1
            pool[link] = 0
            fits = True
            while head != 0 and fits:
                chunk = take_chunk(store, c)
                fits = chunk >= 0
                if fits:
                    for w in range(CHUNK):
                        pool[chunk + w] = old_pool[(head & ~FILL) + w]
                    pool[link] = chunk | (head & FILL)
                    link, head = chunk, pool[chunk]
                    pool[chunk], pool[chunk + 1] = 0, at
            caches[c].entries += 1
            caches[c].tuples += pool[at]
            if not fits:
                drop(store, c, at)
                caches[c].evictions -= 1
    caches[c].evictions += entries - caches[c].entries
    caches[c].wanted = wanted
