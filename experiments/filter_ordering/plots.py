"""The figures as pictures. Every algorithm has a colour and a mark of its own, the same in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.filter_ordering.adaptivity import BLOCK, CHANGE, Timeline
from experiments.filter_ordering.measuring import Measured, Points, Samples
from experiments.pictures import legend_below, pyplot, save

STYLES = {
    "Optimal": ("black", "s"),
    "A-Greedy": ("tab:blue", "o"),
    "Sweep": ("tab:orange", "^"),
    "LocalSwaps": ("tab:green", "v"),
    "Independent": ("tab:red", "D"),
    "A-Greedy, plan log": ("tab:purple", "P"),
    "as written": ("grey", "x"),
}


def curves(axes: Any, points: Points, figure: str, title: str, x_label: str, y_label: str, log: bool = False) -> None:
    """A figure of a result per algorithm over x, with 95 % confidence intervals. figure: the name of the result."""
    for name, (colour, mark) in STYLES.items():
        at = [(x, sample_of(found[name], figure)) for x, found in points.items() if name in found]
        if at:
            x, samples = zip(*at)
            axes.errorbar(
                x,
                [s.mean for s in samples],
                [s.margin for s in samples],
                label=name,
                color=colour,
                marker=mark,
                markersize=4,
                linewidth=1,
                capsize=2,
            )
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    if not figure.endswith("_ratio"):
        axes.set_ylim(bottom=0)
    if log:
        axes.set_xscale("log")
        axes.set_xticks(list(points), [f"{x:,.0f}" for x in points], rotation=30)
        axes.minorticks_off()


def sample_of(measured: Measured, figure: str) -> Samples:
    """A result by its name."""
    samples: Samples = getattr(measured, figure)
    return samples


def grid(rows: Sequence[Sequence[tuple[Points, str, str, str, str, bool]]], path: Path) -> None:
    """Pictures of curves, row by row."""
    size = (4.2 * len(rows[0]), 3.3 * len(rows) + 0.3)
    figure, axes = pyplot().subplots(len(rows), len(rows[0]), figsize=size, squeeze=False, layout="constrained")
    for row, panels in zip(axes, rows):
        for panel, (points, result, title, x_label, y_label, log) in zip(row, panels):
            curves(panel, points, result, title, x_label, y_label, log)
    _save(figure, path)


def shares(panels: Sequence[tuple[str, str, Points]], path: Path) -> None:
    """Stacked bars: what a tuple costs in processing, profiling, re-optimizing. panels: title, x label, points."""
    figure, axes = pyplot().subplots(
        1, len(panels), figsize=(6.5 * len(panels), 4), squeeze=False, layout="constrained"
    )
    for panel, (title, x_label, points) in zip(axes[0], panels):
        for i, found in enumerate(points.values()):
            _bars(panel, i, found, with_legend=i == 0)
        panel.set(title=title, xlabel=x_label, ylabel="CPU ns per tuple")
        panel.set_xticks(range(len(points)), [f"{x:g}" for x in points])
    _save(figure, path)


def _bars(panel: Any, place: int, found: Mapping[str, Measured], with_legend: bool) -> None:
    """A group of bars, one for each algorithm, in the order of STYLES; the algorithm's letter stands under its bar."""
    names = [name for name in STYLES if name in found]
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        measured = found[name]
        total = 1e3 / measured.rate.mean
        x = place + (k - (len(names) - 1) / 2) * width
        bottom = 0.0
        profiling, reoptimizing = measured.profiling.mean, measured.reoptimizing.mean
        for share, part, shade in (
            (1 - profiling - reoptimizing, "tuple processing", "lightsteelblue"),
            (profiling, "profiling", "darkorange"),
            (reoptimizing, "re-optimizing", "firebrick"),
        ):
            label = part if with_legend and k == 0 else None
            panel.bar(x, share * total, width * 0.9, bottom=bottom, color=shade, label=label)
            bottom += share * total
        panel.text(x, bottom, name[0], ha="center", va="bottom", fontsize=7)


def timelines(found: Mapping[str, Timeline], path: Path) -> None:
    """A-Greedy beside each of the others, filters evaluated per 2000 tuples over the tuples."""
    figure, axes = pyplot().subplots(3, 1, figsize=(9, 8), sharex=True, sharey=True, layout="constrained")
    for number, panel, other in zip((19, 20, 21), axes, ("Sweep", "LocalSwaps", "Independent")):
        for name in (other, "A-Greedy", "Optimal"):
            evaluated = found[name].evaluated
            x = np.arange(len(evaluated)) * BLOCK
            panel.plot(x, evaluated, color=STYLES[name][0], linewidth=0.8, label=name)
        panel.axvline(CHANGE, color="grey", linestyle=":")
        panel.set(title=f"4.{number}: A-Greedy and {other}", ylabel="filters per 2000 tuples")
    axes[-1].set(xlabel="tuples processed; the filters' tables change places at 600,000")
    axes[-1].ticklabel_format(style="plain", axis="x")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    legend_below(figure, figure.axes)
    save(figure, path)
