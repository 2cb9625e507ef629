"""The pages of results: what the thesis shows, what was measured, and what is to be said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments import pages
from experiments.k_mon import cost, linear_road, memory, monitoring, network, plots
from experiments.k_mon.running import Run

PAGES = pages.Pages("k_mon")
QUICKER = 10
"""With --quick, rows and k are so many times fewer."""


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; numbers with their thousands apart."""
    return pages.table(titles, [[_cell(value) for value in row] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


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
    path, shown = PAGES.picture("monitoring"), PAGES.shown("monitoring")
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
        sections.append(PAGES.section(title, table(titles, rows)))
    return PAGES.write("monitoring", "k-Mon: monitoring", sections)


def report_memory(quicker: int) -> str:
    """Figures 6.10, 6.12, 6.14, 6.16, 6.17, 6.18, and table 6.1."""
    panels: dict[str, dict[str, Run]] = {}
    tables: dict[str, str] = {}
    times: list[tuple[str, ...]] = []
    for number, figure in memory.FIGURES.items():
        found = memory.reduction(number, quicker)
        swj = next(iter(found.values()))["SWJ"]
        panels[figure.title] = {"SWJ": swj} | {f"k = {k:,}": one["lossy"] for k, one in found.items()}
        rows = []
        for k, one in found.items():
            nbytes = [one[mode].steady_nbytes for mode in ("SWJ", "lossy", "exact")]
            lost = 100 * (1 - one["lossy"].answers / one["SWJ"].answers)
            assert one["exact"].answers == one["SWJ"].answers
            rows.append((k, *(n / 1e6 for n in nbytes), nbytes[1] / nbytes[0], nbytes[2] / nbytes[0], lost))
        titles = ["k", "SWJ, MB", "lossy, MB", "exact, MB", "lossy / SWJ", "exact / SWJ", "lost, % of results"]
        tables[figure.title] = table(titles, rows)
        for mode in ("lossy", "exact"):
            each = [(one[mode].spent_ns, one["SWJ"].spent_ns) for one in found.values()]
            times.append((f"{number} {mode}", *(f"{own:,.0f} / {base:,.0f} = {own / base:.2f}" for own, base in each)))
    title = "6.17: CA and OAC"
    panels[title] = memory.combined(quicker)
    base = panels[title]["SWJ"].steady_nbytes
    tables[title] = table(
        ["", "MB", "share of SWJ"],
        [(name, one.steady_nbytes / 1e6, one.steady_nbytes / base) for name, one in panels[title].items()],
    )
    path, shown = PAGES.picture("memory"), PAGES.shown("memory")
    plots.over_rows(panels, path)
    sections = [shown, *(PAGES.section(title, found_) for title, found_ in tables.items())]
    title = "6.18: CA and RIDS"
    points = memory.interfering(quicker)
    path, shown = PAGES.picture("interfering"), PAGES.shown("interfering")
    plots.over_k(points, title, path)
    names = list(next(iter(points.values())))
    rows = [(k, *(found[name] / 1e6 for name in names)) for k, found in points.items()]
    sections.append(
        PAGES.section(title, table(["k of RIDS(k)", *(f"{name}, MB" for name in names)], rows) + f"\n\n{shown}")
    )
    columns = [f"k = {k // quicker:,}" for k in memory.ADHERENCES]
    sections.append(PAGES.section("Table 6.1: ns per row of k-Mon / SWJ", table(["", *columns], times)))
    return PAGES.write("memory", "k-Mon: memory and time", sections)


def report_cost(quicker: int) -> str:
    """What monitoring takes."""
    rows = [
        (
            name,
            pushed,
            one.join_ns,
            one.monitors_ns,
            f"{100 * one.share:.1f} %",
            "" if one.without_ns is None else one.join_ns / one.without_ns,
        )
        for (name, pushed), one in cost.shares(quicker).items()
    ]
    titles = ["streams", "rows at a time", "join, ns per row", "of it for monitors", "share", "with / without monitors"]
    return PAGES.write(
        "cost", "k-Mon: what monitoring takes", [PAGES.section("What monitoring takes", table(titles, rows))]
    )


def report_network(quicker: int) -> str:
    """The query of chapter 1."""
    found = network.traffic(200 // quicker)
    base = found["SWJ"].steady_nbytes
    rows = [
        (name, one.steady_nbytes / 1e6, one.steady_nbytes / base, one.spent_ns, one.answers)
        for name, one in found.items()
    ]
    titles = ["", "MB", "share of SWJ", "ns per row", "changes of the answer"]
    path, shown = PAGES.picture("network"), PAGES.shown("network")
    plots.over_rows({"links C, B, O: ten minutes": found}, path)
    return PAGES.write(
        "network", "k-Mon: the query of chapter 1", [shown, PAGES.section("Links C, B and O", table(titles, rows))]
    )


def report_linear_road(quicker: int) -> str:
    """Table 6.3."""
    return table_6_3(
        {name: linear_road.measure(name, one.cars // quicker) for name, one in linear_road.QUERIES.items()}, quicker
    )


def table_6_3(measured: Mapping[str, Mapping[str, Run]], quicker: int = 1) -> str:
    """The page of Linear Road. measured: by query and mode."""
    rows = []
    for name, found in measured.items():
        query = linear_road.QUERIES[name]
        base = found["off"]
        constraint, memory_ratio, time_ratio = query.thesis
        others = [found.get(mode) for mode in ("SWJ", "exact", "lossy")]
        assert found["exact"].answers == base.answers
        rows.append(
            (
                name,
                constraint,
                query.cars // quicker,
                base.steady_nbytes / 1e6,
                memory_ratio,
                *("" if one is None else one.steady_nbytes / base.steady_nbytes for one in others),
                time_ratio,
                *("" if one is None else one.spent_ns / base.spent_ns for one in others),
                "" if others[2] is None else 100 * (1 - others[2].answers / base.answers),
            )
        )
    titles = ["query", "constraint", "cars", "whole windows, MB", "memory, thesis", "SWJ", "exact", "lossy"]
    titles += ["time, thesis", "SWJ", "exact", "lossy", "lost, % of results"]
    return PAGES.write(
        "linear_road", "k-Mon: Linear Road", [PAGES.section("Table 6.3: Linear Road", table(titles, rows))]
    )


PARTS: dict[str, Callable[[int], str]] = {
    "monitoring": report_monitoring,
    "memory": report_memory,
    "cost": report_cost,
    "network": report_network,
    "linear_road": report_linear_road,
}
"""By name; each is told how many times quicker to be."""
