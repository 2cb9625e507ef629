"""Joining by a tree: results of inner joins are kept, as subresults over the windows.

Every inner node of the tree but its root is a subresult. So taking another tree means filling subresults from the
windows, and what is found does not depend on the tree. Trees of two-way joins are the XJoins of the thesis, others its
trees of MJoins. Babu 2005, section 5.3.

Invariant: between slices every subresult of the tree holds the tuples of the rows present at `progress`.
"""

from __future__ import annotations

from collections.abc import Iterator

from minidsms.joins.answer import Answer
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Tree
from minidsms.joins.tree import leaves
from minidsms.joins.tree_pipelines import TreePipelines
from minidsms.kernels.join_layout import CROWDED, DONE, FILL, NO_LIMIT, START
from minidsms.kernels.mjoin import tree_join
from minidsms.synopses.subresults import Subresults
from minidsms.synopses.window_index import WindowIndex


class ByTree:
    """Made with its subresults filled from the rows that are there.  O(rows + tuples of the subresults)."""

    def __init__(self, tree: Tree, graph: JoinGraph, index: WindowIndex, answer: Answer) -> None:
        bags = [i for i, window in enumerate(index.windows) if window.is_bag]
        self.pipelines = TreePipelines(graph, tree, bags)
        self._index = index
        self._answer = answer
        self._begin()

    def run(self) -> Iterator[int]:
        """Join what waits in the index; see `Answer.fill`."""
        if self._index.renumberings != self._renumberings:
            self._begin()
        if not self._answer.of_streams:
            self.subresults.follow_bags()
        yield from self._answer.fill(self._climb, self._more_room)

    def settle(self, elements: int) -> None:
        """A slice of so many elements has been joined."""
        self.subresults.settle(elements)

    def _more_room(self) -> None:
        self._answer.claim(self.subresults.nbytes)  # it doubles what one of them has, at most
        self.subresults.make_room(self._answer.state.needed)

    def _climb(self, found: int) -> int:
        answer, plan, kept = self._answer, self.pipelines.bundle, self.subresults.bundle
        return tree_join(self._index.bundle, plan, answer.run, kept, answer.output, found)

    def _begin(self) -> None:
        """Make the subresults of the tree, from the rows that are there."""
        self.subresults = Subresults(self._index, self.pipelines.members, self.pipelines.keys)
        self._renumberings = self._index.renumberings
        for v in range(len(self.pipelines.nodes)):
            self._fill(v)

    def _fill(self, v: int) -> None:
        """Fill subresult v, which is empty, from the windows and the subresults below it. What is claimed may raise."""
        state, inputs = self._answer.state, self._index.inputs
        inputs["old_lo"] = inputs["lo"]
        inputs["probe_lo"] = [window.lowest for window in self._index.windows]
        inputs["probe_hi"] = NO_LIMIT
        i = min(leaves(self.pipelines.nodes[v]), key=lambda j: len(self._index.windows[j]))
        begin = self._index.windows[i].lowest
        state.phase, state.input, state.slot, state.depth, state.filled = FILL, i, begin - 1, -1, v
        try:
            self._climb(0)
            while state.status != DONE:
                if state.status == CROWDED:
                    self._answer.claim(2 * self.subresults.nbytes)  # nobody counts what it has as yet
                    self.subresults.make_room(v)
                else:
                    self._answer.claim(0)
                self._climb(0)
        finally:
            state.phase, state.depth, state.filled, state.is_chosen = START, -1, -1, 0
