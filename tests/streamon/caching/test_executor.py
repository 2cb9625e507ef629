"""Plans in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.streamon.caching.executor import CacheExecutor
from tests.streamon.caching.simulated_join import SimulatedJoin

ORDERS = ((1, 2), (0, 2), (1, 0))
JOIN = SimulatedJoin(ORDERS, (((0, 0), (1, 0)), ((1, 1), (2, 0))), (1, 1, 1), [(1, 1)] * 3, {})
METER: Any = SimpleNamespace(elements=0, spent=lambda: (0.0, 0))


def test_cached_segments_stand_in_brackets() -> None:
    text = CacheExecutor(JOIN, "RST", METER).plan_text
    assert text(JoinPlan(ORDERS)) == "R: S, T | S: R, T | T: S, R"
    assert text(JoinPlan(ORDERS, (CacheSpec(2, (1, 0)),))) == "R: S, T | S: R, T | T: [S, R]"
    assert text(JoinPlan(ORDERS, (CacheSpec(0, (1, 2), (0,)),))) == "R: [S, T / R] | S: R, T | T: S, R"
