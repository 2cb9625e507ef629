"""A slice in one call: the answers are those of groups recomputed from all rows, wherever the rows stand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch, Column, Schema, Type
from minidsms.kernels.gathering import gather
from minidsms.operators.aggregate import Aggregate, AggregateSpec
from minidsms.synopses.stream_store import StreamStore
from tests.operators.harness import (
    Element,
    batch,
    column,
    elements,
    feed,
    queue,
    random_cuts,
    random_relation,
    random_window,
)
from tests.operators.test_aggregate import SCHEMA, check, expected_states, run_in_order, some_rows, spec

INT, FLOAT, BOOL = Type.INTEGER, Type.FLOAT, Type.BOOLEAN
PLAIN = [spec("count"), *(spec(f, 2) for f in ("count", "sum", "avg", "min", "max")), spec("min", 3), spec("max", 4)]
SMALL = Schema.of(("k", INT), ("f", FLOAT), ("b", BOOL))


def operator_over(keys: list[int], calls: list[AggregateSpec], fifo: bool, append_only: bool = False) -> Aggregate:
    operator = Aggregate(queue(SCHEMA), keys, calls, is_global=not keys, input_fifo=fifo, input_append_only=append_only)
    assert operator.groups.is_plain, "no state stands outside the records"
    return operator


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("keys", [[0], [0, 1], [4, 5, 0], []])
@pytest.mark.parametrize("seed", range(3))
def test_a_slice_changes_the_rows_of_its_groups(keys: list[int], fifo: bool, seed: int) -> None:
    rows = some_rows(seed, 120)
    items = random_window(rows, seed, size=9) if fifo else random_relation(rows, seed)
    calls = PLAIN if fifo else [c for c in PLAIN if c.function not in ("min", "max")]
    for cuts in ([], random_cuts(seed, 120, 40), range(200)):
        out = run_in_order(operator_over(keys, calls, fifo), [items], cuts)
        check(out, expected_states(items, keys, calls, not keys), len(keys))


def test_tables_grow_in_the_middle_of_a_slice() -> None:
    rows = [(i % 300, None, i * 7919 % 1000, 0.5, True, 0) for i in range(2000)]
    items: list[Element] = [(1 + i // 500, 1, row, i) for i, row in enumerate(rows)]
    calls = [spec("count"), spec("max", 2), spec("min", 2)]
    check(run_in_order(operator_over([0], calls, True), [items]), expected_states(items, [0], calls), 1)


def test_room_for_the_rows_present_is_claimed_before_it_is_taken() -> None:
    row = (1, None, 5, 0.5, True, 0)
    operator = operator_over([0], [spec("max", 2), spec("min", 2)], True)
    claimed: list[int] = []
    slices = operator.groups.slices([0], lambda run, arguments: pytest.fail(), claimed.append)
    for n, rows in ((60, 64), (10, 128), (300, 512), (3_000, 4_096)):
        held = operator.groups.nbytes
        slices.take(batch([(n, 1, row)] * n, SCHEMA), MIN_INSTANT, MAX_INSTANT)
        grown = operator.groups.nbytes - held
        assert operator.groups.arrivals is not None and len(operator.groups.arrivals.stacks) == rows
        assert grown in claimed or not grown


@pytest.mark.parametrize("stay", [0, 1, 2])
def test_all_rows_leave_at_an_instant_or_all_but_some(stay: int) -> None:
    rng, rows = random.Random(stay), list(enumerate(some_rows(stay, 200)))
    present, items = rows[:0], list[Element]()
    for ts in range(60):
        gone = present[: max(0, len(present) - stay)] if rng.random() < 0.8 else present[:1]
        come = [rows.pop() for _ in range(min(rng.randrange(7), len(rows)))]
        items += [(ts, sign, row, seq) for sign, those in ((-1, gone), (1, come)) for seq, row in those]
        present = present[len(gone) :] + come
    calls = [spec(f, i) for f in ("min", "max") for i in (2, 3, 4)]
    for cuts in ([], random_cuts(stay, 60), range(60)):
        check(run_in_order(operator_over([0], calls, True), [items], cuts), expected_states(items, [0], calls), 1)


def test_a_group_that_comes_again_begins_anew() -> None:
    row = (7, None, 5, 0.5, True, 0)
    items: list[Element] = []
    for i in range(200):
        key = (i % 3 * 100 + i, *row[1:])
        items += [(2 * i, 1, key, i), (2 * i + 1, -1, key, i)]
    operator = operator_over([0], [spec("count"), spec("max", 2)], True)
    check(run_in_order(operator, [items], range(400)), expected_states(items, [0], [spec("count"), spec("max", 2)]), 1)
    assert len(operator.groups) == 0, "ids of groups without rows are given back"


def test_a_sum_that_overflows_ends_the_output_before_its_instant() -> None:
    big = 2**62
    items: list[Element] = [(t, 1, (1, None, big, 0.5, True, 0), t) for t in (1, 2, 3)]
    for cuts in ([], [1, 2, 3]):
        operator = operator_over([], [spec("sum", 2)], True, append_only=True)
        assert set(feed(operator, [items], cuts, append_only=True)) == {1}
        assert operator.failure is not None and operator.failure.ts == 2
        assert "overflows" in operator.failure.reason


def store_of(rows: list[tuple[Any, ...]]) -> StreamStore:
    """The rows in a ring that has turned round: half of it held others before."""
    store = StreamStore(SMALL)
    reader = store.reader()
    before = 1024 - len(rows) // 2
    store.append(np.zeros(before, np.int64), [Column(np.zeros(before, t.dtype)) for t in SMALL.types])
    reader.lo = store.head
    store.free()
    columns = [column([row[i] for row in rows], t) for i, t in enumerate(SMALL.types)]
    store.append(np.arange(len(rows)), columns)
    return store


def some_small_rows(n: int, nulls: bool) -> list[tuple[Any, ...]]:
    rng = random.Random(n)
    return [
        tuple(None if nulls and rng.random() < 0.3 else v for v in (rng.randrange(9), rng.random(), rng.random() < 0.5))
        for _ in range(n)
    ]


@pytest.mark.parametrize("nulls", [False, True])
def test_words_are_gathered_as_the_store_gives_its_columns(nulls: bool) -> None:
    store = store_of(some_small_rows(50, nulls))
    seq = np.array(sorted(random.Random(1).sample(range(store.tail, store.head), 30)))
    numbers = np.array([2, 0, 1])
    words, valid = np.empty((3, 40), np.int64), np.empty((3, 40), np.int8)
    gather(*store.places(), numbers, seq, words, valid)
    for c, number in enumerate(numbers):
        expected = store.gather(int(number), seq)
        assert words[c, :30].tolist() == expected.words().tolist()
        assert valid[c, :30].tolist() == ([1] * 30 if expected.valid is None else expected.valid.tolist())


def test_places_follow_the_arrays_of_the_store() -> None:
    store = StreamStore(SMALL)
    store.reader()
    words, valid = np.empty((1, 1), np.int64), np.empty((1, 1), np.int8)

    def last(number: int) -> tuple[int, int]:
        gather(*store.places(), np.array([number]), np.array([store.head - 1]), words, valid)
        return int(words[0, 0]), int(valid[0, 0])

    store.append_row(0, (5, 0.0, True))
    assert (last(0), last(2)) == ((5, 1), (1, 1))
    store.append_row(0, (None, 0.0, True))
    assert last(0) == (0, 0), "a first NULL brings a mask"
    for i in range(5000):
        store.append_row(i, (i, 0.0, True))
    assert last(0) == (4999, 1), "larger rings are other arrays"
    other = store_of(some_small_rows(3, False))
    assert other.places()[0].tolist() != store.places()[0].tolist()


@pytest.mark.parametrize("size", [1, 2, 40])
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_in_a_store_are_answered_as_rows_in_columns(size: int, nulls: bool) -> None:
    rows = some_small_rows(40, nulls)
    store = store_of(rows)
    calls = [
        AggregateSpec("count", None, INT),
        AggregateSpec("max", 1, FLOAT, FLOAT),
        AggregateSpec("count", 2, INT, BOOL),
    ]
    referring, plain = (Aggregate(queue(SMALL), [0], calls, input_fifo=True, input_append_only=True) for _ in range(2))
    for start in range(0, 40, size):
        seq = np.arange(store.tail + start, store.tail + start + size)
        ts = np.arange(start, start + size)
        reference = Batch.referring(ts, None, seq, store, range(3))
        columns = Batch(ts, None, [store.gather(i, seq) for i in range(3)])
        answers = [elements(op.process([b], start + size)) for op, b in ((referring, reference), (plain, columns))]
        assert answers[0] == answers[1] != []
