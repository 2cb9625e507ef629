"""CachedMJoin: an n-way join whose pipelines may look segments of their work up in caches.

The plan, orders and caches, may be changed between any two slices: a cache that is new begins empty and fills as it
is looked up, one that is dropped gives its memory back, one that stays, or is still what another pipeline needs, keeps
its entries (A-Caching: Babu 2005, sections 5.4 to 5.7). Without caches the pipelines are those of `MJoin`.

Invariant: whatever plan runs, the answer is the same; between slices each entry is what its segment joins to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch, Schema
from minidsms.joins.cache_plan import CompiledPlan, compiled, problem_with, random_plan, shapes_of
from minidsms.joins.cache_program import Program
from minidsms.joins.equal_columns import Equality
from minidsms.joins.figures import CacheFigures, Memory
from minidsms.joins.plan import CacheSpec, JoinPlan, Orders
from minidsms.kernels.join_cache_layout import LEVEL_WORDS, PART_WORDS, PLACED_WORDS
from minidsms.kernels.join_caches import place
from minidsms.kernels.join_layout import DONE, FIRST, MISSING, STATUS
from minidsms.kernels.join_program import (
    ANSWERED,
    BOUND_WORDS,
    CROWDED,
    FIRST_ROOM,
    MOST_ROOM,
    ROOM,
    T_BOUNDS,
    WORK_WORDS,
)
from minidsms.operators.mjoin import MJoin
from minidsms.operators.operator import Description
from minidsms.queues import Queue
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_windows import IndexedWindow
from minidsms.synopses.join_caches import JoinCaches, StoreShape


class CachedMJoin(MJoin):
    """As MJoin; it is an Executor[JoinPlan].

    budget: bytes of the caches' pages.  buckets: of every cache, for tests.  deletes_at_once: where deletions are
    elements, caches are kept free of them by the deletions' own pipelines, not by the lookups.
    """

    def __init__(
        self,
        inputs: Sequence[Queue],
        equalities: Sequence[Equality],
        outputs_of: Sequence[tuple[int, int]],
        schema: Schema,
        shown: Sequence[int] | None = None,
        ranges: Sequence[int | None] | None = None,
        fifo: Sequence[bool] | None = None,
        *,
        budget: int | None = None,
        buckets: int | None = None,
        deletes_at_once: bool = False,
    ) -> None:
        super().__init__(inputs, equalities, outputs_of, schema, shown, ranges, fifo)
        n = len(inputs)
        self.caches = JoinCaches(budget, buckets)
        bags = [i for i, is_fifo in enumerate(fifo or ()) if not is_fifo]
        self._eager = frozenset(range(n) if deletes_at_once and not self.leaves_out else bags)
        self._bags = frozenset(bags)
        self._plan = JoinPlan(self.orders)
        self._shapes: Mapping[CacheSpec, StoreShape] = {}
        self._compiled: CompiledPlan | None = None
        self._renumberings = 0
        self._chosen = np.zeros(n, np.int64)
        self._levels = np.zeros(n * LEVEL_WORDS, np.int64)
        self._cached_placed = np.zeros(n * (n - 1) * PLACED_WORDS, np.int64)
        self._key = np.zeros(2 * max(1, len(equalities)), np.int64)
        self._work = np.zeros(WORK_WORDS, np.int64)
        self._work[ROOM], self._work[ANSWERED] = FIRST_ROOM, MAX_INSTANT
        self._lists: _Lists | None = None

    # --------------------------------------------------------------------------------------------------- the plan

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """Of the join."""
        return self.graph.equalities

    @property
    def plan(self) -> JoinPlan:
        """The orders and the caches."""
        return self._plan

    def is_legal(self, plan: object) -> bool:
        """The join can run this plan, or these orders."""
        if isinstance(plan, JoinPlan):
            return problem_with(plan, self.graph, self._bags) is None
        return self.graph.is_legal(plan)  # type: ignore[arg-type]

    def random_plan(self, rng: Random) -> JoinPlan:
        """Any legal plan."""
        return random_plan(self.graph, rng, self._bags)

    def reorder(self, orders: Orders) -> None:
        """Other orders, without those caches that they do not allow."""
        super().reorder(orders)
        if hasattr(self, "_plan"):
            kept = self._plan
            plan = JoinPlan(orders, kept.caches)
            while problem_with(plan, self.graph, self._bags) is not None:
                plan = JoinPlan(orders, plan.caches[:-1])
            self.switch(plan)

    def switch(self, plan: JoinPlan) -> None:
        """Run this plan, a legal one, from the next slice on."""
        problem = problem_with(plan, self.graph, self._bags)
        assert problem is None, problem
        if plan.orders != self.orders:
            super().reorder(plan.orders)
        self._plan = plan
        self._shapes = shapes_of(plan, self.graph, self._eager)
        self.caches.use(self._shapes.values())
        self._compiled = None
        if plan.caches:
            numbers = {shape: self.caches.number(shape) for shape in set(self._shapes.values())}
            self._compiled = compiled(plan, self.graph, self._shapes, numbers, self.caches.witnesses_at, self._bags)
            self.caches.add_witnesses(self._compiled.witnesses)
            self._parts_placed = np.zeros(len(self._compiled.key_places) * PART_WORDS, np.int64)

    # ---------------------------------------------------------------------------------------------------- running

    def _join(self, batches: Sequence[Batch | None]) -> Iterator[Batch]:
        if self._compiled is None:
            yield from super()._join(batches)
        else:
            self._index.admit(batches)
            if self._index.renumberings != self._renumberings:
                self._renumberings = self._index.renumberings
                self.caches.clear()
            yield from self._join_cached(self._compiled)

    def _join_entering(self, batches: Sequence[Batch | None]) -> Iterator[Batch]:
        if self._compiled is None:
            yield from super()._join_entering(batches)
        else:
            self._index.arrive(batches)
            yield from self._join_cached(self._compiled)

    def _join_cached(self, plan: CompiledPlan) -> Iterator[Batch]:
        """What waits in the index, through pipelines with caches."""
        index, state, caches = self._index, self._state, self.caches
        place(
            self._steps, plan.lookups, plan.key_places, index.inputs, index.keys, self._cached_placed,
            self._parts_placed,
        )  # fmt: skip
        found, status = 0, -1
        while status != DONE:
            found = self._one_by_one(plan, found) if plan.program is None else self._by_blocks(plan.program, found)
            status = int(state[STATUS])
            if status == CROWDED:
                assert self._lists is not None
                self._lists = self._lists.doubled()
                continue
            assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
            complete = int(state[FIRST]) if status != DONE and self.leaves_out else found
            if complete:
                yield self._output(complete)
            found = self._keep(complete, found) if status != DONE else 0
        caches.settle(index.inputs, sum(map(len, index.windows)))

    def _by_blocks(self, program: Program, found: int) -> int:
        """As far as the buffers have room; how many tuples stand there."""
        from minidsms.kernels.block_mjoin import block_mjoin

        index, caches = self._index, self.caches
        if self._lists is None:
            self._lists = _Lists(self.graph.n, MOST_ROOM)
        lists = self._lists
        return block_mjoin(  # type: ignore[no-any-return]
            index.runs, index.instants, index.inputs, index.keys, self._cached_placed, self._checks, index.nodes,
            index.heads, index.marks, self._stamps, self._chosen, self._levels, self._stops, self._state, self._work,
            self.leaves_out, self.ranges is not None, program.operations, program.finals, lists.bounds, lists.turns,
            lists.words, lists.rows, lists.firsts, lists.entries, self._parts_placed, caches.rows, caches.ghosts,
            caches.members, caches.tables, caches.pool, caches.owners, caches.free, *self._buffers, found,
        )  # fmt: skip

    def _one_by_one(self, plan: CompiledPlan, found: int) -> int:
        """The same, element by element."""
        from minidsms.kernels.cached_mjoin import cached_mjoin

        index, caches = self._index, self.caches
        return cached_mjoin(  # type: ignore[no-any-return]
            index.runs, index.instants, index.inputs, index.keys, self._cached_placed, self._checks, index.nodes,
            index.heads, index.places, index.backs, index.marks, self._stamps, self._chosen, self._levels,
            self._stops, self._state, self.leaves_out, self.ranges is not None, caches.rows,
            caches.ghosts, caches.members, self._parts_placed, plan.updates, caches.tables, caches.pool, caches.owners,
            caches.free, self._key, *self._buffers, found,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------------- figures

    def cache_figures(self) -> Mapping[CacheSpec, CacheFigures]:
        """Of every used cache."""
        return {spec: self.caches.figures(shape) for spec, shape in self._shapes.items()}

    def allot(self, memory: Memory) -> None:
        """Keep to this budget from now on."""
        self.caches.allot(memory.budget, memory.priorities)

    def describe(self) -> Description:
        """As MJoin's, with the caches' entries and bytes."""
        description = super().describe()
        description.figures["cache entries"] = len(self.caches)
        description.figures["bytes"] = sum(s.nbytes for s in self.synopses())
        return description

    def synopses(self) -> tuple[IndexedWindow | BagWindow | JoinCaches, ...]:  # type: ignore[override]
        """The inputs' rows and the caches."""
        return (*super().synopses(), self.caches)


class _Lists:
    """Room for what `kernels.block_mjoin` keeps of a block. capacity: rows of a list."""

    def __init__(self, n: int, capacity: int) -> None:
        self.bounds = np.zeros((BOUND_WORDS, n), np.int64)
        self.turns = np.zeros(MOST_ROOM * (T_BOUNDS + 2 * n), np.int64)
        self.rows = np.zeros((n + 1, 3), np.int64)
        self._n = n
        self._hold(capacity)

    def _hold(self, capacity: int) -> None:
        n = self._n
        self.words = np.zeros(2 * (n + 1) * capacity * (n + 1), np.int64)
        self.firsts = np.zeros(capacity, np.int64)
        self.entries = np.zeros(n * capacity, np.int64)

    def doubled(self) -> _Lists:
        """Twice the room, with what is there."""
        n, old = self._n, len(self.firsts)
        words, entries = self.words.reshape(2 * (n + 1), old, n + 1), self.entries.reshape(n, old)
        self._hold(2 * old)
        self.words.reshape(2 * (n + 1), 2 * old, n + 1)[:, :old] = words
        self.entries.reshape(n, 2 * old)[:, :old] = entries
        return self
