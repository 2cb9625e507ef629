"""StreaMon's three components as contracts, and the joint that runs any instance of them. Babu 2005, section 3.1.

    Executor       runs the plan it was given, and can switch to another between any two tuples
    Profiler       keeps the statistics that its Re-optimizer rests on
    Reoptimizer    says which plan these statistics ask for, or nothing
    Adaptation     joins the three for one place in one query's plan: asks, switches, logs, can be pinned and forced

A technique (ordering of filters, caches in joins, k-constraints, routing by content, ..) brings its own three in a
folder of its own. Plans are values: hashable, and alike when equal.

Invariant: whatever plan runs, the answer is the same (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from minidsms.streamon.forcing import Forcing
from minidsms.streamon.plan_log import Decision
from minidsms.streamon.stream_monitor import StreaMon

P = TypeVar("P", bound=Hashable)

ENOUGH = 32_768
"""Tuples behind a switch over which the new plan's cost is measured."""


class Executor(Protocol[P]):
    """Runs the current plan."""

    @property
    def plan(self) -> P:
        """What runs."""

    def switch(self, plan: P) -> None:
        """Run this plan, a legal one, from the next tuple on."""

    def is_legal(self, plan: object) -> bool:
        """It is a plan for this place."""

    def random_plan(self, rng: Random) -> P:
        """Any legal plan, each as likely as another."""

    def plan_text(self, plan: P) -> str:
        """A plan in words, short."""

    def spent(self) -> tuple[float, int]:
        """(cost units, tuples) since the beginning: their ratio over a while is the plan's unit-time cost per tuple."""


class Profiler(Protocol):
    """Keeps statistics."""

    def statistics(self) -> Mapping[str, Any]:
        """What is known now, by name, for the plan log."""


@dataclass(frozen=True)
class Proposal(Generic[P]):
    """A plan that the statistics ask for. expected_gain: the share of the present cost that it saves, or None."""

    plan: P
    reason: str
    expected_gain: float | None


class Reoptimizer(Protocol[P]):
    """Decides."""

    def propose(self) -> Proposal[P] | None:
        """A better plan than the present one; None where there is none, or too little is known."""

    def adopt(self, plan: P) -> None:
        """Another plan runs than the last one proposed: it was pinned or forced."""


@dataclass
class _Watch:
    """A switch whose gain is being measured. before: cost per tuple of the old plan; units, tuples: spent at the
    switch.
    """

    decision: Decision
    before: float
    units: float
    tuples: int


class Adaptation(Generic[P]):
    """One place where a plan can change while it runs.

    The executor's owner calls `limit` before it hands on tuples and `passed` after; between the two the plan stays.
    """

    def __init__(
        self,
        technique: str,
        operator: str,
        executor: Executor[P],
        profiler: Profiler,
        reoptimizer: Reoptimizer[P],
        streamon: StreaMon,
    ) -> None:
        self.technique = technique
        self.operator = operator
        self.query = ""
        self.executor = executor
        self.profiler = profiler
        self.reoptimizer = reoptimizer
        self.decisions: list[Decision] = []
        self._streamon = streamon
        self._pinned = False
        self._forcing: Forcing | None = None
        self._watch: _Watch | None = None
        self._mark = (0.0, 0)

    # ------------------------------------------------------------------------------------------------ the plan's life

    @property
    def is_free(self) -> bool:
        """The Re-optimizer may change the plan: nobody pinned or forces it, and the connection is adaptive."""
        return not self._pinned and self._streamon.is_adaptive and self._forced() is None

    @property
    def is_pinned(self) -> bool:
        """Somebody asked for the plan to stay."""
        return self._pinned

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
        self._pinned = True

    def unpin(self) -> None:
        """Adapt again."""
        self._pinned = False

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
        self._measure()

    def reconsider(self, instant: int) -> bool:
        """Ask the Re-optimizer, where the plan is free; whether the plan has changed."""
        if not self.is_free:
            return False
        proposal = self.reoptimizer.propose()
        if proposal is None or proposal.plan == self.executor.plan:
            return False
        self._change(proposal.plan, proposal.reason, instant, proposal.expected_gain)
        return True

    # ---------------------------------------------------------------------------------------------------- inside

    def _forced(self) -> Forcing | None:
        asked = self._streamon.forcing
        if asked is None:
            self._forcing = None
        elif self._forcing is None or self._forcing.of is not asked:
            self._forcing = asked.begin(self.technique)
        return self._forcing

    def _change(self, plan: P, reason: str, instant: int, expected_gain: float | None) -> None:
        executor = self.executor
        before = self._cost_since(self._mark)
        statistics = dict(self.profiler.statistics())
        old = executor.plan_text(executor.plan)
        executor.switch(plan)
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


@runtime_checkable
class Adaptive(Protocol):
    """An operator whose plan can change while it runs."""

    def adaptations(self) -> tuple[Adaptation[Any], ...]:
        """The places where it can."""


def adaptations_of(operators: Iterable[object]) -> list[Adaptation[Any]]:
    """Every place in these operators where a plan can change."""
    return [a for operator in operators if isinstance(operator, Adaptive) for a in operator.adaptations()]


def name_places(query: str, operators: Iterable[object]) -> None:
    """A query runs these operators: the plan log names decisions by the first query that does."""
    for adaptation in adaptations_of(operators):
        adaptation.query = adaptation.query or query
