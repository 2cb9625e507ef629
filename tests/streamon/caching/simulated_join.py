"""A join that only counts: rates, fan-outs and miss probabilities are given, so that the best caches are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.equal_columns import Equality
from minidsms.joins.figures import CacheFigures, Memory, PipelineFigures, ProbeSample
from minidsms.joins.plan import CacheSpec, Index, JoinPlan, Orders, SharedKey, problem_of, shared_key


class SimulatedJoin:
    """rates: share of the elements that each input has.  fanouts[i][p]: rows that a tuple meets at position p of i.

    dearer_with_caches: what an element costs then, times what it costs without.
    misses: miss probability by the inputs of the segment and the pipeline, 1 where not given.
    """

    def __init__(
        self,
        orders: Orders,
        equalities: Sequence[Equality],
        rates: Sequence[float],
        fanouts: Sequence[Sequence[float]],
        misses: Mapping[tuple[int, frozenset[int]], float],
    ) -> None:
        self.plan = JoinPlan(orders)
        self.equalities = tuple(equalities)
        self.rates = list(rates)
        self.fanouts = [list(f) for f in fanouts]
        self.misses = dict(misses)
        self.memory = Memory()
        self.profiled: frozenset[CacheSpec] = frozenset()
        self.switches: list[JoinPlan] = []
        self.inspected = 0.0
        self.dearer_with_caches = 1.0
        n = len(orders)
        self._elements = 0.0
        self._entered = [0.0] * n
        self._processed = np.zeros((n, n))
        self._caches: dict[CacheSpec, CacheFigures] = {}
        self._probes: dict[CacheSpec, int] = {}
        self._samples: dict[CacheSpec, list[ProbeSample]] = {}

    def work(self) -> tuple[int, int, int, int]:
        return 0, int(self.inspected), int(self._elements), 0

    def switch(self, plan: JoinPlan) -> None:
        assert self.is_legal(plan), problem_of(plan)
        self.plan = plan
        self.switches.append(plan)
        self._caches = {s: self._caches.get(s, CacheFigures()) for s in plan.caches}

    def is_legal(self, plan: object) -> bool:
        return isinstance(plan, JoinPlan) and problem_of(plan) is None

    def patterns_under(self, orders: Orders) -> Index:
        return ()

    def random_plan(self, rng: Random) -> JoinPlan:
        return JoinPlan(self.plan.orders)

    def cache_figures(self) -> Mapping[CacheSpec, CacheFigures]:
        return dict(self._caches)

    def entered(self) -> Sequence[int]:
        return [int(e) for e in self._entered]

    def pipeline_figures(self) -> tuple[PipelineFigures, ...]:
        nothing = (0.0,) * (len(self.rates) - 1)
        return tuple(PipelineFigures(int(e), int(e), tuple(d), nothing) for e, d in zip(self._entered, self._processed))

    def profile(self, specs: frozenset[CacheSpec]) -> None:
        assert not specs & set(self.plan.caches), "a used cache is not profiled"
        self.profiled = specs
        self._samples = {}

    def probe_samples(self) -> Mapping[CacheSpec, Sequence[ProbeSample]]:
        samples, self._samples = self._samples, {}
        return samples

    def change_samples(self) -> Mapping[CacheSpec, Sequence[Int64Array]]:
        return {}

    def allot(self, memory: Memory) -> None:
        self.memory = memory

    def run(self, elements: int) -> None:
        """So many elements pass."""
        total = sum(self.rates)
        self._elements += elements
        self.inspected += elements * (self.dearer_with_caches if self.plan.caches else 1.0)
        reached = np.zeros_like(self._processed)
        for i, rate in enumerate(self.rates):
            reached[i] = elements * rate / total * np.cumprod([1.0, *self.fanouts[i]])
            self._entered[i] += elements * rate / total
        self._processed += reached
        for spec in {*self.plan.caches, *self.profiled}:
            order = self.plan.orders[spec.pipeline]
            probes = int(reached[spec.pipeline][order.index(spec.segment[0])])
            misses = self.misses.get((spec.pipeline, frozenset(spec.segment)), 1.0)
            if spec in self._caches:
                had = self._caches[spec]
                more = round(misses * probes)
                self._caches[spec] = CacheFigures(had.probes + probes, had.hits + probes - more, had.misses + more)
            else:
                begin = self._probes.get(spec, 0)
                keys = ((begin + np.arange(probes)) * misses).astype(np.int64)
                self._probes[spec] = begin + probes
                self._samples.setdefault(spec, []).append(ProbeSample(keys.reshape(-1, 1)))

    def store_of(self, spec: CacheSpec) -> SharedKey:
        return shared_key(spec, self.plan.orders, self.equalities)
