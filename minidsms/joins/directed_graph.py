"""The directed join graph of a join: streams, and edges that are many-one where a key is declared.

Invariant: the graph is a tree, so that a row meets each other stream by one path (Babu 2005, section 6.2:
DT-shaped). An edge is many-one towards a stream whose key lies within the columns it is joined by; one-one, if both
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minidsms.joins.equal_columns import EqualColumns, Equality


@dataclass(frozen=True)
class Edge:
    """Two inputs, left < right, and the pairs of columns (left's, right's) that are equal.

    left_key, right_key: no two rows of that input agree in them.
    """

    left: int
    right: int
    columns: tuple[tuple[int, int], ...]
    left_key: bool = False
    right_key: bool = False

    @property
    def ends(self) -> tuple[int, int]:
        """Left and right."""
        return self.left, self.right


def necessary(equalities: Sequence[Equality]) -> list[Equality]:
    """The equalities without those that follow from the others before them."""
    known = EqualColumns()
    return [(a, b) for a, b in equalities if known.join(a, b)]


def tree_of(n: int, equalities: Sequence[Equality], keys: Sequence[frozenset[int] | None]) -> tuple[Edge, ...] | str:
    """The edges of a tree over n inputs, or why there is none.

    keys: of each input, columns in which no two rows agree; None: no such columns are known.
    """
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (i, c), (j, d) in necessary(equalities):
        if i == j:
            return "an input is compared with itself"
        pairs.setdefault((min(i, j), max(i, j)), []).append((c, d) if i < j else (d, c))
    if len(pairs) != n - 1:
        return "the joins form a cycle" if len(pairs) >= n else "no equality connects all inputs"
    joined = {0}
    while True:
        more = {b for a, b in pairs if a in joined} | {a for a, b in pairs if b in joined}
        if more <= joined:
            break
        joined |= more
    if len(joined) < n:
        return "the joins form a cycle"

    def is_key(i: int, columns: frozenset[int]) -> bool:
        key = keys[i]
        return key is not None and key <= columns

    edges = []
    for (i, j), columns in pairs.items():
        sides = frozenset(c for c, _ in columns), frozenset(d for _, d in columns)
        edges.append(Edge(i, j, tuple(columns), is_key(i, sides[0]), is_key(j, sides[1])))
    return tuple(edges)


def orientation(n: int, edges: Sequence[Edge]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sides that lead from a parent to its child, those of a stream after those of its children; and the roots.

    Side 2e is the left end of edge e, side 2e + 1 the right one. A one-one edge may lead either way: it leads so that
    there is one root, if that can be, and the first such input is it. An edge without a key leads nowhere.
    """

    def leads(s: int) -> bool:
        edge = edges[s // 2]
        return edge.left_key if s % 2 else edge.right_key

    for root in range(n):
        order = _sides_from(root, n, edges, leads)
        if len(order) == n - 1:
            return tuple(reversed(order)), (root,)
    down = [s for e in range(len(edges)) for s in [next((s for s in (2 * e, 2 * e + 1) if leads(s)), -1)] if s >= 0]
    children = {edges[s // 2].ends[1 - s % 2] for s in down}
    depth = dict.fromkeys(range(n), 0)
    for _ in range(n):
        for s in down:
            parent, child = edges[s // 2].ends[s % 2], edges[s // 2].ends[1 - s % 2]
            depth[parent] = max(depth[parent], depth[child] + 1)
    down.sort(key=lambda s: depth[edges[s // 2].ends[s % 2]])
    return tuple(down), tuple(i for i in range(n) if i not in children)


def message_order(n: int, edges: Sequence[Edge]) -> tuple[int, ...]:
    """All sides, each after the other sides of the stream it leads to: along the tree to input 0 and back."""
    inward = _sides_from(0, n, edges, lambda s: True)
    return (*reversed(inward), *(s ^ 1 for s in inward))


def _sides_from(start: int, n: int, edges: Sequence[Edge], leads: Callable[[int], bool]) -> list[int]:
    """The sides that lead, one after the other, from an input to all that can be reached."""
    at: list[list[int]] = [[] for _ in range(n)]
    for e, edge in enumerate(edges):
        at[edge.left].append(2 * e)
        at[edge.right].append(2 * e + 1)
    order: list[int] = []
    stack, seen = [start], {start}
    while stack:
        for s in at[stack.pop()]:
            j = edges[s // 2].ends[1 - s % 2]
            if j not in seen and leads(s):
                seen.add(j)
                order.append(s)
                stack.append(j)
    return order


def pipelines(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    """For each input, the sides by which a row of it visits the others: those that find one row at most come first."""
    result = []
    for start in range(n):
        steps: list[int] = []
        seen = {start}
        while len(seen) < n:
            ways = [
                (not (edge.right_key if s % 2 == 0 else edge.left_key), e, s)
                for e, edge in enumerate(edges)
                for s in (2 * e, 2 * e + 1)
                if edge.ends[s % 2] in seen and edge.ends[1 - s % 2] not in seen
            ]
            s = min(ways)[2]
            steps.append(s)
            seen.add(edges[s // 2].ends[1 - s % 2])
        result.append(steps)
    return result
