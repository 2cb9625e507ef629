"""Queries whose filters change, against an oracle: the same query with the best order of each phase pinned.

Contestants stand side by side in one process and take each chunk by turns, so that what slows the machine for a while
slows all of them; they are compared by processor time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import minidsms

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
    never did; decisions taken; of the CPU seconds those spent evaluating filters, and those profiling and choosing.
    """

    seconds: float
    answer: tuple[int, int]
    found_after: tuple[int | None, ...]
    decisions: int
    filtering: float
    deciding: float


class Contestant:
    """A query over the stream. oracle: pin the best order of each phase instead of adapting."""

    def __init__(self, stream: Phased, condition: str, oracle: bool = False, **options: Any) -> None:
        from benchmarks.limits_filters import chain_hash  # which compiles it

        self._stream = stream
        self._oracle = oracle
        self._orders = [_filters(condition, order) for order in stream.orders]
        self._db = minidsms.connect(**options)
        self._db.execute(f"CREATE STREAM tuples ({', '.join(f'{c} INTEGER' for c in stream.columns)})")
        self._db.create_function("H", chain_hash, ["INTEGER", "INTEGER"], "INTEGER", vectorized=True)
        self._query = self._db.query(f"SELECT a0 FROM tuples WHERE {condition}")
        operators = self._query.network.operators
        (self._place,) = [a for op in operators if hasattr(op, "adaptations") for a in op.adaptations()]
        self._seconds = 0.0
        self._found: list[int | None] = [None] * len(stream.starts)

    def push(self, begin: int, end: int) -> None:
        """Take these tuples; the oracle's are cut where conditions change."""
        for first, last in self._cut(begin, end):
            phase = self._phase(first)
            part = {c: v[first:last] for c, v in self._stream.columns.items()}
            ts = np.arange(first, last, dtype=np.int64)
            began = time.process_time()
            if self._oracle and first == self._stream.starts[phase]:
                self._place.pin(self._orders[phase])
            self._db.push("tuples", part, ts=ts)
            self._seconds += time.process_time() - began
            phase = self._phase(last - 1)
            if self._found[phase] is None and self._place.executor.plan[0] == self._orders[phase][0]:
                self._found[phase] = last - self._stream.starts[phase]

    def _phase(self, at: int) -> int:
        return int(np.searchsorted(self._stream.starts, at, side="right")) - 1

    def _cut(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        cuts = [start for start in self._stream.starts if begin < start < end] if self._oracle else []
        return pairwise([begin, *cuts, end])

    def finish(self) -> Run:
        """Fetch the answer."""
        with self._db:
            began = time.process_time()
            self._db.advance(self._stream.tuples)
            answer = self._query.fetch_arrow()
            self._seconds += time.process_time() - began
            total = int(answer.column("a0").to_numpy().sum())
            filtering, deciding = self._place.executor.spent()[0] / 1e9, self._place.decided_ns / 1e9
            decisions = len(self._query.decisions())
        return Run(self._seconds, (len(answer), total), tuple(self._found), decisions, filtering, deciding)


def run(stream: Phased, condition: str, oracle: bool = False, chunk: int = CHUNK, **options: Any) -> Run:
    """Push the stream and fetch the answer."""
    (found,) = side_by_side(stream, {"": Contestant(stream, condition, oracle, **options)}, chunk).values()
    return found


def side_by_side(stream: Phased, contestants: Mapping[str, Contestant], chunk: int = CHUNK) -> dict[str, Run]:
    """Each chunk goes to one after the other, another one first each time."""
    gc.collect()
    names = list(contestants)
    for number, begin in enumerate(range(0, stream.tuples, chunk)):
        for k in range(len(names)):
            contestants[names[(number + k) % len(names)]].push(begin, min(begin + chunk, stream.tuples))
    return {name: contestant.finish() for name, contestant in contestants.items()}


def compare(stream: Phased, condition: str, ways: Mapping[str, Mapping[str, Any]], rounds: int) -> dict[str, list[Run]]:
    """So many runs of each way, of the order written and of the oracle, behind one that warms up."""
    found: dict[str, list[Run]] = {}
    for turn in range(rounds + 1):
        contestants = {"oracle": Contestant(stream, condition, oracle=True)}
        contestants |= {name: Contestant(stream, condition, **options) for name, options in ways.items()}
        contestants["as written"] = Contestant(stream, condition, adaptive="off")
        runs = side_by_side(stream, contestants)
        if len({each.answer for each in runs.values()}) != 1:
            raise AssertionError(f"answers differ: {runs}")
        for name, each in runs.items() if turn else ():
            found.setdefault(name, []).append(each)
    return found


def ratio(runs: Mapping[str, Sequence[Run]], way: str, to: str = "oracle") -> float:
    """Processor time of a way over another's: the median of the rounds."""
    return float(np.median([one.seconds / other.seconds for one, other in zip(runs[way], runs[to])]))


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
