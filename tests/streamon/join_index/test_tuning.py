"""Who is assessed when, and which rows are stored anew."""

from __future__ import annotations

import pytest

from minidsms.streamon.join_index.selection import UnitCosts, Workload
from minidsms.streamon.join_index.tuning import Tuning, migrating

EVERYBODY, NOBODY = frozenset({0, 1, 2}), frozenset[int]()
STEADY = [[100, 100, 100]] * 6


def assessed(schedule: str, windows: list[list[int]]) -> list[frozenset[int]]:
    tuning = Tuning(schedule, 3)
    first = tuning.assessed
    complete = [tuning.end(requests) for requests in windows]
    assert complete[0] == first
    return complete


def test_continuous_assesses_everybody_and_periodic_every_second_window() -> None:
    assert assessed("continuous", STEADY) == [EVERYBODY] * 6
    assert assessed("periodic", STEADY) == [EVERYBODY, NOBODY] * 3


def test_triggered_assesses_who_has_changed_most_and_never_who_does_not() -> None:
    assert assessed("triggered", STEADY) == [EVERYBODY] + [NOBODY] * 5
    windows = [[100, 100, 100], [100, 150, 300], [100, 150, 300], [100, 150, 300]]
    assert assessed("triggered", windows) == [EVERYBODY, NOBODY, {2}, NOBODY]


def test_hybrid_assesses_who_has_changed_and_everybody_in_turn() -> None:
    assert assessed("hybrid", STEADY) == [EVERYBODY, NOBODY, {0}, NOBODY, {1}, NOBODY]
    windows = [[100, 100, 100], [100, 100, 300], *STEADY]
    complete = assessed("hybrid", windows)
    assert complete[2] == {2} and complete[4] == {0}


PARTITIONS = {7: ((2, 0), 1000, 1.0), 6: ((0, 2), 1000, 0.5), 5: ((0, 2), 1000, 0.001)}


@pytest.mark.parametrize(
    ("method", "moved"), [("all", [6, 5]), ("nothing", []), ("partial", [6])], ids=["all", "nothing", "partial"]
)
def test_rows_move_where_what_is_still_asked_of_them_pays_for_it(method: str, moved: list[int]) -> None:
    asked = Workload(0.0, 1000.0, 1000.0, {1: 1.0})
    assert migrating(method, PARTITIONS, (2, 0), asked, UnitCosts()) == moved
    nothing_asked = Workload(0.0, 0.0, 1000.0, {1: 1.0})
    assert migrating("partial", PARTITIONS, (2, 0), nothing_asked, UnitCosts()) == []
