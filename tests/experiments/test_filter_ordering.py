"""The experiments of filter ordering measure what they say."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.filter_ordering.known_filters import mean_cost
from experiments.filter_ordering.measuring import Measured, Samples
from experiments.filter_ordering.operator_runs import run
from experiments.filter_ordering.report import PAGES, PARTS, table
from experiments.filter_ordering.select import ALGORITHMS, OPTIMAL, Select
from experiments.filter_ordering.workload import Workload

SMALL = Workload((0.5,) * 4, 20_000, costs=(1, 3, 1, 3), seed=1)


def test_filters_and_probes_are_counted_as_equation_4_1_says() -> None:
    (phase,) = SMALL.phases()
    outcome = Select(SMALL, "as written").run()
    drops = phase.drops[phase.values]
    assert outcome.evaluated.sum() == round(mean_cost(drops, np.ones(4), (0, 1, 2, 3)) * 20_000)
    assert outcome.probes.sum() == round(mean_cost(drops, SMALL.probes.astype(float), (0, 1, 2, 3)) * 20_000)
    best = Select(SMALL, OPTIMAL).run()
    assert best.probes.sum() < outcome.probes.sum()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_without_measured_times_can_be_repeated(name: str) -> None:
    changing = Workload((0.2, 0.2, 0.8, 0.8), 60_000, period=30_000, seed=2)
    first, second = (Select(changing, name, rate=0.2).run(20_000) for _ in range(2))
    assert first.evaluated.tolist() == second.evaluated.tolist()
    assert first.tuples == 40_000 and len(first.evaluated) == 20


def test_a_run_through_the_engine_asks_its_filters_as_often_as_the_order_says() -> None:
    (phase,) = SMALL.phases()
    measured = Measured()
    run(SMALL, "as written", measured)
    assert measured.evaluated.mean == pytest.approx(mean_cost(phase.drops[phase.values], np.ones(4), (0, 1, 2, 3)))


def test_intervals_are_those_of_student() -> None:
    assert Samples([1.0, 2.0, 3.0]).margin == pytest.approx(4.30 / 3**0.5)
    assert Samples([1.0]).margin == 0.0


def test_a_page_has_what_the_thesis_shows_what_was_measured_and_what_is_to_be_said() -> None:
    measured = Measured()
    measured.rate.values += [1.0, 2.0]
    shown = PAGES.section(
        "4.11: number of filters", table({3: {"Sweep": measured}}, "filters", (("rate", "M tuples/s"),))
    )
    assert "| 3 | 1.50 ± 6.3" in shown
    assert shown.index("**Thesis.**") < shown.index("| filters |") < shown.index("**Beside it.**")
    assert "table 4.1" in PAGES.setting() and len(PARTS) == 5
