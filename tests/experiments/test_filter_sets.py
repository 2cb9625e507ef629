"""The experiment of screens: its query sets and its extremes."""

from __future__ import annotations

import numpy as np

from experiments.filter_sets.running import Run, cost, extremes
from experiments.filter_sets.workload import by_class, query_set, skewed, uniform


def test_the_best_order_costs_no_more_than_any_strategy_and_the_worst_no_less() -> None:
    rows = uniform(2000)
    queries = query_set(20, 4, 2.0, 15, 0.0, seed=3)
    best, worst = extremes(queries, rows)
    assert sorted(best.order) == sorted(worst.order) == [0, 1, 2, 3]
    written = cost(queries, rows, "written").looked

    assert (
        Run(queries, "written").cost(rows, best).looked <= written <= Run(queries, "written").cost(rows, worst).looked
    )


def test_streams_and_query_sets_are_those_of_their_seed() -> None:
    assert np.array_equal(skewed(100), skewed(100)) and skewed(100).min() >= 0 and skewed(1000).max() < 100
    assert by_class() == by_class() and by_class().predicates == 100
