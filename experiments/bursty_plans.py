"""Simulated plans of several queries and arrivals in bursts, from a seed.

Between two bursts there is time to catch up, during one there is not: so what is queued at the peak is a matter of what
the scheduler let run meanwhile. Babu 2005, section 2.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from experiments.scheduling_simulation import Arrival, SimulatedOperator, Simulation
from minidsms.scheduler import Scheduler

_BURSTS = 6
_LOAD_IN_BURST = 2.5
_LOAD = 0.8
"""Work that arrives per unit of time: in a burst, and over all."""


@dataclass(frozen=True)
class BurstyPlan:
    """operators: producers before consumers.  paths: from leaves to roots, how many.  arrivals: into the leaves."""

    operators: list[SimulatedOperator]
    paths: int
    arrivals: list[Arrival]

    def simulate(self, scheduler: Scheduler) -> Simulation:
        """Run it to its end; once only, for the operators keep their counts."""
        return Simulation(self.operators, scheduler, self.arrivals).run()


def bursty_plan(seed: int, trees: bool = False, rehearsed: bool = True) -> BurstyPlan:
    """One to four queries over a stream each; trees: some have two branches behind a shared beginning.

    rehearsed: see `SimulatedOperator`.
    """
    rng = Random(seed)
    operators: list[SimulatedOperator] = []
    leaves: list[tuple[SimulatedOperator, float]] = []
    paths = 0
    for _ in range(rng.randint(1, 4)):
        beginning = _branch(rng, rng.randint(1, 5), rehearsed)
        branches = [_branch(rng, rng.randint(1, 3), rehearsed) for _ in range(2 if trees and rng.random() < 0.5 else 1)]
        for branch in branches:
            branch[0].reads(beginning[-1])
            branch[-1].selectivity = 0.0
        query = [*beginning, *(operator for branch in branches for operator in branch)]
        operators += query
        paths += len(branches)
        leaves.append((beginning[0], _work(beginning[0])))
    return BurstyPlan(operators, paths, _bursts(rng, leaves))


def _branch(rng: Random, n: int, rehearsed: bool) -> list[SimulatedOperator]:
    """Operators in a row; some keep every element, as a projection does."""
    operators = [
        SimulatedOperator(1.0 if rng.random() < 0.3 else rng.uniform(0.02, 1.0), rng.uniform(0.05, 1.0), 1, rehearsed)
        for _ in range(n)
    ]
    for producer, consumer in pairwise(operators):
        consumer.reads(producer)
    return operators


def _work(operator: SimulatedOperator) -> float:
    """Time an element costs from here on."""
    return operator.time_units + operator.selectivity * sum(_work(queue.reader) for queue in operator.outputs)


def _bursts(rng: Random, leaves: list[tuple[SimulatedOperator, float]]) -> list[Arrival]:
    """Each stream has its share of the load; all have their bursts at about the same time."""
    arrivals: list[Arrival] = []
    start = 0.0
    for _ in range(_BURSTS):
        duration = rng.uniform(10.0, 40.0)
        for leaf, work in leaves:
            gap = work * len(leaves) / _LOAD_IN_BURST
            time = start + rng.uniform(0.0, duration / 3)
            while time < start + duration:
                arrivals.append(Arrival(time, leaf))
                time += rng.expovariate(1.0 / gap)
        start += duration * _LOAD_IN_BURST / _LOAD
    return arrivals
