"""The tree of one XJoin with its Executor, Profiler and Re-optimizer.

Looking for a better tree takes about a millisecond, so it is done when it can pay: first after WORTH_ELEMENTS, then
ever more seldom while nothing changes, and at once when the rates of the inputs have changed; looking keeps to its
share of the time. Joins
of more than six inputs, or of some that nothing links, keep the tree they begin with.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from minidsms.elements import Batch
from minidsms.operators.join_tree import MOST_SEARCHED, Tree
from minidsms.operators.xjoin import XJoin
from minidsms.streamon.arrival_shares import ArrivalShares
from minidsms.streamon.framework import Adaptation
from minidsms.streamon.join_clock import JoinClock
from minidsms.streamon.join_ordering.usual_work import UsualWork
from minidsms.streamon.join_trees.executor import TreeExecutor
from minidsms.streamon.join_trees.profiler import JoinTreeProfiler
from minidsms.streamon.join_trees.reoptimizer import ENOUGH, Kind, TreeReoptimizer
from minidsms.streamon.stream_monitor import StreaMon

WORTH_ELEMENTS = 32_768
"""Elements before the first look."""
INTERVAL = 10_000
"""Elements between two looks (I of Babu 2005, section 5.5.5)."""
PAUSE = 8_192
"""Elements before anything is asked again."""
CHANGE = 0.5
"""A share of itself by which the work for an element differs where trees are looked at again at once."""
LONGEST = 16
"""Intervals between two looks while nothing changes."""
SHARE = 0.01
"""Of the time spent joining, what looking takes where nothing has changed ..."""
URGENT_SHARE = 0.05
""".. and where the rates have."""


class AdaptiveTrees:
    """names: of the inputs.  operator: how the plan log names the join.  binary: only XJoins are plans.  clock: runs
    while the join does.

    Its owner asks `limit` before it joins a part of its input and calls `joined` after.
    """

    def __init__(self, join: XJoin, names: Sequence[str], operator: str, streamon: StreaMon, binary: bool) -> None:
        measures_time = streamon.settings["cost_model"] == "measured"
        self._join = join
        self.clock = JoinClock()
        self.executor = TreeExecutor(join, names, binary, measures_time)
        self.profiler = JoinTreeProfiler(join.graph, join.index, names)
        enters = join.ranges is not None
        self.reoptimizer = TreeReoptimizer(
            self.executor, self.profiler, not join.leaves_out, enters, self._saved_by_caches, self._has_caches
        )
        self.adaptation: Adaptation[Tree] = Adaptation(
            "join plan", operator, self.executor, self.profiler, self.reoptimizer, streamon
        )
        self._can_adapt = join.graph.is_connected and join.graph.n <= MOST_SEARCHED
        self._recent = [0] * join.graph.n
        self._has_looked = False
        self._has_news = False
        self._shares = ArrivalShares()
        self._interval = INTERVAL
        self._work = UsualWork(CHANGE)
        self._streamon = streamon
        self._arrived = [0] * join.graph.n
        self._unseen = 0

    @property
    def entered(self) -> list[int]:
        """Elements of each input since the windows were last looked at."""
        return [a + b for a, b in zip(self._recent, self._arrived)]

    @property
    def has_choice(self) -> bool:
        """There is more than one plan."""
        return self._join.graph.is_connected

    def limit(self, elements: int) -> int:
        """How many of the elements that wait may be joined before the plan must be looked at."""
        self.clock.start(elements)
        return self.adaptation.limit(elements)

    def joined(self, part: Sequence[Batch | None]) -> None:
        """A part was joined under the plan."""
        self.clock.stop()
        executor = self.executor
        for i, batch in enumerate(part):
            if batch is not None:
                self._arrived[i] += len(batch)
                self._unseen += len(batch)
        if self._unseen < PAUSE and self._streamon.forcing is None:
            return
        executor.elements += self._unseen
        executor.time_ns = self.clock.ns
        instant = min(int(batch.ts[0]) for batch in part if batch is not None)
        self.adaptation.passed(self._unseen, instant)
        self._recent = [a + b for a, b in zip(self._recent, self._arrived)]
        latest, self._arrived = self._arrived, [0] * len(self._arrived)
        self._unseen = 0
        if self._can_adapt and self.adaptation.is_free and self._is_due(latest):
            self._look(instant)
        self.reoptimizer.pass_on()

    def _is_due(self, latest: list[int]) -> bool:
        """latest: elements of each input since this was last asked."""
        executor = self.executor
        if self._has_changed(latest) and executor.measures_time:
            # What was before tells nothing of what is now; costs under the present plan have to be seen first.
            self._recent = [0] * len(latest)
            self.profiler.forget()
            self.reoptimizer.forget()
            self._has_news = True
            return False
        elements = sum(self._recent)
        if self.reoptimizer.is_on_trial:
            return elements >= ENOUGH
        if not self._has_looked or not executor.measures_time:
            return elements >= (INTERVAL if self._has_looked else WORTH_ELEMENTS)
        if self._has_news:
            return elements >= ENOUGH and executor.profiling_ns < URGENT_SHARE * executor.spent()[0]
        return elements >= self._interval and executor.profiling_ns < SHARE * executor.spent()[0]

    def _has_changed(self, latest: list[int]) -> bool:
        """Inputs bring other shares of the elements, or an element makes other work."""
        works_else = self._work.has_changed(self.executor.plan, self._join.work())
        # Work changes by chance, too: after a look in vain it must have been usual for a while.
        return self._shares.have_shifted(latest) or (works_else and 4 * sum(self._recent) >= self._interval)

    def _look(self, instant: int) -> None:
        """Measure the windows, and take the tree that follows. Later and later as long as nothing changes."""
        start = time.thread_time_ns()
        self.profiler.note(np.array(self._recent, np.int64))
        self.profiler.measure()
        self._has_looked, self._has_news = True, False
        self._recent = [0] * len(self._recent)
        if self.adaptation.reconsider(instant):
            self._interval = INTERVAL
        else:
            self._interval = min(2 * self._interval, LONGEST * INTERVAL)
            self.reoptimizer.start_over()
        self.executor.profiling_ns += time.thread_time_ns() - start

    def _saved_by_caches(self) -> float:
        """Of what the pipelines of the flat tree cost."""
        return 0.0 if self._join.caching is None else self._join.caching.saving

    def _has_caches(self) -> bool:
        """Caches are in use."""
        caching = self._join.caching
        return caching is not None and bool(caching.executor.plan.caches)

    def describe(self) -> tuple[str, ...]:
        """What plans were thought to cost when the tree was last looked at, and what the present one did."""
        told = self.reoptimizer
        if not told.expected or told.best_tree is None:
            return ()
        unit = "ns" if self.executor.measures_time else "units"
        kinds = [f"{kind.value} {cost:,.1f}" for kind, cost in told.expected.items() if self._is_open(kind)]
        tree = f"{self.executor.plan_text(told.best_tree)} {told.expected[Kind.TREE]:,.1f}"
        measured = "" if told.measured is None else f"; measured {told.measured:,.1f}"
        return (f"expected, {unit} an element: {', '.join([*kinds, tree])}{measured}",)

    def _is_open(self, kind: Kind) -> bool:
        """A kind of pipelines that the join may run as."""
        if kind is Kind.PIPELINES:
            return not self.executor.binary
        return kind is Kind.CACHES and self._saved_by_caches() > 0
