"""The figures as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.pictures import legend_below, pyplot, save

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
    wide, high = min(2, len(panels)), -(-len(panels) // 2)
    figure, axes = pyplot().subplots(
        high, wide, figsize=(4.2 * wide, 3.2 * high + 0.5), squeeze=False, layout="constrained"
    )
    for place, (title, lines) in zip(axes.flat, panels):
        for name, points in lines.items():
            colour, mark = STYLES.get(name, ("tab:purple", "P"))
            place.plot(*zip(*points), label=name, color=colour, marker=mark, markersize=4, linewidth=1)
        place.axhline(0, color="lightgrey", linewidth=0.8, zorder=0)
        place.set(title=title, xlabel=x, ylabel=y)
    legend_below(figure, axes.flat)
    save(figure, path, dpi=120)
