"""Stream-Star through queries: processor time, and evaluations of filters per tuple.

A filter is a vectorised user function that computes so many sines a tuple and then looks at a bit. Contestants run in
turn, round after round; what counts is the median of the rounds' ratios and the ratio of the fastest. Answers are
compared.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minidsms
from experiments.content_routing.streams import BIT, StarStream
from minidsms.elements import Int64Array

CHUNK = 65_536


@dataclass(frozen=True)
class Run:
    """seconds: of the processor.  evaluations: of filters, per tuple, profiles left out.  plan: in words.  answer: rows
    and the sum of a column.
    """

    seconds: float
    evaluations: float
    plan: str
    answer: tuple[int, int]


def looks(sines: int) -> Callable[[Any], Any]:
    """The user function: 1 where BIT is set, after some work."""

    def look(values: Any) -> Any:
        x = values.astype(np.float64)
        for _ in range(sines):
            x = np.sin(x)
        return ((values & BIT) != 0).astype(np.int64) + (x > 2)

    return look


def ns_of(sines: int) -> float:
    """What a filter takes per tuple, of the least of three chunks."""
    look, values = looks(sines), np.random.default_rng(0).integers(0, 1 << 30, CHUNK)
    spent = []
    for _ in range(3):
        began = time.thread_time_ns()
        look(values)
        spent.append((time.thread_time_ns() - began) / CHUNK)
    return min(spent)


def condition(n: int, sines: int) -> str:
    """Of n filters; without sines they are comparisons."""
    return " AND ".join(f"LOOKS(f{j}) = 0" if sines else f"f{j} % {2 * BIT} < {BIT}" for j in range(n))


def run(columns: Mapping[str, Int64Array], where: str, sines: int, chunk: int = CHUNK, **options: Any) -> Run:
    """Push a stream through a query and fetch its answer."""
    names = list(columns)
    m = len(columns[names[0]])
    ts = np.arange(m)
    with minidsms.connect(**options) as db:
        db.execute(f"CREATE STREAM S ({', '.join(f'{name} INTEGER' for name in names)})")
        db.create_function("LOOKS", looks(sines), ["INTEGER"], "INTEGER", vectorized=True)
        query = db.query(f"SELECT {', '.join(names)} FROM S WHERE {where}")
        gc.collect()
        began = time.process_time()
        for start in range(0, m, chunk):
            piece = {name: values[start : start + chunk] for name, values in columns.items()}
            db.push("S", piece, ts=ts[start : start + chunk])
        db.advance(m)
        answer = query.fetch_arrow()
        seconds = time.process_time() - began
        (place,) = [a for o in query.network.operators if hasattr(o, "adaptations") for a in o.adaptations()]
        executor = place.executor
        evaluations = executor.evaluations + sum(sum(part.reached[:-1]) for part in executor.parts)
        total = int(answer.column(names[0]).to_numpy().sum())
        plan = executor.plan_text(executor.plan)
        return Run(seconds, evaluations / m, plan, (len(answer), total))


@dataclass(frozen=True)
class Compared:
    """Of each contestant over the first one: ratios of rates. evaluations: per tuple, of the last round."""

    median: dict[str, float]
    fastest: dict[str, float]
    evaluations: dict[str, float]
    plans: dict[str, str]


def compare(contestants: Mapping[str, Callable[[], Run]], rounds: int) -> Compared:
    """All in turn; a round outside the count first."""
    done: dict[str, list[Run]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        names: Sequence[str] = list(contestants)
        for name in names if i % 2 else reversed(names):
            result = contestants[name]()
            if i:
                done[name].append(result)
    if len({each.answer for runs in done.values() for each in runs}) != 1:
        raise AssertionError("answers differ")
    first, *_ = done.values()
    return Compared(
        {n: statistics.median(a.seconds / b.seconds for a, b in zip(first, runs)) for n, runs in done.items()},
        {n: min(a.seconds for a in first) / min(b.seconds for b in runs) for n, runs in done.items()},
        {n: runs[-1].evaluations for n, runs in done.items()},
        {n: runs[-1].plan for n, runs in done.items()},
    )


MODES: dict[str, dict[str, str]] = {
    "A-Greedy": {"routing": "off"},
    "auto": {},
    "Content-Learns": {"routing": "content"},
    "SBR": {"filter_ordering": "sbr"},
}


def compared(stream: StarStream, sines: int, rounds: int, modes: Sequence[str] = tuple(MODES)) -> Compared:
    """A stream under several modes, the first of which is the measure."""
    columns = stream.columns()
    where = condition(stream.n, sines)
    return compare({mode: lambda m=mode: run(columns, where, sines, **MODES[m]) for mode in modes}, rounds)  # type: ignore[misc]
