"""What monitoring takes of a join's time: the goals are 10 %, and 3 % on streams that keep no constraint.

The join runs through the engine, in pushes of many rows, of a thousand, and of one; whatever it does for its monitors
is timed where it does it: taking notes of arrivals, showing them, asking for k. On streams that keep nothing a join
without monitors does the same otherwise, and is run by turns with it.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import minidsms
from experiments.k_mon import workload
from experiments.k_mon.memory import MODES, ROWS, WINDOW, pair
from experiments.k_mon.running import Query
from experiments.k_mon.workload import MULTIPLICITY, Stream, Streams, steady
from minidsms.operators.k_mon.contracts import Kind
from minidsms.streamon.k_mon.watching import Watching

PUSHES = (65_536, 1000, 1)
"""Rows of all streams between two heartbeats."""
SINGLE = 40_000
"""Rows that are pushed one by one, after the others have taught the monitors what they can."""
_DONE_FOR_MONITORS = ("observe", "keys", "take_keys", "reckon", "limits", "refute")


@dataclass(frozen=True)
class Cost:
    """ns per row of all streams in the second half of a run: of everything, and of what is done for monitors.

    without: of everything where nothing is watched, by turns; None where a join would do something else then.
    """

    join_ns: float
    monitors_ns: float
    without_ns: float | None = None

    @property
    def share(self) -> float:
        """Of the join's time."""
        return self.monitors_ns / self.join_ns


def shares(quicker: int, repeats: int = 3, pushes: Collection[int] = PUSHES) -> dict[tuple[str, int], Cost]:
    """For streams that keep RIDS, clusters and order, and for some that keep nothing; of several runs the one that took
    least.
    """
    children = ROWS // (MULTIPLICITY + 1) // quicker
    query = pair(WINDOW // quicker)
    found = {}
    for name, streams in (
        ("RIDS(0)", _two(workload.referring(children, steady(0), 1))),
        ("RIDS(5000)", _two(workload.referring(children, steady(5000 / quicker), 1))),
        ("OAC(5000)", workload.ordered_children(children, steady(5000 / quicker), 1)),
        ("none", aimless(children, 1)),
    ):
        for rows in pushes:
            runs, without = [], []
            for _ in range(repeats):
                with _timed() as spent:
                    runs.append(_run(query, streams, rows, tuple(Kind), lambda: spent[0]))
                if name == "none":
                    without.append(_run(query, streams, rows, (), lambda: 0)[0])
            join, monitors = min(runs)
            found[name, rows] = Cost(join, monitors, min(without) if without else None)
    return found


def aimless(children: int, seed: int) -> Streams:
    """Streams that keep nothing: keys come in any order, parents any time before or after their child."""
    random = np.random.default_rng((seed, 8))
    n = children * MULTIPLICITY
    total = n + children
    places = random.permutation(total)
    s1, s2 = np.sort(places[:n]), np.sort(places[n:])
    keys = random.permutation(children).astype(np.int64)
    return {
        "s1": Stream(s1, {"a": keys[random.integers(0, children, n)], "e": np.arange(n), "f": np.arange(n)}),
        "s2": Stream(s2, {"a": keys, "d": random.integers(0, 100, children), "g": np.arange(children)}),
    }


def _two(streams: Streams) -> Streams:
    """S1 and S2 of a star, with the columns of a pair."""
    s1, s2 = streams["s1"], streams["s2"]
    # Instants that were the third stream's are nobody's: numbered anew, so that pushes have the same rows.
    ranks = np.argsort(np.argsort(np.concatenate((s1.ts, s2.ts)), kind="stable"), kind="stable")
    return {
        "s1": Stream(ranks[: len(s1)], {"a": s1["a"], "e": s1["e"], "f": s1["e"]}),
        "s2": Stream(ranks[len(s1) :], {"a": s2["a"], "d": s2["c"], "g": s2["f"]}),
    }


@contextlib.contextmanager
def _timed() -> Iterator[list[int]]:
    """ns of processor time that joins spend for their monitors; the first element, while the context lasts."""
    spent, depth = [0], [0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if depth[0]:
                return function(*args, **kwargs)
            depth[0] = 1
            began = time.thread_time_ns()
            try:
                return function(*args, **kwargs)
            finally:
                spent[0] += time.thread_time_ns() - began
                depth[0] = 0

        return call

    before = {name: getattr(Watching, name) for name in _DONE_FOR_MONITORS}
    for name, function in before.items():
        setattr(Watching, name, timed(function))
    try:
        yield spent
    finally:
        for name, function in before.items():
            setattr(Watching, name, function)


def _run(
    query: Query, streams: Streams, rows: int, kinds: Collection[Kind], spent: Callable[[], int]
) -> tuple[float, float]:
    """ns per row, of everything and of what `spent` counts, in the second half: `rows` at a time, or one by one."""
    total = sum(len(stream) for stream in streams.values())
    with minidsms.connect(**MODES["exact"]) as db:
        db.streamon.constraints.kinds = frozenset(kinds)
        for name, declared in query.declared.items():
            db.execute(f"CREATE STREAM {name} {declared}")
        q = db.query(query.text)
        half = total // 2
        end = min(total, half + SINGLE) if rows == 1 else total
        first = 0
        while first < half:
            first = _push(db, streams, first, min(first + max(rows, 1000), half))
        q.fetch_arrow()
        pieces = [*range(half, end, rows), end]
        if rows == 1:
            singles = _singles(streams, half, end)
        own, began = spent(), time.thread_time_ns()
        if rows == 1:
            for name, row, ts in singles:
                db.push(name, row, ts=ts)
        else:
            for at, to in itertools.pairwise(pieces):
                _push(db, streams, at, to)
        taken = time.thread_time_ns() - began
        return taken / (end - half), (spent() - own) / (end - half)


def _push(db: minidsms.Connection, streams: Streams, first: int, end: int) -> int:
    """Push the rows of instants in [first, end)."""
    for name, stream in streams.items():
        low, high = np.searchsorted(stream.ts, (first, end))
        if low < high:
            db.push(name, {c: v[low:high] for c, v in stream.columns.items()}, ts=stream.ts[low:high])
    db.advance(end - 1)
    return end


def _singles(streams: Streams, first: int, end: int) -> list[tuple[str, tuple[int, ...], int]]:
    """(stream, row, instant) of the rows of instants in [first, end), in their order."""
    found = []
    for name, stream in streams.items():
        low, high = np.searchsorted(stream.ts, (first, end))
        columns = [v[low:high].tolist() for v in stream.columns.values()]
        found += [(ts, name, row) for ts, row in zip(stream.ts[low:high].tolist(), zip(*columns))]
    return [(name, row, ts) for ts, name, row in sorted(found)]
