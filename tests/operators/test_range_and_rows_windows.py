"""RANGE, NOW and ROWS windows, with and without SLIDE, against their definitions (docs/semantics W1 to W4, W6, W7)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minidsms.elements import MAX_INSTANT, Batch, Column, Schema, Type
from minidsms.operators.operator import Operator
from minidsms.operators.range_window import RangeWindow
from minidsms.operators.rows_window import RowsWindow
from minidsms.operators.unbounded_window import UnboundedWindow
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from minidsms.synopses import stub
from tests.operators.harness import queue, run_in_order
from tests.operators.window_twins import (
    SCHEMA,
    Contents,
    changes,
    filled_store,
    hop_contents,
    random_stream,
    range_contents,
    rows_contents,
    run_on_store,
)

Make = Callable[[Queue], Operator]


def window(kind: str, size: int, slide: int | None, **options: Any) -> tuple[Make, Contents]:
    """A way to make the window, and its definition."""
    if kind == "hop":
        length, step = max(size, 1), slide or 1
        return lambda q: RangeWindow(q, length, step, lag=1, **options), hop_contents(length, step)
    if kind == "range":
        return lambda q: RangeWindow(q, size, slide, **options), range_contents(size, slide)
    return lambda q: RowsWindow(q, max(size, 1), slide, **options), rows_contents(max(size, 1), slide)


shapes = st.tuples(
    st.sampled_from(["range", "rows", "hop"]), st.integers(0, 9), st.one_of(st.none(), st.integers(1, 6))
)


def expected(stream: list[Any], contents: Contents, until: int) -> list[Any]:
    return [(ts, sign, i, stream[i][1]) for ts, sign, i in changes(stream, contents, until)]


@settings(max_examples=150, deadline=None)
@given(shapes, st.integers(0, 10**6), st.integers(0, 40), st.sampled_from([1.0, 0.9, 0.3]))
@example(("range", 2, 5), 3, 20, 1.0)
@example(("rows", 2, 5), 3, 20, 0.5)
def test_window_holds_what_its_definition_says_however_time_is_cut(
    shape: tuple[str, int, int | None], seed: int, n: int, share: float
) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, n)
    kept = [i for i in range(n) if rng.random() < share]
    make, contents = window(*shape)
    end = (stream[-1][0] if stream else 0) + 25
    cuts = {rng.randrange(-6, end) for _ in range(rng.choice([0, 3, 60]))} | {end}
    got = run_on_store(make, filled_store(stream), kept, cuts)
    assert got == expected([stream[i] for i in kept], contents, end)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10**6), st.integers(0, 40), st.booleans())
def test_window_over_a_derived_stream_keeps_its_own_rows(
    shape: tuple[str, int, int | None], seed: int, n: int, copies: bool
) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, n)
    make, contents = window(*shape, copies=copies)
    end = (stream[-1][0] if stream else 0) + 25
    operator = make(queue(SCHEMA))
    items = [(ts, 1, row) for ts, row in stream]
    cuts = [rng.randrange(-6, end) for _ in range(10)]
    got = run_in_order(operator, [items], cuts, until=end, with_seq=True, append_only=True)
    assert [(ts, sign, seq, row) for ts, sign, row, seq in got] == expected(stream, contents, end)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_window_goes_on_from_its_saved_arrays(
    shape: tuple[str, int, int | None], seed: int, n: int, copies: bool
) -> None:
    """In rows of its own, whatever held them before."""
    rng = random.Random(seed)
    stream = random_stream(seed, n)
    begin, end = stream[0][0], stream[-1][0] + 25
    store = filled_store(stream)
    options = {"copies": True} if copies else {"store": store}
    make, contents = window(*shape, **options)

    def reborn(operator: Operator) -> Operator:
        fresh = make(operator.inputs[0])
        fresh.progress = operator.progress
        old, new = operator.synopses()[0], fresh.synopses()[0]
        new.restore(old.arrays())
        old.release()
        assert new.own_store is not None
        return fresh

    if not copies:  # not before the first element: a window that has seen none numbers them anew
        cuts = {rng.randrange(begin, end) for _ in range(6)} | {end}
        assert run_on_store(make, store, range(n), cuts, reborn) == expected(stream, contents, end)
        return
    operator, seen = make(queue(SCHEMA)), list[Any]()
    position = 0
    for cut in sorted({rng.randrange(-6, end) for _ in range(6)} | {end}):
        part = [(ts, 1, row) for ts, row in stream[position:] if ts <= cut]
        position += len(part)
        seen += run_in_order(operator, [part], until=cut, with_seq=True)
        operator = reborn(operator)
    assert [(ts, sign, seq, row) for ts, sign, row, seq in seen] == expected(stream, contents, end)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_slide_is_put_out_in_parts_where_it_is_long(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "_LARGEST_OUTPUT", most)
    for seed, size in ((1, 0), (2, 3), (3, 3), (4, 9)):
        stream = random_stream(seed, 40)
        make, contents = window("range", size, None)
        end = stream[-1][0] + 25
        for cuts in ({end}, {end // 2, end}):
            got = run_on_store(make, filled_store(stream), range(40), cuts)
            assert got == expected(stream, contents, end)


def test_long_run_of_changes_is_put_out_in_bounded_batches() -> None:
    n = 200_000
    schema = Schema.of(("v", Type.INTEGER))
    operator = RangeWindow(queue(schema), 10)
    out = Queue(schema, 1)
    operator.outputs.append(out)
    ts = np.arange(n, dtype=np.int64)
    operator.inputs[0].put(Batch(ts, None, [Column(ts)]))
    operator.inputs[0].progress = n
    sizes, seen = [], []
    while is_ready(operator):
        operator.run(1 << 30)
        taken = out.take(MAX_INSTANT)
        if taken is not None:
            sizes.append(len(taken))
            seen.append((taken.ts, taken.signs, taken.column(0).values))
    assert max(sizes) <= 1 << 16
    got_ts, signs, values = (np.concatenate(parts) for parts in zip(*seen))
    assert len(got_ts) == n + n - 9
    assert (values[signs == 1] == ts).all() and (got_ts[signs == 1] == ts).all()
    assert (got_ts[signs == -1] == values[signs == -1] + 10).all()


def test_range_past_the_end_of_time_never_expires() -> None:
    schema = Schema.of(("v", Type.INTEGER))
    operator = RangeWindow(queue(schema), MAX_INSTANT, slide=1000)
    got = run_in_order(operator, [[(5, 1, (1,)), (2**39, 1, (2,))]], until=2**40)
    assert [(sign, row) for _, sign, row in got] == [(1, (1,)), (1, (2,))]


def test_window_that_is_empty_claims_nothing_of_the_store() -> None:
    stream = [(ts, (1, 1.0)) for ts in range(5000)]
    store = filled_store(stream)
    run_on_store(lambda q: RangeWindow(q, 3), store, [0, 1, 4000], [100, 4500, 4999])
    assert store.tail == store.head


def test_closed_window_claims_nothing() -> None:
    store = filled_store([(ts, (1, 1.0)) for ts in range(100)])
    for operator in (RangeWindow(queue(SCHEMA), 30, store=store), RowsWindow(queue(SCHEMA), 30, store=store)):
        operator.process([store.batch(10, 100)], 99)
        operator.close()
    store.free()
    assert store.tail == store.head


def test_window_claims_its_oldest_row() -> None:
    stream = [(ts, (1, 1.0)) for ts in range(100)]
    store = filled_store(stream)
    run_on_store(lambda q: RangeWindow(q, 30), store, range(100), [40, 99])
    assert store.tail == 5 + 70


def test_window_refuses_references_out_of_order() -> None:
    store = filled_store([(1, (1, 1.0)), (2, (1, 1.0)), (3, (1, 1.0))])
    operator = RangeWindow(queue(SCHEMA), 3)
    one = np.ones(1, np.int64)
    list(operator.process([Batch.referring(one, None, one * 7, store, [0, 1])], 1))
    with pytest.raises(AssertionError, match="copies=True"):
        operator.process([Batch.referring(one * 2, None, one * 6, store, [0, 1])], 2)


def test_unbounded_window_passes_elements_and_numbers_them() -> None:
    operator = UnboundedWindow(queue(SCHEMA))
    items = [(1, 1, (1, 0.5)), (1, 1, (None, None)), (4, 1, (1, 0.5))]
    got = run_in_order(operator, [items], [2], with_seq=True, append_only=True)
    assert got == [(*item, i) for i, item in enumerate(items)]
