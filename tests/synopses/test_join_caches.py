"""JoinCaches: pages, budgets and priorities, seen through a join that fills them."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Schema, Type
from minidsms.joins.figures import CacheFigures, Memory
from minidsms.joins.join import Join
from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.synopses.join_caches import PAGE_BYTES
from tests.joins.cached_joins import check_pool
from tests.joins.made import cached_join_of
from tests.operators.harness import Element, feed, queue

ROW = Schema.of(("a", Type.INTEGER))
EVERY = [((i, 0), (j, 0)) for i in range(4) for j in range(i + 1, 4)]
PAIRS = ((1, 2, 3), (0, 2, 3), (3, 0, 1), (2, 0, 1))
"""Inputs 0 and 1 visit each other first, and so do 2 and 3."""
RIGHT, LEFT = CacheSpec(0, (2, 3)), CacheSpec(2, (0, 1))


class Filled:
    """A join of four inputs on one attribute. rows: of each key in inputs 0 and 2."""

    def __init__(self, keys: int = 0, rows: int = 1, **options: int) -> None:
        schema = Schema((ROW[0],) * 4)
        self.op = cached_join_of(
            [queue(ROW) for _ in range(4)], EVERY, [(i, 0) for i in range(4)], schema, kind=Join, **options
        )
        self.ts = 0
        self.op.switch(JoinPlan(PAIRS, (RIGHT, LEFT)))
        self.keys: list[int] = []
        if keys:
            self.fill(range(keys), rows)

    def fill(self, keys: range, rows: int = 1) -> None:
        """Rows of these keys; every key probes both caches."""
        for i, times in ((1, 1), (3, 1), (0, rows), (2, rows)):
            self.put(i, [k for k in keys for _ in range(times)])

    def put(self, i: int, keys: list[int]) -> int:
        """Insert rows into an input, in slices; how many rows the join puts out."""
        found = 0
        for first in range(0, len(keys), 50):
            self.ts += 1
            sides: list[list[Element]] = [[], [], [], []]
            sides[i] = [(self.ts, 1, (k,)) for k in keys[first : first + 50]]
            found += sum(feed(self.op, sides, until=self.ts).get(self.ts, {}).values())
        check_pool(self.op.cached.caches)
        return found

    def probe(self, keys: range, rows: int) -> None:
        """Probe both caches by every key once more: the answer is what it must be, whatever they hold."""
        assert self.put(0, list(keys)) == len(keys) * rows
        assert self.put(2, list(keys)) == len(keys) * (rows + 1)

    def allot(self, budget: int | None, **priorities: float) -> None:
        named = {"right": RIGHT, "left": LEFT}
        keys = {self.op.cached.shapes[named[name]].key: value for name, value in priorities.items()}
        self.op.allot(Memory(budget, keys))
        check_pool(self.op.cached.caches)

    @property
    def right(self) -> CacheFigures:
        return self.op.cache_figures()[RIGHT]

    @property
    def left(self) -> CacheFigures:
        return self.op.cache_figures()[LEFT]

    @property
    def bytes(self) -> int:
        return self.right.bytes + self.left.bytes


def test_a_store_without_a_budget_has_an_entry_for_nearly_every_key() -> None:
    join = Filled(3000, 3)
    for rows in range(3, 7):
        before = join.right.hits
        join.probe(range(3000), rows)
    assert join.right.hits - before > 2400
    assert join.right.entries > 2400 and join.right.rows == 7 * join.right.entries


def test_pages_in_use_never_pass_the_budget_and_more_memory_means_more_hits() -> None:
    hits = []
    for pages in (0, 1, 4, 16, 64, 512):
        join = Filled(1000, 3, budget=pages * PAGE_BYTES)
        for rows in range(3, 7):
            before = join.right.hits + join.left.hits
            join.probe(range(1000), rows)
            assert join.bytes <= pages * PAGE_BYTES
        assert join.op.cached.caches.nbytes <= (pages + 1) * PAGE_BYTES + 64 * 1024
        hits.append(join.right.hits + join.left.hits - before)
    assert hits[0] == 0 and hits == sorted(hits)
    assert hits[-1] > 1500 and hits[1] * 2 < hits[3] < hits[-1] / 2, hits


def test_a_budget_that_falls_takes_memory_at_once_and_one_that_rises_gives_it_back() -> None:
    join = Filled(2000, 3)
    join.probe(range(2000), 3)
    assert join.bytes > 40 * PAGE_BYTES
    large = join.op.cached.caches.nbytes
    join.allot(10 * PAGE_BYTES)
    assert 0 < join.bytes <= 10 * PAGE_BYTES and join.op.cached.caches.nbytes < large / 3
    join.probe(range(2000), 4)
    assert join.bytes <= 10 * PAGE_BYTES
    join.allot(0)
    assert join.bytes == 0 and join.right.entries == 0
    join.probe(range(2000), 5)
    join.allot(None)
    join.probe(range(2000), 6)
    join.probe(range(2000), 7)
    assert join.bytes > 40 * PAGE_BYTES


def test_entries_that_move_to_a_smaller_pool_stay_what_they_were() -> None:
    join = Filled(300, 20)
    join.probe(range(300), 20)
    (right, left) = (join.op.cached.shapes[spec] for spec in (RIGHT, LEFT))
    before = join.op.cached.caches.entries(right)
    join.allot(50 * PAGE_BYTES, right=2.0, left=1.0)
    after = join.op.cached.caches.entries(right)
    assert {key: sorted(after[key]) for key in after} == {key: sorted(before[key]) for key in after}
    assert len(after) > 0.7 * len(before)
    assert len(join.op.cached.caches.entries(left)) < 0.8 * len(after)


def test_a_store_of_high_priority_takes_pages_from_one_of_low() -> None:
    join = Filled(0, budget=40 * PAGE_BYTES)
    # More rows to a key than its bucket has room for.
    join.put(1, list(range(1000)) * 4)
    join.put(3, list(range(1000)) * 4)
    for first, second, has_less, has_more in ((0, 2, "right", "left"), (2, 0, "left", "right")):
        join.allot(40 * PAGE_BYTES, **{has_less: 1.0, has_more: 2.0})
        for _ in range(2):
            join.put(first, list(range(1000)))
        before = getattr(join, has_less).bytes
        for _ in range(4):
            join.put(second, list(range(1000)))
        assert getattr(join, has_more).bytes >= before > getattr(join, has_less).bytes


def test_dropped_stores_give_their_pages_back() -> None:
    join = Filled(2000, 3)
    pages = len(join.op.cached.caches.owners)
    left = join.left.entries
    join.op.switch(JoinPlan(PAIRS, (LEFT,)))
    assert join.left.entries == left and int(join.op.cached.caches.free[0]) == pages - join.left.bytes // PAGE_BYTES
    join.op.switch(JoinPlan(PAIRS))
    assert join.op.cached.caches.nbytes < PAGE_BYTES


def test_what_is_told_to_be_held_is_what_the_arrays_take() -> None:
    join = Filled(500, 3)
    caches = join.op.cached.caches
    arrays = [a for a in vars(caches).values() if isinstance(a, np.ndarray)]
    assert caches.nbytes == sum(a.nbytes for a in arrays)
    held = sum(window.nbytes for window in join.op.synopses())
    assert join.op.describe().figures["bytes"] == held > caches.nbytes


def test_a_table_that_may_not_become_wider_is_left_alone() -> None:
    join = Filled(1000, 3, budget=16 * PAGE_BYTES)
    join.probe(range(1000), 3)
    before = join.op.cached.caches.tables
    join.probe(range(1000), 4)
    assert join.op.cached.caches.tables is before
