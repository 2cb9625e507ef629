"""What a row gets from the rows beside it: `function(..) OVER (PARTITION BY .. ORDER BY ..)`.

Invariant: a result depends on the rows of the partition in their order alone (docs/semantics R7).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from minidsms.aggregates.aggregate import SortKey
from minidsms.elements import Type

RANKS = ("row_number", "rank", "dense_rank")
"""The place of a row: of its own, of the first row it is equal to in the keys, and counting these once."""
NEIGHBOURS = ("lag", "lead")
"""The value of a row so many places before, or behind."""
AGGREGATES = ("count", "sum", "avg", "min", "max")
"""Aggregates of the rows of a frame."""


class Frame(enum.Enum):
    """Which rows an aggregate is of."""

    ROWS = "rows"
    """The row and those before it: so many, or all."""
    PEERS = "peers"
    """All rows up to this one, and those equal to it in the keys."""
    PARTITION = "partition"
    """All rows of the partition."""


@dataclass(frozen=True)
class OverCall:
    """One call. Columns are those of the input.

    partition, order: which columns make the partition, and by which it is sorted and how.  arg: None for ranks and
    COUNT(*).  distance: how many rows LAG and LEAD look away, or a frame of ROWS reaches back; None is to the first.
    label: the call in words.
    """

    function: str
    type: Type
    partition: tuple[int, ...]
    order: tuple[tuple[int, SortKey], ...]
    label: str
    arg: int | None = None
    frame: Frame = Frame.PARTITION
    distance: int | None = None

    @property
    def looks_ahead(self) -> bool:
        """Its result may depend on rows that stand behind in the order."""
        return self.function == "lead" or (self.function in AGGREGATES and self.frame is Frame.PARTITION)

    @property
    def can_fail(self) -> bool:
        """Its result may not fit."""
        return self.function == "sum" and self.type is not Type.FLOAT


class Accumulator(Protocol):
    """An aggregate of the values it was given."""

    def add(self, value: Any) -> None: ...

    def result(self) -> Any: ...


class Count:
    """How many."""

    def __init__(self) -> None:
        self.n = 0

    def add(self, value: Any) -> None:
        self.n += 1

    def result(self) -> int:
        return self.n


class Extreme:
    """The least, or the greatest."""

    def __init__(self, is_least: bool) -> None:
        self._is_least = is_least
        self._value: Any = None

    def add(self, value: Any) -> None:
        if self._value is None or (value < self._value if self._is_least else value > self._value):
            self._value = value

    def result(self) -> Any:
        return self._value


class Total:
    """The exact sum of integers, or of floats in units of 2 ** -places, rounded once when asked; or their mean.

    >>> total = Total(False)
    >>> for value in (1e100, 1.0, -1e100): total.add(value)
    >>> total.result()
    1.0
    """

    def __init__(self, is_mean: bool) -> None:
        self._is_mean = is_mean
        self._sum: int = 0
        self._places: int | None = None
        self._infinite = 0.0
        self._n = 0

    def add(self, value: float) -> None:
        self._n += 1
        if isinstance(value, int):
            self._sum += value
        elif math.isinf(value):
            self._infinite += value
            self._places = self._places or 0
        else:
            numerator, denominator = value.as_integer_ratio()
            places = denominator.bit_length() - 1
            if self._places is None or places > self._places:
                self._sum <<= places - (self._places or 0)
                self._places = places
            self._sum += numerator << (self._places - places)

    def result(self) -> float | None:
        if not self._n:
            return None
        total = self._total()
        if self._is_mean:
            total = total / self._n
        return None if total != total else total

    def _total(self) -> float:
        if self._places is None:
            return self._sum
        if self._infinite or self._infinite != self._infinite:
            return self._infinite
        try:
            return self._sum / (1 << self._places)
        except OverflowError:
            return math.copysign(math.inf, self._sum)


def accumulator(function: str) -> Accumulator:
    """A new one of these AGGREGATES."""
    match function:
        case "count":
            return Count()
        case "min" | "max":
            return Extreme(function == "min")
        case _:
            return Total(function == "avg")


def accumulated(function: str, values: Iterable[Any]) -> Any:
    """The aggregate of values, NULLs left out."""
    found = accumulator(function)
    for value in values:
        if value is not None:
            found.add(value)
    return found.result()


def neighbours(values: Sequence[Any], first: int, last: int, by: int) -> list[Any]:
    """For the places from first to before last the values `by` places further on; None where there is none.

    >>> neighbours("abc", 0, 3, -1)
    [None, 'a', 'b']
    """
    return [values[i + by] if 0 <= i + by < len(values) else None for i in range(first, last)]
