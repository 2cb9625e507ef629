"""XJoin: the n-way join that can keep results of inner joins, by a tree that can be changed while it runs.

With the flat tree it is the MJoin, whose windows it has; every other inner node of its tree is a subresult over these
windows. So taking another tree means filling subresults from the windows, and the answer does not depend on the tree.
Trees of two-way joins are the XJoins of the thesis, others its trees of MJoins. Babu 2005, section 5.3.

Invariant: between slices every subresult of the tree holds the tuples of the rows present at `progress`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import Batch, Int64Array
from minidsms.joins.tree import Tree, flat, is_legal, leaves, tree_text
from minidsms.joins.tree_pipelines import TreePipelines
from minidsms.kernels.join_layout import (
    DEPTH,
    DONE,
    FIRST,
    INPUT,
    IS_BAG,
    LO,
    MISSING,
    NEEDED,
    OLD_LO,
    PHASE,
    PROBE_HI,
    PROBE_LO,
    SLOT,
    STATUS,
)
from minidsms.kernels.tree_join import CROWDED, FILL, FILLED, TREE_STATE_WORDS, tree_join
from minidsms.operators.mjoin import MJoin
from minidsms.operators.operator import Description
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_windows import IndexedWindow
from minidsms.synopses.subresults import Subresult, Subresults

if TYPE_CHECKING:
    from minidsms.streamon.join_trees.adaptive_trees import AdaptiveTrees

_ALL = 2**62


class XJoin(MJoin):
    """As MJoin, and: tree, the one that runs."""

    name = "XJoin"
    planting: AdaptiveTrees | None = None
    """What adapts the tree; set by the planner."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        n = self.graph.n
        state = np.zeros(TREE_STATE_WORDS, np.int64)
        state[: len(self._state)] = self._state
        state[FILLED] = -1
        self._state = state
        self._climbs: Int64Array = np.zeros((3, n), np.int64)
        self._stops: Int64Array = np.zeros(n, np.int64)
        self._pipelines: TreePipelines | None = None
        self._subresults: Subresults | None = None
        self._renumberings = 0
        self.tree: Tree = flat(n)

    @property
    def uses_orders(self) -> bool:
        """The orders are those of the flat tree."""
        return self._subresults is None

    def is_legal_tree(self, tree: object) -> bool:
        """`take_tree` takes it."""
        return is_legal(tree, self.graph)

    def take_tree(self, tree: Tree) -> None:
        """Join by this tree, a legal one, from the next slice on. O(rows + tuples of its subresults)."""
        assert self.is_legal_tree(tree), f"{tree} is no tree in normal form of linked inputs"
        if tree == self.tree:
            return
        self.tree = tree
        self._pipelines = self._subresults = None
        if tree != flat(self.graph.n):
            bags = [i for i, window in enumerate(self._index.windows) if window.is_bag]
            self._pipelines = TreePipelines(self.graph, tree, bags)
            self._begin_subresults()

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """As `MJoin.process`."""
        yield from super().process(batches, until)
        if self._subresults is not None:
            self._subresults.settle(sum(len(batch) for batch in batches if batch is not None))

    def _join(self, batches: Sequence[Batch | None]) -> Iterator[Batch]:
        if self._subresults is None:
            yield from super()._join(batches)
        else:
            self._index.admit(batches)
            if self._index.renumberings != self._renumberings:
                self._begin_subresults()
            self._subresults.follow_bags()
            yield from self._climb()

    def _join_entering(self, batches: Sequence[Batch | None]) -> Iterator[Batch]:
        if self._subresults is None:
            yield from super()._join_entering(batches)
        else:
            self._index.arrive(batches)
            yield from self._climb()

    def _climb(self) -> Iterator[Batch]:
        """Join what waits in the index, by the tree."""
        state, subresults = self._state, self._subresults
        assert subresults is not None
        found, status = 0, -1
        while status != DONE:
            found = self._run_kernel(found)
            status = int(state[STATUS])
            assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
            if status == CROWDED:
                subresults.make_room(int(state[NEEDED]))
                continue
            complete = int(state[FIRST]) if status != DONE and self.leaves_out else found
            if complete:
                yield self._output(complete)
            found = self._keep(complete, found) if status != DONE else 0

    def _run_kernel(self, found: int) -> int:
        index, pipelines, of = self._index, self._pipelines, self._subresults
        assert pipelines is not None and of is not None
        return int(
            tree_join(
                index.runs, index.instants, index.inputs, self._stops, index.keys, pipelines.steps, pipelines.lengths,
                pipelines.checks, index.nodes, index.heads, index.places, index.backs, index.marks, self._stamps,
                of.views, of.view_keys, of.members, of.cells, of.heads, of.births, self._climbs, self._state,
                self.leaves_out, self.ranges is not None, *self._buffers, found,
            )
        )  # fmt: skip

    def _begin_subresults(self) -> None:
        """Make the subresults of the tree, from the rows that are there."""
        assert self._pipelines is not None
        self._subresults = Subresults(self._index, self._pipelines.members, self._pipelines.keys)
        self._renumberings = self._index.renumberings
        for v in range(len(self._pipelines.nodes)):
            self._fill(v)

    def _fill(self, v: int) -> None:
        """Fill subresult v, which is empty, from the windows and the subresults below it."""
        pipelines, subresults, state, inputs = self._pipelines, self._subresults, self._state, self._index.inputs
        assert pipelines is not None and subresults is not None
        inputs[:, OLD_LO] = inputs[:, LO]
        inputs[:, PROBE_LO] = np.where(inputs[:, IS_BAG], 0, inputs[:, LO])
        inputs[:, PROBE_HI] = _ALL
        i = min(leaves(pipelines.nodes[v]), key=lambda j: len(self._index.windows[j]))
        begin = 0 if inputs[i, IS_BAG] else int(inputs[i, LO])
        state[PHASE], state[INPUT], state[SLOT], state[DEPTH], state[FILLED] = FILL, i, begin - 1, -1, v
        self._run_kernel(0)
        while state[STATUS] == CROWDED:
            subresults.make_room(v)
            self._run_kernel(0)
        state[FILLED] = -1

    def describe(self) -> Description:
        """As `MJoin.describe`, and the tree with the tuples its subresults hold."""
        told = super().describe()
        pipelines, subresults = self._pipelines, self._subresults
        if pipelines is None or subresults is None:
            return Description("MJoin", told.detail, told.figures, told.parts)
        parts = [
            f"{tree_text(node, self.names)}: {len(part):,} tuples, {part.nbytes:,} bytes"
            for node, part in zip(pipelines.nodes, subresults.parts)
        ]
        parts += [] if self.planting is None else self.planting.describe()
        figures = {**told.figures, "bytes": told.figures["bytes"] + subresults.nbytes}
        return Description(self.name, f"{tree_text(self.tree, self.names)} on {told.detail}", figures, tuple(parts))

    def synopses(self) -> tuple[IndexedWindow | BagWindow | Subresult, ...]:  # type: ignore[override]
        """The inputs' rows, and the subresults."""
        return (*super().synopses(), *(() if self._subresults is None else self._subresults.parts))
