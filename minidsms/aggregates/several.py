"""Aggregates of several values with OVER: states to which a row is one value, the STRUCT of its arguments.

Frames move single values from row to row. A row in which an argument is NULL has no STRUCT, and does not count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from minidsms.aggregates.aggregate import Settings, State
from minidsms.aggregates.moments import OF_PAIRS, RESULTS, Moments
from minidsms.aggregates.ordered import Extremes

_PLACES = 1074
"""Binary places of the least FLOAT: every one is a whole number of units of 2 ** -_PLACES."""


class Apart:
    """A state that is given the arguments of a row apart."""

    def __init__(self, factory: Callable[[], State]) -> None:
        self._state = factory()

    def add(self, row: tuple[Any, ...]) -> None:
        self._state.add(*row)

    def remove(self, row: tuple[Any, ...]) -> None:
        self._state.remove(*row)

    def result(self) -> Any:
        return self._state.result()


class Pairs:
    """The exact sums of pairs (y, x), and what is computed of them; nothing where one is infinite."""

    def __init__(self, settings: Settings, result: Callable[[Moments], float | None]) -> None:
        self._result = result
        self._infinite = 0
        self._sums = Moments(0, _PLACES, 0, 0, 0, 0, 0)

    def _move(self, sign: int, y: float, x: float) -> None:
        if math.isinf(y) or math.isinf(x):
            self._infinite += sign
            return
        m, v, w = self._sums, _units(y), _units(x)
        self._sums = Moments(
            m.n + sign, _PLACES, m.y + sign * v, m.x + sign * w,
            m.yy + sign * v * v, m.xx + sign * w * w, m.xy + sign * v * w,
        )  # fmt: skip

    def add(self, y: float, x: float) -> None:
        self._move(1, y, x)

    def remove(self, y: float, x: float) -> None:
        self._move(-1, y, x)

    def result(self) -> float | None:
        return None if self._infinite else self._result(self._sums)


def _units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator * ((1 << _PLACES) // denominator)


class Extreme(Extremes):
    """The first argument in the row whose last one is least, or greatest; of several, the least, or greatest."""

    def __init__(self, settings: Settings, largest: bool) -> None:
        super().__init__(Settings(2, (1,), is_append_only=settings.is_append_only), largest)

    def result(self) -> Any:
        return super().result()[0]


STATES: Mapping[str, Callable[[Settings], State]] = {
    **{name: functools.partial(Pairs, result=RESULTS[name]) for name in OF_PAIRS},
    "arg_min": functools.partial(Extreme, largest=False),
    "arg_max": functools.partial(Extreme, largest=True),
}
"""Of aggregates whose states kernels keep for groups."""
