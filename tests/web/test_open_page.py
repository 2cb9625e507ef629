"""What is made of the measurements of an engine that is looked at."""

import numpy as np
import pytest

from tests.long.open_page import _TURNS, lost, median


def test_what_a_turn_loses_is_told_beside_its_neighbours() -> None:
    told = {"Chromium": [960, 0.2, 0.25, 0.003, 0.002, 0.03]}
    turns = np.array([told.get(kind, [1000, 0.2, 0.25, 0.001, 0, 0]) for kind in _TURNS * 5])
    turns[:, :2] *= np.linspace(1, 2, len(turns))[:, None]  # what else the machine does is in both
    found = lost(turns)
    assert found["Chromium"].mean(axis=0) == pytest.approx([0.01, 0.002, 0.012, 0.002, 0.03])
    assert found["nobody"].max() == pytest.approx(0)
    assert len(found["Chromium"]) == 3, "the first two are not counted"


def test_a_median_is_told_with_its_interval() -> None:
    values = np.random.default_rng(1).normal(3, 1, 200)
    middle, low, high = median(values)
    assert low < middle < high
    assert 2.6 < low < 3 < high < 3.4
