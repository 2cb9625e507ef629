"""The detector of a bound that no value may exceed."""

from __future__ import annotations

import numpy as np

from minidsms.streamon.change_detection.bound import Bound
from minidsms.streamon.change_detection.contracts import NONE, Tuning


def told(made: Bound, values: list[int], first: int) -> list[int]:
    """Changepoints behind items of one value each, which are numbered from `first` on."""
    items = np.array(values, np.int64)[:, None]
    since = np.arange(first, first + len(items))[:, None]
    return made.observe(items, np.ones_like(items), since, since[:, 0] + 1)[:, 0].tolist()


def test_one_value_above_the_bound_tells_a_change_where_it_is_and_no_other_does() -> None:
    made = Bound(Tuning(1, threshold=0.0, training=40))
    assert set(told(made, [0, 3, 1, 0, 7] * 200, 0)) == {NONE}
    assert set(told(made, [7] * 999, 1000)) == {NONE}
    assert told(made, [8, 9], 1999) == [1999, NONE], "behind the change it learns again"
    assert set(told(made, [9] * 200, 2001)) == {NONE}
    assert told(made, [10], 2201) == [2201]


def test_values_that_fall_are_no_change_and_tighten_the_bound_once_a_window_has_passed() -> None:
    made = Bound(Tuning(1, threshold=0.5, training=40))
    told(made, [20] * 40, 0)
    assert made.states["value"][0] == 30
    assert set(told(made, [2] * 39, 40)) == {NONE}
    assert made.states["value"][0] == 30
    assert told(made, [2], 79) == [NONE]
    assert made.states["value"][0] == 3


def test_what_exceeded_a_bound_again_and_again_is_remembered_for_longer_than_a_window() -> None:
    made, values = Bound(Tuning(1, threshold=0.25, training=40)), ([0] * 99 + [50]) * 20
    changes = [n for n, at in enumerate(told(made, values, 0)) if at != NONE]
    assert changes[:2] == [99, 199] and changes[-1] < 1000
