"""The order of inner joins: inputs that a condition connects come before a Cartesian product.

A comma list is joined in FROM order as far as conditions allow: FROM A, B, C WHERE A.x = C.x AND B.y = C.y joins A
with C, then with B. Left-deep; columns come out in FROM order. (Orders by measured selectivity are StreaMon's
business.)
"""

from __future__ import annotations

import dataclasses
import heapq

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node, is_inner_join
from minidsms.plan.logical import (
    column_refs,
    columns_used,
    conjunction,
    conjuncts,
    nodes,
    projected,
    reader_counts,
    rebuilt,
    rewrite,
)


def order_joins(root: Node) -> Node:
    """Reorder each tree of inner joins that would otherwise begin with a product."""
    if not any(map(is_inner_join, nodes(root))):
        return root
    readers = reader_counts(root)
    # A join that only another inner join reads is part of that one's tree.
    inside = {
        id(child)
        for node in nodes(root)
        if is_inner_join(node)
        for child in node.inputs
        if is_inner_join(child) and readers[id(child)] == 1
    }
    parts_of: set[int] = set()

    def change(node: Node, new: Node) -> Node:
        if id(node) in inside:
            parts_of.add(id(new))
            return new
        return _ordered(new, parts_of) if is_inner_join(new) else new

    return rebuilt(root, change)


def _flatten(node: Node, offset: int, tree: set[int], inputs: list[tuple[Node, int]], parts: list[Expr]) -> None:
    """The inputs of a join and of the joins of its tree, each with its first column's number, and all conjuncts."""
    assert isinstance(node, bound.Join)
    starts = (offset, offset + len(node.left.schema))
    for child, start in zip(node.inputs, starts):
        if id(child) in tree:
            _flatten(child, start, tree, inputs, parts)
        else:
            inputs.append((child, start))
    for part in conjuncts(node.condition):
        parts.append(_moved(part, {i: i + offset for i in columns_used(part)}))


def _moved(expr: Expr, place: dict[int, int]) -> Expr:
    def change(e: Expr) -> Expr | None:
        return dataclasses.replace(e, index=place[e.index]) if isinstance(e, bound.ColumnRef) else None

    return rewrite(expr, change)


def _connected_first(n: int, links: list[set[int]]) -> list[int]:
    """0 .. n - 1 from 0 on; next comes the least that a link connects with those before it, else the least of all.

    links: the numbers that a condition speaks of; one connects its last number once all others stand. O(n + links),
    times a logarithm.
    """
    waiting = [set(link) for link in links]
    of: dict[int, list[set[int]]] = {}
    for link in waiting:
        for k in link if len(link) > 1 else ():
            of.setdefault(k, []).append(link)
    order: list[int] = []
    placed: set[int] = set()
    connected: list[int] = [0]
    least = 0
    while len(order) < n:
        while least in placed:
            least += 1
        k = heapq.heappop(connected) if connected else least
        if k in placed:
            continue
        order.append(k)
        placed.add(k)
        for link in of.get(k, ()):
            link.discard(k)
            if len(link) == 1:
                heapq.heappush(connected, *link)
    return order


def _ordered(join: bound.Join, tree: set[int]) -> Node:
    inputs: list[tuple[Node, int]] = []
    parts: list[Expr] = []
    _flatten(join, 0, tree, inputs, parts)
    if len(inputs) < 3:
        return join
    owner = {offset + i: k for k, (node, offset) in enumerate(inputs) for i in range(len(node.schema))}
    links = [{owner[i] for i in columns_used(part)} for part in parts]
    order = _connected_first(len(inputs), links)
    if order == sorted(order):
        return join
    place: dict[int, int] = {}
    result = inputs[0][0]
    position = {k: at for at, k in enumerate(order)}
    closing: dict[int, list[int]] = {}
    for p, link in enumerate(links):
        closing.setdefault(max((position[k] for k in link if k), default=1), []).append(p)
    for i in range(len(result.schema)):
        place[i] = i
    for k in order[1:]:
        node, offset = inputs[k]
        width = len(result.schema)
        for i in range(len(node.schema)):
            place[offset + i] = width + i
        condition = conjunction([_moved(parts[p], place) for p in closing.get(position[k], ())])
        result = bound.Join.of(result, node, condition)
    refs = column_refs(join.schema)
    return projected(result, [dataclasses.replace(r, index=place[r.index]) for r in refs], join.schema.names)
