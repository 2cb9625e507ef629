"""Which caches given orders allow.

A set of inputs is a prefix set if each of them visits all the others of it first: then every change of their join is
computed anyway. Where a pipeline visits a prefix set in one stretch, the stretch can be cached (Babu 2005, section
5.4). A globally consistent cache holds X semijoin Y instead, X and Y together being a prefix set (section 5.7).

Invariant: prefix sets are nested or disjoint, hence so are the prefix-consistent candidates of a pipeline.  Cartesian
products are no candidates, nor are single inputs: their index is as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from minidsms.joins.equal_columns import Equality
from minidsms.joins.plan import CacheSpec, Orders

QUOTA = 6
"""m: caches considered when globally consistent ones are (Babu 2005, section 5.7)."""


def prefix_sets(orders: Orders) -> list[frozenset[int]]:
    """The prefix sets of two inputs or more, all inputs among them, by size.  O(n^3)."""
    n = len(orders)
    found = set()
    for i, order in enumerate(orders):
        for length in range(1, n):
            members = frozenset((i, *order[:length]))
            if all({m, *orders[m][:length]} == members for m in members):
                found.add(members)
    return sorted(found, key=lambda members: (len(members), sorted(members)))


def prefix_candidates(orders: Orders, equalities: Sequence[Equality]) -> tuple[CacheSpec, ...]:
    """Every prefix-consistent cache, sorted."""
    found = []
    for members in prefix_sets(orders):
        if not _is_connected(members, equalities):
            continue
        for i, order in enumerate(orders):
            if i not in members:
                j = min(order.index(m) for m in members)
                segment = order[j : j + len(members)]
                if members == set(segment):
                    found.append(CacheSpec(i, segment))
    return tuple(sorted(found))


def global_candidates(
    orders: Orders,
    equalities: Sequence[Equality],
    quota: int = QUOTA,
    weights: Sequence[float] | None = None,
    is_legal: Callable[[CacheSpec], bool] = lambda spec: True,
) -> tuple[CacheSpec, ...]:
    """Globally consistent caches, largest segments first, as many as the quota leaves beside the prefix-consistent.

    weights: what each pipeline spends; of segments equally long, those of the most costly pipelines are preferred. A
    segment that is a prefix set itself is left out; others are reduced by the fewest inputs that make them one.
    is_legal: what else the join asks of a cache.
    """
    n = len(orders)
    free = quota - len(prefix_candidates(orders, equalities))
    sets = prefix_sets(orders)
    pipelines = sorted(range(n), key=lambda i: (0.0 if weights is None else -weights[i], i))
    found: list[CacheSpec] = []
    for length in range(n - 1, 1, -1):
        for i in pipelines:
            for j in range(n - length):
                segment = orders[i][j : j + length]
                members = next(s for s in sets if s >= set(segment))
                spec = CacheSpec(i, segment, tuple(sorted(members - set(segment))))
                if len(found) < free and spec.reduced_by and _is_connected(segment, equalities) and is_legal(spec):
                    found.append(spec)
    return tuple(found)


def _is_connected(inputs: Collection[int], equalities: Sequence[Equality]) -> bool:
    """Equalities lead from each of these inputs to each other, without leaving them."""
    links = {frozenset((a[0], b[0])) for a, b in equalities}
    reached = {min(inputs)}
    while True:
        more = {b for a in reached for b in inputs if b not in reached and frozenset((a, b)) in links}
        if not more:
            return len(reached) == len(inputs)
        reached |= more
