"""LocalSwaps: two neighbours change places while the second drops more per time than the first.

Invariant: on the tuples of the profile window, as far as their bits are known, the order satisfies the LocalSwaps
Invariant up to alpha (definition 4.6.1), once the window says something. A swap needs bits of older tuples that nobody
evaluated; they count as passes, which makes a filter look worse than it is until newer tuples have taken their place,
so that further swaps may wait but none is made in error. The order can be stuck at O(n) times the best one (example
4.6.1). Babu 2005, section 4.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from minidsms.elements import BoolArray
from minidsms.kernels.filter_ordering import observe_neighbours, recount_neighbours
from minidsms.streamon.contracts import Evaluate, Float64Array, Order, OrderStatistics, Wanted
from minidsms.streamon.filter_ordering.matrix_view import MatrixView
from minidsms.streamon.filter_ordering.profile_window import ProfileWindow, as_profile, checked_order


class LocalSwaps:
    """See `OrderingAlgorithm`. Of the matrix view two diagonals are kept (figure 4.9 (c))."""

    default_rate: ClassVar[float] = 0.01
    default_window: ClassVar[int] = 1000
    default_alpha: ClassVar[float] = 0.9

    def __init__(
        self,
        n: int,
        order: Sequence[int] | None = None,
        window: int | None = None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        self.window = ProfileWindow(n, window or self.default_window)
        self.view = MatrixView(checked_order(n, order))
        self.alpha = self.default_alpha if alpha is None else alpha

    @property
    def order(self) -> Order:
        """The order that no swap of neighbours improves."""
        return tuple(self.view.order.tolist())

    def wanted(self) -> Wanted:
        """One filter more: the one behind the filter that dropped the tuple."""
        return Wanted(Evaluate.NEXT)

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """See `OrderingAlgorithm`.  O(n) per profile tuple, and a scan of the window per swap."""
        before = self.order
        view = self.view
        observe_neighbours(
            *as_profile(drops, costs),
            *self.window.arrays,
            view.order,
            view.counts,
            self.alpha,
            self.window.enough,
            self.window.slots,
        )
        return None if self.order == before else self.order

    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`."""
        self.view.order[:] = checked_order(len(self.view.order), order)
        recount_neighbours(self.window.bits, self.window.size, self.view.order, self.view.counts)

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """See `OrderingAlgorithm`. An estimate: bits that nobody evaluated count as passes, as for the invariant."""
        return self.window.expected_cost(order)

    def describe(self) -> OrderStatistics:
        """See `OrderingAlgorithm`."""
        return self.window.statistics(self.order)
