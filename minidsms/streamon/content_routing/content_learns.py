"""Content-Learns: the matrices, as published.

    classifiers   CA: of each filter its classifier, None where it has none
    selectivity   S: of each filter, by bucket of its classifier, what it passes
    overall       W: of each filter, what it passes of all tuples

Filters are profiled one at a time, round robin: R tuples take it first, and In and Out of every attribute tell its gain
ratio. A tuple then goes to the filter that passes least of its class. Every tuple counts as s = 0.95 s + 0.05 pass; a
block of m tuples at once as s = a^m s + (1 - a^m) share, which is what the single steps expect.

Invariant: a filter has a classifier only while it is used; it has none while it is profiled.
Content-Based Routing, sections 4.1, 4.2 and 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes, UInt8Array
from minidsms.expressions.classifiers import Classifier
from minidsms.expressions.routes import MOST_CLASSIFIERS, FilterPlan, Order, Routes
from minidsms.streamon.content_routing.choosing import few_orders
from minidsms.streamon.content_routing.gain_ratio import telling
from minidsms.streamon.content_routing.options import RoutingOptions
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.contracts import Float64Array

EXTREME = 0.02
"""A filter that drops, or passes, less than this share keeps its place in all orders: it is not profiled (4.4)."""


class ContentLearns:
    """n: filters.  profiled: the filter whose turn it is.  ratios: by filter, the gain ratio of its classifier."""

    def __init__(self, n: int, attributes: Attributes, options: RoutingOptions) -> None:
        self.classifiers: list[Classifier | None] = [None] * n
        self.selectivity: Float64Array = np.full((n, max(options.buckets, 25)), 0.5)
        self.overall: Float64Array = np.full(n, 0.5)
        self.ratios = [0.0] * n
        self.profiled = 0
        self._options = options
        self.sample = Sample(1, attributes, options.sample)
        """R, of the profiled filter: tuples and whether it drops them."""
        self._into: Int64Array = np.ones(self.selectivity.shape, np.int64)

    def passed(self, filter: int, cells: UInt8Array | None, passes: np.ndarray) -> None:
        """Tuples went through a filter.  cells: (m,), their buckets by its classifier, None without.  passes: (m,)."""
        m = len(passes)
        if not m:
            return
        kept = self._options.memory**m
        self.overall[filter] = kept * self.overall[filter] + (1 - kept) * passes.mean()
        if cells is not None:
            d = self.selectivity.shape[1]
            into, out = (np.bincount(cells, weights, d) for weights in (None, passes))
            share = out / np.maximum(into, 1)
            left = self._options.memory**into
            self.selectivity[filter] = left * self.selectivity[filter] + (1 - left) * share

    def is_profiled(self) -> bool:
        """R tuples have been seen."""
        return len(self.sample) >= self._options.sample

    def classify(self) -> Classifier | None:
        """End the profile of the filter: the attribute with the greatest gain ratio becomes its classifier."""
        sample, number = self.sample, self.profiled
        best: tuple[float, Classifier, UInt8Array] | None = None
        for column, reading in sample.attributes.readings():
            classifier = sample.classifier(column, reading, self._options.buckets)
            if classifier is None:
                continue
            cells = sample.buckets(classifier)
            (told,) = telling(sample.drops, cells, classifier.buckets)
            if told.is_telling(self._options.gain) and (best is None or told.ratio > best[0]):
                best = told.ratio, classifier, cells
        if best is None:
            return None
        self.ratios[number], classifier, cells = best
        d = self.selectivity.shape[1]
        into = np.bincount(cells, minlength=d)
        out = np.bincount(cells, 1.0 - sample.drops[:, 0], d)
        self.selectivity[number] = np.where(into > 0, out / np.maximum(into, 1), self.overall[number])
        self._into[number] = into
        self.classifiers[number] = classifier
        return classifier

    def give_up(self) -> None:
        """The classifier of the profiled filter did not help."""
        self.classifiers[self.profiled] = None

    def next(self) -> None:
        """Profile the next filter whose place may differ between classes; its classifier is not used meanwhile."""
        n = len(self.classifiers)
        for step in range(1, n + 1):
            number = (self.profiled + step) % n
            if EXTREME < self.overall[number] < 1 - EXTREME or step == n:
                self.profiled = number
                break
        self.classifiers[self.profiled] = None
        self.sample.forget()

    def usual_order(self) -> Order:
        """Of tuples that are not told apart: what passes least first."""
        return tuple(np.argsort(self.overall, kind="stable").tolist())

    def plan(self) -> FilterPlan:
        """Routes by the classifiers in use, the most telling two; an order where there are none, or all classes agree.

        Of the orders that the cells ask for, those stay that save most together.
        """
        usual = self.usual_order()
        ranked = sorted(range(len(self.ratios)), key=lambda f: -self.ratios[f])
        used: list[Classifier] = []
        for number in ranked:
            classifier = self.classifiers[number]
            if classifier is not None and classifier not in used and len(used) < MOST_CLASSIFIERS:
                used.append(classifier)
        if not used:
            return usual
        expected, weights = self._expected(used)
        wanted = np.argsort(expected, axis=1, kind="stable")
        usual_array = np.array(usual, np.int64)
        candidates = np.unique(np.vstack((usual_array, wanted)), axis=0)
        by_cell = np.stack([weights * _evaluations(expected, order) for order in candidates])
        orders, table = few_orders(candidates, by_cell, usual_array, 0.0)
        if len(orders) < 2:
            return usual
        return Routes(usual, tuple(used), tuple(tuple(o) for o in orders.tolist()), bytes(table.tolist()))

    def cost(self, plan: FilterPlan) -> float:
        """Filters that a tuple visits under a plan, by the matrices."""
        if not isinstance(plan, Routes):
            return float(_evaluations(self.overall[None, :], np.array(plan))[0])
        expected, weights = self._expected(plan.classifiers)
        by_cell = np.stack([_evaluations(expected, np.array(order)) for order in plan.orders])
        table = np.frombuffer(plan.table, np.uint8)
        return float((weights * by_cell[table, np.arange(len(table))]).sum() / weights.sum())

    def _expected(self, used: Sequence[Classifier]) -> tuple[Float64Array, Float64Array]:
        """(what each filter passes of each cell, (cells, n): S where its classifier is used, else W; the tuples of each
        cell, (cells,), as profiles met them).
        """
        count = int(np.prod([c.buckets for c in used]))
        buckets = np.unravel_index(np.arange(count), [c.buckets for c in used])
        expected = np.tile(self.overall, (count, 1))
        weights: list[Float64Array] = [np.ones(c.buckets) for c in used]
        for number, classifier in enumerate(self.classifiers):
            if classifier is not None and classifier in used:
                place = used.index(classifier)
                expected[:, number] = self.selectivity[number][buckets[place]]
                weights[place] = self._into[number][: classifier.buckets].astype(float)
        together = weights[0]
        for each in weights[1:]:
            together = np.outer(together, each).ravel()
        return expected, together


def _evaluations(expected: Float64Array, order: Int64Array) -> Float64Array:
    """(cells,): filters that a tuple of a cell visits, were they independent there."""
    reaching = np.cumprod(expected[:, order[:-1]], axis=1)
    return np.asarray(1.0 + reaching.sum(axis=1))
