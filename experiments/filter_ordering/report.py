"""The pages of results: for each figure the thesis' shape, what was measured, and where they differ and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from experiments import pages
from experiments.filter_ordering import adaptivity, convergence, operator_runs, overhead, plots
from experiments.filter_ordering.measuring import Measured, Points, Samples
from experiments.filter_ordering.plots import STYLES, sample_of

PAGES = pages.Pages("filter_ordering")
TIMELINE_SEED = 2
"""Of figures 4.19 to 4.21."""
RATE, EVALUATED = "M tuples/s", "filters per tuple"
TIME_RATIO, PROBES_RATIO = "CPU time / Optimal's", "probes / Optimal's"


def table(points: Points, x: str, results: Sequence[tuple[str, str]]) -> str:
    """A row per x; for every algorithm the results, each (name, heading): mean and half of the confidence interval."""
    names = [name for name in STYLES if any(name in found for found in points.values())]
    titles = [f"{name}, {heading}" for _, heading in results for name in names]
    rows = [
        [f"{at:,.10g}", *(_cell(found, name, result) for result, _ in results for name in names)]
        for at, found in points.items()
    ]
    return pages.table([x, *titles], rows)


def _cell(found: Mapping[str, Measured], name: str, result: str) -> str:
    return str_of(sample_of(found[name], result)) if name in found else ""


def str_of(samples: Samples, digits: int = 2) -> str:
    """Mean and half of the confidence interval."""
    return f"{samples.mean:,.{digits}f} ± {samples.margin:,.{digits}f}"


def report_convergence(seeds: int) -> str:
    """Figures 4.11 to 4.14."""
    found = {
        "4.11: number of filters": (convergence.number_of_filters(seeds), "filters"),
        "4.12: selectivity": (convergence.selectivity(seeds), "selectivity"),
        "4.13: correlation, 3 filters": (convergence.correlation(3, seeds), "correlation factor"),
        "4.14: correlation, 8 filters": (convergence.correlation(8, seeds), "correlation factor"),
    }
    plots.grid(
        [
            [(points, result, title, x, label, False) for title, (points, x) in found.items()]
            for result, label in (("rate", RATE), ("evaluated", EVALUATED))
        ],
        PAGES.picture("convergence"),
    )
    results = (("evaluated", EVALUATED), ("rate", RATE))
    sections = [PAGES.section(title, table(points, x, results)) for title, (points, x) in found.items()]
    return PAGES.write("convergence", "Filter ordering: convergence", [PAGES.shown("convergence"), *sections])


def report_overhead(seeds: int) -> str:
    """Table 4.2, figures 4.15 to 4.18."""
    parts = overhead.breakdown(seeds)
    titles = ["% of A-Greedy's time", *(f"n = {n}, p = {rate}" for n, rate in parts)]
    rows = [[name, *(str_of(column[name]) for column in parts.values())] for name in overhead.COMPONENTS]
    by_number, by_cost = overhead.number_of_filters(seeds), overhead.filter_costs(seeds)
    plots.grid(
        [
            [
                (by_number, "rate", "4.15: number of filters, p = 0.05", "filters", RATE, False),
                (by_number, "evaluated", "as filters evaluated", "filters", EVALUATED, False),
            ],
            [
                (by_cost, "rate", "4.17: filter costs, p = 0.05", "cost of four of eight filters", RATE, False),
                (by_cost, "probes_ratio", "as probes", "cost of four of eight filters", PROBES_RATIO, False),
            ],
        ],
        PAGES.picture("overhead"),
    )
    bars = (
        ("4.16: where the time goes (O, A, S, L, I)", "filters", by_number),
        ("4.18: where the time goes", "cost of four of eight filters", by_cost),
    )
    plots.shares(bars, PAGES.picture("overhead_shares"))
    spent = (("profiling", "profiling share"), ("reoptimizing", "re-optimizing share"))
    return PAGES.write(
        "overhead",
        "Filter ordering: run-time overhead",
        [
            PAGES.section("Table 4.2: where A-Greedy's time goes", pages.table(titles, rows)),
            PAGES.shown("overhead"),
            PAGES.shown("overhead_shares"),
            PAGES.section(
                "4.15: all algorithms", table(by_number, "filters", (("rate", RATE), ("evaluated", EVALUATED)))
            ),
            PAGES.section("4.16: where the time goes", table(by_number, "filters", spent)),
            PAGES.section(
                "4.17: filter costs", table(by_cost, "cost", (("rate", RATE), ("probes_ratio", PROBES_RATIO)))
            ),
            PAGES.section("4.18: where the time goes", table(by_cost, "cost", spent)),
        ],
    )


def report_adaptivity(seeds: int) -> str:
    """Figures 4.19 to 4.24."""
    plots.timelines(adaptivity.timelines(TIMELINE_SEED), PAGES.picture("timelines"))
    rows = [
        [name, str_of(found, 0) if found.values else "", str(never)]
        for name, (found, never) in adaptivity.speeds(3 * seeds).items()
    ]
    speeds = pages.table(["", "tuples from the change until the order is good", "never in 600,000"], rows)
    by_period = adaptivity.period(seeds)
    often, seldom = adaptivity.cost_at(100_000, seeds), adaptivity.cost_at(1_000_000, seeds)
    cost, period = "cost of four of eight filters", "tuples between changes"
    plots.grid(
        [
            [
                (by_period, result, "4.22: rate of change", period, label, True),
                (often, result, "4.23: costs, change every 100,000", cost, label, False),
                (seldom, result, "4.24: costs, change every 1,000,000", cost, label, False),
            ]
            for result, label in (("time_ratio", TIME_RATIO), ("probes_ratio", PROBES_RATIO))
        ],
        PAGES.picture("changes"),
    )
    results = (("time_ratio", TIME_RATIO), ("probes_ratio", PROBES_RATIO))
    return PAGES.write(
        "adaptivity",
        "Filter ordering: speed of adaptivity",
        [
            PAGES.shown("timelines"),
            PAGES.section("4.19 to 4.21: a change", speeds),
            PAGES.shown("changes"),
            PAGES.section("4.22: rate of change", table(by_period, period, results)),
            PAGES.section("4.23: filter costs at a change every 100,000 tuples", table(often, "cost", results)),
            PAGES.section("4.24: filter costs at a change every 1,000,000 tuples", table(seldom, "cost", results)),
        ],
    )


def report_operator(seeds: int) -> str:
    """The workloads of figures 4.11, 4.17 and 4.22 through the engine."""
    found = {
        "Number of filters, through the engine": (operator_runs.number_of_filters(seeds), "filters", False),
        "Filter costs, through the engine": (operator_runs.filter_costs(seeds), "cost of four of eight filters", False),
        "Rate of change, through the engine": (operator_runs.period(seeds), "tuples between changes", True),
    }
    plots.grid(
        [
            [(points, result, title, x, label, log) for title, (points, x, log) in found.items()]
            for result, label in (("rate", RATE), ("probes_ratio", PROBES_RATIO))
        ],
        PAGES.picture("operator"),
    )
    results = (("rate", RATE), ("probes_ratio", PROBES_RATIO))
    sections = [PAGES.section(title, table(points, x, results)) for title, (points, x, _) in found.items()]
    return PAGES.write("operator", "Filter ordering: the select operator", [PAGES.shown("operator"), *sections])


def report_plan_logging(seeds: int) -> str:
    """Section 7.1: what the thesis proposes and does not measure."""
    points, title = adaptivity.recurring(seeds), "7.1: conditions that come back"
    period = "tuples between changes"
    plots.grid(
        [
            [
                (points, "probes_ratio", title, period, PROBES_RATIO, True),
                (points, "time_ratio", title, period, TIME_RATIO, True),
            ]
        ],
        PAGES.picture("plan_logging"),
    )
    measured = table(points, period, (("probes_ratio", PROBES_RATIO), ("time_ratio", TIME_RATIO)))
    return PAGES.write(
        "plan_logging",
        "Filter ordering: plan logging",
        [PAGES.shown("plan_logging"), PAGES.section(title, measured)],
    )


PARTS: dict[str, Callable[[int], str]] = {
    "convergence": report_convergence,
    "overhead": report_overhead,
    "adaptivity": report_adaptivity,
    "plan_logging": report_plan_logging,
    "operator": report_operator,
}
