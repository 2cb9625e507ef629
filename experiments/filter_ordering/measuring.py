"""Measuring algorithms side by side, over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from experiments.filter_ordering.select import OPTIMAL, Outcome, Select
from experiments.filter_ordering.workload import Workload

Float64Array = npt.NDArray[np.float64]

STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Two-sided 95 % points of Student's t, by number of samples."""


@dataclass
class Samples:
    """A figure measured several times."""

    values: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval of the mean."""
        n = len(self.values)
        if n < 2:
            return 0.0
        return float(STUDENT.get(n, 1.96) * np.std(self.values, ddof=1) / n**0.5)


@dataclass
class Measured:
    """Of one algorithm at one point of a figure.

    rate: M tuples/s of CPU time; time_ns: the same per tuple.  evaluated, probes: filters and probes per tuple, with
    filters' times as the workload says.  profiling, reoptimizing: shares of the time.  time_ratio, probes_ratio: times
    those of Optimal, seed by seed, where it is there: the seeds' differences fall out.
    """

    rate: Samples = field(default_factory=Samples)
    evaluated: Samples = field(default_factory=Samples)
    probes: Samples = field(default_factory=Samples)
    profiling: Samples = field(default_factory=Samples)
    reoptimizing: Samples = field(default_factory=Samples)
    time_ns: Samples = field(default_factory=Samples)
    time_ratio: Samples = field(default_factory=Samples)
    probes_ratio: Samples = field(default_factory=Samples)


Points = dict[float, dict[str, Measured]]
"""By what stands on the x axis, then by algorithm."""

BLOCK, BULK = 5000, 200
"""Of timed runs: what is done once per block or bulk then weighs little. Counted runs re-order at once."""


def compare(
    workload_of: Callable[[int], Workload],
    names: Sequence[str],
    seeds: int,
    warm_up: int = 0,
    rate: float | None = None,
    repeats: int = 2,
) -> dict[str, Measured]:
    """Every algorithm on the workload of every seed, by turns; of so many timed runs the fastest.

    Optimal is left out where there are too many filters.
    """
    found = {name: Measured() for name in names if name != OPTIMAL or workload_of(0).n <= 12}
    for seed in range(seeds):
        workload = workload_of(seed)
        for name, measured in found.items():
            own_rate = None if name == OPTIMAL else rate
            timed = min(
                (_timed(workload, name, own_rate, warm_up) for _ in range(repeats)), key=lambda o: o.spent.total
            )
            counted = Select(workload, name, own_rate).run(warm_up)
            _note(measured, timed, counted)
    relate(found)
    return found


def relate(found: dict[str, Measured]) -> None:
    """Work the ratios out."""
    if OPTIMAL not in found:
        return
    times, probes = found[OPTIMAL].time_ns.values, found[OPTIMAL].probes.values
    for measured in found.values():
        measured.time_ratio.values = [own / best for own, best in zip(measured.time_ns.values, times)]
        measured.probes_ratio.values = [own / best for own, best in zip(measured.probes.values, probes)]


def _timed(workload: Workload, name: str, rate: float | None, warm_up: int) -> Outcome:
    return Select(workload, name, rate, measured=True, block=BLOCK, bulk=BULK).run(warm_up)


def _note(measured: Measured, timed: Outcome, counted: Outcome) -> None:
    """One seed's figures."""
    measured.rate.values.append(timed.rate / 1e6)
    measured.time_ns.values.append(1e9 * timed.spent.total / timed.tuples)
    measured.profiling.values.append(timed.spent.profiling / timed.spent.total)
    measured.reoptimizing.values.append(timed.spent.reoptimizing / timed.spent.total)
    measured.evaluated.values.append(float(counted.evaluated.sum()) / counted.tuples)
    measured.probes.values.append(float(counted.probes.sum()) / counted.tuples)
