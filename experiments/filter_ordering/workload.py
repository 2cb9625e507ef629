"""Streams and filters of known statistics. Babu 2005, sections 4.7.2 to 4.7.4, table 4.1.

A tuple is a value of a domain of 20,000; filter F_i passes it if its table, a window of 10,000 where the selectivity is
50 %, holds the value. Which values are in which tables comes from a model of correlated filters, so that the statistics
of the stream are those of the domain, exactly known. With a period, the tables change places among the filters after
each so many tuples; what a filter costs stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from experiments.filter_ordering.known_filters import CorrelatedFilters
from experiments.filter_ordering.probing import SLOTS, BoolArray, Int64Array, fill
from minidsms.expressions.routes import Order
from minidsms.streamon.filter_ordering.optimal import best_order

DOMAIN = 20_000


@dataclass(frozen=True)
class Phase:
    """Tuples between two changes. values: (m,).  tables: (n, SLOTS).  drops: (DOMAIN, n), what they do."""

    values: Int64Array
    tables: Int64Array
    drops: BoolArray


@dataclass(frozen=True)
class Workload:
    """selectivities, group_size: see `CorrelatedFilters`.  costs: (n,) probes per tuple, 1 unless given.  period:
    tuples between changes, none unless given.  conditions: so many places of the tables come by turns; ever new ones
    unless given.
    """

    selectivities: tuple[float, ...]
    tuples: int
    group_size: int = 2
    costs: tuple[int, ...] | None = None
    period: int | None = None
    conditions: int | None = None
    seed: int = 0

    @property
    def n(self) -> int:
        """Filters."""
        return len(self.selectivities)

    @property
    def probes(self) -> Int64Array:
        """(n,) what each filter costs."""
        return np.ones(self.n, np.int64) if self.costs is None else np.array(self.costs, np.int64)

    def phases(self) -> Iterator[Phase]:
        """The stream, from change to change; the same every time."""
        rng = np.random.default_rng(self.seed)
        drops = CorrelatedFilters(self.selectivities, self.group_size).drops(DOMAIN, rng)
        drops = drops[:, rng.permutation(self.n)]
        tables = np.empty((self.n, SLOTS), np.int64)
        for f in range(self.n):
            fill(tables[f], ~drops[:, f])
        left = self.tuples
        seen: list[tuple[Int64Array, BoolArray]] = []
        while left:
            taken = min(self.period or left, left)
            yield Phase(rng.integers(0, DOMAIN, taken), tables, drops)
            left -= taken
            if self.conditions:
                seen.append((tables, drops))
                if len(seen) == self.conditions:
                    tables, drops = seen.pop(0)
                    continue
            places = rng.permutation(self.n)
            tables, drops = np.ascontiguousarray(tables[places]), drops[:, places]

    def best_order(self, phase: Phase) -> Order:
        """The cheapest order for a phase's true statistics."""
        return best_order(phase.drops.astype(np.uint8), self.probes.astype(np.float64))
