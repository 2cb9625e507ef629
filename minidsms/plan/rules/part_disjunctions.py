"""A join whose condition is an OR of equalities is the union of a join for each: JOIN ON p OR q is JOIN ON p, UNION ALL
JOIN ON q of the pairs for which p is not TRUE.

Each of them looks up its equality. As one join it would look at every pair: with windows of 10,000 rows that is 10,000
a row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import reduce

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.functions import can_fail
from minidsms.cql.origins import equal_pair
from minidsms.elements import Type
from minidsms.plan.logical import columns_used, conjunction, conjuncts, transform, union_all

_MOST_BRANCHES = 4
"""Each is a join, with an index of its own."""


def part_disjunctions(root: Node) -> Node:
    """Part every inner join that no equality links, but each branch of an OR."""
    return transform(root, _parted)


def _parted(node: Node) -> Node:
    if not bound.is_inner_join(node):
        return node
    parts, width = conjuncts(node.condition), len(node.left.schema)
    if any(map(can_fail, parts)) or _is_linked(parts, width):
        return node
    for part in parts:
        branches = _branches(part)
        if 1 < len(branches) <= _MOST_BRANCHES and all(_is_linked(conjuncts(branch), width) for branch in branches):
            others = [other for other in parts if other is not part]
            joins: list[Node] = []
            for i, branch in enumerate(branches):
                own = [*conjuncts(branch), *map(_is_not_true, branches[:i]), *others]
                joins.append(dataclasses.replace(node, condition=conjunction(own)))
            return reduce(union_all, joins)
    return node


def _branches(expr: Expr) -> list[Expr]:
    if isinstance(expr, bound.Call) and expr.function == "or":
        return [branch for arg in expr.args for branch in _branches(arg)]
    if isinstance(expr, bound.Call) and expr.function == "in":
        value, *items = expr.args
        return [bound.Call(Type.BOOLEAN, "=", (value, item), span=expr.span) for item in items]
    return [expr]


def _is_linked(parts: Sequence[Expr], width: int) -> bool:
    """One of the conjuncts is an equality of both sides."""
    pairs = (equal_pair(part, width) for part in parts)
    return any(pair is not None and columns_used(pair[0]) and columns_used(pair[1]) for pair in pairs)


def _is_not_true(branch: Expr) -> Expr:
    known = bound.Call(Type.BOOLEAN, "coalesce", (branch, bound.Literal(Type.BOOLEAN, False)))
    return bound.Call(Type.BOOLEAN, "not", (known,))
