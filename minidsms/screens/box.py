"""What a condition asks of single columns: a box, a set of values per column.

The values of a column are ordered: numbers and instants as they are, FALSE before TRUE, texts by code point. A cut
stands between two values: before `cut` lies everything less, behind it `cut` itself and all that is greater. A set of
values is a union of runs between two cuts, and NULL stands in it or not.

Invariant: a row lies in a box exactly if the condition that it was made of is TRUE, as far as the box says all of it
(docs/semantics R2); a box never says anything of an expression that can fail (R4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Cut: TypeAlias = int | tuple[str, bool]
"""Of a whole number, an instant, a truth value or a FLOAT's key the number; of a text (text, it is behind the text)."""
Run: TypeAlias = tuple[Cut | None, Cut | None]
"""The values from the first cut up to the second; None: no end."""

_GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Values:
    """A set of values of one column. runs: ascending, apart from each other, none empty.  has_null: NULL is in it."""

    runs: tuple[Run, ...]
    has_null: bool = False

    def __or__(self, other: Values) -> Values:
        return any_of((self, other))

    def __and__(self, other: Values) -> Values:
        """
        >>> Values(((0, 5), (7, None))) & Values(((3, 9),))
        Values(runs=((3, 5), (7, 9)), has_null=False)
        """
        return all_of((self, other))

    def without(self) -> Values:
        """All other values that are not NULL.

        >>> Values(((0, 5), (7, None))).without()
        Values(runs=((None, 0), (5, 7)), has_null=False)
        """
        runs: list[Run] = []
        start: Cut | None = None
        is_open = True
        for low, high in self.runs:
            if low is not None:
                runs.append((start, low))
            start, is_open = high, high is not None
        if is_open:
            runs.append((start, None))
        return Values(tuple(runs))

    @property
    def is_everything(self) -> bool:
        """No row is refused."""
        return self.has_null and self.runs == ((None, None),)


NOTHING = Values(())
NULL = Values((), True)
PRESENT = Values(((None, None),))
"""Whatever is not NULL."""


def any_of(sets: Sequence[Values]) -> Values:
    """The values that are in one of the sets at least.  O(n log n) for n runs."""
    return Values(_joined([run for each in sets for run in each.runs]), any(each.has_null for each in sets))


def all_of(sets: Sequence[Values]) -> Values:
    """The values that are in all of the sets, of which there is one at least.  O(n log n) for n runs."""
    if len(sets) == 1:
        return sets[0]
    outside = any_of([each.without() for each in sets])
    return Values(outside.without().runs, all(each.has_null for each in sets))


def _joined(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs in order, those that touch or overlap made one."""
    if len(runs) < 2:
        return tuple(runs)
    beginnings = [r for r in runs if r[0] is None]
    found: list[Run] = []
    for low, high in [*beginnings, *sorted((r for r in runs if r[0] is not None), key=lambda r: r[0])]:  # type: ignore[arg-type,return-value]
        last = found[-1] if found else None
        if last is not None and (last[1] is None or low is None or low <= last[1]):  # type: ignore[operator]
            end = None if last[1] is None or high is None else max(last[1], high)
            found[-1] = last[0], end
        else:
            found.append((low, high))
    return tuple(found)


@dataclass(frozen=True)
class Box:
    """What a conjunction asks of columns. columns: (column, its values), by column; every other column may be anything.

    is_all: the conjunction says nothing else.
    """

    columns: tuple[tuple[int, Values], ...]
    is_all: bool = True

    @classmethod
    def of(cls, columns: Mapping[int, Values], is_all: bool = True) -> Box:
        """A box of these columns; those of which nothing is asked are left out."""
        return cls(tuple(sorted((c, v) for c, v in columns.items() if not v.is_everything)), is_all)

    def of_one_column(self) -> Box:
        """What it asks of the column that is bounded on most sides."""
        column = min(self.columns, key=lambda asked: sum(cut is None for run in asked[1].runs for cut in run))
        return Box((column,), self.is_all and len(self.columns) == 1)


def float_key(value: float) -> int:
    """A number that orders floats as their values do; -0.0 is 0.0.

    >>> float_key(-1.5) < float_key(-0.0) == float_key(0.0) < float_key(2.0) < float_key(float("inf"))
    True
    """
    word = int(np.float64(value + 0.0).view(np.int64))
    return word if word >= 0 else word ^ _GREATEST


def float_keys(values: np.ndarray) -> np.ndarray:
    """`float_key` of many, (n,) int64; there is no -0.0 among them."""
    words = values.view(np.int64)
    return np.where(words >= 0, words, words ^ _GREATEST)
