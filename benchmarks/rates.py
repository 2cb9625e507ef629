"""Rates of all cases: contestants in turn, round after round, and their answers compared.

`kernel` and `duckdb` give the whole answer, every change with its expiry; `counting kernel` and `counting duckdb` only
count it (`counting`), and are what the goals are set by. Kernels have one thread, and the engine beside them; DuckDB
has two, and so has the engine beside it. A ratio is taken inside one round, between neighbours in time; minimum and
maximum over the rounds stand beside the median, for the machine is rarely alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import contestants
from benchmarks.answers import Fingerprint, fingerprint
from benchmarks.cases import Case
from benchmarks.contestants import Run
from benchmarks.counting import COUNTED
from benchmarks.feeds import last_instant
from minidsms.kernels.expressions import run_program
from minidsms.machine_code.ahead import compile_all

TWO_THREADS = "minidsms, two threads"
ENGINES = ("minidsms", TWO_THREADS)
COUNTERS = {"counting kernel": contestants.counting_kernel, "counting duckdb": contestants.counting_duckdb}


@dataclass
class Result:
    """What a case showed. seconds: per contestant, one per round.  operators: of the engine's last round.  differing:
    what else was answered, by whom.  first_s: of the engine's first run in this process, before the rounds: kernels
    that are kept are loaded in it, others compiled.
    """

    case: Case
    elements: int
    answer: Fingerprint
    first_s: float
    differing: dict[str, str] = field(default_factory=dict)
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
            "differing": self.differing,
            "rates": {who: self.rate(who) for who in self.seconds},
            "first_run_rate": self.elements / self.first_s,
            "ratios": {who: self.ratio("minidsms", who) for who in self.seconds if who not in ENGINES},
            "ratios_two_threads": {who: self.ratio(TWO_THREADS, who) for who in self.seconds if who.endswith("duckdb")},
            "goals": None if self.case.goals is None else asdict(self.case.goals),
            "ns_per_element": costs(self),
        }


def measure(case: Case, events: int, rounds: int) -> Result:
    """Run all contestants; a round outside the count first, in which kernels compile and answers are compared. In the
    others each runs twice, and the second run counts: the first one finds the memory as another has left it.

    The engine's forms are compiled then, too, at once, and the kernel of expressions' programs, which would be compiled
    beside whatever is set; in the rounds it takes them when it finds that they are kept.
    """
    feeds = case.feeds(events)
    elements = sum(len(feed) for feed in feeds.values())
    counting = COUNTED.get(case.name)
    who: dict[str, Callable[[], Run]] = {
        "minidsms": partial(contestants.engine, case, feeds),
        TWO_THREADS: partial(contestants.engine, case, feeds, threads=contestants.engine_threads()),
        "duckdb": partial(contestants.duckdb_batch, case, feeds),
    }
    if case.kernel is not None:
        who["kernel"] = partial(contestants.kernel, case, feeds)
    if case.hashing is not None:
        who["hashing kernel"] = partial(contestants.hashing_kernel, case, feeds)
    first = {name: run() for name, run in who.items()}
    answers = {name: fingerprint(run.answer) for name, run in first.items()}
    compile_all([run_program.form().place])
    formed = contestants.engine(case, feeds, compilation="at once")
    answers["minidsms, compiled at once"] = fingerprint(formed.answer)
    result = Result(case, elements, answers["duckdb"], first["minidsms"].seconds)
    result.differing = {name: str(a) for name, a in answers.items() if a != answers["duckdb"]}
    if counting is not None:
        for name, count in COUNTERS.items():
            who[name] = partial(count, counting, feeds)
        sums = {name: contestants.sums(who[name]()) for name in COUNTERS}
        if counting.of_answer is not None:
            sums["minidsms"] = counting.of_answer(first["minidsms"].answer, feeds, last_instant(feeds))
        if len(set(sums.values())) > 1:
            result.differing |= {name: f"rows and sums of columns {found}" for name, found in sums.items()}
    result.operators = first["minidsms"].operators
    if result.differing:
        return result
    del first, formed  # an answer that is held keeps its memory from the next run
    for _ in range(rounds):
        for name, run in who.items():
            run()
            done = run()
            result.seconds.setdefault(name, []).append(done.seconds)
            if name == "minidsms":
                result.operators = done.operators
            del done
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
        "first run",
        "of kernel",
        "of hashing kernel",
        "goal",
        "of counting kernel",
        "goal",
        "x DuckDB, two threads",
        "x counting DuckDB, two threads",
        "goal",
        "changes",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for r in results:
        if r.differing:
            table.add_row(r.case.name, "answers differ", *[""] * 9, f"{r.answer.changes:,}")
            continue
        goals = r.case.goals
        table.add_row(
            r.case.name,
            _millions(r.rate("minidsms")),
            _millions(r.elements / r.first_s),
            _span(r.ratio("minidsms", "kernel")),
            _span(r.ratio("minidsms", "hashing kernel")),
            _goal(r.ratio("minidsms", "hashing kernel"), goals and goals.of_hashing),
            _span(r.ratio("minidsms", "counting kernel")),
            _goal(r.ratio("minidsms", "counting kernel"), goals and goals.of_counting),
            _span(r.ratio(TWO_THREADS, "duckdb")),
            _span(r.ratio(TWO_THREADS, "counting duckdb")),
            _goal(r.ratio(TWO_THREADS, "counting duckdb"), goals and goals.of_duckdb),
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


def _goal(ratio: tuple[float, float, float] | None, goal: float | None) -> str:
    if ratio is None or goal is None:
        return ""
    return f"{goal:.2f} {'met' if ratio[0] >= goal else 'missed'}"
