"""Independent: the filter with the highest unconditional drop rate per time first.

Invariant: on the tuples of the profile window the order satisfies the Independent Invariant up to alpha (definition
4.5.1), once the window says something. Filters that drop the same tuples are not found out: the order can cost O(n)
times the best one (example 4.5.1). Babu 2005, section 4.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from minidsms.elements import BoolArray
from minidsms.kernels.filter_ordering import observe_unconditional
from minidsms.streamon.contracts import Evaluate, Float64Array, Order, OrderStatistics, Wanted
from minidsms.streamon.filter_ordering.matrix_view import MatrixView
from minidsms.streamon.filter_ordering.profile_window import ProfileWindow, as_profile, checked_order


class Independent:
    """See `OrderingAlgorithm`. Of the matrix view the first row only is kept (figure 4.9 (b))."""

    default_rate: ClassVar[float] = 0.005
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
        """The filters by unconditional drop rate per time."""
        return tuple(self.view.order.tolist())

    def wanted(self) -> Wanted:
        """Every filter: a drop rate is unconditional only if the others have no say in what is evaluated."""
        return Wanted(Evaluate.ALL)

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """See `OrderingAlgorithm`.  O(n) per profile tuple."""
        before = self.order
        view = self.view
        observe_unconditional(
            *as_profile(drops, costs), *self.window.arrays, view.order, view.counts, self.alpha, self.window.enough
        )
        return None if self.order == before else self.order

    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`."""
        self.view.order[:] = checked_order(len(self.view.order), order)
        self.view.counts[0] = self.window.bits[: self.window.size][:, self.view.order].sum(axis=0)

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """See `OrderingAlgorithm`. The window knows more than this algorithm uses."""
        return self.window.expected_cost(order)

    def describe(self) -> OrderStatistics:
        """See `OrderingAlgorithm`."""
        return self.window.statistics(self.order)
