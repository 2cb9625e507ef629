"""What the detectors learn and compute, against worked figures and samples of known distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minidsms.streamon.change_detection.beta_cusum import BetaCusum
from minidsms.streamon.change_detection.contracts import NONE, Tuning
from minidsms.streamon.change_detection.cusum import Cusum
from minidsms.streamon.change_detection.meta import critical_distance


def test_cusum_sums_the_log_likelihood_ratios_of_its_items() -> None:
    made = Cusum(Tuning(1, threshold=8.0, training=1))
    feed = [10, 10, 10, 10, 16, 16, 16, 16]
    # Learned of the first four: p = 0.5. An item of 16 in 20 under 0.6 against 0.5 adds 16 ln 1.2 + 4 ln 0.8 = 2.02.
    assert 16 * math.log(1.2) + 4 * math.log(0.8) == pytest.approx(2.02, abs=0.01)
    items = np.arange(len(feed))[:, None]
    told = made.observe(np.array(feed)[:, None], np.full((8, 1), 20), 20 * items, 20 * items[:, 0] + 20)[:, 0].tolist()
    assert told == [NONE] * 7 + [80], "behind four of them, and the changepoint is the first item that was too large"


def test_cusum_needs_fewer_items_of_more_observations() -> None:
    made = Cusum(Tuning(1, training=1))
    hits, of = np.array([[500], [620]]), np.array([[1000], [1000]])
    told = made.observe(hits, of, np.array([[0], [1000]]), np.array([1000, 2000]))
    assert told.tolist() == [[NONE], [1000]]


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (30.0, 10.0), (0.8, 0.9)])
def test_training_finds_the_parameters_of_a_beta_sample_within_their_confidence(a: float, b: float) -> None:
    streams, items, of = 200, 400, 1_000_000
    made = BetaCusum(Tuning(streams, training=items, confidence=0.05))
    shares = np.random.default_rng(1).beta(a, b, (items, streams))
    since = np.zeros((items, streams), np.int64)
    made.observe((shares * of).astype(np.int64), np.full_like(since, of), since, np.arange(items))
    found = made.parameters
    assert np.median(found[:, 0]) == pytest.approx(a, rel=0.05)
    assert np.median(found[:, 1]) == pytest.approx(b, rel=0.05)
    for value, lower, upper in ((a, 2, 3), (b, 4, 5)):
        within = (found[:, lower] <= value) & (value <= found[:, upper])
        assert 0.88 <= within.mean() <= 0.99


def test_a_share_of_nothing_or_all_is_half_an_observation_away_from_it() -> None:
    made = BetaCusum(Tuning(2, training=3))
    made.observe(np.array([[0, 20]] * 5), np.full((5, 2), 20), np.zeros((5, 2), np.int64), np.arange(5))
    assert np.isfinite(made.parameters).all()


def test_the_bound_of_two_windows_is_kuipers() -> None:
    # V* = 1.747 leaves 5 % above it (Stephens 1970).
    root = math.sqrt(50)
    assert critical_distance(100, 0.05) * (root + 0.155 + 0.24 / root) == pytest.approx(1.747, abs=1e-3)
