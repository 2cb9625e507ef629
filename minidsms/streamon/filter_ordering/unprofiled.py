"""What the algorithms have in common that ask for no profile tuples: Static, and the Eddies.

An Eddy draws an order for every block of tuples, by what execution has counted. Eddies are there to be measured
against. One of the papers draws for each tuple; in columns a block takes one draw, so that the shares of the orders are
the same and their statistics are a block older.  Avnur and Hellerstein 2000; Babu 2005, section 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderStatistics, Wanted


class Unprofiled:
    """See `OrderingAlgorithm`; what is left to an Eddy are `draw` and `count` of `DrawsOrders`.

    It asks for nothing, so that it costs nothing and knows nothing.
    """

    default_rate: ClassVar[float] = 0.0
    default_window: ClassVar[int] = 1
    default_alpha: ClassVar[float] = 1.0
    unknown: ClassVar[float] = 0.0
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
        self.order: Order = tuple(range(n))
        """As given, or adopted: what is drawn is for a block only."""
        if order is not None:
            self.adopt(order)

    def wanted(self) -> Wanted:
        """Nothing."""
        return Wanted(Evaluate.NOTHING)

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """Nothing follows from profile tuples."""
        return None

    def adopt(self, order: Sequence[int]) -> None:
        if sorted(order) != list(range(self.n)):
            raise ValueError(f"{tuple(order)} is no order of {self.n} filters")
        self.order = tuple(order)

    def keep_last(self, profiled: int) -> None:
        """There is nothing to forget."""

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """Unknown."""
        return None

    def describe(self) -> OrderStatistics:
        """The order, and nothing about it."""
        unknown = (None,) * self.n
        return OrderStatistics(self.order, unknown, unknown, 0)
