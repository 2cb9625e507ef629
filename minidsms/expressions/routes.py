"""The plan of content-based routing: which order of the filters the tuples of each cell take.

A cell is a bucket of the only classifier, or a pair of buckets of two. Several cells may take one order; tuples of all
of them go together.
Invariant: a value, hashable, equal when alike.  Content-Based Routing, sections 3 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.expressions.classifiers import MOST_BUCKETS, Classifier

Order = tuple[int, ...]
"""Of filters, or of pipelines, by their numbers: a permutation."""

MOST_CLASSIFIERS = 2
MOST_ORDERS = 8


@dataclass(frozen=True)
class Routes:
    """order: of chunks of fewer than `least` tuples, which are not divided.  classifiers: one or two.  orders: the
    different ones, at most MOST_ORDERS.  table: by cell, which of them; the cell of two buckets is first * d + second,
    with d the buckets of the second classifier.  own: as many places of each order are its own; filters behind them
    come in the succession of `order`, and are asked about the tuples of all orders at once. None: all places are.
    """

    order: Order
    classifiers: tuple[Classifier, ...]
    orders: tuple[Order, ...]
    table: bytes
    least: int = 1
    own: int | None = None

    @property
    def is_whole(self) -> bool:
        """The parts fit together."""
        cells = 1
        for each in self.classifiers:
            cells *= each.buckets
        return (
            1 <= len(self.classifiers) <= MOST_CLASSIFIERS
            and 1 <= len(self.orders) <= MOST_ORDERS
            and all(2 <= each.buckets <= MOST_BUCKETS for each in self.classifiers)
            and all(len(each.bounds) <= each.buckets - 2 for each in self.classifiers)
            and len(self.table) == cells
            and max(self.table) < len(self.orders)
            and (self.own is None or all(o == prefixed(self.order, o[: self.own]) for o in self.orders))
        )


FilterPlan = Order | Routes
"""An order for all tuples, or routes."""


def usual_order(plan: FilterPlan) -> Order:
    """The order of tuples that are not told apart."""
    return plan.order if isinstance(plan, Routes) else plan


def prefixed(order: Order, first: Order) -> Order:
    """These first, and the others in the succession of the order."""
    return (*first, *(each for each in order if each not in first))
