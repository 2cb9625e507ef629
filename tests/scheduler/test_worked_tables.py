"""The two worked tables of Babu 2005, section 2.3.2: total queue size at each instant, as multiples of n.

n elements (a block of size 1) arrive at every instant from 0 to 6. A table's entry is what waits after the arrival.
"""

from __future__ import annotations

import pytest

from experiments.scheduling_simulation import Arrival, Simulation, mean_sizes, pipeline
from minidsms.scheduler import SCHEDULERS

# One unit of time for a whole block at the first operator, and for what is left of it at the others.
TWO_OPERATORS = [(0.2, 1.0), (0.0, 1 / 0.2)]
THREE_OPERATORS = [(0.9, 1.0), (1.0, 1 / 0.9), (0.0, 1 / 0.9)]

TABLES = [
    (TWO_OPERATORS, "fifo", [1.0, 1.2, 2.0, 2.2, 3.0, 3.2, 4.0], 2.4),
    (TWO_OPERATORS, "greedy", [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2], 1.6),
    (TWO_OPERATORS, "chain", [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2], 1.6),
    (THREE_OPERATORS, "fifo", [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0], 3.2),
    (THREE_OPERATORS, "greedy", [1.0, 1.9, 2.8, 3.7, 4.6, 5.5, 6.4], 3.7),
    (THREE_OPERATORS, "chain", [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0], 3.2),
]


def simulate(steps: list[tuple[float, float]], scheduler: str) -> Simulation:
    operators = pipeline(steps)
    arrivals = [Arrival(float(time), operators[0]) for time in range(7)]
    return Simulation(operators, SCHEDULERS[scheduler](1), arrivals).run()


@pytest.mark.parametrize(("steps", "scheduler", "row", "mean"), TABLES)
def test_the_table_comes_out_as_printed(
    steps: list[tuple[float, float]], scheduler: str, row: list[float], mean: float
) -> None:
    sizes, mean_size = mean_sizes(simulate(steps, scheduler), range(7))
    assert sizes == pytest.approx(row)
    assert round(mean_size, 1) == mean


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_without_arrivals_from_instant_7_on_everything_leaves(scheduler: str) -> None:
    two, three = simulate(TWO_OPERATORS, scheduler), simulate(THREE_OPERATORS, scheduler)
    assert (two.total, two.now) == (0.0, pytest.approx(14.0))
    assert (three.total, three.now) == (0.0, pytest.approx(21.0))
