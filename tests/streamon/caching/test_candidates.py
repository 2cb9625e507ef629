"""Candidate caches: examples 5.5.1, 5.5.2 and 5.7.1 of Babu 2005, and laws over random orders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from minidsms.joins.plan import CacheSpec, JoinPlan, group, problem_of, satisfies_prefix
from minidsms.streamon.caching.candidates import global_candidates, prefix_candidates, prefix_sets

SIX_ORDERS = ((1, 2, 3, 4, 5), (0, 2, 4, 3, 5), (1, 0, 3, 4, 5), (4, 0, 1, 2, 5), (3, 1, 2, 0, 5), (1, 0, 3, 4, 2))
SIX_WAY = tuple(((i, 0), (j, 0)) for i, j in combinations(range(6), 2))


def hierarchy(candidates: Sequence[CacheSpec], pipeline: int) -> dict[CacheSpec, CacheSpec | None]:
    """Of each candidate of a pipeline the smallest that contains it, None at a root (figure 5.8). They must nest."""
    own = sorted((c for c in candidates if c.pipeline == pipeline), key=lambda c: len(c.segment))
    for one, other in combinations(own, 2):
        assert set(one.segment) <= set(other.segment) or set(one.segment).isdisjoint(other.segment)
    return {
        one: next((other for other in own[place + 1 :] if set(one.segment) < set(other.segment)), None)
        for place, one in enumerate(own)
    }


def test_5_5_1_four_sets_have_the_prefix_property() -> None:
    some = [frozenset(s) for s in ({0, 1}, {3, 4}, {0, 1, 2}, {0, 1, 2, 3, 4})]
    assert prefix_sets(SIX_ORDERS) == [*some, frozenset(range(6))]


def test_5_5_1_the_pipeline_of_r4_has_two_candidates_that_nest_and_that_of_r6_three() -> None:
    candidates = prefix_candidates(SIX_ORDERS, SIX_WAY)
    inner, outer = CacheSpec(3, (0, 1)), CacheSpec(3, (0, 1, 2))
    assert hierarchy(candidates, 3) == {inner: outer, outer: None}
    left, right, whole = CacheSpec(5, (1, 0)), CacheSpec(5, (3, 4)), CacheSpec(5, (1, 0, 3, 4, 2))
    assert hierarchy(candidates, 5) == {left: whole, right: whole, whole: None}


def test_5_5_2_two_caches_are_shared_by_three_and_by_two_pipelines() -> None:
    groups = group(prefix_candidates(SIX_ORDERS, SIX_WAY), SIX_ORDERS, SIX_WAY)
    shared = {key.inputs: [spec.pipeline for spec in specs] for key, specs in groups.items() if len(specs) > 1}
    assert shared[0, 1] == [2, 3, 5]
    assert shared[0, 1, 2] == [3, 4]
    assert {key.stored for key in groups} == {((0, 0),), ((3, 0),)}, "the key of every cache is A"


def test_5_7_1_r2_r3_is_a_candidate_of_r6_only_when_reduced_by_r1() -> None:
    orders = (*SIX_ORDERS[:5], (1, 2, 3, 4, 0))
    assert CacheSpec(5, (1, 2)) not in prefix_candidates(orders, SIX_WAY)
    assert CacheSpec(5, (1, 2), (0,)) in global_candidates(orders, SIX_WAY, quota=100)


def test_global_candidates_fill_the_quota_with_the_longest_segments_of_the_dearest_pipelines() -> None:
    orders = ((1, 2, 3), (0, 2, 3), (3, 0, 1), (2, 1, 0))
    equalities = tuple(((i, 0), (j, 0)) for i, j in combinations(range(4), 2))
    prefix = prefix_candidates(orders, equalities)
    some = global_candidates(orders, equalities, quota=len(prefix) + 5, weights=(1, 4, 2, 3))
    assert len(some) == 5
    assert some[:4] == tuple(CacheSpec(i, orders[i], (i,)) for i in (1, 3, 2, 0))
    assert len(some[4].segment) == 2
    assert global_candidates(orders, equalities, quota=len(prefix)) == ()


@pytest.mark.parametrize("seed", range(60))
def test_candidates_are_legal_alone_and_nest_where_they_overlap(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(3, 7)
    tree = [(rng.randrange(i), i) for i in range(1, n)]
    extra = [tuple(sorted(rng.sample(range(n), 2))) for _ in range(rng.randint(0, 3))]
    equalities = tuple(((a, rng.randrange(2)), (b, rng.randrange(2))) for a, b in [*tree, *extra])
    orders = tuple(_order(rng, i, n, equalities) for i in range(n))
    for spec in prefix_candidates(orders, equalities):
        assert satisfies_prefix(spec, orders)
        assert problem_of(JoinPlan(orders, (spec,))) is None
    for i in range(n):
        hierarchy(prefix_candidates(orders, equalities), i)
    for spec in global_candidates(orders, equalities, quota=50):
        assert spec.reduced_by
        assert problem_of(JoinPlan(orders, (spec,))) is None


def _order(
    rng: Random, i: int, n: int, equalities: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
) -> tuple[int, ...]:
    """A random order without Cartesian products."""
    chosen = [i]
    while len(chosen) < n:
        next_ones = [
            j
            for j in range(n)
            if j not in chosen and any({a[0], b[0]} & set(chosen) and j in (a[0], b[0]) for a, b in equalities)
        ]
        chosen.append(rng.choice(next_ones))
    return tuple(chosen[1:])
