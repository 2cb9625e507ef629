"""Filters with known statistics, for tests and experiments of filter ordering: which of them drop which tuples.

The filters stand in groups; those of a group give the same answer on so many tuples (0.8 unless told), those of
different groups are independent. Babu 2005, section 4.7.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderingAlgorithm

Generator = np.random.Generator


@dataclass(frozen=True)
class CorrelatedFilters:
    """selectivities: (n,) share of all tuples that each filter lets pass; equal within a group.  group_size: the
    correlation factor; the first so many filters are a group, and so on.  agreement: of two filters of a group.
    """

    selectivities: tuple[float, ...]
    group_size: int = 2
    agreement: float = 0.8

    def drops(self, tuples: int, rng: Generator) -> BoolArray:
        """(tuples, n), True where the filter drops the tuple.

        A filter of a group answers as the group does, on some tuples, and by itself on the others; on how many follows
        from the agreement. Filters that agree by chance more often than that are independent.
        """
        n = len(self.selectivities)
        passes = rng.random((tuples, n)) < np.array(self.selectivities)
        for start in range(0, n, self.group_size):
            pass_rate = self.selectivities[start]
            by_chance = pass_rate**2 + (1 - pass_rate) ** 2
            copying = max((self.agreement - by_chance) / (1 - by_chance), 0.0) ** 0.5 if by_chance < 1 else 0.0
            stop = min(start + self.group_size, n)
            if stop - start < 2:
                continue
            of_group = rng.random(tuples) < pass_rate
            copies = rng.random((tuples, stop - start)) < copying
            passes[:, start:stop] = np.where(copies, of_group[:, None], passes[:, start:stop])
        return ~passes


def arbitrary_drops(n: int, tuples: int, rng: Generator) -> BoolArray:
    """(tuples, n): a few kinds of tuple, each dropped by its own filters; every tuple is dropped by one at least.

    Any correlation can come out: filters that imply, exclude or complete one another.
    """
    kinds = rng.random((int(rng.integers(1, 3 * n + 1)), n)) < rng.uniform(0.05, 0.8)
    kinds[np.arange(len(kinds)), rng.integers(0, n, len(kinds))] = True
    weights = rng.dirichlet(np.full(len(kinds), 0.7))
    return kinds[rng.choice(len(kinds), tuples, p=weights)]


def evaluated(drops: BoolArray, order: Order) -> npt.NDArray[np.int64]:
    """(m,) how many filters each tuple (m, n) goes through under an order."""
    in_order = drops[:, list(order)]
    return np.where(in_order.any(axis=1), in_order.argmax(axis=1) + 1, len(order))


def mean_cost(drops: BoolArray, times: Float64Array, order: Order) -> float:
    """Mean time per tuple (m, n) under an order: equation 4.1."""
    ends = np.concatenate(([0.0], np.cumsum(times[list(order)])))
    return float(ends[evaluated(drops, order)].mean())


def as_profiled(drops: BoolArray, times: Float64Array, algorithm: OrderingAlgorithm) -> tuple[BoolArray, Float64Array]:
    """What an executor tells an algorithm of dropped tuples: the bits and times it would have evaluated.

    drops: (m, n), all of them.  times: (n,).
    """
    wanted = algorithm.wanted()
    if wanted.evaluate is Evaluate.ALL or not len(drops):
        return drops, times
    order = list(algorithm.order)
    first = evaluated(drops, algorithm.order) - 1
    position = np.arange(len(order))
    if wanted.evaluate is Evaluate.NEXT:
        first = first + 1
    known = np.empty_like(drops)
    known[:, order] = position[None, :] <= first[:, None]
    if wanted.evaluate is Evaluate.ONE:
        known[:, wanted.filter] = True
    return drops & known, np.where(known.any(axis=0), times, np.nan)
