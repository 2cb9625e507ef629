"""The join graph: what equalities link, directly and because others hold, and what its pipelines compare."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations, product

import pytest

from minidsms.elements import Schema
from minidsms.joins.equal_columns import Equality, equalities_text
from minidsms.joins.graph import JoinGraph
from minidsms.joins.tree import all_trees
from tests.joins import test_by_tree as test_xjoin
from tests.joins.made import join_of
from tests.joins.test_by_pipelines import S, every_column, inputs_of, mixed, twin, windows
from tests.operators.harness import feed, queue

CHAIN: list[Equality] = [((i, 0), (i + 1, 0)) for i in range(3)]
STAR: list[Equality] = [((1, 0), (i, 0)) for i in (0, 2, 3)]
CYCLE: list[Equality] = [((i, 0), ((i + 1) % 4, 0)) for i in range(4)]
TWO_OF_ONE: list[Equality] = [((0, 0), (1, 0)), ((0, 1), (1, 0)), ((1, 0), (2, 1))]
"""Two columns of input 0 equal one of input 1, and so each other."""
CROSSED: list[Equality] = [((0, 0), (1, 0)), ((1, 1), (2, 1)), ((0, 1), (2, 0)), ((1, 0), (2, 0))]
"""A class of columns of both kinds, beside a pair."""
BESIDE: list[Equality] = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((0, 2), (2, 2)), ((0, 3), (2, 3))]
"""Inputs 0 and 2 have a key of two columns, and a third in common that follows."""
GRAPHS = {"chain": CHAIN, "star": STAR, "cycle": CYCLE, "two of one": TWO_OF_ONE, "crossed": CROSSED, "beside": BESIDE}


def graph(equalities: Sequence[Equality]) -> JoinGraph:
    return JoinGraph(inputs_of(equalities), equalities)


@pytest.mark.parametrize("name", ["chain", "star", "cycle"])
def test_inputs_with_a_key_in_common_are_all_linked_whatever_was_written(name: str) -> None:
    one = graph(GRAPHS[name])
    assert one.classes == (((0, 0), (1, 0), (2, 0), (3, 0)),)
    assert all(one.linked(i) == {0, 1, 2, 3} - {i} for i in range(4))
    assert all(set(one.legal_orders(i)) == set(permutations(sorted({0, 1, 2, 3} - {i}))) for i in range(4))
    assert len(set(all_trees(one))) == 26


@pytest.mark.parametrize("name", ["chain", "star", "cycle"])
def test_what_follows_from_other_equalities_needs_no_key_and_no_comparison(name: str) -> None:
    one = graph(GRAPHS[name])
    assert one.keys == [[(0,)]] * 4
    for orders in product(*(list(one.legal_orders(i))[::2] for i in range(4))):
        assert len(one.pipelines(orders)[1]) == 0


def test_an_element_asks_all_windows_that_have_its_key_before_it_joins_any() -> None:
    steps, _ = graph(CHAIN).pipelines(graph(CHAIN).default_orders())
    assert not steps["asked"].any(), "every step takes its tag from the arriving element"


def test_two_columns_of_one_input_are_both_compared_until_they_are_known_to_be_equal() -> None:
    one = graph(TWO_OF_ONE)
    assert one.joining((0,), (2,)) == [(0, (0,), 2, (1,)), (0, (1,), 2, (1,))]
    assert [link[:2] for link in one.joining((1,), (2,))] == [(1, (0,))]
    assert len(one.joining((0, 1), (2,))) == 1
    assert len(one.joining((0, 2), (1,))) == 2, "a hash, and what it hashes; the rest is known"


def test_a_key_of_several_columns_is_made_of_written_equalities_only() -> None:
    one = graph(BESIDE)
    assert one.keys == [[(0,), (2,), (3,), (2, 3)], [(0,)], [(0,), (2,), (3,), (2, 3)]]
    assert len(one.joining((0,), (2,))) == 4
    assert len(one.joining((0, 1), (2,))) == 4, "that input 1 has the same is known"


def test_equalities_are_told_as_chains_of_equal_columns() -> None:
    names = [["a", "b"], ["c", "d"], ["e", "f"]]
    assert equalities_text([((1, 0), (0, 0))], names) == "c = a"
    assert equalities_text([((1, 0), (0, 0)), ((0, 1), (1, 1)), ((1, 0), (2, 1))], names) == "a = c = f AND b = d"


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("fifo", [(True, True, True, True), (False, True, False, False)])
def test_every_order_joins_as_the_written_equalities_say(name: str, fifo: Sequence[bool]) -> None:
    equalities = GRAPHS[name]
    n = inputs_of(equalities)
    items, columns = mixed(fifo[:n], 211, 20, 2), every_column(n)
    expected = twin(items, equalities, columns)
    rng = random.Random(name)
    orders = [list(graph(equalities).legal_orders(i)) for i in range(n)]
    for _ in range(6):
        join = join_of([queue(S) for _ in range(n)], equalities, columns, Schema(S.fields * n), fifo=fifo[:n])
        join.reorder(tuple(map(rng.choice, orders)))
        assert feed(join, items, range(1, 60)) == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_every_tree_joins_as_the_written_equalities_say(name: str) -> None:
    equalities = GRAPHS[name]
    n = inputs_of(equalities)
    items, columns = windows(n, 217, 14, 2), every_column(n)
    expected = twin(items, equalities, columns)
    join = test_xjoin.operator(equalities)
    assert test_xjoin.feed_switching(join, items, test_xjoin.trees_of(equalities)) == expected
    for tree in test_xjoin.trees_of(equalities)[::5]:
        join = test_xjoin.operator(equalities)
        join.take_tree(tree)
        assert feed(join, items, range(1, 60)) == expected
