"""Runs of a feed through the engine under one plan or another.

What is measured is processor time: of the whole process around `push`, `advance` and `fetch_arrow`, and, alone, what
the join operator has taken. Plans that are compared take turns, block by block, so that what else the machine does
falls on all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import minidsms
from experiments.caching.streams import Block, Feed
from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.operators.operator import Operator
from minidsms.query import Query
from minidsms.streamon.loop import Loop, adaptations_of


@dataclass(frozen=True)
class Plan:
    """What runs a feed. options: of `connect`.  caches: to stay with these, where given, whatever is measured."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    caches: tuple[CacheSpec, ...] | None = None


MJOIN = Plan("MJoin", {"join_plan": "mjoin", "caching": "off"})
PREFIX = Plan("prefix caches", {"join_plan": "mjoin", "caching": "prefix"})
GLOBAL = Plan("global caches", {"join_plan": "mjoin", "caching": "global"})
XJOIN = Plan("XJoin", {"join_plan": "xjoin", "caching": "off"})
AUTO = Plan("auto", {"join_plan": "auto"})


def forced(*caches: CacheSpec, name: str = "cached") -> Plan:
    """An MJoin with these caches."""
    return Plan(name, {"join_plan": "mjoin", "caching": "global"}, tuple(sorted(caches)))


@dataclass
class Measured:
    """Of one run. elements: pushed; cpu_ns: of all; join_ns: of the join operators.  hits: of probes, of all caches.

    by_block: (elements, cpu_ns, join_ns) of each block.  plan: in words, at the end.  decisions: that changed it.
    """

    elements: int = 0
    cpu_ns: int = 0
    join_ns: int = 0
    results: int = 0
    probes: int = 0
    hits: int = 0
    nbytes: int = 0
    plan: str = ""
    decisions: int = 0
    by_block: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """M elements per second of processor time."""
        return 1e3 * self.elements / self.cpu_ns

    @property
    def typical_ns(self) -> float:
        """Of the join per element pushed, in the median block."""
        return median(took / elements for elements, _, took in self.by_block if elements)

    def against(self, other: Measured, since: int = 0) -> float:
        """What the join takes per what another takes, in the median block: both had it at about the same time."""
        return median(own[2] / its[2] for own, its in zip(self.by_block[since:], other.by_block[since:]) if its[2])

    @property
    def join_rate(self) -> float:
        """M elements per second that the join alone could take."""
        return 1e3 * self.elements / self.join_ns


class Run:
    """One plan in an engine of its own, fed block by block."""

    def __init__(self, feed: Feed, plan: Plan) -> None:
        self.measured = Measured()
        self._db = minidsms.connect(**plan.options)
        for name, columns in feed.streams:
            self._db.execute(f"CREATE STREAM {name} ({', '.join(f'{c} INTEGER' for c in columns)})")
        self.query: Query = self._db.query(feed.query)
        self._joined_ns = 0
        for operator in self.query.network.operators:
            if "Join" in operator.name:
                self._time(operator)
        if plan.caches is not None:
            adaptation = caching_of(self.query)
            adaptation.pin(JoinPlan(adaptation.executor.plan.orders, plan.caches))
            self.query.pin_plan()

    def feed(self, block: Block, counts: bool) -> None:
        """Push a block. counts: it is measured, not warm-up."""
        measured, joined = self.measured, self._joined_ns
        began, elements, last = time.process_time_ns(), 0, 0
        for name, (columns, ts) in block.items():
            if len(ts):
                self._db.push(name, columns, ts=ts)
                elements += len(ts)
                last = max(last, int(ts[-1]))
        self._db.advance(last)
        results = len(self.query.fetch_arrow())
        spent = time.process_time_ns() - began
        if counts:
            took = self._joined_ns - joined
            measured.elements += elements
            measured.cpu_ns += spent
            measured.join_ns += took
            measured.results += results
            measured.by_block.append((elements, spent, took))

    def end(self) -> Measured:
        """Close; what was measured."""
        places = adaptations_of(self.query.network.operators)
        self.measured.decisions = sum(len(place.decisions) for place in places)
        for adaptation in places:
            if adaptation.technique == "caching":
                self.measured.plan = adaptation.executor.plan_text(adaptation.executor.plan)
                for figures in adaptation.executor.join.cache_figures().values():  # type: ignore[attr-defined]
                    self.measured.probes += figures.probes
                    self.measured.hits += figures.hits
                    self.measured.nbytes += figures.bytes
        for place in places:
            if place.technique == "join plan" and not place.executor.join.uses_orders:  # type: ignore[attr-defined]
                self.measured.plan = place.executor.plan_text(place.executor.plan)
        self._db.close()
        return self.measured

    def _time(self, join: Operator) -> None:
        """Count the processor time of a join's slices."""
        run = join._run_slice

        def timed(until: int, budget: int) -> int:
            began = time.thread_time_ns()
            consumed = run(until, budget)
            self._joined_ns += time.thread_time_ns() - began
            return consumed

        join._run_slice = timed  # type: ignore[method-assign]


def caching_of(query: Query) -> Loop[JoinPlan]:
    """Where the caches of a query's join are chosen."""
    return next(a for a in adaptations_of(query.network.operators) if a.technique == "caching")


def compare(
    feed_of: Callable[[], Feed], plans: Sequence[Plan], warm_up: float = 0.3, repeats: int = 3
) -> list[Measured]:
    """Every plan on the feed, by turns; of so many times the one in which the joins took least, all together: blocks of
    one time may be compared, those of different times saw a different machine.
    """
    times = [turns(feed_of(), plans, warm_up) for _ in range(repeats)]
    return min(times, key=lambda found: sum(measured.join_ns for measured in found))


def turns(feed: Feed, plans: Sequence[Plan], warm_up: float, size: int = 1_000) -> list[Measured]:
    """One run of every plan, block by block by turns. warm_up: share of the rounds that is not measured."""
    runs = [Run(feed, plan) for plan in plans]
    size = min(size, max(1, feed.rounds // 10))
    for place, block in enumerate(feed.blocks(size)):
        for run in _rotated(runs, place):
            run.feed(block, counts=place * size >= warm_up * feed.rounds)
    return [run.end() for run in runs]


def _rotated(runs: Sequence[Run], by: int) -> Iterator[Run]:
    for k in range(len(runs)):
        yield runs[(k + by) % len(runs)]
