"""The adaptive loop: one for each place where a plan can change, whatever the technique. Babu 2005, section 3.1.

It joins an Executor, a Profiler and a Re-optimizer, and owns what all techniques have in common: when adapting begins
to pay, what share of the time deciding may take, how long who finds nothing rests, and when a plan may not change, for
somebody pinned it, or a test forces others. What differs between techniques is a value, the `Budget`.

Invariant: whatever plan runs, the answer is the same (docs/semantics T5); where time is not measured, nothing waits for
it, and the same tuples give the same decisions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.forcing import Forcing
from minidsms.streamon.framework import Executor, Profiler, Reoptimizer
from minidsms.streamon.plan_log import Decision
from minidsms.streamon.stream_monitor import StreaMon

P = TypeVar("P", bound=Hashable)

ENOUGH = 32_768
"""Tuples behind a switch over which the new plan's cost is measured."""


@dataclass(frozen=True)
class Budget:
    """What a technique may take of the time of what it adapts: its whole policy.

    worth_tuples, or worth_ns of time spent: from which adapting pays.  share: of the time, what deciding takes where
    nothing has changed; urgent: this share more while the plan is not known to be good; promised: this share more of
    what is promised to be saved.  credit_ns: granted beyond all shares when conditions have changed.
    """

    worth_tuples: int = 32_768
    worth_ns: int | None = None
    share: float = 0.01
    urgent: float = 0.0
    promised: float = 0.0
    credit_ns: int = 0


DEFAULT = Budget()
CREDITS = 2
"""What is granted at most is so many credits, and the urgent share of the time."""
REST, LONGEST_REST = 8_192, 65_536
"""Elements: of the first rest, and of the longest."""


class Rest:
    """How long whoever found nothing to change is left alone: each time twice as long, until something changes."""

    def __init__(self) -> None:
        self._length = REST

    def longer(self) -> int:
        """Elements to rest now; the next time it is longer."""
        length = self._length
        self._length = min(2 * length, LONGEST_REST)
        return length

    def wake(self) -> None:
        """Something has changed."""
        self._length = REST


@dataclass
class _Watch:
    """A switch whose gain is being measured. before: cost per tuple of the old plan; units, tuples: spent at the
    switch.
    """

    decision: Decision
    before: float
    units: float
    tuples: int


class Loop(Generic[P]):
    """One place where a plan can change while it runs.

    The executor's owner calls `limit` before it hands on tuples and `passed` after; between the two the plan stays.
    budget: what deciding may take of the executor's time.  decided_ns: what it has taken.  measures_time: costs are
    nanoseconds; else steps are counted, and nothing is waited for.  changes: of conditions, noticed by whoever watches
    the place.  switches: of the plan.
    """

    def __init__(
        self,
        technique: str,
        operator: str,
        executor: Executor[P],
        profiler: Profiler,
        reoptimizer: Reoptimizer[P],
        streamon: StreaMon,
        budget: Budget = DEFAULT,
    ) -> None:
        self.technique = technique
        self.operator = operator
        self.query = ""
        self.executor = executor
        self.profiler = profiler
        self.reoptimizer = reoptimizer
        self.decisions: list[Decision] = []
        self.budget = budget
        self.rest = Rest()
        self.decided_ns = 0
        self.changes = 0
        self.switches = 0
        self.measures_time = streamon.settings["cost_model"] == "measured"
        self._granted_ns = 0.0
        self._streamon = streamon
        self.is_pinned = False
        """Somebody asked for the plan to stay."""
        self._forcing: Forcing | None = None
        self._watch: _Watch | None = None
        self._mark = (0.0, 0)
        self._unmeasured = 0
        """Tuples until costs are looked at."""

    # ------------------------------------------------------------------------------------------------ the plan's life

    @property
    def is_free(self) -> bool:
        """The Re-optimizer may change the plan: nobody pinned or forces it, and the connection is adaptive."""
        return not self.is_pinned and self._streamon.is_adaptive and self._forced() is None

    @property
    def is_measuring(self) -> bool:
        """What the last switch gained is not known yet."""
        return self._watch is not None

    def pin(self, plan: P | None = None) -> None:
        """Stay with a plan, the present one unless told. ValueError if it is not legal."""
        if plan is not None and not self.executor.is_legal(plan):
            raise ValueError(f"{plan!r} is no plan for {self.operator}")
        if plan is not None and plan != self.executor.plan:
            self._change(plan, "pinned", self._streamon.instant, None)
        self.is_pinned = True

    def unpin(self) -> None:
        """Adapt again."""
        self.is_pinned = False

    def limit(self, tuples: int) -> int:
        """How many of the tuples that wait may be handed on before the plan must be looked at; at least 1."""
        forcing = self._forced()
        return tuples if forcing is None else min(tuples, forcing.left)

    def passed(self, tuples: int, instant: int) -> None:
        """So many tuples were handed on under the plan. instant: of the first of them."""
        self._streamon.instant = instant
        forcing = self._forced()
        if forcing is not None and forcing.count(tuples):
            plan = forcing.next_plan(self.executor.random_plan)
            if plan != self.executor.plan and self.executor.is_legal(plan):
                self._change(plan, "forced", instant, None)
        self._unmeasured -= tuples
        if self._unmeasured <= 0:
            self._measure()

    def reconsider(self, instant: int) -> bool:
        """Ask the Re-optimizer, where the plan is free; whether the plan has changed."""
        if not self.is_free:
            return False
        proposal = self.reoptimizer.propose()
        if proposal is None or proposal.plan == self.executor.plan:
            return False
        text = self.executor.plan_text
        costs = {text(plan): cost for plan, cost in sorted(proposal.considered, key=lambda each: each[1])}
        self._change(proposal.plan, proposal.reason, instant, proposal.expected_gain, costs)
        return True

    def take(self, plan: P, reason: str) -> None:
        """Change to a plan that nobody proposed."""
        self._change(plan, reason, self._streamon.instant, None)

    # -------------------------------------------------------------------------------------------------- its budget

    def is_worth_it(self, waiting: int = 0) -> bool:
        """Enough tuples have passed, with those that wait, or enough time: adapting can pay."""
        units, tuples = self.executor.spent()
        budget = self.budget
        if not self.measures_time or tuples + waiting >= budget.worth_tuples:
            return True
        return budget.worth_ns is not None and units > budget.worth_ns

    def is_promising(self, saved_ns: float, takes_ns: float) -> bool:
        """A plan that could have saved so much until now promises to pay for looking for it."""
        return not self.measures_time or self.budget.promised * saved_ns >= takes_ns

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Profiling and choosing: its time counts against the budget."""
        began = thread_ns()
        try:
            yield
        finally:
            self.decided_ns += thread_ns() - began

    def is_affordable(self, urgency: float = 0.0, promise: float = 0.0) -> bool:
        """Deciding has not taken its share yet.  urgency, promise: how much of these shares count, from 0 to 1."""
        if not self.measures_time:
            return True
        return self.decided_ns - self._granted_ns < self._share(urgency, promise) * self.executor.spent()[0]

    def waits(self, urgency: float = 0.0, promise: float = 0.0) -> int:
        """Tuples until deciding has taken its share at most, if these cost what those before did."""
        units, tuples = self.executor.spent()
        if not self.measures_time or units <= 0:
            return 0
        missing = (self.decided_ns - self._granted_ns) / self._share(urgency, promise) - units
        return max(0, int(missing * tuples / units))

    def grant(self) -> bool:
        """Conditions have changed: deciding may take a credit beyond its share. False where that happens so often that
        it would take more than what is urgent may.
        """
        budget = self.budget
        most = CREDITS * budget.credit_ns + budget.urgent * (self.executor.spent()[0] if self.measures_time else 0.0)
        if self._granted_ns >= most and budget.credit_ns:
            return False
        self._granted_ns = min(self._granted_ns + budget.credit_ns, most)
        return True

    def _share(self, urgency: float, promise: float) -> float:
        budget = self.budget
        return budget.share + budget.urgent * urgency + budget.promised * promise

    # ---------------------------------------------------------------------------------------------------- inside

    def _forced(self) -> Forcing | None:
        asked = self._streamon.forcing
        if asked is None:
            self._forcing = None
        elif self._forcing is None or self._forcing.of is not asked:
            self._forcing = asked.begin(self.technique)
        return self._forcing

    def _change(
        self, plan: P, reason: str, instant: int, expected_gain: float | None, costs: Mapping[str, float] | None = None
    ) -> None:
        executor = self.executor
        before = self._cost_since(self._mark)
        statistics = dict(self.profiler.statistics())
        if costs:
            statistics["considered"] = costs
        old = executor.plan_text(executor.plan)
        executor.switch(plan)
        self.switches += 1
        self.reoptimizer.adopt(plan)
        decision = self._streamon.plan_log.add(
            instant,
            (self.query, self.operator, self.technique),
            reason,
            (old, executor.plan_text(plan)),
            statistics=statistics,
            expected_gain=expected_gain,
        )
        self.decisions.append(decision)
        del self.decisions[: -self._streamon.decisions_kept]
        self._mark = executor.spent()
        self._watch = None if before is None else _Watch(decision, before, *self._mark)
        self._unmeasured = ENOUGH

    def _cost_since(self, mark: tuple[float, int]) -> float | None:
        units, tuples = self.executor.spent()
        return (units - mark[0]) / (tuples - mark[1]) if tuples > mark[1] else None

    def _measure(self) -> None:
        """The gain of the last switch, once enough tuples have passed; costs are remembered of the recent past only."""
        units, tuples = self.executor.spent()
        watch = self._watch
        if watch is not None and tuples - watch.tuples >= ENOUGH:
            after = (units - watch.units) / (tuples - watch.tuples)
            watch.decision.measured_gain = 1 - after / watch.before if watch.before > 0 else None
            self._watch = None
        if self._watch is None and tuples - self._mark[1] >= 4 * ENOUGH:
            self._mark = (units, tuples)
        self._unmeasured = self._mark[1] + (4 * ENOUGH if self._watch is None else ENOUGH) - tuples


def adaptations_of(operators: Iterable[object]) -> list[Loop[Any]]:
    """Every place in these operators where a plan can change: of those that are `operators.adaptivity.Adaptive`."""
    found: list[Loop[Any]] = []
    for operator in operators:
        adaptations = getattr(operator, "adaptations", None)  # to ask of a protocol takes twenty times as long
        if adaptations is not None:
            found += adaptations()
        compilation = getattr(operator, "compilation", None)
        if compilation is not None:
            found.append(compilation.adaptation)
    return found


def name_places(query: str, operators: Iterable[object]) -> None:
    """A query runs these operators: the plan log names decisions by the first query that does."""
    for adaptation in adaptations_of(operators):
        adaptation.query = adaptation.query or query
