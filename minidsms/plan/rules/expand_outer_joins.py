"""Outer joins as inner joins plus the unmatched rows padded with NULL.

L LEFT JOIN R ON c = (L JOIN R ON c) UNION ALL pad(L without a match). Where c is equalities only the unmatched rows
are an antijoin on the keys; otherwise they are the rows of L that are not among the distinct left halves of the
joined rows.
"""

from __future__ import annotations

import dataclasses

from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node, SetKind
from minidsms.cql.functions import can_fail
from minidsms.cql.origins import equal_pair
from minidsms.plan.logical import (
    SemiJoin,
    column_refs,
    columns_used,
    conjunction,
    conjuncts,
    filtered,
    projected,
    shift,
    transform,
)
from minidsms.plan.matching import ONE, matched_rows


def expand_outer_joins(root: Node) -> Node:
    """Expand every LEFT, RIGHT and FULL join of the plan."""
    return transform(root, _expand)


def _expand(node: Node) -> Node:
    if not isinstance(node, bound.Join) or node.join is JoinKind.INNER:
        return node
    width = len(node.left.schema)
    left, right = node.left, node.right
    parts = conjuncts(node.condition)
    # A conjunct of ON about the padded side alone only chooses what can match: it may be applied below.
    if node.join is JoinKind.LEFT:
        below = [p for p in parts if columns_used(p) and min(columns_used(p)) >= width and not can_fail(p)]
        right = filtered(right, [shift(p, -width) for p in below])
        parts = [p for p in parts if p not in below]
    elif node.join is JoinKind.RIGHT:
        below = [p for p in parts if columns_used(p) and max(columns_used(p)) < width and not can_fail(p)]
        left = filtered(left, below)
        parts = [p for p in parts if p not in below]
    inner = dataclasses.replace(node, join=JoinKind.INNER, left=left, right=right, condition=conjunction(parts))
    result: Node = inner
    pairs = [pair for pair in (equal_pair(p, width) for p in parts) if pair is not None]
    equalities_only = len(pairs) == len(parts)
    if node.join in (JoinKind.LEFT, JoinKind.FULL):
        unmatched = _unmatched(left, right, pairs if equalities_only else None, inner, 0)
        exprs = [*column_refs(left.schema), *_nulls(right)]
        result = _union(result, projected(unmatched, exprs, node.schema.names))
    if node.join in (JoinKind.RIGHT, JoinKind.FULL):
        turned = [(b, a) for a, b in pairs]
        unmatched = _unmatched(right, left, turned if equalities_only else None, inner, width)
        exprs = [*_nulls(left), *column_refs(right.schema)]
        result = _union(result, projected(unmatched, exprs, node.schema.names))
    return result


def _unmatched(side: Node, other: Node, pairs: list[tuple[Expr, Expr]] | None, inner: bound.Join, offset: int) -> Node:
    """The rows of one side without a partner. pairs: all that is asked of a partner, where these are equalities."""
    if pairs is not None:
        return SemiJoin(side.schema, side, other, tuple(pairs) or ((ONE, ONE),), anti=True)
    return matched_rows(side, inner, offset, conjuncts(inner.condition), anti=True)


def _nulls(node: Node) -> list[Expr]:
    return [bound.Literal(t, None) for t in node.schema.types]


def _union(a: Node, b: Node) -> Node:
    return bound.SetOperation(a.schema, SetKind.UNION, True, a, b)
