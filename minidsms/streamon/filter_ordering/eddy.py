"""What the Eddies have in common: an order is drawn for every block of tuples, by what execution has counted.

They are there to be measured against. An Eddy of the papers draws for each tuple; in columns a block takes one draw, so
that the shares of the orders are the same and their statistics are a block older.
Invariant: an Eddy asks for no profile tuples.  Avnur and Hellerstein 2000; Babu 2005, section 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderStatistics, Wanted


class Eddy:
    """See `OrderingAlgorithm` and `DrawsOrders`; what is left to the classes are `draw` and `count`."""

    default_rate: ClassVar[float] = 0.0
    default_window: ClassVar[int] = 1
    default_alpha: ClassVar[float] = 1.0
    unknown: ClassVar[float]
    """The weight of a filter that has got nothing yet."""

    def __init__(
        self,
        n: int,
        order: Sequence[int] | None = None,
        window: int | None = None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        self.n = n
        self.rng = Random(seed)
        self.weights = [self.unknown] * n
        self._order: Order = tuple(range(n) if order is None else order)

    @property
    def order(self) -> Order:
        """The one to begin with, or adopted: what is drawn is for a block only."""
        return self._order

    def wanted(self) -> Wanted:
        """What execution counts."""
        return Wanted(Evaluate.NOTHING)

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """Nothing follows from profile tuples."""
        return None

    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`."""
        self._order = tuple(order)

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """Unknown."""
        return None

    def describe(self) -> OrderStatistics:
        """The order, and nothing about it."""
        unknown = (None,) * self.n
        return OrderStatistics(self._order, unknown, unknown, 0)
