"""Joining by pipelines alone: the program of a join that keeps nothing but its windows.

Each input has a pipeline: the order in which an element of it visits the others, and which key each visit probes
(`joins.graph`). Within an instant all deletions of all inputs come first, then all insertions: so each tuple that
begins or ends at the instant is put out exactly once. Viglas, Naughton and Burger 2003; Babu 2005, sections 2.2.2,
3.2 and 5.2.

Invariant: what is found does not depend on the orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.answer import Answer
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Index, JoinRoutes, Orders
from minidsms.joins.row_routes import RowRoutes
from minidsms.kernels.join_layout import DROP_WORDS, GROUP, GROUP_ROWS, Blocks, Pipelines
from minidsms.kernels.mjoin import entering_mjoin, mjoin
from minidsms.kernels.pair_join import pair_join
from minidsms.synopses.window_index import WindowIndex

_BLOCK = 128
"""Elements of one input that are linked and probed together, at most, where an instant has not more."""


class ByPipelines:
    """bundle: the pipelines that run, as the kernels take them.  rows: which of them rows take."""

    def __init__(self, graph: JoinGraph, index: WindowIndex, answer: Answer) -> None:
        self._graph = graph
        self._index = index
        self._answer = answer
        self._blocks: Blocks | None = None
        answer.state.size = _BLOCK
        self.rows = RowRoutes(index)
        self.orders: Orders = ()
        self.patterns: Index = ()
        self._routes: JoinRoutes = ()
        self._requests: list[Counter[int]] = [Counter() for _ in range(graph.n)]
        self._has_bits = False
        self.reorder(graph.default_orders())

    def reorder(self, orders: Orders, index: Index = (), routes: JoinRoutes = ()) -> None:
        """Let the pipelines visit the inputs in these orders, which are legal, from the next part on, probe these
        patterns, and be divided by these routes.
        """
        problem = f"{orders} take a Cartesian step where an input is linked, or leave one out"
        assert self._graph.is_legal(orders), problem
        self._count_requests()
        self.orders = orders
        if index != self.patterns:
            self._index.link_patterns(index)
            self.patterns = index
        self._routes = routes
        self.rows.follow(routes)
        self.compile()

    def compile(self) -> None:
        """Take note of the configurations under which rows are stored."""
        self._count_requests()
        self._more = [(i, order) for i, each in self._routes for order in each.orders]
        plan = self.orders, self.patterns, self._index.configurations
        self._steps, self.checks = self._graph.pipelines(*plan, self._more)
        lengths = np.full(self._graph.n + len(self._more), self._graph.n - 1, np.int64)
        self.bundle = Pipelines(self._steps, lengths, self.checks)
        self._drops: Int64Array = np.zeros((len(self._steps), DROP_WORDS), np.int64)
        self._blocks = None
        self._has_bits = any(self._index.configurations)

    def requests(self) -> Sequence[Mapping[int, int]]:
        """Of each input that has bits, how often its rows were asked for since the last call, by the columns that the
        request knew (`JoinGraph.known`).
        """
        self._count_requests()
        counted, self._requests = self._requests, [Counter() for _ in self._requests]
        return counted

    def _count_requests(self) -> None:
        """Take what the steps have counted under their orders."""
        if self._has_bits:
            for pipeline, (i, order) in enumerate([*enumerate(self.orders), *self._more]):
                for d, j in enumerate(order):
                    times = self._steps["requests"].item(pipeline * len(order) + d)
                    if times:
                        self._requests[j][self._graph.known((i, *order[:d]), j)] += times
            self._steps["requests"][:] = 0

    def run(self) -> Iterator[int]:
        """Join what waits in the index; see `Answer.fill`."""
        if self._routes:
            self.rows.look()
        answer = self._answer
        if not answer.of_streams or not answer.netted or self._has_bits:
            return answer.fill(self._changes)
        self._drops.fill(0)
        self._take_blocks(_BLOCK)
        return answer.fill(self._entering, lambda: self._take_blocks(answer.state.needed))

    def _changes(self, found: int) -> int:
        """Insertions and deletions, by their runs; rows found by bits also by their instants."""
        answer = self._answer
        windows, pipelines = self._index.bundle, self.bundle
        if self._graph.n == 2 and not answer.netted:
            return pair_join(windows, pipelines, answer.run, answer.output, found)
        return mjoin(windows, pipelines, self.rows.bundle, answer.run, answer.output, found)

    def _entering(self, found: int) -> int:
        """Elements of streams whose rows leave by the join's clock."""
        answer, blocks = self._answer, self._blocks
        assert blocks is not None
        windows = self._index.bundle
        return entering_mjoin(windows, self.bundle, self.rows.bundle, answer.run, blocks, answer.output, found)

    def _take_blocks(self, room: int) -> None:
        """Have blocks with room for so many elements of an input, at least; for larger instants of one part alone."""
        size, n = 1 << (room - 1).bit_length(), self._graph.n
        if self._blocks is None or self._blocks.alive.shape[1] != size:
            firsts = np.empty((n, n - 1, size), np.int64)
            groups = np.empty((n - 1, GROUP_ROWS, GROUP), np.int64)
            self._blocks = Blocks(np.empty((n + 1, size), np.int64), firsts, self._drops, groups)
