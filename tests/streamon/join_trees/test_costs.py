"""What trees cost: the best one is the best of all, and shapes of the thesis come out."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Tree
from minidsms.joins.tree import all_trees, flat
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.streamon.join_trees.costs import ALIKE, MEASURED, TreeCosts
from minidsms.streamon.join_trees.reoptimizer import LEAST_GAIN
from minidsms.streamon.join_trees.sizes import members
from tests.joins.made import graph


def random_sizes(n: int, rng: Random) -> dict[int, float]:
    return {mask: 10 ** rng.uniform(0, 4) for mask in range(1, 1 << n)}


@pytest.mark.parametrize("seed", range(30))
def test_best_tree_is_the_cheapest_of_all(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(3, 5)
    edges = {(i, rng.randrange(i)) for i in range(1, n)} | {(n - 1, 0)}
    joined = graph(n, *edges)
    rates = [rng.random() for _ in range(n)]
    rates = [rate / sum(rates) for rate in rates]
    sizes = random_sizes(n, rng)
    for unit in (MEASURED, ALIKE):
        costs = TreeCosts(joined, sizes.__getitem__, rates, bool(seed % 2), unit)
        orders = joined.default_orders()
        for binary in (False, True):
            tree, cost = costs.best(orders, binary)
            every = {other: costs.of(other, orders) for other in all_trees(joined, binary)}
            assert cost == pytest.approx(min(every.values())) and cost == pytest.approx(every[tree])


@pytest.mark.parametrize(
    "joined",
    [
        graph(6, *((i, i + 1) for i in range(5))),
        graph(6, *((i, (i + 1) % 6) for i in range(6))),
        JoinGraph(6, [((i, 0), (i + 1, 0)) for i in range(5)]),
    ],
    ids=["chain", "cycle", "one key"],
)
def test_best_tree_of_six_inputs_is_the_cheapest_of_all(joined: JoinGraph) -> None:
    sizes, orders = random_sizes(6, Random(6)), joined.default_orders()
    costs = TreeCosts(joined, sizes.__getitem__, [1 / 6] * 6, False, MEASURED)
    tree, cost = costs.best(orders, False)
    every = {other: costs.of(other, orders) for other in all_trees(joined)}
    assert cost == pytest.approx(min(every.values())) and cost == pytest.approx(every[tree])


def best(rates: list[float], joins: dict[int, float], saving: float = 0.0) -> Tree:
    joined = graph(3, (0, 1), (1, 2))
    sizes = {1: 1000.0, 2: 1000.0, 4: 1000.0, 5: 1e6, **joins}
    costs = TreeCosts(joined, sizes.__getitem__, rates, False, MEASURED, saving)
    tree, cost = costs.best(joined.default_orders(), False)
    whole = flat(3)
    return tree if cost < (1 - LEAST_GAIN) * costs.of(whole, joined.default_orders()) else whole


def test_a_fast_input_gets_the_join_of_the_slow_ones_kept() -> None:
    """Figure 5.6: where T is much faster than R and S, R x S is kept, whose join T would compute again and again."""
    joins = {0b011: 5_000.0, 0b110: 5_000.0, 0b111: 100.0}
    assert best([0.01, 0.01, 0.98], joins) == ((0, 1), 2)
    assert best([0.98, 0.01, 0.01], joins) == (0, (1, 2))


def test_nothing_is_kept_where_joins_are_small() -> None:
    joins = {0b011: 10.0, 0b110: 10.0, 0b111: 1.0}
    assert best([1 / 3] * 3, joins) == flat(3)


def test_nothing_is_kept_where_caches_save_as_much() -> None:
    joins = {0b011: 5_000.0, 0b110: 5_000.0, 0b111: 100.0}
    assert best([0.01, 0.01, 0.98], joins, saving=0.9) == flat(3)


def test_members_are_the_inputs_of_a_set() -> None:
    assert list(members(0b10110)) == [1, 2, 4]


@pytest.mark.parametrize("seed", range(20))
def test_best_orders_are_the_cheapest_of_all_over_patterns_and_over_bits(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(3, 5)
    joined = graph(n, *((i, j) for i in range(n) for j in range(i) if j == i - 1 or rng.random() < 0.7))
    sizes, rates = random_sizes(n, rng), [1 / n] * n
    bits = tuple(Bits(tuple(rng.randint(0, 4) for _ in joined.columns(j))) for j in range(n))
    for unit in (replace(MEASURED, linked=0.0), ALIKE):
        for known in ({"by_patterns": True}, {"bits": bits}):
            if unit is ALIKE and "by_patterns" in known:
                continue  # links, which all pipelines share, would count
            costs = TreeCosts(joined, sizes.__getitem__, rates, False, unit, **known)  # type: ignore[arg-type]
            orders, found = joined.default_orders(), costs.orders()
            assert joined.is_legal(found)
            for i in range(n):
                every = [costs.of(flat(n), (*orders[:i], each, *orders[i + 1 :])) for each in joined.legal_orders(i)]
                own = costs.of(flat(n), (*orders[:i], found[i], *orders[i + 1 :]))
                assert own == pytest.approx(min(every))
