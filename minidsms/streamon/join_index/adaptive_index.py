"""The patterns of one n-way join with their Executor, Profiler and Re-optimizer.

There is a choice where a step may compare several inputs at once: where equalities make a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.elements import Batch
from minidsms.joins.plan import Index, Key
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.streamon.join_index.executor import IndexExecutor
from minidsms.streamon.join_index.profiler import IndexProfiler
from minidsms.streamon.join_index.reoptimizer import IndexReoptimizer
from minidsms.streamon.join_watch import JoinWatch
from minidsms.streamon.loop import Budget, Loop, adaptations_of

BUDGET = Budget(worth_ns=5_000_000)
LEAST_REST = 1_024
"""Elements between two looks."""
DEARER = -0.05
"""A measured gain below this: the patterns are given up, ..."""
SPARED = 0.5
"""... unless an element inspects less than this share of the slots it did before: then it is the processor that is
slower, for instance because others use it.
"""

GROWN = 1.25
"""Windows that hold so many times the rows since: an element takes longer under any plan, and nothing is known."""


class AdaptiveIndex:
    """See `Adapting`. `watch` counts the join's elements, and asks.  all_patterns: whatever they cost."""

    def __init__(self, watch: JoinWatch, all_patterns: bool) -> None:
        join = watch.join
        self.due_at = 0
        self._join = join
        self._windows = join.index.windows
        self._mark = 0, 0
        """Slots inspected and elements taken when the plan was changed last, ..."""
        self._before = 0.0
        """... and slots an element under the plan before."""
        self._rows = 0
        """Held when the plan was changed last."""
        self._all_patterns = all_patterns
        self._watch = watch
        self.executor = IndexExecutor(join, join.names, [queue.schema for queue in join.inputs], watch)
        self.profiler = IndexProfiler(self.executor, join.index)
        self.reoptimizer = IndexReoptimizer(self.executor, self.profiler)
        self.adaptation: Loop[Index] = Loop(
            "join index", watch.operator, self.executor, self.profiler, self.reoptimizer, watch.streamon, BUDGET
        )
        if all_patterns:
            self.executor.switch(self.executor.able)

    @property
    def has_choice(self) -> bool:
        return not self._all_patterns

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        elements = self._watch.elements
        if self._all_patterns:
            if self.executor.plan != self.executor.able:
                self.executor.switch(self.executor.able)
            self.due_at = elements + LEAST_REST
            return
        self._judge()
        if self.adaptation.is_free and self.executor.able and self.adaptation.is_worth_it():
            if self.adaptation.is_affordable():
                self._choose(instant)
            rest = self.adaptation.rest.longer() if self.executor.plan else LEAST_REST
            self.due_at = elements + max(rest, self.adaptation.waits())
        elif not self.adaptation.is_free or not self.executor.able:
            self.due_at = elements + self.adaptation.rest.longer()

    @property
    def promises(self) -> bool:
        """Pipelines would have patterns, where these save enough."""
        return self._all_patterns or (self.adaptation.is_free and self.reoptimizer.may_index)

    def return_to_pipelines(self, instant: int) -> None:
        """A tree has gone: index at once what its pipelines probe."""
        self.due_at = 0
        if not self._all_patterns and self.adaptation.is_free and self.executor.able:
            self._choose(instant)

    def _choose(self, instant: int) -> None:
        with self.adaptation.deciding():
            self.profiler.profile()
        elements = self._watch.elements
        self.reoptimizer.weights = {i: n / elements for i, n in enumerate(self._watch.arrived)}
        before = self._inspected()
        if self.adaptation.reconsider(instant):
            self.adaptation.rest.wake()
            self._rows = self._held()
            self._before, self._mark = before, self._join.work()[1:3]

    def _inspected(self) -> float:
        """Slots an element since the plan was changed last."""
        _, slots, elements, _ = self._join.work()
        return (slots - self._mark[0]) / max(elements - self._mark[1], 1)

    def _judge(self) -> None:
        """Patterns that made the join dearer, by its time, go again, and are left alone."""
        decisions = self.adaptation.decisions
        if not decisions or self.adaptation.is_measuring or not self.executor.plan or not self.adaptation.is_free:
            return
        gain = decisions[-1].measured_gain
        has_grown = self._held() > GROWN * self._rows
        is_spared = self._inspected() < SPARED * self._before
        is_dearer = gain is not None and gain < DEARER and decisions[-1].expected_gain is not None
        if is_dearer and not has_grown and not is_spared:
            self.reoptimizer.give_up(self.executor.plan)
            self.adaptation.take((), "dearer than without, as measured")

    def _held(self) -> int:
        return sum(map(len, self._windows))

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        self.adaptation.rest.wake()
        self.due_at = 0

    def describe(self) -> tuple[str, ...]:
        """A line for each input with bits, or patterns; of each pattern what it was found to save, or would cost."""
        executor, benefits = self.executor, self.reoptimizer.benefits()

        def key(j: int, key: Key) -> str:
            saves = benefits.get((j, key))
            return executor.key_text(j, key) + ("" if saves is None else f" [saves {saves:,.1f} ns an element]")

        lines = []
        for j, able in enumerate(executor.able):
            each = executor.plan[j] if executor.plan else ()
            if isinstance(each, Bits):
                lines.append(f"index of {executor.names[j]}: {executor.index_text(j, each)}")
                continue
            left = [pattern for pattern in able if pattern not in each and (j, pattern) in benefits]
            told = [f"also by {', '.join(key(j, pattern) for pattern in each)}"] if each else []
            told += [f"not by {', '.join(key(j, pattern) for pattern in left)}"] if left else []
            lines += [f"index of {executor.names[j]}: {'; '.join(told)}"] if told else []
        return tuple(lines)


def spare_index(operators: Iterable[object], instant: int) -> bool:
    """Memory is short: let the joins among these do without patterns from now on; whether one had some."""
    asked = [(place, place.reoptimizer) for place in adaptations_of(operators)]
    has_switched = False
    for place, reoptimizer in asked:
        if isinstance(reoptimizer, IndexReoptimizer):
            reoptimizer.is_short = True
            has_switched |= place.reconsider(instant)
    return has_switched
