"""Sort keys of values that may be NULL, upwards and downwards, and what stands in their order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import total_ordering
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sortedcontainers import SortedList

from minidsms.aggregates.aggregate import SortKey
from minidsms.elements import Column, Int64Array, Type

if TYPE_CHECKING:
    from minidsms.synopses.object_states import Texts  # loads kernels

_FEW = 4096
"""So many rows stand in a list: to make room in it takes less than to find a place in a SortedList."""


class Few(list[Any]):
    """Few rows in order, with the methods of a SortedList."""

    __slots__ = ()

    def add(self, row: Any) -> None:
        insort(self, row)

    def remove(self, row: Any) -> None:
        """ValueError where it does not stand here."""
        at = bisect_left(self, row)
        if at == len(self) or self[at] != row:
            raise ValueError(f"{row!r} is not here")
        del self[at]


Rows: TypeAlias = "Few | SortedList[Any]"


def with_room(rows: Rows) -> Rows:
    """The same rows, as they are kept where they are many."""
    return SortedList(rows) if len(rows) > _FEW and isinstance(rows, Few) else rows


@total_ordering
class Descending:
    """A value that stands before those it is greater than."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.value == other.value)

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value) if isinstance(other, Descending) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)


def sort_key(values: Sequence[Any], keys: Sequence[SortKey]) -> tuple[Any, ...]:
    """What sorts rows by these values.

    >>> sort_key((3, None), (SortKey(), SortKey(nulls_first=True))) < sort_key((3, 1), (SortKey(), SortKey()))
    True
    """
    return tuple([_sorted_by(value, key) for value, key in zip(values, keys)])


def _sorted_by(value: Any, key: SortKey) -> tuple[Any, ...]:
    if value is None:
        return (0,) if key.nulls_first else (2,)
    if not key.descending:
        return (1, value)
    # Numbers are compared without a call.
    return (1, -value) if isinstance(value, int | float) else (1, Descending(value))


def words_in_order(column: Column, type_: Type, descending: bool, texts: Texts) -> Int64Array:
    """Words, (n,), that are less where a value stands before another; those of NULLs say nothing."""
    words: Int64Array
    if type_.is_coded:
        words = texts.ranks(column.words())
    elif type_ is Type.FLOAT:
        bits = np.add(column.values, 0.0, dtype=np.float64).view(np.int64)  # negative zero is zero
        words = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    else:
        words = column.values.astype(np.int64)
    return ~words if descending else words


def sort_columns(column: Column, type_: Type, key: SortKey, texts: Texts) -> tuple[Int64Array, ...]:
    """Words by which rows are sorted as by this column, the most important first."""
    words = words_in_order(column, type_, key.descending, texts)
    if column.valid is None:
        return (words,)
    return np.where(column.valid, 0, -1 if key.nulls_first else 1), np.where(column.valid, words, 0)
