"""Covariance, correlation and the line of least squares, exact whatever came and left before.

A result is that of the exact sums, rounded once (CORR, STDDEV_POP: to within one unit of the last place): here by whole
numbers, in `kernels.moments` faster where that is certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from minidsms.aggregates.aggregate import OF_TIMES, Aggregate, kept_by_kernel
from minidsms.elements import Type
from minidsms.functions.function import Signature
from minidsms.values.types import MOST_DIGITS, known_type

_FLOAT = Type.FLOAT
_MORE = 128
"""Binary places of a square root: more than a FLOAT has, however many rows there are."""


class Moments(NamedTuple):
    """Sums of n pairs (y, x): of both, their squares and their products, in units of 2 ** -places and its square. A sum
    that is not needed is 0.
    """

    n: int
    places: int
    y: int
    x: int
    yy: int
    xx: int
    xy: int

    # n times the sums of squared distances from the means, and of their products.

    @property
    def syy(self) -> int:
        return self.n * self.yy - self.y * self.y

    @property
    def sxx(self) -> int:
        return self.n * self.xx - self.x * self.x

    @property
    def sxy(self) -> int:
        return self.n * self.xy - self.x * self.y

    def square(self, value: int, divisor: int) -> float:
        """value / divisor, where value is in units of 2 ** -places squared."""
        return ratio(value, divisor << 2 * self.places)

    def single(self, value: int, divisor: int) -> float:
        """value / divisor, where value is in units of 2 ** -places."""
        return ratio(value, divisor << self.places)


def ratio(value: int, divisor: int) -> float:
    """The quotient, rounded once; infinite where it is too large for a FLOAT."""
    try:
        return value / divisor
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _deviation(m: Moments) -> float:
    root = math.isqrt((m.syy << 2 * _MORE) // (m.n * m.n))
    return ratio(root, 1 << (_MORE + m.places))


def _correlation(m: Moments) -> float | None:
    spread = m.sxx * m.syy
    return None if spread == 0 else ratio(m.sxy << _MORE, math.isqrt(spread << 2 * _MORE))


def _fit(m: Moments) -> float | None:
    if m.sxx == 0:
        return None
    return 1.0 if m.syy == 0 else ratio(m.sxy * m.sxy, m.sxx * m.syy)


def _intercept(m: Moments) -> float | None:
    return None if m.sxx == 0 else m.single(m.y * m.sxx - m.sxy * m.x, m.n * m.sxx)


_Results: TypeAlias = "dict[str, tuple[Callable[[Moments], float | None], str, str]]"
_OF_VALUES: _Results = {
    "var_pop": (lambda m: m.square(m.syy, m.n * m.n), "the variance of a population", "168.75"),
    "stddev_pop": (_deviation, "the standard deviation of a population", "12.99038105676658"),
}
_OF_PAIRS: _Results = {
    "covar_pop": (lambda m: m.square(m.sxy, m.n * m.n), "the covariance", "4.444444444444445"),
    "covar_samp": (
        lambda m: None if m.n < 2 else m.square(m.sxy, m.n * (m.n - 1)), "the covariance of a sample",
        "6.666666666666667",
    ),
    "corr": (_correlation, "the correlation", "0.7559289460184545"),
    "regr_slope": (lambda m: None if m.sxx == 0 else ratio(m.sxy, m.sxx), "the slope of the line", "20.0"),
    "regr_intercept": (_intercept, "where the line meets x = 0", "-10.0"),
    "regr_r2": (_fit, "the part of the variation of y that the line explains", "0.5714285714285714"),
    "regr_sxx": (lambda m: m.square(m.sxx, m.n), "the sum of the squares of x less its mean", "0.6666666666666666"),
    "regr_syy": (lambda m: m.square(m.syy, m.n), "the sum of the squares of y less its mean", "466.6666666666667"),
    "regr_sxy": (lambda m: m.square(m.sxy, m.n), "the sum of the products of both", "13.333333333333334"),
}  # fmt: skip
"""Of values y, and of pairs (y, x): the result, what it is, and what it is of the rows of the documentation."""
RESULTS = {name: result for name, (result, _, _) in {**_OF_VALUES, **_OF_PAIRS}.items()}
OF_PAIRS = tuple(_OF_PAIRS)


def _numbers(types: Sequence[Type]) -> Signature | None:
    if any(t not in (Type.INTEGER, Type.FLOAT, Type.NULL) for t in types):
        return None
    return Signature(tuple(known_type(t) for t in types), Type.FLOAT)


def _decimal(types: Sequence[Type]) -> Signature | None:
    type_ = Type.decimal(19, 0) if types[0] in (Type.INTEGER, Type.NULL) else types[0]
    return Signature((type_,), Type.decimal(MOST_DIGITS, type_.scale)) if type_.kind == "DECIMAL" else None


FUNCTIONS = (
    Aggregate(
        "sum_decimal", 1, 1, _decimal, "DECIMAL or INTEGER",
        "the exact sum, as DECIMAL(38, s); SUM of DECIMALs is this",
        ("SUM_DECIMAL(CAST(w AS DECIMAL(9, 2)))", "Decimal('110.00')"), kept_by_kernel, distinct=True,
    ),
    *(
        Aggregate(
            name, 1, 1, _numbers, "INTEGER or FLOAT" if name == "var_pop" else OF_TIMES, summary,
            (f"{name.upper()}(w)", value), kept_by_kernel, distinct=True,
        )
        for name, (_, summary, value) in _OF_VALUES.items()
    ),
    *(
        Aggregate(
            name, 2, 2, _numbers, "two numbers, y and x", f"{summary}; of rows where neither is NULL",
            (f"{name.upper()}(w, v)", value), kept_by_kernel,
        )
        for name, (_, summary, value) in _OF_PAIRS.items()
    ),
)  # fmt: skip
