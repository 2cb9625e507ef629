"""The pictures of experiments, drawn without a display."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any


def pyplot() -> Any:
    """Of Matplotlib, loaded for who draws: it takes longer than what tests ask of the tables."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, path: Path, dpi: int = 80) -> None:
    """Write a picture, and be done with the figure."""
    if figure.get_layout_engine() is None:
        figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=dpi)
    pyplot().close(figure)


def legend_below(figure: Any, panels: Iterable[Any]) -> None:
    """One legend for all panels of a figure with a constrained layout, below them, where it hides nothing."""
    named: dict[str, Any] = {}
    for panel in panels:
        for handle, name in zip(*panel.get_legend_handles_labels()):
            named.setdefault(name, handle)
    inches = 0.6 + 0.075 * max(map(len, named), default=0)
    columns = max(1, min(len(named), int(figure.get_figwidth() / inches)))
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
