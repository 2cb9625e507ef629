"""Does adapting pay? Filters in the worst order, filters that change, filters with nothing to gain, single tuples.

Contestants run in turn, round after round, and are compared by processor time: the machine is rarely alone. An answer
that differs from the static one's ends the run.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

import minidsms
from benchmarks import new_process, nexmark, sql
from benchmarks.cases import BEST_ORDER, WORST_ORDER
from benchmarks.feeds import Feed, Feeds, parts, push_all

PHASE = 1_000_000
"""Tuples between two changes of the selectivities."""
CHUNK = 65_536
GOALS = {
    "worst order / best static order": 0.9,
    "worst order / not adaptive": 1.0,
    "changing / best static order": 1.0,
    "changing / worst static order": 1.0,
    "one filter / not adaptive": 0.97,
    "ten equal filters / not adaptive": 0.97,
    "equal, cheap filters / not adaptive": 0.97,
    "single tuples / not adaptive": 0.97,
}


@dataclass(frozen=True)
class Run:
    """CPU seconds, the answer's size and sum, decisions taken."""

    seconds: float
    answer: tuple[int, int]
    decisions: int


def hash_filters(order: Sequence[int], rounds: Sequence[int] = sql.HASH_ROUNDS) -> str:
    """Filters of filters10, written in this order."""
    return " AND ".join(f"H(a{j}, {rounds[j]}) % 1000 < 500" for j in order)


def run(feeds: Feeds, condition: str, chunk: int = CHUNK, times: int = 1, **options: Any) -> Run:
    """Push the feed, so many times one after the other, and fetch the answer."""
    from benchmarks.limits_filters import chain_hash

    (feed,) = feeds.values()
    length = int(feed.ts[-1]) + 1
    again = [{"tuples": Feed(feed.ts + i * length, feed.columns)} for i in range(times)]
    pieces = [piece for each in again for piece in parts(each, chunk)]
    with minidsms.connect(**options) as db:
        db.execute(f"CREATE STREAM tuples ({', '.join(f'{c} INTEGER' for c in feed.columns)})")
        db.create_function("H", chain_hash, ["INTEGER", "INTEGER"], "INTEGER", vectorized=True)
        query = db.query(f"SELECT a0 FROM tuples WHERE {condition}")
        gc.collect()
        start = time.process_time()
        push_all(db, pieces, times * length)
        answer = query.fetch_arrow()
        seconds = time.process_time() - start
        total = int(answer.column("a0").to_numpy().sum())
        return Run(seconds, (len(answer), total), len(query.decisions()))


def changing(phases: int, filters: int = 4, seed: int = 5) -> Feeds:
    """A stream in which, phase after phase, another filter `a_j % 1000 < 500` drops 95 % and the others 10 %."""
    rng = np.random.default_rng(seed)
    n = phases * PHASE
    columns = {}
    for j in range(filters):
        dropping = np.repeat([0.95 if phase % filters == j else 0.1 for phase in range(phases)], PHASE)
        columns[f"a{j}"] = rng.integers(0, 500, n) + 500 * (rng.random(n) < dropping)
    return {"tuples": Feed(np.arange(n, dtype=np.int64) // 10, columns)}


def rounds_of(contestants: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """All contestants, in turn; a round outside the count first."""
    results: dict[str, list[Run]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        for name, work in contestants.items():
            done = work()
            if i:
                results[name].append(done)
    answers = {done.answer for all_of in results.values() for done in all_of}
    if len(answers) != 1:
        raise AssertionError(f"answers differ: {answers}")
    return results


@dataclass(frozen=True)
class Ratio:
    """Of the rate of one contestant over that of another: median, least and greatest over the rounds, and that of
    the fastest rounds of each, which is least disturbed by what else the machine does.
    """

    median: float
    least: float
    greatest: float
    fastest: float


def ratio(results: Mapping[str, list[Run]], of: str, to: str) -> Ratio:
    """Of one contestant over another."""
    ours, theirs = ([done.seconds for done in results[name]] for name in (of, to))
    ratios = [b / a for a, b in zip(ours, theirs)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios), min(theirs) / min(ours))


def measure(events: int = 1_000_000, rounds: int = 5, phases: int = 8) -> dict[str, dict[str, Any]]:
    """The table: per claim its goal and the ratio of rates, median, least and greatest."""
    found: dict[str, Ratio] = {}
    ten = nexmark.ten_attributes(events)
    results = rounds_of(
        {
            "adaptive": lambda: run(ten, hash_filters(WORST_ORDER), times=4),
            "best": lambda: run(ten, hash_filters(BEST_ORDER), times=4, adaptive="off"),
            "worst": lambda: run(ten, hash_filters(WORST_ORDER), times=4, adaptive="off"),
        },
        rounds,
    )
    found["worst order / best static order"] = ratio(results, "adaptive", "best")
    found["worst order / not adaptive"] = ratio(results, "adaptive", "worst")
    found |= _changing(rounds, phases)
    found |= _nothing_to_gain(ten, rounds)
    return {
        claim: {
            "goal": GOALS[claim],
            "fastest": round(r.fastest, 3),
            "median": round(r.median, 3),
            "least": round(r.least, 3),
            "greatest": round(r.greatest, 3),
        }
        for claim, r in found.items()
    } | {"worst order / best order, in a new process": new_process.measure(rounds)}


def _changing(rounds: int, phases: int) -> dict[str, Ratio]:
    """Against every static order of four filters: by symmetry of the phases their first filter tells them apart."""
    feeds = changing(phases)
    conditions = {
        order: " AND ".join(f"H(a{j}, 0) % 1000 < 500 AND H(a{j}, 4) >= 0" for j in order)
        for order in permutations(range(4))
        if order[1:] == tuple(sorted(order[1:]))
    }
    contestants = {str(o): lambda c=c: run(feeds, c, adaptive="off") for o, c in conditions.items()}  # type: ignore[misc]
    contestants["adaptive"] = lambda: run(feeds, conditions[0, 1, 2, 3])
    results = rounds_of(contestants, rounds)
    statics = [ratio(results, "adaptive", name) for name in results if name != "adaptive"]
    return {
        "changing / best static order": min(statics, key=lambda r: r.fastest),
        "changing / worst static order": max(statics, key=lambda r: r.fastest),
    }


def _nothing_to_gain(ten: Feeds, rounds: int) -> dict[str, Ratio]:
    events = len(ten["tuples"])
    rng = np.random.default_rng(6)
    equal: Feeds = {
        "tuples": Feed(
            np.arange(events, dtype=np.int64) // 10, {f"a{j}": rng.integers(0, 1000, events) for j in range(10)}
        )
    }
    few: Feeds = {
        "tuples": Feed(np.arange(4000, dtype=np.int64), {c: v[:4000] for c, v in equal["tuples"].columns.items()})
    }
    cases = {
        "one filter": (ten, "H(a0, 4) % 1000 < 500", CHUNK, 4),
        "ten equal filters": (equal, hash_filters(range(10), (2,) * 10), CHUNK, 4),
        "equal, cheap filters": (equal, " AND ".join(f"a{j} < 700" for j in range(10)), CHUNK, 4),
        "single tuples": (few, " AND ".join(f"a{j} < 700" for j in range(10)), 1, 1),
    }
    found = {}
    for name, (feeds, condition, chunk, times) in cases.items():
        results = rounds_of(
            {
                "adaptive": lambda f=feeds, c=condition, k=chunk, t=times: run(f, c, k, t),  # type: ignore[misc]
                "static": lambda f=feeds, c=condition, k=chunk, t=times: run(f, c, k, t, adaptive="off"),  # type: ignore[misc]
            },
            rounds,
        )
        found[f"{name} / not adaptive"] = ratio(results, "adaptive", "static")
    return found
