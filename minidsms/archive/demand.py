"""What the registered queries need of a stream: which columns, and of which rows. A replay reads no more.

Only filters that stand directly on the stream in the rewritten plan count; the planner has put them there where that
moves no window and no instant (docs/semantics W8, R3, S2). The condition is what follows from them in a form that
every reader can judge; the engine filters again, so it may let more rows through, but never fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.elements import Schema, Type
from minidsms.expressions.logic import FLIPPED
from minidsms.plan.logical import nodes
from minidsms.plan.rules.prune_columns import columns_read

Value = bool | int | float | str

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MOST_VALUES = 50
"""Values of an IN that are looked for while reading."""


@dataclass(frozen=True)
class Comparison:
    """column op value; never true for NULL. op: = <> < <= > >=. The value is of the column's type."""

    column: int
    op: str
    value: Value


@dataclass(frozen=True)
class IsNull:
    """column IS NULL, or negated IS NOT NULL."""

    column: int
    negated: bool


@dataclass(frozen=True)
class AllOf:
    """Every part is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    """Some part is true."""

    parts: tuple[Condition, ...]


Condition = Comparison | IsNull | AllOf | AnyOf


@dataclass(frozen=True)
class Demand:
    """columns: positions in the stream's schema.  condition: rows for which it is not true are not needed; None: all
    are.
    """

    columns: frozenset[int]
    condition: Condition | None


def everything(schema: Schema) -> Demand:
    """All columns of all rows."""
    return Demand(frozenset(range(len(schema))), None)


def demand(roots: Iterable[Node], stream: str) -> Demand:
    """What these plans need of a stream."""
    columns: set[int] = set()
    conditions: list[Condition | None] = []
    for root in roots:
        order, read = nodes(root), columns_read(root)
        for base in order:
            if isinstance(base, bound.BaseStream) and base.name.lower() == stream.lower():
                columns |= read[id(base)]
                readers = (node for node in order if any(child is base for child in node.inputs))
                conditions += [implied(r.condition) if isinstance(r, bound.Filter) else None for r in readers]
    known = [c for c in conditions if c is not None]
    if not conditions or len(known) < len(conditions):
        return Demand(frozenset(columns), None)
    return Demand(frozenset(columns), known[0] if len(known) == 1 else AnyOf(tuple(known)))


# ---------------------------------------------------------------------------------------------------- conditions


def implied(expr: Expr) -> Condition | None:
    """A condition that is true for every row for which the expression is; None: nothing simple is."""
    match expr:
        case bound.Call(function="and", args=args):
            parts = [p for p in map(implied, args) if p is not None]
            return None if not parts else parts[0] if len(parts) == 1 else AllOf(tuple(parts))
        case bound.Call(function="or", args=args):
            some = [implied(a) for a in args]
            known = [p for p in some if p is not None]
            return AnyOf(tuple(known)) if len(known) == len(some) else None
        case bound.Call(function="not", args=(inner,)):
            return _implied_by_not(inner)
        case bound.Call(function="is null", args=(bound.ColumnRef() as column,)):
            return IsNull(column.index, False)
        case bound.Call(function="in", args=(bound.ColumnRef() as column, *values)):
            if len(values) == 1 and isinstance(values[0], bound.LiteralList):
                values = [bound.Literal(values[0].type, value) for value in values[0].values[: _MOST_VALUES + 1]]
            if len(values) > _MOST_VALUES:
                return None
            each = [_comparison(column, "=", value) for value in values]
            equal = [c for c in each if c is not None]
            return AnyOf(tuple(equal)) if len(equal) == len(each) else None
        case bound.Call(function=op, args=(left, right)) if op in FLIPPED:
            if isinstance(left, bound.ColumnRef):
                return _comparison(left, op, right)
            return _comparison(right, FLIPPED[op], left) if isinstance(right, bound.ColumnRef) else None
        case bound.ColumnRef(type=Type.BOOLEAN):
            return Comparison(expr.index, "=", True)
        case _:
            return None


def _implied_by_not(inner: Expr) -> Condition | None:
    match inner:
        case bound.Call(function="is null", args=(bound.ColumnRef() as column,)):
            return IsNull(column.index, True)
        case bound.Call(function=op, args=args) if op in _NEGATED:
            return implied(bound.Call(inner.type, _NEGATED[op], args))
        case bound.ColumnRef(type=Type.BOOLEAN):
            return Comparison(inner.index, "=", False)
        case _:
            return None


def _comparison(column: bound.ColumnRef, op: str, value: Expr) -> Condition | None:
    """Only values of the column's own type: how others compare is the engine's matter."""
    if isinstance(value, bound.Literal) and value.value is not None and value.type is column.type:
        if isinstance(value.value, tuple | Decimal) or not value.type.is_basic:
            return None
        return Comparison(column.index, op, value.value)
    return None
