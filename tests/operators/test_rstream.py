"""RSTREAM against its definition (docs/semantics S2): all of R at every event instant, or at every tick."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minidsms.elements import MAX_INSTANT, Batch, Column, Int64Array, Schema, Type
from minidsms.operators.rstream import RStream
from minidsms.operators.window_events import NO_COLUMNS
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from tests.operators.harness import queue, random_relation, run_in_order

SCHEMA = Schema.of(("k", Type.INTEGER), ("name", Type.TEXT), ("v", Type.FLOAT))
NAMES = {1: "pear", 2: "apple", 3: "fig"}


def ranks(codes: Int64Array) -> Int64Array:
    texts = sorted(NAMES.values())
    return np.array([texts.index(NAMES[int(c)]) for c in codes], np.int64)


def random_rows(rng: random.Random, n: int, variety: int) -> list[tuple[Any, ...]]:
    keys = [None, *range(variety)]
    return [(rng.choice(keys), rng.choice([None, 1, 2, 3]), rng.choice([None, -1.5, 0.0, 2.5])) for _ in range(n)]


def by_definition(items: list[Any], events: list[int]) -> dict[int, Counter[Any]]:
    result = {}
    for event in events:
        bag: Counter[Any] = Counter()
        for ts, sign, row in items:
            if ts <= event:
                bag[row] += sign
        bag = +bag
        if bag:
            result[event] = bag
    return result


def shown(got: list[Any]) -> dict[int, Counter[Any]]:
    result: dict[int, Counter[Any]] = {}
    for ts, sign, row in got:
        assert sign == 1
        result.setdefault(ts, Counter())[row] += 1
    return result


def in_value_order(rows: list[Any]) -> list[Any]:
    def key(row: Any) -> Any:
        values = (row[0], None if row[1] is None else NAMES[row[1]], row[2])
        return tuple((v is not None, v) if v is not None else (False,) for v in values)

    return sorted(rows, key=key)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 80), st.sampled_from([2, 60]), st.booleans(), st.integers(0, 3))
@example(0, 80, 60, True, 2)
def test_all_rows_are_shown_at_every_event_however_time_is_cut(
    seed: int, n: int, variety: int, ordered: bool, inputs: int
) -> None:
    rng = random.Random(seed)
    items = [(ts, sign, row) for ts, sign, row, _ in random_relation(random_rows(rng, n, variety), seed, 40)]
    end = (items[-1][0] if items else 0) + 10
    events = [sorted(rng.randrange(end) for _ in range(rng.randrange(12))) for _ in range(inputs)]
    operator = RStream(
        queue(SCHEMA), [queue(NO_COLUMNS) for _ in events], order_by_value=ordered, ranks=ranks if ordered else None
    )
    cuts = [rng.randrange(end) for _ in range(rng.choice([0, 5, 40]))]
    feeds = [items, *([(ts, 1, ()) for ts in sorted(set(e))] for e in events)]
    got = run_in_order(operator, feeds, cuts, until=end, room=rng.choice([1, 1 << 30]))
    assert shown(got) == by_definition(items, sorted({ts for e in events for ts in e}))
    if ordered:
        for ts in {ts for ts, _, _ in got}:
            rows = [row for t, _, row in got if t == ts]
            assert rows == in_value_order(rows)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40))
def test_all_rows_are_shown_at_every_tick(seed: int, n: int) -> None:
    rng = random.Random(seed)
    items = [(ts, sign, row) for ts, sign, row, _ in random_relation(random_rows(rng, n, 3), seed, 9, 7)]
    end = (items[-1][0] if items else 0) + 10
    operator = RStream(queue(SCHEMA), ticks=True)
    cuts = [rng.randrange(end) for _ in range(rng.choice([0, 5, 40]))]
    got = run_in_order(operator, [items], cuts, until=end, room=rng.choice([1, 1 << 30]))
    assert shown(got) == by_definition(items, list(range(end + 1)))


def test_silence_costs_an_empty_relation_nothing() -> None:
    row = (1, 1, 1.0)
    operator = RStream(queue(SCHEMA), ticks=True)
    items = [(5, 1, row), (7, -1, row), (10**11, 1, row), (10**11 + 1, -1, row)]
    got = run_in_order(operator, [items], [6], until=2 * 10**11)
    assert [ts for ts, _, _ in got] == [5, 6, 10**11]


def test_large_relations_are_shown_in_bounded_batches() -> None:
    n, events = 50_000, 7
    schema = Schema.of(("v", Type.INTEGER))
    operator = RStream(queue(schema), [queue(NO_COLUMNS)])
    out = Queue(schema, 1)
    operator.outputs.append(out)
    operator.inputs[0].put(Batch(np.zeros(n, np.int64), None, [Column(np.arange(n))]))
    operator.inputs[1].put(Batch(np.arange(events, dtype=np.int64), None, ()))
    for q in operator.inputs:
        q.progress = 100
    sizes, total = [], 0
    while is_ready(operator):
        operator.run(1 << 30)
        taken = out.take(MAX_INSTANT)
        if taken is not None:
            sizes.append(len(taken))
            total += int(taken.column(0).values.sum())
    assert max(sizes) <= 1 << 16 and sum(sizes) == n * events and total == events * n * (n - 1) // 2


def test_memory_is_given_back_and_arrays_restore_the_bag() -> None:
    schema = Schema.of(
        ("name", Type.TEXT),
    )
    operator = RStream(queue(schema), [queue(NO_COLUMNS)])
    (bag,) = operator.synopses()
    n = 100_000
    values = Column(np.arange(n))
    list(operator.process([Batch(np.zeros(n, np.int64), None, [values]), None], 0))
    large = bag.nbytes
    gone = Batch(np.full(n - 3, 1, np.int64), np.full(n - 3, -1, np.int8), [Column(np.arange(n - 3))])
    list(operator.process([gone, None], 1))
    for ts in range(2, 12):
        list(operator.process([Batch(np.array([ts]), None, [Column(np.array([n]))]), None], ts))
    assert bag.nbytes * 20 < large and len(bag) == 13
    assert sorted(int(c) for codes in bag.live_codes() for c in codes) == [n - 3, n - 2, n - 1, n]
    fresh = RStream(queue(schema), [queue(NO_COLUMNS)])
    fresh.synopses()[0].restore(bag.arrays())
    (batch,) = fresh.process([None, Batch(np.array([20]), None, ())], 20)
    assert sorted(batch.column(0).values.tolist()) == sorted([n - 3, n - 2, n - 1] + [n] * 10)
