"""Optimal: the cheapest of all orders of the filters on what the profile window holds.

A tuple reaches a filter when none of those before it drops it, whatever their order: the cost of the best order of a
set of filters is the cost of the best order without one of them, plus the time of that one on the tuples that all the
others let pass. So 2^n sets are looked at, and not n! orders. Invariant: behind every tenth of a window the order is
that of least expected cost. The measure of the other algorithms, for few filters. Babu 2005, sections 4.2 and 4.7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderStatistics, Wanted
from minidsms.streamon.filter_ordering.profile_window import (
    ProfileWindow,
    as_profile,
    checked_order,
    cost_of,
)

MOST_FILTERS = 16
"""65536 sets of filters are looked at in a few ms."""
STEPS = 10
"""How often the best order is looked for while a window fills."""


class Optimal:
    """See `OrderingAlgorithm`. ValueError with more than MOST_FILTERS filters. There is no thrash to avoid: alpha is
    not used.
    """

    default_rate: ClassVar[float] = 0.01
    default_window: ClassVar[int] = 1000
    default_alpha: ClassVar[float] = 1.0

    def __init__(
        self,
        n: int,
        order: Sequence[int] | None = None,
        window: int | None = None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        if n > MOST_FILTERS:
            raise ValueError(f"the best order is searched among at most {MOST_FILTERS} filters, not {n}")
        self.window = ProfileWindow(n, window or self.default_window)
        self.order: Order = tuple(checked_order(n, order).tolist())
        """The cheapest order when it was last looked for."""
        self._step = max(self.window.capacity // STEPS, 1)
        self._since = 0

    def wanted(self) -> Wanted:
        """Every filter."""
        return Wanted(Evaluate.ALL)

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        before = self.order
        bits, times = as_profile(drops, costs)
        while len(bits):
            taken = min(self._step - self._since, len(bits))
            self.window.append(bits[:taken], times)
            bits = bits[taken:]
            self._since += taken
            if self._since == self._step:
                self._since = 0
                self._reorder()
        return None if self.order == before else self.order

    def _reorder(self) -> None:
        """Take the best order, if it is better than this one on the tuples held."""
        held = self.window.bits[: self.window.size]
        best = best_order(held, self.window.averages)
        cost, least = (cost_of(held, self.window.averages, order) for order in (self.order, best))
        if cost is not None and least is not None and least < cost * (1 - 1e-9):
            self.order = best

    def adopt(self, order: Sequence[int]) -> None:
        self.order = tuple(checked_order(len(self.order), order).tolist())

    def keep_last(self, profiled: int) -> None:
        self.window.keep_last(profiled)

    def expected_cost(self, order: Sequence[int]) -> float | None:
        return self.window.expected_cost(order)

    def describe(self) -> OrderStatistics:
        return self.window.statistics(self.order)


def best_order(bits: UInt8Array, times: Float64Array) -> Order:
    """The order of least cost over the tuples (m, n), filters taking times (n,).  O(m + 2^n * n)."""
    n = len(times)
    sets = (bits != 0).astype(np.int64) @ (1 << np.arange(n, dtype=np.int64))
    passing = _passing(np.bincount(sets, minlength=1 << n).astype(np.float64))
    masks = np.arange(1 << n)
    size = np.zeros(1 << n, np.int64)
    for f in range(n):
        size += masks >> f & 1
    least = np.full(1 << n, np.inf)
    least[0] = 0.0
    last: Int64Array = np.zeros(1 << n, np.int64)
    for layer in range(1, n + 1):
        of_layer = masks[size == layer]
        for f in range(n):
            ending = of_layer[of_layer >> f & 1 == 1]
            before = ending ^ (1 << f)
            cost = least[before] + times[f] * passing[before]
            better = cost < least[ending]
            least[ending[better]] = cost[better]
            last[ending[better]] = f
    order: list[int] = []
    remaining = (1 << n) - 1
    while remaining:
        order.append(int(last[remaining]))
        remaining ^= 1 << order[-1]
    return tuple(reversed(order))


def _passing(histogram: Float64Array) -> Float64Array:
    """Of tuples counted by the set of filters that drop them: how many pass each set of filters, both (2^n,)."""
    n = len(histogram).bit_length() - 1
    below = histogram.copy()
    for f in range(n):
        pairs = below.reshape(-1, 2, 1 << f)
        pairs[:, 1] += pairs[:, 0]
    # A tuple passes a set of filters when those that drop it are among the others.
    return below[::-1].copy()
