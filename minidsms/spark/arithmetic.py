"""Arithmetic of docs/semantics R4 as Spark columns: int64 that fails instead of wrapping, doubles without NaN.

Invariant: no expression depends on whether Spark's ANSI mode is on: what would raise there is never evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.elements import INT64_MIN, Type
from minidsms.spark.computed import Computed, NotExpressibleError, any_failed, finite, long, overflow

if TYPE_CHECKING:
    from pyspark.sql import Column

_EXACT = 2.0**52
"""From here on every double is a whole number."""


def _both(a: Computed, b: Computed) -> Column:
    return a.value.isNotNull() & b.value.isNotNull()


def _checked(function: Callable[[Column, Column], Column]) -> Callable[[bound.Call, Computed, Computed], Computed]:
    """An operator that gives NULL where the result leaves int64."""

    def apply(expr: bound.Call, a: Computed, b: Computed) -> Computed:
        result = function(a.value, b.value)
        return Computed(result, overflow(expr, _both(a, b) & result.isNull(), (a, b)))

    return apply


def _divide(expr: bound.Call, a: Computed, b: Computed) -> Computed:
    """Toward zero; NULL by zero; only the smallest integer by -1 fails."""
    literal = expr.args[1]
    if isinstance(literal, bound.Literal) and literal.value not in (0, -1, None):
        return Computed(F.call_function("div", a.value, b.value), any_failed((a, b)))
    too_large = (a.value == long(INT64_MIN)) & (b.value == long(-1))
    divisor = F.when((b.value != long(0)) & ~too_large, b.value)
    return Computed(F.call_function("div", a.value, divisor), overflow(expr, too_large, (a, b)))


def _remainder(expr: bound.Call, a: Computed, b: Computed) -> Computed:
    # Any x % -1 is 0, as x % 1 is; the smallest integer by -1 would overflow on the way.
    divisor = F.when(b.value == long(-1), long(1)).when(b.value != long(0), b.value)
    return Computed(a.value % divisor, any_failed((a, b)))


def _negate(expr: bound.Call, a: Computed) -> Computed:
    result = F.try_subtract(long(0), a.value)
    return Computed(result, overflow(expr, a.value.isNotNull() & result.isNull(), (a,)))


def _absolute(expr: bound.Call, a: Computed) -> Computed:
    least = a.value == long(INT64_MIN)
    return Computed(F.when(~least, F.abs(F.when(~least, a.value))), overflow(expr, least, (a,)))


def _sign(a: Column) -> Column:
    return F.signum(a).cast("bigint")


def _places(expr: bound.Call) -> int | None:
    """The places that ROUND is to keep; None for NULL."""
    literal = expr.args[1]
    if not isinstance(literal, bound.Literal):
        raise NotExpressibleError("ROUND to places that differ from row to row")
    return None if literal.value is None else int(literal.value)


def _round_integer(expr: bound.Call, a: Computed, places: Computed) -> Computed:
    """To tens, hundreds .. where places is negative, half away from zero."""
    n = _places(expr)
    if n is None:
        return Computed(F.lit(None).cast("bigint"), any_failed((a,)))
    power = -n
    if power <= 0:
        return a
    if power > 19:
        return Computed(F.when(a.value.isNotNull(), long(0)), a.failed)
    if power == 19:  # 10 ** 19 does not fit
        too_large = (a.value >= long(5 * 10**18)) | (a.value <= long(-5 * 10**18))
        return Computed(F.when(~too_large, long(0)), overflow(expr, too_large, (a,)))
    unit = 10**power
    rest = a.value % long(unit)
    # The remainder is taken away first: the distance to the next unit then cannot overflow, only the step to it can.
    step = F.when(F.abs(rest) >= long(unit // 2), F.signum(rest).cast("bigint") * long(unit)).otherwise(long(0))
    result = F.try_add(a.value - rest, step)
    return Computed(result, overflow(expr, a.value.isNotNull() & result.isNull(), (a,)))


# ----------------------------------------------------------------------------------------------------------- FLOAT


def _of_floats(function: Callable[[Column, Column], Column]) -> Callable[[bound.Call, Computed, Computed], Computed]:
    def apply(expr: bound.Call, a: Computed, b: Computed) -> Computed:
        return Computed(finite(function(a.value, b.value)), any_failed((a, b)))

    return apply


def _nonzero(b: Column) -> Column:
    return F.when(b != F.lit(0.0), b)


def _whole(function: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """FLOOR or CEIL of a double, which Spark gives as an integer."""

    def apply(a: Column) -> Column:
        small = F.abs(a) < F.lit(_EXACT)
        return F.when(small, function(F.when(small, a)).cast("double") + F.lit(0.0)).otherwise(a)

    return apply


def _half_away(a: Column) -> Column:
    """Rounded to a whole number; the fraction is exact, a + 0.5 would not be."""
    size = F.abs(a)
    small = size < F.lit(_EXACT)
    below = F.floor(F.when(small, size)).cast("double")
    rounded = below + F.when(size - below >= F.lit(0.5), F.lit(1.0)).otherwise(F.lit(0.0))
    return F.when(small, F.when(a < F.lit(0.0), -rounded).otherwise(rounded) + F.lit(0.0)).otherwise(a)


def _round_float(expr: bound.Call, a: Computed, places: Computed) -> Computed:
    n = _places(expr)
    if n is None:
        return Computed(F.lit(None).cast("double"), any_failed((a,)))
    if n >= 0:
        power = F.lit(float(f"1e{min(n, 308)}"))
        scaled = a.value * power
        fine = (F.abs(scaled) < F.lit(_EXACT)) & F.lit(n <= 308)
        result = F.when(fine, _half_away(scaled) / power).otherwise(a.value)
    else:
        power = F.lit(float(f"1e{min(-n, 308)}"))
        coarse = F.lit(0.0) if n < -308 else _half_away(a.value / power) * power
        result = F.when(F.abs(a.value) == F.lit(float("inf")), a.value).otherwise(coarse)
        result = F.when(a.value.isNotNull(), result)
    return Computed(finite(result), any_failed((a,)))


_INTEGER_BINARY: dict[str, Callable[[bound.Call, Computed, Computed], Computed]] = {
    "+": _checked(F.try_add),
    "-": _checked(F.try_subtract),
    "*": _checked(F.try_multiply),
    "/": _divide,
    "%": _remainder,
    "mod": _remainder,
    "round": _round_integer,
}
_FLOAT_BINARY: dict[str, Callable[[bound.Call, Computed, Computed], Computed]] = {
    "+": _of_floats(lambda a, b: a + b),
    "-": _of_floats(lambda a, b: a - b),
    "*": _of_floats(lambda a, b: a * b),
    "/": _of_floats(lambda a, b: a / _nonzero(b)),
    "%": _of_floats(lambda a, b: a % _nonzero(b)),
    "mod": _of_floats(lambda a, b: a % _nonzero(b)),
    "power": _of_floats(F.pow),
    "round": _round_float,
}
_INTEGER_UNARY: dict[str, Callable[[Column], Column]] = {
    "sign": _sign,
    "floor": lambda a: a,
    "ceil": lambda a: a,
    "round": lambda a: a,
}
_FLOAT_UNARY: dict[str, Callable[[Column], Column]] = {
    "neg": lambda a: finite(-a),
    "abs": F.abs,
    "sign": lambda a: finite(F.signum(a)),
    "floor": _whole(F.floor),
    "ceil": _whole(F.ceil),
    "round": _half_away,
    "sqrt": lambda a: finite(F.sqrt(a)),
    "exp": lambda a: finite(F.exp(a)),
    "ln": lambda a: finite(F.log(F.when(a > F.lit(0.0), a))),
    "log10": lambda a: finite(F.log10(F.when(a > F.lit(0.0), a))),
}


def arithmetic(expr: bound.Call, args: list[Computed]) -> Computed | None:
    """A function of one or two numbers, or None where it is none of them."""
    if not args:
        return None
    is_float = expr.args[0].type is Type.FLOAT
    if len(args) == 1:
        if not is_float and expr.function in ("neg", "abs"):
            return (_negate if expr.function == "neg" else _absolute)(expr, args[0])
        one = (_FLOAT_UNARY if is_float else _INTEGER_UNARY).get(expr.function)
        return None if one is None else Computed(one(args[0].value), args[0].failed)
    two = (_FLOAT_BINARY if is_float else _INTEGER_BINARY).get(expr.function)
    return None if two is None or len(args) != 2 else two(expr, args[0], args[1])
