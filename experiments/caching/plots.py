"""The figures as pictures: rates of the plans compared, and their ratio to the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.caching.figures import BURST_AT, Points
from experiments.caching.runs import Measured
from experiments.pictures import legend_below, pyplot, save

COLOURS = ("black", "tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown")
MARKS = ("s", "o", "^", "v", "D", "P", "X")


def pairs(found: Sequence[tuple[str, str, Points, Sequence[str], bool]], path: Path) -> None:
    """An absolute graph for each figure, over a relative one. found: title, x label, points, names of plans, log x."""
    wide, high = min(3, len(found)), -(-len(found) // 3)
    size = (4.2 * wide, 6.4 * high)
    figure, grid = pyplot().subplots(2 * high, wide, figsize=size, squeeze=False, layout="constrained")
    for panel in grid.flat:
        panel.set_visible(False)
    for at, (title, x_label, points, names, is_log) in enumerate(found):
        axes = grid[2 * (at // 3) : 2 * (at // 3) + 2, at % 3]
        xs = [float(x) for x in points]
        for k, name in enumerate(names):
            style = {"label": name, "color": COLOURS[k], "marker": MARKS[k], "markersize": 4, "linewidth": 1}
            axes[0].plot(xs, [runs[k].join_rate for runs in points.values()], **style)
            axes[1].plot(xs, [runs[0].join_rate / runs[k].join_rate for runs in points.values()], **style)
        axes[0].set(title=title, ylabel="M elements/s of the join", ylim=0)
        axes[1].set(xlabel=x_label, ylabel=f"rate of {names[0]} / rate of the plan", ylim=0)
        for panel in axes:
            panel.set_visible(True)
            if is_log:
                panel.set_xscale("log")
    _save(figure, path)


def bars(points: Points, names: Sequence[str], path: Path) -> None:
    """Figure 5.21: rates at each sample point, those of the first plan being 1."""
    figure, axes = pyplot().subplots(1, 1, figsize=(9, 3.9), layout="constrained")
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        heights = [runs[k].join_rate / runs[0].join_rate for runs in points.values()]
        axes.bar(np.arange(len(points)) + k * width, heights, width * 0.9, label=name, color=COLOURS[k])
    axes.set_xticks(np.arange(len(points)) + 0.4 - width / 2, [str(x) for x in points])
    axes.set(title="5.21", ylabel=f"rate / rate of {names[0]}")
    _save(figure, path)


def timeline(found: dict[str, Measured], path: Path, smooth: int = 4) -> None:
    """Figure 5.22: the rate of each plan block by block."""
    figure, axes = pyplot().subplots(1, 1, figsize=(9, 3.9), layout="constrained")
    for k, (name, measured) in enumerate(found.items()):
        rates = [1e3 * elements / took for elements, _, took in measured.by_block if took]
        means = np.convolve(rates, np.ones(smooth) / smooth, mode="valid")
        axes.plot(np.linspace(0, 1, len(means)), means, label=name, color=COLOURS[k], linewidth=1)
    axes.axvline(BURST_AT, color="grey", linestyle=":")
    axes.set(title="5.22: R becomes 20 times as fast", xlabel="share of the rows of S", ylabel="M elements/s", ylim=0)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    legend_below(figure, figure.axes)
    save(figure, path)
