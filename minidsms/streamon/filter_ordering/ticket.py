"""Ticket: a lottery among the filters, in which those that keep tuples to themselves win most often.

A filter gets a ticket for a tuple that it takes, and gives one back for a tuple that it returns, so that its tickets
are the tuples it dropped; they lose value with every block. Avnur and Hellerstein 2000, section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from minidsms.expressions.routes import Order
from minidsms.streamon.filter_ordering.unprofiled import Unprofiled

MEMORY = 0.9
"""Of a ticket, what is left of it by the next block."""


class Ticket(Unprofiled):
    """See `Unprofiled` and `DrawsOrders`: of each filter it keeps the tickets, one that cannot be lost among them."""

    unknown: ClassVar[float] = 1.0

    def draw(self) -> Order:
        left = list(range(self.n))
        order: list[int] = []
        while left:
            (drawn,) = self.rng.choices(left, [self.weights[number] for number in left])
            left.remove(drawn)
            order.append(drawn)
        return tuple(order)

    def count(self, order: Order, reached: Sequence[int]) -> None:
        for number, into, out in zip(order, reached, reached[1:]):
            self.weights[number] = max(1.0, MEMORY * self.weights[number] + into - out)
