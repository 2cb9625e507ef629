"""The offline choice against the definition: all sets of caches that do not overlap. Babu 2005, section 5.5.4."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest

from minidsms.joins.equal_columns import Equality
from minidsms.joins.plan import JoinPlan, Orders, SharedKey, problem_of, shared_key
from minidsms.streamon.caching.candidates import global_candidates, prefix_candidates
from minidsms.streamon.caching.costs import CacheStatistics, PipelineStatistics, value_of
from minidsms.streamon.caching.offline_selection import (
    Choice,
    Priced,
    Problem,
    exhaustive,
    greedy,
    optimal,
    select,
)

SIX_ORDERS = ((1, 2, 3, 4, 5), (0, 2, 4, 3, 5), (1, 0, 3, 4, 5), (4, 0, 1, 2, 5), (3, 1, 2, 0, 5), (1, 0, 3, 4, 2))


def clique(n: int) -> tuple[Equality, ...]:
    return tuple(((i, 0), (j, 0)) for i, j in combinations(range(n), 2))


def cheapest_by_definition(problem: Problem) -> float:
    """Over every set of candidates that makes a legal plan."""
    specs = [each.spec for each in problem.candidates]
    subsets = chain.from_iterable(combinations(specs, k) for k in range(len(specs) + 1))
    return min(
        problem.cost_of(some) for some in subsets if problem_of(JoinPlan(problem.orders, tuple(sorted(some)))) is None
    )


def instance(seed: int, with_global: bool = False) -> Problem:
    """Nested pipelines over a random tree of the inputs, so that there are candidates, and random statistics."""
    rng = Random(seed)
    n = rng.randint(3, 6)
    orders = nested_orders(rng, list(range(n)))
    equalities = clique(n)
    pipelines = [
        PipelineStatistics(
            tuple(10 ** rng.uniform(-1, 2) for _ in range(n)), tuple(rng.uniform(0.5, 5) for _ in range(n - 1))
        )
        for _ in range(n)
    ]
    specs = prefix_candidates(orders, equalities)
    if with_global:
        specs = tuple(sorted((*specs, *global_candidates(orders, equalities, len(specs) + 5))))
    costs: dict[SharedKey, tuple[float, float]] = {}
    candidates = []
    for spec in specs[:9]:
        store = shared_key(spec, orders, equalities)
        probe, update = costs.setdefault(store, (rng.uniform(0.1, 3), 10 ** rng.uniform(-2, 0.5)))
        value = value_of(spec, orders, pipelines, CacheStatistics(probe, update, rng.random()))
        candidates.append(Priced(spec, store, value.processing, value.cost))
    operators = tuple(tuple(d * c for d, c in zip(p.d, p.c)) for p in pipelines)
    return Problem(orders, operators, tuple(candidates))


def nested_orders(rng: Random, inputs: list[int]) -> Orders:
    """Orders under which the sets of a random binary tree are prefix sets."""
    orders: dict[int, list[int]] = {i: [] for i in inputs}

    def split(members: list[int]) -> None:
        if len(members) < 2:
            return
        cut = rng.randint(1, len(members) - 1)
        halves = members[:cut], members[cut:]
        for half in halves:
            split(half)
        for mine, others in (halves, halves[::-1]):
            for i in mine:
                orders[i].extend([others[0], *orders[others[0]][: len(others) - 1]])

    rng.shuffle(inputs)
    split(inputs)
    return tuple(tuple(orders[i]) for i in sorted(orders))


@pytest.mark.parametrize("seed", range(80))
def test_exhaustive_and_select_find_the_cheapest_set(seed: int) -> None:
    problem = instance(seed)
    cheapest = cheapest_by_definition(problem)
    for choice in (exhaustive(problem), select(problem)):
        assert choice.cost == pytest.approx(cheapest)
        assert problem_of(JoinPlan(problem.orders, choice.caches)) is None


@pytest.mark.parametrize("seed", range(40))
def test_with_globally_consistent_caches_the_search_stays_exact(seed: int) -> None:
    problem = instance(1000 + seed, with_global=True)
    choice = exhaustive(problem)
    assert choice.cost == pytest.approx(cheapest_by_definition(problem))
    assert problem_of(JoinPlan(problem.orders, choice.caches)) is None


@pytest.mark.parametrize("seed", range(60))
def test_the_recursion_is_optimal_where_nothing_is_shared(seed: int) -> None:
    """Theorem 5.5.1."""
    problem = instance(2000 + seed)
    alone = tuple({each.store: each for each in reversed(problem.candidates)}.values())
    problem = Problem(problem.orders, problem.operators, alone)
    assert optimal(problem).cost == pytest.approx(cheapest_by_definition(problem))
    assert select(problem).algorithm == "optimal"


@pytest.mark.parametrize("seed", range(200))
def test_greedy_stays_within_its_bound(seed: int) -> None:
    """Theorem 5.5.3: the harmonic number of the operators to be covered, as for weighted set cover."""
    problem = instance(3000 + seed)
    n = len(problem.orders)
    bound = sum(1 / k for k in range(1, n * (n - 1) + 1))
    best, found = exhaustive(problem), greedy(problem)
    assert problem_of(JoinPlan(problem.orders, found.caches)) is None
    assert best.cost * (1 - 1e-9) <= found.cost <= bound * best.cost


def test_greedy_is_mostly_optimal() -> None:
    instances = [instance(4000 + seed) for seed in range(100)]
    ratios = [greedy(problem).cost / exhaustive(problem).cost for problem in instances]
    assert sum(ratio < 1.0001 for ratio in ratios) >= 95


def test_a_cache_that_no_pipeline_affords_alone_is_worth_it_when_three_share_it() -> None:
    """Example 5.5.2: benefits add up, the cost of the store is paid once."""
    n = 6
    orders, equalities = SIX_ORDERS, clique(n)
    pipelines = [PipelineStatistics((1.0,) * n, (1.0,) * (n - 1))] * n
    specs = [spec for spec in prefix_candidates(orders, equalities) if set(spec.segment) == {0, 1}]
    assert [spec.pipeline for spec in specs] == [2, 3, 5]
    priced = []
    for spec in specs:
        value = value_of(spec, orders, pipelines, CacheStatistics(0.5, 1.0, 0.0))
        assert value.net < 0, "two updates cost 2, one pipeline saves 1.5"
        priced.append(Priced(spec, shared_key(spec, orders, equalities), value.processing, value.cost))
    together: Choice = select(Problem(orders, ((1.0,) * (n - 1),) * n, tuple(priced)))
    assert together.caches == tuple(specs)
    assert together.cost == pytest.approx(30 - 3 * 1.5 + 2.0)
    assert select(Problem(orders, ((1.0,) * (n - 1),) * n, tuple(priced[:1]))).caches == ()
