"""A chunk divided by route: what passes, what fails, and what each filter is asked."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from minidsms.elements import Column, Int64Array, Schema, Type
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.predicate import narrow_by, settle
from minidsms.expressions.value import Frame
from minidsms.streamon.pipelined_filters.executor import FilterExecutor
from minidsms.values.dictionary import TextDictionary

N, ROWS = 5, 400
ATTRIBUTES = Attributes(Schema.of(("class", Type.INTEGER), ("row", Type.INTEGER)), TextDictionary(), 1_000_000)


class Drawn:
    """A filter that drops some rows and fails on others. asked: the rows it was asked about, call by call."""

    text, is_fixed, is_thread_safe, part = "", False, True, None

    def __init__(self, drops: np.ndarray, fails: np.ndarray) -> None:
        self._drops, self._fails = drops, fails
        self.asked: list[Int64Array] = []

    def narrow(self, frame: Frame, rows: Int64Array | None, use_kernels: bool) -> tuple[Int64Array, Int64Array | None]:
        ids = frame.column(1).values if rows is None else frame.subset(rows).column(1).values
        self.asked.append(ids)
        kept, failed = ~self._drops[ids] | self._fails[ids], self._fails[ids]
        places = np.arange(len(ids)) if rows is None else rows
        return places[kept], places[failed] if failed.any() else None


def filters(rng: np.random.Generator) -> list[Drawn]:
    return [Drawn(rng.random(ROWS) < 0.4, rng.random(ROWS) < 0.02) for _ in range(N)]


@pytest.mark.parametrize("some", [False, True])
def test_routes_keep_what_any_order_keeps_and_ask_no_filter_twice(some: bool) -> None:
    shared = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn = filters(rng)
        classes = rng.integers(0, 9, ROWS)
        frame = Frame(lambda i, c=classes: Column(np.arange(ROWS) if i else c), ROWS)  # type: ignore[misc]
        rows = np.flatnonzero(rng.random(ROWS) < 0.6) if some else None
        expected = [
            each.tolist() for each in settle(*narrow_by(drawn, range(N), frame, rows, False)) if each is not None
        ]
        executor = FilterExecutor(drawn, measures_time=False, attributes=ATTRIBUTES)
        plan = executor.random_plan(Random(seed))
        assert executor.is_legal(plan)
        executor.switch(plan)
        for each in drawn:
            each.asked.clear()
        found = settle(*executor.run(frame, rows, use_kernels=False))
        assert [each.tolist() for each in found if each is not None] == expected
        asked = [np.concatenate([np.zeros(0, np.int64), *each.asked]) for each in drawn]
        assert all(len(np.unique(each)) == len(each) for each in asked)
        assert executor.spent() == (sum(map(len, asked)), ROWS if rows is None else len(rows))
        shared += getattr(plan, "own", None) is not None
    assert shared > 4


def test_filters_behind_the_places_of_their_own_are_called_once_for_all_parts() -> None:
    rng = np.random.default_rng(1)
    drawn = [Drawn(rng.random(ROWS) < 0.1, np.zeros(ROWS, np.bool_)) for _ in range(N)]
    frame = Frame(lambda i: Column(np.arange(ROWS)), ROWS)
    executor = FilterExecutor(drawn, measures_time=False, attributes=ATTRIBUTES)
    plan = next(
        p
        for p in map(executor.random_plan, map(Random, range(1000)))
        if getattr(p, "own", None) == 1 and len(p.orders) > 2
    )
    executor.switch(plan)
    executor.run(frame, None, use_kernels=False)
    assert sum(len(each.asked) for each in drawn) <= len(plan.orders) + N
