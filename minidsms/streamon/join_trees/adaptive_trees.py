"""The tree of one XJoin with its Executor, Profiler and Re-optimizer.

Looking for a better tree takes about a millisecond, so it is done when it can pay: first after WORTH_ELEMENTS, then
ever more seldom while nothing changes, and at once when the rates of the inputs have changed; looking keeps to its
share of the time. Joins of more than six inputs, or of some that nothing links, keep the tree they begin with.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.cql.errors import MemoryLimitError
from minidsms.elements import Batch
from minidsms.joins.plan import Tree
from minidsms.joins.tree import MOST_SEARCHED
from minidsms.streamon.change_detection.usual import Tolerance
from minidsms.streamon.join_trees.executor import TreeExecutor
from minidsms.streamon.join_trees.pipelines import JoinPipelines
from minidsms.streamon.join_trees.reoptimizer import ENOUGH, Kind, TreeReoptimizer
from minidsms.streamon.join_watch import JoinWatch
from minidsms.streamon.loop import Budget, Loop

BUDGET = Budget(urgent=0.04, promised=0.04)
"""Where rates have changed looking may take 4 % more; the first look no more than this share of what the best tree
could have saved so far.
"""
FIRST_NS = (0, 0, 0, 700_000, 900_000, 2_500_000, 10_000_000)
"""What the first look takes, about, by the number of inputs."""
INTERVAL = 10_000
"""Elements between two looks (I of Babu 2005, section 5.5.5)."""
WORK = Tolerance(relative=0.5)
"""Of the work for an element: where it differs by more, trees are looked at again at once."""
SAVING = Tolerance(absolute=0.1)
"""Of what caches save of the pipelines' cost: more is news."""
LONGEST = 16
"""Intervals between two looks while nothing changes."""


class AdaptiveTrees:
    """`watch` counts the join's elements, and asks.  binary: only XJoins are plans.  pipelines: of the same join.
    See `Adapting`.
    """

    def __init__(self, watch: JoinWatch, binary: bool, pipelines: JoinPipelines) -> None:
        join = watch.join
        measures_time = watch.streamon.settings["cost_model"] == "measured"
        self.due_at = 0
        self._join = join
        self._pipelines = pipelines
        self._watch = watch
        self.executor = TreeExecutor(join, join.names, binary, watch, measures_time)
        self.profiler = pipelines.profiler
        self.reoptimizer = TreeReoptimizer(self.executor, self.profiler, not join.leaves_out, pipelines)
        self.adaptation: Loop[Tree] = Loop(
            "join plan", watch.operator, self.executor, self.profiler, self.reoptimizer, watch.streamon, BUDGET
        )
        self._can_adapt = join.graph.is_connected and join.graph.n <= MOST_SEARCHED
        self._since = list(watch.arrived)
        self._has_looked = False
        self._has_news = False
        self._known_saving = 0.0
        self._interval = INTERVAL

    @property
    def entered(self) -> list[int]:
        """Elements of each input since the windows were last looked at."""
        return [now - before for now, before in zip(self._watch.arrived, self._since)]

    @property
    def has_choice(self) -> bool:
        return self._join.graph.is_connected

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        executor = self.executor
        before = executor.plan
        if self._can_adapt and self.adaptation.is_free and self._is_due():
            self._measure(instant)
        self.reoptimizer.pass_on()
        is_busy = self._has_news or self.reoptimizer.is_on_trial or self.adaptation.is_measuring
        if is_busy or executor.plan != before or not executor.measures_time:
            self.adaptation.rest.wake()
        self.due_at = self._watch.elements + self.adaptation.rest.longer()

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        # Work changes by chance, too: after a look in vain it must have been usual for a while.
        works_else = work_changed_by > WORK.relative and 4 * sum(self.entered) >= self._interval
        if (shares_have_shifted or works_else) and self._can_adapt and self.executor.measures_time:
            # What was before tells nothing of what is now; costs under the present plan have to be seen first.
            self._since = list(self._watch.arrived)
            self._pipelines.forget(self._watch.arrived)
            self.reoptimizer.forget()
            self._has_news = True
            self.adaptation.rest.wake()
            self.due_at = self._watch.elements + ENOUGH

    def _is_due(self) -> bool:
        executor = self.executor
        elements = sum(self.entered)
        if self.reoptimizer.is_on_trial:
            return elements >= ENOUGH
        if self._has_looked and SAVING.change(self._known_saving, self._pipelines.saved_by_caches):
            self._has_news = True
        if not self._has_looked:
            return elements >= self.adaptation.budget.worth_tuples and self._is_promising()
        if not executor.measures_time:
            return elements >= INTERVAL
        if self._has_news:
            return elements >= ENOUGH and self.adaptation.is_affordable(urgency=1.0)
        return elements >= self._interval and self.adaptation.is_affordable()

    def _is_promising(self) -> bool:
        """A first look is worth its time: no tree saves what every plan does with elements and tuples."""
        ns, elements = self.executor.spent()
        _, _, taken, put_out = self._join.work()
        least = self.reoptimizer.unit.element + self.reoptimizer.unit.tuple * put_out / max(1, taken)
        return self.adaptation.is_promising(ns - least * elements, FIRST_NS[self._join.graph.n])

    def _measure(self, instant: int) -> None:
        """Measure the windows, and take the tree that follows. Later and later as long as nothing changes."""
        with self.adaptation.deciding():
            self._look(instant)

    def _look(self, instant: int) -> None:
        self._pipelines.measure(self._watch.arrived)
        self._has_looked, self._has_news = True, False
        self._since = list(self._watch.arrived)
        self._known_saving = self._pipelines.saved_by_caches
        try:
            is_changed = self.adaptation.reconsider(instant)
        except (MemoryLimitError, MemoryError):
            is_changed = False  # there is no room for the subresults of a tree
        if is_changed:
            self._interval = INTERVAL
            if self._join.uses_orders:
                self._pipelines.return_to(instant)
        else:
            self._interval = min(2 * self._interval, LONGEST * INTERVAL)
            self.reoptimizer.start_over()

    def describe(self) -> tuple[str, ...]:
        """What plans were thought to cost when the tree was last looked at, and what the present one did."""
        told = self.reoptimizer
        if not told.expected or told.best_tree is None:
            return ()
        unit = "ns" if self.executor.measures_time else "units"
        kinds = [f"{kind.value} {cost:,.1f}" for kind, cost in told.expected.items() if kind in told.open_kinds()]
        tree = f"{self.executor.plan_text(told.best_tree)} {told.expected[Kind.TREE]:,.1f}"
        measured = "" if told.measured is None else f"; measured {told.measured:,.1f}"
        return (f"expected, {unit} an element: {', '.join([*kinds, tree])}{measured}",)
