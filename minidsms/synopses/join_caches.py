"""The caches of an n-way join: associative stores whose values are references to slots of its windows.

A store is named by what it holds: the inputs of its segment, the attributes that are its key, the inputs that reduce
it. Pipelines that need the same store share it. All stores take pages from one pool, which keeps to a budget: a store
that wants a page gets a free one, else one of a store of lower priority, else goes on with what it has. Pages are
moved between slices only, never while tuples are joined. Babu 2005, sections 5.4.1 and 5.6.

Invariants: entries are consistent (see `kernels.cache_lookups`); the pool has no more pages than the budget allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.figures import CacheFigures
from minidsms.joins.plan import SharedKey
from minidsms.kernels import join_caches as kernels
from minidsms.kernels.join_cache_entries import sweep_page
from minidsms.kernels.join_cache_layout import (
    BUCKET_HEAD,
    CHUNK,
    CHUNK_HEAD,
    FILL,
    GHOSTS,
    PAGE,
    SAMPLE_BITS,
    Cache,
    CacheArrays,
)
from minidsms.kernels.join_layout import JoinInput
from minidsms.machine_code import Rows, record_in, rows_of

PAGE_BYTES = 8 * PAGE
_FIRST_BUCKETS = 512
_FIRST_PAGES = 32
_BUCKET_WORDS = 16
"""Of a bucket at least: a key with its first tuples stands in two lines of the processor's cache."""
_LOAD = 3
"""Buckets at most for each row that the windows hold."""
_REGRETTED = 0.02
"""Share of the lookups that miss a key that missed not long ago, at which a table becomes twice as wide, and ..."""
_MUCH_REGRETTED = 0.2
""".. at which it becomes eight times as wide."""
_LEAST_REGRETS = 4
"""Sampled misses that say something."""
_FILLED = 0.6
"""Share of the buckets filled where there are as many as keys, as where memory is scarce."""
_NO_BUDGET = 1 << 40


@dataclass(frozen=True)
class StoreShape:
    """A store's kind. lookups: the pipelines that need a witness, each with the inputs before its segment.
    is_eager: deletions are taken out at once.
    """

    key: SharedKey
    lookups: tuple[tuple[int, ...], ...] = ()
    is_eager: bool = False

    @property
    def witnesses(self) -> int:
        """Words of an entry's witness: a pipeline, and a slot of each input before the segment."""
        return 1 + max(map(len, self.lookups)) if self.lookups else 0


class JoinCaches:
    """budget: bytes of pages, None for no limit.  buckets: of every store, where they are not to grow with it."""

    def __init__(self, budget: int | None = None, buckets: int | None = None) -> None:
        self._rows: Rows[Cache] = rows_of(Cache, 0)
        self._caches: list[Cache] = []
        """The rows, one by one."""
        self.members: Int64Array = np.zeros(0, np.int64)
        self.tables: Int64Array = np.zeros(0, np.int64)
        self.pool: Int64Array = np.zeros(CHUNK, np.int64)
        self.owners: Int64Array = np.zeros(0, np.int64)
        self.free: Int64Array = np.zeros(1, np.int64)
        self._shapes: dict[StoreShape, int] = {}
        self._priorities: Mapping[SharedKey, float] = {}
        self.witnesses_at = 0
        self._fixed = buckets
        self.ghosts: Int64Array = np.zeros(0, np.int64)
        self._judged: list[tuple[int, int]] = []
        self._hand = 0
        self._most_pages = _NO_BUDGET if budget is None else budget // PAGE_BYTES

    def __len__(self) -> int:
        """Entries held."""
        return int(self._rows["entries"].sum())

    @property
    def bundle(self) -> CacheArrays:
        """As the kernels take them; other arrays after a change of size."""
        return CacheArrays(self._rows, self.ghosts, self.members, self.tables, self.pool, self.owners, self.free)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held, pages nobody has among them."""
        arrays = (self._rows, self.members, self.tables, self.pool, self.owners, self.free, self.ghosts)
        return sum(array.nbytes for array in arrays)

    # -------------------------------------------------------------------------------------------------- which stores

    def number(self, shape: StoreShape) -> int:
        """The row of a store in use."""
        return self._shapes[shape]

    def use(self, shapes: Iterable[StoreShape]) -> None:
        """Keep these stores, beginning those that are new empty, and drop all others."""
        wanted = sorted(set(shapes), key=lambda shape: (shape.key, shape.lookups, shape.is_eager))
        for shape in [s for s in self._shapes if s not in wanted]:
            self._release(self._shapes.pop(shape))
        old_caches, old_tables = self._caches, self.tables
        kept = [self._shapes.get(shape) for shape in wanted]
        if kept == list(range(len(old_caches))):
            self._set_members(wanted)
            return
        old_rows, self._rows = self._rows, rows_of(Cache, len(wanted))
        self._caches = [record_in(Cache, self._rows, c) for c in range(len(wanted))]
        old_ghosts, self.ghosts = self.ghosts, np.zeros(len(wanted) * GHOSTS, np.int64)
        self._judged = [(0, 0)] * len(wanted)
        tables = []
        renumbered = {}
        at = 0
        for c, (shape, old) in enumerate(zip(wanted, kept)):
            if old is None:
                self._begin(c, shape)
                tables.append(np.full(self._table_pages(c), -1, np.int64))
            else:
                self._rows[c] = old_rows[old]
                self._judged[c] = self._caches[c].regrets, self._caches[c].probes
                self.ghosts[c * GHOSTS : (c + 1) * GHOSTS] = old_ghosts[old * GHOSTS : (old + 1) * GHOSTS]
                first = old_caches[old].table
                tables.append(old_tables[first : first + self._table_pages(c)])
                renumbered[old] = c
            self._caches[c].table = at
            at += len(tables[-1])
        self.tables = np.concatenate(tables) if tables else np.zeros(0, np.int64)
        used = self.owners >= 0
        old_of = np.full(len(old_caches) + 1, -1, np.int64)
        for old, c in renumbered.items():
            old_of[old] = c
        self.owners[used] = 2 * old_of[self.owners[used] >> 1] + (self.owners[used] & 1)
        self._shapes = {shape: c for c, shape in enumerate(wanted)}
        self._set_members(wanted)
        if not wanted:
            self._empty()
        elif not self.free[0]:
            self._grow(min(_FIRST_PAGES, self._most_pages - len(self.owners)))

    def _empty(self) -> None:
        """A pool without pages."""
        self.pool = np.zeros(CHUNK, np.int64)
        self.owners = np.zeros(0, np.int64)
        self.free = np.zeros(1, np.int64)

    def _begin(self, c: int, shape: StoreShape) -> None:
        row, size = self._caches[c], len(shape.key.inputs)
        words = BUCKET_HEAD + len(shape.key.stored) + shape.witnesses
        row.size, row.key_words, row.witnesses = size, len(shape.key.stored), shape.witnesses
        row.stride = max(_BUCKET_WORDS, 1 << (words + size - 1).bit_length())
        row.inline, row.inline_at = (row.stride - words) // size, words
        row.per_chunk = (CHUNK - CHUNK_HEAD) // size
        row.buckets = self._fixed or _FIRST_BUCKETS
        row.is_reduced, row.is_eager = bool(shape.key.reduced_by), shape.is_eager
        row.free_chunk = row.pending = -1
        row.most_table_pages = self._most_table_pages(row)

    def add_witnesses(self, inputs: Sequence[int]) -> None:
        """Let these inputs stand behind the stores' members, from `witnesses_at` on."""
        self.members = np.array([*self.members[: self.witnesses_at], *inputs], np.int64)

    def _set_members(self, shapes: Iterable[StoreShape]) -> None:
        members: list[int] = []
        for c, shape in enumerate(shapes):
            self._caches[c].members = len(members)
            members += shape.key.inputs
        self.witnesses_at = len(members)
        self.members = np.array(members, np.int64)

    def _table_pages(self, c: int) -> int:
        return _pages_of(self._caches[c].buckets, self._caches[c].stride)

    def _release(self, c: int) -> None:
        """Give back all pages of a store."""
        row = self._caches[c]
        pages = np.flatnonzero(self.owners >> 1 == c)
        count = int(self.free[0])
        self.free[1 + count : 1 + count + len(pages)] = pages
        self.free[0] += len(pages)
        self.owners[pages] = -1
        self.tables[row.table : row.table + self._table_pages(c)] = -1
        row.entries = row.tuples = row.pages = row.table_pages = 0
        row.free_chunk = -1

    def clear(self) -> None:
        """Forget all entries: the windows they refer to are no longer those."""
        for c in range(len(self._caches)):
            self._release(c)

    # ------------------------------------------------------------------------------------------------------- memory

    def allot(self, budget: int | None, priorities: Mapping[SharedKey, float] | None = None) -> None:
        """Keep to a budget from now on, with these priorities: stores of lower ones give way first."""
        self._most_pages = _NO_BUDGET if budget is None else budget // PAGE_BYTES
        if priorities is not None:
            self._priorities = priorities
        self._limit_tables()
        if len(self.owners) > self._most_pages:
            self._shrink()

    def settle(self, inputs: Rows[JoinInput], held: int) -> None:
        """Between slices: stores get pages they asked for, tables that are too narrow grow, and a page of each is freed
        of dead tuples.

        inputs: the windows' figures.  held: rows in them; a table has room for as many keys, not for all there ever
        were.
        """
        if self._rows["wanted"].any():
            self._limit_tables()
            for c in sorted(range(len(self._caches)), key=self._priority, reverse=True):
                if self._caches[c].wanted:
                    self._obtain(c, self._caches[c].wanted)
                    self._caches[c].wanted = 0
                    # What the table has beyond its share is for tuples.
                    while self._caches[c].table_pages > self._caches[c].most_table_pages:
                        self._take_from(c)
        for c, row in enumerate(self._caches):
            if self._fixed is None:
                self._fit(c, held)
            pages = self._table_pages(c)
            page = self.tables[row.table + self._hand % pages]
            if page >= 0:
                sweep_page(self.bundle, c, inputs, page)
        self._hand += 1

    def _fit(self, c: int, held: int) -> None:
        """Widen a table where keys miss that would have hit in a wider one. A narrow one is near the processor."""
        row = self._caches[c]
        regrets, probes = row.regrets - self._judged[c][0], row.probes - self._judged[c][1]
        wide = _FIRST_BUCKETS
        if regrets >= _LEAST_REGRETS:
            self._judged[c] = row.regrets, row.probes
            share = (regrets << SAMPLE_BITS) / probes
            times = 8 if share >= _MUCH_REGRETTED else 2 if share >= _REGRETTED else 1
            wide = max(wide, min(times * row.buckets, 1 << (_LOAD * held - 1).bit_length()))
        if wide > row.buckets:
            self._limit_tables()
            wide = min(wide, _buckets_in(row))
        if wide > row.buckets:
            self._widen(c, wide)

    def _priority(self, c: int) -> float:
        key = next(shape.key for shape, number in self._shapes.items() if number == c)
        return self._priorities.get(key, 0.0)

    def _obtain(self, c: int, pages: int) -> None:
        """Free pages: the pool grows; where it may not, stores of lower priority lose theirs."""
        missing = pages - int(self.free[0])
        # What was not got was asked for again and again: twice the pool is enough until the next slice.
        grown = min(
            max(missing, _FIRST_PAGES), max(len(self.owners), _FIRST_PAGES), self._most_pages - len(self.owners)
        )
        if missing > 0 and grown > 0:
            self._grow(grown)
        rank = self._priority(c)
        for other in sorted(range(len(self._caches)), key=self._priority):
            while self.free[0] < pages and self._priority(other) < rank and self._caches[other].pages:
                self._take_from(other)

    def _take_from(self, c: int) -> None:
        """Take a page from a store: of its table where that has more than its share, else of its chunks."""
        row = self._caches[c]
        kinds = (1, 0) if row.table_pages <= row.most_table_pages else (0, 1)
        for kind in kinds:
            pages = np.flatnonzero(self.owners == 2 * c + kind)
            if len(pages):
                kernels.release_page(self.bundle, c, pages[-1])
                return

    def _grow(self, pages: int) -> None:
        """Add free pages to the pool."""
        old = len(self.owners)
        pool = np.empty(CHUNK + (old + pages) * PAGE, np.int64)
        pool[: len(self.pool)] = self.pool
        self.pool = pool
        self.owners = np.concatenate([self.owners, np.full(pages, -1, np.int64)])
        free = np.zeros(1 + old + pages, np.int64)
        count = int(self.free[0])
        free[1 : 1 + count] = self.free[1 : 1 + count]
        # The lowest numbers are taken first.
        free[1 + count : 1 + count + pages] = np.arange(old + pages - 1, old - 1, -1)
        free[0] = count + pages
        self.free = free

    def _shrink(self) -> None:
        """A smaller pool; stores of high priority move into it first."""
        old_pool, old_tables = self.pool, self.tables
        old = [old_tables[r.table : r.table + self._table_pages(c)] for c, r in enumerate(self._caches)]
        buckets = [min(row.buckets, _buckets_in(row)) for row in self._caches]
        pages = [_pages_of(size, row.stride) for size, row in zip(buckets, self._caches)]
        first = np.cumsum([0, *pages])
        self.tables = np.full(first[-1], -1, np.int64)
        self._empty()
        self._grow(self._most_pages)
        for c in sorted(range(len(self._caches)), key=self._priority, reverse=True):
            self._caches[c].table, self._caches[c].buckets = first[c], buckets[c]
            kernels.transfer(self.bundle, c, old[c], old_pool)

    def _widen(self, c: int, buckets: int) -> None:
        """Give a store a table of more buckets."""
        row, pages = self._caches[c], self._table_pages(c)
        first = row.table
        old = self.tables[first : first + pages].copy()
        new = np.full(_pages_of(buckets, row.stride), -1, np.int64)
        self.tables = np.concatenate([self.tables[:first], new, self.tables[first + pages :]])
        tables = self._rows["table"]
        tables[tables > first] += len(new) - pages
        self._obtain(c, pages)
        row.buckets = buckets
        kernels.rehash(self.bundle, c, old, np.empty(PAGE, np.int64))

    def _limit_tables(self) -> None:
        for row in self._caches:
            row.most_table_pages = self._most_table_pages(row)

    def _most_table_pages(self, row: Cache) -> int:
        """Where memory is scarce, a table leaves room for the chunks of its entries."""
        if self._most_pages == _NO_BUDGET:
            return _NO_BUDGET
        mean = max(row.created / row.creates if row.creates else 0.0, row.tuples / row.entries if row.entries else 0.0)
        chunks = ceil(max(0.0, mean + 1 - row.inline) / row.per_chunk)
        entries = _FILLED * (PAGE // row.stride)
        return max(1, int(self._most_pages / len(self._caches) / (1 + entries * chunks / (PAGE // CHUNK))))

    # ------------------------------------------------------------------------------------------------------ what is

    def figures(self, shape: StoreShape) -> CacheFigures:
        """What has been counted of a store."""
        row = self._caches[self._shapes[shape]]
        return CacheFigures(
            probes=row.probes,
            hits=row.hits,
            misses=row.probes - row.hits,
            creates=row.creates,
            created_rows=row.created,
            inserts=row.inserts,
            deletes=row.deletes + row.swept,
            ignored=row.ignored,
            evictions=row.evictions,
            entries=row.entries,
            rows=row.tuples,
            bytes=row.pages * PAGE_BYTES,
        )

    def entries(self, shape: StoreShape) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        """Every entry of a store: its key, and the slots of its tuples in the order of the store's inputs."""
        row = self._caches[self._shapes[shape]]
        first, size, words = row.table, row.size, row.key_words
        result = {}
        for page in self.tables[first : first + self._table_pages(self._shapes[shape])].tolist():
            for b in range(page, page + PAGE, row.stride) if page >= 0 else ():
                count, head = self.pool[b : b + 2].tolist()
                if count < 0:
                    continue
                begin = b + row.inline_at
                at = [begin + k * size for k in range(min(count, row.inline))]
                while head:
                    chunk = head & ~FILL
                    at += [chunk + CHUNK_HEAD + k * size for k in range(head & FILL)]
                    head = int(self.pool[chunk])
                assert len(at) == count, "an entry has as many tuples as it counts"
                key = tuple(self.pool[b + BUCKET_HEAD : b + BUCKET_HEAD + words].tolist())
                assert key not in result, "a key has one entry"
                result[key] = [tuple(self.pool[a : a + size].tolist()) for a in at]
        return result

    def live_codes(self) -> Iterable[Int64Array]:
        """None: a key whose text nobody else holds has no live tuple, and means what its word means next."""
        return ()

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Nothing: what a cache holds can be computed again from the windows."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Begin empty: the windows number their slots afresh."""
        self.clear()


def _pages_of(buckets: int, stride: int) -> int:
    return max(1, buckets * stride // PAGE)


def _buckets_in(row: Cache) -> int:
    """Buckets, a power of two, of which the pages that a store's table may have hold most."""
    most = row.most_table_pages * (PAGE // row.stride)
    return 1 << most.bit_length() - 1
