"""`python -m experiments.scheduling`: what is queued under round robin, FIFO, Greedy and Chain when streams are bursty.

Prints in how many of 100 seeded plans the peak of Chain is at most that of every other policy plus one block per path,
and writes experiments/results/scheduling.png. Babu 2005, section 2.3.2.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from experiments.bursty_plans import bursty_plan
from experiments.pictures import pyplot, save
from minidsms.scheduler import SCHEDULERS
from minidsms.web.scheduling import side_by_side

RESULTS = Path(__file__).parent / "results"
TOLERANCE = 1e-9


def compare(plans: int, seed: int, trees: bool, rehearsed: bool) -> None:
    """Count and print."""
    within = 0
    relative: Counter[str] = Counter()
    for n in range(seed, seed + plans):
        peaks = {}
        for name, scheduler in SCHEDULERS.items():
            plan = bursty_plan(n, trees, rehearsed)
            peaks[name] = plan.simulate(scheduler(1)).peak
        least = min(peak for name, peak in peaks.items() if name != "chain")
        within += peaks["chain"] <= least + plan.paths + TOLERANCE
        for name, peak in peaks.items():
            relative[name] += peak / peaks["chain"] / plans  # type: ignore[assignment]
    kind = f"{'trees' if trees else 'paths'}, costs {'known' if rehearsed else 'measured'}"
    means = ", ".join(f"{name} {share:.2f}" for name, share in relative.items())
    print(f"{kind:22} Chain at most every other plus a block per path: {within} of {plans}; mean peak: {means}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(prog="python -m experiments.scheduling", description=__doc__)
    parser.add_argument("--plans", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for trees in (False, True):
        for rehearsed in (True, False):
            compare(options.plans, options.seed, trees, rehearsed)
    figure, (simulated, real) = pyplot().subplots(1, 2, figsize=(11, 4))
    for name, scheduler in SCHEDULERS.items():
        trajectory = bursty_plan(options.seed + 1, trees=True).simulate(scheduler(1)).trajectory
        simulated.step(*zip(*trajectory), where="post", label=name, linewidth=0.8)
    for name, sizes in side_by_side(options.seed).items():
        real.plot(sizes, label=name, linewidth=0.8)
        print(f"real operators, {name:12} peak {max(sizes):7,} elements, mean {sum(sizes) / len(sizes):9,.0f}")
    simulated.set(title="simulated operators", xlabel="time", ylabel="queued, in blocks")
    real.set(title="operators of three queries", xlabel="operator runs", ylabel="queued, in elements")
    simulated.legend()
    save(figure, RESULTS / "scheduling.png")


if __name__ == "__main__":
    main()
