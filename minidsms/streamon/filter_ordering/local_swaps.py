"""LocalSwaps: two neighbours change places while the second drops more per time than the first.

Invariant: on the tuples of the profile window, as far as their bits are known, the order satisfies the LocalSwaps
Invariant up to alpha (definition 4.6.1), once the window says something. A swap needs bits of older tuples that nobody
evaluated; they count as passes, which makes a filter look worse than it is until newer tuples have taken their place,
so that further swaps may wait but none is made in error. The order can be stuck at O(n) times the best one (example
4.6.1). Babu 2005, section 4.6.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.kernels.filter_ordering import observe_neighbours, recount_neighbours
from minidsms.streamon.contracts import Evaluate, Wanted
from minidsms.streamon.filter_ordering.matrix_view_ordering import MatrixViewOrdering
from minidsms.streamon.filter_ordering.profile_window import checked_order


class LocalSwaps(MatrixViewOrdering):
    """See `OrderingAlgorithm`. Of the matrix view two diagonals are kept (figure 4.9 (c))."""

    kernel = staticmethod(observe_neighbours)
    """O(n) per profile tuple, and a scan of the window per swap."""

    def wanted(self) -> Wanted:
        """One filter more: the one behind the filter that dropped the tuple."""
        return Wanted(Evaluate.NEXT)

    def adopt(self, order: Sequence[int]) -> None:
        self.view.order[:] = checked_order(len(self.view.order), order)
        recount_neighbours(self.window.bits, self.window.size, self.view.order, self.view.counts)
