"""Correlated subqueries made independent: their outer references become columns to join on.

`lift` moves conjuncts that mention the enclosing query out of a subquery's WHERE. An equality `inner = outer` becomes
a pair (outer expression, column of the lifted node); any other conjunct is kept as a condition over the outer row
followed by the lifted row. What cannot be lifted so is left to `per_outer_row`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.node import Carried
from minidsms.cql.rewriting import outer_columns
from minidsms.plan.logical import (
    column_refs,
    columns_used,
    filtered,
    projected,
    renumbered,
    rewrite,
    shift,
    unfiltered,
)
from minidsms.plan.rules.factor_disjunctions import factored


@dataclass
class Lifted:
    """A subquery without outer references: its own columns, then the lifted ones.

    pairs: (expression over the outer row, column number here), to be equal.  conditions: conjuncts in which OuterRef
    is the outer row and ColumnRef a column here.  width: how many columns are the subquery's own.
    """

    node: Node
    width: int
    pairs: list[tuple[Expr, int]] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)


def outer_refs(expr: Expr) -> list[bound.OuterRef]:
    """The outer references of an expression, without those inside its subqueries."""
    return [e for e in bound.walk(expr) if isinstance(e, bound.OuterRef)]


def is_correlated(node: Node, level: int = 1) -> bool:
    """The node mentions the query `level` steps out."""
    return bool(outer_columns(node, level))


def looks_out(expr: Expr) -> bool:
    """The expression, or a subquery in it, mentions a query around the one that it stands in."""
    return bool(outer_refs(expr)) or any(is_correlated(query, 2) for query in bound.subqueries(expr))


def to_outer_row(expr: Expr) -> Expr:
    """The expression read over the outer row itself: outer references become its columns."""

    def change(e: Expr) -> Expr | None:
        return bound.ColumnRef(e.type, e.index, e.name, span=e.span) if isinstance(e, bound.OuterRef) else None

    return rewrite(expr, change)


def lift(node: Node) -> Lifted | None:
    """Lift the correlation out of a subquery; an uncorrelated one comes back as it is.

    None where the outer columns do not stand as conjuncts in the WHERE of a plain block, or under a group, a set
    operator, OVER or LIMIT are not all equated: `per_outer_row` takes these.
    """
    if not is_correlated(node):
        return Lifted(node, len(node.schema))
    below, parts = unfiltered(node)
    if parts:
        return _lift_filter(below, parts)
    if any(map(looks_out, node.expressions)):
        return None
    inner = [lifted for lifted in map(lift, node.inputs) if lifted is not None]
    if not inner or len(inner) < len(node.inputs):
        return None
    # With conditions, one row may come several times, once for each value they compare.
    if not isinstance(node, bound.ByRow) and any(each.conditions for each in inner):
        return None
    first, *others = ([outer for outer, _ in each.pairs] for each in inner)
    carried = node.carrying([Carried.beside(each.node, each.width) for each in inner])
    if carried is None or any(outer != first for outer in others):
        return None
    return _moved(inner[0], bound.further_last(carried), len(node.schema))


def _lift_filter(below: Node, parts: list[Expr]) -> Lifted | None:
    inner = lift(below)
    if inner is None:
        return None
    kept: list[Expr] = []
    pairs: list[tuple[Expr, Expr]] = []
    conditions: list[Expr] = []
    for part in factored(parts):
        if not looks_out(part):
            kept.append(part)
            continue
        if any(ref.level != 1 for ref in outer_refs(part)) or bound.subqueries(part):
            return None
        pair = _equality(part)
        if pair is not None:
            pairs.append(pair)
        else:
            conditions.append(part)
    base = filtered(inner.node, kept)
    width = len(inner.node.schema)
    needed = sorted({i for part in conditions for i in columns_used(part)})
    extra = [inner_expr for _, inner_expr in pairs]
    extra += [bound.ColumnRef(inner.node.schema[i].type, i, inner.node.schema[i].name) for i in needed]
    if extra:
        base = projected(base, [*column_refs(inner.node.schema), *extra])
    place = {i: width + len(pairs) + k for k, i in enumerate(needed)}
    return Lifted(
        base,
        inner.width,
        inner.pairs + [(to_outer_row(outer), width + k) for k, (outer, _) in enumerate(pairs)],
        inner.conditions + [renumbered(part, place.__getitem__) for part in conditions],
    )


def _moved(inner: Lifted, node: Node, width: int) -> Lifted:
    """`inner`'s correlation on a node whose lifted columns start at `width` instead."""
    offset = width - inner.width
    return Lifted(
        node,
        width,
        [(outer, i + offset) for outer, i in inner.pairs],
        [shift(part, offset) for part in inner.conditions],
    )


def _equality(part: Expr) -> tuple[Expr, Expr] | None:
    """(outer side, inner side) of a conjunct `inner = outer`, or None."""
    if not (isinstance(part, bound.Call) and part.function == "="):
        return None
    for outer, inner in (part.args, part.args[::-1]):
        if outer_refs(outer) and not columns_used(outer) and not outer_refs(inner) and columns_used(inner):
            return outer, inner
    return None
