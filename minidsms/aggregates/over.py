"""What a row gets from the rows beside it: `function(..) OVER (PARTITION BY .. ORDER BY ..)`.

Invariant: a result depends on the rows of the partition in their order alone (docs/semantics R7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from minidsms.aggregates.aggregate import SortKey
from minidsms.elements import Type

RANKS = ("row_number", "rank", "dense_rank")
"""The place of a row: of its own, of the first row it is equal to in the keys, and counting these once."""
SHARES = ("ntile", "percent_rank", "cume_dist")
"""The place of a row among all of its partition."""
NEIGHBOURS = ("lag", "lead")
"""The value of a row so many places before, or behind."""
AGGREGATES = ("count", "sum", "avg", "min", "max")
"""Aggregates of the rows of a frame."""
PLACES = ("first_value", "last_value", "nth_value")
"""The value of one row of a frame."""
FUNCTIONS = (*RANKS, *SHARES, *NEIGHBOURS, *PLACES, *AGGREGATES)


@dataclass(frozen=True)
class Frame:
    """Which rows of the partition a call is of, relative to the row.

    start, end: how many rows away, negative before it, or, by_value, how far the keys are away: at 0 are the rows equal
    in all keys. None has no bound.
    """

    by_value: bool = False
    start: int | None = None
    end: int | None = None

    @property
    def is_by_distance(self) -> bool:
        """Whether keys are added to and subtracted from."""
        return self.by_value and bool(self.start or self.end)

    @property
    def reach(self) -> int:
        """How far behind the last row the rows stand that one more may change, or that it may see."""
        back = max(0, -(self.end or 0)) if self.start is None else max(0, -self.start)
        return back + max(0, self.end or 0)


PARTITION = Frame()
"""All rows of the partition."""
PEERS = Frame(True, None, 0)
"""All rows up to this one, and those equal to it in the keys."""


@dataclass(frozen=True)
class OverCall:
    """One call. Columns are those of the input.

    partition, order: which columns make the partition, and by which it is sorted and how.  arg: None for ranks and
    COUNT(*).  distance: how many rows LAG and LEAD look away, the n of NTH_VALUE and NTILE.  label: the call in words.
    """

    function: str
    type: Type
    partition: tuple[int, ...]
    order: tuple[tuple[int, SortKey], ...]
    label: str
    arg: int | None = None
    frame: Frame = PARTITION
    distance: int | None = None

    @property
    def is_framed(self) -> bool:
        """It is of the rows of its frame."""
        return self.function in AGGREGATES or self.function in PLACES

    @property
    def looks_ahead(self) -> bool:
        """Its result may depend on rows that stand behind in the order."""
        ahead = self.frame.end is None or self.frame.end > 0
        return self.function == "lead" or self.function in SHARES or (self.is_framed and ahead)

    @property
    def sums_decimals(self) -> bool:
        return self.function == "sum" and self.type.kind == "DECIMAL"

    @property
    def can_fail(self) -> bool:
        """Its result may not fit."""
        return self.function == "sum" and self.type is not Type.FLOAT


class Accumulator(Protocol):
    """What a function gives of the rows of a frame, which come behind one another and leave in the same order."""

    def extend(self, values: Sequence[Any]) -> None: ...

    def remove(self, value: Any) -> None: ...

    def result(self) -> Any: ...


class Count:
    """How many values are not NULL."""

    def __init__(self) -> None:
        self.n = 0

    def extend(self, values: Sequence[Any]) -> None:
        self.n += len(values) - values.count(None)

    def remove(self, value: Any) -> None:
        self.n -= value is not None

    def result(self) -> int:
        return self.n


class Extreme:
    """The least, or the greatest. Kept are the values that are the extreme once those before them have left.

    is_growing: none leaves, so that one is enough.

    >>> least = Extreme(True, False)
    >>> least.extend((1, 3, 2))
    >>> least.remove(1); least.result()
    2
    """

    def __init__(self, is_least: bool, is_growing: bool) -> None:
        self._is_least = is_least
        self._is_growing = is_growing
        self._values: list[Any] = []

    def extend(self, values: Sequence[Any]) -> None:
        kept = self._values
        for value in values:
            if value is None:
                continue
            while kept and (value < kept[-1] if self._is_least else value > kept[-1]):
                kept.pop()
            if not (kept and self._is_growing):
                kept.append(value)

    def remove(self, value: Any) -> None:
        if self._values and value == self._values[0]:
            del self._values[0]

    def result(self) -> Any:
        return self._values[0] if self._values else None


class Place:
    """The n-th value of the frame, or the last. is_growing: none leaves, so that no more need be kept."""

    def __init__(self, n: int | None, is_growing: bool) -> None:
        self._n = n
        self._is_growing = is_growing
        self._values: list[Any] = []

    def extend(self, values: Sequence[Any]) -> None:
        if not self._is_growing:
            self._values += values
        elif self._n is None:
            self._values = [*self._values, *values][-1:]
        else:
            self._values += values[: self._n - len(self._values)]

    def remove(self, value: Any) -> None:
        del self._values[0]

    def result(self) -> Any:
        place = len(self._values) if self._n is None else self._n
        return self._values[place - 1] if 0 < place <= len(self._values) else None


class Total:
    """The exact sum of integers, or of floats in units of 2 ** -places, rounded once when asked; or their mean.

    >>> total = Total(False)
    >>> total.extend((1e100, 1.0, -1e100))
    >>> total.result()
    1.0
    """

    def __init__(self, is_mean: bool) -> None:
        self._is_mean = is_mean
        self._sum: int = 0
        self._places: int | None = None
        self._infinite = [0, 0]
        self._n = 0

    def extend(self, values: Sequence[float | None]) -> None:
        there: list[Any] = [value for value in values if value is not None]
        if there and isinstance(there[0], int):
            self._n += len(there)
            self._sum += sum(there)
        else:
            for value in there:
                self._count(value, 1)

    def remove(self, value: float | None) -> None:
        self._count(value, -1)

    def _count(self, value: float | None, sign: int) -> None:
        if value is None:
            return
        self._n += sign
        if isinstance(value, int):
            self._sum += sign * value
        elif math.isinf(value):
            self._infinite[value > 0] += sign
            self._places = self._places or 0
        else:
            numerator, denominator = value.as_integer_ratio()
            places = denominator.bit_length() - 1
            if self._places is None or places > self._places:
                self._sum <<= places - (self._places or 0)
                self._places = places
            self._sum += sign * numerator << (self._places - places)

    def result(self) -> float | None:
        if not self._n:
            return None
        total = self._total()
        if self._is_mean and total is not None:
            total = total / self._n
        return total

    def _total(self) -> float | None:
        below, above = self._infinite
        if self._places is None:
            return self._sum
        if below or above:
            return None if below and above else math.inf if above else -math.inf
        try:
            return self._sum / (1 << self._places)
        except OverflowError:
            return math.copysign(math.inf, self._sum)


def accumulator(call: OverCall) -> Accumulator:
    """A new one for the frames of a call."""
    match call.function:
        case "count":
            return Count()
        case "min" | "max":
            return Extreme(call.function == "min", call.frame.start is None)
        case "sum" | "avg":
            return Total(call.function == "avg")
        case _:
            n = {"first_value": 1, "last_value": None}.get(call.function, call.distance)
            return Place(n, call.frame.start is None)


def slid(found: Accumulator, values: Sequence[Any], frames: Sequence[tuple[int, int]], first: int) -> list[Any]:
    """The results for frames of places whose bounds never go back. values: those of the places from `first` on.

    found: what the first frame has before `first`.

    >>> slid(Total(False), [1, 2, 3, 4], [(5, 6), (5, 7), (6, 8), (8, 8)], 5)
    [1, 3, 5, None]
    """
    results = []
    low = high = first
    for start, end in frames:
        if high < end:
            found.extend(values[high - first : end - first])
            high = end
        while low < min(start, high):
            found.remove(values[low - first])
            low += 1
        low, high = max(low, start), max(high, start)
        results.append(found.result())
    return results


def tile(place: int, rows: int, tiles: int) -> int:
    """In which of so many parts a row stands, from 1: the parts are as equal as can be, the greater ones first.

    >>> [tile(i, 5, 3) for i in range(5)]
    [1, 1, 2, 2, 3]
    """
    size, greater = divmod(rows, tiles)
    if place < greater * (size + 1):
        return place // (size + 1) + 1
    return greater + (place - greater * (size + 1)) // size + 1
