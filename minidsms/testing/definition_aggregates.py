"""The aggregates of a group's rows, by definition: lists, fractions and sorting, with nothing kept from before.

Every function takes the rows that count, at least one, in the order of their arrival.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cmp_to_key, reduce
from operator import and_, or_, xor
from typing import Any

from minidsms.aggregates.aggregate import Settings

Rows = Sequence[tuple[Any, ...]]


def _share(settings: Settings) -> Fraction:
    return Fraction(str(settings.parameters[0])) if settings.parameters else Fraction(1, 2)


def _in_order(rows: Rows, settings: Settings) -> list[Any]:
    return sorted((row[0] for row in rows), reverse=bool(settings.keys) and settings.keys[0].descending)


def _on_a_line(rows: Rows, settings: Settings) -> float | None:
    values = _in_order(rows, settings)
    at = _share(settings) * (len(values) - 1)
    before, after = values[math.floor(at)], values[math.ceil(at)]
    if before == after:
        return float(before)
    if math.isinf(before) and math.isinf(after):
        return None
    if math.isinf(before) or math.isinf(after):
        return float(before if math.isinf(before) else after)
    rest = at - math.floor(at)
    return float(Fraction(before) * (1 - rest) + Fraction(after) * rest)


def _chosen(rows: Rows, settings: Settings) -> Any:
    values = _in_order(rows, settings)
    return next(v for i, v in enumerate(values, 1) if Fraction(i, len(values)) >= _share(settings))


def _most_frequent(rows: Rows, settings: Settings) -> Any:
    values = _in_order(rows, settings)
    return max(values, key=values.count)  # the first of several


def _as_text(value: Any) -> Any:
    return json.dumps(value, default=str) if isinstance(value, tuple) else value


def _most_frequent_ones(rows: Rows, settings: Settings) -> tuple[Any, ...]:
    values = [row[0] for row in rows]
    return tuple(sorted(set(values), key=lambda v: (-values.count(v), v))[: settings.parameters[0]])


def _compared(settings: Settings) -> Callable[[Sequence[Any], Sequence[Any]], int]:
    def compare(a: Sequence[Any], b: Sequence[Any]) -> int:
        for key, x, y in zip(settings.keys, map(_as_text, a[settings.values :]), map(_as_text, b[settings.values :])):
            if x is None or y is None:
                if (x is None) != (y is None):
                    return -1 if (x is None) == key.nulls_first else 1
            elif x != y:
                return -1 if (x < y) != key.descending else 1
        if a[0] is None or b[0] is None:
            return int(a[0] is None) - int(b[0] is None)
        x, y = _as_text(a[0]), _as_text(b[0])
        return int(x > y) - int(x < y)

    return compare


def _together(rows: Rows, settings: Settings) -> tuple[Any, ...]:
    ordered = sorted(rows, key=cmp_to_key(_compared(settings))) if settings.keys else rows
    return tuple(row[0] for row in ordered)


def _ranked(rows: Rows, sign: int, settings: Settings) -> tuple[Any, ...]:
    """The first values of the rows whose last is least (1) or greatest (-1), one after the other."""
    left: list[tuple[Any, ...]] = list(rows)
    taken: list[Any] = []
    while left and len(taken) < settings.parameters[0]:
        best = (min if sign > 0 else max)(left, key=lambda row: (row[-1], row[0]))
        left.remove(best)
        taken.append(best[0])
    return tuple(taken)


def _joined(rows: Rows, settings: Settings) -> str:
    return str(settings.parameters[0]).join(_together(rows, settings))


def decimal_sum(values: Sequence[Decimal]) -> Decimal:
    """Exact, of any number of digits."""
    with localcontext(prec=200):
        return sum(values, Decimal(0))


def total(numbers: Sequence[Any]) -> Any:
    """Exact, and of floats rounded once; NaN where infinities cancel."""
    if isinstance(numbers[0], int):
        return sum(numbers)
    infinite = list(filter(math.isinf, numbers))
    return sum(infinite) if infinite else _real(sum(map(Fraction, numbers), Fraction(0)))


_BEYOND = 2**64


def mean(numbers: Sequence[Any]) -> float:
    """The sum by the number of values, also where the sum is beyond floats."""
    found = total(numbers)
    if isinstance(found, float) and math.isinf(found) and not any(map(math.isinf, numbers)):
        return float(sum(map(Fraction, numbers), Fraction(0)) / _BEYOND) / len(numbers) * _BEYOND
    return found / len(numbers)  # type: ignore[no-any-return]


def _product(values: Sequence[float]) -> float | None:
    if any(map(math.isinf, values)):
        return None if 0 in values else math.prod(math.copysign(math.inf, value) for value in values)
    return _real(math.prod(map(Fraction, values), start=Fraction(1))) + 0.0


def _about(values: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    """The sum of the products of the distances from the means."""
    mean, other = sum(values) / Fraction(len(values)), sum(others) / Fraction(len(others))
    return sum(((a - mean) * (b - other) for a, b in zip(values, others)), Fraction(0))


def _real(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _root(value: Fraction) -> float:
    with localcontext(prec=60, Emax=10**6, Emin=-(10**6)):
        return float((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def _of_sample(numbers: Sequence[Any]) -> Fraction | None:
    """The sum of the squared distances from the mean by one less than the numbers; None for infinities."""
    if len(numbers) < 2 or any(map(math.isinf, numbers)):
        return None
    values = list(map(Fraction, numbers))
    return _about(values, values) / (len(values) - 1)


def variance(numbers: Sequence[Any]) -> float | None:
    """VARIANCE."""
    found = _of_sample(numbers)
    return None if found is None else _real(found)


def stddev(numbers: Sequence[Any]) -> float | None:
    """STDDEV, the root of what VARIANCE would be if floats had no end."""
    found = _of_sample(numbers)
    return None if found is None else _root(found)


def _of_pairs(function: Callable[..., Any]) -> Callable[[Rows, Settings], Any]:
    """function: of n, the distances of y and of x, their products, and both means."""

    def compute(rows: Rows, settings: Settings) -> Any:
        if any(math.isinf(value) for row in rows for value in row):
            return None
        y, x = [Fraction(row[0]) for row in rows], [Fraction(row[-1]) for row in rows]
        n = Fraction(len(rows))
        found = function(n, _about(y, y), _about(x, x), _about(y, x), sum(y) / n, sum(x) / n)
        return _real(found) if isinstance(found, Fraction) else found

    return compute


def _correlation(n: Fraction, yy: Fraction, xx: Fraction, yx: Fraction, y: Fraction, x: Fraction) -> float | None:
    return None if not xx or not yy else _root(yx * yx / (xx * yy)) * (1 if yx > 0 else -1)


OF_ROWS: dict[str, Callable[[Rows, Settings], Any]] = {
    "median": _on_a_line,
    "quantile_cont": _on_a_line,
    "percentile_cont": _on_a_line,
    "quantile_disc": _chosen,
    "percentile_disc": _chosen,
    "mode": _most_frequent,
    "approx_percentile": _chosen,
    "approx_top_k": _most_frequent_ones,
    "histogram": lambda rows, settings: tuple(sorted(Counter(row[0] for row in rows).items())),
    "sum_decimal": lambda rows, settings: decimal_sum([row[0] for row in rows]),
    "arg_min": lambda rows, settings: min(rows, key=lambda row: (row[1], row[0]))[0],
    "arg_max": lambda rows, settings: max(rows, key=lambda row: (row[1], row[0]))[0],
    "min_n": lambda rows, settings: _ranked(rows, 1, settings),
    "max_n": lambda rows, settings: _ranked(rows, -1, settings),
    "arg_min_n": lambda rows, settings: _ranked(rows, 1, settings),
    "arg_max_n": lambda rows, settings: _ranked(rows, -1, settings),
    "first_n": lambda rows, settings: _together(rows, settings)[: settings.parameters[0]],
    "last_n": lambda rows, settings: tuple(reversed(_together(rows, settings)[::-1][: settings.parameters[0]])),
    "string_agg": _joined,
    "array_agg": _together,
    "bit_and": lambda rows, settings: reduce(and_, [row[0] for row in rows]),
    "bit_or": lambda rows, settings: reduce(or_, [row[0] for row in rows]),
    "bit_xor": lambda rows, settings: reduce(xor, [row[0] for row in rows]),
    "product": lambda rows, settings: _product([row[0] for row in rows]),
    "var_pop": _of_pairs(lambda n, yy, xx, yx, y, x: xx / n),
    "stddev_pop": _of_pairs(lambda n, yy, xx, yx, y, x: _root(xx / n)),
    "covar_pop": _of_pairs(lambda n, yy, xx, yx, y, x: yx / n),
    "covar_samp": _of_pairs(lambda n, yy, xx, yx, y, x: yx / (n - 1) if n > 1 else None),
    "corr": _of_pairs(_correlation),
    "regr_slope": _of_pairs(lambda n, yy, xx, yx, y, x: yx / xx if xx else None),
    "regr_intercept": _of_pairs(lambda n, yy, xx, yx, y, x: y - yx / xx * x if xx else None),
    "regr_r2": _of_pairs(lambda n, yy, xx, yx, y, x: (yx * yx / (xx * yy) if yy else 1.0) if xx else None),
    "regr_sxx": _of_pairs(lambda n, yy, xx, yx, y, x: xx),
    "regr_syy": _of_pairs(lambda n, yy, xx, yx, y, x: yy),
    "regr_sxy": _of_pairs(lambda n, yy, xx, yx, y, x: yx),
}
"""Of the rows of a group: values, then sort keys."""
