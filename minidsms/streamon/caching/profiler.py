"""The Profiler of caches: benefit and cost of those used and of those that could be (Babu 2005, section 5.5.3).

    d, c                 from elements that met no cache, which the executor samples
    probe, update cost   from the size of key and entry, and how many changes meet one (`step_costs.py`)
    miss probability     of a used cache counted, of a profiled one estimated from its probe stream

Invariant: every statistic is the mean of the last W observations. An observation stands for LOOK elements of the join;
what is looked at after more of them counts as several.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isnan
from typing import Any

from minidsms.joins.figures import CacheFigures, PipelineFigures
from minidsms.joins.plan import CacheSpec, key_parts
from minidsms.streamon.caching.costs import (
    CacheStatistics,
    CacheValue,
    PipelineStatistics,
    expected_bytes,
    value_of,
)
from minidsms.streamon.caching.executor import CacheExecutor
from minidsms.streamon.caching.miss_probability import WINDOW, MissProbability
from minidsms.streamon.caching.sampler import PipelineSampler
from minidsms.streamon.caching.step_costs import StepCosts
from minidsms.streamon.change_detection.usual import Tolerance, Usual

LOOK = 1_000
"""Elements of an observation: W of them are the re-optimization interval."""
PATIENCE = 2
"""Profiles of W observations each that are waited for until a slow probe stream has said enough."""
LEAST_SAMPLED = 64
"""Elements of a pipeline without caches that say something of its d and c."""
ARRIVALS = Tolerance(relative=0.5, matters=0.1)
"""Of the inputs in the elements: what brings less than a tenth of them does not matter."""
ROOM = 2.0
"""Bytes of buckets for one of entries: their sizes are powers of two, and not all are filled."""
LEAST_PROBES = 256
"""Probes of a used cache that say something of its misses, beside those that fill it."""


@dataclass
class _Look:
    """What happened between two looks. elements: of the join, and entered: of each input; weight: observations it
    counts as.
    """

    elements: int
    weight: float
    entered: tuple[int, ...]
    caches: Mapping[CacheSpec, CacheFigures]


class CacheProfiler:
    """Looks at the executor's figures. look: elements of an observation; measures_time: else steps are counted.
    enters: the join joins what enters alone.
    """

    def __init__(
        self,
        executor: CacheExecutor,
        samples: PipelineSampler,
        measures_time: bool = True,
        look: int = LOOK,
        enters: bool = False,
    ) -> None:
        self.look = look
        self.elements = 0
        self.budget: int | None = None
        self.profiled: dict[CacheSpec, MissProbability] = {}
        self.step_costs = StepCosts(measures_time, enters)
        self._executor = executor
        self._samples = samples
        self._measures_time = measures_time
        self._looks: deque[_Look] = deque()
        self._observed: list[deque[PipelineFigures]] = [deque(maxlen=WINDOW) for _ in samples.pipeline_figures()]
        self._tuples = executor.elements
        self._pipelines = samples.pipeline_figures()
        self._caches: dict[CacheSpec, CacheFigures] = {}
        self._known: dict[CacheSpec, CacheStatistics] = {}
        self._ignored: dict[CacheSpec, float] = {}
        self._began = 0
        self._summed: tuple[PipelineStatistics, ...] | None = None
        self._has_summed = False
        self._arrivals = Usual(ARRIVALS, look)
        self.arrivals_shifted()

    # -------------------------------------------------------------------------------------------------- looking

    def observe(self) -> bool:
        """Look, if enough elements have passed; whether it was done. O(1) until then."""
        tuples = self._executor.elements
        elements = tuples - self._tuples
        if elements < self.look:
            return False
        self._tuples = tuples
        self._has_summed = False
        for spec, samples in self._samples.probe_samples().items():
            if spec in self.profiled:
                for sample in samples:
                    self.profiled[spec].observe(sample.keys)
        for spec, changes in self._samples.change_samples().items():
            if spec in self.profiled:
                for keys in changes:
                    self.profiled[spec].observe_changes(keys)
        pipelines = self._samples.pipeline_figures()
        caches = dict(self._executor.join.cache_figures())
        passed = {spec: _between(self._caches.get(spec, CacheFigures()), f) for spec, f in caches.items()}
        for spec, its in passed.items():
            changed = its.ignored + its.inserts + its.deletes
            if changed >= LEAST_PROBES:
                self._ignored[spec] = its.ignored / changed
        parts = tuple(_passed(before, after) for before, after in zip(self._pipelines, pipelines))
        self._looks.append(_Look(elements, elements / self.look, tuple(p.elements for p in parts), passed))
        for observed, figures in zip(self._observed, parts):
            if figures.sampled:
                observed.append(figures)
        while sum(look.weight for look in self._looks) - self._looks[0].weight >= WINDOW:
            self._looks.popleft()
        self._pipelines, self._caches = pipelines, caches
        self.elements += elements
        return True

    def arrivals_shifted(self) -> bool:
        """An input that matters brings another share of the elements than it did. Asked often; it answers after an
        observation's elements.
        """
        entered = self._samples.entered()
        return self._arrivals.change((), tuple(entered), (sum(entered),) * len(entered)) > 0

    def begin(self, specs: Sequence[CacheSpec]) -> None:
        """Profile these from now on, none of them used."""
        self.profiled = {spec: self.profiled.get(spec, MissProbability()) for spec in specs}
        self._samples.profile(frozenset(specs))
        self._began = self.elements

    def forget(self) -> None:
        """Another order: what was seen of the pipelines no longer holds."""
        self._has_summed = False
        self._looks.clear()
        for observed in self._observed:
            observed.clear()
        self._known.clear()
        self._ignored.clear()
        self._tuples = self._executor.elements
        self._pipelines = self._samples.pipeline_figures()
        self._caches = dict(self._executor.join.cache_figures())

    def end(self) -> None:
        """Keep what the profiles say, and end them."""
        pipelines = self.pipelines()
        for spec in self.profiled:
            known = None if pipelines is None else self._estimated(spec, pipelines)
            if known is not None:
                self._known[spec] = known
                self._ignored[spec] = self.ignored(spec) or 0.0
        self.profiled = {}
        self._samples.profile(frozenset())

    # ----------------------------------------------------------------------------------------------- what is known

    @property
    def is_ready(self) -> bool:
        """W observations of the pipelines, and of each profiled cache, have been made; a cache that is probed too
        seldom for that does not matter much, and is waited for with PATIENCE.
        """
        if sum(look.weight for look in self._looks) < WINDOW or self.pipelines() is None:
            return False
        has_waited = self.elements - self._began >= PATIENCE * WINDOW * self.look
        return has_waited or all(m.is_ready for m in self.profiled.values())

    def pipelines(self) -> tuple[PipelineStatistics, ...] | None:
        """d per element of the join, c in ns or steps; None while too few elements were seen without caches."""
        if not self._has_summed:
            self._summed = self._sum()
            self._has_summed = True
        return self._summed

    def _sum(self) -> tuple[PipelineStatistics, ...] | None:
        if not self._looks:
            return None
        elements = sum(look.elements for look in self._looks)
        known = []
        n = len(self._pipelines)
        for i, observed in enumerate(self._observed):
            entered, sampled = sum(look.entered[i] for look in self._looks), sum(f.sampled for f in observed)
            if sampled < min(LEAST_SAMPLED, entered):
                return None
            rate = entered / elements / sampled if sampled else 0.0
            processed = [sum(f.processed[p] for f in observed) for p in range(n)]
            times = [sum(f.time_ns[p] for f in observed) for p in range(n - 1)]
            fanouts = [processed[p + 1] / processed[p] if processed[p] else 0.0 for p in range(n - 1)]
            c = tuple(
                t / d if self._measures_time and d and not isnan(t) else self.step_costs.window(rows)
                for t, d, rows in zip(times, processed, fanouts)
            )
            known.append(PipelineStatistics(tuple(rate * d for d in processed), c))
        return tuple(known)

    def cache(self, spec: CacheSpec) -> CacheStatistics | None:
        """Of a used cache as counted, of a profiled one as estimated, of another as last known."""
        pipelines = self.pipelines()
        if pipelines is None:
            return None
        counted = self._counted(spec)
        if counted is not None:
            return self.assumed(spec, pipelines, *counted)
        estimated = self._estimated(spec, pipelines)
        return None if estimated is None else self._fitted(spec, estimated)

    def _estimated(self, spec: CacheSpec, pipelines: Sequence[PipelineStatistics]) -> CacheStatistics | None:
        """Of a cache that has room for all its entries."""
        seen: tuple[float, float] | None = None
        if spec in self.profiled:
            estimate = self.profiled[spec]
            seen = None if estimate.estimate is None else (estimate.estimate, estimate.distinct_keys)
        if seen is None and spec in self._known:
            seen = self._known[spec].miss_probability, self._known[spec].entries
        return None if seen is None else self.assumed(spec, pipelines, *seen)

    def _fitted(self, spec: CacheSpec, cache: CacheStatistics) -> CacheStatistics:
        """The statistics with as many of the hits as the budget has room for entries."""
        if self.budget is None or not cache.entries:
            return cache
        words = len(key_parts(spec, self._executor.plan.orders, self._executor.join.equalities))
        room = self.budget / (ROOM * expected_bytes(spec, words, cache, 0.0))
        return replace(cache, miss_probability=1 - (1 - cache.miss_probability) * min(1.0, room))

    def ignored(self, spec: CacheSpec) -> float | None:
        """The share of the changes that meet no entry: counted where it was used, else estimated; None of neither."""
        if spec in self.profiled and spec not in self._ignored:
            return self.profiled[spec].ignored
        return self._ignored.get(spec)

    def at_best(self, spec: CacheSpec, pipelines: Sequence[PipelineStatistics]) -> CacheStatistics:
        """If it never missed, and as many changes as can be met no entry."""
        ignored = self.ignored(spec)
        return self.assumed(spec, pipelines, 0.0, ignored=1.0 if ignored is None else ignored)

    def assumed(
        self,
        spec: CacheSpec,
        pipelines: Sequence[PipelineStatistics],
        misses: float,
        entries: float = 0.0,
        ignored: float | None = None,
    ) -> CacheStatistics:
        """The statistics of a cache if it missed so often. ignored: if so many changes met no entry, where given."""
        orders = self._executor.plan.orders
        words = len(key_parts(spec, orders, self._executor.join.equalities))
        rows = value_of(spec, orders, pipelines, CacheStatistics(0.0, 0.0, 0.0)).entry_rows
        if ignored is None:
            ignored = self.ignored(spec) or 0.0
        return CacheStatistics(
            self.step_costs.lookup(words, rows),
            self.step_costs.update(words, len(spec.segment), ignored),
            misses,
            entries,
        )

    def value(self, spec: CacheSpec) -> CacheValue | None:
        """Benefit and cost per element of the join; None where too little is known."""
        pipelines, cache = self.pipelines(), self.cache(spec)
        if pipelines is None or cache is None:
            return None
        return value_of(spec, self._executor.plan.orders, pipelines, cache)

    def _counted(self, spec: CacheSpec) -> tuple[float, float] | None:
        """(miss probability, entries) of a used cache, once it has been filled."""
        now = self._caches.get(spec)
        if now is None or spec not in self._executor.plan.caches:
            return None
        filling = self._known[spec].entries if spec in self._known else 0.0
        if now.probes < LEAST_PROBES + 2 * filling:
            return None
        looks = [look.caches[spec] for look in self._looks if spec in look.caches]
        probes = sum(f.probes for f in looks)
        return (sum(f.misses for f in looks) / probes, float(now.entries)) if probes >= LEAST_PROBES else None

    def statistics(self) -> Mapping[str, Any]:
        """Benefit, cost and hit rate of every used and profiled cache, d and c of the pipelines."""
        pipelines = self.pipelines() or ()
        caches = {}
        for spec in (*self._executor.plan.caches, *self.profiled):
            value, cache = self.value(spec), self.cache(spec)
            if value is not None and cache is not None:
                known = {"benefit": value.benefit, "cost": value.cost, "hit_rate": 1 - cache.miss_probability}
                caches[self._executor.cache_name(spec)] = known
        return {"d": tuple(p.d for p in pipelines), "c": tuple(p.c for p in pipelines), **caches}


def _between(before: CacheFigures, after: CacheFigures) -> CacheFigures:
    """What was counted since; what is held is what is held now. A cache dropped and made again counts from nothing."""
    if after.probes < before.probes:
        return after
    counted = {
        f.name: getattr(after, f.name) - getattr(before, f.name)
        for f in fields(CacheFigures)
        if f.name not in ("entries", "rows", "bytes")
    }
    return CacheFigures(**counted, entries=after.entries, rows=after.rows, bytes=after.bytes)


def _passed(before: PipelineFigures, after: PipelineFigures) -> PipelineFigures:
    if after.elements < before.elements:
        return after
    return PipelineFigures(
        after.elements - before.elements,
        after.sampled - before.sampled,
        tuple(a - b for a, b in zip(after.processed, before.processed)),
        tuple(a - b for a, b in zip(after.time_ns, before.time_ns)),
    )
