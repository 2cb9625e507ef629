"""Plan logging for orders of filters: conditions that were seen before bring their order back at once.

Another algorithm decides, and its decisions are logged under the drop rates of the time. Every BLOCK profile tuples the
latest of them are looked up: of the orders that were picked under such drop rates, the one that costs least on these
very tuples is taken, if it costs less than the present one, without waiting for the profile window to turn over. The
algorithm goes on from it with these tuples only, for the older ones belong to the past.

Invariant: an order is logged only while the latest profile tuples cost what the window says, so that it suits them.
Babu 2005, section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from minidsms.elements import BoolArray
from minidsms.expressions.attributes import UInt8Array
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderingAlgorithm, OrderStatistics, Wanted
from minidsms.streamon.filter_ordering.profile_window import cost_of
from minidsms.streamon.plan_regions import PlanRegions

BLOCK = 100
"""Profile tuples whose drop rates are looked up: each is known to about 0.05."""
TOLERANCE = 0.2
"""Drop rates of neighbours differ by no more."""
ALPHA = 0.9
"""An order costs less if it costs less than so much of another: smaller differences are chance."""


class PlanLogged:
    """See `OrderingAlgorithm`.  make: order -> the algorithm, new; it must ask for all filters of a profile tuple.

    looked_up: how often an order was taken from the log.
    """

    default_rate: ClassVar[float] = 0.01
    default_window: ClassVar[int] = 1000
    default_alpha: ClassVar[float] = 0.9

    def __init__(self, n: int, make: Callable[[Order], OrderingAlgorithm]) -> None:
        self._make = make
        self._inner = make(tuple(range(n)))
        if self._inner.wanted().evaluate is not Evaluate.ALL:
            raise ValueError("a plan log of orders takes an algorithm that looks at all filters")
        self.regions: PlanRegions[Order] = PlanRegions({f"d{f + 1}": TOLERANCE for f in range(n)})
        self.looked_up = 0
        self._block: UInt8Array = np.zeros((BLOCK, n), np.uint8)
        self._filled = 0
        self._blocks = 0
        self._costs: Float64Array = np.ones(n)

    @property
    def order(self) -> Order:
        """That of the algorithm, or of the log."""
        return self._inner.order

    def wanted(self) -> Wanted:
        """All filters."""
        return self._inner.wanted()

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        before = self.order
        self._costs = np.where(np.isfinite(costs), costs, self._costs)
        start = 0
        while start < len(drops):
            rows = drops[start : start + BLOCK - self._filled]
            self._inner.observe(rows, costs)
            self._block[self._filled : self._filled + len(rows)] = rows
            self._filled += len(rows)
            start += len(rows)
            if self._filled == BLOCK:
                self._filled = 0
                self._look_up()
        return None if self.order == before else self.order

    def _look_up(self) -> None:
        """A block is full: take the order of the log if it is better here, or log the present one."""
        rates = dict(zip(self.regions.dimensions, self._block.mean(axis=0).tolist()))
        self._blocks += 1
        present = self._cost(self.order)
        known = min(self.regions.plans_near(rates), key=self._cost, default=self.order)
        least = self._cost(known)
        if least < ALPHA * present:
            self._inner = self._make(known)
            self._inner.observe(self._block != 0, self._costs)
            self.looked_up += 1
            return
        expected = self._inner.expected_cost(self.order)
        if expected is not None and present <= expected / ALPHA and expected <= present / ALPHA:
            # An order that is as good as the one of the log is the same plan: the log does not follow its whims.
            self.regions.record(self._blocks, rates, known if least <= present / ALPHA else self.order)

    def _cost(self, order: Order) -> float:
        """Of the block."""
        cost = cost_of(self._block, self._costs, order)
        assert cost is not None
        return cost

    def adopt(self, order: Sequence[int]) -> None:
        self._inner.adopt(order)

    def keep_last(self, profiled: int) -> None:
        """See `OrderingAlgorithm`. The log stays: it is of conditions, not of times."""
        self._inner.keep_last(profiled)
        self._filled = 0

    def expected_cost(self, order: Sequence[int]) -> float | None:
        return self._inner.expected_cost(order)

    def describe(self) -> OrderStatistics:
        return self._inner.describe()
