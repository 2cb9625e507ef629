"""Arithmetic of DECIMAL: exact; more digits than the type of the result has are a failure (docs/semantics R4).

Columns whose codes are computed (`minidsms.values.coded`) are computed as whole numbers. Where one is not, or a result
might not fit, all of the chunk is computed value by value in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from minidsms.cql import bound
from minidsms.elements import Type
from minidsms.expressions import arithmetic
from minidsms.expressions.value import Value, clear, finish
from minidsms.functions.function import FAILED
from minidsms.values.coded import CODE_OF_ZERO, EXACT, MOST_COMPUTED, fitted, unscaled

_MOST_PLACES = 18
"""10 to the power of it is an int64."""
_POWERS_OF_TEN = [Value(np.array([10**k], np.int64), bounds=(10**k, 10**k)) for k in range(_MOST_PLACES + 1)]
_EXACT_FLOAT, _EXACT_PLACES = 2**53, 22
"""Whole numbers up to the first, and powers of ten up to the second, are FLOATs; a quotient of two is rounded once."""
_SURE, _HALF = 2.0**40, 0.499
"""A FLOAT times a power of ten, below the first, is less than the second's distance from 0.5 off the shortest decimal
that reads back equal.
"""


def _to(rounding: str) -> Callable[..., Decimal]:
    """To so many places behind the point, or before it by a negative number."""

    def apply(value: Decimal, places: int = 0) -> Decimal:
        # Beyond 38 digits on either side nothing changes any more.
        return value.quantize(Decimal(1).scaleb(min(max(-places, -40), 40)), rounding, EXACT)

    return apply


def _remainder(a: Decimal, b: Decimal) -> Decimal | None:
    return EXACT.remainder(a, b) if b else None


_FUNCTIONS: dict[str, Callable[..., Decimal | None]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "%": _remainder,
    "neg": EXACT.minus,
    "abs": EXACT.abs,
    "floor": _to(ROUND_FLOOR),
    "ceil": _to(ROUND_CEILING),
    "round": _to(ROUND_HALF_UP),
    "trunc": _to(ROUND_DOWN),
}


def function(name: str, call: bound.Call) -> Callable[..., Any] | None:
    """The function of DECIMALs that an operator of them is, over Python values; None for others."""
    if call.type.kind != "DECIMAL" or name not in _FUNCTIONS:
        return None
    compute, type_ = _FUNCTIONS[name], call.type

    def apply(*args: Any) -> Any:
        exact = compute(*args)
        if exact is None:
            return None
        found = fitted(exact, type_)
        return FAILED if found is None else found

    return apply


# ------------------------------------------------------------------------------------------------- whole columns


_OF_TWO: dict[str, arithmetic.Binary] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "%": arithmetic.modulo,
}


def of_columns(name: str, call: bound.Call) -> Callable[[Sequence[Value]], Value | None]:
    """The same over columns: None where it is not sure that all results are as many digits as an int64 can count."""
    args, type_ = call.args, call.type
    compute: Callable[[Sequence[Value]], Value | None]
    if name in _OF_TWO:
        two = _OF_TWO[name]
        # Factors stay as they are; all else is counted in the unit of the result.
        more = [0 if name == "*" else type_.scale - a.type.scale for a in args]

        def compute(values: Sequence[Value]) -> Value | None:
            a, b = (_scaled_up(_digits(v, arg.type), by) for v, arg, by in zip(values, args, more))
            return None if a is None or b is None else _sure(two(a, b), name == "%")

    elif name in ("neg", "abs"):
        one = arithmetic.negate if name == "neg" else arithmetic.absolute

        def compute(values: Sequence[Value]) -> Value | None:
            a = _digits(values[0], args[0].type)
            return None if a is None else one(a)

    else:
        dropped = _dropped(type_.scale, args[1:])
        rounding = {"floor": _floor, "ceil": _ceil, "round": _half_away, "trunc": _toward_zero}[name]

        def compute(values: Sequence[Value]) -> Value | None:
            a = _digits(values[0], args[0].type)
            if a is None or dropped is None:
                return None
            return finish(rounding(a.values, 10**dropped) * 10**dropped, a.valid, a.failed)

    def apply(values: Sequence[Value]) -> Value | None:
        found = compute(values)
        return None if found is None else _codes(found, type_)

    return apply


def _dropped(scale: int, places: Sequence[bound.Expr]) -> int | None:
    """How many digits rounding makes 0, as many in all rows, else None.  places: the argument that tells it, if any."""
    if not places:
        return scale if scale <= _MOST_PLACES else None
    match places[0]:
        case bound.Literal(value=int(kept)) if scale - kept <= _MOST_PLACES:
            return max(scale - kept, 0)
    return None


def cast(source: Type, target: Type) -> Callable[[Value], Value | None] | None:
    """CAST between numbers, one of them DECIMAL, over columns; None where there is no such way, or it is not sure."""
    if source.kind == "DECIMAL":
        read = {Type.INTEGER: _whole, Type.BOOLEAN: _truth, Type.FLOAT: _float}.get(target)
        if read is None and target.kind != "DECIMAL":
            return None

        def convert(a: Value) -> Value | None:
            digits = _digits(a, source)
            if digits is None:
                return None
            return _rescaled(digits, source, target) if read is None else read(digits, source.scale)

        return convert
    if target.kind != "DECIMAL" or source not in (Type.INTEGER, Type.FLOAT):
        return None
    if source is Type.FLOAT:
        return lambda a: _of_floats(a, target)

    def widen(a: Value) -> Value | None:
        digits = _scaled_up(a, target.scale)
        return None if digits is None else _codes(digits, target)

    return widen


def _digits(a: Value, type_: Type) -> Value | None:
    """The digits without the point; None where a code is not computed."""
    if type_.is_ranked and a.bounds[1] > 0:
        return None
    return finish(a.values - CODE_OF_ZERO, a.valid, a.failed)


def _codes(digits: Value, type_: Type) -> Value | None:
    """The inverse; None where some are too many for the type, or for a computed code."""
    most = min(10**type_.digits - 1, MOST_COMPUTED)
    least, greatest = digits.bounds
    if least < -most or greatest > most:
        return None
    values = digits.values + CODE_OF_ZERO
    if digits.valid is not None:
        clear(values, digits.valid)
    return Value(values, digits.valid, digits.failed)


def _sure(value: Value, never_overflows: bool = False) -> Value | None:
    """A result of arithmetic that cannot have overflowed."""
    return value if never_overflows or value.has_bounds else None


def _scaled_up(digits: Value | None, by: int) -> Value | None:
    """With so many zeros behind."""
    if digits is None or by == 0:
        return digits
    return None if by > _MOST_PLACES else _sure(arithmetic.multiply(digits, _POWERS_OF_TEN[by]))


def _floor(digits: Any, unit: int) -> Any:
    return digits // unit


def _ceil(digits: Any, unit: int) -> Any:
    return -(-digits // unit)


def _half_away(digits: Any, unit: int) -> Any:
    return digits if unit == 1 else np.sign(digits) * ((np.abs(digits) + unit // 2) // unit)


def _toward_zero(digits: Any, unit: int) -> Any:
    return np.sign(digits) * (np.abs(digits) // unit)


def _rescaled(digits: Value, source: Type, target: Type) -> Value | None:
    by = target.scale - source.scale
    if by < -_MOST_PLACES:
        return None
    if by < 0:
        digits = Value(_half_away(digits.values, 10**-by), digits.valid, digits.failed)
    found = _scaled_up(digits, max(by, 0))
    return None if found is None else _codes(found, target)


def _whole(digits: Value, scale: int) -> Value | None:
    """Toward zero."""
    if scale > _MOST_PLACES:
        return None
    return Value(_toward_zero(digits.values, 10**scale), digits.valid, digits.failed)


def _truth(digits: Value, scale: int) -> Value | None:
    return Value(digits.values != 0, digits.valid, digits.failed)


def _float(digits: Value, scale: int) -> Value | None:
    least, greatest = digits.bounds
    if scale > _EXACT_PLACES or least < -_EXACT_FLOAT or greatest > _EXACT_FLOAT:
        return None
    return Value(digits.values / float(10**scale) + 0.0, digits.valid, digits.failed)


def _of_floats(a: Value, target: Type) -> Value | None:
    """Rounded half away from zero from the shortest decimals that read back equal."""
    if target.scale > _EXACT_PLACES:
        return None
    exact = a.values * float(10**target.scale)
    whole = np.rint(exact)
    near: Any = (np.abs(exact) < _SURE) & (np.abs(exact - whole) < _HALF)
    digits = np.where(near, whole, 0.0).astype(np.int64)
    if not near.all():
        for row in np.flatnonzero(~near).tolist():
            value = Decimal(repr(a.values[row].item()))
            found = fitted(value, target) if value.is_finite() else None
            if found is None:
                return None
            count = unscaled(found, target.scale)
            if abs(count) > MOST_COMPUTED:
                return None
            digits[row] = count
    return _codes(finish(digits, a.valid, a.failed), target)
