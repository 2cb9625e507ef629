"""What holds after every profile tuple, over generated statistics."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from experiments.filter_ordering.known_filters import arbitrary_drops, as_profiled, mean_cost
from minidsms.elements import BoolArray, Int64Array
from minidsms.streamon.contracts import Float64Array, OrderingAlgorithm
from minidsms.streamon.filter_ordering.a_greedy import AGreedy
from minidsms.streamon.filter_ordering.independent import Independent
from minidsms.streamon.filter_ordering.local_swaps import LocalSwaps
from minidsms.streamon.filter_ordering.matrix_view import counted
from minidsms.streamon.filter_ordering.optimal import Optimal, best_order
from minidsms.streamon.filter_ordering.static import Static
from minidsms.streamon.filter_ordering.sweep import Sweep
from tests.seeds import seeds

ALGORITHMS = (AGreedy, Sweep, Independent, LocalSwaps, Static, Optimal)
ADAPTIVE = (AGreedy, Sweep, Independent, LocalSwaps)


def is_greedy(counts: Int64Array, times: Float64Array, alpha: float = 1.0) -> bool:
    """Does every position hold the filter that drops most per time, up to alpha (equations 4.2 and 4.4)?

    times: (n,) by position.
    """
    rates = counts / times
    return all(rates[i, i] >= alpha * rates[i, i:].max() * (1 - 1e-12) for i in range(len(times)))


def changing_drops(rng: np.random.Generator, n: int, tuples: int) -> BoolArray:
    """Profile tuples whose statistics change half way."""
    return np.concatenate([arbitrary_drops(n, tuples // 2, rng) for _ in range(2)])


def calls(
    rng: np.random.Generator, drops: BoolArray, largest: int, algorithm: OrderingAlgorithm
) -> Iterator[tuple[BoolArray, Float64Array]]:
    """Drops in calls of some rows, times that differ from call to call, as the algorithm wants to know them."""
    n = drops.shape[1]
    base = rng.choice([1.0, 1.0, 10.0, 300.0], n)
    start = 0
    while start < len(drops):
        stop = min(start + int(rng.integers(1, largest + 1)), len(drops))
        yield as_profiled(drops[start:stop], base * rng.uniform(0.8, 1.2, n), algorithm)
        start = stop


@pytest.mark.parametrize("seed", seeds(12))
def test_the_matrix_view_equals_a_recount_after_every_profile_tuple(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    for algorithm in (AGreedy(n, window=60), Independent(n, window=60), LocalSwaps(n, window=60)):
        for drops, costs in calls(rng, changing_drops(rng, n, 240), 1, algorithm):
            algorithm.observe(drops, costs)
            full = counted(algorithm.window.bits[: algorithm.window.size], algorithm.order)
            kept = np.triu(algorithm.view.counts)
            if isinstance(algorithm, Independent):
                full, kept = full[0], kept[0]
            elif isinstance(algorithm, LocalSwaps):
                full = np.triu(full) - np.triu(full, 2)
            assert (kept == np.triu(full)).all() if full.ndim == 2 else (kept == full).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_view_of_sweep_equals_a_recount_of_its_stage(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    sweep = Sweep(n, window=60)
    of_stage: list[BoolArray] = []
    for drops, costs in calls(rng, changing_drops(rng, n, 400), 1, sweep):
        of_stage.append(drops)
        sweep.observe(drops, costs)
        if sweep.seen == 0:
            of_stage = []
            assert not sweep.view.counts.any()
            continue
        full = counted(np.concatenate(of_stage).astype(np.uint8), sweep.order)
        j = sweep.position
        assert sweep.view.counts.diagonal()[: j + 1].tolist() == full.diagonal()[: j + 1].tolist()
        assert sweep.view.counts[:j, j].tolist() == full[:j, j].tolist()


@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("alpha", [1.0, 0.9, 0.6])
def test_the_order_of_a_greedy_is_greedy_up_to_alpha_and_within_its_bound(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    algorithm = AGreedy(n, window=80, alpha=alpha)
    for drops, costs in calls(rng, changing_drops(rng, n, 320), 7, algorithm):
        algorithm.observe(drops, costs)
        if algorithm.window.size < algorithm.window.enough:
            continue
        held, times = algorithm.window.bits[: algorithm.window.size], algorithm.window.averages
        assert is_greedy(counted(held, algorithm.order), times[list(algorithm.order)], alpha)
        cost, least = (algorithm.expected_cost(order) for order in (algorithm.order, best_order(held, times)))
        assert cost is not None and least is not None
        assert least * (1 - 1e-9) <= cost <= 4 / alpha * least


@pytest.mark.parametrize("seed", range(8))
def test_independent_sorts_by_unconditional_drop_rate_and_local_swaps_leaves_no_swap_that_pays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    for algorithm in (Independent(n, window=80), LocalSwaps(n, window=80)):
        for drops, costs in calls(rng, changing_drops(rng, n, 320), 7, algorithm):
            algorithm.observe(drops, costs)
            if algorithm.window.size < algorithm.window.enough:
                continue
            counts = counted(algorithm.window.bits[: algorithm.window.size], algorithm.order)
            rates = counts / algorithm.window.averages[list(algorithm.order)]
            if isinstance(algorithm, Independent):
                assert all(rates[0, i] >= 0.9 * rates[0, i:].max() * (1 - 1e-12) for i in range(n))
            else:
                assert all(rates[i, i] >= 0.9 * rates[i, i + 1] * (1 - 1e-12) for i in range(n - 1))


@pytest.mark.parametrize("seed", range(8))
def test_sweep_comes_to_a_greedy_order_where_statistics_stay(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    # Every 60 profile tuples are the same, so that every window says the same, and all of the truth.
    drops, times = arbitrary_drops(n, 60, rng), rng.choice([1.0, 10.0], n)
    sweep = Sweep(n, window=60)
    sweep.window.enough = 60
    for _ in range(4 * n * n):
        sweep.observe(*as_profiled(drops, times, sweep))
    assert is_greedy(counted(drops.astype(np.uint8), sweep.order), times[list(sweep.order)], 0.9)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_order_is_the_cheapest_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    drops, times = arbitrary_drops(n, 50, rng), rng.choice([1.0, 10.0, 50.0], n)
    best = mean_cost(drops, times, best_order(drops.astype(np.uint8), times))
    every = (mean_cost(drops, times, order) for order in itertools.permutations(range(n)))
    assert best == pytest.approx(min(every))


@pytest.mark.parametrize("algorithm_class", ALGORITHMS)
@pytest.mark.parametrize("seed", range(4))
def test_profile_tuples_in_bulk_give_the_order_that_they_give_one_by_one(algorithm_class: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    in_bulk, singly = algorithm_class(n, window=70), algorithm_class(n, window=70)
    for drops, costs in calls(rng, changing_drops(rng, n, 400), 40, in_bulk):
        wanted, before, changed = in_bulk.wanted(), in_bulk.order, in_bulk.observe(drops, costs)
        assert changed == (None if in_bulk.order == before else in_bulk.order)
        for row in drops:
            singly.observe(row[None], costs)
            if singly.wanted() != wanted:
                break
        assert in_bulk.order == singly.order
        assert in_bulk.describe() == singly.describe()


@pytest.mark.parametrize("algorithm_class", ALGORITHMS)
def test_an_adopted_order_is_gone_on_from(algorithm_class: type) -> None:
    rng = np.random.default_rng(3)
    algorithm = algorithm_class(5, order=(4, 3, 2, 1, 0), window=70)
    assert algorithm.order == (4, 3, 2, 1, 0)
    for drops, costs in calls(rng, changing_drops(rng, 5, 300), 40, algorithm):
        algorithm.observe(drops, costs)
        algorithm.adopt((1, 0, 3, 2, 4))
        assert algorithm.order == algorithm.describe().order == (1, 0, 3, 2, 4)
        if not isinstance(algorithm, Static | Sweep):
            held = algorithm.window.bits[: algorithm.window.size]
            assert algorithm.describe().drop_rates[0] == held[:, 1].mean()
    with pytest.raises(ValueError, match="no order of 5 filters"):
        algorithm.adopt((0, 1, 2, 3, 3))


@pytest.mark.parametrize("algorithm_class", ADAPTIVE)
def test_the_gain_of_a_change_is_told_from_the_tuples_that_made_it(algorithm_class: type) -> None:
    rng = np.random.default_rng(1)
    algorithm = algorithm_class(6, window=200, alpha=1.0)
    gains = []
    # The last filter alone drops every tuple; the others drop half of them, one by one.
    drops = rng.random((4000, 6)) < 0.5
    drops[:, 5] = True
    for start in range(0, len(drops), 20):
        before = algorithm.order
        if algorithm.observe(*as_profiled(drops[start : start + 20], np.ones(6), algorithm)) is not None:
            costs = [algorithm.expected_cost(order) for order in (before, algorithm.order)]
            gains += [costs[0] - costs[1]] if None not in costs else []
    assert algorithm.order[0] == 5 and gains and max(gains) > 0


def test_times_that_were_not_measured_change_no_average() -> None:
    algorithm = AGreedy(2, window=3)
    drops = np.array([[True, False]])
    algorithm.observe(drops, np.array([2.0, np.nan]))
    algorithm.observe(drops, np.array([4.0, np.nan]))
    assert algorithm.describe().costs == (3.0, None)
    for _ in range(3):
        algorithm.observe(drops, np.array([np.nan, 7.0]))
    assert algorithm.describe().costs == (None, 7.0)
    assert algorithm.window.averages.tolist() == [4.0, 7.0]


def test_the_search_of_all_orders_is_for_few_filters() -> None:
    with pytest.raises(ValueError, match="at most 16 filters, not 17"):
        Optimal(17)
    assert best_order(np.eye(16, dtype=np.uint8), np.arange(16.0, 0, -1)) == tuple(range(15, -1, -1))
