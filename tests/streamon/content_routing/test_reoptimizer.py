"""Routes are tried by the clock, and given up where it says that they do not pay."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Column, Schema, Type
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.routes import Routes
from minidsms.expressions.value import Frame
from minidsms.streamon.content_routing.reoptimizer import FIRST_BAN, FIRST_NS, RoutedReoptimizer
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.content_routing.trial import CHUNKS, TRIED, WORSE, RouteTrial
from minidsms.streamon.filter_ordering.static import Static
from minidsms.streamon.pipelined_filters.costs import FilterCosts
from minidsms.streamon.pipelined_filters.reoptimizer import OrderReoptimizer
from minidsms.values.dictionary import TextDictionary

N = 4
CHUNK = 65_536


class Clock:
    """What the filters have spent, as the test says."""

    def __init__(self) -> None:
        self.ns, self.tuples = 1e4 * FIRST_NS, 0

    def spent(self) -> tuple[float, int]:
        return self.ns, self.tuples

    def pass_chunks(self, routing: RoutedReoptimizer, ns_per_tuple: float, chunks: int = 1) -> bool:
        is_due = False
        for _ in range(chunks):
            routing.enters(CHUNK)
            self.tuples += CHUNK
            self.ns += CHUNK * ns_per_tuple
            is_due |= routing.seen()
        return is_due


def reoptimizer(clock: Clock, cost_ns: float) -> tuple[RoutedReoptimizer, Sample]:
    """Filters of so many ns each, in an order that stays."""
    ordering = OrderReoptimizer("static", Static(N))
    sample = Sample(N, Attributes(Schema.of(("class", Type.INTEGER)), TextDictionary(), 1_000_000), 4096)
    costs = FilterCosts((), measures_time=True)
    costs.values = np.full(N, cost_ns)
    return RoutedReoptimizer(ordering, sample, costs, clock.spent, 24, measures_time=True), sample


def drawn(sample: Sample, seed: int = 0) -> np.ndarray:
    """Each filter drops nearly all of one class, and hardly anything of the others."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, N, 2048)
    drops: np.ndarray = rng.random((2048, N)) < np.where(classes[:, None] == np.arange(N), 0.95, 0.1)
    sample.take(Frame(lambda _: Column(classes), 2048), drops)
    return drops


def test_comparisons_are_not_worth_a_sample_and_dear_filters_are() -> None:
    for cost, expected in ((1.0, False), (90.0, True)):
        clock = Clock()
        routing, sample = reoptimizer(clock, cost)
        routing.enters(CHUNK)
        assert routing.is_promising(drawn(sample)) is expected
        assert (routing.propose() is not None) is expected


def test_single_tuples_are_not_worth_a_sample() -> None:
    clock = Clock()
    routing, sample = reoptimizer(clock, 90.0)
    routing.enters(1)
    assert not routing.is_promising(drawn(sample))


def test_routes_that_cost_more_by_the_clock_are_given_up_and_left_alone() -> None:
    clock = Clock()
    routing, sample = reoptimizer(clock, 90.0)
    drawn(sample)
    clock.pass_chunks(routing, 250.0, 2)
    proposal = routing.propose()
    assert proposal is not None and isinstance(proposal.plan, Routes)
    routing.adopt(proposal.plan)
    assert clock.pass_chunks(routing, 400.0, TRIED), "the clock says that they cost more"
    given_up = routing.propose()
    assert given_up is not None and given_up.plan == (0, 1, 2, 3)
    assert "cost more than they save" in given_up.reason
    routing.adopt(given_up.plan)
    drawn(sample, 1)
    assert routing.propose() is None
    clock.pass_chunks(routing, 250.0, FIRST_BAN // CHUNK + 1)
    drawn(sample, 2)
    again = routing.propose()
    assert again is not None and isinstance(again.plan, Routes)


def test_routes_that_save_by_the_clock_stay() -> None:
    clock = Clock()
    routing, sample = reoptimizer(clock, 90.0)
    drawn(sample)
    clock.pass_chunks(routing, 250.0, 2)
    proposal = routing.propose()
    assert proposal is not None
    routing.adopt(proposal.plan)
    clock.pass_chunks(routing, 120.0, 4)
    assert routing.propose() is None


def test_a_processor_that_others_slow_for_a_while_condemns_no_routes() -> None:
    trial = RouteTrial()
    for cost in [100.0] * CHUNKS:
        assert not trial.has_failed(cost)
    trial.begin()
    assert not any([trial.has_failed(cost) for cost in [160.0] * (TRIED - 1) + [80.0] + [160.0] * TRIED])


def test_routes_fail_by_dearer_chunks_in_turn_and_only_once() -> None:
    trial = RouteTrial()
    assert not trial.has_failed(100.0)
    trial.begin()
    dearer = 100.0 * (1 + WORSE) + 1
    assert [trial.has_failed(dearer) for _ in range(TRIED + 3)] == [False] * (TRIED - 1) + [True] + [False] * 3
