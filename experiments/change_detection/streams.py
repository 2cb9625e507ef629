"""Streams of filters whose drop rates change, as profile tuples see them. Tsamoura et al. 2016, section 7.2.

The data of the paper are not at hand; these have the shapes it tells of. Filters are correlated in pairs (Babu 2005,
section 4.7.2). At a change the drop rates change places among the filters: at once, or in a transition during which
ever more tuples are of the new kind. Returning streams have two conditions that come by turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.filter_ordering.known_filters import CorrelatedFilters
from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.streamon.filter_ordering.optimal import MOST_FILTERS, best_order

SHARE = 100
"""One tuple in so many is profiled: p = 0.01."""
KNOWN = 20_000
"""Tuples of a condition by which its best order is told."""


@dataclass(frozen=True)
class Changing:
    """filters: 4, 64 or 256.  period: tuples between changes.  changes: how many.  transition: tuples that one takes,
    0 for at once.  returns: two conditions by turns, else always a new one.
    """

    filters: int
    period: int
    changes: int = 10
    transition: int = 0
    returns: bool = False
    seed: int = 0

    @property
    def phases(self) -> tuple[int, ...]:
        """Profiled tuples of each condition."""
        return (self.period // SHARE,) * (self.changes + 1)

    def drops(self) -> tuple[BoolArray, tuple[Order, ...]]:
        """(m, n) what the filters do with the profiled tuples, those that all let pass included; and the best order of
        each condition.
        """
        rng = np.random.default_rng(self.seed)
        spread = (0.9, 0.7, 0.5, 0.3) if self.filters == 4 else tuple(np.linspace(0.98, 0.6, self.filters))
        places = [rng.permutation(self.filters) for _ in range(self.changes + 1)]
        if self.returns:
            places = [places[k % 2] for k in range(self.changes + 1)]
        model = CorrelatedFilters(tuple(np.repeat(spread[::2], 2)) if self.filters > 4 else spread)
        each = self.period // SHARE
        kinds = [model.drops(max(each, KNOWN), rng)[:, order] for order in places]
        parts = [kinds[0][:each]]
        fading = min(self.transition // SHARE, each)
        for before, after in pairwise(kinds):
            part = after[:each].copy()
            is_old = rng.random(fading) > np.arange(fading) / max(fading, 1)
            part[:fading][is_old] = before[-fading:][is_old] if fading else part[:0]
            parts.append(part)
        return np.concatenate(parts), tuple(_best(kind[:KNOWN]) for kind in kinds)


@dataclass(frozen=True)
class Packets:
    """What packets of a network may do to the predicates of a rule: calm for long and short, and then one predicate
    drops more or less, at once or, every other time, fading from old to new over up to a third of the time it stays.

    filters: 4, 5 or 6.  tuples: altogether, about.
    """

    filters: int
    tuples: int = 6_000_000
    seed: int = 0

    @property
    def phases(self) -> tuple[int, ...]:
        """Profiled tuples of each condition: from 20K tuples to a million and more, most of them short."""
        rng = np.random.default_rng(self.seed)
        lengths: list[int] = []
        while sum(lengths) * SHARE < self.tuples:
            lengths.append(int(np.exp(rng.uniform(np.log(20_000), np.log(2_000_000)))) // SHARE)
        return tuple(lengths)

    def drops(self) -> tuple[BoolArray, tuple[Order, ...]]:
        """As `Changing.drops`. Every second filter looks, for half of the tuples, at what the one before it does."""
        rng = np.random.default_rng(self.seed + 1)
        n = self.filters
        rates = rng.uniform(0.05, 0.95, n)
        parts, orders = [], []
        for number, length in enumerate(self.phases):
            before = rates.copy()
            rates[rng.integers(n)] = rng.choice([rng.uniform(0, 0.3), rng.uniform(0.7, 1.0)])
            drawn = rng.random((max(length, KNOWN), n))
            is_alike = rng.random(len(drawn)) < 0.5
            for j in range(1, n, 2):
                drawn[is_alike, j] = drawn[is_alike, j - 1]
            fading = length // 3 if number and number % 2 else 0
            is_old = rng.random(length) > (np.arange(length) + 1) / max(fading, 1)
            parts.append(np.where(is_old[:, None], drawn[:length] < before, drawn[:length] < rates))
            orders.append(_best(drawn[:KNOWN] < rates))
        return np.concatenate(parts), tuple(orders)


Stream = Changing | Packets


def _best(drops: BoolArray) -> Order:
    """The order that costs least on these tuples; the greedy one where there are many filters."""
    n = drops.shape[1]
    if n <= min(MOST_FILTERS, 8):
        return best_order(drops.astype(np.uint8), np.ones(n))
    order: list[int] = []
    left = drops
    while len(order) < n:
        counts = left.sum(axis=0)
        counts[order] = -1
        order.append(int(counts.argmax()))
        left = left[~left[:, order[-1]]]
    return tuple(order)
