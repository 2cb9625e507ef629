"""Correlated subqueries made independent: their outer references become columns to join on.

`lift` moves conjuncts that mention the enclosing query out of a subquery's WHERE. An equality `inner = outer` becomes
a pair (outer expression, column of the lifted node); any other conjunct is kept as a condition over the outer row
followed by the lifted row. What cannot be lifted so is left to `per_outer_row`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.elements import Schema
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


def outer_columns(node: Node, level: int = 1) -> set[int]:
    """The columns of the query `level` steps out that the node mentions."""
    found: set[int] = set()
    seen: set[tuple[int, int]] = set()

    def visit(n: Node, depth: int) -> None:
        if (id(n), depth) in seen:
            return
        seen.add((id(n), depth))
        for expr in n.expressions:
            found.update(e.index for e in outer_refs(expr) if e.level == depth)
            for query in bound.subqueries(expr):
                visit(query, depth + 1)
        for child in n.inputs:
            visit(child, depth)

    visit(node, level)
    return found


def is_correlated(node: Node, level: int = 1) -> bool:
    """The node mentions the query `level` steps out."""
    return bool(outer_columns(node, level))


def to_outer_row(expr: Expr) -> Expr:
    """The expression read over the outer row itself: outer references become its columns."""

    def change(e: Expr) -> Expr | None:
        return bound.ColumnRef(e.type, e.index, e.name, span=e.span) if isinstance(e, bound.OuterRef) else None

    return rewrite(expr, change)


def lift(node: Node) -> Lifted | None:
    """Lift the correlation out of a subquery; an uncorrelated one comes back as it is.

    None where the outer columns do not stand as conjuncts in the WHERE of a plain block, or under a group or a set
    operator are not all equated: `per_outer_row` takes these.
    """
    if not is_correlated(node):
        return Lifted(node, len(node.schema))
    below, parts = unfiltered(node)
    if parts:
        return _lift_filter(below, parts)
    match node:
        case bound.Project():
            inner = lift(node.input)
            if inner is None:
                return None
            extra = _extra_refs(inner)
            exprs = (*node.exprs, *extra)
            schema = node.schema + Schema(tuple(bound.Field(e.name, e.type) for e in extra))
            return _moved(inner, bound.Project(schema, inner.node, exprs), len(node.schema))
        case bound.Distinct():
            inner = lift(node.input)
            # With conditions, one row may come several times, once for each value they compare.
            if inner is None or inner.conditions:
                return None
            return _moved(inner, bound.Distinct(inner.node.schema, inner.node), inner.width)
        case bound.Aggregate(is_global=False):
            return _lift_aggregate(node)
        case bound.SetOperation():
            left, right = lift(node.left), lift(node.right)
            if left is None or right is None or left.conditions or right.conditions:
                return None
            if [p[0] for p in left.pairs] != [p[0] for p in right.pairs]:
                return None
            schema = left.node.schema
            return _moved(left, dataclasses.replace(node, schema=schema, left=left.node, right=right.node), left.width)
        case _:
            return None


def _lift_filter(below: Node, parts: list[Expr]) -> Lifted | None:
    inner = lift(below)
    if inner is None:
        return None
    kept: list[Expr] = []
    pairs: list[tuple[Expr, Expr]] = []
    conditions: list[Expr] = []
    for part in factored(parts):
        if any(is_correlated(q, 2) for q in bound.subqueries(part)):
            return None
        if not outer_refs(part):
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


def _lift_aggregate(node: bound.Aggregate) -> Lifted | None:
    """Groups per outer value: the lifted columns become further keys."""
    inner = lift(node.input)
    if inner is None or inner.conditions:
        return None
    extra = _extra_refs(inner)
    k, a, x = len(node.keys), len(node.aggregates), len(extra)
    fields = node.schema.fields
    key_fields = tuple(bound.Field(e.name, e.type) for e in extra)
    grouped = dataclasses.replace(
        node,
        schema=Schema(fields[:k] + key_fields + fields[k:]),
        input=inner.node,
        keys=(*node.keys, *extra),
    )
    order = [*range(k), *range(k + x, k + x + a), *range(k, k + x)]
    result = projected(grouped, [bound.ColumnRef(grouped.schema[i].type, i, grouped.schema[i].name) for i in order])
    return _moved(inner, result, k + a)


def _extra_refs(lifted: Lifted) -> list[bound.ColumnRef]:
    schema = lifted.node.schema
    return [bound.ColumnRef(schema[i].type, i, schema[i].name) for i in range(lifted.width, len(schema))]


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
