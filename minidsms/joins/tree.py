"""Join trees: which inputs of an n-way join are joined with which first, and what is kept.

A tree is an input's number, or a node: a tuple of two trees (a join of an XJoin) or more (an MJoin). The result of
every node but the root is kept as a *subresult*. The flat tree (0, 1, .., n - 1) is the MJoin, which keeps nothing.
Trees are values; of those that mean the same one is in normal form: children stand in the order of their least inputs.

Invariant: a legal tree has every input once, and no node joins what no equality links, but where the join graph is not
connected: then only whole components of it are joined so.  Babu 2005, section 5.3, figures 5.5 and 5.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import cast

from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Tree

MOST_SEARCHED = 6
"""Inputs up to which all trees are looked at: 2752 of them, at most."""


def flat(n: int) -> Tree:
    """The tree of the MJoin over n inputs."""
    return tuple(range(n))


def leaves(tree: Tree) -> tuple[int, ...]:
    """The inputs below, ascending."""
    if isinstance(tree, int):
        return (tree,)
    return tuple(sorted(i for child in tree for i in leaves(child)))


def normal(tree: Tree) -> Tree:
    """The tree in normal form.

    >>> normal(((3, 1), 2, 0))
    (0, (1, 3), 2)
    """
    if isinstance(tree, int):
        return tree
    return tuple(sorted(map(normal, tree), key=leaves))


def kept_nodes(tree: Tree) -> tuple[tuple[Tree, ...], ...]:
    """The nodes whose results are kept, each after those below it.

    >>> kept_nodes((((0, 1), 2), 3))
    ((0, 1), ((0, 1), 2))
    """

    def below(node: Tree) -> Iterator[tuple[Tree, ...]]:
        if not isinstance(node, int):
            for child in node:
                yield from below(child)
            yield node

    return tuple(below(tree))[:-1]


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """The tree with the inputs' names.

    >>> tree_text(((0, 1), 2), ["R", "S", "T"])
    '((R, S), T)'
    """
    if isinstance(tree, int):
        return names[tree]
    return f"({', '.join(tree_text(child, names) for child in tree)})"


def is_legal(tree: object, graph: JoinGraph) -> bool:
    """It is a tree in normal form over the graph's inputs, without a Cartesian product that can be avoided."""
    if not _is_tree(tree) or isinstance(tree, int):
        return False
    whole = cast(Tree, tree)
    return leaves(whole) == tuple(range(graph.n)) and normal(whole) == whole and unlinked(whole, graph) is None


def unlinked(tree: Tree, graph: JoinGraph) -> tuple[Tree, ...] | None:
    """A node that joins what no equality links and that could be avoided; None where there is none."""
    if isinstance(tree, int):
        return None
    for child in tree:
        found = unlinked(child, graph)
        if found is not None:
            return found
    groups = _linked_groups(tree, graph)
    if len(groups) > 1 and not all(_is_closed(group, graph) for group in groups):
        return tree
    return None


def is_binary(tree: object) -> bool:
    """Every join is one of two."""
    return isinstance(tree, int) or (isinstance(tree, tuple) and len(tree) == 2 and all(map(is_binary, tree)))


def left_deep(graph: JoinGraph) -> Tree:
    """The tree of two-way joins that follows FROM as far as equalities link; the graph is connected."""
    tree: Tree = 0
    visited = [0]
    while len(visited) < graph.n:
        j = graph.following(visited)[0]
        visited.append(j)
        tree = (tree, j)
    return normal(tree)


def random_tree(graph: JoinGraph, rng: Random, binary: bool = False) -> Tree:
    """A legal tree of a connected graph, any of them: linked trees are joined until one is left."""
    forest: list[Tree] = list(range(graph.n))
    while len(forest) > 1:
        chosen = forest.pop(rng.randrange(len(forest)))
        joined = [chosen]
        while forest and (len(joined) < 2 or (not binary and rng.random() < 0.3)):
            near = {j for tree in joined for i in leaves(tree) for j in graph.linked(i)}
            linked = [tree for tree in forest if near.intersection(leaves(tree))]
            joined.append(rng.choice(linked))
            forest.remove(joined[-1])
        forest.append(tuple(joined))
    return normal(forest[0])


def all_trees(graph: JoinGraph, binary: bool = False) -> Iterator[Tree]:
    """Every legal tree of a connected graph, in normal form. binary: XJoins only.  At most MOST_SEARCHED inputs."""
    if graph.n > MOST_SEARCHED or not graph.is_connected:
        raise ValueError(f"trees of at most {MOST_SEARCHED} linked inputs are enumerated")
    known: dict[tuple[int, ...], list[Tree]] = {}

    def trees(inputs: tuple[int, ...]) -> list[Tree]:
        if len(inputs) == 1:
            return [inputs[0]]
        if inputs not in known:
            known[inputs] = [
                tree
                for parts in _partitions(inputs)
                if len(parts) > 1 and (len(parts) == 2 or not binary)
                if all(_is_linked(part, graph) for part in parts)
                for tree in _products([trees(part) for part in parts])
                if len(_linked_groups(tree, graph)) == 1
            ]
        return known[inputs]

    yield from trees(tuple(range(graph.n)))


def _is_tree(value: object) -> bool:
    if isinstance(value, tuple):
        return len(value) >= 2 and all(map(_is_tree, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _linked_groups(node: tuple[Tree, ...], graph: JoinGraph) -> list[set[int]]:
    """The inputs below the node, grouped by which children equalities connect."""
    groups: list[set[int]] = []
    for child in node:
        own = set(leaves(child))
        near = {j for i in own for j in graph.linked(i)}
        met = [group for group in groups if group & near]
        groups = [group for group in groups if not group & near] + [own.union(*met)]
    return groups


def _is_closed(inputs: set[int], graph: JoinGraph) -> bool:
    """Nothing outside is linked with these inputs."""
    return all(graph.linked(i) <= inputs for i in inputs)


def _is_linked(inputs: Sequence[int], graph: JoinGraph) -> bool:
    return len(inputs) == 1 or len(_linked_groups(tuple(inputs), graph)) == 1


def _partitions(inputs: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """All ways to part the inputs; parts in the order of their least inputs."""
    if not inputs:
        yield []
        return
    first, rest = inputs[0], inputs[1:]
    for mask in range(1 << len(rest)):
        own = (first, *(i for b, i in enumerate(rest) if mask >> b & 1))
        for parts in _partitions(tuple(i for b, i in enumerate(rest) if not mask >> b & 1)):
            yield [own, *parts]


def _products(choices: Sequence[Sequence[Tree]]) -> Iterator[tuple[Tree, ...]]:
    if not choices:
        yield ()
        return
    for tree in choices[0]:
        for others in _products(choices[1:]):
            yield (tree, *others)
