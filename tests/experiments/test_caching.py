"""The experiments of caches measure what they say."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.caching.figures import RS_FOR_T
from experiments.caching.report import PAGES, PARTS, table
from experiments.caching.runs import MJOIN, Measured, forced, turns
from experiments.caching.streams import PAIRS, POINTS, bursty, four_way, n_way, three_way


@pytest.mark.parametrize("point", POINTS)
def test_the_streams_of_a_sample_point_have_its_rates_and_selectivities(point: str) -> None:
    rates, selectivities = POINTS[point]
    (block,) = four_way(point, 4_000).blocks(4_000)
    rows = [block[name][0]["A"] for name in ("R", "S", "T", "U")]
    assert [len(each) // 4_000 for each in rows] == list(rates)
    for (a, b), selectivity in zip(PAIRS, selectivities):
        (values_a, of_a), (values_b, of_b) = (np.unique(rows[k], return_counts=True) for k in (a, b))
        _, in_a, in_b = np.intersect1d(values_a, values_b, return_indices=True)
        equal = int(of_a[in_a] @ of_b[in_b])
        assert equal / len(rows[a]) / len(rows[b]) == pytest.approx(selectivity, rel=0.15)
        assert of_a.sum() and of_b.sum()


def test_a_row_of_t_meets_as_many_pairs_as_asked_for() -> None:
    for selectivity in (0.25, 1, 5):
        feed = three_way(600, multiplicity=2, selectivity=selectivity, window=100)
        (measured,) = turns(feed, [MJOIN], 0.0)
        inserted = 600 * 2 * selectivity
        assert measured.results == pytest.approx(inserted + 500 * 2 * selectivity, rel=0.1)


def test_a_forced_cache_hits_as_its_multiplicity_says() -> None:
    """Of 5 insertions and 5 deletions of a B the first misses, where the cache has room for all."""
    feed = three_way(3_000, multiplicity=5, window=100)
    plain, cached = turns(feed, [MJOIN, forced(RS_FOR_T)], 0.0)
    assert plain.results == cached.results
    assert 0.75 < cached.hits / cached.probes <= 0.9


def test_in_the_burst_r_is_twenty_times_as_fast_through_the_same_values() -> None:
    (block,) = bursty(200, burst_at=100, window=80).blocks(200)
    columns, ts = block["R"]
    assert np.count_nonzero(ts < 100) == 100 and np.count_nonzero(ts >= 100) == 2_000
    assert set(np.diff(columns["A"]).tolist()) == {1, -89}


def test_the_streams_of_the_n_way_join_bring_values_once_or_five_times() -> None:
    (block,) = n_way(5, 10).blocks(10)
    assert [len(block[f"S{i}"][1]) for i in range(1, 6)] == [10, 10, 50, 50, 50]


def test_a_page_has_what_the_thesis_shows_what_was_measured_and_what_is_to_be_said() -> None:
    runs = [Measured(elements=10, join_ns=1_000), Measured(elements=10, join_ns=500, probes=4, hits=3)]
    shown = PAGES.section("5.11, 5.12: hit probability", table({5: runs}, "r", ("MJoin", "cached")))
    assert "| 5 | 100 | 50 | 2.00 | 75 % |" in shown
    assert shown.index("**Thesis.**") < shown.index("| r |") < shown.index("**Beside it.**")
    assert len(PARTS) == 3 and PAGES.setting()
