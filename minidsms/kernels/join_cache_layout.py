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

from minidsms.machine_code import Int64s, Record, Rows


class Cache(Record):
    """size: inputs of its segment.  key_words, witnesses: words of its key, and of its witness.  members, table: where
    its members and its table begin.  buckets: a power of two.  stride: words of a bucket, a power of two.  inline,
    inline_at, per_chunk: tuples in a bucket, behind how many words, and in a chunk.  is_reduced: inserted tuples may be
    there already.  is_eager: deletions are taken out at once.  most_table_pages, table_pages, pages: pages its table
    may have and has, and all.  free_chunk: the first one, -1 for none.  pending: the bucket being filled after a miss,
    -1 for none.

    Counted: lookups (probes), those that hit, entries begun after a miss (creates) and tuples in them (created), tuples
    inserted, deleted and swept, updates without an entry (ignored), entries replaced or dropped (evictions), entries
    and tuples now, pages it did not get (wanted), and sampled misses of keys that have missed before (regrets).
    """

    size: int
    key_words: int
    witnesses: int
    members: int
    table: int
    buckets: int
    stride: int
    inline: int
    inline_at: int
    per_chunk: int
    is_reduced: int
    is_eager: int
    most_table_pages: int
    table_pages: int
    pages: int
    free_chunk: int
    pending: int
    probes: int
    hits: int
    creates: int
    created: int
    inserts: int
    deletes: int
    swept: int
    ignored: int
    evictions: int
    entries: int
    tuples: int
    wanted: int
    regrets: int


class CacheLookup(Record):
    """Of a step. cache: looked up here, -1 for none.  after: the depth behind its segment.  parts: where those of its
    key begin.  witness: where, among the members, the inputs begin whose slots are its witness, -1 for none.
    collected: the cache that this step ends the segment of, -1 for none.  updates, updates_end: the caches whose
    segments' changes are complete here.  is_simple: there is neither.
    """

    cache: int
    after: int
    parts: int
    witness: int
    collected: int
    updates: int
    updates_end: int
    is_simple: int


class CacheUpdate(Record):
    """Of a cache: where the parts of its key begin."""

    cache: int
    parts: int


class KeyPart(Record):
    """input, key: the input whose slot has it, and the input's key.  nodes, mask: where the nodes of that are, which
    the kernel writes as it begins.
    """

    input: int
    key: int
    nodes: int
    mask: int


class CacheArrays(NamedTuple):
    """The caches of a join (`synopses.join_caches`).

    caches: (m,).  ghosts: hashes of keys that missed.  members: the caches' segments one after the other.  tables:
    addresses of pages of buckets.  pool: the pages.  owners: of each page, 2 * cache + kind.  free: how many pages
    nobody has, and which.
    """

    caches: Rows[Cache]
    ghosts: Int64s
    members: Int64s
    tables: Int64s
    pool: Int64s
    owners: Int64s
    free: Int64s


class CachePlan(NamedTuple):
    """Where the pipelines of a join look caches up, and change them.

    lookups: (n * (n - 1),), of each step.  parts: of keys.  key: room for one.
    """

    lookups: Rows[CacheLookup]
    parts: Rows[KeyPart]
    updates: Rows[CacheUpdate]
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

GHOST_BITS, SAMPLE_BITS = 11, 6
GHOSTS = 1 << GHOST_BITS
"""Of each cache the hashes of so many keys that missed last are kept, of one key in 2 to the SAMPLE_BITS: those that
miss again would have hit in a wider table."""

FILL = CHUNK - 1
"""Bits of a chunk's address that are free: they say how many tuples it has."""
