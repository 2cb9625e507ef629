"""The kernels of content-based routing beside slow twins."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from minidsms.kernels.content_routing import costs_by_cell, divide, greedy_orders, route_pairs


@pytest.mark.parametrize("n", [1, 7, 1000])
@pytest.mark.parametrize("some", [False, True])
def test_parts_are_a_partition_of_the_rows_in_question(n: int, some: bool) -> None:
    rng = np.random.default_rng(n)
    cells = rng.integers(0, 6, n).astype(np.uint8)
    table = np.array([0, 2, 1, 0, 2, 0], np.uint8)
    rows = np.flatnonzero(rng.random(n) < 0.5) if some else np.arange(n)
    if not len(rows):
        rows = np.arange(1)
    ends, out = np.zeros(4, np.int64), np.empty(len(rows), np.int64)
    divide(cells, table, rows if some else np.zeros(0, np.int64), ends, out)
    for part in range(3):
        assert out[ends[part] : ends[part + 1]].tolist() == rows[table[cells[rows]] == part].tolist()
    assert ends[0] == 0 and ends[3] == len(rows)


def test_pairs_of_buckets_are_a_cell() -> None:
    first, second = np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    out = np.empty(4, np.uint8)
    route_pairs(first, second, 2, np.arange(6, dtype=np.uint8), out)
    assert out.tolist() == [0, 3, 4, 5]


def test_each_cell_has_its_greedy_order() -> None:
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 5, 400)
    drops = (rng.random((400, 4)) < np.linspace(0.1, 0.9, 20).reshape(5, 4)[cells][:, rng.permutation(4)]).astype(
        np.uint8
    )
    costs = np.array([1.0, 2.0, 0.5, 1.0])
    usual = np.array([3, 1, 0, 2])
    known = np.array([True, True, True, True, False])
    orders = np.empty((5, 4), np.int64)
    greedy_orders(drops, cells, known, costs, usual, np.ones(400, np.bool_), np.empty((5, 4), np.int64), orders)
    for cell in range(4):
        left = drops[cells == cell]
        rest = usual.tolist()
        for place in range(4):
            # The first of those that drop most per cost, in the usual order.
            best = max(rest, key=lambda f: left[:, f].sum() / costs[f])
            assert orders[cell, place] == best
            rest.remove(best)
            left = left[left[:, best] == 0]
    assert orders[4].tolist() == usual.tolist()


def test_costs_by_cell_are_those_of_evaluating_tuple_by_tuple() -> None:
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 3, 200)
    drops = (rng.random((200, 3)) < 0.4).astype(np.uint8)
    costs = np.array([1.0, 3.0, 10.0])
    orders = np.array(list(permutations(range(3))))
    out = np.zeros((6, 3))
    costs_by_cell(drops, cells, costs, orders, out)
    for o, order in enumerate(orders.tolist()):
        for cell in range(3):
            spent = 0.0
            for row in drops[cells == cell].tolist():
                for f in order:
                    spent += costs[f]
                    if row[f]:
                        break
            assert out[o, cell] == pytest.approx(spent)
