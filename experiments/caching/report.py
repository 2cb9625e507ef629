"""The page of results: for each figure what the thesis shows, what was measured, and where they differ and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.caching import figures, plots, remarks
from experiments.caching.figures import BUDGETS, CACHED, Points, plans
from experiments.caching.runs import GLOBAL, MJOIN, PREFIX, Measured

RESULTS = Path(__file__).parent.parent / "results"


def table(points: Points, x: str, names: Sequence[str]) -> str:
    """A row per x: what the join takes per element under each plan, the ratio of the rates, hits of the last plan."""
    titles = [x, *(f"{name}, ns" for name in names), *(f"{names[0]} / {name}" for name in names[1:]), "hits"]
    rows = []
    for at, runs in points.items():
        last = runs[-1]
        hits = f"{100 * last.hits / last.probes:.0f} %" if last.probes else ""
        ratios = [f"{run.join_rate / runs[0].join_rate:.2f}" for run in runs[1:]]
        rows.append([f"{at}", *(f"{run.join_ns / run.elements:.0f}" for run in runs), *ratios, hits])
    lines = ["| " + " | ".join(cells) + " |" for cells in (titles, *rows)]
    lines.insert(1, "|---" * len(titles) + "|")
    return "\n".join(lines)


def section(title: str, measured: str) -> str:
    """A figure: what the thesis shows, what was measured, and what is to be said of it."""
    thesis, beside = remarks.beside(title)
    return f"## {title}\n\n{thesis}\n\n{measured}\n\n{beside}\n"


def write(name: str, heading: str, sections: Sequence[str]) -> str:
    """Write a page; where it is."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"caching_{name}.md"
    path.write_text("\n".join([f"# {heading}\n\n{remarks.setting()}\n", *sections]), encoding="utf-8")
    return str(path)


def picture(name: str) -> tuple[Path, str]:
    """Where a picture goes, and how a page shows it."""
    RESULTS.mkdir(exist_ok=True)
    return RESULTS / f"caching_{name}.png", f"![](caching_{name}.png)\n"


def report_performance(scale: float, repeats: int) -> str:
    """Figures 5.11 to 5.20."""
    cached = [plan.name for plan in CACHED]
    chosen = [MJOIN.name, PREFIX.name]
    found = [
        ("5.11, 5.12: hit probability", "rows of T with one B", figures.hit_probability(scale, repeats), cached, False),
        ("5.13, 5.14: join selectivity", "rows met by one of T", figures.selectivity(scale, repeats), cached, True),
        ("5.15, 5.16: updates per probe", "updates per probe", figures.update_ratio(scale, repeats), cached, True),
        ("5.17, 5.18: number of joins", "streams", figures.number_of_joins(scale, repeats), chosen, False),
        ("5.19, 5.20: join cost", "rows of S met and dropped", figures.join_cost(scale, repeats), cached, False),
    ]
    path, shown = picture("performance")
    plots.pairs(found, path)
    sections = [section(title, table(points, x, names)) for title, x, points, names, _ in found]
    return write("performance", "Caches in joins: performance", [shown, *sections])


def report_plans(scale: float, repeats: int) -> str:
    """Figure 5.21, table 5.2."""
    points = figures.sample_points(scale, repeats)
    names = [plan.name for plan in plans()]
    path, shown = picture("plans")
    plots.bars(points, names, path)
    return write("plans", "Caches in joins: plans", [shown, section("5.21: join plans", table(points, "point", names))])


def report_adaptivity(scale: float, repeats: int) -> str:
    """Figures 5.22 and 5.23."""
    burst = figures.burst(scale)
    path, burst_shown = picture("burst")
    plots.timeline(burst, path)
    memory = figures.memory(scale, repeats)
    path, memory_shown = picture("memory")
    names = [MJOIN.name, PREFIX.name, GLOBAL.name]
    plots.pairs([("5.23: memory", "KB for caches", memory, names, False)], path)
    sections = [
        burst_shown,
        section("5.22: a burst", _phases(burst)),
        memory_shown,
        section(f"5.23: memory, {BUDGETS[0]} to {BUDGETS[-1]} KB", table(memory, "KB", names)),
    ]
    return write("adaptivity", "Caches in joins: adaptivity", sections)


def _phases(found: dict[str, Measured]) -> str:
    """Of each plan what the join takes per element before the burst, in the first rounds of it, and at the end."""
    rows = ["| | before the burst, ns | in its first tenth | in its last half |", "|---|---|---|---|"]
    for name, measured in found.items():
        blocks = measured.by_block
        n = len(blocks)
        start = round(figures.BURST_AT * n)
        parts = (blocks[n // 10 : start], blocks[start : start + (n - start) // 10], blocks[start + (n - start) // 2 :])
        cells = [f"{sum(took for _, _, took in part) / max(1, sum(e for e, _, _ in part)):.0f}" for part in parts]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


PARTS: dict[str, Callable[[float, int], str]] = {
    "performance": report_performance,
    "plans": report_plans,
    "adaptivity": report_adaptivity,
}
