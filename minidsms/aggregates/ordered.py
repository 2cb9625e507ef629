"""Aggregates of a group's values in their order: percentiles, the most frequent value, the rows of the least values.

A change takes O(log n) of n values. Positions and percentages are exact: a percentage is the decimal that was written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from minidsms.aggregates.aggregate import OF_TIMES, Aggregate, Ordering, Settings, State, kept_by_kernel
from minidsms.aggregates.collected import number_of_values
from minidsms.aggregates.sorting import Few, Rows, with_room
from minidsms.elements import Type
from minidsms.functions.function import Signature
from minidsms.values.types import known_type

_NUMBERS = (Type.INTEGER, Type.FLOAT)
_HALF = Fraction(1, 2)


def _fraction(value: Any) -> str | None:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return None if is_number and 0 <= value <= 1 else "a percentage is a number from 0 to 1"


def _exact(value: float | Decimal) -> Fraction:
    return Fraction(Decimal(str(value)))


class Share(NamedTuple):
    """Which value a quantile is, as `kernels.quantiles.Place` says."""

    numerator: int
    denominator: int
    is_between: bool
    from_above: bool


_MOST_DENOMINATORS = 1 << 32


def share_of(state: Callable[[Settings], State] | None, settings: Settings) -> Share | None:
    """What kernels keep in place of such a state: of quantiles at shares of up to nine decimals."""
    if state is not Interpolated and state is not Chosen:
        return None
    values = state(settings)
    share = values.share
    if share.denominator >= _MOST_DENOMINATORS:
        return None
    return Share(share.numerator, share.denominator, isinstance(values, Interpolated), values.is_descending)


class _Values:
    """The values, in order."""

    def __init__(self, settings: Settings) -> None:
        self._values: Rows = Few()
        self.share = _exact(settings.parameters[0]) if settings.parameters else _HALF
        self.is_descending = bool(settings.keys) and settings.keys[0].descending
        if self.is_descending:
            self.share = 1 - self.share

    def add(self, value: Any) -> None:
        self._values.add(value)
        self._values = with_room(self._values)

    def remove(self, value: Any) -> None:
        self._values.remove(value)


class Interpolated(_Values):
    """The value at a share of the way from the least to the greatest, on a line between its neighbours."""

    def result(self) -> float | None:
        at = self.share * (len(self._values) - 1)
        below = math.floor(at)
        low, part = self._values[below], at - below
        high = self._values[below + 1] if part else low
        return between(low, high, part)


class Chosen(_Values):
    """The first value that at least a share of the values do not follow in the order."""

    def result(self) -> Any:
        n = len(self._values)
        if self.is_descending:
            return self._values[min(n - 1, math.floor(self.share * n))]
        return self._values[max(0, math.ceil(self.share * n) - 1)]


def between(low: float, high: float, part: Fraction) -> float | None:
    """low + part * (high - low), rounded once; None where that is nothing."""
    if low == high or not part:
        return float(low)
    if math.isinf(low) or math.isinf(high):
        return None if math.isinf(low) and math.isinf(high) else float(low if math.isinf(low) else high)
    exact = Fraction(low) + part * (Fraction(high) - Fraction(low))
    return exact.numerator / exact.denominator


class MostFrequent:
    """The n values that most rows have, the most frequent first; of several, the least."""

    def __init__(self, settings: Settings) -> None:
        self._counts: Counter[Any] = Counter()
        self._ranked: Rows = Few()
        (self._wanted,) = settings.parameters

    def _move(self, value: Any, step: int) -> None:
        count = self._counts[value]
        if count:
            self._ranked.remove((-count, value))
        if count + step:
            self._counts[value] = count + step
            self._ranked.add((-count - step, value))
            self._ranked = with_room(self._ranked)
        else:
            del self._counts[value]

    def add(self, value: Any) -> None:
        self._move(value, 1)

    def remove(self, value: Any) -> None:
        self._move(value, -1)

    def result(self) -> tuple[Any, ...]:
        return tuple(value for _, value in self._ranked[: self._wanted])


class Histogram:
    """How many rows have each value."""

    def __init__(self, settings: Settings) -> None:
        self._counts: Counter[Any] = Counter()

    def add(self, value: Any) -> None:
        self._counts[value] += 1

    def remove(self, value: Any) -> None:
        self._counts[value] -= 1
        if not self._counts[value]:
            del self._counts[value]

    def result(self) -> tuple[Any, ...]:
        return tuple(sorted(self._counts.items()))


class Extremes:
    """The first arguments in the n rows whose last argument is least, or greatest; of several, their own least first,
    or greatest.
    """

    def __init__(self, settings: Settings, largest: bool) -> None:
        self._rows: Rows = Few()
        (self._wanted,) = settings.parameters
        self._largest = largest
        self._keeps_wanted = settings.is_append_only

    def add(self, *row: Any) -> None:
        self._rows.add(row[::-1])
        if self._keeps_wanted and len(self._rows) > self._wanted:
            del self._rows[0 if self._largest else -1]
        self._rows = with_room(self._rows)

    def remove(self, *row: Any) -> None:
        self._rows.remove(row[::-1])

    def result(self) -> tuple[Any, ...]:
        rows = self._rows[: -self._wanted - 1 : -1] if self._largest else self._rows[: self._wanted]
        return tuple(row[-1] for row in rows)


def _least_ones(settings: Settings) -> State:
    return Extremes(settings, largest=False)


def _greatest_ones(settings: Settings) -> State:
    return Extremes(settings, largest=True)


def _counted(types: Sequence[Type]) -> Signature | None:
    type_ = Type.TEXT if types[0] is Type.NULL else types[0]
    return Signature((type_,), Type.map(type_, Type.INTEGER)) if type_ in (Type.TEXT, Type.INTEGER) else None


def _number(types: Sequence[Type]) -> Signature | None:
    (type_,) = types
    if type_ not in (*_NUMBERS, Type.NULL):
        return None
    return Signature((known_type(type_),), Type.FLOAT)


def _same(types: Sequence[Type]) -> Signature | None:
    """The first argument's type, whatever the others'; lists have no order."""
    if any(t.is_nested for t in types):
        return None
    known = tuple(known_type(t) for t in types)
    return Signature(known, known[0])


def _listed_by(types: Sequence[Type]) -> Signature | None:
    """A list of the first argument's type."""
    same = _same(types)
    return None if same is None else Signature(same.args, same.result.list_type)


FUNCTIONS = (
    Aggregate(
        "median", 1, 1, _number, OF_TIMES, "the middle value, or the mean of the two in the middle",
        ("MEDIAN(v)", "2.0"), Interpolated, distinct=True,
    ),
    Aggregate(
        "quantile_cont", 2, 2, _number, f"{OF_TIMES}; and a share from 0 to 1",
        "the value at this share of the sorted values, interpolated between two of them",
        ("QUANTILE_CONT(w, 0.25)", "17.5"), Interpolated, literals={1: _fraction}, distinct=True,
    ),
    Aggregate(
        "quantile_disc", 2, 2, _same, "any type, and a share from 0 to 1",
        "the least value that at least this share of the values do not exceed",
        ("QUANTILE_DISC(w, 0.25)", "10"), Chosen, literals={1: _fraction}, distinct=True,
    ),
    Aggregate(
        "percentile_cont", 1, 1, _number, f"a share from 0 to 1; {OF_TIMES} in WITHIN GROUP (ORDER BY ..)",
        "as QUANTILE_CONT; from the greatest with DESC",
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY w)", "17.5"), Interpolated,
        literals={0: _fraction}, ordering=Ordering.WITHIN,
    ),
    Aggregate(
        "percentile_disc", 1, 1, _same, "a share from 0 to 1; any type in WITHIN GROUP (ORDER BY ..)",
        "as QUANTILE_DISC; from the greatest with DESC",
        ("PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY w DESC)", "40"), Chosen,
        literals={0: _fraction}, ordering=Ordering.WITHIN,
    ),
    Aggregate(
        "mode", 0, 1, _same, "any type, or nothing and WITHIN GROUP (ORDER BY ..)",
        "the most frequent value; if there are several, the least", ("MODE(t)", "'b'"), kept_by_kernel,
        ordering=Ordering.WITHIN,
    ),
    Aggregate(
        "approx_percentile", 1, 2, _same, 
        "a share from 0 to 1, and optionally an error; any type in WITHIN GROUP (ORDER BY ..)",
        "as PERCENTILE_DISC: the exact value is within every error",
        ("APPROX_PERCENTILE(0.25, 0.01) WITHIN GROUP (ORDER BY w)", "10"), Chosen,
        literals={0: _fraction, 1: _fraction}, defaults={1: 0.01}, ordering=Ordering.WITHIN,
    ),
    Aggregate(
        "approx_top_k", 2, 2, _listed_by, "any type, and a number of values",
        "the list of the n values that most rows have, the most frequent first; of several, the least; exact",
        ("APPROX_TOP_K(t, 2)", "['b', 'a']"), MostFrequent, literals={1: number_of_values},
    ),
    Aggregate(
        "histogram", 1, 1, _counted, "TEXT or INTEGER", "the MAP from each value to the number of its rows",
        ("HISTOGRAM(t)", "{'a': 1, 'b': 2, 'c': 1}"), Histogram,
    ),
    Aggregate(
        "arg_min", 2, 2, _same, "a value of any type, and one that has an order",
        "the first argument in the row where the second is least; of several, its least",
        ("ARG_MIN(t, w)", "'a'"), kept_by_kernel, several="arg_min_n", keeps_wanted=True,
    ),
    Aggregate(
        "arg_max", 2, 2, _same, "a value of any type, and one that has an order",
        "the first argument in the row where the second is greatest; of several, its greatest",
        ("ARG_MAX(t, w)", "'c'"), kept_by_kernel, several="arg_max_n", keeps_wanted=True,
    ),
    Aggregate(
        "min_n", 2, 2, _listed_by, "any type but lists, and a number of values",
        "the list of the n least, the least first",
        ("MIN_N(w, 2)", "[10, 20]"), _least_ones, literals={1: number_of_values}, distinct=True,
        keeps_wanted=True,
    ),
    Aggregate(
        "max_n", 2, 2, _listed_by, "any type but lists, and a number of values",
        "the list of the n greatest, the greatest first",
        ("MAX_N(w, 3)", "[40, 40, 20]"), _greatest_ones, literals={1: number_of_values}, distinct=True,
        keeps_wanted=True,
    ),
    Aggregate(
        "arg_min_n", 3, 3, _listed_by, "two values of any type, and a number of values",
        "the first arguments in the n rows where the second is least, the least first",
        ("ARG_MIN_N(t, w, 2)", "['a', 'b']"), _least_ones, literals={2: number_of_values},
        keeps_wanted=True,
    ),
    Aggregate(
        "arg_max_n", 3, 3, _listed_by, "two values of any type, and a number of values",
        "the first arguments in the n rows where the second is greatest, the greatest first",
        ("ARG_MAX_N(t, w, 3)", "['c', 'b', 'b']"), _greatest_ones, literals={2: number_of_values},
        keeps_wanted=True,
    ),
)  # fmt: skip
