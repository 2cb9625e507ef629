"""What it costs that everything is on: each case of the benchmarks with the defaults, and with all of it off.

    python -m benchmarks.defaults [--events N] [--rounds N] [--case NAME] [--with name=value ..]

The two run in turn, round after round, in pushes of several sizes, and are compared by processor time. Their answers
must be equal. A ratio below 0.97 is a miss.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

import minidsms
from benchmarks.answers import fingerprint
from benchmarks.cases import CASES, Case
from benchmarks.feeds import Feeds, last_instant, parts, push_all

GOAL = 0.97
OFF: dict[str, Any] = {
    "scheduler": "round_robin",
    "adaptive": "off",
    "join_plan": "mjoin",
    "caching": "off",
    "state_reduction": "off",
    "routing": "off",
}
SIZES = {65_536: 1.0, 1_000: 0.3, 10: 0.02}
"""Elements of a push, and the share of the events that is pushed so."""


def main(arguments: list[str]) -> int:
    """Exit code 1 where a ratio misses the goal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--case", action="append", choices=[c.name for c in CASES])
    parser.add_argument("--with", action="append", default=[], dest="given", metavar="NAME=VALUE")
    options = parser.parse_args(arguments)
    given = dict(each.split("=", 1) for each in options.given)
    table = Table("case", *[f"pushes of {size:,}" for size in SIZES])
    missed = False
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        found = [ratio(case, int(options.events * share), size, options.rounds, given) for size, share in SIZES.items()]
        missed = missed or any(median < GOAL for median, _, _ in found)
        table.add_row(case.name, *[f"{median:.3f} ({least:.2f} to {most:.2f})" for median, least, most in found])
        print(case.name, [tuple(round(x, 3) for x in each) for each in found], file=sys.stderr, flush=True)
    Console(width=120).print(table)
    return 1 if missed else 0


def ratio(case: Case, events: int, size: int, rounds: int, given: Mapping[str, Any]) -> tuple[float, float, float]:
    """Of the rate with the defaults, and what is given, over that with everything off: median, least, greatest."""
    feeds = case.feeds(events)
    contestants: dict[str, Mapping[str, Any]] = {"on": given, "off": OFF}
    ratios = []
    for number in range(rounds + 1):
        order = list(contestants)[:: 1 if number % 2 else -1]
        done = {name: run(case, feeds, size, contestants[name]) for name in order}
        if done["on"][1] != done["off"][1]:
            raise AssertionError(f"{case.name}: answers differ")
        if number:
            ratios.append(done["off"][0] / done["on"][0])
    return statistics.median(ratios), min(ratios), max(ratios)


def run(case: Case, feeds: Feeds, size: int, options: Mapping[str, Any]) -> tuple[float, Any]:
    """CPU seconds, and what the answer is known by."""
    pieces = list(parts(feeds, size))
    with minidsms.connect(**{**case.options, **options}) as db:
        db.execute(case.declarations)
        query = db.query(case.cql)
        gc.collect()
        start = time.process_time()
        push_all(db, pieces, last_instant(feeds))
        answer = query.fetch_arrow()
        seconds = time.process_time() - start
        return seconds, fingerprint(answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
