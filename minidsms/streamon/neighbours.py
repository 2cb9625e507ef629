"""The orders next to an order of filters, and what each costs: what else could have been chosen.

Of four filters and less these are all orders; of more those in which two filters have changed places, of many two that
stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

from minidsms.expressions.routes import Order
from minidsms.streamon.contracts import OrderingAlgorithm

ALL_OF = 4
EVERY_PAIR_OF = 7


def neighbours(order: Order) -> list[Order]:
    """The order itself, and those next to it.

    >>> neighbours((1, 0))
    [(1, 0), (0, 1)]
    >>> len(neighbours((0, 1, 2, 3))), len(neighbours((0, 1, 2, 3, 4))), len(neighbours(tuple(range(9))))
    (24, 11, 9)
    """
    n = len(order)
    if n <= ALL_OF:
        return list(permutations(order))
    pairs = combinations(range(n), 2) if n <= EVERY_PAIR_OF else ((i, i + 1) for i in range(n - 1))
    return [order, *(_exchanged(order, i, j) for i, j in pairs)]


def costs_of(algorithm: OrderingAlgorithm, orders: Sequence[Order]) -> list[tuple[Order, float]]:
    """Each order once, with what a tuple costs under it, where the algorithm can tell."""
    costs = ((order, algorithm.expected_cost(order)) for order in dict.fromkeys(orders))
    return [(order, cost) for order, cost in costs if cost is not None]


def _exchanged(order: Order, i: int, j: int) -> Order:
    changed = list(order)
    changed[i], changed[j] = order[j], order[i]
    return tuple(changed)
