"""The estimate of the miss probability against a cache that forgets nothing. Babu 2005, section 5.5.3."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.elements import Int64Array
from minidsms.kernels.bloom_filter import add_keys
from minidsms.streamon.caching.miss_probability import MissProbability


def as_keys(values: Int64Array) -> Int64Array:
    return np.ascontiguousarray(values.reshape(len(values), -1).astype(np.int64))


def test_the_filter_counts_each_key_once_but_for_collisions() -> None:
    keys = as_keys(np.repeat(np.arange(500), 4))
    bits = np.zeros(1 << 10, np.uint64)
    assert add_keys(keys, 0, len(keys), bits, 16) in range(495, 501)
    assert add_keys(keys, 0, len(keys), bits, 16) == 0


def test_the_filter_sets_the_bits_that_a_slow_twin_sets() -> None:
    rng = np.random.default_rng(3)
    keys = as_keys(rng.integers(-(2**62), 2**62, (300, 2)))
    bits = np.zeros(1 << 4, np.uint64)
    add_keys(keys, 0, len(keys), bits, 10)
    expected = {_place(tuple(int(w) for w in row), 10) for row in keys}
    found = {64 * w + b for w in range(len(bits)) for b in range(64) if int(bits[w]) >> b & 1}
    assert found == expected


def _place(words: tuple[int, ...], log2_bits: int) -> int:
    whole = 2**64 - 1
    h = 0x9E3779B97F4A7C15
    for word in words:
        h ^= word & whole
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            h = (h ^ h >> 33) * factor & whole
        h ^= h >> 33
    return h >> (64 - log2_bits)


@pytest.mark.parametrize("multiplicity", [1, 2, 5, 10])
def test_keys_that_come_r_times_in_a_row_miss_once_in_r(multiplicity: int) -> None:
    keys = as_keys(np.repeat(np.arange(20_000), multiplicity))
    for estimate in (MissProbability(), MissProbability(keeps_keys=False)):
        estimate.observe(keys)
        assert estimate.estimate == pytest.approx(1 / multiplicity, abs=0.03)


def test_keys_that_return_after_a_stretch_are_hits_where_the_filter_keeps_them() -> None:
    """2000 keys over and over: a cache misses none after the first round, a filter per stretch of 512 all."""
    keys = as_keys(np.arange(20 * 512) % 2000)
    kept, thesis = MissProbability(), MissProbability(keeps_keys=False)
    for each in (kept, thesis):
        each.observe(keys)
    assert kept.estimate == pytest.approx(0.0, abs=0.01)
    assert thesis.estimate == pytest.approx(1.0, abs=0.05)
    assert kept.distinct_keys == pytest.approx(2000, rel=0.02)


def test_how_the_stream_is_cut_changes_nothing() -> None:
    keys = as_keys(np.random.default_rng(1).integers(0, 3000, 12_000))
    whole, parts = MissProbability(), MissProbability()
    whole.observe(keys)
    for at in range(0, len(keys), 7):
        parts.observe(keys[at : at + 7])
    assert whole.estimate == pytest.approx(parts.estimate)
    assert whole.is_ready


def test_a_full_filter_is_emptied_and_goes_on() -> None:
    estimate = MissProbability()
    estimate.observe(as_keys(np.arange(400_000)))
    assert estimate.estimate == pytest.approx(1.0, abs=0.05)
    estimate.observe(as_keys(np.repeat(np.arange(400_000, 410_000), 5)))
    assert estimate.estimate == pytest.approx(0.2, abs=0.03)


def test_nothing_is_estimated_before_a_stretch_is_whole() -> None:
    estimate = MissProbability()
    estimate.observe(as_keys(np.arange(500)))
    assert estimate.estimate is None
    assert not estimate.is_ready


def test_changes_whose_key_nobody_asked_for_are_ignored() -> None:
    estimate = MissProbability(stretch=64)
    assert estimate.ignored is None
    probes = np.arange(640, dtype=np.int64)[:, None] % 4
    estimate.observe(probes)
    estimate.observe_changes(np.array([[1], [2], [100], [101]] * 50, np.int64))
    assert estimate.ignored == pytest.approx(0.5, abs=0.01)


def test_where_probes_bring_ever_new_keys_no_change_is_sure_to_be_ignored() -> None:
    estimate = MissProbability(stretch=64)
    estimate.observe(np.arange(640, dtype=np.int64)[:, None])
    estimate.observe_changes(np.arange(10_000, 10_200, dtype=np.int64)[:, None])
    assert estimate.ignored == pytest.approx(0.0, abs=0.02)
