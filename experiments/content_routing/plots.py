"""The figures as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STYLES = {
    "Content-Knows": ("black", "s"),
    "Content-Learns": ("tab:orange", "^"),
    "auto": ("tab:blue", "o"),
    "Ticket": ("tab:green", "v"),
    "SBR": ("grey", "x"),
    "over A-Greedy": ("tab:red", "D"),
}


def curves(
    path: Path, panels: Sequence[tuple[str, Mapping[str, Sequence[tuple[float, float]]]]], x: str, y: str
) -> None:
    """A panel each of curves by name, (x, y) in order."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.2 * len(panels), 3.2), squeeze=False, constrained_layout=True
    )
    for place, (title, lines) in zip(axes[0], panels):
        for name, points in lines.items():
            colour, mark = STYLES.get(name, ("tab:purple", "P"))
            place.plot(*zip(*points), label=name, color=colour, marker=mark, markersize=4, linewidth=1)
        place.axhline(0, color="lightgrey", linewidth=0.8, zorder=0)
        place.set(title=title, xlabel=x, ylabel=y)
        place.legend(fontsize=7, framealpha=0.6)
    figure.savefig(path, dpi=120)
    plt.close(figure)
