"""Which runs make which figure of Babu 2005, section 5.8."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.caching.runs import GLOBAL, MJOIN, PREFIX, XJOIN, Measured, Plan, compare, forced, turns
from experiments.caching.streams import POINTS, WINDOW, Feed, bursty, four_way, n_way, three_way
from minidsms.settings import SETTINGS
from minidsms.streamon.caching.contracts import CacheSpec

R, S, T = 0, 1, 2
RS_FOR_T = CacheSpec(T, (S, R))
"""Figure 5.7 turned round: the join of R and S, looked up by T."""
TS_FOR_R = CacheSpec(R, (S, T), (R,))
"""The join of S and T reduced by R, looked up by R (figure 5.22)."""

Points = dict[float | str, list[Measured]]
"""By what stands on the x axis, a run of each plan."""


def _points(xs: Sequence[float], feed: Callable[[float], Feed], plans: Sequence[Plan], repeats: int) -> Points:
    return {x: compare(lambda x=x: feed(x), plans, repeats=repeats) for x in xs}  # type: ignore[misc]


CACHED = (MJOIN, forced(RS_FOR_T))
"""What figures 5.11 to 5.16 and 5.19 compare: one candidate, always used, against none."""


def hit_probability(scale: float, repeats: int) -> Points:
    """Figures 5.11 and 5.12: over the multiplicity of T.B."""
    return _points((1, 2, 3, 5, 7, 10), lambda r: three_way(_rounds(scale, 3 + r), int(r)), CACHED, repeats)


def selectivity(scale: float, repeats: int) -> Points:
    """Figures 5.13 and 5.14: over the rows of R join S that a row of T meets."""
    xs = (0.1, 0.25, 0.5, 1, 2, 5, 10)
    return _points(xs, lambda k: three_way(_rounds(scale, 5 + 3 * k), 5, k), CACHED, repeats)


def update_ratio(scale: float, repeats: int) -> Points:
    """Figures 5.15 and 5.16: over the updates of R join S per probe."""
    feeds = {0.05: (20, 1), 0.1: (10, 1), 0.2: (5, 1), 0.4: (5, 2), 1: (5, 5), 2: (5, 10), 4: (5, 20)}

    def feed(ratio: float) -> Feed:
        multiplicity, every = feeds[ratio]
        return three_way(_rounds(scale, 2 + multiplicity / every), multiplicity, probed_every=every)

    return _points(tuple(feeds), feed, CACHED, repeats)


def join_cost(scale: float, repeats: int) -> Points:
    """Figures 5.19 and 5.20: over the rows of S that a row of T meets and R drops."""
    return _points((0, 2, 5, 10, 20), lambda k: three_way(_rounds(scale, 7 + k), 5, dropped=int(k)), CACHED, repeats)


def number_of_joins(scale: float, repeats: int) -> Points:
    """Figures 5.17 and 5.18: over the streams joined; caches chosen adaptively."""
    return _points(
        (3, 4, 5, 6, 7),
        lambda n: n_way(int(n), _rounds(scale, 5.0 ** (n - n // 2) / 2, 200), window=200),
        (MJOIN, PREFIX),
        repeats,
    )


def plans() -> tuple[Plan, ...]:
    """M, X, P and G of figure 5.21, X where the engine has it."""
    return (MJOIN, *((XJOIN,) if "join_plan" in SETTINGS else ()), PREFIX, GLOBAL)


def sample_points(scale: float, repeats: int) -> Points:
    """Figure 5.21."""
    found: Points = {}
    for point, (rates, _) in POINTS.items():
        rounds = _rounds(3 * scale, sum(rates))
        found[point] = compare(lambda point=point, rounds=rounds: four_way(point, rounds), plans(), 0.5, repeats)  # type: ignore[misc]
    return found


BURST_AT = 0.5
"""Share of the rounds after which R becomes twenty times as fast."""
BLOCK = 250
"""Rounds, and rows of S, of a point of figure 5.22."""


def burst(scale: float) -> dict[str, Measured]:
    """Figure 5.22: two static plans and the adaptive one, over the rows of S that have come."""
    rounds = round(40_000 * scale)
    static = (forced(RS_FOR_T, name="T (R S)"), forced(TS_FOR_R, name="R (T S)"), MJOIN, GLOBAL)
    found = turns(bursty(rounds, int(BURST_AT * rounds)), static, 0.0, BLOCK)
    return {plan.name: measured for plan, measured in zip(static, found)}


BUDGETS = (0, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256)
"""KB for all caches."""


def memory(scale: float, repeats: int) -> Points:
    """Figure 5.23: at D8, over the memory for subresults."""
    rounds = _rounds(2 * scale, 4)
    found: Points = {}
    for budget in BUDGETS:
        some = (MJOIN, _within(PREFIX, budget), _within(GLOBAL, budget))
        found[budget] = compare(lambda: four_way("D8", rounds), some, 0.5, repeats)
    return found


def _within(plan: Plan, kilobytes: int) -> Plan:
    return Plan(plan.name, {**plan.options, "cache_memory": max(1, kilobytes * 1024)}, plan.caches)


def _rounds(scale: float, work: float, window: int = WINDOW) -> int:
    """Rounds that take about as long whatever they bring; at least three windows."""
    return max(3 * window, round(scale * 400_000 / work))
