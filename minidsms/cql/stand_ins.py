"""Aggregates that are computed from other values than they are called with, whose results are turned back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from minidsms.aggregates import OF_DIFFERENT, SYNONYMS
from minidsms.cql import bound, syntax
from minidsms.elements import Type
from minidsms.values.types import COMPUTED_DIGITS

_BY_TICKS = ("avg", "median", "quantile_cont", "percentile_cont", "stddev", "stddev_pop")
_BY_TEXT = ("any_value", "arg_min", "arg_max")
_TICKS_OF = {Type.INTERVAL: (Type.INTEGER,), Type.TIMESTAMP: (Type.INTEGER,), Type.DATE: (Type.TIMESTAMP, Type.INTEGER)}


def stood_in(
    call: syntax.Call, args: list[bound.Expr], order: list[bound.Expr]
) -> tuple[list[bound.Expr], list[bound.Expr], Type | None]:
    """The arguments and the order (WITHIN GROUP) with what stands for the first value; the type that the result is to
    have, None where nothing stands for anything.

    Means and the like of times are computed from their ticks, those of DECIMALs from their digits without the point,
    choices among nested values from their texts.
    """
    values = order if call.within else args
    key = SYNONYMS.get(call.function.lower(), call.function.lower())
    type_ = values[0].type if values else Type.NULL
    through: tuple[Type, ...] = ()
    result, first = type_, values[0] if values else None
    if key in _BY_TICKS and type_.kind == "DECIMAL" and type_.digits <= COMPUTED_DIGITS:
        through, first = (Type.INTEGER,), _digits(values[0])
    elif key in _BY_TICKS and type_ in _TICKS_OF:
        through = _TICKS_OF[type_]
        is_length = type_ is Type.INTERVAL or key.startswith("stddev")
        result = Type.INTERVAL if is_length else Type.TIMESTAMP
    elif key in _BY_TEXT and type_.is_nested and len(call.args) < 3:
        through = (Type.TEXT,)
    if first is None or not through:
        return args, order, None
    for target in through:
        first = bound.Cast(target, first, span=first.span)
    values = [first, *values[1:]]
    return (args, values, result) if call.within else (values, order, result)


def _digits(value: bound.Expr) -> bound.Expr:
    """A DECIMAL without its point, which is a whole number."""
    scale = value.type.scale
    factor = bound.Literal(Type.decimal(scale + 1, 0), Decimal(10**scale))
    return bound.Call(Type.decimal(value.type.digits + scale + 1, scale), "*", (value, factor), span=value.span)


def are_digits(expr: bound.Expr) -> bool:
    """What stands for a DECIMAL of which a mean is computed."""
    match expr:
        case bound.Cast(type=Type.INTEGER, arg=bound.Call(args=(value, bound.Literal(value=Decimal() as factor)))):
            return value.type.kind == "DECIMAL" and factor == 10**value.type.scale
    return False


def of_different(call: syntax.Call, key: str) -> syntax.Call:
    """What is called by a name that means DISTINCT with that word, and COUNT of several different values with one."""
    if key in OF_DIFFERENT:
        call = replace(call, distinct=True)
    if SYNONYMS.get(key, key) == "count" and call.distinct and len(call.args) > 1:
        call = replace(call, args=(_together(call.args),))
    return call


def _together(args: Sequence[syntax.Expr]) -> syntax.Expr:
    """Several values as one list; NULL where one of them is, for such rows are not counted."""
    span = (args[0].span[0], args[-1].span[1])
    texts = tuple(syntax.Cast(arg, Type.TEXT, span=arg.span) for arg in args)
    present = tuple(syntax.IsNull(arg, True, span=arg.span) for arg in args)
    listed = syntax.Call("LIST_VALUE", texts, span=span)
    return syntax.Case(None, ((syntax.Logical("and", present, span=span), listed),), span=span)
