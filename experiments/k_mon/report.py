"""The pages of results: what the thesis shows, what was measured, and what is to be said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from experiments.k_mon import monitoring, plots, remarks

RESULTS = Path(__file__).parent.parent / "results"
QUICKER = 10
"""With --quick, rows and k are so many times fewer."""


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; numbers with their thousands apart."""
    lines = [titles, *([_cell(value) for value in row] for row in rows)]
    shown = ["| " + " | ".join(cells) + " |" for cells in lines]
    shown.insert(1, "|---" * len(titles) + "|")
    return "\n".join(shown)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write(name: str, heading: str, sections: Sequence[str]) -> str:
    """Write a page; where it is."""
    path = RESULTS / f"k_mon_{name}.md"
    path.write_text("\n".join([f"# {heading}\n\n{remarks.setting()}\n", *sections]), encoding="utf-8")
    return str(path)


def picture(name: str) -> tuple[Path, str]:
    """Where a picture goes, and how a page shows it."""
    RESULTS.mkdir(exist_ok=True)
    return RESULTS / f"k_mon_{name}.png", f"![](k_mon_{name}.png)\n"


def report_monitoring(quicker: int) -> str:
    """Figures 6.11, 6.13, 6.15."""
    names = {"6.11": "monitoring RIDS(k)", "6.13": "monitoring CA(k)", "6.15": "monitoring OAP(k)"}
    found = {
        f"{number}: {names[number]}": [
            figure(1_500_000 // quicker, 20_000 // quicker, seed, margin) for margin in (0.0, monitoring.MARGIN)
        ]
        for number, figure in monitoring.FIGURES.items()
        for seed in [1]
    }
    path, shown = picture("monitoring")
    plots.followed({title: with_margin for title, (_, with_margin) in found.items()}, path)
    titles = ["", "missed, %", "most in a block, %", "k infinite, % of the time", "increases", "estimated / actual k"]
    sections = [shown]
    for title, both in found.items():
        rows = [
            (
                name,
                f.missed_share,
                float(np.nanmax(f.missed)),
                100 * float(np.isnan(f.estimated).mean()),
                f.increases,
                float(np.nanmedian(f.estimated / np.maximum(f.actual, 1))),
            )
            for name, f in zip(("without a margin, as in the thesis", "with a margin of an eighth"), both)
        ]
        sections.append(remarks.section(title, table(titles, rows)))
    return write("monitoring", "k-Mon: monitoring", sections)


PARTS: dict[str, Callable[[int], str]] = {"monitoring": report_monitoring}
"""By name; each is told how many times quicker to be."""
