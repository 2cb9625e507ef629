"""Joins for tests, made of what a test speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from minidsms.elements import MAX_INSTANT, Batch, Schema
from minidsms.joins import answer
from minidsms.joins import join as join_module
from minidsms.joins.by_caches import CacheOptions
from minidsms.joins.equal_columns import Equality
from minidsms.joins.graph import JoinGraph
from minidsms.joins.join import Join
from minidsms.joins.spec import JoinSpec
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from minidsms.synopses.stream_store import StreamStore
from tests.operators.harness import END, Element, Netted, batch, elements, netted

J = TypeVar("J", bound=Join)


def graph(n: int, *edges: tuple[int, int]) -> JoinGraph:
    """Of n inputs. Each edge is an equality of columns of its own."""
    return JoinGraph(n, [((i, c), (j, c)) for c, (i, j) in enumerate(edges)])


def join_of(
    inputs: Sequence[Queue],
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]],
    schema: Schema,
    shown: Sequence[int] | None = None,
    ranges: Sequence[int | None] | None = None,
    fifo: Sequence[bool] | None = None,
) -> Join:
    """A join by pipelines, to begin with."""
    return Join(inputs, JoinSpec(equalities, columns, schema, shown, ranges, fifo))


def cached_join_of(
    inputs: Sequence[Queue],
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]],
    schema: Schema,
    *,
    kind: type[J],
    **options: Any,
) -> J:
    """As `join_of`, with caches to come. options: of the join and of its caches."""
    of_join = {name: options.pop(name) for name in ("shown", "ranges", "fifo") if name in options}
    return kind(inputs, JoinSpec(equalities, columns, schema, **of_join), caching=CacheOptions(**options))


def shrink_buffers(monkeypatch: pytest.MonkeyPatch, tuples: int) -> None:
    """Let joins find so many tuples at a time, of so many elements."""
    monkeypatch.setattr(answer, "_TUPLES", tuples)
    monkeypatch.setattr(answer, "MOST_INSPECTED", tuples)
    monkeypatch.setattr(answer, "_FIRST_TUPLES", 1)
    monkeypatch.setattr(join_module, "_PART", tuples)


class Referring:
    """A join over windows whose batches refer to stream stores, as the planner's do."""

    def __init__(self, inputs: Sequence[Sequence[Element]], join: Join) -> None:
        self.operator = join
        self.stores = []
        self.batches = []
        for items, q in zip(inputs, join.inputs):
            store = StreamStore(q.schema)
            whole = batch([e for e in items if e[1] > 0], q.schema)
            store.append(whole.ts, whole.columns)
            store.reader(0)
            self.stores.append(store)
            ts, sign, seq = (np.array([e[i] for e in items], np.int64) for i in (0, 1, 3))
            self.batches.append(Batch.referring(ts, sign.astype(np.int8), seq, store, range(len(q.schema))))

    def feed(self, cuts: Sequence[int], gathers: Sequence[int] = ()) -> Netted:
        """gathers: the slices whose batches come without references."""
        out = Queue(self.operator.schema, 1 << 30)
        self.operator.outputs.append(out)
        start = [0] * len(self.batches)
        for number, cut in enumerate((*cuts, END)):
            for i, b in enumerate(self.batches):
                stop = int(np.searchsorted(b.ts, cut, side="right"))
                if stop > start[i]:
                    part = b.slice(start[i], stop)
                    if number in gathers:
                        part = Batch(part.ts, part.sign, part.columns)
                    self.operator.inputs[i].put(part)
                start[i] = stop
                self.operator.inputs[i].progress = cut
            while is_ready(self.operator):
                self.operator.run(1 << 30)
        taken = out.take(MAX_INSTANT)
        return netted([] if taken is None else elements([taken]))
