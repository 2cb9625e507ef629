"""Keys, sharing, the prefix invariant and legality of plans, on the examples of Babu 2005, sections 5.4 to 5.7."""

from __future__ import annotations

from itertools import combinations

from minidsms.joins.plan import CacheSpec, JoinPlan, KeyPart, group, key_parts, overlap, problem_of, satisfies_prefix

THREE_WAY = (((0, 0), (1, 0)), ((1, 1), (2, 0)))
"""R1.A = R2.A, R2.B = R3.B of example 5.1.1."""

SIX_ORDERS = ((1, 2, 3, 4, 5), (0, 2, 4, 3, 5), (1, 0, 3, 4, 5), (4, 0, 1, 2, 5), (3, 1, 2, 0, 5), (1, 0, 3, 4, 2))
"""The pipelines of example 5.5.1."""
SIX_WAY = tuple(((i, 0), (j, 0)) for i, j in combinations(range(6), 2))


def test_the_cache_of_figure_5_7_is_probed_with_r1_a_and_keyed_by_r2_a():
    orders = ((1, 2), (2, 0), (1, 0))
    spec = CacheSpec(0, (1, 2))
    assert key_parts(spec, orders, THREE_WAY) == (KeyPart(stored=(1, 0), probe=(0, 0)),)


def test_the_segment_r2_r3_of_figure_5_7_satisfies_the_prefix_invariant_and_r2_r1_does_not():
    """Example 5.4.3."""
    orders = ((1, 2), (2, 0), (1, 0))
    assert satisfies_prefix(CacheSpec(0, (1, 2)), orders)
    assert not satisfies_prefix(CacheSpec(2, (1, 0)), orders)


def test_one_attribute_equated_everywhere_is_one_word_of_the_key():
    assert key_parts(CacheSpec(5, (1, 0, 3)), SIX_ORDERS, SIX_WAY) == (KeyPart((0, 0), (5, 0)),)
    assert key_parts(CacheSpec(3, (0, 1)), SIX_ORDERS, SIX_WAY) == (KeyPart((0, 0), (3, 0)),)


def test_a_chain_of_equalities_gives_the_same_key_as_its_closure():
    chain = (((0, 0), (1, 0)), ((1, 0), (2, 0)))
    closure = (*chain, ((0, 0), (2, 0)))
    orders = ((1, 2), (2, 0), (1, 0))
    assert key_parts(CacheSpec(0, (1, 2)), orders, chain) == key_parts(CacheSpec(0, (1, 2)), orders, closure)


def test_attributes_that_only_the_segment_equates_are_two_words():
    """R0.a = R1.a and R2.a = R1.a, with R0 and R2 joined before on another attribute."""
    equalities = (((0, 0), (1, 0)), ((2, 0), (1, 0)), ((0, 1), (2, 1)))
    orders = ((2, 1), (0, 2), (0, 1))
    parts = key_parts(CacheSpec(0, (1,)), orders, equalities)
    assert parts == (KeyPart((1, 0), (0, 0)), KeyPart((1, 0), (2, 0)))


def test_caches_of_one_join_with_one_key_share_a_store():
    """Example 5.5.2: R1, R2 is shared by the pipelines of R3, R4, R6; R1, R2, R3 by those of R4 and R5."""
    specs = [
        CacheSpec(2, (1, 0)),
        CacheSpec(3, (0, 1)),
        CacheSpec(5, (1, 0)),
        CacheSpec(3, (0, 1, 2)),
        CacheSpec(4, (1, 2, 0)),
    ]
    groups = group(specs, SIX_ORDERS, SIX_WAY)
    assert [[spec.pipeline for spec in members] for members in groups.values()] == [[2, 3, 5], [3, 4]]


def test_caches_of_one_join_with_different_keys_do_not_share():
    """R1 probes the middle of a chain with one attribute, R4 with another."""
    equalities = (((0, 0), (1, 0)), ((1, 1), (2, 0)), ((2, 1), (3, 0)))
    orders = ((1, 2, 3), (2, 0, 3), (1, 0, 3), (2, 1, 0))
    assert len(group([CacheSpec(0, (1, 2)), CacheSpec(3, (2, 1))], orders, equalities)) == 2


def test_a_reduced_cache_needs_the_prefix_of_all_it_is_made_of():
    """Example 5.7.1: R2, R3 in the pipeline of R6 does not satisfy the invariant, (R2, R3) semijoin R1 does."""
    orders = (*SIX_ORDERS[:5], (1, 2, 3, 4, 0))
    assert not satisfies_prefix(CacheSpec(5, (1, 2)), orders)
    assert satisfies_prefix(CacheSpec(5, (1, 2), (0,)), orders)
    assert satisfies_prefix(CacheSpec(5, (3, 4, 0), (1, 2, 5)), orders), "of all inputs it always holds"


def test_a_plan_says_what_is_wrong_with_it():
    orders = ((1, 2), (2, 0), (1, 0))
    assert problem_of(JoinPlan(orders, (CacheSpec(0, (1, 2)),))) is None
    assert "does not visit" in str(problem_of(JoinPlan(((1, 1), (2, 0), (1, 0)))))
    assert "no segment" in str(problem_of(JoinPlan(orders, (CacheSpec(0, (2, 1)),))))
    assert "prefix invariant" in str(problem_of(JoinPlan(orders, (CacheSpec(2, (1, 0)),))))
    assert "sorted" in str(problem_of(JoinPlan(orders, (CacheSpec(0, (1, 2)), CacheSpec(0, (1, 2))))))
    assert "reduced" in str(problem_of(JoinPlan(orders, (CacheSpec(0, (1, 2), (1,)),))))
    inner, outer = CacheSpec(3, (0, 1)), CacheSpec(3, (0, 1, 2))
    assert overlap(inner, outer)
    assert "overlap" in str(problem_of(JoinPlan(SIX_ORDERS, (inner, outer))))
