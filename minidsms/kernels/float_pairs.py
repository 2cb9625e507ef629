"""Floats with what they leave out: a pair is two floats, the second below the last bit of the first."""

from __future__ import annotations

import math

from minidsms.machine_code import helper

_SPLITTER = 134217729.0


@helper("UniTuple(float64, 2)(float64, float64)")
def exact_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as a float and what it leaves out (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@helper("UniTuple(float64, 2)(float64, float64)")
def exact_product(a: float, b: float) -> tuple[float, float]:
    """a * b as a float and what it leaves out (Dekker)."""
    total = a * b
    shifted = _SPLITTER * a
    high_a = shifted - (shifted - a)
    low_a = a - high_a
    shifted = _SPLITTER * b
    high_b = shifted - (shifted - b)
    low_b = b - high_b
    return total, ((high_a * high_b - total) + high_a * low_b + low_a * high_b) + low_a * low_b


# Below, of pairs, each result is off by less than 2^-95 of itself.


@helper("UniTuple(float64, 2)(float64, float64, float64, float64)")
def pair_product(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    total, left_out = exact_product(a, b)
    return exact_sum(total, left_out + (a * b_rest + a_rest * b))


@helper("UniTuple(float64, 2)(float64, float64, float64, float64)")
def pair_quotient(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    quotient = a / b
    total, left_out = exact_product(quotient, b)
    return exact_sum(quotient, (((a - total) - left_out) + (a_rest - quotient * b_rest)) / b)


@helper("UniTuple(float64, 2)(float64, float64)")
def pair_root(a: float, a_rest: float) -> tuple[float, float]:
    """Of a pair above 0."""
    root = math.sqrt(a)
    total, left_out = exact_product(root, root)
    return exact_sum(root, (((a - total) - left_out) + a_rest) / (2.0 * root))
