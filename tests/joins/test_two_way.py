"""Joins of two inputs against a twin that joins the two relations afresh at every instant."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from minidsms.elements import Batch, BoolArray, Schema, Type
from minidsms.joins.join import Join
from minidsms.joins.spec import Condition, JoinSpec
from minidsms.queues import Queue
from tests.joins.made import Referring, shrink_buffers
from tests.operators.harness import (
    END,
    Element,
    Netted,
    Row,
    batch,
    contents,
    differences,
    elements,
    feed,
    feed_in_turn,
    netted,
    queue,
    random_cuts,
    random_relation,
    random_window,
    run_in_order,
    take_step,
)

S = Schema.of(("a", Type.INTEGER), ("b", Type.TEXT), ("x", Type.FLOAT))


def rows(seed: int, n: int, keys: int) -> list[Row]:
    """Rows of S with NULLs in every column and few distinct keys."""
    rng = random.Random(seed)

    def some(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    return [(some(rng.randrange(keys)), some(rng.randrange(3)), some(rng.randrange(4) / 2)) for _ in range(n)]


def relation(fifo: bool, seed: int, n: int = 60, keys: int = 5) -> list[Element]:
    return (random_window if fifo else random_relation)(rows(seed, n, keys), seed)


def twin(
    left: Sequence[Element],
    right: Sequence[Element],
    lkeys: Sequence[int],
    rkeys: Sequence[int],
    accepts: Callable[[Row], bool] = lambda row: True,
    columns: Sequence[int] | None = None,
) -> Netted:
    """Every pair of the two relations at every instant, and the differences from instant to instant."""
    lstates, rstates = contents(left), contents(right)
    l: Counter[Row] = Counter()
    r: Counter[Row] = Counter()
    states = {}
    for ts in sorted({*lstates, *rstates}):
        l, r = lstates.get(ts, l), rstates.get(ts, r)
        state: Counter[Row] = Counter()
        for p, m in l.items():
            for q, n in r.items():
                keys = [(p[i], q[j]) for i, j in zip(lkeys, rkeys)]
                row = p + q
                if all(u is not None and u == v for u, v in keys) and accepts(row):
                    state[row if columns is None else tuple(row[c] for c in columns)] += m * n
        states[ts] = state
    return differences(states)


def operator(
    lkeys: Sequence[int],
    rkeys: Sequence[int],
    lfifo: bool,
    rfifo: bool,
    condition: Condition | None = None,
    columns: Sequence[int] = range(6),
) -> Join:
    fields = S.fields * 2
    equalities = [((0, l), (1, r)) for l, r in zip(lkeys, rkeys)]
    places = [(c // 3, c % 3) for c in columns]
    schema = Schema(tuple(fields[c] for c in columns))
    spec = JoinSpec(equalities, places, schema, fifo=[lfifo, rfifo], condition=condition)
    return Join([queue(S), queue(S)], spec)


KEYS = [((0,), (0,)), ((1,), (1,)), ((2,), (2,)), ((0, 1), (0, 1)), ((2, 0, 1), (2, 0, 1)), ((), ())]


@pytest.mark.parametrize("lfifo", [True, False])
@pytest.mark.parametrize("rfifo", [True, False])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_join_is_the_join_of_the_relations_at_every_instant(
    lfifo: bool, rfifo: bool, keys: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    left, right = relation(lfifo, seed), relation(rfifo, seed + 100)
    cuts = random_cuts(seed, 80)
    answer = feed(operator(*keys, lfifo, rfifo), [left, right], cuts)
    assert answer == twin(left, right, *keys)


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_every_instant_may_be_a_slice_of_its_own(fifo: bool, seed: int) -> None:
    left, right = relation(fifo, seed), relation(fifo, seed + 50)
    answer = feed(operator((0,), (0,), fifo, fifo), [left, right], range(1, 100))
    assert answer == twin(left, right, (0,), (0,))


@pytest.mark.parametrize("fifo", [True, False])
def test_small_buffers_and_full_queues_do_not_change_the_answer(fifo: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = relation(fifo, 7, 80, 2), relation(fifo, 8, 80, 2)
    expected = run_in_order(operator((0,), (0,), fifo, fifo), [left, right])
    for pairs in (1, 2, 3, 7):
        shrink_buffers(monkeypatch, pairs)
        for room in (1, 1000):
            assert run_in_order(operator((0,), (0,), fifo, fifo), [left, right], room=room, budget=5) == expected


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_residual_sees_the_whole_row_and_only_asked_columns_come_out(fifo: bool, seed: int) -> None:
    def residual(b: Batch) -> tuple[BoolArray, None]:
        x, y = b.column(2), b.column(5)
        less = x.values < y.values
        for c in (x, y):
            less = less if c.valid is None else less & c.valid
        return less, None

    def accepts(row: Row) -> bool:
        return row[2] is not None and row[5] is not None and row[2] < row[5]

    left, right = relation(fifo, seed), relation(not fifo, seed + 9)
    op = operator((0,), (0,), fifo, not fifo, condition=Condition(residual), columns=(4, 0, 1))
    assert feed(op, [left, right], [10, 20]) == twin(left, right, (0,), (0,), accepts, (4, 0, 1))


@pytest.mark.parametrize("lfifo", [True, False])
def test_only_asked_columns_come_out_also_when_the_key_is_not_among_them(lfifo: bool) -> None:
    left, right = relation(lfifo, 3), relation(True, 4)
    for columns in ((1,), (5, 2), ()):
        op = operator((0,), (0,), lfifo, True, columns=columns)
        assert feed(op, [left, right], [15]) == twin(left, right, (0,), (0,), columns=columns)


def test_self_join_takes_each_element_into_both_inputs() -> None:
    for fifo in (True, False):
        items = relation(fifo, 11)
        assert feed(operator((0,), (0,), fifo, fifo), [items, items], [9, 30]) == twin(items, items, (0,), (0,))


def test_a_failed_residual_ends_the_answer_just_before_its_instant() -> None:
    def residual(b: Batch) -> tuple[BoolArray, BoolArray]:
        failed = b.column(0).values == 3
        return ~failed, failed

    left = [(t, 1, (t, 0, 0.0)) for t in range(1, 6)]
    right = [(t, 1, (t, 0, 0.0)) for t in range(1, 6)]
    for cuts in ((), range(7)):
        op = operator(
            (0,), (0,), True, True, condition=Condition(residual, lambda row: f"a is {row.column(0).values[0]}")
        )
        answer = feed(op, [left, right], cuts)
        assert sorted(answer) == [1, 2]
        assert op.failure is not None and (op.failure.ts, op.failure.reason) == (3, "a is 3")


@pytest.mark.parametrize("fifo", [True, False])
def test_a_hot_key_costs_no_more_than_its_pairs(fifo: bool) -> None:
    n = 3000
    left = [(t, 1, (1, t % 3, None)) for t in range(n)] + [(n + t, -1, (1, t % 3, None)) for t in range(n)]
    right: list[Element] = [(n, 1, (2, 0, 0.0))]
    op = operator((0,), (0,), fifo, fifo)
    assert feed(op, [left, right], [n // 2]) == {}
    assert op.describe().figures["rows"] == "0+1"
    assert op.describe().figures["inspected"] <= 2 * n


@pytest.mark.parametrize("fifo", [True, False])
def test_state_does_not_grow_with_the_stream(fifo: bool) -> None:
    op = operator((0,), (0,), fifo, fifo)
    op.outputs.append(Queue(op.schema, 1 << 30))
    sizes = []
    ts = 0
    for _ in range(60):
        pairs = [((t, -1, (t - 20, 0, 0.0)), (t, 1, (t, 0, 0.0))) for t in range(ts, ts + 200)]
        items = [e for pair in pairs for e in pair if e[2][0] >= 0]
        take_step(op, items, ts + 199)
        ts += 200
        sizes.append(op.describe().figures["bytes"])
    assert sizes[-1] == sizes[5]


def test_an_index_shrinks_again_after_a_burst() -> None:
    for fifo in (True, False):
        burst = [(1, 1, (i, 0, 0.0)) for i in range(20_000)] + [(2, -1, (i, 0, 0.0)) for i in range(20_000)]
        later = [(3 + i, 1, (i, 0, 0.0)) for i in range(20)]
        op = operator((0,), (0,), fifo, fifo)
        feed(op, [burst + later, []], range(1, 23))
        assert op.describe().figures["rows"] == "20+0"
        # Rows that refer to no store stand in one of the window, which keeps half a megabyte.
        assert op.describe().figures["bytes"] < (600_000 if fifo else 20_000)


def referring(left: Sequence[Element], right: Sequence[Element], keys: tuple[int, ...]) -> Referring:
    return Referring([left, right], operator(keys, keys, True, True))


@pytest.mark.parametrize("keys", [(0,), (0, 1), ()])
@pytest.mark.parametrize("cuts", [(), (5, 20, 21, 40), tuple(range(1, 80))])
def test_rows_in_a_store_are_referred_to_and_not_copied(keys: tuple[int, ...], cuts: tuple[int, ...]) -> None:
    left, right = relation(True, 21), relation(True, 22)
    join = referring(left, right, keys)
    assert join.feed(cuts) == twin(left, right, keys, keys)
    assert all(side.refers for side in join.operator.synopses())


def test_an_empty_side_holds_nothing_of_its_store() -> None:
    left, right = relation(True, 21), relation(True, 22)
    join = referring(left, right, (0,))
    join.feed((5, 9))
    for store in join.stores:
        ours = store._readers[1:]
        assert [r.lo for r in ours] == [store.head]


def test_a_closed_join_claims_nothing() -> None:
    join = referring(relation(True, 21), relation(True, 22), (0,))
    join.feed((5,))
    join.operator.close()
    assert all(len(store._readers) == 1 for store in join.stores)


def test_rows_that_come_without_reference_later_are_joined_too() -> None:
    left, right = relation(True, 31), relation(True, 32)
    join = referring(left, right, (0, 1))
    half = len(left) // 2
    while left[half][0] == left[half - 1][0]:
        half += 1
    whole = join.batches[0]
    join.batches[0] = whole.slice(0, half)
    cut = left[half - 1][0]
    rest = batch(left[half:], S)
    out = Queue(join.operator.schema, 1 << 30)
    join.operator.outputs.append(out)
    op = join.operator
    op.inputs[0].put(join.batches[0])
    op.inputs[1].put(join.batches[1])
    op.inputs[0].progress = op.inputs[1].progress = cut
    op.run(1 << 30)
    op.inputs[0].put(rest)
    op.inputs[0].progress = op.inputs[1].progress = END
    op.run(1 << 30)
    taken = out.take(END)
    assert taken is not None
    assert netted(elements([taken])) == twin(left, right, (0, 1), (0, 1))


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("keys", [(0,), (0, 1), ()])
def test_state_given_as_arrays_and_taken_back_continues_alike(fifo: bool, keys: tuple[int, ...]) -> None:
    left, right = relation(fifo, 41), relation(fifo, 42)
    answer = feed_in_turn(operator(keys, keys, fifo, fifo), operator(keys, keys, fifo, fifo), [left, right], 20)
    assert answer == twin(left, right, keys, keys)


def test_live_codes_are_those_of_the_rows_held() -> None:
    for fifo in (True, False):
        op = operator((0,), (0,), fifo, fifo)
        left = [(1, 1, (1, 7, 0.0)), (2, 1, (1, 8, 0.0)), (3, -1, (1, 7, 0.0))]
        feed(op, [left, []], [1, 2])
        assert [a.tolist() for a in op.synopses()[0].live_codes()] == [[8]]
