"""Joining by pipelines that look segments of their work up in caches.

The caches may be changed between any two parts: one that is new begins empty and fills as it is looked up, one that is
dropped gives its memory back, one that stays, or is still what another pipeline needs, keeps its entries (A-Caching:
Babu 2005, sections 5.4 to 5.7).

Invariant: whatever plan runs, what is found is the same; between parts each entry is what its segment joins to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from minidsms.joins.answer import Answer
from minidsms.joins.by_pipelines import ByPipelines
from minidsms.joins.cache_plan import CompiledPlan, compiled, shapes_of
from minidsms.joins.figures import CacheFigures, Memory
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.kernels.join_cache_layout import Caching
from minidsms.kernels.mjoin import cached_mjoin
from minidsms.synopses.join_caches import JoinCaches, StoreShape
from minidsms.synopses.window_index import WindowIndex


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
        self._eager = frozenset(range(n)) if options.deletes_at_once and not answer.netted else bags
        self.shapes: Mapping[CacheSpec, StoreShape] = {}
        self._compiled: CompiledPlan | None = None
        self._renumberings = 0

    def use(self, plan: JoinPlan) -> None:
        """Use the caches of a legal plan, whose orders the pipelines have."""
        self.shapes = shapes_of(plan, self._graph, self._eager)
        self.caches.use(self.shapes.values())
        self._compiled = None
        if plan.caches:
            numbers = {shape: self.caches.number(shape) for shape in set(self.shapes.values())}
            self._compiled = compiled(plan, self._graph, self.shapes, numbers, self.caches.witnesses_at)
            self.caches.add_witnesses(self._compiled.witnesses)

    # ---------------------------------------------------------------------------------------------------- running

    def run(self) -> Iterator[int]:
        """Join what waits in the index; see `Answer.fill`."""
        plan, index, caches = self._compiled, self._index, self.caches
        assert plan is not None
        if index.renumberings != self._renumberings:
            self._renumberings = index.renumberings
            caches.clear()
        pipelines, answer = self._pipelines.bundle, self._answer
        yield from answer.fill(
            lambda found: cached_mjoin(
                index.bundle, pipelines, answer.run, Caching(plan.bundle, caches.bundle), answer.output, found
            )
        )
        caches.settle(index.inputs, sum(map(len, index.windows)))

    # ---------------------------------------------------------------------------------------------------- figures

    def figures(self) -> Mapping[CacheSpec, CacheFigures]:
        """Of every used cache."""
        return {spec: self.caches.figures(shape) for spec, shape in self.shapes.items()}

    def allot(self, memory: Memory) -> None:
        """Keep to this budget from now on."""
        self.caches.allot(memory.budget, memory.priorities)
