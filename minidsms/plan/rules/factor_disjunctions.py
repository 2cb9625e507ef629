"""What all branches of an OR demand is demanded once, before it: (a AND p) OR (a AND q) is a AND (p OR q).

An equality common to the branches can be joined on then (TPC-H q19). The law holds with NULL; a factor that can fail
stays where it is written (docs/semantics R2, R4).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.functions import can_fail
from minidsms.elements import Type
from minidsms.plan.logical import conjunction, conjuncts, filtered, transform, unfiltered


def factor_disjunctions(root: Node) -> Node:
    """Factor the conditions of every filter and join."""
    return transform(root, _factor)


def _factor(node: Node) -> Node:
    below, parts = unfiltered(node)
    if isinstance(node, bound.Join):
        parts = conjuncts(node.condition)
    found = factored(parts)
    if found == parts:
        return node
    if isinstance(node, bound.Join):
        return dataclasses.replace(node, condition=conjunction(found))
    return filtered(below, found)


def factored(parts: Sequence[Expr]) -> list[Expr]:
    """The conjuncts, with the common factors of each OR among them as conjuncts of their own."""
    return [found for part in parts for found in _factors(part)]


def _factors(part: Expr) -> list[Expr]:
    if not (isinstance(part, bound.Call) and part.function == "or"):
        return [part]
    branches = [factored(conjuncts(branch)) for branch in part.args]
    common = [
        factor
        for factor in branches[0]
        if not can_fail(factor) and all(any(_is_same(factor, other) for other in branch) for branch in branches[1:])
    ]
    if not common:
        return [part]
    rest: list[Expr] = []
    for branch in branches:
        own = conjunction([e for e in branch if not any(_is_same(e, factor) for factor in common)])
        if own is None:
            return common  # this branch asks for no more: whatever the others ask, it is the weakest
        rest.append(own)
    return [*common, bound.Call(Type.BOOLEAN, "or", tuple(rest), span=part.span)]


def _is_same(a: Expr, b: Expr) -> bool:
    """Equal as written, or an equality written the other way round."""
    if a == b:
        return True
    if not (isinstance(a, bound.Call) and isinstance(b, bound.Call) and a.function == b.function == "="):
        return False
    return a.args == b.args[::-1]
