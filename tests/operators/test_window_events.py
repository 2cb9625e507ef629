"""Event instants (docs/semantics S2) and the first arrival (R3), against their definitions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import MAX_INSTANT, Batch
from minidsms.operators.first_arrival import FirstArrival
from minidsms.operators.operator import Operator
from minidsms.operators.window_events import WindowEvents
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from tests.operators.harness import batch, queue, run_in_order
from tests.operators.window_twins import (
    SCHEMA,
    Contents,
    Stream,
    changes,
    partition_contents,
    random_stream,
    range_contents,
    rows_contents,
)


def instants(
    operator: Operator, inputs: list[list[Any]], cuts: list[int], until: int, room: int = 1 << 30
) -> list[int]:
    got = run_in_order(operator, inputs, cuts, until=until, room=room)
    assert all(sign == 1 and row == () for _, sign, row in got)
    return [ts for ts, _, _ in got]


def events_by_definition(stream: Stream, spec: WindowSpec, until: int) -> list[int]:
    if not stream:
        return []
    if spec.kind is WindowKind.RANGE and spec.slide is not None:
        return [tau for tau in range(stream[0][0], until + 1) if tau % spec.slide == 0]
    contents: Contents
    if spec.kind is WindowKind.RANGE:
        contents = range_contents(spec.range_ or 0, None)
    elif spec.kind is WindowKind.ROWS:
        assert spec.rows is not None
        contents = rows_contents(spec.rows, spec.slide)
    elif spec.kind is WindowKind.PARTITION:
        assert spec.rows is not None
        contents = partition_contents(spec.keys, spec.rows, spec.range_)
    else:
        contents = rows_contents(10**9, None)
    return sorted({ts for ts, _, _ in changes(stream, contents, until)})


lengths = st.integers(0, 12)
maybe = st.one_of(st.none(), st.integers(1, 6))
specs = st.one_of(
    st.builds(lambda t, l: WindowSpec(WindowKind.RANGE, range_=t, slide=l), lengths, maybe),
    st.builds(lambda n, m: WindowSpec(WindowKind.ROWS, rows=n, slide=m), st.integers(1, 5), maybe),
    st.builds(
        lambda n, t: WindowSpec(WindowKind.PARTITION, rows=n, range_=t, keys=(0,)),
        st.integers(1, 3),
        st.one_of(st.none(), lengths),
    ),
    st.just(WindowSpec(WindowKind.UNBOUNDED)),
)


@settings(max_examples=200, deadline=None)
@given(specs, st.integers(0, 10**6), st.integers(0, 50))
@example(WindowSpec(WindowKind.ROWS, rows=1, slide=4), 1, 50)
def test_each_event_instant_is_put_out_once_however_time_is_cut(spec: WindowSpec, seed: int, n: int) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, n)
    end = (stream[-1][0] if stream else 0) + 20
    cuts = [rng.randrange(-6, end) for _ in range(rng.choice([0, 4, 60]))]
    operator = WindowEvents(queue(SCHEMA), spec)
    items = [(ts, 1, row) for ts, row in stream]
    assert instants(operator, [items], cuts, end, rng.choice([1, 1 << 30])) == events_by_definition(stream, spec, end)


@settings(max_examples=80, deadline=None)
@given(specs, st.integers(0, 10**6), st.integers(1, 50))
def test_events_go_on_from_their_saved_arrays(spec: WindowSpec, seed: int, n: int) -> None:
    rng = random.Random(seed)
    stream = random_stream(seed, n)
    end = stream[-1][0] + 20
    operator = WindowEvents(queue(SCHEMA), spec)
    got: list[int] = []
    position = 0
    for cut in sorted({*(rng.randrange(-6, end) for _ in range(5)), end}):
        part = [(ts, 1, row) for ts, row in stream[position:] if ts <= cut]
        position += len(part)
        got += instants(operator, [part], [], cut)
        fresh = WindowEvents(operator.inputs[0], spec)
        fresh.progress = operator.progress
        for old, new in zip(operator.synopses(), fresh.synopses()):
            new.restore(old.arrays())
        operator = fresh
    assert got == events_by_definition(stream, spec, end)


def test_slide_speaks_in_silence_and_in_bounded_batches() -> None:
    operator = WindowEvents(queue(SCHEMA), WindowSpec(WindowKind.RANGE, range_=5, slide=10))
    out = Queue(operator.schema, 1)
    operator.outputs.append(out)
    operator.inputs[0].put(batch([(7, 1, (1, 1.0))], SCHEMA))
    operator.inputs[0].progress = 1_000_000
    seen, largest = 0, 0
    while is_ready(operator):
        operator.run(1 << 30)
        taken = out.take(MAX_INSTANT)
        if taken is not None:
            seen, largest = seen + len(taken), max(largest, len(taken))
    assert seen == 100_000 and largest < 20_000


def test_slide_stops_with_its_stream() -> None:
    operator = WindowEvents(queue(SCHEMA), WindowSpec(WindowKind.RANGE, range_=5, slide=10))
    ts = np.array([7, 25], np.int64)
    got = list(operator.process([Batch(ts, None, ())], MAX_INSTANT))
    assert [t for batch in got for t in batch.ts.tolist()] == [10, 20]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 20), max_size=4), min_size=1, max_size=3), st.lists(st.integers(0, 25), max_size=6)
)
def test_first_arrival_is_told_once(streams: list[list[int]], cuts: list[int]) -> None:
    inputs = [[(ts, 1, (1, 1.0)) for ts in sorted(stream)] for stream in streams]
    first = min((ts for stream in streams for ts in stream), default=None)
    got = instants(FirstArrival([queue(SCHEMA) for _ in streams]), inputs, cuts, 30)
    assert got == ([] if first is None else [first])
