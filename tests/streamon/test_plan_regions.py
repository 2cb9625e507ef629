"""Plan logging: regions of statistics."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.streamon.plan_regions import PlanRegions

STEP = 0.1


def best_plan(drop: float, cost: float) -> str:
    """A world in which the optimizer always knows: two filters, the second of cost 1 and dropping half."""
    return "first" if drop / cost >= 0.5 else "second"


def logged(entries: int, seed: int = 0) -> PlanRegions[str]:
    """A random walk through statistics, optimized at each step; `noise` moves, and means nothing."""
    rng = np.random.default_rng(seed)
    regions: PlanRegions[str] = PlanRegions({"drop": STEP, "cost": STEP, "noise": STEP})
    drop, cost = 0.4, 1.0
    for t in range(entries):
        drop = float(np.clip(drop + rng.normal(0, 0.05), 0.05, 0.95))
        cost = float(np.clip(cost + rng.normal(0, 0.02), 0.8, 1.2))
        statistics = {"drop": drop, "cost": cost, "noise": float(rng.random())}
        regions.record(t, statistics, best_plan(drop, cost))
    return regions


def test_statistics_seen_before_give_the_plan_that_was_picked_then() -> None:
    regions: PlanRegions[tuple[int, ...]] = PlanRegions({"d1": 0.1, "d2": 0.1})
    regions.record(1, {"d1": 0.2, "d2": 0.6}, (1, 0))
    regions.record(2, {"d1": 0.28, "d2": 0.6}, (1, 0))
    regions.record(3, {"d1": 0.7, "d2": 0.6}, (0, 1))
    assert regions.plans_near({"d1": 0.24, "d2": 0.6}) == ((1, 0),)
    assert regions.plans_near({"d1": 0.69, "d2": 0.62}) == ((0, 1),)
    assert regions.plans_near({"d1": 0.37, "d2": 0.6}) == ((1, 0),)
    assert regions.plans_near({"d1": 0.5, "d2": 0.6}) == ()


@pytest.mark.parametrize("seed", range(5))
def test_every_entry_lies_in_a_region_of_its_plan_and_in_none_of_another(seed: int) -> None:
    regions = logged(150, seed)
    for entry in regions.entries:
        holding = {region.plan for region in regions.regions if region.contains(entry.statistics)}
        assert holding == {entry.plan}
    assert len(regions.regions) < 150


def test_regions_of_a_long_walk_answer_most_questions_and_are_right_but_near_borders() -> None:
    regions = logged(400)
    rng = np.random.default_rng(1)
    drops, costs, noise = rng.uniform(0.2, 0.8, 300), rng.uniform(0.9, 1.1, 300), rng.random(300)
    told = [
        (regions.plans_near({"drop": d, "cost": c, "noise": n}), best_plan(d, c))
        for d, c, n in zip(drops, costs, noise)
    ]
    known = [(found[0], best) for found, best in told if len(found) == 1]
    assert len(known) > 100
    assert sum(found == best for found, best in known) > 0.9 * len(known)


def test_an_entry_inside_the_region_of_another_plan_cuts_that_region() -> None:
    regions: PlanRegions[str] = PlanRegions({"d": 1.0})
    for d in (0.0, 0.8, 1.6):
        regions.record(0, {"d": d}, "a")
    assert len(regions.regions) == 1
    regions.record(1, {"d": 0.4}, "b")
    assert sorted((r.plan, r.low[0], r.high[0]) for r in regions.regions) == [
        ("a", 0.0, 0.0),
        ("a", 0.8, 1.6),
        ("b", 0.4, 0.4),
    ]
    assert set(regions.plans_near({"d": 0.4})) == {"a", "b"}
    assert regions.plans_near({"d": 1.5}) == ("a",)


def test_the_same_statistics_with_two_plans_answer_both() -> None:
    regions: PlanRegions[str] = PlanRegions({"d": 1.0})
    regions.record(0, {"d": 3.0}, "a")
    regions.record(1, {"d": 3.0}, "b")
    assert regions.plans_near({"d": 3.0}) == ("a", "b")


def test_old_entries_are_forgotten_with_their_regions() -> None:
    regions: PlanRegions[int] = PlanRegions({"d": 0.5}, capacity=10)
    for t in range(40):
        regions.record(t, {"d": float(t)}, t)
    assert len(regions.entries) <= 10
    assert regions.plans_near({"d": 0.0}) == ()
    assert regions.plans_near({"d": 39.0}) == (39,)
    assert {region.plan for region in regions.regions} == {entry.plan for entry in regions.entries}


def test_regions_want_tolerances_above_zero_and_finite_statistics() -> None:
    for tolerances in ({}, {"d": 0.0}):
        with pytest.raises(ValueError, match="at least one dimension"):
            PlanRegions(tolerances)
    with pytest.raises(ValueError, match="finite"):
        PlanRegions({"d": 1.0}).plans_near({"d": float("nan")})
