"""Figures 6 to 9 as tables of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.filter_sets.running import Cost, Run, cost, deviation_of_ones, extremes
from experiments.filter_sets.workload import QuerySet, Rows, by_class, flights, query_set, skewed, uniform

STRATEGIES = ("worst", "best", "ticket", "macro", "hybrid", "auto")
LAMBDA = 10_000


def strategies(queries: QuerySet, rows: Rows) -> dict[str, Cost]:
    """Every strategy over the rows, mu 0 for those that rearrange."""
    best, worst = extremes(queries, rows)
    found = {
        "worst": Run(queries, "written").cost(rows, worst),
        "best": Run(queries, "written").cost(rows, best),
    }
    for name in STRATEGIES[2:]:
        found[name] = cost(queries, rows, name, rearrange_period=LAMBDA, rearrange_threshold=0)
    return found


def figure_6(tuples: int) -> dict[str, dict[str, Cost]]:
    """By data set. Q1 has 50 queries, about 204 predicates over 10 columns; Q2 50 and 173 over 10 here (15)."""
    q1 = query_set(50, 10, 4.0, 12, 0.1, seed=1)
    q2 = query_set(50, 10, 3.4, 20, 0.3, seed=2)
    return {
        "D1 uniform": strategies(q1, uniform(tuples)),
        "D2 skewed": strategies(q1, skewed(tuples)),
        "D3 flights": strategies(q2, flights(tuples)),
        "classes": strategies(by_class(), uniform(tuples)),
    }


def figure_7(tuples: int) -> dict[int, dict[str, Cost]]:
    """By p-attributes, over D2."""
    rows = skewed(tuples)
    numbers = {6: (30, 2.6), 7: (30, 2.7), 8: (35, 2.8), 9: (40, 3.1), 10: (40, 3.4)}
    return {n: strategies(query_set(k, n, each, 12, 0.1, seed=n), rows) for n, (k, each) in numbers.items()}


@dataclass(frozen=True)
class Micro:
    """deviation: of ones.  ratio: of arrows followed to all steps.  relative: cost of hybrid over that of macro, in
    ASCs and in time.
    """

    deviation: float
    ratio: float
    relative: float
    relative_ns: float


def figure_8(tuples: int) -> list[Micro]:
    """Over D1, query sets whose regions differ more and more."""
    rows = uniform(tuples)
    found = []
    for spread in (0.0, 0.2, 0.4, 0.6, 0.8, 0.95):
        queries = query_set(50, 10, 7.2, 35, spread, seed=5)
        macro = cost(queries, rows, "macro", rearrange_period=LAMBDA, rearrange_threshold=0)
        hybrid = cost(queries, rows, "hybrid", rearrange_period=LAMBDA, rearrange_threshold=0)
        steps = max(1, hybrid.looked - len(rows))
        deviation = deviation_of_ones(queries, rows)
        found.append(Micro(deviation, hybrid.micro / steps, hybrid.looked / macro.looked, hybrid.ns / macro.ns))
    return found


def figure_9(part: int, period: int) -> dict[float, Cost]:
    """By mu: D1 and D2 in turn, so many tuples each; the trace is per push of 10,000."""
    rows = np.concatenate([uniform(part), skewed(part), uniform(part, 3), skewed(part, 4)])
    queries = query_set(50, 10, 4.0, 12, 0.1, seed=1)
    return {
        mu: cost(queries, rows, "macro", rearrange_period=period, rearrange_threshold=mu)
        for mu in (0.0, 0.05, 0.2, 1.0)
    }
