"""Static: the filters as they were written, or as they were told to stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderStatistics, Wanted


class Static:
    """See `OrderingAlgorithm`. It asks for nothing, so that it costs nothing and knows nothing."""

    default_rate: ClassVar[float] = 0.0
    default_window: ClassVar[int] = 1
    default_alpha: ClassVar[float] = 1.0

    def __init__(
        self,
        n: int,
        order: Sequence[int] | None = None,
        window: int | None = None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        self._order: Order = tuple(range(n))
        if order is not None:
            self.adopt(order)

    @property
    def order(self) -> Order:
        """As given."""
        return self._order

    def wanted(self) -> Wanted:
        """Nothing."""
        return Wanted(Evaluate.NOTHING)

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """Nothing follows from profile tuples."""
        return None

    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`."""
        if sorted(order) != list(range(len(self._order))):
            raise ValueError(f"{tuple(order)} is no order of {len(self._order)} filters")
        self._order = tuple(order)

    def keep_last(self, profiled: int) -> None:
        """There is nothing to forget."""

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """Unknown."""
        return None

    def describe(self) -> OrderStatistics:
        """The order, and nothing about it."""
        unknown = (None,) * len(self._order)
        return OrderStatistics(self._order, unknown, unknown, 0)
