"""The routes that save most on a sample, if they save anything.

Per way to read an attribute that tells more than chance of some filter: the greedy order of each bucket (A-Greedy
within the class, so that filters need not be independent there), then of the different orders the few that save most
together. What that saves is judged by tuples the orders were not made from: each half of the sample judges what the
other says, and both must agree. The best classifier may take a second one, where the pair saves still more.

Routing pays where the filters saved cost more than dividing does.  Content-Based Routing, sections 4.1 and 4.3; Babu
2005, section 4.3.2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.expressions.classifiers import Classifier
from minidsms.expressions.routes import MOST_ORDERS, Order, Routes, prefixed
from minidsms.streamon.content_routing.costs import Dividing
from minidsms.streamon.content_routing.gain_ratio import sure_gains
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.contracts import Float64Array
from minidsms.streamon.filter_ordering.profile_window import cost_of

LEAST_IN_CELL = 8
"""Tuples of a bucket that tell of an order."""
SCREENED = 1024
"""Tuples by which attributes are told from those that say nothing."""
PROMISING = 3.0
"""A classifier never tells all, and looking for it costs some ms."""
MOST_CANDIDATES = 24
"""Orders that are compared, of those that most tuples ask for."""
OWN_PLACES = (1, 2)
"""Of an order, that differ between classes, where all other places are those of the usual order."""
CHANCE = 0.02
"""Of the cost of a sample, what more places of its own save it by chance: orders are made from it.
"""
MOST_JUDGED = 4
"""Classifiers, of those that tell most, ..."""
LEAST_TELLING = 0.1
"""... if they tell so much of what the best one does."""
LEAST_SAVED = 0.03
"""Of what the usual order costs, what each half of the sample must save."""


@dataclass(frozen=True)
class Choice:
    """Routes with what a tuple costs under them, dividing included, and under the usual order."""

    routes: Routes
    cost: float
    usual_cost: float


def best_routes(
    sample: Sample, usual: Order, costs: Float64Array, dividing: Dividing, buckets: int, rows: float
) -> Choice | None:
    """The routes that cost least, or None where none costs less than the usual order. rows: of a chunk."""
    halves = sample.drops[0::2].copy(), sample.drops[1::2].copy()
    costs = np.ascontiguousarray(costs)
    usual_costs = [_cost(half, costs, usual) for half in halves]
    cheapest = float(costs.min())
    if min(usual_costs) - cheapest <= max(dividing.of_tuple(1), LEAST_SAVED * min(usual_costs)):
        return None
    judge = Judge(halves, usual, costs, usual_costs, dividing, rows)
    found: list[tuple[float, Classifier, UInt8Array]] = []
    for classifier in _telling_most(sample, costs, buckets):
        cells = sample.buckets(classifier)
        found.append((judge.saved(cells.astype(np.int64), classifier.buckets, 1), classifier, cells))
    if not found:
        return None
    best = max(found, key=lambda each: each[0])
    chosen: tuple[Classifier, ...] = (best[1],)
    saved, classes = best[0], best[2].astype(np.int64)
    for alone, classifier, others in found:
        if alone > 0 and classifier.column != best[1].column:
            pairs: Int64Array = best[2].astype(np.int64) * classifier.buckets + others
            together = judge.saved(pairs, best[1].buckets * classifier.buckets, 2)
            if together > saved + LEAST_SAVED * min(usual_costs):
                chosen, classes, saved = (best[1], classifier), pairs, together
    if saved <= LEAST_SAVED * min(usual_costs):
        return None
    return _whole(sample, chosen, classes, usual, costs, dividing, rows)


def _telling_most(sample: Sample, costs: Float64Array, buckets: int) -> list[Classifier]:
    """Of each attribute its best classifier, those that tell most of the filters, by bits times cost, first."""
    step = max(len(sample) // SCREENED, 1)
    read = (sample.classifier(*each, buckets, step) for each in sample.attributes.readings())
    classifiers = [each for each in read if each is not None]
    cells = [sample.buckets(each, step) for each in classifiers]
    most = max((each.buckets for each in classifiers), default=0)
    worth = sure_gains(sample.drops[::step], cells, most) @ costs
    best: dict[int, Classifier] = {}
    for i in np.argsort(-worth, kind="stable").tolist():
        if worth[i] > LEAST_TELLING * worth.max():
            best.setdefault(classifiers[i].column, classifiers[i])
    return list(best.values())[:MOST_JUDGED]


def _whole(
    sample: Sample,
    chosen: tuple[Classifier, ...],
    cells: Int64Array,
    usual: Order,
    costs: Float64Array,
    dividing: Dividing,
    rows: float,
) -> Choice | None:
    """The routes by these classifiers, made from the whole sample."""
    count = int(np.prod([each.buckets for each in chosen]))
    made = _made(sample.drops, cells, count, usual, costs, dividing, rows)
    usual_cost = _cost(sample.drops, costs, usual)
    cost = _routed_cost(sample.drops, cells, count, costs, made)
    calls = calls_of(len(made.orders), len(usual), made.own)
    divided = cost + dividing.of_tuple(len(chosen)) + dividing.of_calls(calls, rows)
    if divided >= usual_cost or len(made.orders) < 2:
        return None
    least = dividing.least_rows(calls, usual_cost - cost, len(chosen))
    orders = tuple(tuple(o) for o in made.orders.tolist())
    return Choice(Routes(usual, chosen, orders, bytes(made.table.tolist()), least, made.own), divided, usual_cost)


def cost_of_routes(sample: Sample, routes: Routes, costs: Float64Array, dividing: Dividing, rows: float) -> float:
    """What a tuple of the sample costs under routes, dividing included."""
    cells = np.zeros(len(sample), np.int64)
    count = 1
    for classifier in routes.classifiers:
        cells = cells * classifier.buckets + sample.buckets(classifier)
        count *= classifier.buckets
    table = np.frombuffer(routes.table, np.uint8).astype(np.int64)
    made = _Made(np.array(routes.orders, np.int64), table, routes.own)
    cost = _routed_cost(sample.drops, cells, count, np.ascontiguousarray(costs), made)
    calls = dividing.of_calls(calls_of(len(routes.orders), len(routes.order), routes.own), rows)
    return cost + dividing.of_tuple(len(routes.classifiers)) + calls


def could_save(drops: BoolArray, order: Order, costs: Float64Array, dividing: Dividing) -> bool:
    """Even if the filter that drops a tuple always came first, routing would save several times what dividing costs.

    drops: (n, m). Where all filters together cost too little, nobody looks at them.
    """
    costs = np.where(np.isfinite(costs), costs, 0.0)
    least = PROMISING * dividing.of_tuple(1) if dividing.measures_time else dividing.of_tuple(1)
    if costs.sum() - costs.min() <= least:
        return False
    return bool(_cost(drops, costs, order) - costs.min() > least)


def cost_of_order(sample: Sample, order: Order, costs: Float64Array) -> float:
    """What a tuple of the sample costs under one order."""
    return _cost(sample.drops, costs, order)


@dataclass(frozen=True)
class Judge:
    """Lets each half of a sample judge the routes that the other half asks for."""

    halves: tuple[UInt8Array, UInt8Array]
    usual: Order
    costs: Float64Array
    usual_costs: list[float]
    dividing: Dividing
    rows: float

    def saved(self, cells: Int64Array, count: int, classifiers: int) -> float:
        """Per tuple, in the worse of the two halves, when both cost what they do."""
        parted = np.ascontiguousarray(cells[0::2]), np.ascontiguousarray(cells[1::2])
        least = np.inf
        for made, judged in ((0, 1), (1, 0)):
            routes = _made(self.halves[made], parted[made], count, self.usual, self.costs, self.dividing, self.rows)
            cost = _routed_cost(self.halves[judged], parted[judged], count, self.costs, routes)
            calls = calls_of(len(routes.orders), len(self.usual), routes.own)
            dividing = self.dividing.of_tuple(classifiers) + self.dividing.of_calls(calls, self.rows)
            least = min(least, self.usual_costs[judged] - cost - dividing)
        return float(least)


@dataclass(frozen=True)
class _Made:
    """orders: (k, n).  table: (cells,), which of them.  own: see `Routes`."""

    orders: Int64Array
    table: Int64Array
    own: int | None


def calls_of(orders: int, filters: int, own: int | None) -> int:
    """Of filters, for a chunk; putting parts together for a filter and taking them apart again costs as one more."""
    return orders * filters if own is None else orders * own + filters


def _made(
    drops: UInt8Array,
    cells: Int64Array,
    count: int,
    usual: Order,
    costs: Float64Array,
    dividing: Dividing,
    rows: float,
) -> _Made:
    """The first places of the cells' greedy orders before the usual order of the others, or the whole of these orders,
    whatever costs least; an order stays if it saves its own calls.
    """
    from minidsms.kernels.content_routing import costs_by_cell, greedy_orders

    m, n = drops.shape
    tuples = np.bincount(cells, minlength=count)
    known = tuples >= LEAST_IN_CELL
    wanted = np.empty((count, n), np.int64)
    usual_order = np.array(usual, np.int64)
    greedy_orders(drops, cells, known, costs, usual_order, np.ones(m, np.bool_), np.empty((count, n), np.int64), wanted)
    asked: Counter[Order] = Counter()
    for cell in np.flatnonzero(known).tolist():
        asked[tuple(wanted[cell].tolist())] += int(tuples[cell])

    def made(own: int | None) -> tuple[float, _Made]:
        first: Counter[Order] = Counter()
        for order, count_of in asked.items():
            first[prefixed(usual, order[:own])] += count_of
        often = {usual, *(order for order, _ in first.most_common(MOST_CANDIDATES))}
        candidates = np.array(sorted(often), np.int64)
        by_cell = np.zeros((len(candidates), count))
        costs_by_cell(drops, cells, costs, candidates, by_cell)
        of_part = dividing.of_calls(n if own is None else own, rows) if dividing.calls_by_part else 0.0
        orders, table = few_orders(candidates, by_cell, usual_order, of_part * m)
        found = _Made(orders, table, own)
        return _routed_cost(drops, cells, count, costs, found) + dividing.of_calls(
            calls_of(len(orders), n, own), rows
        ), found

    cost, best = made(None)
    for own in OWN_PLACES if dividing.calls_by_part else ():
        if own < n - 1:
            alike, found = made(own)
            if (1 - CHANCE) * alike <= cost:
                return found
    return best


def few_orders(
    candidates: Int64Array, by_cell: Float64Array, usual: Int64Array, of_part: float
) -> tuple[Int64Array, Int64Array]:
    """(orders (k, n), table (count,)): of the candidates those that save most together, one after the other.

    candidates: (c, n), the usual order among them.  by_cell: (c, count), what a cell costs under each.  of_part: what
    an order more has to save.
    """
    taken = [int(np.flatnonzero((candidates == usual).all(axis=1))[0])]
    least = by_cell[taken[0]]
    while len(taken) < min(MOST_ORDERS, len(candidates)):
        together = np.minimum(least, by_cell).sum(axis=1)
        best = int(together.argmin())
        if least.sum() - together[best] <= max(of_part, 0.002 * least.sum()):
            break
        taken.append(best)
        least = np.minimum(least, by_cell[best])
    table = by_cell[taken].argmin(axis=0)
    # The usual order need not be anybody's.
    used, places = np.unique(table, return_inverse=True)
    return np.ascontiguousarray(candidates[[taken[i] for i in used.tolist()]]), places.reshape(-1)


def _routed_cost(drops: UInt8Array, cells: Int64Array, count: int, costs: Float64Array, made: _Made) -> float:
    """Per tuple, without dividing."""
    from minidsms.kernels.content_routing import costs_by_cell

    by_cell = np.zeros((len(made.orders), count))
    costs_by_cell(drops, cells, costs, made.orders, by_cell)
    return float(by_cell[made.table, np.arange(count)].sum()) / max(len(drops), 1)


def _cost(drops: BoolArray | UInt8Array, costs: Float64Array, order: Order) -> float:
    """Per tuple, in one order."""
    return cost_of(drops, costs, order) or 0.0
