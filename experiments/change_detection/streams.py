"""Streams of filters whose drop rates change, as profile tuples see them. Tsamoura et al. 2016, section 7.2.

The data of the paper are not at hand; these have the shapes it tells of. Filters are correlated in pairs (Babu 2005,
section 4.7.2). At a change the drop rates change places among the filters: at once, or in a transition during which
ever more tuples are of the new kind. Returning streams have two conditions that come by turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from minidsms.elements import BoolArray
from minidsms.streamon.contracts import Order
from minidsms.streamon.filter_ordering.optimal import MOST_FILTERS, best_order
from minidsms.testing.pipelined_filters import CorrelatedFilters

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
