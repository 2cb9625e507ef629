"""What the calendar and the zones remember is what they would compute."""

from __future__ import annotations

import importlib
import zoneinfo

import numpy as np

from minidsms.functions import months, zones


def test_months_are_the_same_within_and_outside_the_tables() -> None:
    edges = np.array(["1600-01-01", "2399-12-31"], "datetime64[D]").astype(np.int64)
    near = np.concatenate([edge + np.arange(-70, 70) for edge in (*edges, 0)])
    for days in (near, near[(near >= edges[0]) & (near <= edges[1])], near[:0]):
        found = months.months_of(days)
        assert found.tolist() == days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64).tolist()
        begins = found.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        assert months.first_days(found).tolist() == begins.tolist()


def test_no_zone_changes_its_clock_twice_on_a_day_that_is_looked_up_once() -> None:
    loaded = importlib.import_module("zoneinfo._zoneinfo").ZoneInfo
    for name in zoneinfo.available_timezones():
        zone = loaded.no_cache(name)
        for seconds in (zone._trans_utc, *zone._trans_local):
            days = [second // 86_400 for second in seconds if second // 86_400 >= zones._FIRST_DAY]
            assert len(days) == len(set(days)), name


def test_offsets_of_days_are_those_of_their_seconds() -> None:
    rng = np.random.default_rng(5)
    changes = np.array([1_364_691_600, 1_382_835_600, 94_694_400, 84_000 * 86_400])
    seconds = np.concatenate([(changes[:, None] + np.arange(-9, 9) * 3_000).ravel(), rng.integers(0, 2**32, 200)])
    for is_wall in (False, True):
        each = [zones._offset_s("Europe/Berlin", second, is_wall) for second in seconds.tolist()]
        assert zones._offsets_s("Europe/Berlin", seconds, is_wall).tolist() == each
