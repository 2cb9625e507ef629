"""Joining by pipelines that look segments of their work up in caches.

The caches may be changed between any two parts: one that is new begins empty and fills as it is looked up, one that is
dropped gives its memory back, one that stays, or is still what another pipeline needs, keeps its entries (A-Caching:
Babu 2005, sections 5.4 to 5.7).

Invariant: whatever plan runs, what is found is the same; between parts each entry is what its segment joins to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from minidsms.elements import MAX_INSTANT, Int64Array
from minidsms.joins.answer import Answer
from minidsms.joins.by_pipelines import ByPipelines
from minidsms.joins.cache_plan import CompiledPlan, compiled, shapes_of
from minidsms.joins.cache_program import Program
from minidsms.joins.figures import CacheFigures, Memory
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.kernels.join_cache_layout import PART_WORDS, PLACED_WORDS, PlacedPlan
from minidsms.kernels.join_caches import place
from minidsms.kernels.join_program import (
    ANSWERED,
    BOUND_WORDS,
    FIRST_ROOM,
    MOST_ROOM,
    ROOM,
    T_BOUNDS,
    WORK_WORDS,
    Block,
)
from minidsms.synopses.indexed_windows import WindowIndex
from minidsms.synopses.join_caches import JoinCaches, StoreShape


@dataclass(frozen=True)
class CacheOptions:
    """budget: bytes of the caches' pages.  buckets: of every cache, for tests.  deletes_at_once: where deletions are
    elements, caches are kept free of them by the deletions' own pipelines, not by the lookups.
    """

    budget: int | None = None
    buckets: int | None = None
    deletes_at_once: bool = False


class ByCaches:
    """pipelines: where the orders are.  bags: inputs whose rows leave in any order."""

    def __init__(
        self,
        graph: JoinGraph,
        index: WindowIndex,
        answer: Answer,
        pipelines: ByPipelines,
        bags: frozenset[int],
        options: CacheOptions,
    ) -> None:
        n = graph.n
        self.caches = JoinCaches(options.budget, options.buckets)
        self._graph = graph
        self._index = index
        self._answer = answer
        self._pipelines = pipelines
        self._bags = bags
        self._eager = frozenset(range(n)) if options.deletes_at_once and not answer.netted else bags
        self.shapes: Mapping[CacheSpec, StoreShape] = {}
        self._compiled: CompiledPlan | None = None
        self._renumberings = 0
        self._placed = np.zeros(n * (n - 1) * PLACED_WORDS, np.int64)
        self._parts_placed = np.zeros(0, np.int64)
        self._key = np.zeros(2 * max(1, len(graph.equalities)), np.int64)
        self._room: Block | None = None

    def use(self, plan: JoinPlan) -> None:
        """Use the caches of a legal plan, whose orders the pipelines have."""
        self.shapes = shapes_of(plan, self._graph, self._eager)
        self.caches.use(self.shapes.values())
        self._compiled = None
        if plan.caches:
            numbers = {shape: self.caches.number(shape) for shape in set(self.shapes.values())}
            self._compiled = compiled(plan, self._graph, self.shapes, numbers, self.caches.witnesses_at, self._bags)
            self.caches.add_witnesses(self._compiled.witnesses)
            self._parts_placed = np.zeros(len(self._compiled.key_places) * PART_WORDS, np.int64)

    # ---------------------------------------------------------------------------------------------------- running

    def run(self) -> Iterator[int]:
        """Join what waits in the index; see `Answer.fill`."""
        plan, index, caches = self._compiled, self._index, self.caches
        assert plan is not None
        if index.renumberings != self._renumberings:
            self._renumberings = index.renumberings
            caches.clear()
        steps = self._pipelines.steps
        place(steps, plan.lookups, plan.key_places, index.inputs, index.keys, self._placed, self._parts_placed)
        if plan.program is None:
            yield from self._answer.fill(lambda found: self._one_by_one(plan, found))
        else:
            yield from self._answer.fill(lambda found: self._by_blocks(plan, found), self._more_room)
        caches.settle(index.inputs, sum(map(len, index.windows)))

    def _more_room(self) -> None:
        assert self._room is not None
        self._answer.claim(2 * sum(array.nbytes for array in self._room))
        self._room = _doubled(self._room)

    def _by_blocks(self, plan: CompiledPlan, found: int) -> int:
        """As far as the buffers have room; how many tuples stand there."""
        from minidsms.kernels.block_mjoin import block_mjoin

        answer = self._answer
        if self._room is None:
            self._room = _room(self._graph.n)
        store, placed = self.caches.bundle, self._placed_plan(plan)
        return block_mjoin(self._index.bundle, placed, answer.run, self._room, store, answer.output, found)

    def _one_by_one(self, plan: CompiledPlan, found: int) -> int:
        """The same, element by element."""
        from minidsms.kernels.cached_mjoin import cached_mjoin

        answer = self._answer
        store, placed = self.caches.bundle, self._placed_plan(plan)
        return cached_mjoin(self._index.bundle, placed, answer.run, store, answer.output, found)

    def _placed_plan(self, plan: CompiledPlan) -> PlacedPlan:
        program = plan.program or Program(_NOTHING, _NOTHING)
        checks, key = self._pipelines.checks, self._key
        operations, finals = program.operations, program.finals
        return PlacedPlan(self._placed, checks, self._parts_placed, plan.updates, operations, finals, key)

    # ---------------------------------------------------------------------------------------------------- figures

    def figures(self) -> Mapping[CacheSpec, CacheFigures]:
        """Of every used cache."""
        return {spec: self.caches.figures(shape) for spec, shape in self.shapes.items()}

    def allot(self, memory: Memory) -> None:
        """Keep to this budget from now on."""
        self.caches.allot(memory.budget, memory.priorities)


_NOTHING = np.zeros(0, np.int64)


def _room(n: int) -> Block:
    """For a block of elements."""
    work = np.zeros(WORK_WORDS, np.int64)
    work[ROOM], work[ANSWERED] = FIRST_ROOM, MAX_INSTANT
    bounds, rows = np.zeros((BOUND_WORDS, n), np.int64), np.zeros((n + 1, 3), np.int64)
    turns = np.zeros(MOST_ROOM * (T_BOUNDS + 2 * n), np.int64)
    return Block(work, bounds, turns, *_lists(n, MOST_ROOM, rows))


def _lists(n: int, capacity: int, rows: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Lists of so many rows."""
    lists = np.zeros(2 * (n + 1) * capacity * (n + 1), np.int64)
    return lists, rows, np.zeros(capacity, np.int64), np.zeros(n * capacity, np.int64)


def _doubled(block: Block) -> Block:
    """Lists of twice the rows, with what is there."""
    n, old = block.bounds.shape[1], len(block.firsts)
    lists, rows, firsts, entries = _lists(n, 2 * old, block.rows)
    lists.reshape(2 * (n + 1), 2 * old, n + 1)[:, :old] = block.lists.reshape(2 * (n + 1), old, n + 1)
    entries.reshape(n, 2 * old)[:, :old] = block.entries.reshape(n, old)
    return Block(block.work, block.bounds, block.turns, lists, rows, firsts, entries)
