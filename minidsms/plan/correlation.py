"""Correlated subqueries made independent: their outer references become columns to join on.

`lift` moves conjuncts that mention the enclosing query out of a subquery's WHERE. An equality `inner = outer` becomes
a pair
(outer expression, column of the lifted node); any other conjunct is kept as a condition over the outer row followed
by the
lifted row. What cannot be lifted is refused with its place; nothing is answered approximately.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.errors import CqlError
from minidsms.elements import Schema
from minidsms.plan.logical import (
    column_refs,
    columns_used,
    conjuncts,
    filtered,
    projected,
    rewrite,
)


@dataclass
class Lifted:
    """A subquery without outer references: its own columns, then the lifted ones.

    pairs: (expression over the outer row, column number here), to be equal.  conditions: conjuncts in which OuterRef
    is the
    outer row and ColumnRef a column here.  width: how many columns are the subquery's own.
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
    seen: set[int] = set()

    def visit(n: Node, depth: int) -> bool:
        if (id(n) * 8 + depth) in seen:
            return False
        seen.add(id(n) * 8 + depth)
        for expr in bound.expressions(n):
            for e in bound.walk(expr):
                if isinstance(e, bound.OuterRef) and e.level == depth:
                    return True
            if any(visit(q, depth + 1) for q in bound.subqueries(expr)):
                return True
        return any(visit(child, depth) for child in n.inputs)

    return visit(node, level)


def to_outer_row(expr: Expr) -> Expr:
    """The expression read over the outer row itself: outer references become its columns."""

    def change(e: Expr) -> Expr | None:
        return bound.ColumnRef(e.type, e.index, e.name, span=e.span) if isinstance(e, bound.OuterRef) else None

    return rewrite(expr, change)


def lift(node: Node, text: str) -> Lifted:
    """Lift the correlation out of a subquery; an uncorrelated one comes back as it is."""
    if not is_correlated(node):
        return Lifted(node, len(node.schema))
    match node:
        case bound.Filter():
            return _lift_filter(node, text)
        case bound.Project():
            inner = lift(node.input, text)
            extra = _extra_refs(inner)
            exprs = (*node.exprs, *extra)
            schema = node.schema + Schema(tuple(bound.Field(e.name, e.type) for e in extra))
            return _moved(inner, bound.Project(schema, inner.node, exprs), len(node.schema))
        case bound.Distinct():
            inner = lift(node.input, text)
            return _moved(inner, bound.Distinct(inner.node.schema, inner.node), inner.width)
        case bound.Aggregate(is_global=False):
            return _lift_aggregate(node, text)
        case bound.SetOperation():
            left, right = lift(node.left, text), lift(node.right, text)
            if left.conditions or right.conditions or [p[0] for p in left.pairs] != [p[0] for p in right.pairs]:
                raise _refusal(node, text, "the two sides of a set operator must be correlated by the same equalities")
            schema = left.node.schema
            return _moved(left, dataclasses.replace(node, schema=schema, left=left.node, right=right.node), left.width)
        case _:
            raise _refusal(node, text, "an outer column may be used only in the WHERE of a plain SELECT block")


def _lift_filter(node: bound.Filter, text: str) -> Lifted:
    inner = lift(node.input, text)
    kept: list[Expr] = []
    pairs: list[tuple[Expr, Expr]] = []
    conditions: list[Expr] = []
    for part in conjuncts(node.condition):
        if any(is_correlated(q, 2) for q in bound.subqueries(part)):
            raise _refusal(node, text, "a subquery may mention only the query directly around it", part)
        if not outer_refs(part):
            kept.append(part)
            continue
        if any(ref.level != 1 for ref in outer_refs(part)):
            raise _refusal(node, text, "a subquery may mention only the query directly around it", part)
        if list(bound.subqueries(part)):
            raise _refusal(node, text, "a condition on an outer column may not hold a subquery of its own", part)
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

    def moved(e: Expr) -> Expr | None:
        return dataclasses.replace(e, index=place[e.index]) if isinstance(e, bound.ColumnRef) else None

    return Lifted(
        base,
        inner.width,
        inner.pairs + [(to_outer_row(outer), width + k) for k, (outer, _) in enumerate(pairs)],
        inner.conditions + [rewrite(part, moved) for part in conditions],
    )


def _lift_aggregate(node: bound.Aggregate, text: str) -> Lifted:
    """Groups per outer value: the lifted columns become further keys."""
    inner = lift(node.input, text)
    if inner.conditions:
        raise _refusal(node, text, "a grouped subquery may be correlated by equality only", inner.conditions[0])
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
    result = projected(
        grouped, [bound.ColumnRef(grouped.schema[i].type, i, grouped.schema[i].name) for i in order]
    )
    return _moved(inner, result, k + a)


def _extra_refs(lifted: Lifted) -> list[bound.ColumnRef]:
    schema = lifted.node.schema
    return [bound.ColumnRef(schema[i].type, i, schema[i].name) for i in range(lifted.width, len(schema))]


def _moved(inner: Lifted, node: Node, width: int) -> Lifted:
    """`inner`'s correlation on a node whose lifted columns start at `width` instead."""
    offset = width - inner.width

    def moved(e: Expr) -> Expr | None:
        return dataclasses.replace(e, index=e.index + offset) if isinstance(e, bound.ColumnRef) else None

    return Lifted(
        node,
        width,
        [(outer, i + offset) for outer, i in inner.pairs],
        [rewrite(part, moved) for part in inner.conditions],
    )


def _equality(part: Expr) -> tuple[Expr, Expr] | None:
    """(outer side, inner side) of a conjunct `inner = outer`, or None."""
    if not (isinstance(part, bound.Call) and part.function == "="):
        return None
    for outer, inner in (part.args, part.args[::-1]):
        if outer_refs(outer) and not columns_used(outer) and not outer_refs(inner) and columns_used(inner):
            return outer, inner
    return None


def _refusal(node: Node, text: str, reason: str, expr: Expr | None = None) -> CqlError:
    span = expr.span if expr is not None else _some_span(node)
    return CqlError(
        "this correlated subquery is not supported", text, span, reason, "write it as a join, or correlate by equality"
    )


def _some_span(node: Node) -> tuple[int, int] | None:
    """The place of an outer reference inside a node."""
    for n in [node, *node.inputs]:
        for expr in bound.expressions(n):
            for ref in outer_refs(expr):
                return ref.span
    for child in node.inputs:
        span = _some_span(child)
        if span is not None:
            return span
    return None
