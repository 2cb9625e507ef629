"""Rates of all cases: contestants in turn, round after round, and their answers compared.

A ratio is taken inside one round, between neighbours in time; minimum and maximum over the rounds stand beside the
median, for the machine is rarely alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import contestants
from benchmarks.answers import Fingerprint, fingerprint
from benchmarks.cases import Case
from benchmarks.contestants import Run
from benchmarks.feeds import Feeds


class AnswersDifferError(AssertionError):
    """Two contestants gave different answers: no figure is worth showing."""


@dataclass
class Result:
    """What a case showed. seconds: per contestant, one per round.  operators: of the engine's last round."""

    case: Case
    elements: int
    answer: Fingerprint
    differing: dict[str, Fingerprint] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    operators: tuple[dict[str, Any], ...] = ()

    def rate(self, who: str) -> float | None:
        """Elements per second, the median round."""
        return self.elements / statistics.median(self.seconds[who]) if who in self.seconds else None

    def ratio(self, of: str, to: str) -> tuple[float, float, float] | None:
        """(median, least, greatest) of the rate of one contestant over that of another, round by round."""
        if of not in self.seconds or to not in self.seconds:
            return None
        ratios = [b / a for a, b in zip(self.seconds[of], self.seconds[to])]
        return statistics.median(ratios), min(ratios), max(ratios)

    def as_dict(self) -> dict[str, Any]:
        """For the JSON."""
        return {
            "elements": self.elements,
            "answer": str(self.answer),
            "differing": {who: str(other) for who, other in self.differing.items()},
            "rates": {who: self.rate(who) for who in self.seconds},
            "of_kernel": self.ratio("minidsms", "kernel"),
            "of_duckdb": self.ratio("minidsms", "duckdb"),
            "goal": self.case.goal,
            "ns_per_element": costs(self),
        }


def measure(case: Case, events: int, rounds: int) -> Result:
    """Run all contestants; a round outside the count first, in which kernels compile and answers are compared."""
    feeds = case.feeds(events)
    elements = sum(len(feed) for feed in feeds.values())
    who: dict[str, Callable[[Case, Feeds], Run]] = {"minidsms": contestants.engine, "duckdb": contestants.duckdb_batch}
    if case.kernel is not None:
        who["kernel"] = contestants.kernel
    first = {name: run(case, feeds) for name, run in who.items()}
    answers = {name: fingerprint(run.answer) for name, run in first.items()}
    result = Result(case, elements, answers["duckdb"])
    result.differing = {name: a for name, a in answers.items() if a != answers["duckdb"]}
    result.operators = first["minidsms"].operators
    if result.differing:
        return result
    for _ in range(rounds):
        for name, run in who.items():
            done = run(case, feeds)
            result.seconds.setdefault(name, []).append(done.seconds)
            if done.operators:
                result.operators = done.operators
    return result


def costs(result: Result) -> dict[str, float]:
    """Per operator, nanoseconds per element of the input."""
    total: dict[str, float] = {}
    for operator in result.operators:
        total[operator["operator"]] = total.get(operator["operator"], 0.0) + operator["time_s"]
    return {name: round(seconds * 1e9 / result.elements, 1) for name, seconds in total.items()}


def show(results: Sequence[Result], console: Console) -> None:
    """The table of ratios, then where the engine's time went."""
    table = Table(
        "query",
        "M elements/s",
        "kernel",
        "of kernel (min to max)",
        "goal",
        "DuckDB, one batch",
        "x DuckDB (min to max)",
        "changes",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for r in results:
        if r.differing:
            table.add_row(r.case.name, *["answers differ"], *[""] * 5, str(r.answer.changes))
            continue
        of_kernel = r.ratio("minidsms", "kernel")
        goal = "" if r.case.goal is None else f"{r.case.goal:.2f}"
        if of_kernel is not None and r.case.goal is not None:
            goal += " met" if of_kernel[0] >= r.case.goal else " missed"
        table.add_row(
            r.case.name,
            _millions(r.rate("minidsms")),
            _millions(r.rate("kernel")),
            _span(of_kernel),
            goal,
            _millions(r.rate("duckdb")),
            _span(r.ratio("minidsms", "duckdb")),
            f"{r.answer.changes:,}",
        )
    console.print(table)
    profile = Table("query", "nanoseconds per element of the input, by operator")
    for r in results:
        shown = sorted(costs(r).items(), key=lambda item: -item[1])
        profile.add_row(r.case.name, ", ".join(f"{name} {ns:.1f}" for name, ns in shown if ns >= 0.1))
    console.print(profile)
    for r in results:
        for name, other in r.differing.items():
            console.print(f"{r.case.name}: {name} says {other}; DuckDB {r.answer}")


def _millions(rate: float | None) -> str:
    return "" if rate is None else f"{rate / 1e6:.2f}"


def _span(ratio: tuple[float, float, float] | None) -> str:
    return "" if ratio is None else f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"
