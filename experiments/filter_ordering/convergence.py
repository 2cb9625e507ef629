"""How good the orders are when statistics stay as they are: figures 4.11 to 4.14. Babu 2005, section 4.7.2."""

from __future__ import annotations

from experiments.filter_ordering.measuring import Points, compare
from experiments.filter_ordering.select import OPTIMAL
from experiments.filter_ordering.workload import Workload

NAMES = (OPTIMAL, "A-Greedy", "Independent")
TUPLES, WARM_UP = 400_000, 200_000
"""Measured over the second half: the profile windows are full by then."""
PROBES = 10
"""Per filter and tuple: see the remarks."""


def number_of_filters(seeds: int) -> Points:
    """Figure 4.11: n filters of 50 %, in pairs."""

    def point(n: int) -> Points:
        return {n: compare(lambda seed: _workload((0.5,) * n, 2, seed), NAMES, seeds, WARM_UP)}

    return {x: found for n in (2, 4, 6, 8, 10, 14, 20) for x, found in point(n).items()}


def selectivity(seeds: int) -> Points:
    """Figure 4.12: eight filters of one selectivity, in pairs."""

    def point(share: float) -> Points:
        return {share: compare(lambda seed: _workload((share,) * 8, 2, seed), NAMES, seeds, WARM_UP)}

    return {x: found for tenth in (1, 3, 4, 5, 6, 7, 9) for x, found in point(tenth / 10).items()}


def correlation(n: int, seeds: int) -> Points:
    """Figures 4.13 (n = 3) and 4.14 (n = 8): filters of 50 % in groups of 1 to n."""

    def point(size: int) -> Points:
        return {size: compare(lambda seed: _workload((0.5,) * n, size, seed), NAMES, seeds, WARM_UP)}

    return {x: found for size in range(1, n + 1) for x, found in point(size).items()}


def _workload(selectivities: tuple[float, ...], group_size: int, seed: int) -> Workload:
    return Workload(selectivities, TUPLES, group_size, (PROBES,) * len(selectivities), seed=seed)
