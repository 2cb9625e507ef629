"""Logical filters of join graphs: the examples of Babu 2005, section 5.2.3, and what every graph owes."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random

import pytest

from minidsms.joins.graph import JoinGraph
from minidsms.joins.logical_filters import LogicalFilters, random_order
from tests.joins.made import graph

FIGURE_5_3A = graph(6, (0, 1), (0, 2), (2, 3), (2, 4), (4, 5))
STAR = graph(4, (0, 1), (0, 2), (0, 3))
CYCLE = graph(4, (0, 1), (1, 2), (2, 3), (3, 0))


def test_logical_filters_are_the_joins_along_the_paths_of_figure_5_3a() -> None:
    filters = LogicalFilters(FIGURE_5_3A, 0)
    assert filters.others == (1, 2, 3, 4, 5)
    assert filters.paths == ((1,), (2,), (2, 3), (2, 4), (2, 4, 5))


def test_an_order_of_logical_filters_becomes_the_order_of_joins_of_section_5_2_3() -> None:
    filters = LogicalFilters(FIGURE_5_3A, 0)
    assert filters.joins([2, 1, 0, 3, 4]) == (2, 3, 1, 4, 5)  # F3, F2, F1, F4, F5 gives joins 3, 4, 2, 5, 6


def test_root_of_a_star_may_visit_the_others_in_any_order_and_they_must_visit_it_first() -> None:
    root, leaf = LogicalFilters(STAR, 0), LogicalFilters(STAR, 2)
    assert {root.joins(p) for p in permutations(range(3))} == set(permutations((1, 2, 3)))
    assert {leaf.joins(p) for p in permutations(range(3))} == {(0, 1, 3), (0, 3, 1)}


def test_a_cycle_is_cut_where_it_is_farthest() -> None:
    assert LogicalFilters(CYCLE, 0).paths == ((1,), (1, 2), (3,))


def test_the_end_of_a_chain_of_three_has_no_choice_and_its_middle_has() -> None:
    chain = graph(3, (0, 1), (1, 2))
    assert [LogicalFilters(chain, i).has_choice for i in range(3)] == [False, True, False]


@pytest.mark.parametrize("joined", [FIGURE_5_3A, STAR, CYCLE])
def test_every_order_of_logical_filters_makes_a_legal_order_of_joins(joined: JoinGraph) -> None:
    for i in range(joined.n):
        filters = LogicalFilters(joined, i)
        legal = set(joined.legal_orders(i))
        for order in permutations(range(joined.n - 1)):
            joins = filters.joins(order)
            assert joins in legal
            assert filters.joins(filters.filters(joins)) == joins


def test_random_orders_are_legal_and_equally_likely() -> None:
    rng = Random(1)
    legal = list(FIGURE_5_3A.legal_orders(0))
    counts = Counter(random_order(FIGURE_5_3A, 0, rng) for _ in range(200 * len(legal)))
    assert set(counts) == set(legal)
    assert min(counts.values()) > 130 and max(counts.values()) < 280
