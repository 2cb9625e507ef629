"""The joins of a pipeline as filters: each other input is the *logical filter* of the path that leads to it.

From the input whose elements a pipeline processes, a path of the join graph's spanning tree leads to every other
input; the element is dropped by input j if the joins along the path to j give nothing. Logical filters commute, so the
algorithms that order filters order them; joins have to follow their paths, lest they become Cartesian products.

Invariant: an order made of an order of logical filters is legal. Filters have numbers 0 to n - 2: those of the other
inputs, ascending.  Babu 2005, sections 5.2.2 and 5.2.3, figure 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from weakref import WeakKeyDictionary

from minidsms.expressions.routes import Order
from minidsms.joins.graph import JoinGraph

ENOUGH_ORDERS = 2


class LogicalFilters:
    """Of one pipeline of a connected join graph. root: the input whose elements it processes.

    others: the other inputs, ascending, by number of their logical filter.  paths: of each, the inputs from the root
    (without it) to it: the shortest path, so that a cycle is cut where it is farthest from the root.
    has_choice: more than one order is legal.
    """

    def __init__(self, graph: JoinGraph, root: int) -> None:
        self.root = root
        self.others = tuple(j for j in range(graph.n) if j != root)
        self.number_of = {j: f for f, j in enumerate(self.others)}
        parents = {root: root}
        reached = [root]
        for i in reached:
            for j in sorted(graph.linked(i)):
                if j not in parents:
                    parents[j] = i
                    reached.append(j)
        self.paths = tuple(_path(j, root, parents) for j in self.others)
        orders = graph.legal_orders(root)
        self.has_choice = sum(1 for _ in zip(range(ENOUGH_ORDERS), orders)) == ENOUGH_ORDERS

    def joins(self, filters: Sequence[int]) -> tuple[int, ...]:
        """The order of the joins for an order of the logical filters: each with what its path needs before it."""
        placed: dict[int, None] = {}
        for f in filters:
            placed.update(dict.fromkeys(self.paths[f]))
        return tuple(placed)

    def filters(self, joins: Sequence[int]) -> Order:
        """The logical filters in the order in which a pipeline's joins complete them."""
        return tuple(self.number_of[j] for j in joins)


def _path(j: int, root: int, parents: dict[int, int]) -> tuple[int, ...]:
    path = [j]
    while parents[path[-1]] != root:
        path.append(parents[path[-1]])
    return tuple(reversed(path))


_completions: WeakKeyDictionary[JoinGraph, dict[frozenset[int], int]] = WeakKeyDictionary()
"""Of what was visited, how many legal orders there are of the rest."""


def random_order(graph: JoinGraph, i: int, rng: Random) -> tuple[int, ...]:
    """A legal order of a pipeline, each as likely as another.

    The completions of what was visited depend on the set visited alone, so that they are counted once a set.
    O(2^n * n) for the first order of a graph of n inputs, O(n^2) for each other.
    """
    known = _completions.setdefault(graph, {})

    def completions(visited: frozenset[int]) -> int:
        if len(visited) == graph.n:
            return 1
        if visited not in known:
            known[visited] = sum(completions(visited | {j}) for j in graph.following(sorted(visited)))
        return known[visited]

    order: list[int] = []
    while len(order) < graph.n - 1:
        visited = frozenset((i, *order))
        choices = graph.following(sorted(visited))
        order.append(rng.choices(choices, [completions(visited | {j}) for j in choices])[0])
    return tuple(order)
