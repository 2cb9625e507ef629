"""SemiJoin against a twin that looks every left row up afresh at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from minidsms.elements import Schema, Type
from minidsms.operators import semi_join
from minidsms.operators.semi_join import SemiJoin
from minidsms.queues import Queue
from minidsms.synopses import key_counts
from tests.joins.test_two_way import KEYS, S, relation
from tests.operators.harness import (
    Element,
    Netted,
    Row,
    contents,
    differences,
    feed,
    feed_in_turn,
    queue,
    random_cuts,
    run_in_order,
    take_step,
)


def twin(
    left: Sequence[Element],
    right: Sequence[Element],
    lkeys: Sequence[int],
    rkeys: Sequence[int],
    anti: bool,
) -> Netted:
    """Left rows by the definition, and the differences from instant to instant."""
    lstates, rstates = contents(left), contents(right)
    l: Counter[Row] = Counter()
    r: Counter[Row] = Counter()
    states = {}
    for ts in sorted({*lstates, *rstates}):
        l, r = lstates.get(ts, l), rstates.get(ts, r)
        keys = {k for row in r if None not in (k := tuple(row[c] for c in rkeys))}
        states[ts] = Counter({row: m for row, m in l.items() if (tuple(row[c] for c in lkeys) in keys) != anti})
    return differences(states)


def operator(keys: tuple[tuple[int, ...], tuple[int, ...]], anti: bool, fifo: bool) -> SemiJoin:
    return SemiJoin(queue(S), queue(S), *keys, anti, fifo)


@pytest.mark.parametrize("anti", [True, False])
@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_semi_join_keeps_the_rows_with_a_partner_at_every_instant(
    anti: bool, fifo: bool, keys: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    left, right = relation(fifo, seed), relation(seed == 2, seed + 100, n=30, keys=8)
    answer = feed(operator(keys, anti, fifo), [left, right], random_cuts(seed, 80))
    assert answer == twin(left, right, *keys, anti)


@pytest.mark.parametrize("anti", [True, False])
@pytest.mark.parametrize("fifo", [True, False])
def test_slices_buffers_and_full_queues_do_not_change_the_answer(
    anti: bool, fifo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ((0,), (0,))
    left, right = relation(fifo, 7, 80, 3), relation(False, 8, 40, 3)
    expected = run_in_order(operator(keys, anti, fifo), [left, right])
    assert feed(operator(keys, anti, fifo), [left, right], range(1, 100)) == twin(left, right, *keys, anti)
    for rows in (1, 2, 5):
        monkeypatch.setattr(semi_join, "_ROWS", rows)
        monkeypatch.setattr(key_counts, "_PART", 3 * rows)
        for room in (1, 1000):
            assert run_in_order(operator(keys, anti, fifo), [left, right], room=room, budget=6) == expected


def test_a_partner_replaced_at_one_instant_disturbs_nothing() -> None:
    left: list[Element] = [(1, 1, (1, 0, 0.0))]
    right: list[Element] = [(1, 1, (1, 5, 0.0)), (2, -1, (1, 5, 0.0)), (2, 1, (1, 6, 0.0))]
    for anti in (True, False):
        assert [e[0] for e in run_in_order(operator(((0,), (0,)), anti, True), [left, right])] == ([] if anti else [1])


def test_a_left_row_that_leaves_as_its_key_toggles_is_put_out_once() -> None:
    left: list[Element] = [(1, 1, (1, 0, 0.0)), (2, -1, (1, 0, 0.0))]
    right: list[Element] = [(1, 1, (1, 5, 0.0)), (2, -1, (1, 5, 0.0))]
    for fifo in (True, False):
        output = run_in_order(operator(((0,), (0,)), False, fifo), [left, right])
        assert [e[:2] for e in output] == [(1, 1), (2, -1)]
        assert run_in_order(operator(((0,), (0,)), True, fifo), [left, right]) == []


@pytest.mark.parametrize("keys", [((0,), (0,)), ((0, 1), (0, 1))])
def test_many_keys_make_the_table_grow_and_its_death_makes_it_shrink(keys: Any) -> None:
    n = 5000
    right: list[Element] = [(1, 1, (i, i % 7, 0.0)) for i in range(n)] + [
        (3, -1, (i, i % 7, 0.0)) for i in range(n - 1)
    ]
    left: list[Element] = [(2, 1, (i, i % 7, 0.0)) for i in range(0, 2 * n, 7)]
    right += [(4, 1, (n, 0, 1.0))]
    op = operator(keys, False, True)
    assert feed(op, [left, right], [1, 2, 3]) == twin(left, right, *keys, False)
    assert op.describe().figures["right_keys"] == 2
    assert op.synopses()[1].nbytes < 20_000


def test_dead_keys_are_freed() -> None:
    op = operator(((0,), (0,)), False, True)
    op.outputs.append(Queue(op.schema, 1 << 30))
    sizes = []
    for step in range(80):
        keys = range(step * 100, step * 100 + 100)
        items: list[Element] = [(step, -1, (k - 100, 0, 0.0)) for k in keys if step] + [
            (step, 1, (k, 0, 0.0)) for k in keys
        ]
        take_step(op, items, step)
        sizes.append(op.describe().figures["bytes"])
    assert op.describe().figures["right_keys"] == 100
    assert sizes[-1] == sizes[5]


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("anti", [True, False])
@pytest.mark.parametrize("keys", [(0,), (0, 1), ()])
def test_state_given_as_arrays_and_taken_back_continues_alike(fifo: bool, anti: bool, keys: tuple[int, ...]) -> None:
    left, right = relation(fifo, 41), relation(False, 42)
    first, second = operator((keys, keys), anti, fifo), operator((keys, keys), anti, fifo)
    answer = feed_in_turn(first, second, [left, right], 20)
    assert answer == twin(left, right, keys, keys, anti)


def test_live_codes_are_those_of_rows_and_keys_held() -> None:
    schema = Schema.of(("b", Type.TEXT))
    op = SemiJoin(queue(schema), queue(schema), (0,), (0,), True, False)
    feed(op, [[(1, 1, (7,)), (2, 1, (8,)), (3, -1, (7,))], [(1, 1, (9,))]], [1, 2])
    assert [[c.tolist() for c in s.live_codes()] for s in op.synopses()] == [[[8]], [[9]]]
