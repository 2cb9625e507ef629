"""Who comes for a row that was discarded is counted as long as that row would have stood in its window."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.synopses.k_mon_lost import LostKeys


def keys(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_keys_are_known_until_their_rows_would_have_left() -> None:
    lost = LostKeys([80])
    for at in range(400):
        lost.add(0, keys(at), keys(at))
        lost.expire(0, at - 79)
        # A filter takes rows of ten instants, and goes with the last of them.
        assert lost.count(0, keys(*range(max(0, at - 79), at + 1))) == min(at + 1, 80)
        assert lost.count(0, keys(*range(max(0, at - 89)))) == 0
    assert lost.nbytes < 11 * 3200


def test_without_a_window_all_are_known() -> None:
    lost = LostKeys([None, None])
    lost.add(1, np.arange(500), np.arange(500))
    lost.expire(1, -(2**62))
    assert lost.count(1, np.arange(1000)) == 500
    assert lost.count(0, np.arange(1000)) == 0


@pytest.mark.parametrize("rows", [5_000, 100_000])
def test_of_many_keys_one_in_eight_tells_how_many_there_are(rows: int) -> None:
    lost = LostKeys([rows])
    rng = np.random.default_rng(1)
    gone = rng.integers(0, 2**60, rows)
    for first in range(0, rows, 1000):
        lost.add(0, gone[first : first + 1000], np.arange(first, first + 1000))
    asked = np.concatenate([gone[::10], rng.integers(0, 2**60, 1000)])
    assert lost.count(0, asked) == pytest.approx(rows / 10, rel=0.25)


def test_the_state_is_taken_back() -> None:
    lost, other = LostKeys([100, None]), LostKeys([100, None])
    for at in range(0, 90, 3):
        lost.add(0, keys(at, -at), keys(at, at))
        lost.add(1, keys(at), keys(at))
    other.restore(lost.arrays())
    for at in (90, 93, 150):
        for one in (lost, other):
            one.add(0, keys(at), keys(at))
            one.expire(0, at - 99)
        for side in (0, 1):
            assert other.count(side, np.arange(-200, 200)) == lost.count(side, np.arange(-200, 200))
    assert other.nbytes == lost.nbytes
