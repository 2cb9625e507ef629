"""The pages of results: what the paper's tables show, what was measured, and where they differ and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from experiments.change_detection import detection, engine
from experiments.change_detection.replays import Replay, contestants, replay
from experiments.change_detection.streams import Changing, Packets, Stream
from experiments.pages import Pages, table
from experiments.pictures import legend_below, pyplot, save
from minidsms.settings import DETECTORS
from minidsms.streamon.change_detection.detectors import NAMES

PAGES = Pages("change_detection")

SCENARIOS: dict[str, dict[str, Changing]] = {
    "Table 2: sudden changes, 4 filters": {
        f"every {period // 1000}K": Changing(4, period) for period in (1_000_000, 200_000, 50_000)
    },
    "Table 2: sudden changes, 64 and 256 filters": {
        "64 filters, every 200K": Changing(64, 200_000, changes=3),
        "256 filters, every 100K": Changing(256, 100_000, changes=2),
    },
    "Table 3: gradual changes": {
        f"over {transition // 1000}K": Changing(4, 1_000_000, transition=transition)
        for transition in (10_000, 25_000, 50_000)
    }
    | {"over 50K, every 200K": Changing(4, 200_000, transition=50_000)},
    "Returning changes": {"returning, every 200K": Changing(4, 200_000, returns=True)},
}
RULES = 5
"""Of each number of predicates, per seed."""
Replays = dict[str, list[Replay]]
"""By contestant, a replay per seed."""


def report_detectors(seeds: int) -> str:
    """Detectors alone."""
    found = detection.all_told()
    rows = [
        [
            f"{case.of}",
            f"{case.share:g} to {case.other:g}",
            f"{case.before}",
            *(_told(found[case][name]) for name in NAMES),
        ]
        for case in detection.CASES
    ]
    titles = ["observations of an item", "share", "items before", *NAMES]
    figure, axes = pyplot().subplots(figsize=(9, 4))
    for name in NAMES:
        delays = [found[case][name].delay or np.nan for case in detection.CASES]
        axes.plot(range(len(rows)), delays, marker="o", label=name)
    labels = [f"{c.share:g}-{c.other:g}\n{c.of} x {c.before}" for c in detection.CASES]
    axes.set_xticks(range(len(rows)), labels, fontsize=6)
    axes.set(
        yscale="log", ylabel="observations until it is told", title="Delay of each detector (median of 100 streams)"
    )
    axes.legend(fontsize=7)
    save(figure, PAGES.picture("detectors"), dpi=110)
    bounds = [
        [f"{case.other:g}", f"{case.before}", *(_told(told[name]) for name in NAMES)]
        for case, told in detection.all_told(detection.BOUNDS).items()
    ]
    sections = [
        PAGES.shown("detectors"),
        PAGES.section("Delay and false changes", table(titles, rows)),
        PAGES.section("A bound that is exceeded", table(["rows that exceed it", "items before", *NAMES], bounds)),
    ]
    return PAGES.write("detectors", "Change detectors alone", sections)


def _told(told: detection.Told) -> str:
    delay = "never" if told.delay is None else f"{told.delay:,.0f}"
    missed = f", {told.missed} missed" if told.missed else ""
    return f"{delay}{missed} ({told.false:.1f})"


def report_replays(seeds: int) -> str:
    """Tables 2 and 3."""
    sections = [PAGES.shown("replays"), PAGES.section("Table 1: rules over packets", _rules(seeds))]
    pictured: dict[str, Replays] = {}
    for title, streams in SCENARIOS.items():
        parts = []
        for label, stream in streams.items():
            found = _replayed(stream, seeds if stream.filters == 4 else 1)
            pictured[label] = found
            parts.append(f"**{label} tuples**\n\n{_replay_table(found)}\n\n{_improvement(found)}")
        sections.append(PAGES.section(title, "\n\n".join(parts)))
    _plot_replays(pictured)
    return PAGES.write("replays", "A-Greedy* over changing filters", sections)


def _replayed(stream: Stream, seeds: int) -> Replays:
    return {
        name: [replay(replace(stream, seed=seed), make) for seed in range(seeds)]
        for name, make in contestants(stream.filters).items()
    }


def _rules(seeds: int) -> str:
    """Table 1: over all rules the mean cost, and of each rule the cheapest and the dearest of A-Greedy's windows."""
    rules = [_replayed(Packets(filters), RULES * seeds) for filters in (4, 5, 6)]
    by_name = {name: [run for rule in rules for run in rule[name]] for name in rules[0]}
    windows = [runs for name, runs in by_name.items() if name.startswith("window")]
    per_rule = list(zip(*windows))
    rows = [
        ("A-Greedy, all windows", [run for runs in per_rule for run in runs]),
        ("A-Greedy, cheapest window", [min(runs, key=lambda run: run.total_s) for runs in per_rule]),
        ("A-Greedy, dearest window", [max(runs, key=lambda run: run.total_s) for runs in per_rule]),
    ]
    rows += [(name, runs) for name, runs in by_name.items() if not name.startswith("window")]
    fixed = float(np.mean([run.total_s for run in rows[0][1]]))
    cells = [
        [
            name,
            f"{np.mean([run.processing_s for run in runs]):.2f}",
            f"{np.mean([run.monitoring_s for run in runs]):.2f}",
            f"{np.mean([run.total_s / run.oracle_s for run in runs]):.3f}",
            f"{100 * (1 - np.mean([run.total_s for run in runs]) / fixed):+.1f} %",
            f"{np.mean([run.reoptimized for run in runs]):,.0f}",
        ]
        for name, runs in rows
    ]
    titles = ["", "processing, s", "monitoring, s", "total / oracle", "saved over all windows", "re-orders"]
    return f"{len(by_name['window 41'])} rules of 4, 5 and 6 predicates.\n\n{table(titles, cells)}"


def _replay_table(found: Replays) -> str:
    titles = ["", "re-orders", "justified", "processing / oracle", "monitoring, s", "total / oracle", "delay, tuples"]
    titles.append("told")
    rows = []
    for name, runs in found.items():
        told = [run.told for run in runs if run.told is not None]
        rows.append(
            [
                name,
                f"{np.mean([run.reoptimized for run in runs]):,.0f}",
                f"{np.mean([run.justified for run in runs]):,.0f}",
                f"{np.mean([run.processing_s / run.oracle_s for run in runs]):.3f}",
                f"{np.mean([run.monitoring_s for run in runs]):.2f}",
                f"{_total(runs):.3f}",
                f"{np.mean([np.mean(run.delays) for run in runs]):,.0f}",
                f"{np.mean(told):.0f}" if told else "",
            ]
        )
    return table(titles, rows)


def _total(runs: Sequence[Replay]) -> float:
    return float(np.mean([run.total_s / run.oracle_s for run in runs]))


def _improvement(found: Replays) -> str:
    """As tables 2 and 3 count it: over the mean of all fixed windows."""
    fixed = float(np.mean([_total(runs) for name, runs in found.items() if name.startswith("window")]))
    own = [(name, 100 * (1 - _total(runs) / fixed)) for name, runs in found.items() if not name.startswith("window")]
    told = ", ".join(f"{name.removeprefix('A-Greedy* / ')} {gain:+.1f} %" for name, gain in own)
    return f"Total cost saved over the mean of the fixed windows: {told}."


def _plot_replays(pictured: Mapping[str, Replays]) -> None:
    figure, grid = pyplot().subplots(4, 3, figsize=(12, 14), layout="constrained")
    for axes in grid.flat[len(pictured) :]:
        axes.set_visible(False)
    for axes, (title, found) in zip(grid.flat, pictured.items()):
        for name, runs in found.items():
            at = max(float(np.mean([run.reoptimized for run in runs])), 0.7), _total(runs)
            if name.startswith("window"):
                axes.scatter(*at, marker="o", c="tab:grey", s=14)
                axes.annotate(name.removeprefix("window "), at, fontsize=7, color="grey")
            else:
                axes.scatter(*at, marker="^", s=22, label=name)
        axes.set(xscale="log", title=title)
        axes.title.set_fontsize(10)
    for axes in grid[:, 0]:
        axes.set_ylabel("total cost / oracle's")
    for axes in grid.flat:
        axes.set_xlabel("re-orders")
    legend_below(figure, [grid.flat[0]])
    figure.suptitle("Total cost over re-orders; grey: fixed windows, by their size")
    save(figure, PAGES.picture("replays"))


WAYS = ("off", "counts", "auto")
MEASURED = (*WAYS, "as written")


def report_engine(seeds: int) -> str:
    """Queries."""
    streams = {
        "every 1M": lambda: engine.turning(8_000_000, 1_000_000),
        "every 250k": lambda: engine.turning(8_000_000, 250_000),
        "every 100k": lambda: engine.turning(6_000_000, 100_000),
        "never": lambda: engine.steady(8_000_000),
    }
    rows, heights, parts = [], [], []
    for label, make in streams.items():
        stream = make()
        for kind, condition in engine.CONDITIONS.items():
            runs = engine.compare(stream, condition, {way: {"change_detection": way} for way in WAYS}, seeds)
            found = [engine.ratio(runs, way) for way in MEASURED]
            rows.append([label, kind, *(f"{each:.2f}" for each in found)])
            heights.append((f"{label}\n{kind}", found))
            parts.append([label, kind, *_parts(runs)])
    figure, axes = pyplot().subplots(figsize=(9, 4))
    for k, way in enumerate(MEASURED):
        axes.bar(np.arange(len(heights)) + 0.2 * k, [values[k] for _, values in heights], 0.2, label=way)
    axes.set_xticks(np.arange(len(heights)) + 0.3, [label for label, _ in heights], fontsize=7)
    axes.axhline(1.0, color="black", linewidth=0.5)
    axes.set(ylabel="time / oracle's", title="Queries of four filters whose drop rates take turns")
    axes.legend(fontsize=7)
    save(figure, PAGES.picture("engine"), dpi=110)
    delays = [[name, *(f"{d:,}" if d else "never" for d in found)] for name, found in engine.hidden_delays().items()]
    sections = [
        PAGES.shown("engine"),
        PAGES.section(
            "Time over the best order of each phase",
            "\n\n".join((table(["changes", "filters", *MEASURED], rows), table(PARTS_OF_TIME, parts))),
        ),
        PAGES.section("Streams that do not change", _steady(seeds)),
        PAGES.section("A hidden change", table(["", *(f"seed {seed}" for seed in range(engine.HIDDEN_SEEDS))], delays)),
    ]
    return PAGES.write("engine", "Change detection in queries", sections)


PARTS_OF_TIME = (
    "changes",
    "filters",
    "oracle",
    "`auto`",
    "more in filters",
    "profiling, choosing",
    "looking ahead, comparing counts",
    "answers",
    "tuples until the best filter is first",
)


def _parts(runs: Mapping[str, Sequence[engine.Run]]) -> list[str]:
    """Of all, in ms: medians of the rounds, and what `auto` takes beyond the oracle, in its parts."""
    beyond = []
    for one, best in zip(runs["auto"], runs["oracle"]):
        more = one.filtering - best.filtering
        beyond.append((best.seconds, one.seconds, more, one.deciding, one.seconds - best.seconds - more - one.deciding))
    times = [f"{1000 * each:.0f}" for each in np.median(beyond, axis=0)]
    last = runs["auto"][-1]
    delays = [delay for delay in last.found_after[1:] if delay is not None]
    return [*times, f"{last.decisions}", f"{np.median(delays):,.0f}" if delays else ""]


STEADY = ("auto", *DETECTORS)


def _steady(seeds: int) -> str:
    """Each way by the side of `counts`."""
    stream = engine.steady(8_000_000)
    rows = []
    for kind, condition in engine.CONDITIONS.items():
        ways = {way: {"change_detection": way} for way in ("counts", *STEADY)}
        runs = engine.compare(stream, condition, ways, 2 * seeds)
        rows.append([kind, *(f"{engine.ratio(runs, way, 'counts'):.3f}" for way in STEADY)])
    return table(["filters", *STEADY], rows)


PARTS = {"detectors": report_detectors, "replays": report_replays, "engine": report_engine}
