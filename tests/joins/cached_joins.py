"""What tests of cached joins share: an operator that changes its plan and checks its caches after every slice.

The check is the consistency invariant by definition: the live tuples of every entry are the segment's join for its key,
joined afresh from the windows; where the cache is reduced by other inputs, they lie between what joins with those and
that. Babu 2005, definitions 5.4.1 and 5.7.1.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Schema
from minidsms.joins.equal_columns import Equality
from minidsms.joins.figures import CacheFigures
from minidsms.joins.join import Join
from minidsms.kernels.join_cache_layout import CHUNK, FILL, PAGE
from minidsms.kernels.links import LOWER, UNLINKED
from minidsms.synopses.join_caches import JoinCaches, StoreShape
from tests.joins.made import cached_join_of
from tests.joins.test_by_pipelines import S, every_column, inputs_of
from tests.operators.harness import queue

Tuple = dict[int, int]
"""The slot chosen of each input."""


class CheckedMJoin(Join):
    """every: slices between plans drawn by `rng`; 0: the plan stays.  seen: figures of all stores that are gone."""

    every = 0
    rng = random.Random(0)
    slices = 0

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        if self.every and self.slices % self.every == 0:
            plan = self.random_plan(self.rng)
            assert self.is_legal(plan)
            self.switch(plan)
        self.slices += 1
        yield from super().process(batches, until)
        for shape in set(self.cached.shapes.values()):
            check_entries(self, shape)
        check_pool(self.cached.caches)


def operator(
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]] | None = None,
    shown: Sequence[int] | None = None,
    ranges: Sequence[int | None] | None = None,
    fifo: Sequence[bool] | None = None,
    **options: Any,
) -> CheckedMJoin:
    """A join of windows of S."""
    n = inputs_of(equalities)
    columns = every_column(n) if columns is None else columns
    schema = Schema(tuple(S[c] for _, c in columns))
    return cached_join_of(
        [queue(S) for _ in range(n)],
        equalities,
        columns,
        schema,
        shown=shown,
        ranges=ranges,
        fifo=fifo,
        kind=CheckedMJoin,
        **options,
    )


def check_entries(op: Join, shape: StoreShape) -> None:
    """The store's entries are what its segment joins to."""
    key = shape.key
    rows, word = contents_of(op)

    def by_key(tuples: Sequence[Tuple]) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
        found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for t in tuples:
            found.setdefault(tuple(word[i, t[i], c] for i, c in key.stored), set()).add(tuple(t[i] for i in key.inputs))
        return found

    whole = by_key(joined(op, rows, word, key.inputs))
    every = sorted((*key.inputs, *key.reduced_by))
    needed = by_key(joined(op, rows, word, every)) if key.reduced_by else whole
    for values, tuples in op.cached.caches.entries(shape).items():
        live = [t for t in tuples if all(slot in rows[i] for i, slot in zip(key.inputs, t))]
        assert len(set(live)) == len(live), f"{shape.key} has a tuple twice for {values}"
        least, most = (each.get(tuple(values), set()) for each in (needed, whole))
        assert least <= set(live) <= most, f"{shape.key} is inconsistent for {values}"


def contents_of(op: Join) -> tuple[list[range | list[int]], dict[tuple[int, int, int], int]]:
    """The slots of each window that may join, and the words of their key columns by (input, slot, column)."""
    index = op.index
    word = {}
    rows: list[range | list[int]] = []
    for i, figures in enumerate(index.records):
        linked = []
        for slot in slots_of(op, i):
            at = 2 * (slot & figures.mask)
            if index.nodes[index.keys["nodes"][figures.key] + at + 1] & LOWER != UNLINKED:
                linked.append(slot)
                for x, columns in enumerate(op.graph.keys[i], figures.key):
                    if len(columns) == 1:
                        word[i, slot, columns[0]] = int(index.nodes[index.keys["nodes"][x] + at])
        rows.append(linked)
    return rows, word


def slots_of(op: Join, i: int) -> Sequence[int]:
    """The slots of an input whose rows are there."""
    index, figures = op.index, op.index.records[i]
    if not figures.is_bag:
        return range(figures.lo, figures.hi)
    return [int(s) for s in index.windows[i].present()]


def joined(
    op: Join,
    rows: Sequence[Sequence[int]],
    word: dict[tuple[int, int, int], int],
    inputs: Sequence[int],
) -> list[Tuple]:
    """The join of some inputs, one after the other."""
    found: list[Tuple] = [{}]
    for place, j in enumerate(inputs):
        checked = [
            (a, b)
            for ends in op.graph.equalities
            for a, b in (ends, ends[::-1])
            if b[0] == j and a[0] in inputs[:place]
        ]
        alike: dict[tuple[int, ...], list[int]] = {}
        for slot in rows[j]:
            alike.setdefault(tuple(word[j, slot, d] for _, (_, d) in checked), []).append(slot)
        found = [
            {**t, j: slot} for t in found for slot in alike.get(tuple(word[i, t[i], c] for (i, c), _ in checked), ())
        ]
    return found


def total(figures: Iterable[CacheFigures], name: str) -> int:
    """One figure of all caches together."""
    return sum(getattr(f, name) for f in figures)


def check_pool(caches: JoinCaches) -> None:
    """Every page has one owner or is free, every chunk is in one chain or free, and all counts are right."""
    free = caches.free[1 : 1 + int(caches.free[0])].tolist()
    assert sorted(free) == np.flatnonzero(caches.owners < 0).tolist(), "free pages are those without an owner"
    for shape, c in caches._shapes.items():
        row = caches._caches[c]
        buckets, chunks = (np.flatnonzero(caches.owners == 2 * c + kind) * PAGE + CHUNK for kind in (0, 1))
        table = caches.tables[row.table : row.table + caches._table_pages(c)]
        assert sorted(table[table >= 0].tolist()) == buckets.tolist(), "the table has the pages of buckets"
        assert (row.table_pages, row.pages) == (len(buckets), len(buckets) + len(chunks)), "pages are counted"
        entries = caches.entries(shape)
        assert (row.entries, row.tuples) == (len(entries), sum(map(len, entries.values()))), "entries are counted"
        unused = []
        at = row.free_chunk
        while at >= 0:
            unused.append(at)
            at = int(caches.pool[at])
        used = [a for b in buckets for e in range(b, b + PAGE, row.stride) for a in chunks_of(caches, e)]
        every = [a for page in chunks for a in range(page, page + PAGE, CHUNK)]
        assert sorted(unused + used) == every, "a chunk is in one chain or free"


def chunks_of(caches: JoinCaches, bucket: int) -> list[int]:
    """The chunks of a bucket's entry, which all name it."""
    chunks = []
    head = int(caches.pool[bucket + 1]) if caches.pool[bucket] >= 0 else 0
    while head:
        chunks.append(head & ~FILL)
        assert caches.pool[chunks[-1] + 1] == bucket, "a chunk names its bucket"
        head = int(caches.pool[chunks[-1]])
    return chunks
