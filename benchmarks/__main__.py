"""`python -m benchmarks [PART ..]`: measure, print, and write results/. Without parts, all but the peers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import (
    adaptivity,
    files,
    functions,
    latency,
    memory,
    observing,
    paths,
    pushes,
    rates,
    starting,
    stations,
    sweeps,
    typical,
)
from benchmarks.cases import CASES

PARTS = (
    "rates",
    "latency",
    "pushes",
    "typical",
    "paths",
    "stations",
    "start",
    "memory",
    "sweeps",
    "files",
    "adaptivity",
    "observing",
    "functions",
)


def main(arguments: list[str]) -> int:
    """Exit code 1 when two contestants gave different answers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} or peers (default: all but peers)"
    )
    parser.add_argument("--events", type=int, default=1_000_000, help="elements of the longest stream")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", action="append", choices=[c.name for c in CASES], help="only these cases")
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="rows of the files (the prototype's bar: 10,000,000)"
    )
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - {*PARTS, "peers"}
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)} and peers")
    console = Console(width=None if sys.stdout.isatty() else 160)
    parts = options.parts or list(PARTS)
    found: dict[str, Any] = {}
    run: dict[str, Callable[[], Any]] = {
        "rates": lambda: _rates(options, console),
        "latency": lambda: _shown(console, "latency of one push and its advance", latency.measure()),
        "pushes": lambda: _shown(console, "small pushes, processor time", pushes.measure()),
        "typical": lambda: _shown(console, "queries as users write them, processor time of a row", typical.measure()),
        "paths": lambda: {title: _shown(console, title, found) for title, found in paths.measure().items()},
        "stations": lambda: _stations(console),
        "start": lambda: _shown(
            console, f"seconds to the first answer (goals {starting.GOAL_S})", {"seconds": starting.measure()}
        ),
        "memory": lambda: _shown(
            console, f"state against columns (goal {memory.GOAL})", memory.measure(options.events)
        ),
        "sweeps": lambda: _sweeps(options, console),
        "files": lambda: _files(options, console),
        "adaptivity": lambda: _shown(
            console, "adaptive filters: ratios of rates", adaptivity.measure(options.events, options.rounds)
        ),
        "observing": lambda: _shown(
            console,
            f"what being observed adds to the time (goals {observing.GOALS})",
            {name: {"share": round(share, 4)} for name, share in observing.measure(options.rounds).items()},
        ),
        "functions": lambda: _shown(
            console, f"functions of columns beside pyarrow's (goal {functions.GOAL})", functions.measure()
        ),
        "peers": lambda: _peers(options, console),
    }
    for part in parts:
        found[part] = run[part]()
    from benchmarks import report

    name = "benchmarks" if not options.parts else "-".join(parts)
    console.print(f"written to {report.write_json(name, found)}")
    return 1 if any(r.get("differing") for r in found.get("rates", {}).values()) else 0


def _rates(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    from benchmarks import report

    wanted = [c for c in CASES if options.case is None or c.name in options.case]
    results = []
    for case in wanted:
        console.print(f"measuring {case.name}", style="dim")
        results.append(rates.measure(case, options.events, options.rounds))
    rates.show(results, console)
    console.print(f"plot {report.plot_rates(results)}")
    return {r.case.name: r.as_dict() for r in results}


def _sweeps(options: argparse.Namespace, console: Console) -> Any:
    from benchmarks import report

    curves = sweeps.measure(min(options.events, 500_000))
    found: dict[str, Any] = {}
    for name, curve in curves.items():
        found[name] = dict(curve)
        for who, points in curve.items():
            console.print(
                f"ns per element over {name}, {who}: " + ", ".join(f"{x:,}: {ns}" for x, ns in points.items())
            )
        if "kernel" in curve:
            found[name]["growth over the kernel's"] = growth = sweeps.growth(curve)
            console.print(f"  growth over the kernel's (goal: within 1.2): {list(growth.values())}")
    console.print(f"plot {report.plot_sweeps(curves)}")
    return found


def _files(options: argparse.Namespace, console: Console) -> Any:
    found = files.measure(options.rows)
    for name, figures in found.items():
        figures["of_prototype"] = round(figures["tuples_per_s"] / files.PROTOTYPE[name], 2)
    shown = _shown(console, f"file to file, {options.rows:,} rows, process start included", found)
    broken = {"CSV with times": files.measure_broken_rows(options.rows)}
    title = "reading CSV, seconds of processor time per million rows, by the share of broken ones"
    return {**shown, **_shown(console, title, broken)}


def _stations(console: Console) -> Any:
    found = stations.measure()
    for name, figures in found.items():
        _shown(console, f"where one push and its advance go: {name}", figures)
    return found


def _peers(options: argparse.Namespace, console: Console) -> Any:
    from benchmarks import peers

    return peers.measure(console, options.events)


def _shown(console: Console, title: str, found: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    columns = list(dict.fromkeys(name for figures in found.values() for name in figures))
    table = Table("", *columns, title=title)
    for name, figures in found.items():
        table.add_row(name, *(f"{figures[c]:,}" if c in figures else "" for c in columns))
    console.print(table)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
