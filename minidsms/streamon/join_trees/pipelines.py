"""What the pipelines of a join are, and may be: over which index, with which caches, in which orders.

Orders, trees, caches and the index of a join are weighed by one model, `TreeCosts`, from one set of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidsms.joins.join import Join
from minidsms.joins.tree import MOST_SEARCHED
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.streamon.join_trees.costs import ALIKE, ENTERING, MEASURED, TreeCosts
from minidsms.streamon.join_trees.profiler import JoinTreeProfiler

FRESH = 1_024
"""Elements for which samples of the windows are good, whoever took them."""

if TYPE_CHECKING:
    from minidsms.streamon.caching.adaptive_caches import AdaptiveCaches
    from minidsms.streamon.join_index.adaptive_index import AdaptiveIndex


class JoinPipelines:
    """caching, index: of the join, where it has any.  unit: what steps cost.  on_return: asked, with
    the instant, when a tree has gone.  profiler: of the windows, for orders and trees alike.
    """

    def __init__(
        self, join: Join, measures_time: bool, caching: AdaptiveCaches | None = None, index: AdaptiveIndex | None = None
    ) -> None:
        self.unit = ALIKE if not measures_time else ENTERING if join.ranges is not None else MEASURED
        self.on_return: list[Callable[[int], None]] = []
        self.profiler = JoinTreeProfiler(join.graph, join.index, join.names)
        self._noted = np.zeros(join.graph.n, np.int64)
        self._measured_at: int | None = None
        self._join = join
        self._caching = caching
        self._index = index

    @property
    def saved_by_caches(self) -> float:
        """By the best caches, a share of what the pipelines cost."""
        return 0.0 if self._caching is None else self._caching.saving

    @property
    def has_caches(self) -> bool:
        """Caches are in use."""
        return bool(self._join.plan.caches)

    @property
    def is_indexed(self) -> bool:
        """Steps that compare columns with several inputs go by patterns, or bits."""
        return bool(self._join.plan.index)

    @property
    def may_be_indexed(self) -> bool:
        """They do, or would where that is thought to save."""
        return self.is_indexed or (self._index is not None and self._index.promises)

    def return_to(self, instant: int) -> None:
        """A tree has gone: let the pipelines be what pays at once."""
        for adapt in self.on_return:
            adapt(instant)

    # ------------------------------------------------------------------------------------------------------ orders

    @property
    def are_modelled(self) -> bool:
        """Some steps compare several inputs: what they cost depends on the index, and on all inputs visited before."""
        graph = self._join.graph
        return graph.has_patterns and graph.is_connected and not graph.bands and graph.n <= MOST_SEARCHED

    @property
    def is_measured(self) -> bool:
        """Something is known of the windows."""
        return bool(self.profiler.sizes.tuples)

    def forget(self, arrived: Sequence[int]) -> None:
        """Conditions have changed: what was before tells nothing now. arrived: elements of each input so far."""
        self._note(arrived)
        self._measured_at = None
        self.profiler.forget()

    def measure(self, arrived: Sequence[int]) -> None:
        """Sample the windows, unless that was done just now. arrived: as of `forget`."""
        if self._measured_at is not None and sum(arrived) < self._measured_at + FRESH:
            return
        self._note(arrived)
        self._measured_at = sum(arrived)
        self.profiler.measure()

    def _note(self, arrived: Sequence[int]) -> None:
        now = np.array(arrived, np.int64)
        self.profiler.note(now - self._noted)
        self._noted = now

    def costs(self, is_present: bool) -> TreeCosts:
        """In the windows as they were measured: of the pipelines as they are, or as they may be."""
        join, index = self._join, self._join.plan.index
        bits = index if any(isinstance(each, Bits) for each in index) else ()
        by_patterns = not bits and (self.is_indexed if is_present else self.may_be_indexed)
        saving = self.saved_by_caches if is_present and self.has_caches else 0.0
        sizes, rates = self.profiler.sizes.of, self.profiler.rates
        return TreeCosts(join.graph, sizes, rates, not join.leaves_out, self.unit, saving, by_patterns, bits)
