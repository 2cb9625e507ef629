"""What the algorithms have in common that order filters by the matrix view, or by part of it.

Invariant: `view.counts` holds, of the entries that the algorithm keeps, what the profile window says of `view.order`.
A-Greedy keeps all of it (Babu 2005, section 4.3.2), Sweep, Independent and LocalSwaps less (figure 4.9).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.kernels.filter_ordering import View
from minidsms.streamon.contracts import Float64Array, OrderStatistics, Wanted
from minidsms.streamon.filter_ordering.matrix_view import MatrixView
from minidsms.streamon.filter_ordering.profile_window import ProfileWindow, as_profile, checked_order


class MatrixViewOrdering(abc.ABC):
    """See `OrderingAlgorithm`; what is left to the algorithm are `wanted`, `adopt`, and `observe` or the kernel that
    takes profile tuples in.

    The defaults are those of table 4.1, for A-Greedy.
    """

    kernel: ClassVar[Callable[..., Any]]
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
        return tuple(self.view.order.tolist())

    @abc.abstractmethod
    def wanted(self) -> Wanted:
        """See `OrderingAlgorithm`."""

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        before = self.order
        view = View(self.view.order, self.view.counts)
        self.kernel(*as_profile(drops, costs), self.window.bundle, view, self.alpha, self.window.enough)
        return None if self.order == before else self.order

    @abc.abstractmethod
    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`."""

    def keep_last(self, profiled: int) -> None:
        self.window.keep_last(profiled)
        self.adopt(self.order)

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """See `OrderingAlgorithm`. The window may know more than the algorithm uses."""
        return self.window.expected_cost(order)

    def describe(self) -> OrderStatistics:
        return self.window.statistics(self.order)
