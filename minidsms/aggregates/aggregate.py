"""A row of the table of aggregates, and what a state of Python values is to its operator.

Invariant: a state's result depends on the rows present alone, not on the order in which they and others came and left.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from minidsms.elements import Type
from minidsms.functions.function import Check, Signature

OF_TIMES = "a number, INTERVAL, TIMESTAMP or DATE"
"""What means and the like are of; of a time, of its ticks (docs/semantics R3)."""


class State(Protocol):
    """The rows of one group. A row is the values of the arguments, then those of the order and, by arrival, its number.

    `result` is asked while there is a row; None is NULL.
    """

    def add(self, *row: Any) -> None: ...

    def remove(self, *row: Any) -> None: ...

    def result(self) -> Any: ...


class Ordering(enum.Enum):
    """Where ORDER BY may stand: nowhere; inside the parentheses, where without it rows stand as they arrived; behind
    WITHIN GROUP, where it gives the argument.
    """

    NONE = "none"
    INSIDE = "inside"
    WITHIN = "within"


EVERY_ROW = 1 << 40
"""The LIMIT of an ORDER BY that sorts all rows (docs/semantics R6)."""


@dataclass(frozen=True)
class SortKey:
    """How one ORDER BY expression of an aggregate sorts."""

    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Settings:
    """What a call says beside its arguments.

    values: how many of them, the first, are values and not sort keys.  parameters: the literal ones.  keys: how it
    sorts, by the arguments behind the values or, with WITHIN GROUP, by the value.  passes_nulls: rows with a NULL value
    do not count.  by_arrival: a row's last value is its arrival number.  is_append_only: rows only come.
    """

    values: int = 1
    parameters: tuple[Any, ...] = ()
    keys: tuple[SortKey, ...] = ()
    passes_nulls: bool = True
    by_arrival: bool = False
    is_append_only: bool = False


def kept_by_kernel(settings: Settings) -> State:
    """In place of a state of Python values, of aggregates that have `Settings` though kernels keep them."""
    raise AssertionError("`operators.aggregate.accumulator` makes these states")


@dataclass(frozen=True)
class Aggregate:
    """A built-in aggregate.

    least, most: how many arguments.  resolve: the types of the arguments that are no literals, and of the result; None
    where it does not take them.  takes: the argument types in words.
    state: of a group's rows; None where kernels keep it.  like: by whose name, where it is another by its own.
    literals: by position, the arguments that must be written as literals, each with its check; optional ones have a
    default.  ordering: where ORDER BY may stand.  distinct: whether DISTINCT is taken, and makes a difference.
    passes_nulls: rows with a NULL argument do not count.  several: the row for a call with one argument more, the
    number of values wanted.  keeps_wanted: where rows only come, a state keeps no more of them than are wanted.
    summary, example: one line of documentation; a call over the rows of `docs/aggregates.md`, and what it gives.
    """

    name: str
    least: int
    most: int
    resolve: Callable[[Sequence[Type]], Signature | None]
    takes: str
    summary: str
    example: tuple[str, str]
    state: Callable[[Settings], State] | None = None
    like: str = ""
    literals: Mapping[int, Check] = field(default_factory=dict)
    defaults: Mapping[int, Any] = field(default_factory=dict)
    ordering: Ordering = Ordering.NONE
    distinct: bool = False
    passes_nulls: bool = True
    several: str = ""
    keeps_wanted: bool = False

    @property
    def kept_as(self) -> str:
        """The name by which kernels know it."""
        return self.like or self.name

    @property
    def values(self) -> int:
        """How many of its arguments are values."""
        return 1 if self.ordering is Ordering.WITHIN else self.most - len(self.literals)
