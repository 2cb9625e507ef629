"""The Executor of patterns: an n-way join that indexes those of the plan.

Invariant: all patterns are of the present orders; what the join puts out does not depend on them (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from minidsms.elements import Schema
from minidsms.joins.join import Join
from minidsms.joins.plan import Index, Key, Patterns
from minidsms.kernels.access_methods.bit_addresses import MOST_BITS, Bits
from minidsms.streamon.meter import JoinExecutor, Meter


class IndexExecutor(JoinExecutor):
    """names: of the inputs; schemas: theirs, for plans in words.  meter: of the join."""

    def __init__(self, join: Join, names: Sequence[str], schemas: Sequence[Schema], meter: Meter) -> None:
        super().__init__(join, names, meter)
        self._schemas = tuple(schemas)

    @property
    def plan(self) -> Index:
        """The patterns of each input."""
        return self.join.plan.index

    @property
    def able(self) -> tuple[Patterns, ...]:
        """All patterns that the pipelines probe; none where a tree runs."""
        return self.join.graph.patterns(self.join.plan.orders) if self.join.uses_orders else ()

    def switch(self, plan: Index) -> None:
        """Index these; under bits all rows, at once."""
        self.join.take_index(plan)
        for i, configurations in enumerate(self.join.index.configurations):
            if len(configurations) > 1:
                self.join.migrate(i, self._migrating(i))

    def _migrating(self, i: int) -> list[int]:
        """The configurations of input i whose rows are stored anew."""
        return [number for number, _ in self.join.index.configurations[i]]

    def is_legal(self, plan: object) -> bool:
        """Patterns of the present orders, or bits; () or a tuple for each input."""
        able = self.able
        if not isinstance(plan, tuple) or not plan or not able:
            return plan == ()
        if any(isinstance(each, Bits) for each in plan) and not self.can_have_bits:
            return False
        return any(plan) and self.join.graph.is_index(plan, self.join.plan.orders)

    @property
    def can_have_bits(self) -> bool:
        """Rows may be found by bit addresses: there are no caches, which look them up by keys, and nothing is kept."""
        return self.join.uses_orders and not self.join.plan.caches and self.join.graph.has_addresses

    def random_plan(self, rng: Random) -> Index:
        """Any of them."""
        if self.join.graph.has_banded_patterns:
            return rng.choice(((), self.able))
        if self.can_have_bits and rng.random() < 0.3:
            return self.random_bits(rng)
        chosen = tuple(tuple(key for key in keys if rng.random() < 0.6) for keys in self.able)
        return chosen if any(chosen) else ()

    def random_bits(self, rng: Random) -> Index:
        """None at all, all of one column, or some of each: of small windows more than they have rows."""
        graph = self.join.graph
        plan = []
        for j in range(graph.n):
            n = len(graph.columns(j))
            most = rng.choice((0, 2, 2, 5))
            bits = [rng.randint(0, most) for _ in range(n)]
            if rng.random() < 0.3:
                chosen = rng.randrange(n)
                bits = [most if k == chosen else 0 for k in range(n)]
            while sum(bits) > MOST_BITS:
                bits[bits.index(max(bits))] -= 1
            plan.append(Bits(tuple(bits)))
        return tuple(plan)

    def key_text(self, j: int, key: Key) -> str:
        """(a, b), (a, cells of x)"""
        bands = self.join.graph.bands
        cells = {
            ~n: f"cells of {self._schemas[j].names[c]}" for n, b in enumerate(bands) for i, c in (b.a, b.b) if i == j
        }
        told = [cells[c] if c in cells else self._schemas[j].names[c] for c in sorted(key, key=lambda c: c < 0)]
        return f"({', '.join(told)})"

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
