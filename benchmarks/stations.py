"""Where the time of one pushed tuple and its `advance` goes: the stations it passes, each with its own clock.

Every station is wrapped from outside, so the engine is the one that is measured otherwise; a wrapper costs about half a
microsecond, which the stations around it bear. What a station does itself is its time without that of the stations in
it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minidsms
from benchmarks.cases import BID
from benchmarks.latency import AUCTION, QUERIES, pusher


def measure(pushes: int = 4000, warm: int = 1500) -> dict[str, dict[str, dict[str, float]]]:
    """By query and station: calls per push, median us of a call, and us per push of the station without those in it
    (median of a call times calls).
    """
    return {name: _of(name, pushes, warm) for name in QUERIES}


class _Clock:
    """Takes the times of nested calls."""

    def __init__(self) -> None:
        self.taken: dict[str, list[int]] = {}
        self.own: dict[str, list[int]] = {}
        self._inside = [0]

    def wrap(self, owner: Any, attribute: str, label: str) -> None:
        """Let calls of a method be timed."""
        method: Callable[..., Any] = getattr(owner, attribute)

        def timed(*args: Any, **options: Any) -> Any:
            self._inside.append(0)
            start = time.perf_counter_ns()
            result = method(*args, **options)
            if hasattr(result, "__next__"):
                result = iter(list(result))
            spent = time.perf_counter_ns() - start
            within = self._inside.pop()
            self._inside[-1] += spent
            self.taken.setdefault(label, []).append(spent)
            self.own.setdefault(label, []).append(spent - within)
            return result

        setattr(owner, attribute, timed)


def _of(name: str, pushes: int, warm: int) -> dict[str, dict[str, float]]:
    push = pusher(name)
    with minidsms.connect() as db:
        db.execute(BID + AUCTION)
        query = db.query(QUERIES[name])
        for i in range(warm):
            push(db, i)
        clock = _Clock()
        group = query.network.group
        assert group is not None
        clock.wrap(db, "push", "Connection.push")
        clock.wrap(db, "advance", "Connection.advance")
        for stream in ("bid", "auction"):
            clock.wrap(db.stream_input(stream), "push", "input")
        clock.wrap(group, "release", "frontier and release")
        clock.wrap(db.scheduler, "run", "scheduler")
        clock.wrap(db, "_rest", "rest: stores free")
        for operator in query.network.operators:
            clock.wrap(operator, "run", f"{operator.name}: queues and counters")
            clock.wrap(operator, "process", f"{operator.name}: process")
        for i in range(pushes):
            push(db, warm + i)
            if i % 500 == 0:
                query.fetch()
    return {
        label: {
            "calls": round(len(taken) / pushes, 1),
            "median_us": round(float(np.median(taken)) / 1000, 1),
            "own_us_per_push": round(float(np.median(clock.own[label])) * len(taken) / pushes / 1000, 1),
        }
        for label, taken in clock.taken.items()
    }
