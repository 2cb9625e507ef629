"""Which rows of one side of a join find a partner, where the condition is no conjunction of equalities.

The join is made once; the values of the side that its condition reads, as they stand in the joined rows, are those that
have a partner. Rows that agree in these values have the same partners, so a semi-join on the values says the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.elements import Type
from minidsms.plan.logical import SemiJoin, columns_used, projected, shift

_SOME_VALUE: dict[Type, bool | int | float | str] = {Type.BOOLEAN: False, Type.FLOAT: 0.0, Type.TEXT: ""}
_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
ONE = bound.Literal(Type.INTEGER, 1)
"""The key of rows that need no other: all are equal in it."""


def matched_rows(side: Node, joined: Node, offset: int, condition: Iterable[Expr], anti: bool) -> SemiJoin:
    """The rows of `side` with (anti: without) a partner in `joined`, whose row holds the side's from `offset` on.

    condition: the conjuncts that were joined on, over the joined row. Where they let no NULL pass, NULL equals none.
    """
    condition = list(condition)
    places = range(offset, offset + len(side.schema))
    read = sorted({i for part in condition for i in columns_used(part) if i in places})
    keys: list[Expr] = [column(side, i - offset) for i in read] or [ONE]
    values = projected(joined, [shift(key, offset) for key in keys])
    matched = bound.Distinct(values.schema, values)
    pairs = tuple((key, column(matched, k)) for k, key in enumerate(keys))
    refused = {i for part in condition for i in _refused_as_null(part)}
    return SemiJoin(side.schema, side, matched, pairs, anti, null_safe=not refused.issuperset(read))


def _refused_as_null(part: Expr) -> frozenset[int]:
    """Columns that are not NULL in any row for which a condition is TRUE."""
    if isinstance(part, bound.Call) and part.function in _COMPARISONS:
        return frozenset().union(*map(_making_null, part.args))
    return frozenset()


def _making_null(expr: Expr) -> frozenset[int]:
    """Columns with which an expression is NULL where they are."""
    match expr:
        case bound.ColumnRef(index=i):
            return frozenset((i,))
        case bound.Cast(arg=arg):
            return _making_null(arg)
        case bound.Call(function="+" | "-" | "*" | "neg", args=args):
            return frozenset().union(*map(_making_null, args))
    return frozenset()


def column(node: Node, index: int, offset: int = 0) -> bound.ColumnRef:
    """A column of the node, in a row in which the node's columns begin at `offset`."""
    f = node.schema[index]
    return bound.ColumnRef(f.type, index + offset, f.name)


def never_null(key: Expr) -> tuple[Expr, ...]:
    """Keys that are never NULL, equal where this one is equal or both are NULL."""
    is_null = bound.Call(Type.BOOLEAN, "is null", (key,))
    if key.type is Type.NULL:
        return (is_null,)
    if key.type.is_nested:  # no literal is nested; equal values have equal texts
        key = bound.Cast(Type.TEXT, key)
    zero = Decimal(0).scaleb(-key.type.scale) if key.type.kind == "DECIMAL" else 0
    some_value = bound.Literal(key.type, _SOME_VALUE.get(key.type, zero))
    return bound.Call(key.type, "coalesce", (key, some_value)), is_null
