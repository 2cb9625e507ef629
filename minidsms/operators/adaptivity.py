"""What operators know of whoever changes their plans while they run: StreaMon, which stands above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from minidsms.elements import Int64Array

if TYPE_CHECKING:
    from minidsms.expressions.predicate import Tuples


class Adaptive(Protocol):
    """An operator whose plan can change while it runs."""

    def adaptations(self) -> tuple[Any, ...]:
        """The places where it can: each a `streamon.loop.Loop`."""


class Condition(Adaptive, Protocol):
    """The filters of one Select, in an order that may change."""

    def run(self, batch: Tuples) -> tuple[Int64Array | None, int | None]:
        """(the rows that pass, ascending, None for all; the first row that counts as failed or None).  Rows behind a
        failed one may be missing.
        """

    def describe(self) -> tuple[str, ...]:
        """A line per filter, as they are evaluated now."""


class SharedByCopies:
    """Base of what a copy of an operator shares with the original."""
