"""What monitoring takes of a join's time: the goals are 10 %, and 3 % on streams that keep no constraint.

The join runs through the engine with all its constraints watched; the same rows are then shown to monitors of the same
kinds alone, in slices as the join takes them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from experiments.k_mon import workload
from experiments.k_mon.memory import MODES, ROWS, WINDOW, pair
from experiments.k_mon.running import run
from experiments.k_mon.workload import MULTIPLICITY, Stream, Streams, steady
from minidsms.streamon.k_mon.contracts import Arrivals, KConstraint, Kind, Monitor
from minidsms.streamon.k_mon.monitoring.registry import new_monitor

_PART = 2048
"""Rows of one stream in a slice."""


@dataclass(frozen=True)
class Cost:
    """ns per row of all streams: of the join, and of the monitor of each kind."""

    join_ns: float
    monitors_ns: Mapping[Kind, float]

    @property
    def share(self) -> float:
        """Of the join's time."""
        return sum(self.monitors_ns.values()) / self.join_ns


def shares(quicker: int, repeats: int = 3) -> dict[str, Cost]:
    """For streams that keep RIDS, clusters and order, and for some that keep nothing; the least of several runs."""
    children = ROWS // (MULTIPLICITY + 1) // quicker
    found = {}
    for name, streams in (
        ("RIDS(0)", _two(workload.referring(children, steady(0), 1))),
        ("RIDS(5000)", _two(workload.referring(children, steady(5000 / quicker), 1))),
        ("OAC(5000)", workload.ordered_children(children, steady(5000 / quicker), 1)),
        ("none", aimless(children, 1)),
    ):
        query = pair(WINDOW // quicker)
        join = [run(query, streams, MODES["exact"]).spent_ns for _ in range(repeats)]
        alone = {kind: min(_monitoring(streams, kind) for _ in range(repeats)) for kind in Kind}
        found[name] = Cost(min(join), alone)
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
    return {
        "s1": Stream(s1.ts, {"a": s1["a"], "e": s1["e"], "f": s1["e"]}),
        "s2": Stream(s2.ts, {"a": s2["a"], "d": s2["c"], "g": s2["f"]}),
    }


def _monitoring(streams: Streams, kind: Kind) -> float:
    """ns per row of all streams."""
    s1, s2 = streams["s1"], streams["s2"]
    rows = len(s1) + len(s2)
    step = _PART * (MULTIPLICITY + 1) // MULTIPLICITY
    cuts = range(0, int(max(s1.ts[-1], s2.ts[-1])) + step, step)
    slices = [(_slice(s1, first, first + step), _slice(s2, first, first + step)) for first in cuts]
    monitor: Monitor
    if kind is Kind.RIDS:
        monitor = new_monitor(KConstraint(kind, "s2", ("a",), "s1", ("a",)))
    else:
        monitor = new_monitor(KConstraint(kind, "s2" if kind is Kind.OAC else "s1", ("a",)))
    began = time.process_time_ns()
    for parents, children in slices:
        if kind is Kind.RIDS:
            monitor.observe(children, parents)
        else:
            monitor.observe(children if kind is Kind.OAC else parents)
    return (time.process_time_ns() - began) / rows


def _slice(stream: Stream, first: int, end: int) -> Arrivals:
    low, high = np.searchsorted(stream.ts, (first, end))
    return Arrivals(np.arange(low, high), stream.ts[low:high], stream["a"][low:high])
