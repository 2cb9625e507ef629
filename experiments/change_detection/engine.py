"""Queries whose filters change, against an oracle: the same query with the best order of each phase pinned.

Contestants run by turns, and are compared by processor time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minidsms
from benchmarks.feeds import Feed
from benchmarks.limits_filters import chain_hash

CHUNK = 65_536
FILTERS = 4
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Phased:
    """A stream whose conditions change: its columns, the tuples at which they do, and the best order from there on."""

    columns: Columns
    starts: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]

    @property
    def tuples(self) -> int:
        """Altogether."""
        return len(next(iter(self.columns.values())))


def turning(tuples: int, period: int, seed: int = 5) -> Phased:
    """By turns another of four filters drops 95 % of the tuples, the others 10 %."""
    rng = np.random.default_rng(seed)
    starts = tuple(range(0, tuples, period))
    turn = np.repeat(np.arange(len(starts)) % FILTERS, period)[:tuples]
    columns = {
        f"a{j}": rng.integers(0, 500, tuples) + 500 * (rng.random(tuples) < np.where(turn == j, 0.95, 0.1))
        for j in range(FILTERS)
    }
    orders = [tuple(sorted(range(FILTERS), key=lambda j, k=k: j != k % FILTERS)) for k in range(len(starts))]
    return Phased(columns, starts, tuple(orders))


def steady(tuples: int, seed: int = 6) -> Phased:
    """Four filters that drop 50, 40, 30 and 20 %, always."""
    rng = np.random.default_rng(seed)
    shares = (0.5, 0.4, 0.3, 0.2)
    columns = {
        f"a{j}": rng.integers(0, 500, tuples) + 500 * (rng.random(tuples) < share) for j, share in enumerate(shares)
    }
    return Phased(columns, (0,), ((0, 1, 2, 3),))


def hidden(tuples: int, change: int, seed: int = 7) -> Phased:
    """Of the first two filters each drops what the other lets pass; at the change the last begins to drop all."""
    rng = np.random.default_rng(seed)
    first = rng.random(tuples) < 0.55
    drops = (
        first,
        ~first | (rng.random(tuples) < 0.1),
        rng.random(tuples) < 0.1,
        rng.random(tuples) < np.where(np.arange(tuples) < change, 0.1, 1.0),
    )
    columns = {f"a{j}": rng.integers(0, 500, tuples) + 500 * dropped for j, dropped in enumerate(drops)}
    return Phased(columns, (0, change), ((0, 1, 2, 3), (3, 0, 1, 2)))


CONDITIONS = {
    "hashed": " AND ".join(f"H(a{j}, 0) % 1000 < 500 AND H(a{j}, 4) >= 0" for j in range(FILTERS)),
    "compared": " AND ".join(f"a{j} < 500" for j in range(FILTERS)),
}
"""By what a filter costs: some ns, with one beside it that drops nothing and costs ten; about one."""


def _filters(condition: str, order: Sequence[int]) -> tuple[int, ...]:
    """The order of a condition's filters: those of the columns in this order, then those that drop nothing."""
    if condition == CONDITIONS["compared"]:
        return tuple(order)
    return (*(2 * j for j in order), *(2 * j + 1 for j in range(FILTERS)))


@dataclass(frozen=True)
class Run:
    """CPU seconds; the answer's size and sum; tuples from each change until the best filter stood first, None if it
    never did; decisions taken.
    """

    seconds: float
    answer: tuple[int, int]
    found_after: tuple[int | None, ...]
    decisions: int


def run(stream: Phased, condition: str, oracle: bool = False, chunk: int = CHUNK, **options: Any) -> Run:
    """Push the stream and fetch the answer. oracle: pin the best order of each phase instead of adapting."""
    n = stream.tuples
    feed = Feed(np.arange(n, dtype=np.int64), dict(stream.columns))
    with minidsms.connect(**options) as db:
        db.execute(f"CREATE STREAM tuples ({', '.join(f'{c} INTEGER' for c in feed.columns)})")
        db.create_function("H", chain_hash, ["INTEGER", "INTEGER"], "INTEGER", vectorized=True)
        query = db.query(f"SELECT a0 FROM tuples WHERE {condition}")
        (place,) = [a for op in query.network.operators if hasattr(op, "adaptations") for a in op.adaptations()]
        pieces = list(_pieces(feed, stream.starts, chunk, cut=oracle))
        orders = [_filters(condition, order) for order in stream.orders]
        gc.collect()
        seconds = 0.0
        found: list[int | None] = [None] * len(stream.starts)
        for phase, begin, columns, ts in pieces:
            began = time.process_time()
            if oracle and begin == stream.starts[phase]:
                place.pin(orders[phase])
            db.push("tuples", columns, ts=ts)
            seconds += time.process_time() - began
            phase = int(np.searchsorted(stream.starts, begin + len(ts) - 1, side="right")) - 1
            if found[phase] is None and place.executor.plan[0] == orders[phase][0]:
                found[phase] = begin - stream.starts[phase] + len(ts)
        began = time.process_time()
        db.advance(n)
        answer = query.fetch_arrow()
        seconds += time.process_time() - began
        total = int(answer.column("a0").to_numpy().sum())
        return Run(seconds, (len(answer), total), tuple(found), len(query.decisions()))


def _pieces(feed: Feed, starts: Sequence[int], chunk: int, cut: bool) -> Iterator[tuple[int, int, Columns, Any]]:
    """(phase, first tuple, columns, timestamps) of each push. cut: pushes end where conditions change."""
    bounds = [*starts, len(feed.ts)]
    begin = 0
    n = len(feed.ts)
    while begin < n:
        end = min(begin + chunk, n)
        phase = int(np.searchsorted(bounds, begin, side="right")) - 1
        if cut:
            end = min(end, bounds[phase + 1])
        yield phase, begin, {c: v[begin:end] for c, v in feed.columns.items()}, feed.ts[begin:end]
        begin = end


def compare(stream: Phased, condition: str, ways: Mapping[str, Mapping[str, Any]], rounds: int) -> dict[str, float]:
    """Time of each way, and of the order written, over the oracle's; of so many rounds the fastest of each."""
    seconds: dict[str, list[float]] = {}
    answers = set()
    for _ in range(rounds + 1):
        done = {"oracle": run(stream, condition, oracle=True)}
        done |= {name: run(stream, condition, **options) for name, options in ways.items()}
        done["as written"] = run(stream, condition, adaptive="off")
        for name, result in done.items():
            seconds.setdefault(name, []).append(result.seconds)
            answers.add(result.answer)
    if len(answers) != 1:
        raise AssertionError(f"answers differ: {answers}")
    best = {name: min(values) for name, values in seconds.items()}
    return {name: value / best["oracle"] for name, value in best.items()}


HIDDEN_SEEDS = 5
HIDDEN_CHANGE, HIDDEN_TUPLES = 4_000_000, 12_000_000


def hidden_delays() -> dict[str, list[int | None]]:
    """Tuples from the hidden change until the last filter stands first, seed by seed; None if it never does.

    Filters cost 1 each, so that it can be repeated to the tuple; that is less than they are profiled elsewhere.
    """
    found: dict[str, list[int | None]] = {}
    for seed in range(HIDDEN_SEEDS):
        stream = hidden(HIDDEN_TUPLES, HIDDEN_CHANGE + 100_000 * seed, seed)
        for way in ("counts", "auto", "cusum", "beta_cusum", "adwin"):
            done = run(stream, CONDITIONS["compared"], cost_model="fixed", change_detection=way)
            found.setdefault(way, []).append(done.found_after[1])
    return found
