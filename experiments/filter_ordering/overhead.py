"""What adapting costs when there is nothing to adapt to: table 4.2, figures 4.15 to 4.18. Babu 2005, section 4.7.3."""

from __future__ import annotations

import time
from collections.abc import Callable

from experiments.filter_ordering.measuring import BLOCK, BULK, Points, Samples, compare
from experiments.filter_ordering.select import ALGORITHMS, OPTIMAL, Select
from experiments.filter_ordering.workload import Workload
from minidsms.streamon.filter_ordering.a_greedy import AGreedy
from minidsms.streamon.filter_ordering.profile_window import as_profile

NAMES = (OPTIMAL, *ALGORITHMS)
TUPLES, WARM_UP = 600_000, 300_000
RATE = 0.05
"""Of figures 4.15 to 4.18."""

COMPONENTS = ("tuple processing", "profile-tuple creation", "profile-window maintenance", "view update", "violations")


def breakdown(seeds: int) -> dict[tuple[int, float], dict[str, Samples]]:
    """Table 4.2: percent of A-Greedy's time, by (n, p)."""
    table = {}
    for n in (3, 8):
        for rate in (0.01, 0.05):
            parts = {component: Samples() for component in COMPONENTS}
            for seed in range(seeds):
                seconds = _spent(Workload((0.5,) * n, TUPLES, seed=seed), rate)
                for component, value in zip(COMPONENTS, seconds):
                    parts[component].values.append(100 * value / sum(seconds))
            table[n, rate] = parts
    return table


def _spent(workload: Workload, rate: float) -> tuple[float, ...]:
    """Seconds by component. What the algorithm does with profile tuples is told apart by doing less of it again."""
    select = Select(workload, "A-Greedy", rate, measured=True, block=BLOCK, bulk=BULK)
    select.profiled = []
    spent = select.run().spent
    told = select.profiled

    def window_only() -> None:
        algorithm = AGreedy(workload.n)
        for drops, costs in told:
            algorithm.window.append(*as_profile(drops, costs))

    def without_judging() -> None:
        algorithm = AGreedy(workload.n)
        algorithm.window.enough = 1 << 62
        for drops, costs in told:
            algorithm.observe(drops, costs)

    def everything() -> None:
        algorithm = AGreedy(workload.n)
        for drops, costs in told:
            algorithm.observe(drops, costs)

    window, view, whole = (_least_time(again) for again in (window_only, without_judging, everything))
    return spent.processing, spent.profiling, window, max(view - window, 0.0), max(whole - view, 0.0)


def _least_time(run: Callable[[], None]) -> float:
    """CPU seconds of the fastest of five runs."""
    took = []
    for _ in range(5):
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
    return min(took)


def number_of_filters(seeds: int) -> Points:
    """Figures 4.15 and 4.16: n filters of 50 %, in pairs, p = 0.05 for all."""

    def point(n: int) -> Points:
        return {n: compare(lambda seed: Workload((0.5,) * n, TUPLES, seed=seed), NAMES, seeds, WARM_UP, RATE)}

    return {x: found for n in (3, 5, 8, 11, 14) for x, found in point(n).items()}


def filter_costs(seeds: int) -> Points:
    """Figures 4.17 and 4.18: eight filters, four of which cost c."""

    def point(cost: int) -> Points:
        costs = (1,) * 4 + (cost,) * 4
        return {
            cost: compare(
                lambda seed: Workload((0.5,) * 8, TUPLES, costs=costs, seed=seed), NAMES, seeds, WARM_UP, RATE
            )
        }

    return {x: found for cost in (1, 10, 50, 100) for x, found in point(cost).items()}
