"""Runs are counted to the one; their time is that of the runs timed, for which those behind them are taken to stand."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Batch, Column, Schema, Type
from minidsms.operators import operator as module
from minidsms.operators.operator import SMALL, Counters, Operator
from minidsms.queues import Queue

SCHEMA = Schema.of(("a", Type.INTEGER))


class Passing(Operator):
    """Hands on what comes."""

    acts_on_time = False

    def process(self, batches, until):  # type: ignore[no-untyped-def]
        return batches


def run(operator: Operator, n: int) -> None:
    """A run over n elements."""
    queue = operator.inputs[0]
    queue.progress += 1
    queue.put(Batch(np.full(n, queue.progress), None, [Column(np.zeros(n, np.int64))]))
    assert operator.run(1 << 30) == n


def passing(monkeypatch, cost: list[int]) -> Passing:  # type: ignore[no-untyped-def]
    """An operator whose every run takes cost[0] nanoseconds; cost[1] counts the looks at the clock."""
    now = [1]

    def clock() -> int:
        now[0] += cost[0] if cost[1] % 2 else 0
        cost[1] += 1
        return now[0]

    monkeypatch.setattr(module, "perf_counter_ns", clock)
    queue = Queue(SCHEMA, 1 << 30)
    queue.progress = 0
    return Passing([queue], SCHEMA)


def test_small_runs_are_timed_one_in_several(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    cost = [100, 0]
    operator = passing(monkeypatch, cost)
    for i in range(1, 1001):
        run(operator, 2)
        assert operator.counters.runs == i
        assert operator.counters.time_ns == 100 * i
    assert operator.counters.elements_in == 2000
    assert cost[1] / 2 < 250


def test_large_runs_are_timed_always(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    cost = [100, 0]
    operator = passing(monkeypatch, cost)
    for i in range(100):
        cost[0] = 100
        run(operator, 1)
        cost[0] = 5000 + i
        run(operator, SMALL)
    assert operator.counters.runs == 200
    assert operator.counters.time_ns == 100 * 100 + sum(5000 + i for i in range(100))


def test_the_time_never_falls() -> None:
    counters = Counters()
    rng = np.random.default_rng(1)
    before = 0
    for runs in range(1, 2000):
        if counters.untimed and rng.random() < 0.9:
            counters.untimed -= 1
        else:
            counters.time(int(rng.integers(1, 1000)), not counters.untimed)
        assert counters.runs == runs
        assert counters.time_ns >= before
        before = counters.time_ns
