"""Aggregates of bits, and the product: what came and left has left no trace, however many rows there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_

from minidsms.aggregates.aggregate import Aggregate, Settings, State
from minidsms.aggregates.moments import ratio
from minidsms.elements import Type
from minidsms.functions.function import Signature

_BITS = (1 << 64) - 1
_FAR = 1_100
"""No FLOAT has such a power of two."""


class Bits:
    """How many of the values have each bit. Plane p has digit p of the 64 counts, so that a change is that of a
    binary counter: few planes at a time.

    >>> both = Bits(lambda bits: bits.in_all)
    >>> both.add(6); both.add(3); both.result()
    2
    """

    def __init__(self, of: Callable[[Bits], int]) -> None:
        self._of = of
        self._planes: list[int] = []
        self._n = 0

    def add(self, value: int) -> None:
        self._n += 1
        self._carry(value & _BITS, 1)

    def remove(self, value: int) -> None:
        self._n -= 1
        self._carry(value & _BITS, 0)

    def _carry(self, bits: int, digit: int) -> None:
        """digit: of a count, that which one more, or one less, changes in the next plane, too."""
        for p, plane in enumerate(self._planes):
            if not bits:
                break
            self._planes[p] = plane ^ bits
            bits &= plane if digit else ~plane
        if bits:
            self._planes.append(bits)
        while self._planes and not self._planes[-1]:
            self._planes.pop()

    def result(self) -> int:
        found = self._of(self)
        return found - (1 << 64) if found >> 63 else found

    @property
    def in_all(self) -> int:
        """The bits whose count is that of the values."""
        alike = (plane if self._n >> p & 1 else ~plane for p, plane in enumerate(self._planes))
        return reduce(and_, alike, _BITS) if self._n >> len(self._planes) == 0 else 0

    @property
    def in_one(self) -> int:
        """The bits whose count is not 0."""
        return reduce(or_, self._planes, 0)

    @property
    def odd(self) -> int:
        """The bits whose count is odd."""
        return self._planes[0] if self._planes else 0


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


def _state(of: Callable[[Bits], int]) -> Callable[[Settings], State]:
    return lambda settings: Bits(of)


FUNCTIONS = (
    *(
        Aggregate(name, 1, 1, _whole, "INTEGER", summary, (f"{name.upper()}(w)", value), _state(of), distinct=True)
        for name, summary, value, of in (
            ("bit_and", "the bits that are set in all values", "0", lambda bits: bits.in_all),
            ("bit_or", "the bits that are set in at least one", "62", lambda bits: bits.in_one),
            ("bit_xor", "the bits that are set in an odd number of values", "30", lambda bits: bits.odd),
        )
    ),
    Aggregate(
        "product", 1, 1, _real, "INTEGER or FLOAT", "the product, as FLOAT; exact before it is rounded",
        ("PRODUCT(w)", "320000.0"), Product, distinct=True,
    ),
)  # fmt: skip
