"""Windows by definition: what each holds at an instant, from docs/semantics W1 to W7, and streams to feed them.

A stream is a list of (ts, row); the arrival number of an element is its place in the list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Schema, Type
from minidsms.operators.operator import Operator
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from minidsms.synopses.stream_store import StreamStore
from tests.operators.harness import check_output, column, elements

Stream = list[tuple[int, tuple[Any, ...]]]
Contents = Callable[[Stream, int], set[int]]
SCHEMA = Schema.of(("k", Type.INTEGER), ("v", Type.FLOAT))


def range_contents(length: int, slide: int | None) -> Contents:
    """W1, W2, W6: the arrivals with ts in (b - T, b]."""

    def contents(stream: Stream, tau: int) -> set[int]:
        b = tau if slide is None else tau // slide * slide
        return {i for i, (ts, _) in enumerate(stream) if b - max(length, 1) < ts <= b}

    return contents


def hop_contents(length: int, step: int) -> Contents:
    """W9: rows with an instant in [b - T, b)."""

    def contents(stream: Stream, tau: int) -> set[int]:
        b = tau // step * step
        return {i for i, (ts, _) in enumerate(stream) if b - length <= ts < b}

    return contents


def rows_contents(rows: int, slide: int | None) -> Contents:
    """W4, W7: the last N of the first floor(arrivals / M) * M arrivals."""

    def contents(stream: Stream, tau: int) -> set[int]:
        arrivals = sum(ts <= tau for ts, _ in stream)
        first = arrivals // (slide or 1) * (slide or 1)
        return set(range(max(0, first - rows), first))

    return contents


def partition_contents(keys: Sequence[int], rows: int, length: int | None) -> Contents:
    """W5: the last N arrivals of each key, those within T."""

    def contents(stream: Stream, tau: int) -> set[int]:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, (ts, row) in enumerate(stream):
            if ts <= tau:
                groups.setdefault(tuple(row[k] for k in keys), []).append(i)
        last = {i for members in groups.values() for i in members[-rows:]}
        return last if length is None else {i for i in last if stream[i][0] > tau - max(length, 1)}

    return contents


def session_contents(keys: Sequence[int], gap: int) -> Contents:
    """W11: the rows of a key from which on up to now no gap is left."""

    def contents(stream: Stream, tau: int) -> set[int]:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, (ts, row) in enumerate(stream):
            if ts <= tau:
                groups.setdefault(tuple(row[k] for k in keys), []).append(i)
        held = set()
        for members in groups.values():
            later = tau
            for i in reversed(members):
                if later - stream[i][0] >= gap:
                    break
                held.add(i)
                later = stream[i][0]
        return held

    return contents


def changes(stream: Stream, contents: Contents, until: int) -> list[tuple[int, int, int]]:
    """(ts, sign, arrival number) of all that leaves or enters up to `until`: each instant compared with the last."""
    if not stream:
        return []
    result: list[tuple[int, int, int]] = []
    before: set[int] = set()
    for tau in range(stream[0][0] - 1, until + 1):
        now = contents(stream, tau)
        result += [(tau, -1, i) for i in sorted(before - now)] + [(tau, 1, i) for i in sorted(now - before)]
        before = now
    return result


def random_stream(seed: int, n: int, keys: int = 3, start: int = -4) -> Stream:
    """n elements with ties and now and then a long gap; keys and values may be NULL."""
    rng = random.Random(seed)
    ts, stream = start, []
    for _ in range(n):
        ts += rng.choice([0, 0, 0, 1, 1, 2, 3, 3, 17])
        key = rng.choice([None, *range(keys)])
        stream.append((ts, (key, rng.choice([None, 0.5, 1.5]))))
    return stream


def filled_store(stream: Stream) -> StreamStore:
    """A store that holds the whole stream, as the input manager leaves it, with some older elements before it."""
    store = StreamStore(SCHEMA)
    before = [stream[0][0] - 1 if stream else 0] * 5
    store.append(np.array(before, np.int64), [column([0] * 5, t) for t in SCHEMA.types])
    ts = np.array([t for t, _ in stream], np.int64)
    store.append(ts, [column([row[i] for _, row in stream], t) for i, t in enumerate(SCHEMA.types)])
    return store


def run_on_store(
    make: Callable[[Queue], Operator],
    store: StreamStore,
    kept: Sequence[int],
    cuts: Iterable[int],
    between: Callable[[Operator], Operator] = lambda operator: operator,
) -> list[tuple[int, int, int, tuple[Any, ...]]]:
    """(ts, sign, arrival number among the kept, row) of a window over a filtered stream, in the order put out.

    kept: which elements pass the filter, as numbers in the stream.  cuts: progress is raised to each in turn, and
    at each the store frees what nobody claims.  between: may swap the operator at each cut.
    """
    input_ = Queue(Schema(SCHEMA.fields[::-1]), 1 << 30)
    operator = make(input_)
    source = store.reader(5)
    seqs = np.array(kept, np.int64) + 5
    number = {int(seq): i for i, seq in enumerate(seqs)}
    result: list[Any] = []
    done = 0
    for cut in sorted(cuts):
        stop = done
        while stop < len(seqs) and store.ts_at(int(seqs[stop])) <= cut:
            stop += 1
        if stop > done:
            part = seqs[done:stop]
            ts = np.array([store.ts_at(int(s)) for s in part], np.int64)
            operator.inputs[0].put(Batch.referring(ts, None, part, store, [1, 0]))
        done = stop
        operator.inputs[0].progress = cut
        out = Queue(operator.schema, 1)
        operator.outputs.append(out)
        while is_ready(operator):
            operator.run(1 << 30)
            taken = out.take(1 << 60)
            if taken is not None:
                result += elements([taken], with_seq=True)
        assert operator.progress == cut
        operator.outputs.remove(out)
        source.lo = max(source.lo, int(seqs[done]) if done < len(seqs) else store.head)
        store.free()
        operator = between(operator)
    check_output(result)
    return [(ts, sign, number[seq], (row[1], row[0])) for ts, sign, row, seq in result]
