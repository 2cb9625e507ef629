"""Which runs make which figure of Babu 2005, section 5.8."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from experiments.caching.runs import AUTO, GLOBAL, MJOIN, PREFIX, XJOIN, Measured, Plan, compare, forced, turns
from experiments.caching.streams import (
    POINTS,
    WINDOW,
    Feed,
    bursty,
    bursty_lossy,
    fast_input,
    four_way,
    long_segment,
    many_keys,
    n_way,
    three_way,
)
from minidsms.joins.plan import CacheSpec
from minidsms.settings import SETTINGS

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


RSU_FOR_T = CacheSpec(3, (2, 1, 0))
"""The join of R, S and U, looked up by T."""


def goal(scale: float, repeats: int) -> Points:
    """Hits of 0.8 and five rows met by a row of T, of two windows and of three, small and large, as a relation and as
    an ISTREAM of RANGE windows.
    """
    found: Points = {}
    for windows, spec in ((2, RS_FOR_T), (3, RSU_FOR_T)):
        for window in (WINDOW, 10 * WINDOW):
            rounds = _rounds(scale, 5 * (windows + 1) + 5, window)
            feed = three_way(rounds, 5, 5, window=window) if windows == 2 else long_segment(rounds, window=window)
            for name, made in (("", feed), (", ISTREAM", _as_istream(feed, window))):
                at = f"{windows} windows of {5 * window:,} rows{name}"
                found[at] = compare(lambda made=made: made, (MJOIN, forced(spec)), 0.5, repeats)  # type: ignore[misc]
    return found


def _as_istream(feed: Feed, window: int) -> Feed:
    """What comes into the join of windows that are as long in time."""
    text = re.sub(r"\[ROWS \d+\]", f"[RANGE {window}]", feed.query)
    return replace(feed, query=f"ISTREAM ({text})")


def number_of_joins(scale: float, repeats: int) -> Points:
    """Figures 5.17 and 5.18: over the streams joined; caches chosen adaptively."""
    return _points(
        (3, 4, 5, 6, 7),
        lambda n: n_way(int(n), _rounds(scale, 5.0 ** (n - n // 2) / 2, 200), window=200),
        (MJOIN, PREFIX),
        repeats,
    )


PLANS = (MJOIN, XJOIN, PREFIX, GLOBAL, AUTO)
"""M, X, P and G of figure 5.21, and the choice among them."""


def sample_points(scale: float, repeats: int) -> Points:
    """Figure 5.21; and, as an input to which caches and trees mean much, figure 5.6."""
    found: Points = {}
    for point, (rates, _) in POINTS.items():
        rounds = _rounds(3 * scale, sum(rates))
        found[point] = compare(lambda point=point, rounds=rounds: four_way(point, rounds), PLANS, 0.5, repeats)  # type: ignore[misc]
    for name, asks in (("5.6", False), ("5.6, ISTREAM", True)):
        found[name] = compare(lambda asks=asks: _lossy(_rounds(scale, 1.2), asks), PLANS, 0.5, repeats)  # type: ignore[misc]
    return found


def _lossy(rounds: int, istream: bool) -> Feed:
    feed = fast_input(rounds)
    text = feed.query.replace("[ROWS 90]", "[RANGE 900]").replace("ROWS", "RANGE")
    return replace(feed, query=f"ISTREAM ({text})") if istream else feed


BURST_AT = 0.5
"""Share of the rounds after which R becomes twenty times as fast."""
BLOCK = 250
"""Rounds, and rows of S, of a point of figure 5.22."""
INTERVALS = 3
"""Re-optimization intervals after which the plan should be the better one."""

KEPT_RS = Plan("tree (T, (R, S))", {"join_plan": "(T, (R, S))"})
KEPT_TS = Plan("tree (R, (T, S))", {"join_plan": "(R, (T, S))"})
STATIC = (forced(RS_FOR_T, name="cache R S for T"), forced(TS_FOR_R, name="cache T S for R"), MJOIN)


def burst(scale: float) -> dict[str, Measured]:
    """Figure 5.22: static plans and adaptive ones, over the rows of S that have come."""
    rounds = round(40_000 * scale)
    compared = (*STATIC, GLOBAL, AUTO)
    found = turns(bursty(rounds, int(BURST_AT * rounds)), compared, 0.0, BLOCK)
    return {plan.name: measured for plan, measured in zip(compared, found)}


def lossy_burst(scale: float) -> dict[str, Measured]:
    """The same where rows of T and R meet many of S in vain."""
    rounds = round(80_000 * scale)
    compared = (KEPT_RS, KEPT_TS, *STATIC, GLOBAL, AUTO)
    found = turns(bursty_lossy(rounds, int(BURST_AT * rounds)), compared, 0.0, BLOCK)
    return {plan.name: measured for plan, measured in zip(compared, found)}


def blocks_after_burst(measured: Measured) -> tuple[int, int]:
    """The first block of the burst, and the first after so many re-optimization intervals in it.

    A row that comes and one that leaves are an element each.
    """
    blocks = measured.by_block
    first = round(BURST_AT * len(blocks))
    elements, block = 0, first
    while elements < INTERVALS * SETTINGS["cache_interval"].default and block < len(blocks):
        elements += 2 * blocks[block][0]
        block += 1
    return first, block


BUDGETS = (0, 4, 8, 16, 32, 64, 96, 128, 192, 256)
"""KB for all caches."""


def memory(scale: float, repeats: int) -> Points:
    """Figure 5.23: at D8, over the memory for subresults."""
    rounds = _rounds(8 * scale, 4)  # so that what is taken once, at the beginning, does not show
    return {budget: _with_memory(lambda: four_way("D8", rounds), budget, (), repeats) for budget in BUDGETS}


def memory_of_many_keys(scale: float, repeats: int) -> Points:
    """Figure 5.23 where caches save much, and more the more keys they have room for."""
    rounds = max(24_000, _rounds(scale, 11))
    some = (forced(RS_FOR_T),)
    return {budget: _with_memory(lambda: many_keys(rounds), budget, some, repeats) for budget in BUDGETS}


def _with_memory(feed: Callable[[], Feed], budget: int, more: Sequence[Plan], repeats: int) -> list[Measured]:
    caching = (*more, PREFIX, GLOBAL, AUTO)
    return compare(feed, (MJOIN, *(_within(plan, budget) for plan in caching)), 0.5, repeats)


def _within(plan: Plan, kilobytes: int) -> Plan:
    return Plan(plan.name, {**plan.options, "cache_memory": max(1, kilobytes * 1024)}, plan.caches)


def _rounds(scale: float, work: float, window: int = WINDOW) -> int:
    """Rounds that take about as long whatever they bring; at least three windows."""
    return max(3 * window, round(scale * 400_000 / work))
