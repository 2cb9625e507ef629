"""What a screen can know of a filter's condition: the interval of one column in which its rows lie."""

from __future__ import annotations

import numpy as np

from minidsms.cql import bound
from minidsms.cql.bound import Expr
from minidsms.elements import Type
from minidsms.expressions import Context
from minidsms.operators.screen import Interval
from minidsms.plan.logical import conjuncts

_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL)
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def interval_of(condition: Expr, context: Context) -> Interval | None:
    """The interval of the column that a conjunction compares with constants: of the one it fixes, if any, else of the
    first. None where there is no such column, or a user function would notice that rows are missing.
    """
    parts = conjuncts(condition)
    if any(isinstance(e, bound.UserCall) for part in parts for e in bound.walk(part)):
        return None
    found: dict[int, Interval] = {}
    covered: dict[int, int] = {}
    for part in parts:
        one = _interval(part, context)
        if one is not None:
            before = found.get(one.column)
            if before is not None:
                held = (before.held, one.held)
                one = Interval(one.column, max(before.low, one.low), min(before.high, one.high), False, held)
            found[one.column] = one
            covered[one.column] = covered.get(one.column, 0) + 1
    if not found:
        return None
    best = min(found.values(), key=lambda i: i.low != i.high)
    return Interval(best.column, best.low, best.high, covered[best.column] == len(parts), best.held)


def _interval(part: Expr, context: Context) -> Interval | None:
    """Of one comparison with a constant."""
    if not (isinstance(part, bound.Call) and part.function in _TURNED):
        return None
    (left, right), function = part.args, part.function
    if isinstance(left, bound.Literal):
        left, right, function = right, left, _TURNED[function]
    if not (isinstance(left, bound.ColumnRef) and isinstance(right, bound.Literal)) or left.type is not right.type:
        return None
    value = right.value
    if isinstance(value, str):
        if function != "=" or left.type is not Type.TEXT:
            return None
        held = context.dictionary.hold(value)
        return Interval(left.index, held.code, held.code, True, held)
    if left.type in _WHOLE and isinstance(value, int) and not isinstance(value, bool):
        if not _LEAST < value < _GREATEST:
            return None
        low, high = _bounds(function, value, value - 1, value + 1, _LEAST, _GREATEST)
        return Interval(left.index, low, high, True)
    if left.type is Type.FLOAT and isinstance(value, float) and value == value:
        value += 0.0
        below, above = float(np.nextafter(value, -np.inf)), float(np.nextafter(value, np.inf))
        low, high = _bounds(function, value, below, above, -np.inf, np.inf)
        return Interval(left.index, float(low), float(high), True)
    return None


def _bounds(
    function: str, value: float, below: float, above: float, least: float, greatest: float
) -> tuple[float, float]:
    """The closed interval of the values that compare so with the constant."""
    match function:
        case "=":
            return value, value
        case "<":
            return least, below
        case "<=":
            return least, value
        case ">":
            return above, greatest
        case _:
            return value, greatest
