"""Arithmetic on whole columns: int64 that never wraps, float64 that never shows a NaN.

Invariant: an INTEGER result is exact or the row fails. Where the bounds of the operands prove that none can overflow,
nothing is checked; bounds are derived through + - * % so that a deep expression measures only its columns.
x / 0 and x % 0 are NULL; / truncates toward zero; % takes the dividend's sign (docs/semantics R4).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from minidsms.elements import INT64_MAX, INT64_MIN, Type, has_true
from minidsms.expressions.value import Value, any_failed, both_valid, extent, finish, finish_float

Binary = Callable[[Value, Value], Value]
Unary = Callable[[Value], Value]


def _fits(lo: int, hi: int) -> bool:
    return lo >= INT64_MIN and hi <= INT64_MAX


# --------------------------------------------------------------------------------------------------------- INTEGER


def add(a: Value, b: Value) -> Value:
    """a + b."""
    lo, hi = a.bounds[0] + b.bounds[0], a.bounds[1] + b.bounds[1]
    values = a.values + b.values
    if _fits(lo, hi):
        return finish(values, both_valid(a, b), any_failed(a, b), bounds=(lo, hi))
    # The sum's sign differs from that of both operands only if it wrapped.
    wrapped = ((a.values ^ values) & (b.values ^ values)) < 0
    return finish(values, both_valid(a, b), any_failed(a, b), bad=wrapped)


def subtract(a: Value, b: Value) -> Value:
    """a - b."""
    lo, hi = a.bounds[0] - b.bounds[1], a.bounds[1] - b.bounds[0]
    values = a.values - b.values
    if _fits(lo, hi):
        return finish(values, both_valid(a, b), any_failed(a, b), bounds=(lo, hi))
    wrapped = ((a.values ^ b.values) & (a.values ^ values)) < 0
    return finish(values, both_valid(a, b), any_failed(a, b), bad=wrapped)


def multiply(a: Value, b: Value) -> Value:
    """a * b."""
    corners = [x * y for x in a.bounds for y in b.bounds]
    lo, hi = min(corners), max(corners)
    values = a.values * b.values
    if _fits(lo, hi):
        return finish(values, both_valid(a, b), any_failed(a, b), bounds=(lo, hi))
    # A product that wrapped is off by a multiple of 2**64, so dividing it back cannot give the other factor; the one
    # division that wraps itself is the smallest integer by -1.
    divisor = np.where(a.values == 0, 1, a.values)
    minus_one = divisor == -1
    back = values // np.where(minus_one, 1, divisor)
    wrapped = (back != b.values) & (a.values != 0) & ~minus_one
    wrapped |= minus_one & (b.values == INT64_MIN)
    return finish(values, both_valid(a, b), any_failed(a, b), bad=wrapped)


def divide(a: Value, b: Value) -> Value:
    """a / b toward zero; NULL where b is 0; only the smallest integer / -1 fails."""
    valid, failed = both_valid(a, b), any_failed(a, b)
    if len(b.values) == 1 and b.values[0] not in (0, -1):
        divisor = int(b.values[0])
        values = a.values // divisor
        if a.bounds[0] < 0 or divisor < 0:
            values += (values * divisor != a.values) & ((a.values < 0) != (divisor < 0))
        return finish(values, valid, failed)
    zero = b.values == 0
    bad = (a.values == INT64_MIN) & (b.values == -1)
    safe = np.where(zero | bad, 1, b.values)
    values = a.values // safe
    values += (values * safe != a.values) & ((a.values < 0) != (safe < 0))
    return finish(values, valid, failed, bad=bad, null=zero)


def modulo(a: Value, b: Value) -> Value:
    """a % b with the sign of a; NULL where b is 0; never fails."""
    valid, failed = both_valid(a, b), any_failed(a, b)
    if len(b.values) == 1 and b.values[0] not in (0, INT64_MIN):
        divisor = abs(int(b.values[0]))
        lo, hi = a.bounds
        if lo < 0:
            values = np.fmod(a.values, divisor)
        else:
            # Division by one known number is several times faster than numpy's remainder.
            values = a.values // divisor
            values *= -divisor
            values += a.values
        limit = divisor - 1
        return finish(values, valid, failed, bounds=(max(min(lo, 0), -limit), min(max(hi, 0), limit)))
    zero = b.values == 0
    # The smallest integer % -1 traps on some processors; any x % 1 is the same 0.
    safe = np.where(zero | (b.values == -1), 1, b.values)
    return finish(np.fmod(a.values, safe), valid, failed, null=zero)


def negate(a: Value) -> Value:
    """-a."""
    lo, hi = a.bounds
    if lo > INT64_MIN:
        return finish(-a.values, a.valid, a.failed, bounds=(-hi, -lo))
    return finish(-a.values, a.valid, a.failed, bad=a.values == INT64_MIN)


def absolute(a: Value) -> Value:
    """|a|."""
    bad = a.values == INT64_MIN if a.bounds[0] == INT64_MIN else None
    return finish(np.abs(a.values), a.valid, a.failed, bad=bad)


def sign(a: Value) -> Value:
    """-1, 0 or 1, of a's type."""
    return Value(np.sign(a.values), a.valid, a.failed)


def same(a: Value) -> Value:
    """The value as it is: floor, ceil and round of an INTEGER."""
    return a


def round_integer(a: Value, places: Value) -> Value:
    """To 10 ** -places, half away from zero, where places is negative; fails where the result does not fit int64."""
    powers = np.clip(-np.maximum(places.values, -20), 0, 20)
    # 10 ** 19 is more than int64 holds: what rounds to it fails, everything smaller becomes 0.
    huge = powers >= 19
    unit = np.array([10**k for k in range(19)] + [1, 1], np.int64)[powers]
    quotient = a.values // unit
    quotient += (quotient * unit != a.values) & (a.values < 0)
    rest = np.abs(a.values - quotient * unit)
    quotient += np.where((unit > 1) & (rest >= unit - rest), np.sign(a.values), 0)
    quotient = np.where(huge, 0, quotient)
    product = multiply(Value(quotient, both_valid(a, places), any_failed(a, places)), Value(unit))
    half = 5 * 10**18
    too_much = (powers == 19) & ((a.values >= half) | (a.values <= -half))
    return finish(product.values, product.valid, product.failed, bad=too_much)


# ----------------------------------------------------------------------------------------------------------- FLOAT


def float_binary(function: Callable[..., np.ndarray]) -> Binary:
    """A numpy function of two floats; what it gives as NaN is NULL."""

    def apply(a: Value, b: Value) -> Value:
        return finish_float(function(a.values, b.values), both_valid(a, b), any_failed(a, b))

    return apply


def float_unary(function: Callable[..., np.ndarray], is_total: bool = False) -> Unary:
    """A numpy function of a float; what it gives as NaN is NULL.

    is_total: it gives NaN nowhere, and of 0 it gives 0, which stands under a NULL.
    """

    def apply(a: Value) -> Value:
        if is_total:
            return Value(function(a.values) + 0.0, a.valid, a.failed)
        return finish_float(function(a.values), a.valid, a.failed)

    return apply


def float_divide(a: Value, b: Value) -> Value:
    """IEEE division, but NULL by zero."""
    zero = b.values == 0.0
    if not has_true(zero):
        return finish_float(np.divide(a.values, b.values), both_valid(a, b), any_failed(a, b))
    quotient = np.divide(a.values, np.where(zero, 1.0, b.values)) + 0.0
    null = zero | np.isnan(quotient)
    return finish(quotient, both_valid(a, b), any_failed(a, b), null=null)


def logarithm(function: Callable[..., np.ndarray]) -> Unary:
    """A logarithm: NULL outside its domain, zero included."""

    def apply(a: Value) -> Value:
        outside = a.values <= 0.0
        values = function(np.where(outside, 1.0, a.values)) + 0.0
        return finish(values, a.valid, a.failed, null=outside)

    return apply


_BELOW_HALF = np.array([math.nextafter(0.5, 0.0)])


def _half_away(x: np.ndarray) -> np.ndarray:
    """Rounded to a whole number, half away from zero. With 0.5 itself, the number before 0.5 would be rounded to 1."""
    rounded: np.ndarray = np.trunc(x + np.copysign(_BELOW_HALF, x))
    return rounded


def round_float(a: Value) -> Value:
    """To a whole number, half away from zero."""
    return finish_float(_half_away(a.values), a.valid, a.failed)


_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(309)])


def round_float_places(a: Value, places: Value) -> Value:
    """To the given decimal places (negative: tens, hundreds ..), half away from zero in double arithmetic.

    More places than a double has change nothing, scaling out of its range downward gives 0.
    """
    x = a.values
    n = places.values
    if len(n) == 1 and 0 <= n[0] <= 308:
        unit = _POWERS_OF_TEN[n]
        scaled = x * unit
        least, greatest = extent(scaled)
        if least > -(2.0**52) and greatest < 2.0**52:
            return finish_float(_half_away(scaled) / unit, both_valid(a, places), any_failed(a, places))
    up = _POWERS_OF_TEN[np.clip(n, 0, 308)]
    down = _POWERS_OF_TEN[np.clip(-np.maximum(n, -308), 0, 308)]
    scaled = x * up
    fine = np.where((np.abs(scaled) < 2.0**52) & (n <= 308), _half_away(scaled) / up, x)
    coarse = np.where(np.isinf(x), x, np.where(n < -308, 0.0, _half_away(x / down) * down))
    return finish_float(np.where(n >= 0, fine, coarse), both_valid(a, places), any_failed(a, places))


_INTEGER_BINARY: dict[str, Binary] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "mod": modulo,
    "round": round_integer,
}
_FLOAT_BINARY: dict[str, Binary] = {
    "+": float_binary(np.add),
    "-": float_binary(np.subtract),
    "*": float_binary(np.multiply),
    "/": float_divide,
    "%": float_binary(np.fmod),
    "mod": float_binary(np.fmod),
    "power": float_binary(np.power),
    "round": round_float_places,
}
_INTEGER_UNARY: dict[str, Unary] = {
    "neg": negate,
    "abs": absolute,
    "sign": sign,
    "floor": same,
    "ceil": same,
    "round": same,
}
_FLOAT_UNARY: dict[str, Unary] = {
    "neg": float_unary(np.negative, is_total=True),
    "abs": float_unary(np.abs, is_total=True),
    "sign": float_unary(np.sign, is_total=True),
    "floor": float_unary(np.floor, is_total=True),
    "ceil": float_unary(np.ceil, is_total=True),
    "round": round_float,
    "sqrt": float_unary(np.sqrt),
    "exp": float_unary(np.exp),
    "ln": logarithm(np.log),
    "log10": logarithm(np.log10),
}


def binary(function: str, type_: Type) -> Binary | None:
    """The function of two numbers whose first is of the type (int64 for all but FLOAT), or None."""
    return (_INTEGER_BINARY if type_ is not Type.FLOAT else _FLOAT_BINARY).get(function)


def unary(function: str, type_: Type) -> Unary | None:
    """The function of one number of the type, or None."""
    return (_INTEGER_UNARY if type_ is not Type.FLOAT else _FLOAT_UNARY).get(function)
