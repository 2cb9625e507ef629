"""What a run leaves behind: `results/benchmarks.json` and the plots beside it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.rates import Result
from benchmarks.sweeps import Curves

RESULTS = Path(__file__).parent / "results"


def write_json(name: str, found: Mapping[str, Any]) -> Path:
    """Figures and the machine they were found on."""
    RESULTS.mkdir(exist_ok=True)
    machine = {
        "processors": os.cpu_count(),
        "load": os.getloadavg(),  # above 1 the machine was not alone, and absolute figures mean little
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine, **found}, indent=1) + "\n")
    return path


def plot_rates(results: Sequence[Result]) -> Path:
    """Rates side by side, on a logarithmic scale, and the goals as marks."""
    shown = [r for r in results if not r.differing]
    figure, axes = plt.subplots(figsize=(11, 5))
    colours = {
        "counting kernel": "#dddddd",
        "kernel": "#aaaaaa",
        "hashing kernel": "#777777",
        "minidsms": "#2a6f97",
        "duckdb": "#e9a23b",
        "counting duckdb": "#f3d19c",
    }
    for offset, (who, colour) in enumerate(colours.items()):
        rates = [(r.rate(who) or float("nan")) / 1e6 for r in shown]
        axes.bar([x + (offset - 3) * 0.14 for x in range(len(shown))], rates, 0.13, label=who, color=colour)
    for x, r in enumerate(shown):
        for goal in _goals(r):
            axes.hlines(goal / 1e6, x - 0.07, x + 0.07, color="black", label="goals" if x == 0 else None)
    axes.set_yscale("log")
    axes.set_ylabel("million elements per second")
    axes.set_xticks(range(len(shown)), [r.case.name for r in shown], rotation=30, ha="right")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=7, frameon=False)
    return _save(figure, "rates.png")


def _goals(result: Result) -> list[float]:
    """The rates to reach that kernels set."""
    goals = result.case.goals
    if goals is None:
        return []
    limits = ((goals.of_counting, result.rate("counting kernel")), (goals.of_hashing, result.rate("hashing kernel")))
    return [share * rate for share, rate in limits if share is not None and rate is not None]


def plot_sweeps(curves: Mapping[str, Curves]) -> Path:
    """One panel per sweep, the cost relative to its first point; the engine's curve should follow the kernel's."""
    figure, panels = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.5))
    for panel, (name, both) in zip(panels, curves.items()):
        for who, colour in (("kernel", "#bbbbbb"), ("minidsms", "#2a6f97")):
            if who in both:
                first = next(iter(both[who].values()))
                panel.plot(list(both[who]), [ns / first for ns in both[who].values()], "o-", color=colour, label=who)
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_xlabel(name)
    panels[0].set_ylabel("cost of an element (first point = 1)")
    panels[0].legend()
    return _save(figure, "sweeps.png")


def _save(figure: Any, name: str) -> Path:
    RESULTS.mkdir(exist_ok=True)
    figure.tight_layout()
    path = RESULTS / name
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
