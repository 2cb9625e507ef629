"""Orders from the plan log."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.filter_ordering.known_filters import CorrelatedFilters, mean_cost
from minidsms.elements import BoolArray
from minidsms.streamon.contracts import OrderingAlgorithm
from minidsms.streamon.filter_ordering.a_greedy import AGreedy
from minidsms.streamon.filter_ordering.plan_logged import PlanLogged
from minidsms.streamon.filter_ordering.sweep import Sweep

COSTS = np.ones(4)
MORNING = CorrelatedFilters((0.2, 0.9, 0.5, 0.8), group_size=1)
EVENING = CorrelatedFilters((0.9, 0.3, 0.8, 0.1), group_size=1)


def profile(filters: CorrelatedFilters, tuples: int, rng: np.random.Generator) -> BoolArray:
    drops = filters.drops(2 * tuples, rng)
    return drops[drops.any(axis=1)][:tuples]


def tuples_until_good(algorithm: OrderingAlgorithm, filters: CorrelatedFilters, rng: np.random.Generator) -> int:
    """Profile tuples of a new condition until the order is within 10 % of the best; 1500 of them are shown in all."""
    drops = profile(filters, 1500, rng)
    best = mean_cost(drops, COSTS, tuple(np.argsort(-drops.mean(axis=0)).tolist()))
    found = len(drops)
    for start in range(0, len(drops), 10):
        algorithm.observe(drops[start : start + 10], COSTS)
        if found == len(drops) and mean_cost(drops, COSTS, algorithm.order) < 1.1 * best:
            found = start + 10
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_condition_that_comes_back_brings_its_order_back_sooner(seed: int) -> None:
    logged, plain = PlanLogged(4, lambda order: AGreedy(4, order)), AGreedy(4)
    rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
    for condition in (MORNING, EVENING):
        assert tuples_until_good(logged, condition, rng) <= tuples_until_good(plain, condition, same)
    for condition in (MORNING, EVENING, MORNING):
        again, without = tuples_until_good(logged, condition, rng), tuples_until_good(plain, condition, same)
        assert again <= 210 and again < without
    assert logged.looked_up >= 3


def test_where_nothing_changes_the_log_changes_nothing() -> None:
    logged, plain = PlanLogged(4, lambda order: AGreedy(4, order)), AGreedy(4)
    drops = profile(MORNING, 5000, np.random.default_rng(0))
    for start in range(0, len(drops), 70):
        logged.observe(drops[start : start + 70], COSTS)
        plain.observe(drops[start : start + 70], COSTS)
    assert (logged.looked_up, logged.order, logged.describe()) == (0, plain.order, plain.describe())
    assert {region.plan[0] for region in logged.regions.regions} == {0}


def test_profile_tuples_in_bulk_give_the_order_that_they_give_one_by_one() -> None:
    rng = np.random.default_rng(5)
    drops = np.concatenate([profile(c, 700, rng) for c in (MORNING, EVENING, MORNING, EVENING)])
    in_bulk, singly = (PlanLogged(4, lambda order: AGreedy(4, order, window=200)) for _ in range(2))
    for start in range(0, len(drops), 130):
        in_bulk.observe(drops[start : start + 130], COSTS)
        for row in drops[start : start + 130]:
            singly.observe(row[None], COSTS)
        assert in_bulk.order == singly.order
    assert in_bulk.looked_up == singly.looked_up > 0


def test_an_algorithm_that_looks_at_some_filters_only_has_no_plan_log() -> None:
    with pytest.raises(ValueError, match="all filters"):
        PlanLogged(4, lambda order: Sweep(4, order))
