"""Rebuilding bound expressions: one function that replaces parts of a tree, and what the binder does with it.

Invariant: an expression in which nothing is replaced comes back as the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from minidsms.cql import bound
from minidsms.elements import Type


def rewrite(expr: bound.Expr, change: Callable[[bound.Expr], bound.Expr | None]) -> bound.Expr:
    """The expression with every part, outermost first, replaced by `change(part)` unless that is None.

    What was replaced is not entered again; neither are subqueries.
    """
    changed = change(expr)
    if changed is not None:
        return changed
    old = bound.children(expr)
    if not old:
        return expr
    new = [rewrite(child, change) for child in old]
    if all(a is b for a, b in zip(old, new)):
        return expr
    match expr:
        case bound.Call() | bound.UserCall() | bound.InQuery():
            return replace(expr, args=tuple(new))
        case bound.Case():
            pairs = tuple((new[i], new[i + 1]) for i in range(0, len(new) - 1, 2))
            return replace(expr, whens=pairs, otherwise=new[-1])
        case bound.Cast() | bound.Quantified():
            return replace(expr, arg=new[0])
        case _:
            raise AssertionError(f"no rule to rebuild {type(expr).__name__}")


def shift(expr: bound.Expr, by: int) -> bound.Expr:
    """The expression over a row that stands `by` columns further right."""

    def moved(e: bound.Expr) -> bound.Expr | None:
        return replace(e, index=e.index + by) if isinstance(e, bound.ColumnRef) else None

    return expr if by == 0 else rewrite(expr, moved)


def seen_from_inside(expr: bound.Expr, level: int) -> bound.Expr:
    """An expression over an enclosing query's row, as a subquery `level` queries further in sees it."""

    def turned(e: bound.Expr) -> bound.Expr | None:
        if isinstance(e, bound.ColumnRef):
            return bound.OuterRef(e.type, e.index, e.name, level, span=e.span)
        return None

    return rewrite(expr, turned)


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
