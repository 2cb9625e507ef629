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
    BUCKETS,
    CACHE_WORDS,
    CHUNK,
    CHUNK_HEAD,
    CREATED,
    CREATES,
    DELETES,
    EAGER,
    ENTRIES,
    EVICTIONS,
    FILL,
    FREE_CHUNK,
    GHOSTS,
    HITS,
    IGNORED,
    INLINE,
    INLINE_AT,
    INSERTS,
    IS_REDUCED,
    KEY_WORDS,
    MEMBERS,
    MOST_TABLE_PAGES,
    PAGE,
    PAGES,
    PENDING,
    PER_CHUNK,
    PROBES,
    REGRETS,
    SAMPLE_BITS,
    SIZE,
    STRIDE,
    SWEPT,
    TABLE,
    TABLE_PAGES,
    TUPLES,
    WANTED,
    WITNESSES,
    CacheArrays,
)
from minidsms.kernels.join_layout import JoinInput
from minidsms.machine_code import Rows

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
        self.rows: Int64Array = np.zeros((0, CACHE_WORDS), np.int64)
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
        self._judged: Int64Array = np.zeros((0, 2), np.int64)
        self._hand = 0
        self._most_pages = _NO_BUDGET if budget is None else budget // PAGE_BYTES

    def __len__(self) -> int:
        """Entries held."""
        return int(self.rows[:, ENTRIES].sum())

    @property
    def bundle(self) -> CacheArrays:
        """As the kernels take them; other arrays after a change of size."""
        return CacheArrays(self.rows, self.ghosts, self.members, self.tables, self.pool, self.owners, self.free)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held, pages nobody has among them."""
        arrays = (self.rows, self.members, self.tables, self.pool, self.owners, self.free, self.ghosts, self._judged)
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
        old_rows, old_tables = self.rows, self.tables
        kept = [self._shapes.get(shape) for shape in wanted]
        if kept == list(range(len(old_rows))):
            self._set_members(wanted)
            return
        self.rows = np.zeros((len(wanted), CACHE_WORDS), np.int64)
        old_ghosts, self.ghosts = self.ghosts, np.zeros(len(wanted) * GHOSTS, np.int64)
        self._judged = np.zeros((len(wanted), 2), np.int64)
        tables = []
        renumbered = {}
        at = 0
        for c, (shape, old) in enumerate(zip(wanted, kept)):
            if old is None:
                self._begin(c, shape)
                tables.append(np.full(self._table_pages(c), -1, np.int64))
            else:
                self.rows[c] = old_rows[old]
                self._judged[c] = self.rows[c, [REGRETS, PROBES]]
                self.ghosts[c * GHOSTS : (c + 1) * GHOSTS] = old_ghosts[old * GHOSTS : (old + 1) * GHOSTS]
                first = int(old_rows[old, TABLE])
                tables.append(old_tables[first : first + self._table_pages(c)])
                renumbered[old] = c
            self.rows[c, TABLE] = at
            at += len(tables[-1])
        self.tables = np.concatenate(tables) if tables else np.zeros(0, np.int64)
        used = self.owners >= 0
        old_of = np.full(len(old_rows) + 1, -1, np.int64)
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
        row, size = self.rows[c], len(shape.key.inputs)
        words = BUCKET_HEAD + len(shape.key.stored) + shape.witnesses
        row[SIZE], row[KEY_WORDS], row[WITNESSES] = size, len(shape.key.stored), shape.witnesses
        row[STRIDE] = max(_BUCKET_WORDS, 1 << (words + size - 1).bit_length())
        row[INLINE], row[INLINE_AT] = (row[STRIDE] - words) // size, words
        row[PER_CHUNK] = (CHUNK - CHUNK_HEAD) // size
        row[BUCKETS] = self._fixed or _FIRST_BUCKETS
        row[IS_REDUCED], row[EAGER] = bool(shape.key.reduced_by), shape.is_eager
        row[FREE_CHUNK] = row[PENDING] = -1
        row[MOST_TABLE_PAGES] = self._most_table_pages(row)

    def add_witnesses(self, inputs: Sequence[int]) -> None:
        """Let these inputs stand behind the stores' members, from `witnesses_at` on."""
        self.members = np.array([*self.members[: self.witnesses_at], *inputs], np.int64)

    def _set_members(self, shapes: Iterable[StoreShape]) -> None:
        members: list[int] = []
        for c, shape in enumerate(shapes):
            self.rows[c, MEMBERS] = len(members)
            members += shape.key.inputs
        self.witnesses_at = len(members)
        self.members = np.array(members, np.int64)

    def _table_pages(self, c: int) -> int:
        return _pages_of(int(self.rows[c, BUCKETS]), int(self.rows[c, STRIDE]))

    def _release(self, c: int) -> None:
        """Give back all pages of a store."""
        row = self.rows[c]
        pages = np.flatnonzero(self.owners >> 1 == c)
        count = int(self.free[0])
        self.free[1 + count : 1 + count + len(pages)] = pages
        self.free[0] += len(pages)
        self.owners[pages] = -1
        self.tables[row[TABLE] : row[TABLE] + self._table_pages(c)] = -1
        row[[ENTRIES, TUPLES, PAGES, TABLE_PAGES]] = 0
        row[FREE_CHUNK] = -1

    def clear(self) -> None:
        """Forget all entries: the windows they refer to are no longer those."""
        for c in range(len(self.rows)):
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
        rows = self.rows
        if rows[:, WANTED].any():
            self._limit_tables()
            for c in sorted(range(len(rows)), key=self._priority, reverse=True):
                if rows[c, WANTED]:
                    self._obtain(c, int(rows[c, WANTED]))
                    rows[c, WANTED] = 0
                    # What the table has beyond its share is for tuples.
                    while rows[c, TABLE_PAGES] > rows[c, MOST_TABLE_PAGES]:
                        self._take_from(c)
        for c, row in enumerate(rows):
            if self._fixed is None:
                self._fit(c, held)
            pages = self._table_pages(c)
            page = self.tables[row[TABLE] + self._hand % pages]
            if page >= 0:
                sweep_page(rows, c, self.members, inputs, self.pool, page)
        self._hand += 1

    def _fit(self, c: int, held: int) -> None:
        """Widen a table where keys miss that would have hit in a wider one. A narrow one is near the processor."""
        row = self.rows[c]
        regrets, probes = (row[[REGRETS, PROBES]] - self._judged[c]).tolist()
        wide = _FIRST_BUCKETS
        if regrets >= _LEAST_REGRETS:
            self._judged[c] = row[[REGRETS, PROBES]]
            share = (regrets << SAMPLE_BITS) / probes
            times = 8 if share >= _MUCH_REGRETTED else 2 if share >= _REGRETTED else 1
            wide = max(wide, min(times * int(row[BUCKETS]), 1 << (_LOAD * held - 1).bit_length()))
        if wide > row[BUCKETS]:
            self._limit_tables()
            wide = min(wide, _buckets_in(row))
        if wide > row[BUCKETS]:
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
        for other in sorted(range(len(self.rows)), key=self._priority):
            while self.free[0] < pages and self._priority(other) < rank and self.rows[other, PAGES]:
                self._take_from(other)

    def _take_from(self, c: int) -> None:
        """Take a page from a store: of its table where that has more than its share, else of its chunks."""
        row = self.rows[c]
        kinds = (1, 0) if row[TABLE_PAGES] <= row[MOST_TABLE_PAGES] else (0, 1)
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
        old_pool, old_tables, rows = self.pool, self.tables, self.rows
        old = [old_tables[r[TABLE] : r[TABLE] + self._table_pages(c)] for c, r in enumerate(rows)]
        buckets = [min(int(row[BUCKETS]), _buckets_in(row)) for row in rows]
        pages = [_pages_of(size, int(row[STRIDE])) for size, row in zip(buckets, rows)]
        first = np.cumsum([0, *pages])
        self.tables = np.full(first[-1], -1, np.int64)
        self._empty()
        self._grow(self._most_pages)
        for c in sorted(range(len(rows)), key=self._priority, reverse=True):
            rows[c, TABLE], rows[c, BUCKETS] = first[c], buckets[c]
            kernels.transfer(self.bundle, c, old[c], old_pool)

    def _widen(self, c: int, buckets: int) -> None:
        """Give a store a table of more buckets."""
        row, pages = self.rows[c], self._table_pages(c)
        first = int(row[TABLE])
        old = self.tables[first : first + pages].copy()
        new = np.full(_pages_of(buckets, int(row[STRIDE])), -1, np.int64)
        self.tables = np.concatenate([self.tables[:first], new, self.tables[first + pages :]])
        self.rows[self.rows[:, TABLE] > first, TABLE] += len(new) - pages
        self._obtain(c, pages)
        row[BUCKETS] = buckets
        kernels.rehash(self.bundle, c, old, np.empty(PAGE, np.int64))

    def _limit_tables(self) -> None:
        for row in self.rows:
            row[MOST_TABLE_PAGES] = self._most_table_pages(row)

    def _most_table_pages(self, row: Int64Array) -> int:
        """Where memory is scarce, a table leaves room for the chunks of its entries."""
        if self._most_pages == _NO_BUDGET:
            return _NO_BUDGET
        mean = max(
            row[CREATED] / row[CREATES] if row[CREATES] else 0.0, row[TUPLES] / row[ENTRIES] if row[ENTRIES] else 0.0
        )
        chunks = ceil(max(0.0, mean + 1 - row[INLINE]) / row[PER_CHUNK])
        entries = _FILLED * (PAGE // row[STRIDE])
        return max(1, int(self._most_pages / len(self.rows) / (1 + entries * chunks / (PAGE // CHUNK))))

    # ------------------------------------------------------------------------------------------------------ what is

    def figures(self, shape: StoreShape) -> CacheFigures:
        """What has been counted of a store."""
        row = self.rows[self._shapes[shape]].tolist()
        return CacheFigures(
            probes=row[PROBES],
            hits=row[HITS],
            misses=row[PROBES] - row[HITS],
            creates=row[CREATES],
            created_rows=row[CREATED],
            inserts=row[INSERTS],
            deletes=row[DELETES] + row[SWEPT],
            ignored=row[IGNORED],
            evictions=row[EVICTIONS],
            entries=row[ENTRIES],
            rows=row[TUPLES],
            bytes=row[PAGES] * PAGE_BYTES,
        )

    def entries(self, shape: StoreShape) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        """Every entry of a store: its key, and the slots of its tuples in the order of the store's inputs."""
        row = self.rows[self._shapes[shape]].tolist()
        first, size, words = row[TABLE], row[SIZE], row[KEY_WORDS]
        result = {}
        for page in self.tables[first : first + self._table_pages(self._shapes[shape])].tolist():
            for b in range(page, page + PAGE, row[STRIDE]) if page >= 0 else ():
                count, head = self.pool[b : b + 2].tolist()
                if count < 0:
                    continue
                begin = b + row[INLINE_AT]
                at = [begin + k * size for k in range(min(count, row[INLINE]))]
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


def _buckets_in(row: Int64Array) -> int:
    """Buckets, a power of two, of which the pages that a store's table may have hold most."""
    most = int(row[MOST_TABLE_PAGES]) * (PAGE // int(row[STRIDE]))
    return 1 << most.bit_length() - 1
