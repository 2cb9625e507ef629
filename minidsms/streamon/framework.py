"""StreaMon's three components as contracts. Babu 2005, section 3.1, figure 3.1.

    Executor       runs the plan it was given, and can switch to another between any two tuples
    Profiler       keeps the statistics that its Re-optimizer rests on
    Reoptimizer    says which plan these statistics ask for, or nothing

A technique (ordering of filters, caches in joins, k-constraints, routing by content, ..) brings its own three in a
folder of its own, in files of these names; `streamon.loop` runs them. Plans are values: hashable, and alike when equal.

Invariant: whatever plan runs, the answer is the same (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, Protocol, TypeVar

P = TypeVar("P", bound=Hashable)


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
    """A plan that the statistics ask for. expected_gain: the share of the present cost that it saves, or None.

    considered: plans with what a tuple costs under each by the same statistics, where these tell: the present one, the
    one proposed and others. Of many plans those next to the one proposed.
    """

    plan: P
    reason: str
    expected_gain: float | None
    considered: Sequence[tuple[P, float]] = ()


class Reoptimizer(Protocol[P]):
    """Decides."""

    def propose(self) -> Proposal[P] | None:
        """A better plan than the present one; None where there is none, or too little is known."""

    def adopt(self, plan: P) -> None:
        """Another plan runs than the last one proposed: it was pinned or forced."""
