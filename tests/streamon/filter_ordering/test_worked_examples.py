"""The worked examples of Babu 2005, chapter 4, to the number."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.filter_ordering.known_filters import as_profiled, evaluated, mean_cost
from minidsms.elements import BoolArray
from minidsms.streamon.filter_ordering.a_greedy import AGreedy
from minidsms.streamon.filter_ordering.independent import Independent
from minidsms.streamon.filter_ordering.local_swaps import LocalSwaps
from minidsms.streamon.filter_ordering.optimal import Optimal, best_order

TABLES = ({1, 2, 3, 4}, {1, 2, 3, 6, 7}, {1, 3, 5, 6, 7}, {1, 2, 7})
"""T1 to T4 of figure 4.2, as far as figure 4.3 gives them away; 3 and 6 are such that example 4.3.3 holds."""
INPUT = (1, 2, 1, 4, 7, 2, 5, 4)


def dropped_by(values: tuple[int, ...]) -> BoolArray:
    """(m, 4), True where the table of the filter does not contain the value."""
    return np.array([[value not in table for table in TABLES] for value in values])


def probes(order: tuple[int, ...]) -> int:
    return int(evaluated(dropped_by(INPUT), order).sum())


def profiled(algorithm: AGreedy, values: tuple[int, ...]) -> tuple[int, ...] | None:
    """Profile those of the values that are dropped, all times being 1."""
    drops = dropped_by(values)
    return algorithm.observe(drops[drops.any(axis=1)], np.ones(4))


def test_4_2_1_three_orders_take_20_18_and_16_probes() -> None:
    assert probes((0, 1, 2, 3)) == 20
    assert probes((2, 1, 3, 0)) == 18
    assert probes((2, 0, 1, 3)) == 16
    assert probes(best_order(dropped_by(INPUT).astype(np.uint8), np.ones(4))) == 16


def test_4_3_1_the_profile_window_holds_the_dropped_tuples() -> None:
    algorithm = AGreedy(4, window=6)
    profiled(algorithm, INPUT)
    assert algorithm.window.size == 6
    assert algorithm.window.bits.tolist() == [
        [0, 0, 1, 0],
        [0, 1, 1, 1],
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [1, 1, 0, 1],
        [0, 1, 1, 1],
    ]


def test_4_3_2_the_greedy_order_and_its_matrix_view() -> None:
    algorithm = AGreedy(4, window=6)
    assert profiled(algorithm, INPUT) == (2, 0, 1, 3)
    assert np.triu(algorithm.view.counts).tolist() == [[4, 2, 3, 3], [0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_4_3_3_a_violation_at_the_first_position_is_mended_by_inserting_and_shifting() -> None:
    algorithm = AGreedy(4, window=6)
    profiled(algorithm, INPUT)
    assert profiled(algorithm, (3, 6)) == (3, 2, 0, 1)
    assert algorithm.window.bits.tolist()[:2] == dropped_by((3, 6)).astype(int).tolist()
    assert np.triu(algorithm.view.counts).tolist() == [[4, 2, 3, 2], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("n", [4, 10, 20])
def test_4_5_1_independent_misses_what_the_last_filter_adds(n: int) -> None:
    values = np.arange(1, 101)
    drops = np.repeat((values >= 50)[:, None], n, axis=1)
    drops[:, -1] = values < 50
    independent, greedy = Independent(n, window=100, alpha=1.0), AGreedy(n, window=100, alpha=1.0)
    for algorithm in (independent, greedy):
        for _ in range(2):
            algorithm.observe(drops, np.ones(n))
    assert mean_cost(drops, np.ones(n), independent.order) == pytest.approx(0.49 * n + 0.51)
    assert mean_cost(drops, np.ones(n), greedy.order) == pytest.approx(1.49)
    assert greedy.order[1] == n - 1


@pytest.mark.parametrize("n", [4, 10, 20])
def test_4_6_1_local_swaps_is_stuck_where_a_greedy_is_not(n: int) -> None:
    slice_of = np.arange(100) * n // 100
    drops = slice_of[:, None] == np.arange(n)
    swaps, greedy = LocalSwaps(n, window=100), AGreedy(n, window=100)
    changed = drops.copy()
    changed[:, -1] = slice_of != n - 2
    # In this sequence every part of the window is as the whole; the n-th filter has changed before anybody looked.
    shuffled = np.arange(100).reshape(n, -1).T.ravel() if 100 % n == 0 else np.arange(100)
    for algorithm in (swaps, greedy):
        # An order that satisfies both invariants before the change, and a window without a judgement of part of it.
        algorithm.observe(drops[shuffled], np.ones(n))
        algorithm.adopt(range(n))
    for _ in range(2):
        for rows in np.array_split(shuffled, 100 // n):
            swaps.observe(*as_profiled(changed[rows], np.ones(n), swaps))
        greedy.observe(changed[shuffled], np.ones(n))
    assert greedy.order[:2] == (n - 1, n - 2)
    assert mean_cost(changed, np.ones(n), greedy.order) == pytest.approx(1 + 1 / n)
    assert swaps.order == tuple(range(n))
    assert mean_cost(changed, np.ones(n), swaps.order) == pytest.approx((n + 1) / 2)


def test_optimal_finds_what_greedy_cannot() -> None:
    # Two halves of the tuples, each dropped by a filter of its own; a third drops just over half, in both halves.
    values = np.arange(100)
    drops = np.stack([values < 50, values >= 50, (values % 50) < 26], axis=1)
    greedy, optimal = AGreedy(3, window=100, alpha=1.0), Optimal(3, window=100)
    for algorithm in (greedy, optimal):
        algorithm.observe(drops, np.ones(3))
    assert mean_cost(drops, np.ones(3), greedy.order) == pytest.approx(1 + 0.48 + 0.24)
    assert mean_cost(drops, np.ones(3), optimal.order) == pytest.approx(1.5)
