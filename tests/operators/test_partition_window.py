"""PARTITION and SESSION windows against their definition (docs/semantics W5, W11)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.operators.operator import Operator
from minidsms.operators.partition_window import PartitionWindow
from minidsms.queues import Queue
from minidsms.synopses.partition_stub import PartitionStub
from tests.operators.harness import END, queue, run_in_order
from tests.operators.window_twins import SCHEMA, Stream, changes, partition_contents, random_stream, session_contents


def by_key(keys: list[int], rows: int, length: int | None) -> WindowSpec:
    return WindowSpec(WindowKind.PARTITION, length, rows, keys=tuple(keys))


def by_instant(items: list[Any]) -> list[Any]:
    """The elements with those of one instant and sign sorted: deletions of an instant come in any order."""
    return sorted((ts, sign, number) for ts, sign, number in items)


def run(operator: Operator, stream: Stream, cuts: list[int], until: int, room: int) -> list[Any]:
    items = [(ts, 1, row) for ts, row in stream]
    got = run_in_order(operator, [items], cuts, until=until, with_seq=True, append_only=True, room=room)
    assert all(row == stream[seq][1] for _, _, row, seq in got), "a deletion carries the row of its insertion"
    return [(ts, sign, seq) for ts, sign, _, seq in got]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([[0], [1], [0, 1], []]),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(0, 12)),
    st.integers(0, 10**6),
    st.integers(0, 60),
    st.sampled_from([1, 3, 40]),
)
@example([0], 1, 1, 5, 60, 1)
def test_window_holds_the_last_rows_of_each_key_however_time_is_cut(
    keys: list[int], rows: int, length: int | None, seed: int, n: int, n_keys: int
) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, n, n_keys)
    end = (stream[-1][0] if stream else 0) + 20
    cuts = [rng.randrange(-6, end) for _ in range(rng.choice([0, 5, 60]))]
    operator = PartitionWindow(queue(SCHEMA), by_key(keys, rows, length))
    got = run(operator, stream, cuts, end, rng.choice([1, 1 << 30]))
    assert by_instant(got) == by_instant(changes(stream, partition_contents(keys, rows, length), end))
    assert len(operator.stub) == len(partition_contents(keys, rows, length)(stream, end))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3), st.one_of(st.none(), st.integers(0, 12)), st.integers(0, 10**6), st.integers(1, 200))
def test_window_goes_on_from_its_saved_arrays(rows: int, length: int | None, seed: int, n: int) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, n, 30)
    end = stream[-1][0] + 20
    operator = PartitionWindow(queue(SCHEMA), by_key([0], rows, length))
    got: list[Any] = []
    position = 0
    for cut in sorted({*(rng.randrange(-6, end) for _ in range(5)), end}):
        part = [(ts, 1, row) for ts, row in stream[position:] if ts <= cut]
        position += len(part)
        got += run_in_order(operator, [part], until=cut, with_seq=True)
        fresh = PartitionWindow(operator.inputs[0], by_key([0], rows, length))
        fresh.progress = operator.progress
        fresh.stub.restore(operator.stub.arrays())
        operator = fresh
    assert all(row == stream[seq][1] for _, _, row, seq in got)
    expected = changes(stream, partition_contents([0], rows, length), end)
    assert by_instant([(ts, sign, seq) for ts, sign, _, seq in got]) == by_instant(expected)


def test_memory_follows_the_live_keys_and_not_the_stream() -> None:
    schema = Schema.of(("k", Type.INTEGER))
    operator = PartitionWindow(queue(schema), by_key([0], 2, 50))
    peak = 0
    operator.outputs.append(Queue(schema, 1 << 60))
    for start in range(0, 400_000, 20_000):
        ts = np.arange(start, start + 20_000, dtype=np.int64)
        operator.inputs[0].put(Batch(ts, None, [Column(ts)]))
        operator.inputs[0].progress = int(ts[-1])
        operator.run(1 << 30)
        operator.outputs[0].take(END)
        peak = max(peak, operator.stub.nbytes)
        assert len(operator.stub) == operator.stub.groups == 50
    assert peak < 50_000
    operator.inputs[0].progress = END
    operator.run(1 << 30)
    assert len(operator.stub) == 0


def test_arrays_shrink_when_many_rows_have_left() -> None:
    schema = Schema.of(("k", Type.INTEGER))
    stub = PartitionStub(schema, by_key([0], 1, 5))
    many = Batch(np.zeros(100_000, np.int64), None, [Column(np.arange(100_000))])
    assert sum(len(b) for b in stub.pass_through(many, 0)) == 100_000
    large = stub.nbytes
    assert sum(len(b) for b in stub.pass_through(None, 5)) == 100_000
    assert stub.nbytes * 50 < large


def test_live_codes_are_those_of_the_rows_held() -> None:
    schema = Schema.of(("name", Type.TEXT), ("v", Type.INTEGER))
    stub = PartitionStub(schema, by_key([0], 1, 3))
    rows = [Column(np.array([7, 8, 9])), Column(np.array([1, 2, 3]))]
    list(stub.pass_through(Batch(np.array([1, 2, 5]), None, rows), 5))
    assert {int(code) for codes in stub.live_codes() for code in codes} == {9}


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([0, 1]), max_size=2, unique=True), st.integers(1, 5), st.integers(0, 10**6))
def test_window_holds_the_present_session_of_each_key_however_time_is_cut(keys: list[int], gap: int, seed: int) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, rng.randrange(60))
    end = (stream[-1][0] if stream else 0) + 25
    cuts = [rng.randrange(-6, end) for _ in range(rng.choice([0, 3, 60]))]
    operator = PartitionWindow(queue(SCHEMA), WindowSpec(WindowKind.SESSION, gap, keys=tuple(keys)))
    items = [(ts, 1, row) for ts, row in stream]
    got = run_in_order(
        operator, [items], cuts, until=end, with_seq=True, append_only=True, room=rng.choice([1, 1 << 30])
    )
    assert all(row[: len(SCHEMA)] == stream[seq][1] for _, _, row, seq in got)
    assert all(row[-2:] == (stream[row[-1] - 1][0], row[-1]) for _, _, row, _ in got), "start and id are of one row"
    expected = changes(stream, session_contents(keys, gap), end)
    assert by_instant([(ts, sign, seq) for ts, sign, _, seq in got]) == by_instant(expected)
