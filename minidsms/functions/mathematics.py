"""Functions of numbers, by numpy; NULL outside their domain, as a NaN is (docs/semantics R4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Type
from minidsms.functions.function import Arrays, Function, Signature, fixed, one_of
from minidsms.values.types import known_type

_FLOAT, _INTEGER = Type.FLOAT, Type.INTEGER
_NUMBER = "INTEGER or FLOAT"
_SPLIT = 2.0**27 + 1.0


def _unary(name: str, function: Callable[..., Any], summary: str, example: tuple[str, str]) -> Function:
    return Function(name, 1, 1, fixed(_FLOAT, _FLOAT), _NUMBER, summary, example, of_arrays=function)


def _log(base: Any, x: Any = None) -> Any:
    """Of one argument to the base 10; of two to the base of the first."""
    if x is None:
        return _logarithm(np.log10, base)
    bottom = _logarithm(np.log, base)
    return np.where(bottom == 0.0, np.nan, _logarithm(np.log, x) / np.where(bottom == 0.0, 1.0, bottom))


def _logarithm(function: Callable[..., Any], x: Any) -> Any:
    return np.where(x > 0.0, function(np.where(x > 0.0, x, 1.0)), np.nan)


def _cube_root(x: Any) -> Any:
    """C libraries miss half of all cubes by the last bit, which others than those of other machines: a step of Newton's
    method with the cube in two floats gives the float next to the root.
    """
    is_usual = (np.abs(x) > 1e-250) & np.isfinite(x)
    scale = np.where(np.abs(x) > 1e300, 2.0**-100, 1.0)  # the cube of what is rounded up may be infinite
    usual = np.where(is_usual, x, 1.0) * scale**3
    root = np.cbrt(usual)
    square, of_square = _product(root, root)
    cube, of_cube = _product(square, root)
    beyond = (cube - usual) + (of_cube + of_square * root)
    return np.where(is_usual, (root - beyond / (3.0 * square)) / scale, np.cbrt(x))


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """A product and what its rounding took away: Dekker 1971, of halves as Veltkamp splits them."""
    product = a * b
    upper_a, upper_b = _SPLIT * a - (_SPLIT * a - a), _SPLIT * b - (_SPLIT * b - b)
    lower_a, lower_b = a - upper_a, b - upper_b
    rest = ((upper_a * upper_b - product) + upper_a * lower_b + lower_a * upper_b) + lower_a * lower_b
    return product, rest


def _trunc_types(types: Sequence[Type]) -> Signature | None:
    number = known_type(types[0])
    is_number = number in (_INTEGER, _FLOAT) or number.kind == "DECIMAL"
    if not is_number or any(t not in (_INTEGER, Type.NULL) for t in types[1:]):
        return None
    return Signature((number, *(_INTEGER for _ in types[1:])), number)


_POWERS = np.array([float(f"1e{k}") for k in range(309)])


def _trunc(x: Any, places: Any = None) -> Any:
    """Toward zero, at so many decimal places; of an INTEGER only negative places count."""
    if x.dtype == np.int64:
        return x if places is None else _trunc_integer(x, places)
    if places is None:
        return np.trunc(x)
    up = _POWERS[np.clip(places, 0, 308)]
    down = _POWERS[np.clip(-np.maximum(places, -308), 0, 308)]
    scaled = np.where(places >= 0, x * up, x / down)
    cut = np.where(places >= 0, np.trunc(scaled) / up, np.trunc(scaled) * down)
    return np.where(np.isfinite(scaled) & (np.abs(scaled) < 2.0**52), cut, x)


def _trunc_integer(x: Any, places: Any) -> Any:
    unit = np.array([10**k for k in range(19)], np.int64)[np.clip(-np.maximum(places, -18), 0, 18)]
    quotient = x // unit
    quotient = quotient + ((quotient * unit != x) & (x < 0))
    return np.where(places < -18, 0, quotient * unit)


def _gcd(a: Any, b: Any) -> Arrays:
    """Fails only for the one divisor that is no INTEGER, 2 ** 63."""
    values = np.gcd(a, b)
    return Arrays(np.abs(values), bad=values == -(2**63))


def _width_bucket(x: Any, low: Any, high: Any, count: Any) -> Arrays:
    """0 before the first of so many equal buckets from low to high, count + 1 behind the last."""
    span = high - low
    good = (count > 0) & (span != 0.0) & np.isfinite(low) & np.isfinite(high) & np.isfinite(span) & (count < 2**52)
    share = (x - low) / np.where(good, span, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = np.minimum(np.floor(np.where((share >= 0.0) & (share < 1.0), share, 0.0) * count), count - 1.0) + 1.0
    found = np.where(share < 0.0, 0.0, np.where(share >= 1.0, count + 1.0, inside))
    return Arrays(np.where(good, found, 0.0).astype(np.int64), bad=~good)


_FACTORIALS = np.array([math.factorial(n) for n in range(21)], np.int64)


def _factorial(n: Any) -> Arrays:
    bad = (n < 0) | (n > 20)
    return Arrays(_FACTORIALS[np.where(bad, 0, n)], bad=bad)


def _shifted(shift: Callable[..., Any]) -> Callable[..., Arrays]:
    def function(n: Any, count: Any) -> Arrays:
        if len(count) and count.min() >= 0 and count.max() <= 63:
            return Arrays(shift(n, count))
        bad = (count < 0) | (count > 63)
        return Arrays(shift(n, np.where(bad, 0, count)), bad=bad)

    return function


def _distance(lat: Any, lon: Any, lat2: Any, lon2: Any, unit: str = "km") -> Any:
    """Along the great circle, by haversines, on a sphere of 6,371 km or 3,959 miles."""
    a, b, across, along = map(np.radians, (lat, lat2, lon2 - lon, lat2 - lat))
    square = np.sin(along / 2.0) ** 2 + np.cos(a) * np.cos(b) * np.sin(across / 2.0) ** 2
    return 2.0 * (6371.0 if unit.lower() == "km" else 3959.0) * np.arcsin(np.sqrt(np.minimum(square, 1.0)))


def _bits(name: str, count: int, function: Callable[..., Any], summary: str, example: tuple[str, str]) -> Function:
    takes = "INTEGER" if count == 1 else "two INTEGER"
    types, can_fail = fixed(_INTEGER, _INTEGER), "shift" in name or name == "factorial"
    return Function(name, count, count, types, takes, summary, example, of_arrays=function, can_fail=can_fail)


FUNCTIONS = (
    _unary("asinh", np.arcsinh, "the inverse of SINH", ("ASINH(0)", "0.0")),
    _unary("acosh", np.arccosh, "the inverse of COSH", ("ACOSH(1)", "0.0")),
    _unary(
        "atanh",
        lambda x: np.where(np.abs(x) < 1.0, np.arctanh(np.where(np.abs(x) < 1.0, x, 0.0)), np.nan),
        "the inverse of TANH; NULL at 1 and -1 and beyond",
        ("ATANH(0)", "0.0"),
    ),
    Function(
        "width_bucket",
        4,
        4,
        fixed(_INTEGER, _FLOAT, _FLOAT, _FLOAT, _INTEGER),
        "three numbers and INTEGER",
        "which of this many equal buckets between two bounds holds the number: 0 below, one more above; fails without"
        " buckets, and for bounds that are equal or infinite",
        ("WIDTH_BUCKET(5.3, 0, 10, 5)", "3"),
        of_arrays=_width_bucket,
        can_fail=True,
    ),
    Function(
        "geo_distance",
        4,
        5,
        fixed(_FLOAT, _FLOAT, _FLOAT, _FLOAT, _FLOAT, Type.TEXT),
        "two points as latitude and longitude, and optionally 'KM' or 'MI'",
        "the distance of two points of the earth, in kilometres or miles",
        ("ROUND(GEO_DISTANCE(37.4, -122.1, 51.5, -0.1), 1)", "8638.3"),
        of_arrays=_distance,
        literals={4: one_of(("km", "mi"), "a unit")},
    ),
    _bits("factorial", 1, _factorial, "the factorial; fails below 0 and above 20", ("FACTORIAL(5)", "120")),
    _bits("bitand", 2, np.bitwise_and, "the bits that are set in both", ("BITAND(6, 3)", "2")),
    _bits("bitor", 2, np.bitwise_or, "the bits that are set in at least one", ("BITOR(6, 3)", "7")),
    _bits("bitxor", 2, np.bitwise_xor, "the bits that are set in exactly one of them", ("BITXOR(6, 3)", "5")),
    _bits("bitnot", 1, np.invert, "all bits inverted", ("BITNOT(6)", "-7")),
    _bits(
        "bitshiftleft",
        2,
        _shifted(np.left_shift),
        "the bits shifted left by this many places; fails outside 0 to 63",
        ("BITSHIFTLEFT(3, 4)", "48"),
    ),
    _bits(
        "bitshiftright",
        2,
        _shifted(np.right_shift),
        "the bits shifted right by this many places, with the sign kept; fails like BITSHIFTLEFT",
        ("BITSHIFTRIGHT(48, 4)", "3"),
    ),
    Function(
        "pi",
        0,
        0,
        fixed(_FLOAT),
        "nothing",
        "the constant pi",
        ("ROUND(PI(), 4)", "3.1416"),
        of_arrays=lambda: np.pi,
    ),
    _unary("sin", np.sin, "the sine of an angle in radians", ("ROUND(SIN(1), 4)", "0.8415")),
    _unary("cos", np.cos, "the cosine of an angle in radians", ("COS(0)", "1.0")),
    _unary("tan", np.tan, "the tangent of an angle in radians", ("ROUND(TAN(1), 4)", "1.5574")),
    _unary(
        "cot", lambda x: np.where(x == 0.0, np.nan, 1.0 / np.tan(x)), "the cotangent", ("ROUND(COT(1), 4)", "0.6421")
    ),
    _unary("asin", np.arcsin, "the angle of a sine", ("ROUND(ASIN(1), 4)", "1.5708")),
    _unary("acos", np.arccos, "the angle of a cosine", ("ACOS(1)", "0.0")),
    _unary("atan", np.arctan, "the angle of a tangent", ("ROUND(ATAN(1), 4)", "0.7854")),
    _unary("sinh", np.sinh, "the hyperbolic sine", ("SINH(0)", "0.0")),
    _unary("cosh", np.cosh, "the hyperbolic cosine", ("COSH(0)", "1.0")),
    _unary("tanh", np.tanh, "the hyperbolic tangent", ("TANH(0)", "0.0")),
    _unary("degrees", np.degrees, "radians in degrees", ("ROUND(DEGREES(PI()), 4)", "180.0")),
    _unary("radians", np.radians, "degrees in radians", ("ROUND(RADIANS(180), 4)", "3.1416")),
    _unary("cbrt", _cube_root, "the cube root", ("CBRT(27)", "3.0")),
    _unary("log2", lambda x: _logarithm(np.log2, x), "the logarithm to the base 2", ("LOG2(8)", "3.0")),
    Function(
        "atan2",
        2,
        2,
        fixed(_FLOAT, _FLOAT),
        "two numbers",
        "the angle of the point (second, first)",
        ("ROUND(ATAN2(1, 1), 4)", "0.7854"),
        of_arrays=np.arctan2,
    ),
    Function(
        "log",
        1,
        2,
        fixed(_FLOAT, _FLOAT),
        "one or two numbers",
        "the logarithm to the base 10; with two arguments, of the second to the base of the first",
        ("LOG(2, 8)", "3.0"),
        of_arrays=_log,
    ),
    Function(
        "trunc",
        1,
        2,
        _trunc_types,
        "a number and optionally INTEGER places",
        "truncated toward zero, at this many decimal places",
        ("TRUNC(-1.57, 1)", "-1.5"),
        of_arrays=_trunc,
    ),
    Function(
        "gcd",
        2,
        2,
        fixed(_INTEGER, _INTEGER),
        "two INTEGER",
        "the greatest common divisor; fails if it does not fit",
        ("GCD(12, 18)", "6"),
        of_arrays=_gcd,
        can_fail=True,
    ),
)
