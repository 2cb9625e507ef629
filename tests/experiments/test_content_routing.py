"""The simulator of content-based routing counts what the definitions say."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.content_routing.simulator import KNOWS, LEARNS, SBR, calls_of_order, greedy_order, simulate
from experiments.content_routing.streams import AGGREGATE, StarStream, drawn, skewed


def test_streams_have_the_selectivities_of_the_paper() -> None:
    stream = skewed(6, 0.25, 50_000)
    assert (stream.drops.sum(axis=1) == 0).mean() == pytest.approx(AGGREGATE, abs=0.005)
    for share in (0.05, 0.35):
        stream = drawn(6, 50_000, seed=1, aggregate=share)
        assert (stream.drops.sum(axis=1) == 0).mean() == pytest.approx(share, abs=0.01)


def test_routing_calls_are_operators_up_to_the_one_that_drops() -> None:
    drops = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]], np.uint8)
    stream = StarStream(np.array([[0.1, 0.2, 0.3]]), np.zeros(4, np.int64), drops)
    assert simulate(stream, KNOWS).calls == (2 + 1 + 3 + 3) / 4 == calls_of_order(stream, np.arange(3))
    assert greedy_order(stream).tolist() == [0, 1, 2]


def test_content_learns_saves_calls_where_classes_differ_and_none_where_they_do_not() -> None:
    stream = skewed(6, 0.05, 60_000)
    sbr, learns, knows = (simulate(stream, policy) for policy in (SBR, LEARNS, KNOWS))
    assert knows.calls < learns.calls < 0.7 * sbr.calls
    assert learns.classified > 0.3 and learns.wrong < 0.1
    mixed = StarStream(stream.selectivities, np.random.default_rng(3).permutation(stream.classes), stream.drops)
    assert simulate(mixed, LEARNS).calls == pytest.approx(simulate(mixed, SBR).calls, rel=0.05)
