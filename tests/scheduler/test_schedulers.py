"""What each scheduler lets run, on simulated operators: the choice, the bound on latency, the measuring."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import pytest

from experiments.bursty_plans import bursty_plan
from experiments.scheduling_simulation import Arrival, Block, SimulatedOperator, Simulation, pipeline
from minidsms.scheduler import SCHEDULERS, Chain, Fifo, Greedy
from minidsms.scheduler.by_priority import ByPriority
from minidsms.scheduler.statistics import Measurements
from tests.seeds import seeds

PLANS = 8


def peak(scheduler: str, seed: int, trees: bool, rehearsed: bool) -> float:
    return bursty_plan(seed, trees, rehearsed).simulate(SCHEDULERS[scheduler](1)).peak


@pytest.mark.parametrize("rehearsed", [True, False], ids=["costs known", "costs measured"])
@pytest.mark.parametrize("trees", [False, True], ids=["paths", "trees"])
def test_the_peak_of_chain_is_at_most_a_block_per_path_above_every_other(trees: bool, rehearsed: bool) -> None:
    for seed in seeds(PLANS):
        least = min(peak(name, seed, trees, rehearsed) for name in SCHEDULERS if name != "chain")
        assert peak("chain", seed, trees, rehearsed) <= least + bursty_plan(seed, trees).paths + 1e-9, f"seed {seed}"


@pytest.mark.parametrize("name", ["fifo", "greedy", "chain"])
def test_running_to_the_end_takes_the_choices_one_by_one_would_take(name: str) -> None:
    def order(one_by_one: bool) -> list[int]:
        plan = bursty_plan(7, trees=True)
        taken: list[int] = []
        for i, operator in enumerate(plan.operators):
            noted(operator, i, taken)
        simulation = Simulation(plan.operators, SCHEDULERS[name](1), [])
        for n in range(60):
            plan.arrivals[n].operator.inputs[0].put(Block(float(n), 1.0))
        if one_by_one:
            simulation.run()
        else:
            simulation.scheduler.run(plan.operators)
        return taken

    assert order(one_by_one=False) == order(one_by_one=True) != []


def noted(operator: SimulatedOperator, position: int, taken: list[int]) -> None:
    """Let the operator note its position when it runs."""
    run = operator.run

    def noting(budget: int) -> int:
        taken.append(position)
        return run(budget)

    operator.run = noting  # type: ignore[method-assign]


def test_a_block_that_has_waited_beyond_the_bound_goes_before_steeper_chains() -> None:
    def longest(bound: int | None) -> float:
        # The first operator alone is steep: without a bound the second one waits as long as the stream flows.
        operators = pipeline([(0.2, 1.0), (0.0, 2.0)])
        arrivals = [Arrival(float(time), operators[0]) for time in range(100)]
        chain = Chain(1, bound)
        simulation = Simulation(operators, chain, arrivals)
        chain.now = lambda: simulation.ticks
        return max(simulation.run().latencies)

    unbounded, bounded, fifo = longest(None), longest(50_000), longest(0)
    assert unbounded > 90
    assert bounded < 60
    assert fifo < bounded


def test_a_bound_of_nothing_is_fifo_and_one_without_end_is_chain() -> None:
    def trajectory(scheduler: ByPriority) -> list[tuple[float, float]]:
        plan = bursty_plan(3)
        simulation = Simulation(plan.operators, scheduler, plan.arrivals)
        if isinstance(scheduler, Chain):
            scheduler.now = lambda: simulation.ticks
        return simulation.run().trajectory

    assert trajectory(Chain(1, 10**9)) == trajectory(Chain(1))
    assert trajectory(Chain(1, -1)) == trajectory(Fifo(1))


def test_greedy_prefers_the_operator_that_reduces_most_in_its_time() -> None:
    fast, slow = SimulatedOperator(0.5, 1.0), SimulatedOperator(0.1, 10.0)
    for operator in (slow, fast):
        operator.inputs[0].put(Block(0.0, 1.0))
    assert Greedy(1).choose([slow, fast]) is fast


def test_among_equals_the_oldest_element_goes_first() -> None:
    young, old = SimulatedOperator(0.5, 1.0), SimulatedOperator(0.5, 1.0)
    young.inputs[0].put(Block(2.0, 1.0))
    old.inputs[0].put(Block(1.0, 1.0))
    for scheduler in (Fifo(1), Greedy(1), Chain(1)):
        assert scheduler.choose([young, old]) is old
        assert scheduler.choose([old, young]) is old


def test_round_robin_chooses_in_turn() -> None:
    operators = [SimulatedOperator(0.0, 1.0) for _ in range(3)]
    for operator in operators:
        operator.inputs[0].put(Block(0.0, 1.0))
    scheduler = SCHEDULERS["round_robin"](1)
    assert [scheduler.choose(operators) for _ in range(4)] == [*operators, operators[0]]


def test_priorities_are_renewed_when_selectivities_have_moved_and_not_before() -> None:
    operators = pipeline([(0.2, 1.0), (0.5, 1.0), (0.0, 1.0)])
    chain = Chain(1)
    arrivals = [Arrival(float(time), operators[0]) for time in range(0, 400, 2)]
    simulation = Simulation(operators, chain, arrivals)
    simulation.run(until=200)
    assert chain.recomputed == 1
    operators[0].selectivity = 1.0
    simulation.run()
    assert chain.recomputed > 1


def test_statistics_follow_a_change_within_a_few_readings() -> None:
    operator = SimulatedOperator(0.2, 1.0)
    measurements = Measurements()
    simulation = Simulation([operator], Fifo(1), [])
    read = []
    for selectivity in (0.2, *[0.8] * 8):
        operator.selectivity = selectivity
        for _ in range(1000):
            operator.inputs[0].put(Block(0.0, 1.0))
        simulation.run()
        read.append(measurements.read([operator])[0].selectivity)
    assert read[0] == pytest.approx(0.2)
    assert all(now < then for now, then in pairwise(read))
    assert read[4] == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_does_not_keep_the_operators_of_dropped_queries_alive(name: str) -> None:
    operators = pipeline([(0.5, 1.0), (0.0, 1.0)])
    scheduler = SCHEDULERS[name](1)
    scheduler.run(operators)
    gone = weakref.ref(operators[1])
    del operators
    gc.collect()
    assert gone() is None
