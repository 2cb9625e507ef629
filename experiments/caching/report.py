"""The page of results: for each figure what the thesis shows, what was measured, and where they differ and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from experiments import pages
from experiments.caching import figures, plots
from experiments.caching.figures import CACHED, PLANS, Points
from experiments.caching.runs import AUTO, GLOBAL, MJOIN, PREFIX, Measured

PAGES = pages.Pages("caching")


def table(points: Points, x: str, names: Sequence[str]) -> str:
    """A row per x: what the join takes per element under each plan, the ratio of the rates, hits of the last plan."""
    titles = [x, *(f"{name}, ns" for name in names), *(f"{names[0]} / {name}" for name in names[1:]), "hits"]
    rows = []
    for at, runs in points.items():
        last = runs[-1]
        hits = f"{100 * last.hits / last.probes:.0f} %" if last.probes else ""
        ratios = [f"{run.join_rate / runs[0].join_rate:.2f}" for run in runs[1:]]
        rows.append([f"{at}", *(f"{run.join_ns / run.elements:.0f}" for run in runs), *ratios, hits])
    return pages.table(titles, rows)


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
    path, shown = PAGES.picture("performance"), PAGES.shown("performance")
    plots.pairs(found, path)
    sections = [PAGES.section(title, table(points, x, names)) for title, x, points, names, _ in found]
    sections.append(PAGES.section("Five rows met, hits of 0.8", table(figures.goal(scale, repeats), "T meets", cached)))
    return PAGES.write("performance", "Caches in joins: performance", [shown, *sections])


def report_plans(scale: float, repeats: int) -> str:
    """Figure 5.21, table 5.2."""
    points = figures.sample_points(scale, repeats)
    names = [plan.name for plan in PLANS]
    path, shown = PAGES.picture("plans"), PAGES.shown("plans")
    plots.bars(points, names, path)
    return PAGES.write(
        "plans", "Caches in joins: plans", [shown, PAGES.section("5.21: join plans", plans_table(points, names))]
    )


def plans_table(points: Points, names: Sequence[str]) -> str:
    """A row per point: each plan per element, the last, which is `auto`, against the best of the others, and what it
    ran at the end.
    """
    titles = ["point", *(f"{name}, ns" for name in names), "best", f"{names[-1]} / best", f"{names[-1]} ran"]
    rows = []
    for at, runs in points.items():
        others, auto = runs[:-1], runs[-1]
        best = min(others, key=lambda run: run.join_ns)
        cells = [f"{run.typical_ns:.0f}" for run in runs]
        ran = f"{auto.plan}".replace("|", "/")
        rows.append([f"{at}", *cells, names[others.index(best)], f"{auto.against(best):.2f}", ran])
    return pages.table(titles, rows)


def report_adaptivity(scale: float, repeats: int) -> str:
    """Figures 5.22 and 5.23."""
    sections = []
    for name, title, found in (
        ("burst", "5.22: a burst", figures.burst(scale)),
        ("lossy_burst", "5.22: a burst, where many rows are met in vain", figures.lossy_burst(scale)),
    ):
        path, shown = PAGES.picture(name), PAGES.shown(name)
        plots.timeline(found, path)
        sections += [shown, PAGES.section(title, _phases(found))]
    for name, title, points, plans in (
        ("memory", "5.23: memory, at D8", figures.memory(scale, repeats), CACHING),
        ("memory_of_many_keys", "5.23: memory, many keys", figures.memory_of_many_keys(scale, repeats), MORE),
    ):
        path, shown = PAGES.picture(name), PAGES.shown(name)
        plots.pairs([(title, "KB for caches", points, plans, False)], path)
        sections += [shown, PAGES.section(title, table(points, "KB", plans))]
    return PAGES.write("adaptivity", "Caches in joins: adaptivity", sections)


CACHING = (MJOIN.name, PREFIX.name, GLOBAL.name, AUTO.name)
MORE = (MJOIN.name, "cached", PREFIX.name, GLOBAL.name, AUTO.name)


def _phases(found: dict[str, Measured]) -> str:
    """Of each plan what the join takes per element before the burst, in it up to and after three intervals, and its
    longest block in terms of the median one; of those that adapt also against the best that do not.
    """
    titles = [
        "",
        "before, ns",
        "in the burst, at first",
        "after 3 intervals",
        "against the best static",
        "longest block",
    ]
    adaptive = (GLOBAL.name, AUTO.name)
    static = [measured for name, measured in found.items() if name not in adaptive]
    rows = []
    for name, measured in found.items():
        blocks = measured.by_block
        start, settled = figures.blocks_after_burst(measured)
        parts = (blocks[start // 2 : start], blocks[start:settled], blocks[settled:])
        cells = [f"{sum(took for _, _, took in part) / max(1, sum(e for e, _, _ in part)):.0f}" for part in parts]
        best = min(static, key=lambda each: sum(took for _, _, took in each.by_block[settled:]))
        ratio = f"{measured.against(best, settled):.2f}" if name in adaptive else ""
        costs = [took / elements for elements, _, took in blocks[start:]]
        rows.append([name, *cells, ratio, f"{max(costs) / median(costs):.1f}"])
    return pages.table(titles, rows)


PARTS: dict[str, Callable[[float, int], str]] = {
    "performance": report_performance,
    "plans": report_plans,
    "adaptivity": report_adaptivity,
}
