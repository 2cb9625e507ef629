"""The caches of one n-way join with their Executor, Profiler and Re-optimizer. Babu 2005, figure 5.10.

Adapting begins when it can pay: candidates are profiled by compiled code, and loading it takes as long as many small
queries run altogether. A join that has no candidate under its orders is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.elements import Batch
from minidsms.joins.figures import Memory
from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.streamon.caching.adaptive_selection import CacheSelection, SelectionOptions, State
from minidsms.streamon.caching.executor import CacheExecutor
from minidsms.streamon.caching.miss_probability import WINDOW
from minidsms.streamon.caching.profiler import CacheProfiler
from minidsms.streamon.caching.sampler import PipelineSampler
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_watch import JoinWatch
from minidsms.streamon.loop import LONGEST_REST, Budget, Loop

BUDGET = Budget(urgent=0.04, promised=0.1, credit_ns=500_000)
"""Sampling and choosing may take a tenth of what caches would save at best, and a credit whenever the inputs begin to
bring other shares of the elements.
"""
BEGIN_NS = 500_000
"""What finding the candidates and judging their best cases takes, about, by the square of half the inputs."""


class AdaptiveCaches:
    """`watch` counts the join's elements, times it, and asks.  consistency: of the candidates, 'prefix' or 'global'.
    See `Adapting`.
    """

    def __init__(self, watch: JoinWatch, consistency: str) -> None:
        join, streamon = watch.join, watch.streamon
        self.due_at = 0
        settings = streamon.settings
        self._join = join
        self._streamon = streamon
        self._measures_time = settings["cost_model"] == "measured"
        self._budget: int | None = settings["cache_memory"]
        self._options = SelectionOptions(consistency, interval=int(settings["cache_interval"]))
        self._selection: CacheSelection | None = None
        self.executor = CacheExecutor(join, join.names, watch)
        self._sampler = PipelineSampler(join, watch, self._measures_time)
        look = max(1, self._options.interval // WINDOW)
        self.profiler = CacheProfiler(
            self.executor, self._sampler, self._measures_time, look=look, enters=join.index.has_ranges
        )
        self.profiler.budget = self._budget
        self.adaptation: Loop[JoinPlan] = Loop(
            "caching", watch.operator, self.executor, self.profiler, _Waiting(), streamon, BUDGET
        )
        self._watch = watch
        self._ask_at = 0
        self._pause = self._options.interval
        self._stands_aside = False
        self._looked_at = 0
        # Settings are followed after so many elements at most.
        self._most_rest = LONGEST_REST if self._measures_time else self._pause
        join.allot(Memory(self._budget))

    @property
    def has_choice(self) -> bool:
        """Caches are possible under some orders."""
        return self._join.graph.is_connected

    @property
    def saving(self) -> float:
        """The share of what the pipelines cost that the best caches known save, in use or ready for it."""
        if self._selection is None or (self._stands_aside and not self._selection.foresees):
            return 0.0
        return self._selection.saving

    def return_to_pipelines(self, instant: int) -> None:
        """The join has pipelines again: use at once what was foreseen."""
        if self._selection is not None and self._selection.foresees:
            self._stands_aside = False
            self.adaptation.reconsider(instant)
            self.due_at = 0

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        self.due_at = self._watch.elements + self._pause
        self._adapt(part, instant)

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        """See `Adapting.notice`: with other shares choose as if for the first time."""
        if work_changed_by and self._selection is not None:
            self._selection.hurry()
            self.due_at = 0
        if shares_have_shifted and self._selection is not None and self.adaptation.grant():
            self._selection.start_over()
            self.due_at = 0

    def _adapt(self, part: Sequence[Batch | None], instant: int) -> None:
        """Keep to the budget; profile, and take the caches that follow, where the plan is free."""
        if self._streamon.settings["cache_memory"] != self._budget:
            self._budget = self.profiler.budget = self._streamon.settings["cache_memory"]
            self._join.allot(Memory(self._budget, {} if self._selection is None else self._selection.priorities))
            if self._selection is not None:
                self._selection.budget = self._budget
                self._selection.start_over()
        if not self.adaptation.is_free:
            self._rest()
        elif self._selection is not None:
            elements = self.executor.elements
            if elements >= self._looked_at + self._selection.pause and not self._waits():
                self._looked_at = elements
                self._look(part, instant)
            due_at = max(self._looked_at + self._selection.pause, elements + self._waits())
            self.due_at = min(due_at, elements + self._most_rest)
        elif self.adaptation.is_worth_it() and self._is_promising():
            self._begin(part)

    def _is_promising(self) -> bool:
        """Looking for candidates would take no more than its share of what caches could have saved so far."""
        joining_ns, elements = self.executor.spent()
        _, _, _, put_out = self._join.work()
        at_best = joining_ns - self.profiler.step_costs.least(elements, put_out)
        return self.adaptation.is_promising(at_best, BEGIN_NS * (self._join.graph.n / 2) ** 2)

    def _begin(self, part: Sequence[Batch | None]) -> None:
        """See what the pipelines do, and profile the caches that could pay then."""
        with self.adaptation.deciding():
            self._sampler.joined(part)
            self.profiler.observe()
            self._selection = CacheSelection(self.executor, self.profiler, self._options, self._budget)
            self.adaptation.reoptimizer = self._selection

    def _look(self, part: Sequence[Batch | None], instant: int) -> None:
        """Sample the part, and ask for caches where enough has passed for an answer."""
        assert self._selection is not None
        with self.adaptation.deciding():
            self._sampler.joined(part)
            if self._stands_aside == self._join.uses_orders:
                self._stands_aside = not self._join.uses_orders
                self._selection.adopt(self.executor.plan)
            if self.executor.elements >= self._ask_at:
                self._ask_at = self.executor.elements + self._pause // 4
                if self._stands_aside:
                    if self._selection.foresee():
                        self._watch.wake()
                else:
                    self.adaptation.reconsider(instant)

    def _waits(self) -> int:
        """Elements until choosing caches has taken its share of the join's time at most."""
        return self.adaptation.waits(promise=0.0 if self._selection is None else self._selection.promise)

    def _rest(self) -> None:
        """The plan must stay as it is: nothing is profiled until it is free again."""
        if self._selection is not None:
            self.profiler.begin(())
            self.profiler.forget()
            self._selection = None
            self.adaptation.reoptimizer = _Waiting()

    def describe(self) -> tuple[str, ...]:
        """A line per candidate: how it is used, what it does, what it saves and costs."""
        lines = [self._used_line(spec) for spec in self.executor.plan.caches]
        if self._selection is not None and self._selection.knows_orders:
            for spec, state in self._selection.states.items():
                if state is not State.USED:
                    lines.append(f"{self.executor.cache_name(spec)}   [{'; '.join([state.value, *self._worth(spec)])}]")
        return tuple(lines)

    def _used_line(self, spec: CacheSpec) -> str:
        figures = self._join.cache_figures()[spec]
        told = ["used"]
        if figures.probes:
            told.append(f"hits {100 * figures.hits / figures.probes:.1f} % of {figures.probes:,}")
        told.append(f"{figures.entries:,} entries, {figures.rows:,} rows, {figures.bytes:,} bytes")
        if figures.evictions:
            told.append(f"{figures.evictions:,} evicted")
        return f"{self.executor.cache_name(spec)}   [{'; '.join([*told, *self._worth(spec)])}]"

    def _worth(self, spec: CacheSpec) -> list[str]:
        """Benefit and cost per element of the join."""
        value, cache = self.profiler.value(spec), self.profiler.cache(spec)
        if value is None or cache is None:
            return []
        unit = " ns" if self._measures_time else ""
        return [
            f"misses {100 * cache.miss_probability:.0f} %",
            f"saves {value.benefit:.3g}{unit}, costs {value.cost:.3g}{unit} an element",
        ]


class _Waiting:
    """Nothing is known yet."""

    def propose(self) -> Proposal[JoinPlan] | None:
        """Nothing."""
        return None

    def adopt(self, plan: JoinPlan) -> None:
        """Whatever runs."""
