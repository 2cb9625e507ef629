"""Progress charts and chains: the lower envelope of a path, and what stands for it where paths part and meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.scheduling_simulation import SimulatedOperator, pipeline
from minidsms.scheduler.chains import LARGEST, LEAST, chain_slopes
from minidsms.scheduler.statistics import Cost
from minidsms.scheduler.wiring import Wiring

costs = st.lists(
    st.builds(Cost, st.one_of(st.just(1.0), st.floats(0.05, 3.0)), st.floats(1.0, 1000.0)),
    min_size=1,
    max_size=8,
)


@dataclass(frozen=True)
class Chain:
    """The operators [start, stop) of a path, and how fast they reduce what is queued: elements per nanosecond."""

    start: int
    stop: int
    slope: float


def chains_of(path: Sequence[Cost]) -> list[Chain]:
    """The segments of the lower envelope of the path's chart: from each one's end the steepest block that follows, of
    equally steep blocks the longest.
    """
    found: list[Chain] = []
    start = 0
    while start < len(path):
        # An element that arrives here counts as a whole one, which stretches both axes alike.
        time, size, steepest = 0.0, 1.0, Chain(start, start, 0.0)
        for stop, cost in enumerate(path[start:], start + 1):
            time += size * cost.time_ns
            size = min(size * max(cost.selectivity, LEAST), LARGEST) if stop < len(path) else 0.0
            if steepest.stop == start or (1.0 - size) / time >= steepest.slope:
                steepest = Chain(start, stop, (1.0 - size) / time)
        found.append(steepest)
        start = steepest.stop
    return found


def blocks(path: list[Cost]) -> list[tuple[int, int]]:
    return [(chain.start, chain.stop) for chain in chains_of(path)]


def test_an_operator_that_reduces_at_once_is_a_chain_of_its_own() -> None:
    assert blocks([Cost(0.2, 1.0), Cost(0.0, 5.0)]) == [(0, 1), (1, 2)]


def test_a_slow_start_belongs_to_the_fast_end_behind_it() -> None:
    (chain,) = chains_of([Cost(0.9, 1.0), Cost(1.0, 1 / 0.9), Cost(0.0, 1 / 0.9)])
    assert (chain.start, chain.stop, chain.slope) == (0, 3, pytest.approx(1 / 3))


def test_a_window_that_doubles_its_input_is_drawn_through() -> None:
    assert blocks([Cost(2.0, 1.0), Cost(0.5, 1.0), Cost(0.0, 1.0)]) == [(0, 3)]


def test_what_follows_an_operator_that_lets_nothing_pass_has_its_own_slope() -> None:
    first, second = chains_of([Cost(0.0, 1.0), Cost(0.0, 4.0)])
    assert (first.slope, second.slope) == (pytest.approx(1.0, rel=1e-5), 0.25)


@given(costs)
def test_chains_cover_the_path_and_their_slopes_fall(path: list[Cost]) -> None:
    chains = chains_of(path)
    assert [chains[0].start, *(chain.stop for chain in chains)] == [*(chain.start for chain in chains), len(path)]
    assert all(steep.slope >= flat.slope * (1 - 1e-9) for steep, flat in pairwise(chains))


@given(costs)
def test_on_a_path_the_chains_of_the_plan_are_those_of_its_chart(path: list[Cost]) -> None:
    operators = pipeline([(1.0, 1.0)] * len(path))
    expected = [0.0] * len(path)
    for chain in chains_of(path):
        expected[chain.start : chain.stop] = [chain.slope] * (chain.stop - chain.start)
    assert chain_slopes(Wiring(operators), path) == pytest.approx(expected)


def test_an_operator_with_two_readers_counts_what_it_hands_on_twice() -> None:
    first, left, right = (SimulatedOperator(0.5, 1.0) for _ in range(3))
    left.reads(first)
    right.reads(first)
    # Alone it reduces nothing; together with both readers, one element in two units of time.
    slopes = chain_slopes(Wiring([first, left, right]), [Cost(0.5, 1.0), Cost(0.0, 1.0), Cost(0.0, 1.0)])
    assert slopes == pytest.approx([0.5, 0.5, 0.5])


def test_of_two_branches_the_steep_one_joins_the_chain_and_the_flat_one_stands_alone() -> None:
    first, steep, flat = (SimulatedOperator(0.5, 1.0) for _ in range(3))
    steep.reads(first)
    flat.reads(first)
    slopes = chain_slopes(Wiring([first, steep, flat]), [Cost(0.5, 1.0), Cost(0.0, 1.0), Cost(0.0, 100.0)])
    assert slopes == pytest.approx([1 / 3, 1 / 3, 0.01])


def test_an_operator_on_two_paths_takes_the_steeper_chain() -> None:
    fast, slow, join = SimulatedOperator(1.0, 1.0), SimulatedOperator(1.0, 1.0), SimulatedOperator(0.0, 1.0, inputs=2)
    join.reads(fast, 0).reads(slow, 1)
    slopes = chain_slopes(Wiring([fast, slow, join]), [Cost(1.0, 1.0), Cost(1.0, 9.0), Cost(0.0, 1.0)])
    assert slopes == pytest.approx([0.5, 0.1, 0.5])


def test_paths_that_part_and_meet_thirty_times_have_a_chain() -> None:
    operators = [SimulatedOperator(1.0, 1.0)]
    for _ in range(30):
        left, right = (SimulatedOperator(0.5, 1.0).reads(operators[-1]) for _ in range(2))
        operators += [left, right, SimulatedOperator(1.0, 1.0, inputs=2).reads(left, 0).reads(right, 1)]
    slopes = chain_slopes(Wiring(operators), [Cost(0.5, 1.0)] * len(operators))
    assert all(0.0 < slope < float("inf") for slope in slopes)


def test_selectivities_that_multiply_beyond_all_bounds_leave_the_slopes_finite() -> None:
    slopes = chain_slopes(Wiring(pipeline([(1.0, 1.0)] * 400)), [Cost(1000.0, 1.0)] * 400)
    assert all(abs(slope) < float("inf") for slope in slopes)
