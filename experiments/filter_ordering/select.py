"""A select operator whose filters an algorithm orders, and what its time goes into.

Tuples are processed block by block in the current order. Of those that are dropped a share is sampled; when so many
samples are together they are made profile tuples in bulk, filter by filter, each filter's time being measured on all of
them, and the algorithm may give another order. Babu 2005, sections 4.3.1 and 4.3.4, figure 4.10.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.filter_ordering import probing
from experiments.filter_ordering.probing import BoolArray, Int64Array
from experiments.filter_ordering.workload import DOMAIN, Phase, Workload
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderingAlgorithm
from minidsms.streamon.filter_ordering.a_greedy import AGreedy
from minidsms.streamon.filter_ordering.independent import Independent
from minidsms.streamon.filter_ordering.local_swaps import LocalSwaps
from minidsms.streamon.filter_ordering.plan_logged import PlanLogged
from minidsms.streamon.filter_ordering.static import Static
from minidsms.streamon.filter_ordering.sweep import Sweep

ALGORITHMS: dict[str, Callable[[int], OrderingAlgorithm]] = {
    "A-Greedy": AGreedy,
    "Sweep": Sweep,
    "LocalSwaps": LocalSwaps,
    "Independent": Independent,
}
LOGGED = "A-Greedy, plan log"
OPTIMAL = "Optimal"
"""Not an algorithm here: a static order that is told the true statistics."""

NEVER = 1 << 60


@dataclass
class Spent:
    """CPU seconds.  processing: of tuples.  profiling: making profile tuples.  reoptimizing: all the algorithm does."""

    processing: float = 0.0
    profiling: float = 0.0
    reoptimizing: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.processing + self.profiling + self.reoptimizing


@dataclass
class Outcome:
    """Of a run over a workload. evaluated, probes: per block.  orders: how often the order changed."""

    spent: Spent
    evaluated: Int64Array
    probes: Int64Array
    tuples: int
    orders: int = 0

    @property
    def rate(self) -> float:
        """Tuples per second."""
        return self.tuples / self.spent.total


class Select:
    """measured: filters' times are measured; else they are what the workload says, so that a run can be repeated to
    the tuple. rate: share of dropped tuples to profile (None: the algorithm's own).  block: tuples processed in an
    order, at least.  bulk: sampled tuples that are made profile tuples together, at least.
    """

    def __init__(
        self,
        workload: Workload,
        name: str,
        rate: float | None = None,
        measured: bool = False,
        block: int = 2000,
        bulk: int = 20,
    ) -> None:
        self.workload = workload
        self.name = name
        self.algorithm: OrderingAlgorithm = _algorithm(name, workload.n)
        self.rate = self.algorithm.default_rate if rate is None else rate
        self.measured = measured
        self.block = block
        self.bulk = bulk
        self.spent = Spent()
        self.profiled: list[tuple[BoolArray, Float64Array]] | None = None
        """What the algorithm was told, if somebody wants to keep it."""
        self._rng = np.random.default_rng(workload.seed + 1)
        self._waiting: list[Int64Array] = []
        self._orders = 0
        self._skip = self._gaps(1)[0] if self.rate > 0 else NEVER

    def run(self, warm_up: int = 0) -> Outcome:
        """All tuples, the first `warm_up` of them not counted."""
        sampled = np.empty(self.block, np.int64)
        gaps = self._gaps(self.block) if self.rate > 0 else np.full(self.block, NEVER)
        counts = np.zeros(4, np.int64)
        evaluated: list[int] = []
        probes: list[int] = []
        done = counted = 0
        costs = self.workload.probes
        for phase in self.workload.phases():
            if self.name == OPTIMAL:
                self.algorithm.adopt(self.workload.best_order(phase))
            for start in range(0, len(phase.values), self.block):
                values = phase.values[start : start + self.block]
                if done <= warm_up < done + len(values):
                    self.spent, self._orders, counted = Spent(), 0, 0
                    evaluated.clear()
                    probes.clear()
                began = time.process_time()
                order = np.array(self.algorithm.order)
                k = probing.select(values, phase.tables, costs, DOMAIN, order, gaps, self._skip, sampled, counts)
                self.spent.processing += time.process_time() - began
                self._skip = int(counts[2])
                if k:
                    self._waiting.append(sampled[:k].copy())
                    gaps[:k] = self._gaps(k)
                    self._reoptimize(phase)
                evaluated.append(int(counts[0]))
                probes.append(int(counts[1]))
                done += len(values)
                counted += len(values)
        return Outcome(self.spent, np.array(evaluated), np.array(probes), counted, self._orders)

    def _gaps(self, k: int) -> Int64Array:
        """How many dropped tuples lie between two samples."""
        return np.array(self._rng.geometric(self.rate, k) - 1, np.int64)

    def _reoptimize(self, phase: Phase) -> None:
        """Make profile tuples of the samples once there are enough, and let the algorithm see them."""
        if sum(map(len, self._waiting)) < self.bulk:
            return
        began = time.process_time()
        drops, costs = self._profile(np.concatenate(self._waiting), phase)
        self._waiting = []
        made = time.process_time()
        self._orders += self.algorithm.observe(drops, costs) is not None
        self.spent.profiling += made - began
        self.spent.reoptimizing += time.process_time() - made
        if self.profiled is not None:
            self.profiled.append((drops, costs))

    def _profile(self, values: Int64Array, phase: Phase) -> tuple[BoolArray, Float64Array]:
        """Profile tuples: the filters that the algorithm wants on each, and the time each of them took."""
        wanted, order = self.algorithm.wanted(), self.algorithm.order
        drops = np.zeros((len(values), len(order)), np.bool_)
        costs = np.full(len(order), np.nan)
        everyone = np.arange(len(values))
        alive = before = everyone
        for f in order:
            if wanted.evaluate is Evaluate.ALL or (wanted.evaluate is Evaluate.ONE and f == wanted.filter):
                rows = everyone
            else:
                rows = before if wanted.evaluate is Evaluate.NEXT else alive
            before = alive
            if len(rows):
                drops[rows, f], costs[f] = self._evaluate(values[rows], f, phase)
                alive = alive[~drops[alive, f]]
        return drops[drops.any(axis=1)], costs

    def _evaluate(self, values: Int64Array, f: int, phase: Phase) -> tuple[BoolArray, float]:
        """One filter, and its time per tuple."""
        drops = np.empty(len(values), np.bool_)
        cost = int(self.workload.probes[f])
        began = time.perf_counter_ns()
        probing.evaluate(values, phase.tables[f], cost, DOMAIN, drops)
        took = time.perf_counter_ns() - began
        return drops, took / len(values) if self.measured else float(cost)


def _algorithm(name: str, n: int) -> OrderingAlgorithm:
    if name == LOGGED:
        return PlanLogged(n, lambda order: AGreedy(n, order))
    return ALGORITHMS.get(name, Static)(n)
