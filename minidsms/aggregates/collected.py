"""Aggregates that put a group's values together in an order: STRING_AGG, ARRAY_AGG, the first n and the last n."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from minidsms.aggregates.aggregate import Aggregate, Ordering, Settings
from minidsms.aggregates.sorting import Few, Rows, sort_key, with_room
from minidsms.elements import Type
from minidsms.functions.function import Signature
from minidsms.values.types import known_type

MOST_VALUES = 1_000_000
"""In a list that an aggregate is asked for."""


class Collected:
    """The values by their sort keys. What the keys leave equal stands in the order of the values, NULL last."""

    def __init__(self, settings: Settings) -> None:
        self._keys = settings.keys
        self._rows: Rows = Few()

    def _row(self, value: Any, by: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self._keys:
            return by[0], value  # by arrival: a number has one value
        return sort_key(tuple(map(_ordered, by)), self._keys), value is None, _ordered(value), value

    def add(self, value: Any, *by: Any) -> None:
        self._rows.add(self._row(value, by))
        self._rows = with_room(self._rows)

    def remove(self, value: Any, *by: Any) -> None:
        self._rows.remove(self._row(value, by))

    def values(self) -> list[Any]:
        """The values in order."""
        return [row[-1] for row in self._rows]


def _ordered(value: Any) -> Any:
    """What is nested is sorted as its text."""
    return json.dumps(value, default=str) if isinstance(value, tuple) else value


class AtTheFront(Collected):
    """The first n values of the order, or fewer where there are fewer."""

    _unwanted = -1
    """The place of the row that goes where there is one too many."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        (self._wanted,) = settings.parameters
        self._keeps_wanted = settings.is_append_only

    def add(self, value: Any, *by: Any) -> None:
        super().add(value, *by)
        if self._keeps_wanted and len(self._rows) > self._wanted:
            del self._rows[self._unwanted]

    def result(self) -> tuple[Any, ...]:
        return tuple(row[-1] for row in self._rows[: self._wanted])


class AtTheBack(AtTheFront):
    """The last n values of the order, in that order."""

    _unwanted = 0

    def result(self) -> tuple[Any, ...]:
        return tuple(row[-1] for row in self._rows[-self._wanted :])


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


def number_of_values(value: Any) -> str | None:
    """What is wrong with it as the number of values that are wanted."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return None if is_number and 1 <= value <= MOST_VALUES else f"the number of values is from 1 to {MOST_VALUES:,}"


def _separator(value: Any) -> str | None:
    return None if isinstance(value, str) else "a separator is TEXT"


def _text(types: Sequence[Type]) -> Signature | None:
    return Signature((Type.TEXT,), Type.TEXT) if types[0] in (Type.TEXT, Type.NULL) else None


def listed(types: Sequence[Type]) -> Signature | None:
    """The signature of what makes a list of its values."""
    element = known_type(types[0])
    return Signature((element,), element.list_type)


FUNCTIONS = (
    Aggregate(
        "array_agg", 1, 1, listed, "any type",
        "the list of the values, NULLs among them, as they arrived or in the order of ORDER BY",
        ("ARRAY_AGG(v ORDER BY w DESC, t)", "[2, None, 2, 1]"), Gathered,
        ordering=Ordering.INSIDE, distinct=True, passes_nulls=False,
    ),
    Aggregate(
        "first_n", 2, 2, listed, "any type, and a number of values",
        "the list of the first n values, as they arrived or in the order of ORDER BY",
        ("FIRST_N(v, 3 ORDER BY w DESC, t)", "[2, None, 2]"), AtTheFront,
        literals={1: number_of_values}, ordering=Ordering.INSIDE, passes_nulls=False, keeps_wanted=True,
    ),
    Aggregate(
        "last_n", 2, 2, listed, "any type, and a number of values",
        "the list of the last n values, as they arrived or in the order of ORDER BY; the last one comes last",
        ("LAST_N(v, 2) IGNORE NULLS", "[2, 2]"), AtTheBack,
        literals={1: number_of_values}, ordering=Ordering.INSIDE, passes_nulls=False, keeps_wanted=True,
    ),
    Aggregate(
        "string_agg", 1, 2, _text, "TEXT, and a separator (a comma without it)",
        "the texts with the separator between them, as they arrived or in the order of ORDER BY",
        ("STRING_AGG(t, '-' ORDER BY w DESC)", "'b-c-b-a'"), Joined,
        literals={1: _separator}, defaults={1: ","}, ordering=Ordering.INSIDE, distinct=True,
    ),
)  # fmt: skip
