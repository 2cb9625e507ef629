"""Join trees: which there are, and which are legal."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Tree
from minidsms.joins.tree import (
    all_trees,
    flat,
    is_binary,
    is_legal,
    kept_nodes,
    left_deep,
    normal,
    random_tree,
    unlinked,
)
from tests.joins.made import graph


def complete(n: int) -> JoinGraph:
    return graph(n, *((i, j) for i in range(n) for j in range(i)))


CHAIN = graph(4, (0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize(("n", "every", "binary"), [(2, 1, 1), (3, 4, 3), (4, 26, 15), (5, 236, 105)])
def test_complete_graphs_have_all_trees(n: int, every: int, binary: int) -> None:
    """Schroeder's fourth problem, and (2n - 3)!! for trees of two-way joins."""
    assert len(set(all_trees(complete(n)))) == every
    assert len(set(all_trees(complete(n), binary=True))) == binary


def nestings(inputs: tuple[int, ...]) -> set[Tree]:
    """Every way to put parentheses around inputs, in normal form: the last one is put into each place of the others."""
    if len(inputs) == 2:
        return {inputs}

    def with_one_more(tree: Tree, i: int) -> Iterator[Tree]:
        yield (tree, i)
        if isinstance(tree, tuple):
            yield (*tree, i)
            for k, child in enumerate(tree):
                for grown in with_one_more(child, i):
                    yield (*tree[:k], grown, *tree[k + 1 :])

    return {normal(grown) for tree in nestings(inputs[:-1]) for grown in with_one_more(tree, inputs[-1])}


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        [(2, 0), (2, 1), (2, 3), (2, 4)],
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        [(0, 3), (3, 1), (1, 4), (4, 2), (3, 4)],
    ],
)
def test_all_trees_are_the_legal_ones_of_all_nestings(edges: list[tuple[int, int]]) -> None:
    joined = graph(5, *edges)
    assert set(all_trees(joined)) == {tree for tree in nestings((0, 1, 2, 3, 4)) if is_legal(tree, joined)}


def test_trees_of_a_chain_join_neighbours_only() -> None:
    trees = set(all_trees(CHAIN))
    assert ((0, 1), (2, 3)) in trees and (0, (1, 2), 3) in trees
    assert not any((0, 2) in kept_nodes(tree) or (0, 3) in kept_nodes(tree) for tree in trees)
    assert all(is_legal(tree, CHAIN) for tree in trees)


def test_normal_form_is_one_for_trees_that_mean_the_same() -> None:
    assert normal((3, (2, (1, 0)))) == normal((((0, 1), 2), 3)) == (((0, 1), 2), 3)


def test_what_nothing_links_is_told() -> None:
    assert unlinked(((0, 2), 1, 3), CHAIN) == (0, 2)
    assert unlinked(((0, 1), (2, 3)), CHAIN) is None


def test_whole_components_of_an_unconnected_graph_may_be_joined() -> None:
    two = graph(4, (0, 1), (2, 3))
    assert is_legal(((0, 1), (2, 3)), two) and is_legal(flat(4), two)
    assert not is_legal(((0, 2), 1, 3), two) and not is_legal((((0, 1), 2), 3), two)


@pytest.mark.parametrize("seed", range(50))
def test_random_trees_are_legal(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(3, 9)
    joined = graph(n, *((i, rng.randrange(i)) for i in range(1, n)))
    tree, binary = normal(random_tree(joined, rng)), normal(random_tree(joined, rng, binary=True))
    assert is_legal(tree, joined) and is_legal(binary, joined) and is_binary(binary)
    assert is_binary(left_deep(joined)) and is_legal(left_deep(joined), joined)


def test_trees_of_many_inputs_are_not_enumerated() -> None:
    with pytest.raises(ValueError, match="at most 6 linked inputs"):
        next(all_trees(complete(7)))
