"""The pipelines that the rows of a join's inputs take, where they take different ones by what they say.

A row is looked at when it comes, with the others of its part; its element takes the same pipeline when the row leaves.
Rows of an input whose rows leave in any order are not told apart.

Invariant: of every slot that holds a row or waits, the pipeline that stands here is one of the row's input; which one
changes no answer.  Content-Based Routing, section 4.2; docs/adaptivity.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes, UInt8Array
from minidsms.expressions.routes import Routes
from minidsms.joins.plan import JoinRoutes
from minidsms.kernels.join_routes import Routes as Bundle
from minidsms.synopses.indexed_window import IndexedWindow
from minidsms.synopses.window_index import WindowIndex

MOST_PIPELINES = 256
"""Of all inputs and routes: their numbers are bytes."""


class RowRoutes:
    """attributes: by input, of the columns its window keeps; empty where nothing is told apart.

    bundle: as the kernels take it.
    """

    def __init__(self, index: WindowIndex) -> None:
        self.attributes: Sequence[Attributes] = ()
        self._index = index
        self._routes: dict[int, tuple[Routes, UInt8Array]] = {}
        self._known: dict[int, int] = {}
        self.follow(())

    def follow(self, routes: JoinRoutes) -> None:
        """Take these from now on. Their orders are the pipelines from n on, in the order given."""
        n = len(self._index.windows)
        self._routes.clear()
        for i, each in routes:
            table = np.frombuffer(each.table, np.uint8) + np.uint8(n)
            self._routes[i] = each, table
            n += len(each.orders)
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of any row."""
        begins = np.full(len(self._index.windows), -1, np.int64)
        size = 0
        for i in self._routes:
            begins[i] = size
            size += self._capacity(i)
        self._index.pipelines = np.zeros(size, np.uint8)
        self.bundle = Bundle(self._index.pipelines, begins)
        self._sizes = {i: self._capacity(i) for i in self._routes}
        self._known = {i: self._index.records[i].lo for i in self._routes}

    def look(self) -> None:
        """Rows have come, which wait to be joined."""
        if not self._routes:
            return
        if any(self._capacity(i) != size for i, size in self._sizes.items()):
            self._begin()
        for i, (routes, table) in self._routes.items():
            end, capacity = self._end(i), self._capacity(i)
            slots = np.arange(max(min(self._known[i], end), end - capacity), end, dtype=np.int64)
            self._known[i] = end
            if not len(slots):
                continue
            places = self.bundle.begins[i] + (slots & (capacity - 1))
            is_divided = len(slots) >= routes.least
            self.bundle.pipelines[places] = table[self._cells(i, routes, slots)] if is_divided else i

    def _capacity(self, i: int) -> int:
        return self._index.records[i].mask + 1

    def _end(self, i: int) -> int:
        """Behind the last slot with a row that waits."""
        line = self._index.records[i]
        if self._index.has_ranges:
            return line.stop
        return int(line.hi + self._index.runs["insertions"][line.run : line.runs_end].sum())

    def _cells(self, i: int, routes: Routes, slots: Int64Array) -> Int64Array:
        """Of the rows in these slots."""
        window, attributes = self._index.windows[i], self.attributes[i]
        assert isinstance(window, IndexedWindow)
        cells: Int64Array = np.zeros(len(slots), np.int64)
        for classifier in routes.classifiers:
            (column,) = window.gather([window.kept[classifier.column]], slots)
            buckets = attributes.buckets(classifier, *attributes.words_of(classifier.column, column))
            cells = cells * classifier.buckets + buckets
        return cells
