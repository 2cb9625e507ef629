"""Aggregates of types that are computed as others, by their definitions: times by ticks, nested values by texts."""

from __future__ import annotations

from random import Random

import pytest

import minidsms
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration

CALLS = [
    "AVG(CAST(v AS TIMESTAMP))",
    "MEDIAN(CAST(v AS TIMESTAMP))",
    "AVG(DISTINCT DATE '2024-02-28' + v)",
    "QUANTILE_CONT(DATE '2024-02-28' + v, 0.3)",
    "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY CAST(v AS TIMESTAMP) DESC)",
    "STDDEV(CAST(v AS TIMESTAMP))",
    "ANY_VALUE([v, k])",
    "ANY_VALUE(STRUCT(a := v, b := [t])) FILTER (WHERE v > 1)",
    "ARG_MAX([t, CAST(v AS TEXT)], x)",
    "ARG_MIN(MAP {'a': v}, t)",
]
OVERS = [f"{call} OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING)" for call in CALLS]


@pytest.mark.parametrize("call", CALLS)
def test_groups_are_as_defined(call: str) -> None:
    feed = random_feed(Random(call), ["Sa"], 40, may_be_extreme=False)
    case = Case((declaration("Sa"),), f"SELECT k, {call} AS r FROM Sa [ROWS 7] GROUP BY k", feed)
    expected = run_definition(case)
    for n in (1, 2, 7, 1000):
        assert check(case, n, expected) == "agreed"


@pytest.mark.parametrize("call", OVERS)
@pytest.mark.parametrize("source", ["Sa", "Sa [RANGE 6]"])
def test_frames_are_as_defined(call: str, source: str) -> None:
    feed = random_feed(Random(call), ["Sa"], 40, may_be_extreme=False)
    case = Case((declaration("Sa"),), f"SELECT k, v, x, t, {call} AS r FROM {source}", feed)
    expected = run_definition(case)
    for n in (1, 2, 7, 1000):
        assert check(case, n, expected) == "agreed"


def test_the_middle_of_dates_is_an_instant() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (d DATE)")
        middle = db.query("SELECT MEDIAN(d) AS m, STDDEV_POP(d) AS s FROM S [ROWS 9]")
        db.push("S", [("2024-02-28",), ("2024-02-29",)], ts=[1, 2])
        db.advance(2)
        assert str(middle.schema) == "m TIMESTAMP, s INTERVAL"
        assert middle.snapshot() == [(1_709_121_600_000, 43_200_000)]  # at noon
