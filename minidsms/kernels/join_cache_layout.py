"""How the caches of an n-way join stand in arrays, as `kernels.cache_lookups` and `kernels.join_caches` see them.

A cache stands for a segment of a pipeline, positions j to k: it maps the key of a tuple that reaches position j to the
tuples of the segment's inputs that join with it, as slots. An entry is a *bucket*, found by the key's hash alone; there
are two for a key, side by side, and where both have others, one is replaced (with one, direct-mapped as the thesis has
it, at four buckets a key every eighth lookup missed what another key had driven out):

    bucket   count | head | sweep at | key .. | witness .. | tuples ..     count < 0: no entry
    chunk    next | bucket | tuples ..                                     16 words; tuples that do not fit the bucket

`head` and `next` are addresses of chunks plus the number of tuples in them (chunks are aligned, so that the low four
bits are free), 0 for none; the newest chunk comes first and is the only one not full. Buckets and chunks stand in
pages of one pool; `tables` say where a cache's pages of buckets are, -1 where it has none: keys there are not cached.

The witness is there where the inputs that reduce the segment, Y, have the pipeline's own input i among them: then the
entry is complete only for as long as there has been a tuple of that key at the lookup without a break, because what
joined with nothing of input i was not inserted. The witness is the latest such tuple: i and its slots.
Babu 2005, sections 5.4.1 and 5.6.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.machine_code import Int64s, Int64Table


class CacheArrays(NamedTuple):
    """The caches of a join (`synopses.join_caches`).

    caches: (m, CACHE_WORDS).  ghosts: hashes of keys that missed.  members: the caches' segments one after the other.
    tables: addresses of pages of buckets.  pool: the pages.  owners: of each page, 2 * cache + kind.  free: how many
    pages nobody has, and which.
    """

    caches: Int64Table
    ghosts: Int64s
    members: Int64s
    tables: Int64s
    pool: Int64s
    owners: Int64s
    free: Int64s


class CachePlan(NamedTuple):
    """Where the pipelines of a join look caches up, and change them.

    lookups: (n * (n - 1), LOOKUP_WORDS), of each step.  parts: (p, PART_WORDS) of keys.  updates: (u, 2) cache, where
    the parts of its key begin.  key: room for one.
    """

    lookups: Int64Table
    parts: Int64Table
    updates: Int64Table
    key: Int64s


class Caching(NamedTuple):
    """What a join with caches has beside its windows and pipelines."""

    plan: CachePlan
    store: CacheArrays


PAGE_BITS = 9
PAGE = 1 << PAGE_BITS
"""Words of a page, a power of two; page p begins at word CHUNK + p * PAGE of the pool, so that no chunk is at 0."""
CHUNK = 16
"""Words of a chunk, a power of two, more than the tuples it can hold."""
CHUNK_HEAD = 2
BUCKET_HEAD = 3
SWEEP_AT = 2
"""Words in front: count, head, and the count at which the next insertion sweeps out what is dead."""
LEAST_SWEEP = 16

(
    SIZE,
    KEY_WORDS,
    WITNESSES,
    MEMBERS,
    TABLE,
    BUCKETS,
    STRIDE,
    INLINE,
    INLINE_AT,
    PER_CHUNK,
    IS_REDUCED,
    EAGER,
    MOST_TABLE_PAGES,
    TABLE_PAGES,
    PAGES,
    FREE_CHUNK,
    PENDING,
) = range(17)
"""Of a cache: inputs of its segment; words of its key and of its witness; where its members and its table begin;
buckets, a power of two; words of a bucket, a power of two; tuples in a bucket, behind how many words, and in a chunk;
whether inserted tuples may be there already; whether deletions are taken out at once; pages its table may have and
has, all pages; the first free chunk, -1 for none; the bucket being filled after a miss, -1 for none."""

(
    PROBES,
    HITS,
    CREATES,
    CREATED,
    INSERTS,
    DELETES,
    SWEPT,
    IGNORED,
    EVICTIONS,
    ENTRIES,
    TUPLES,
    WANTED,
    REGRETS,
    CACHE_WORDS,
) = range(17, 31)
"""Counted of a cache: lookups, those that hit, entries begun after a miss and tuples in them, tuples inserted, deleted
and swept, updates without an entry, entries replaced or dropped, entries and tuples now, pages it did not get, and
sampled misses of keys that have missed before."""

GHOST_BITS, SAMPLE_BITS = 11, 6
GHOSTS = 1 << GHOST_BITS
"""Of each cache the hashes of so many keys that missed last are kept, of one key in 2 to the SAMPLE_BITS: those that
miss again would have hit in a wider table."""

LOOKUP, AFTER, LOOKUP_PARTS, WITNESS, COLLECT, UPDATE, UPDATES_END, IS_SIMPLE, LOOKUP_WORDS = range(9)
"""Of a step: the cache looked up here, -1 for none, the depth after its segment, the parts of
its key, and (among the members) the inputs whose slots are its witness, -1 for none; the cache that this step ends the
segment of, -1 for none; the caches whose segment's changes are complete here; whether there is neither."""

PART_INPUT, PART_KEY, PART_NODES, PART_MASK, PART_WORDS = range(5)
"""Of a part of a key: the input whose slot has it, and the input's key; and where the nodes of that are, which the
kernel writes as it begins."""

FILL = CHUNK - 1
"""Bits of a chunk's address that are free: they say how many tuples it has."""
