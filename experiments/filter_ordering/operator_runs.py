"""The same workloads through the engine: a query whose conjuncts are user functions that probe the tables.

What is measured is the CPU time of `push` and `advance`: input, the select operator with all its profiling, and
delivery. The functions count the tuples they are asked about, profile tuples included.
Babu 2005, figures 4.11, 4.15, 4.17 and 4.22.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minidsms
import minidsms.kernels.filter_ordering  # loaded now: not while the clock runs
from experiments.filter_ordering import probing
from experiments.filter_ordering.adaptivity import SELECTIVITIES
from experiments.filter_ordering.measuring import Measured, Points, relate
from experiments.filter_ordering.probing import BoolArray, Int64Array
from experiments.filter_ordering.select import OPTIMAL
from experiments.filter_ordering.workload import DOMAIN, Workload

AS_WRITTEN = "as written"
SETTINGS = {
    AS_WRITTEN: "static",
    OPTIMAL: "static",
    "A-Greedy": "a_greedy",
    "Sweep": "sweep",
    "LocalSwaps": "local_swaps",
    "Independent": "independent",
}
BLOCK = 50_000
TUPLES, WARM_UP = 2_000_000, 500_000


class Probes:
    """The filters of a query as functions. tables: (n, SLOTS), may be replaced between two pushes.  asked, probed: how
    many tuples the functions were asked about, how many probes they made.
    """

    def __init__(self, costs: Int64Array) -> None:
        self.tables: Int64Array = np.empty((0, 0), np.int64)
        self.asked = self.probed = 0
        self._costs = costs

    def function(self, f: int) -> Callable[[Int64Array], BoolArray]:
        """A vectorised function: does table f hold the values?"""
        cost = int(self._costs[f])

        def member(values: Int64Array) -> BoolArray:
            self.asked += len(values)
            self.probed += cost * len(values)
            drops = np.empty(len(values), np.bool_)
            probing.evaluate(np.ascontiguousarray(values), self.tables[f], cost, DOMAIN, drops)
            return ~drops

        return member


def run(workload: Workload, name: str, measured: Measured, warm_up: int = 0, rate: float | None = None) -> None:
    """One run; the first `warm_up` tuples are not counted."""
    probes = Probes(workload.probes)
    options: dict[str, Any] = {"filter_ordering": SETTINGS[name], "seed": workload.seed}
    with minidsms.connect(**options, **({} if rate is None else {"profile_rate": rate})) as db:
        db.execute("CREATE STREAM S0 (v INTEGER)")
        for f in range(workload.n):
            db.create_function(f"member{f}", probes.function(f), ["INTEGER"], "BOOLEAN", vectorized=True)
        query = db.query(_text(range(workload.n)))
        instant = done = 0
        spent, begun = 0.0, (0, 0, 0)
        for phase in workload.phases():
            probes.tables = phase.tables
            if name == OPTIMAL:
                query.close()
                query = db.query(_text(workload.best_order(phase)))
            for start in range(0, len(phase.values), BLOCK):
                values = phase.values[start : start + BLOCK]
                if done <= warm_up < done + len(values):
                    spent, begun = 0.0, (done, probes.asked, probes.probed)
                began = time.process_time()
                db.push("S0", {"v": values}, ts=instant)
                db.advance(instant)
                spent += time.process_time() - began
                query.fetch_arrow()
                instant += 1
                done += len(values)
        counted = done - begun[0]
        measured.time_ns.values.append(1e9 * spent / counted)
        measured.rate.values.append(counted / spent / 1e6)
        measured.evaluated.values.append((probes.asked - begun[1]) / counted)
        measured.probes.values.append((probes.probed - begun[2]) / counted)


def _text(order: Any) -> str:
    return "SELECT v FROM S0 WHERE " + " AND ".join(f"member{f}(v)" for f in order)


def compare(
    workload_of: Callable[[int], Workload], seeds: int, warm_up: int, rate: float | None = None
) -> dict[str, Measured]:
    """Every algorithm on the workload of every seed, by turns."""
    found = {name: Measured() for name in SETTINGS}
    for seed in range(seeds):
        for name, measured in found.items():
            run(workload_of(seed), name, measured, warm_up, rate)
    relate(found)
    return found


def number_of_filters(seeds: int) -> Points:
    """As figures 4.11 and 4.15."""

    def point(n: int) -> Points:
        return {n: compare(lambda seed: Workload((0.5,) * n, TUPLES, seed=seed), seeds, WARM_UP)}

    return {x: found for n in (2, 4, 8, 12) for x, found in point(n).items()}


def filter_costs(seeds: int) -> Points:
    """As figure 4.17."""

    def point(cost: int) -> Points:
        costs = (cost,) * 4 + (1,) * 4
        return {cost: compare(lambda seed: Workload((0.5,) * 8, TUPLES, costs=costs, seed=seed), seeds, WARM_UP)}

    return {x: found for cost in (1, 10, 50) for x, found in point(cost).items()}


def period(seeds: int) -> Points:
    """As figure 4.22."""

    def point(period: int) -> Points:
        costs = (1,) * 4 + (10,) * 4
        return {
            period: compare(
                lambda seed: Workload(SELECTIVITIES, TUPLES, costs=costs, period=period, seed=seed), seeds, 0
            )
        }

    return {x: found for every in (50_000, 100_000, 200_000, 500_000, 1_000_000) for x, found in point(every).items()}
