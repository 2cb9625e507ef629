"""Aggregates that put a group's values together in an order: STRING_AGG, ARRAY_AGG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sortedcontainers import SortedList

from minidsms.aggregates.aggregate import Aggregate, Ordering, Settings
from minidsms.aggregates.sorting import sort_key
from minidsms.elements import Type
from minidsms.functions.function import Signature


class Collected:
    """The values by their sort keys. What the keys leave equal stands in the order of the values, NULL last."""

    def __init__(self, settings: Settings) -> None:
        self._keys = settings.keys
        self._rows: SortedList[Any] = SortedList()

    def _row(self, value: Any, by: tuple[Any, ...]) -> tuple[Any, ...]:
        # Without keys, `by` is the arrival number.
        return sort_key(by, self._keys) if self._keys else by, value is None, value

    def add(self, value: Any, *by: Any) -> None:
        self._rows.add(self._row(value, by))

    def remove(self, value: Any, *by: Any) -> None:
        self._rows.remove(self._row(value, by))

    def values(self) -> list[Any]:
        """The values in order."""
        return [row[-1] for row in self._rows]


class Joined(Collected):
    """The texts one after the other, with a separator between them."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        (self._separator,) = settings.parameters

    def result(self) -> str:
        return str(self._separator).join(self.values())


class Gathered(Collected):
    """The list of the values."""

    def result(self) -> tuple[Any, ...]:
        return tuple(self.values())


def _separator(value: Any) -> str | None:
    return None if isinstance(value, str) else "a separator is TEXT"


def _text(types: Sequence[Type]) -> Signature | None:
    return Signature((Type.TEXT,), Type.TEXT) if types[0] in (Type.TEXT, Type.NULL) else None


def _listed(types: Sequence[Type]) -> Signature | None:
    element = Type.INTEGER if types[0] is Type.NULL else types[0]
    return None if element.element is not None else Signature((element,), element.list_type)


FUNCTIONS = (
    Aggregate(
        "array_agg", 1, 1, _listed, "any type but lists",
        "the list of the values, NULLs among them, as they arrived or in the order of ORDER BY",
        ("ARRAY_AGG(v ORDER BY w DESC, t)", "[2, None, 2, 1]"), Gathered,
        ordering=Ordering.INSIDE, distinct=True, passes_nulls=False,
    ),
    Aggregate(
        "string_agg", 1, 2, _text, "TEXT, and a separator (a comma without it)",
        "the texts with the separator between them, as they arrived or in the order of ORDER BY",
        ("STRING_AGG(t, '-' ORDER BY w DESC)", "'b-c-b-a'"), Joined,
        literals={1: _separator}, defaults={1: ","}, ordering=Ordering.INSIDE, distinct=True,
    ),
)  # fmt: skip
