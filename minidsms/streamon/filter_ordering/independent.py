"""Independent: the filter with the highest unconditional drop rate per time first.

Invariant: on the tuples of the profile window the order satisfies the Independent Invariant up to alpha (definition
4.5.1), once the window says something. Filters that drop the same tuples are not found out: the order can cost O(n)
times the best one (example 4.5.1). Babu 2005, section 4.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from minidsms.kernels.filter_ordering import observe_unconditional
from minidsms.streamon.contracts import Evaluate, Wanted
from minidsms.streamon.filter_ordering.matrix_view_ordering import MatrixViewOrdering
from minidsms.streamon.filter_ordering.profile_window import checked_order


class Independent(MatrixViewOrdering):
    """See `OrderingAlgorithm`. Of the matrix view the first row only is kept (figure 4.9 (b))."""

    default_rate: ClassVar[float] = 0.005

    kernel = staticmethod(observe_unconditional)
    """O(n) per profile tuple."""

    def wanted(self) -> Wanted:
        """Every filter: a drop rate is unconditional only if the others have no say in what is evaluated."""
        return Wanted(Evaluate.ALL)

    def adopt(self, order: Sequence[int]) -> None:
        self.view.order[:] = checked_order(len(self.view.order), order)
        self.view.counts[0] = self.window.bits[: self.window.size][:, self.view.order].sum(axis=0)
