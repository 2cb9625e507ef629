"""Content-Learns: what its matrices learn, and forget."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from minidsms.elements import Column, Schema, Type
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.routes import Routes
from minidsms.expressions.value import Frame
from minidsms.settings import Settings
from minidsms.streamon.content_routing.content_learns import ContentLearns
from minidsms.streamon.content_routing.options import RoutingOptions
from minidsms.values.dictionary import TextDictionary

SCHEMA = Schema.of(("serial", Type.INTEGER), ("noise", Type.INTEGER), ("class", Type.INTEGER))


def learns(filters: int = 3, **changes: object) -> ContentLearns:
    options = dataclasses.replace(RoutingOptions.of(Settings(routing="content")), **changes)  # type: ignore[arg-type]
    return ContentLearns(filters, Attributes(SCHEMA, TextDictionary(), 1_000_000), options)


def tuples(n: int, seed: int = 0) -> tuple[np.ndarray, Frame]:
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n)
    columns = np.arange(n), rng.integers(0, 1000, n), classes
    return classes, Frame(lambda i: Column(columns[i]), n)


def profile(learns: ContentLearns, passes: tuple[float, float, float], seed: int = 0) -> None:
    """Of the filter whose turn it is. passes: its selectivity in each class."""
    classes, part = tuples(150, seed)
    drops = np.random.default_rng(seed + 1).random(150) >= np.array(passes)[classes]
    learns.sample.take(part, drops[:, None])
    assert learns.is_profiled()


def test_the_attribute_that_tells_of_a_filter_is_its_classifier() -> None:
    learner = learns()
    profile(learner, (0.05, 0.9, 0.9))
    assert str(learner.classify()) == "class"
    assert learner.ratios[0] > 0.2
    assert learner.selectivity[0, 1:4] == pytest.approx([0.05, 0.9, 0.9], abs=0.1)
    assert (learner.selectivity[0, 4:] == learner.overall[0]).all(), "buckets without tuples have what all have"


def test_noise_and_serials_are_no_classifiers() -> None:
    found = 0
    for seed in range(20):
        learner = learns()
        profile(learner, (0.5, 0.5, 0.5), seed)
        found += learner.classify() is not None
    assert found <= 2


def test_a_gamma_that_nothing_reaches_leaves_no_classifier() -> None:
    learner = learns(gain=0.9)
    profile(learner, (0.05, 0.9, 0.9))
    assert learner.classify() is None


def test_a_block_counts_as_its_tuples_one_by_one() -> None:
    for passing in (True, False):
        together, single = learns(), learns()
        cells = np.array([1, 2, 1, 1, 0], np.uint8)
        together.passed(1, cells, np.full(5, passing))
        for cell in cells:
            single.passed(1, np.array([cell], np.uint8), np.array([passing]))
        assert together.overall == pytest.approx(single.overall)
        assert together.selectivity == pytest.approx(single.selectivity)
    assert single.overall[1] == pytest.approx(0.5 * 0.95**5)


def test_without_a_correlation_classes_are_forgotten_within_sixty_tuples_each() -> None:
    """Example 5.1."""
    learner = learns()
    profile(learner, (0.05, 0.9, 0.9))
    learner.classify()
    rng = np.random.default_rng(3)
    learner.passed(0, rng.integers(1, 4, 180).astype(np.uint8), rng.random(180) < 0.5)
    assert learner.selectivity[0, 1:4] == pytest.approx([0.5] * 3, abs=0.2)


def test_classes_take_the_filter_first_that_passes_least_of_them() -> None:
    learner = learns()
    for number in range(3):
        passes = tuple(0.05 if c == number else 0.9 for c in range(3))
        profile(learner, (passes[0], passes[1], passes[2]), 10 * number)
        assert learner.profiled == number and learner.classify() is not None
        learner.profiled += 1
        learner.sample.forget()
    plan = learner.plan()
    assert isinstance(plan, Routes)
    for bucket in (1, 2, 3):
        assert plan.orders[plan.table[bucket]][0] == bucket - 1
    assert learner.cost(plan) < 0.7 * learner.cost(plan.order)


def test_filters_that_pass_all_or_nothing_are_not_profiled() -> None:
    learner = learns(4)
    learner.overall[:] = 0.5, 0.999, 0.001, 0.4
    learner.next()
    assert learner.profiled == 3
    learner.next()
    assert learner.profiled == 0
