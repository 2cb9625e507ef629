"""Evaluate what does not depend on a row: constant subexpressions, conditions that are TRUE.

An expression that fails stays: whether it is evaluated at all is decided by the rows (docs/semantics R4).
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.functions import can_fail
from minidsms.elements import Type
from minidsms.plan.logical import conjunction, conjuncts, filtered, replace_children, transform, unfiltered

_FOLDED = {"and", "or", "not", "+", "-", "*", "/", "%", "neg", "=", "<>", "<", "<=", ">", ">=", "is null"}
_COMPARISONS = {"=", "<>", "<", "<=", ">", ">="}
_NUMERIC = {Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL}


def fold_constants(root: Node) -> Node:
    """Fold every expression of the plan."""
    return transform(root, _fold_node)


def _fold_node(node: Node) -> Node:
    below, parts = unfiltered(node)
    if parts:
        return filtered(below, _folded(parts))
    if isinstance(node, bound.Join):
        return dataclasses.replace(node, condition=conjunction(_folded(conjuncts(node.condition))))
    return node.rewritten(fold)


def _folded(parts: list[Expr]) -> list[Expr]:
    """The conjuncts folded, without those that are TRUE."""
    return [p for p in map(fold, parts) if not (isinstance(p, bound.Literal) and p.value is True)]


def fold(expr: Expr) -> Expr:
    """The expression with its constant parts evaluated."""
    expr = replace_children(expr, fold)
    if isinstance(expr, bound.Cast) and isinstance(expr.arg, bound.Literal):
        value = expr.arg.value
        if value is None:
            return bound.Literal(expr.type, None, span=expr.span)
        if expr.type is Type.FLOAT and type(value) in (int, Decimal):
            return bound.Literal(Type.FLOAT, float(value) + 0.0, span=expr.span)  # of a Decimal -0.0, too, 0.0
        return expr
    if isinstance(expr, bound.Case):
        return _only_result(expr)
    if _compares_with_null(expr):
        return bound.Literal(expr.type, None, span=expr.span)
    if not (isinstance(expr, bound.Call) and expr.function in _FOLDED):
        return expr
    if not all(isinstance(a, bound.Literal) for a in expr.args):
        return expr
    if not all(a.type in _NUMERIC or a.type is Type.BOOLEAN for a in expr.args):
        return expr
    from minidsms.expressions import constant_value

    found, value = constant_value(expr)
    return bound.Literal(expr.type, value, span=expr.span) if found else expr


def _only_result(expr: bound.Case) -> Expr:
    """The constant that all results of a CASE are; the CASE itself where they differ, or a condition can fail."""
    result = expr.otherwise
    is_only = isinstance(result, bound.Literal) and all(each == result for _, each in expr.whens)
    return result if is_only and not any(can_fail(condition) for condition, _ in expr.whens) else expr


def _compares_with_null(expr: Expr) -> bool:
    """It is NULL whatever the row."""
    return (
        isinstance(expr, bound.Call)
        and expr.function in _COMPARISONS
        and any(isinstance(arg, bound.Literal) and arg.value is None for arg in expr.args)
        and not can_fail(expr)
    )
