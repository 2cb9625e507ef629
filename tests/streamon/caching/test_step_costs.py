"""What steps cost decides between caches: what nobody asks for costs little, and reduced caches slow everything."""

from __future__ import annotations

import pytest

from minidsms.joins.plan import CacheSpec
from minidsms.streamon.caching.step_costs import ENTERING, JOINING, StepCosts, StepUnits

WHOLE, REDUCED = CacheSpec(2, (1, 0)), CacheSpec(0, (1, 2), (0,))


def test_where_time_is_not_measured_every_step_costs_one() -> None:
    costs = StepCosts(measures_time=False)
    assert (costs.window(3), costs.lookup(2, 3), costs.update(2, 3, 0.5)) == (4, 4, 1)
    assert costs.whole(10, (REDUCED,)) == 10 and costs.least(1000, 1000) == 0


@pytest.mark.parametrize("enters", [False, True])
def test_changes_that_meet_no_entry_cost_less_the_more_they_are(enters: bool) -> None:
    costs = StepCosts(True, enters)
    stored, some, none = (costs.update(1, 2, ignored) for ignored in (0.0, 0.5, 1.0))
    assert stored > some > none and some == pytest.approx((stored + none) / 2)


@pytest.mark.parametrize(("enters", "unit"), [(False, JOINING), (True, ENTERING)])
def test_caches_cost_every_element_something_and_reduced_ones_all_that_is_done(enters: bool, unit: StepUnits) -> None:
    costs = StepCosts(True, enters)
    assert costs.whole(100, ()) == 100
    assert costs.whole(100, (WHOLE,)) == 100 + unit.element
    assert costs.whole(100, (WHOLE, REDUCED)) == pytest.approx(unit.one_by_one * 100 + unit.element)


def test_what_every_plan_does_is_the_least_that_a_join_takes() -> None:
    costs = StepCosts(True)
    assert costs.least(10, 0) < costs.least(10, 5) < costs.least(20, 5)
