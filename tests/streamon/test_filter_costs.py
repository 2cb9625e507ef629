"""What filters cost is their slope, and is the same for filters that are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from minidsms.elements import Column, Int64Array
from minidsms.expressions.value import Frame
from minidsms.streamon.pipelined_filters import costs
from minidsms.streamon.pipelined_filters.costs import FEW, MANY, MOST, FilterCosts


class Clock:
    """Stands still but for what filters say they take, and is slow for a while now and then."""

    def __init__(self) -> None:
        self.ns = 0
        self._looks = 0

    def __call__(self) -> int:
        return self.ns

    def spend(self, ns: float) -> None:
        self._looks += 1
        self.ns += int(ns * (3 if self._looks % 16 in (1, 2, 3, 4, 5) else 1))


class Timed:
    """A filter that takes so long per call and per tuple."""

    text, is_fixed, is_thread_safe, part = "timed", False, False, None

    def __init__(self, clock: Clock, call_ns: float, tuple_ns: float) -> None:
        self._clock, self._call_ns, self._tuple_ns = clock, call_ns, tuple_ns
        self.asked: list[int] = []

    def narrow(self, frame: Frame, rows: Int64Array | None, use_kernels: bool) -> tuple[Int64Array, None]:
        self.asked.append(frame.n)
        self._clock.spend(self._call_ns + self._tuple_ns * frame.n)
        return np.arange(frame.n), None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(costs, "thread_ns", clock)
    return clock


def _calibrated(filters: list[Timed]) -> list[float]:
    known = FilterCosts(filters, measures_time=True)
    known.calibrate(Frame(lambda _: Column(np.zeros(MOST, np.int64)), MOST), None, False)
    return list(known.values)


def test_filters_that_are_alike_cost_alike_on_a_processor_that_is_slow_now_and_then(clock: Clock) -> None:
    for tuple_ns in (2.0, 90.0):
        assert _calibrated([Timed(clock, 15_000, tuple_ns) for _ in range(4)]) == pytest.approx(
            [tuple_ns] * 4, rel=0.01
        )


def test_a_dear_filter_is_timed_on_as_few_tuples_as_tell(clock: Clock) -> None:
    cheap, dear, dearest = Timed(clock, 15_000, 2.0), Timed(clock, 15_000, 90.0), Timed(clock, 0, 10_000.0)
    assert _calibrated([cheap, dear, dearest]) == pytest.approx([2.0, 90.0, 10_000.0], rel=0.01)
    assert (max(cheap.asked), max(dear.asked), max(dearest.asked)) == (MOST, MANY, FEW)
