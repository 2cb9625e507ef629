"""The join graph of an n-way join: which inputs its equalities link, by which keys, and what pipelines that allows.

Each input has a *pipeline*: the order in which an element of it visits the others. A step is a probe of one key with
the key of an input visited before; where the graph is not connected, all rows of the next component's first input
match, which is a probe of the empty key. An order is *legal* if it takes no such Cartesian step while some input is
still linked to those visited. Babu 2005, section 5.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.mjoin import STEP_WORDS

Equality = tuple[tuple[int, int], tuple[int, int]]
"""((input, column), (input, column)) that must be equal."""

Key = tuple[int, ...]
"""A key of an input: its column, or several, whose hash it is; none: every row has the same."""

Link = tuple[int, Key, int, Key]
"""Equal keys: input, its key, other input, its key."""

Orders = tuple[tuple[int, ...], ...]
"""Of each input, the others in the order its pipeline visits them."""


class JoinGraph:
    """The inputs 0 .. n - 1 and their equalities.

    keys: of each input, those of no or one column first.  is_connected: no pipeline needs a Cartesian step.
    """

    def __init__(self, n: int, equalities: Sequence[Equality]) -> None:
        self.n = n
        self.equalities = tuple(equalities)
        self.keys, self._links = _keys(n, self.equalities)
        linked = [{j for _, _, j, _ in self._links_from(i)} for i in range(n)]
        self._linked: tuple[frozenset[int], ...] = tuple(map(frozenset, linked))
        self.is_connected = len(self._component(0)) == n
        if not self.is_connected:
            for keys in self.keys:
                keys.insert(0, ())

    def linked(self, i: int) -> frozenset[int]:
        """The inputs that some equality links with input i."""
        return self._linked[i]

    def equal_to(self, columns: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """These (input, column) and all that equalities make equal to one of them."""
        known = set(columns)
        grows = True
        while grows:
            more = {b for pair in self.equalities for a, b in (pair, pair[::-1]) if a in known and b not in known}
            known |= more
            grows = bool(more)
        return known

    def following(self, visited: Sequence[int]) -> list[int]:
        """The inputs that a legal pipeline may visit next, ascending."""
        rest = [j for j in range(self.n) if j not in visited]
        linked = [j for j in rest if not self._linked[j].isdisjoint(visited)]
        return linked or rest

    def default_orders(self) -> Orders:
        """Every pipeline follows FROM as far as that is legal."""
        orders = []
        for i in range(self.n):
            visited = [i]
            while len(visited) < self.n:
                visited.append(self.following(visited)[0])
            orders.append(tuple(visited[1:]))
        return tuple(orders)

    def is_legal(self, orders: Orders) -> bool:
        """One order for each input, of all the others, without a Cartesian step that can be avoided."""
        return len(orders) == self.n and all(self._is_legal(i, order) for i, order in enumerate(orders))

    def _is_legal(self, i: int, order: Sequence[int]) -> bool:
        if sorted((i, *order)) != list(range(self.n)):
            return False
        return all(j in self.following((i, *order[:d])) for d, j in enumerate(order))

    def legal_orders(self, i: int) -> Iterator[tuple[int, ...]]:
        """Every legal order of input i's pipeline, in ascending order."""
        unfinished: list[tuple[int, ...]] = [(i,)]
        while unfinished:
            visited = unfinished.pop()
            if len(visited) == self.n:
                yield visited[1:]
            else:
                unfinished.extend((*visited, j) for j in reversed(self.following(visited)))

    def pipelines(self, orders: Orders) -> tuple[Int64Array, Int64Array]:
        """Steps (n, n - 1, STEP_WORDS) and checks (c, 4) as the kernels take them."""
        place = self.places()
        steps = np.zeros((self.n, self.n - 1, STEP_WORDS), np.int64)
        checks: list[tuple[int, int, int, int]] = []
        for i, order in enumerate(orders):
            self._add_steps(i, order, place, steps[i], checks)
        return steps, np.array(checks, np.int64).reshape(-1, 4)

    def path(self, i: int, order: Sequence[int]) -> tuple[Int64Array, Int64Array]:
        """Steps (len(order), STEP_WORDS) and checks of a pipeline of input i that ends after these inputs."""
        steps = np.zeros((len(order), STEP_WORDS), np.int64)
        checks: list[tuple[int, int, int, int]] = []
        self._add_steps(i, order, self.places(), steps, checks)
        return steps, np.array(checks, np.int64).reshape(-1, 4)

    def places(self) -> dict[tuple[int, Key], int]:
        """Where each input's keys stand among all."""
        first = np.cumsum([0, *map(len, self.keys)])
        return {(i, key): int(first[i]) + k for i in range(self.n) for k, key in enumerate(self.keys[i])}

    def _add_steps(
        self,
        i: int,
        order: Sequence[int],
        place: dict[tuple[int, Key], int],
        steps: Int64Array,
        checks: list[tuple[int, int, int, int]],
    ) -> None:
        for d, j in enumerate(order):
            visited = (i, *order[:d])
            links = self.links_between(visited, j) or [(i, (), j, ())]
            # Of the longest keys the one known first: what drops an element early spares the rest.
            source, key, _, probed = min(links, key=lambda link: (-len(link[1]), visited.index(link[0])))
            begin = len(checks)
            for f, its, _, other in links:
                # Equal tags of a single column prove it equal; a hash proves nothing.
                if len(its) == 1 and (f, its, other) != (source, key, probed):
                    checks.append((f, place[f, its], j, place[j, other]))
            asked = visited.index(source)
            steps[d] = j, place[j, probed], source, place[source, key], begin, len(checks), asked

    def _links_from(self, i: int) -> list[Link]:
        """The links of input i, turned so that it stands first."""
        return [link for link in _both_ways(self._links) if link[0] == i]

    def links_between(self, visited: Sequence[int], j: int) -> list[Link]:
        """The links between the inputs visited and j, turned so that j stands last."""
        return [link for link in _both_ways(self._links) if link[2] == j and link[0] in visited]

    def _component(self, i: int) -> set[int]:
        """The inputs that equalities connect with input i, itself among them."""
        known, fresh = {i}, [i]
        while fresh:
            for j in self._linked[fresh.pop()] - known:
                known.add(j)
                fresh.append(j)
        return known


def _both_ways(links: Sequence[Link]) -> list[Link]:
    return [*links, *((j, other, i, key) for i, key, j, other in links)]


def _keys(n: int, equalities: Sequence[Equality]) -> tuple[list[list[Key]], list[Link]]:
    """Each input's keys, single columns first, and which are equal, those of several columns first.

    Two inputs linked by several equalities get a key of all these columns: probing one column alone would walk past
    every row that shares it.
    """
    keys: list[list[Key]] = [[] for _ in range(n)]
    between: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (i, c), (j, d) in equalities:
        pair = (c, d) if i < j else (d, c)
        columns = between.setdefault((min(i, j), max(i, j)), [])
        if pair not in columns:
            columns.append(pair)
    linked: list[Link] = []
    for (i, j), columns in between.items():
        for c, d in columns:
            linked.append((i, (c,), j, (d,)))
    for (i, j), columns in between.items():
        if len(columns) > 1:
            linked.insert(0, (i, tuple(c for c, _ in columns), j, tuple(d for _, d in columns)))
    for i, key, j, other in sorted(linked, key=lambda link: len(link[1])):
        for k, its in ((i, key), (j, other)):
            if its not in keys[k]:
                keys[k].append(its)
    return keys, linked
