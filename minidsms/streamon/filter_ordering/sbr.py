"""SBR, source-based routing: tuples go to the filter that passes least of what it got lately, whatever they contain.

The paper says both that the chance of a filter is inversely proportional to what it passes, and that the least is
taken; here the least is taken, but for one block in 1 / P that begins with any filter, or nothing would be learned of
those behind. Content-Based Routing, section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from minidsms.expressions.routes import Order
from minidsms.streamon.filter_ordering.unprofiled import Unprofiled

MEMORY = 0.95
"""Of a selectivity, what is left of it by the next tuple."""
EXPLORING = 0.06
"""P: blocks that begin with any filter."""
UNKNOWN = 0.5
"""What a filter passes before it has got anything."""


class Sbr(Unprofiled):
    """See `Unprofiled`, `DrawsOrders`: of each filter it keeps W, the share it passes of the tuples that reach it."""

    unknown: ClassVar[float] = UNKNOWN

    def draw(self) -> Order:
        order = sorted(range(self.n), key=self.weights.__getitem__)
        if self.rng.random() < EXPLORING:
            first = self.rng.randrange(self.n)
            order.remove(first)
            order.insert(0, first)
        return tuple(order)

    def count(self, order: Order, reached: Sequence[int]) -> None:
        """See `DrawsOrders`: s = 0.95 s + 0.05 pass for every tuple, many at once."""
        for number, into, out in zip(order, reached, reached[1:]):
            if into:
                left = MEMORY**into
                self.weights[number] = left * self.weights[number] + (1 - left) * out / into
