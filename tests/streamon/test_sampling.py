"""When tuples are profiled."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.streamon.pipelined_filters.sampling import BULK, SamplingSchedule


def taken(
    schedule: SamplingSchedule, chunks: list[int], affordable: bool = True, has_changed: bool = False
) -> list[int]:
    """How many tuples of each chunk are profiled."""
    counts = []
    for tuples in chunks:
        rows = schedule.due(tuples, lambda urgency: affordable)
        counts.append(0 if rows is None else len(rows))
        if rows is not None:
            assert (np.diff(rows) >= 0).all() and rows[0] >= 0 and rows[-1] < tuples
            schedule.profiled(has_changed)
    return counts


@pytest.mark.parametrize("rate", [0.01, 0.25, 1.0])
@pytest.mark.parametrize("chunk", [1, 7, 1000, 65_536])
def test_a_given_share_is_kept_to(rate: float, chunk: int) -> None:
    schedule = SamplingSchedule(rate, True, 1000, seed=1)
    chunks = [chunk] * max(20, 4000 // chunk)
    assert abs(sum(taken(schedule, chunks, affordable=False)) - rate * sum(chunks)) <= BULK


def test_a_window_is_profiled_first_and_a_trickle_after_it() -> None:
    counts = taken(SamplingSchedule(0.01, False, 1000, seed=1), [50_000] * 40)
    assert counts[0] >= 1000
    assert sum(counts[1:]) < 0.002 * 39 * 50_000


def test_small_chunks_are_not_emptied_by_the_first_window() -> None:
    counts = taken(SamplingSchedule(0.01, False, 1000, seed=1), [100] * 60)
    assert max(counts) <= 25 and sum(counts[:41]) >= 900
    counts = taken(SamplingSchedule(0.01, False, 1000, seed=1), [1] * 5000)
    assert sum(counts[:400]) <= 100 and sum(counts) >= 900


@pytest.mark.parametrize("chunk", [1, 10, BULK - 1])
def test_what_is_urgent_keeps_to_the_budget_in_chunks_that_cost_less_than_their_profile(chunk: int) -> None:
    schedule = SamplingSchedule(0.01, False, 1000, seed=1)
    assert sum(taken(schedule, [chunk] * 100, affordable=False)) == 0
    asked: list[float] = []
    rows = schedule.due(chunk, lambda urgency: bool(asked.append(urgency)) or True)
    assert rows is not None and len(rows) == chunk, "what could not be afforded before is there to be taken"
    assert asked == [1.0]
    assert taken(SamplingSchedule(0.01, False, 1000, seed=1), [BULK], affordable=False) == [BULK // 4]


def test_a_trickle_that_costs_too_much_stops_and_a_change_is_profiled_all_the_same() -> None:
    schedule = SamplingSchedule(0.01, False, 1000, seed=1)
    taken(schedule, [50_000] * 10)
    assert sum(taken(schedule, [50_000] * 100, affordable=False)) == 0
    schedule.hurry()
    assert taken(schedule, [50_000], affordable=False)[0] >= 1000


def test_changes_that_leave_the_order_make_deaf_for_a_while() -> None:
    schedule = SamplingSchedule(0.01, False, 1000, seed=1)
    bursts = 0
    for _ in range(40):
        schedule.hurry()
        bursts += taken(schedule, [50_000], affordable=False)[0] >= 1000
    assert 2 <= bursts <= 8


def test_chunks_of_a_few_tuples_among_large_ones_are_left_alone() -> None:
    counts = taken(SamplingSchedule(0.01, False, 1000, seed=1), [50_000, 4] * 50)
    assert all(n == 0 for n in counts[1::2])


def test_the_same_seed_samples_the_same_tuples() -> None:
    one, two = (SamplingSchedule(0.5, True, 1000, seed=7).due(1000, lambda urgency: True) for _ in range(2))
    assert one is not None and two is not None and one.tolist() == two.tolist()


ORDER = (0, 1)
