"""The Executor, the Profiler and the Re-optimizer of bits: joins whose windows are indexed by bit addresses.

The Profiler counts the requests that the pipelines make, the Re-optimizer selects bits by C_D, and the Executor stores
the rows anew that are worth it. Works, Rundensteiner and Agu 2012 (AMRI).

Invariant: what the join puts out does not depend on the bits (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from minidsms.elements import Schema
from minidsms.joins.join import Join
from minidsms.joins.plan import Index
from minidsms.kernels.access_methods.bit_addresses import MOST_BITS, Bits
from minidsms.settings import SettingValues
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_index.assessment import Assessment, assessment
from minidsms.streamon.join_index.executor import IndexExecutor
from minidsms.streamon.join_index.reoptimizer import COSTS
from minidsms.streamon.join_index.selection import Workload, dependent_costs, select
from minidsms.streamon.join_index.tuning import migrating
from minidsms.streamon.meter import Meter

STORED_NS = 12.0
"""Of a row put at an address."""
LEAST_GAIN = 0.05
"""Of an input's C_D, that other bits must save."""
FIRST_BITS = 6
"""Of an address while nothing is known."""


class BitsProfiler:
    """assessments: by input.  workloads: by input, as of the last assessment that was complete."""

    def __init__(self, join: Join, names: Sequence[str], settings: SettingValues) -> None:
        self.workloads: dict[int, Workload] = {}
        self._join = join
        self._names = tuple(names)
        self._settings = settings
        self._rng = Random(settings["seed"])
        self.assessments = [self._begin() for _ in names]

    def complete(self, inputs: Iterable[int], arrived: Sequence[int], requests: Sequence[int]) -> None:
        """Tell what was counted of these inputs, in a while in which so many rows came and requests were made."""
        for i in sorted(inputs):
            counted = self.assessments[i]
            if counted.seen:
                rows = len(self._join.index.windows[i])
                self.workloads[i] = Workload(arrived[i], requests[i], rows, counted.frequencies())
            self.assessments[i] = self._begin()

    def _begin(self) -> Assessment:
        settings = self._settings
        error, threshold = settings["index_error"], settings["index_threshold"]
        return assessment(settings["index_assessment"], error, threshold, self._rng)

    def statistics(self) -> Mapping[str, Any]:
        """Of each input the share of its requests by the columns that they know."""
        told = {}
        for i, workload in self.workloads.items():
            columns = self._join.graph.columns(i)
            told[self._names[i]] = {
                tuple(c for k, c in enumerate(columns) if pattern >> k & 1): round(share, 3)
                for pattern, share in workload.frequencies.items()
            }
        return told


class BitsExecutor(IndexExecutor):
    """Runs bits. migration: which rows are stored anew."""

    def __init__(
        self, join: Join, names: Sequence[str], schemas: Sequence[Schema], meter: Meter,
        profiler: BitsProfiler, migration: str,
    ) -> None:  # fmt: skip
        super().__init__(join, names, schemas, meter)
        self._profiler = profiler
        self._migration = migration

    def first(self) -> Index:
        """As many bits of each column, while nothing is known."""
        graph = self.join.graph
        columns = [len(graph.columns(j)) for j in range(graph.n)]
        return tuple(Bits(tuple((FIRST_BITS + k) // n for k in range(n))) for n in columns)

    def _migrating(self, i: int) -> list[int]:
        """Those for which it is worth it."""
        index = self.join.index
        stored = index.partitions(i)
        total, older = sum(stored.values()), 0
        partitions = {}
        for number, bits in reversed(index.configurations[i]):
            rows = stored.get(number, 0)
            # Rows leave in the order they came: the oldest are asked for the shortest while.
            partitions[number] = bits.of, rows, (older + rows / 2) / max(total, 1)
            older += rows
        best = index.configurations[i][0][1].of
        workload = self._profiler.workloads.get(i, Workload(0.0, 0.0, 0.0, {}))
        lives = len(index.windows[i]) / max(workload.arrived, 1.0)
        asked = Workload(0.0, workload.requests * lives, workload.rows, workload.frequencies)
        return migrating(self._migration, partitions, best, asked, COSTS, STORED_NS)

    def is_legal(self, plan: object) -> bool:
        """Bits for each input that it can have."""
        if not isinstance(plan, tuple) or not all(isinstance(each, Bits) for each in plan):
            return False
        return self.join.uses_orders and self.join.graph.is_index(plan, self.join.plan.orders)

    def random_plan(self, rng: Random) -> Index:
        """Any bits."""
        return self.random_bits(rng)


@dataclass
class BitsReoptimizer:
    """complete: the inputs whose workloads are new."""

    executor: BitsExecutor
    profiler: BitsProfiler
    complete: frozenset[int] = field(default=frozenset())

    def propose(self) -> Proposal[Index] | None:
        """The best bits of the inputs that were assessed, where these save enough."""
        plan = list(self.executor.plan)
        before = after = 0.0
        for i in sorted(self.complete & self.profiler.workloads.keys()):
            workload, now = self.profiler.workloads[i], plan[i]
            assert isinstance(now, Bits)
            # With twice as many addresses as rows a request that was not counted costs what a few scans do.
            most = min(MOST_BITS, int(workload.rows).bit_length() + 1)
            best = Bits(select(len(now.of), most, workload, COSTS))
            cost, least = dependent_costs(np.array([now.of, best.of], np.int64), workload, COSTS)
            if cost - least >= LEAST_GAIN * cost:
                plan[i] = best
                before, after = before + float(cost), after + float(least)
        if tuple(plan) == self.executor.plan or not before:
            return None
        return Proposal(tuple(plan), "c_d: other bits cost less", 1 - after / before)

    def adopt(self, plan: Index) -> None:
        """Other bits are there."""
