"""The tree of one XJoin with its Executor, Profiler and Re-optimizer.

Looking for a better tree takes about a millisecond, so it is done when it can pay: first after WORTH_ELEMENTS, then
whenever looking has taken its share of the time at most, and at once when the rates of the inputs have changed. Joins
of more than six inputs, or of some that nothing links, keep the tree they begin with.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from minidsms.elements import Batch
from minidsms.operators.join_tree import MOST_SEARCHED, Tree
from minidsms.operators.xjoin import XJoin
from minidsms.streamon.contracts import Float64Array
from minidsms.streamon.framework import Adaptation
from minidsms.streamon.join_trees.executor import TreeExecutor
from minidsms.streamon.join_trees.profiler import JoinTreeProfiler
from minidsms.streamon.join_trees.reoptimizer import ENOUGH, TreeReoptimizer
from minidsms.streamon.stream_monitor import StreaMon

WORTH_ELEMENTS = 32_768
"""Elements before the first look."""
INTERVAL = 10_000
"""Elements between two looks (I of Babu 2005, section 5.5.5)."""
SHARE = 0.01
"""Of the time spent joining, what looking takes where nothing has changed ..."""
URGENT_SHARE = 0.05
""".. and where the rates have."""
CHANGE = 0.5
"""A share of itself by which the rate of an input differs when it has changed."""


class AdaptiveTrees:
    """names: of the inputs.  operator: how the plan log names the join.  binary: only XJoins are plans.

    Its owner asks `limit` before it joins a part of its input and calls `joined` after.
    """

    def __init__(self, join: XJoin, names: Sequence[str], operator: str, streamon: StreaMon, binary: bool) -> None:
        measures_time = streamon.settings["cost_model"] == "measured"
        self._join = join
        self.executor = TreeExecutor(join, names, binary, measures_time)
        self.profiler = JoinTreeProfiler(join.graph, join.index, names)
        enters = join.ranges is not None
        self.reoptimizer = TreeReoptimizer(
            self.executor, self.profiler, not join.leaves_out, enters, self._saved_by_caches
        )
        self.adaptation: Adaptation[Tree] = Adaptation(
            "join plan", operator, self.executor, self.profiler, self.reoptimizer, streamon
        )
        self._can_adapt = join.graph.is_connected and join.graph.n <= MOST_SEARCHED
        self._recent: Float64Array = np.zeros(join.graph.n)
        self._usual: Float64Array | None = None
        self._begun = 0

    @property
    def has_choice(self) -> bool:
        """There is more than one plan."""
        return self._join.graph.is_connected

    def limit(self, elements: int) -> int:
        """How many of the elements that wait may be joined before the plan must be looked at."""
        self._begun = time.thread_time_ns()
        return self.adaptation.limit(elements)

    def joined(self, part: Sequence[Batch | None]) -> None:
        """A part was joined under the plan."""
        arrived = np.array([0 if batch is None else len(batch) for batch in part], np.int64)
        self.executor.time_ns += time.thread_time_ns() - self._begun
        self.executor.elements += int(arrived.sum())
        instant = min(int(batch.ts[0]) for batch in part if batch is not None)
        self.adaptation.passed(int(arrived.sum()), instant)
        self.profiler.note(arrived)
        self._recent += arrived
        if self._can_adapt and self.adaptation.is_free and self._is_due():
            self._look(instant)

    def _is_due(self) -> bool:
        elements = float(self._recent.sum())
        if self.reoptimizer.is_on_trial:
            return elements >= ENOUGH
        if elements < (WORTH_ELEMENTS if self._usual is None else INTERVAL):
            return False
        executor = self.executor
        if self._usual is None or not executor.measures_time:
            return True
        spent = executor.spent()[0]
        if executor.profiling_ns < SHARE * spent:
            return True
        rates = self._recent / elements
        has_changed = bool((np.abs(rates - self._usual) > CHANGE * np.maximum(rates, self._usual)).any())
        return has_changed and executor.profiling_ns < URGENT_SHARE * spent

    def _look(self, instant: int) -> None:
        """Measure the windows, and take the tree that follows."""
        start = time.thread_time_ns()
        self.profiler.measure()
        self._usual = self._recent / max(1.0, float(self._recent.sum()))
        self._recent = np.zeros_like(self._recent)
        if not self.adaptation.reconsider(instant):
            self.reoptimizer.start_over()
        self.executor.profiling_ns += time.thread_time_ns() - start

    def _saved_by_caches(self) -> float:
        """Of what the pipelines of the flat tree cost."""
        return 0.0 if self._join.caching is None else self._join.caching.saving

    def describe(self) -> tuple[str, ...]:
        """What the present tree was thought to cost when it was last looked at."""
        expected = self.reoptimizer.expected
        unit = "ns" if self.executor.measures_time else "units"
        return () if expected is None else (f"expected {expected:,.1f} {unit} an element",)
