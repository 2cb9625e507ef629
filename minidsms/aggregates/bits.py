"""Aggregates of bits, and the product: what came and left has left no trace, however many rows there are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from minidsms.aggregates.aggregate import Aggregate, Settings, kept_by_kernel
from minidsms.aggregates.moments import ratio
from minidsms.elements import Type
from minidsms.functions.function import Signature

_FAR = 1_100
"""No FLOAT has such a power of two."""


class Product:
    """The exact product, rounded once when asked: whole numbers are multiplied, and divided when they leave.

    Of rows with an infinity and a 0 there is none.
    """

    def __init__(self, settings: Settings) -> None:
        self._number, self._power = 1, 0
        self._zeros = self._infinite = self._negative = 0

    def add(self, value: float) -> None:
        self._move(value, 1)

    def remove(self, value: float) -> None:
        self._move(value, -1)

    def _move(self, value: float, step: int) -> None:
        self._negative += step * (value < 0)
        if value == 0 or math.isinf(value):
            self._zeros += step * (value == 0)
            self._infinite += step * (value != 0)
            return
        number, unit = abs(value).as_integer_ratio()
        twos = (number & -number).bit_length() - 1
        number >>= twos
        self._number = self._number * number if step > 0 else self._number // number
        self._power += step * (twos - unit.bit_length() + 1)

    def result(self) -> float | None:
        if self._infinite:
            size = None if self._zeros else math.inf
        elif self._zeros:
            size = 0.0
        else:
            size = self._size()
        return -size if size and self._negative % 2 else size

    def _size(self) -> float:
        length = self._number.bit_length() + self._power
        if not -_FAR < length < _FAR:
            return math.inf if length > 0 else 0.0
        return ratio(self._number << max(self._power, 0), 1 << max(-self._power, 0))


def _whole(types: Sequence[Type]) -> Signature | None:
    return Signature((Type.INTEGER,), Type.INTEGER) if types[0] in (Type.INTEGER, Type.NULL) else None


def _real(types: Sequence[Type]) -> Signature | None:
    return Signature((Type.FLOAT,), Type.FLOAT) if types[0] in (Type.INTEGER, Type.FLOAT, Type.NULL) else None


FUNCTIONS = (
    *(
        Aggregate(name, 1, 1, _whole, "INTEGER", summary, (f"{name.upper()}(w)", value), kept_by_kernel, distinct=True)
        for name, summary, value in (
            ("bit_and", "the bits that are set in all values", "0"),
            ("bit_or", "the bits that are set in at least one", "62"),
            ("bit_xor", "the bits that are set in an odd number of values", "30"),
        )
    ),
    Aggregate(
        "product", 1, 1, _real, "INTEGER or FLOAT", "the product, as FLOAT; exact before it is rounded",
        ("PRODUCT(w)", "320000.0"), Product, distinct=True,
    ),
)  # fmt: skip
