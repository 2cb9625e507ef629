"""Outer joins that join by equalities alone become left ones, which an operator runs; others inner joins plus the
unmatched rows padded with NULL.

L LEFT JOIN R ON c = (L JOIN R ON c) UNION ALL pad(L without a match). Where c is equalities only the unmatched rows
are an antijoin on the keys; otherwise they are the rows of L that are not among the distinct left halves of the
joined rows. R RIGHT JOIN L is L LEFT JOIN R with the columns in their order, and a FULL join adds to a left one the
unmatched rows of the right side. A left join below a filter that asks for padded columns is parted all the same: most
such filters let no padded row pass.
"""

from __future__ import annotations

import dataclasses

from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node
from minidsms.cql.functions import can_fail
from minidsms.cql.origins import equal_pairs
from minidsms.plan.logical import (
    SemiJoin,
    column_refs,
    columns_used,
    conjunction,
    conjuncts,
    filtered,
    nodes,
    projected,
    rebuilt,
    renumbered,
    shift,
    unfiltered,
    union_all,
)
from minidsms.plan.matching import matched_rows


def expand_outer_joins(root: Node, every: bool = False) -> Node:
    """Expand every LEFT, RIGHT and FULL join of the plan that no operator runs. every: and those that one does."""
    parted = {id(unfiltered(node)[0]) for node in nodes(root) if _asks_for_padded(node)}

    def change(node: Node, new: Node) -> Node:
        if isinstance(new, bound.Join) and new.join is not JoinKind.INNER:
            return _expand(new, every or id(node) in parted)
        return new

    return rebuilt(root, change)


def _asks_for_padded(node: Node) -> bool:
    """It is a filter of an outer join by padded columns."""
    below, parts = unfiltered(node)
    if not isinstance(below, bound.Join) or below.join not in (JoinKind.LEFT, JoinKind.RIGHT):
        return False
    width = len(below.left.schema)
    return any((i >= width) is (below.join is JoinKind.LEFT) for part in parts for i in columns_used(part))


def _expand(node: bound.Join, is_parted: bool) -> Node:
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
    pairs, others = equal_pairs(parts, width)
    reads_both = bool(pairs) and all(columns_used(a) and columns_used(b) for a, b in pairs)
    is_one = not others and reads_both and not is_parted
    kind = JoinKind.LEFT if is_one and node.join is not JoinKind.RIGHT else JoinKind.INNER
    inner = dataclasses.replace(node, join=kind, left=left, right=right, condition=conjunction(parts))
    if is_one and node.join is JoinKind.RIGHT:
        return _turned(inner)
    result: Node = inner
    if node.join in (JoinKind.LEFT, JoinKind.FULL) and not is_one:
        unmatched = _unmatched(left, right, None if others else pairs, inner, 0)
        exprs = [*column_refs(left.schema), *_nulls(right)]
        result = union_all(result, projected(unmatched, exprs, node.schema.names))
    if node.join in (JoinKind.RIGHT, JoinKind.FULL):
        turned = [(b, a) for a, b in pairs]
        unmatched = _unmatched(right, left, None if others else turned, inner, width)
        exprs = [*_nulls(left), *column_refs(right.schema)]
        result = union_all(result, projected(unmatched, exprs, node.schema.names))
    return result


def _turned(join: bound.Join) -> Node:
    """A right join as a left one of its sides in the other order."""
    left, right = join.left, join.right
    width, moved = len(left.schema), len(right.schema)
    condition = [renumbered(p, lambda i: i + moved if i < width else i - width) for p in conjuncts(join.condition)]
    turned = bound.Join.of(right, left, conjunction(condition), JoinKind.LEFT)
    refs = column_refs(turned.schema)
    return projected(turned, [*refs[moved:], *refs[:moved]], join.schema.names)


def _unmatched(side: Node, other: Node, pairs: list[tuple[Expr, Expr]] | None, inner: bound.Join, offset: int) -> Node:
    """The rows of one side without a partner. pairs: all that is asked of a partner, where these are equalities."""
    if pairs is not None:
        return SemiJoin(side.schema, side, other, tuple(pairs), anti=True)
    return matched_rows(side, inner, offset, conjuncts(inner.condition), anti=True)


def _nulls(node: Node) -> list[Expr]:
    return [bound.Literal(t, None) for t in node.schema.types]
