"""The figures as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.k_mon.monitoring import BLOCK, Followed
from experiments.k_mon.running import Run
from experiments.pictures import pyplot, save


def followed(figures: Mapping[str, Followed], path: Path) -> None:
    """Actual and estimated k over the rows, and what would be missed, per cent of results in each BLOCK."""
    figure, axes = pyplot().subplots(len(figures), 1, figsize=(8, 3 * len(figures)), squeeze=False)
    for panel, (title, found) in zip(axes[:, 0], figures.items()):
        rows = found.at / 1000
        panel.plot(rows, found.actual, color="black", linewidth=1, label="actual k")
        shown = np.where(np.isnan(found.estimated), 0, found.estimated)
        panel.plot(rows, shown, ".", color="tab:blue", markersize=2, label="estimated k (0: infinite)")
        panel.set(title=title, xlabel="thousand rows", ylabel="k")
        panel.set_ylim(bottom=0)
        missed = panel.twinx()
        blocks = np.flatnonzero(found.missed > 0)
        missed.plot((blocks + 0.5) * BLOCK / 1000, found.missed[blocks], "x", color="tab:red", label="missed, %")
        missed.set_ylabel("missed, % of results")
        missed.set_ylim(0, max(3.0, 1.1 * float(np.nanmax(found.missed))))
        handles = [*panel.get_lines(), *missed.get_lines()]
        panel.legend(handles, [h.get_label() for h in handles], fontsize=7, loc="upper left")
    save(figure, path)


def over_rows(panels: Mapping[str, Mapping[str, Run]], path: Path) -> None:
    """Memory over the rows pushed, a panel for each figure, a curve for each run."""
    wide = min(2, len(panels))
    high = -(-len(panels) // wide)
    figure, axes = pyplot().subplots(high, wide, figsize=(5 * wide, 3.4 * high), squeeze=False)
    for panel, (title, runs) in zip(axes.ravel(), panels.items()):
        for name, run in runs.items():
            style = "--" if name == "SWJ" else "-"
            panel.plot(np.array(run.rows) / 1000, np.array(run.nbytes) / 1e6, style, linewidth=1, label=name)
        panel.set(title=title, xlabel="thousand rows", ylabel="MB")
        panel.set_yscale("log")
        panel.set_ylim(top=3 * max(max(run.nbytes) for run in runs.values()) / 1e6)  # room for the names
        panel.legend(fontsize=7, loc="upper left", ncols=3)
    for panel in axes.ravel()[len(panels) :]:
        panel.set_axis_off()
    save(figure, path)


def over_k(points: Mapping[int, Mapping[str, float]], title: str, path: Path) -> None:
    """Memory over k, a curve for each set of constraints."""
    figure, panel = pyplot().subplots(figsize=(5, 3.4))
    for name in next(iter(points.values())):
        panel.plot(list(points), [found[name] / 1e6 for found in points.values()], "o-", linewidth=1, label=name)
    panel.set(title=title, xlabel="k of RIDS(k)", ylabel="MB")
    panel.set_ylim(bottom=0)
    panel.legend(fontsize=7)
    save(figure, path)
