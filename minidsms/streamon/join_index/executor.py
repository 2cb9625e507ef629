"""The Executor of patterns: an n-way join that indexes those of the plan.

Invariant: all patterns are of the present orders; what the join puts out does not depend on them (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from minidsms.elements import Schema
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Index, JoinPlan, Key, Patterns
from minidsms.streamon.meter import Meter
from minidsms.synopses.bit_addresses import Bits


class IndexedJoin(Protocol):
    """What an n-way join gives."""

    @property
    def graph(self) -> JoinGraph:
        """Its inputs and what links them."""

    @property
    def plan(self) -> JoinPlan:
        """What runs."""

    @property
    def uses_orders(self) -> bool:
        """Pipelines run, and probe."""

    def take_index(self, index: Index) -> None:
        """Index these patterns from the next slice on, and no others."""


class IndexExecutor:
    """names: of the inputs; schemas: theirs, for plans in words.  meter: of the join."""

    def __init__(self, join: IndexedJoin, names: Sequence[str], schemas: Sequence[Schema], meter: Meter) -> None:
        self.join = join
        self.names = tuple(names)
        self._schemas = tuple(schemas)
        self._meter = meter

    @property
    def plan(self) -> Index:
        """The patterns of each input."""
        return self.join.plan.index

    @property
    def able(self) -> tuple[Patterns, ...]:
        """All patterns that the pipelines probe; none where a tree runs."""
        return self.join.graph.patterns(self.join.plan.orders) if self.join.uses_orders else ()

    def switch(self, plan: Index) -> None:
        """Index these."""
        self.join.take_index(plan)

    def is_legal(self, plan: object) -> bool:
        """Patterns of the present orders; () or a tuple for each input."""
        able = self.able
        if not isinstance(plan, tuple) or not plan or not able:
            return plan == ()
        return any(plan) and self.join.graph.is_index(plan, self.join.plan.orders)

    def random_plan(self, rng: Random) -> Index:
        """Any of them."""
        chosen = tuple(tuple(key for key in keys if rng.random() < 0.6) for keys in self.able)
        return chosen if any(chosen) else ()

    def key_text(self, j: int, key: Key) -> str:
        """(a, b)"""
        return f"({', '.join(self._schemas[j].names[c] for c in key)})"

    def plan_text(self, plan: Index) -> str:
        """S: (a, b), T: (a, c), (a, b, c); or none."""
        told = [f"{self.names[j]}: {self.index_text(j, each)}" for j, each in enumerate(plan) if each]
        return "; ".join(told) or "no patterns"

    def index_text(self, j: int, each: Patterns | Bits) -> str:
        """(a, b), (a, c); or bits: a 4, b 0, c 5."""
        if isinstance(each, Bits):
            columns = self.join.graph.columns(j)
            told = ", ".join(f"{self._schemas[j].names[c]} {bits}" for c, bits in zip(columns, each.of))
            return f"bits of {told}"
        return ", ".join(self.key_text(j, key) for key in each)

    def spent(self) -> tuple[float, int]:
        """Nanoseconds of joining, or slots inspected and tuples where time is not measured; elements taken."""
        return self._meter.spent()
