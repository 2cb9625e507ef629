"""AutoJoin: the n-way join that may run as an MJoin, with caches in its pipelines, or by a tree of joins.

All of these stand on the same windows, so that one takes over from another between two slices: caches begin empty,
subresults are filled from the windows. What the plan should be decide its adaptations (`streamon.caching`,
`streamon.join_trees`); the answer does not depend on it. Babu 2005, sections 5.3 to 5.7 and 5.8.4.

Invariant: a join that keeps subresults has no caches: its elements do not take the pipelines that these stand in.
"""

from __future__ import annotations

from minidsms.joins.plan import JoinPlan
from minidsms.joins.tree import Tree, flat
from minidsms.operators.cached_mjoin import CachedMJoin
from minidsms.operators.xjoin import XJoin
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_windows import IndexedWindow
from minidsms.synopses.join_caches import JoinCaches
from minidsms.synopses.subresults import Subresult


class AutoJoin(CachedMJoin, XJoin):
    """As CachedMJoin and as XJoin, one at a time."""

    def take_tree(self, tree: Tree) -> None:
        """As `XJoin.take_tree`; caches go where subresults come."""
        if self.plan.caches and tree != self.tree:
            super().switch(JoinPlan(self.orders))
        super().take_tree(tree)

    def switch(self, plan: JoinPlan) -> None:
        """As `CachedMJoin.switch`; subresults go where caches come."""
        if plan.caches and not self.uses_orders:
            super().take_tree(flat(self.graph.n))
        super().switch(plan)

    def synopses(self) -> tuple[IndexedWindow | BagWindow | JoinCaches | Subresult, ...]:  # type: ignore[override]
        """The inputs' rows, subresults, and the caches."""
        return super().synopses()
