"""How fast orders follow changes: figures 4.19 to 4.24. Babu 2005, section 4.7.4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.filter_ordering.measuring import Float64Array, Measured, Points, Samples, compare
from experiments.filter_ordering.select import ALGORITHMS, LOGGED, OPTIMAL, Select
from experiments.filter_ordering.workload import Workload

SELECTIVITIES = (0.3, 0.3, 0.5, 0.5, 0.7, 0.7, 0.9, 0.9)
"""Of the eight filters, in pairs."""
CHANGE, TUPLES = 600_000, 1_200_000
BLOCK = 2000
CLOSE = 1.05
"""An order has been found when the filters evaluated stay below so many times those of the best order .."""
STEADY = 20
""".. in the mean of so many blocks."""
TIMED_TUPLES = 1_000_000
"""Of figures 4.22 to 4.24, or twice the period if that is more."""


@dataclass
class Timeline:
    """evaluated: (blocks,) filters per 2000 tuples.  found_after: tuples from the change until an order is found that
    is as good as the best, None if none is.
    """

    evaluated: Float64Array
    found_after: int | None


def timelines(seed: int, names: tuple[str, ...] = (OPTIMAL, *ALGORITHMS)) -> dict[str, Timeline]:
    """Figures 4.19 to 4.21: eight filters whose tables change places after 600,000 tuples."""
    workload = Workload(SELECTIVITIES, TUPLES, period=CHANGE, seed=seed)
    series = {name: Select(workload, name, block=BLOCK).run().evaluated.astype(np.float64) for name in names}
    best = series[OPTIMAL][CHANGE // BLOCK :].mean()
    return {name: Timeline(evaluated, _found_after(evaluated, float(best))) for name, evaluated in series.items()}


def _found_after(evaluated: Float64Array, best: float) -> int | None:
    """Tuples from the change until the cost has come down."""
    behind = evaluated[CHANGE // BLOCK :]
    means = np.convolve(behind, np.full(STEADY, 1 / STEADY), "valid")
    found = np.flatnonzero(means <= CLOSE * best)
    return int(found[0]) * BLOCK if len(found) else None


def speeds(seeds: int) -> dict[str, tuple[Samples, int]]:
    """Speed of adaptivity over several changes: tuples until the order is found, and how often it never is."""
    found: dict[str, tuple[list[float], int]] = {}
    for seed in range(seeds):
        for name, timeline in timelines(seed).items():
            values, never = found.get(name, ([], 0))
            if timeline.found_after is None:
                never += 1
            else:
                values.append(float(timeline.found_after))
            found[name] = (values, never)
    return {name: (Samples(values), never) for name, (values, never) in found.items()}


def period(seeds: int) -> Points:
    """Figure 4.22: four filters cost one, four ten; the tables change places every so many tuples."""
    return {every: _changing(every, 10, seeds) for every in (20_000, 50_000, 100_000, 300_000, 1_000_000)}


def cost_at(period: int, seeds: int) -> Points:
    """Figures 4.23 (period 100,000) and 4.24 (1,000,000): by the cost of the four expensive filters."""
    return {cost: _changing(period, cost, seeds) for cost in (1, 5, 20, 50)}


def recurring(seeds: int) -> Points:
    """Section 7.1: three conditions come by turns, every so many tuples."""

    def point(every: int) -> Points:
        def workload(seed: int) -> Workload:
            return Workload(SELECTIVITIES, 2 * TIMED_TUPLES, period=every, conditions=3, seed=seed)

        return {every: compare(workload, (OPTIMAL, "A-Greedy", LOGGED), seeds, repeats=1)}

    return {x: found for every in (20_000, 50_000, 100_000, 200_000) for x, found in point(every).items()}


def _changing(period: int, cost: int, seeds: int) -> dict[str, Measured]:
    costs = (1,) * 4 + (cost,) * 4

    def workload(seed: int) -> Workload:
        tuples = max(TIMED_TUPLES, 2 * period)
        return Workload(SELECTIVITIES, tuples, costs=costs, period=period, seed=seed)

    return compare(workload, (OPTIMAL, *ALGORITHMS), seeds, repeats=1)
