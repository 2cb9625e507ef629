"""What an aggregate knows of its input lets it keep less: the answers are the same on every path."""

from __future__ import annotations

import pytest

from minidsms.operators.aggregate import Aggregate
from minidsms.process.background import Background
from tests.operators.harness import (
    Element,
    batch,
    contents,
    elements,
    feed,
    netted,
    queue,
    random_cuts,
    random_relation,
    random_window,
)
from tests.operators.test_aggregate import ALL, SCHEMA, Texts, check, expected_states, run_in_order, some_rows, spec

CALLS = [c for c in ALL if c.objects is None]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_need_be_kept_to_be_taken_back_where_nothing_leaves(seed: int) -> None:
    items: list[Element] = [(1 + i // 3, 1, row, i) for i, row in enumerate(some_rows(seed, 90))]
    calls = [spec(f, i) for f in ("min", "max") for i in (2, 3, 4, 5)] + [spec("count"), spec("avg", 2)]
    for cuts in ([], random_cuts(seed, 30)):
        operator = Aggregate(queue(SCHEMA), [0], calls, input_fifo=True, texts=Texts(), input_append_only=True)
        check(run_in_order(operator, [items], cuts, append_only=True), expected_states(items, [0], calls), 1)


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("keys", [[0], [0, 1], []])
def test_the_contents_are_what_the_output_leaves(fifo: bool, keys: list[int]) -> None:
    items = random_window(some_rows(3, 80), 3, size=9)
    operator = Aggregate(queue(SCHEMA), keys, CALLS, is_global=not keys, input_fifo=fifo, texts=Texts())
    out = run_in_order(operator, [items], random_cuts(3, 80), until=40)
    shown = netted([(1, sign, row) for _, sign, row in elements([operator.contents()])])
    assert shown == {1: list(contents(out).values())[-1]}


@pytest.mark.parametrize("fifo", [True, False])
def test_a_restored_aggregate_goes_on_as_the_first_one_would(fifo: bool) -> None:
    items = random_window(some_rows(5, 120), 5, size=9)
    first = Aggregate(queue(SCHEMA), [0, 1], CALLS, input_fifo=fifo, texts=Texts())
    second = Aggregate(queue(SCHEMA), [0, 1], CALLS, input_fifo=fifo, texts=Texts())
    at = sum(1 for e in items if e[0] <= 30)
    feed(first, [items[:at]], until=30)
    second.groups.restore(first.groups.arrays())
    assert feed(second, [items[at:]]) == feed(first, [items[at:]])


@pytest.mark.parametrize("until", [0, 7, 30, 70])
def test_a_state_of_deques_is_gone_on_with_where_there_are_stacks_now(until: int) -> None:
    items = random_window(some_rows(6, 120), 6, size=9)
    first, second, third = (Aggregate(queue(SCHEMA), [0], CALLS, input_fifo=True, texts=Texts()) for _ in range(3))
    assert first.groups.records.stacks > 1 and first.groups.arrivals is not None
    first.groups.keep_deques()
    at, end = (sum(1 for e in items if e[0] <= ts) for ts in (until, until + 20))
    out = run_in_order(first, [items[:at]], until=until)
    second.groups.restore(first.groups.arrays())
    assert "stacks" not in second.groups.arrays()
    out += run_in_order(second, [items[at:end]], until=until + 20)
    third.groups.restore(second.groups.arrays())
    assert third.groups.records.stacks == 0
    check(out + run_in_order(third, [items[end:]]), expected_states(items, [0], CALLS), 1)


def test_the_present_rows_are_the_balance_of_all_changes() -> None:
    from minidsms.answers.present_rows import PresentRows

    items = random_window(some_rows(7, 200), 7, size=30)
    present = PresentRows(SCHEMA, Background())
    for start in range(0, 180, 7):
        present.add(batch(items[start : min(start + 7, 180)], SCHEMA))
        if start % 3 == 0:
            shown = netted([(1, sign, row) for _, sign, row in elements([present.rows()])])
            assert shown == {1: list(contents(items[: min(start + 7, 180)]).values())[-1]}


@pytest.mark.parametrize("fifo", [True, False])
def test_distinct_values_outgrow_their_table_in_the_middle_of_a_slice(fifo: bool) -> None:
    rows = [(i % 7, None, i * 7919 % 400, i % 300 / 2, True, 0) for i in range(1500)]
    items = random_window(rows, 1, size=700) if fifo else random_relation(rows, 1, life=400)
    calls = [spec("count", 2, distinct=True), spec("sum", 2, distinct=True), spec("avg", 3, distinct=True)]
    left, expected = list(contents(items).values())[-1], expected_states(items, [0], calls)
    for cuts in ([], random_cuts(1, 2000, 20)):
        operator = Aggregate(queue(SCHEMA), [0], calls, input_fifo=fifo, texts=Texts())
        check(run_in_order(operator, [items], cuts), expected, 1)
        for column, (values, _) in operator.groups.distinct.items():
            assert len(values.pairs) == len({(row[0], row[column]) for row in left if row[column] is not None})
