"""`python -m experiments.filter_sets`: figures 6 to 9 of Lee and Lee 2012, in ASCs evaluated and in time."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from experiments.filter_sets.figures import STRATEGIES, figure_6, figure_7, figure_8, figure_9
from experiments.filter_sets.running import Cost
from experiments.pages import Pages
from experiments.pictures import pyplot, save

PAGES = Pages("filter_sets")


def _table(first: str, costs: Mapping[object, Mapping[str, Cost]], tuples: int) -> str:
    head = f"| {first} | " + " | ".join(f"{s}, ASCs | ns" for s in STRATEGIES) + " |"
    lines = [head, "|---|" + "---:|" * (2 * len(STRATEGIES))]
    for name, by in costs.items():
        cells = " | ".join(f"{by[s].looked / tuples:.2f} | {by[s].ns:.0f}" for s in STRATEGIES)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, draw, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.filter_sets", description=__doc__)
    parser.add_argument("--tuples", type=int, default=100_000, help="of each data set (the paper: 500,000)")
    options = parser.parse_args()
    tuples = options.tuples
    figure, axes = pyplot().subplots(2, 2, figsize=(11, 8))
    sixth, seventh = figure_6(tuples), figure_7(tuples)
    eighth, period = figure_8(tuples), 4 * tuples // 5
    ninth = figure_9(2 * tuples, max(10_000, period))
    for i, name in enumerate(STRATEGIES):
        places = [x + 0.13 * (i - 2.5) for x in range(len(sixth))]
        axes[0, 0].bar(places, [by[name].looked / tuples for by in sixth.values()], 0.12, label=name)
        axes[0, 1].plot(list(seventh), [by[name].looked / tuples for by in seventh.values()], marker="o", label=name)
    axes[0, 0].set(title="figure 6", ylabel="ASCs evaluated per tuple", xticks=range(len(sixth)))
    axes[0, 0].set_xticklabels(list(sixth))
    axes[0, 0].legend(fontsize=8)
    axes[0, 1].set(title="figure 7", xlabel="p-attributes", xticks=list(seventh))
    axes[1, 0].plot([m.deviation for m in eighth], [m.ratio for m in eighth], marker="o", label="micro ratio")
    axes[1, 0].plot([m.deviation for m in eighth], [m.relative for m in eighth], marker="s", label="relative cost")
    axes[1, 0].plot([m.deviation for m in eighth], [m.relative_ns for m in eighth], ":", label="relative time")
    axes[1, 0].set(title="figure 8", xlabel="standard deviation of ones", ylim=(0, None))
    axes[1, 0].legend(fontsize=8)
    for mu, run in ninth.items():
        trace = [looked / 10_000 for looked in run.trace]
        axes[1, 1].plot([10_000 * (i + 1) for i in range(len(trace))], trace, label=f"mu = {mu:g}")
    axes[1, 1].set(title="figure 9", xlabel="tuples", ylabel="ASCs evaluated per tuple")
    axes[1, 1].legend(fontsize=8)
    save(figure, PAGES.picture("figures"), dpi=110)
    micro = ["| deviation of ones | micro ratio | relative cost | relative time |", "|---:|---:|---:|---:|"]
    micro += [f"| {m.deviation:.2f} | {m.ratio:.2f} | {m.relative:.3f} | {m.relative_ns:.2f} |" for m in eighth]
    adaptive = ["| mu | ASCs a tuple | ns a tuple |", "|---:|---:|---:|"]
    adaptive += [f"| {mu:g} | {c.looked / (8 * tuples):.3f} | {c.ns:.0f} |" for mu, c in ninth.items()]
    sections = [
        PAGES.section("Figure 6", _table("data", sixth, tuples) + "\n\n" + PAGES.shown("figures")),
        PAGES.section("Figure 7", _table("p-attributes", seventh, tuples)),
        PAGES.section("Figure 8", "\n".join(micro)),
        PAGES.section("Figure 9", "\n".join(adaptive)),
    ]
    print(PAGES.write("sequences", "Orders of columns in screens", sections))


if __name__ == "__main__":
    main()
