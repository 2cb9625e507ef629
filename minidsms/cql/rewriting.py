"""What the binder makes of bound expressions: conditions of several, and what a subquery sees of an enclosing row."""

from __future__ import annotations

from dataclasses import replace

from minidsms.cql import bound
from minidsms.cql.scalar import rewrite
from minidsms.elements import Type


def seen_from_inside(expr: bound.Expr, level: int) -> bound.Expr:
    """An expression over an enclosing query's row, as a subquery `level` queries further in sees it."""

    def turned(e: bound.Expr) -> bound.Expr | None:
        if isinstance(e, bound.ColumnRef):
            return bound.OuterRef(e.type, e.index, e.name, level, span=e.span)
        return None

    return rewrite(expr, turned)


def outer_columns(node: bound.Node, level: int | None = None) -> set[int]:
    """The columns of the query `level` steps out that the node mentions; None: of all queries around it."""
    found: set[int] = set()
    seen: set[tuple[int, int]] = set()

    def visit(n: bound.Node, depth: int) -> None:
        if (id(n), depth) in seen:
            return
        seen.add((id(n), depth))
        for expr in n.expressions:
            for e in bound.walk(expr):
                if isinstance(e, bound.OuterRef) and (e.level == depth + level if level else e.level > depth):
                    found.add(e.index)
            for query in bound.subqueries(expr):
                visit(query, depth + 1)
        for child in n.inputs:
            visit(child, depth)

    visit(node, 0)
    return found


def conjunction(conditions: list[bound.Expr]) -> bound.Expr:
    """One condition of several (at least one); nested conjunctions become one flat `and`."""
    return _flat("and", conditions)


def connective(name: str, operands: list[bound.Expr], span: tuple[int, int]) -> bound.Expr:
    """A flat `and` or `or`."""
    return replace(_flat(name, operands), span=span)


def _flat(name: str, operands: list[bound.Expr]) -> bound.Expr:
    flat: list[bound.Expr] = []
    for operand in operands:
        if isinstance(operand, bound.Call) and operand.function == name:
            flat.extend(operand.args)
        else:
            flat.append(operand)
    if len(flat) == 1:
        return flat[0]
    return bound.Call(Type.BOOLEAN, name, tuple(flat), span=(flat[0].span[0], flat[-1].span[1]))
