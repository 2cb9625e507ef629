"""The clock of a plan counts what runs between start and stop, and small parts for those it does not time."""

from __future__ import annotations

import pytest

from minidsms.machine_code.compile_time import CompileTime
from minidsms.streamon import processor_clock
from minidsms.streamon.processor_clock import SAMPLED, SMALL, ProcessorClock


@pytest.fixture(autouse=True)
def a_tick_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 1_000_000, 5))
    monkeypatch.setattr(processor_clock.time, "thread_time_ns", lambda: next(ticks))


def test_large_parts_are_timed_one_by_one() -> None:
    clock = ProcessorClock()
    for _ in range(10):
        clock.start(SMALL)
        clock.stop()
    assert clock.ns == 10 * 5


def test_of_small_parts_one_stands_for_many() -> None:
    clock = ProcessorClock()
    for _ in range(3 * SAMPLED):
        clock.start(1)
        clock.stop()
    assert clock.ns == 3 * SAMPLED * 5


def test_the_time_in_which_machine_code_is_made_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_clock, "COMPILED", compiled := CompileTime())
    clock = ProcessorClock()
    clock.start(SMALL)
    compiled.thread_ns += 3
    clock.stop()
    assert clock.ns == 5 - 3
    clock.start(SMALL)
    compiled.thread_ns += 1000  # by another thread
    clock.stop()
    assert clock.ns == 5 - 3
