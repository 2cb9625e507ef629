"""A-Greedy: the filter with the highest drop rate per time first, then the one with the highest on what is left, ..

Invariant: on the tuples of the profile window the order satisfies the Greedy Invariant up to alpha (definition 4.3.1,
equation 4.4), once the window says something; its cost is then at most 4 / alpha times that of the best order
(theorem 4.3.1). A violation is found by the profile tuple that makes it, and mended from the window at once.
Babu 2005, section 4.3, figures 4.5 to 4.7.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.kernels.filter_ordering import observe_all
from minidsms.streamon.contracts import Evaluate, Wanted
from minidsms.streamon.filter_ordering.matrix_view_ordering import MatrixViewOrdering
from minidsms.streamon.filter_ordering.profile_window import checked_order


class AGreedy(MatrixViewOrdering):
    """See `OrderingAlgorithm`."""

    kernel = staticmethod(observe_all)
    """O(n^2) per profile tuple, and a scan of the window per position corrected."""

    def wanted(self) -> Wanted:
        """Every filter: any of them may be the next best at any position."""
        return Wanted(Evaluate.ALL)

    def adopt(self, order: Sequence[int]) -> None:
        self.view.adopt(checked_order(len(self.view.order), order), self.window.bits[: self.window.size])
