"""What it costs to be observed: counters, memory accounting, SysStream with a listener.

Contestants take short turns and are compared by processor time. The counters are always there; what they
cost is seen beside an engine whose operators and queues count nothing, put together here for that purpose.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import minidsms
from minidsms.elements import MAX_INSTANT, Batch
from minidsms.operators.operator import Operator
from minidsms.queues import Queue

GOALS = {"counters": 0.03, "memory accounting": 0.02, "SysStream": 0.03}
"""The most each may add to the time, as a share."""
SIZES = {"batches of 65,536": (65_536, 14), "batches of 1,000": (1_000, 220), "single tuples": (1, 1_100)}
"""Elements in a push, and pushes in a turn."""
_DECLARATIONS = "CREATE STREAM S (k INTEGER, v INTEGER)"
_QUERIES = (
    "SELECT ISTREAM(k, COUNT(*), SUM(v)) FROM S [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE v > 20 GROUP BY k",
    "SELECT k, v FROM S WHERE v > 95",
)
_LISTENER = """SELECT ISTREAM(entity, property, AVG(fval), MAX(ival)) FROM SysStream [RANGE 10 SECONDS]
               GROUP BY entity, property"""


Part = tuple[Any, Any]
"""Data and instants of a push."""
_TURNS = 40
_WARMING = 4
_FETCH_EVERY = 10


def turn(number: int, size: int, pushes: int) -> list[Part]:
    """The pushes of a turn: ten elements to a millisecond."""
    rng = np.random.default_rng(number)
    n = size * pushes
    k, v = rng.integers(0, 100, n), rng.integers(0, 100, n)
    ts = np.arange(number * n, number * n + n) // 10
    if size == 1:
        return list(zip(zip(k.tolist(), v.tolist()), ts.tolist()))
    return [({"k": k[i : i + size], "v": v[i : i + size]}, ts[i : i + size]) for i in range(0, n, size)]


class Contestant:
    """One engine with its queries. seconds: of processor time its pushes have taken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds = 0.0
        self._now = self._begun = 0
        # Adaptive plans decide by the counters: without them they would be others.
        options: dict[str, Any] = {"adaptive": "off"}
        if name == "memory accounting":
            options["memory_limit"] = "8 GB"
        self._db = minidsms.connect(clock=lambda: self._now, **options)
        self._db.execute(_DECLARATIONS)
        self._queries = [self._db.query(cql) for cql in _QUERIES]
        if name == "SysStream":
            self._queries.append(self._db.query(_LISTENER))

    def push(self, parts: Sequence[Part], fetches: bool) -> None:
        """Push, and fetch the answers now and then. The clock goes by the time taken: SysStream is published once in a
        second of work, however busy the machine is.
        """
        with uncounted() if self.name == "uncounted" else contextlib.nullcontext():
            gc.collect()
            started = time.process_time()
            for data, ts in parts:
                self._db.push("S", data, ts=ts)
            for query in self._queries if fetches else ():
                query.fetch_arrow()
            self.seconds += time.process_time() - started
        self._now = self._begun + int(1000 * self.seconds)

    def begin(self) -> None:
        """Count from here on; everything has been published and compiled once."""
        self._begun += 1000 + int(1000 * self.seconds)
        self._now, self.seconds = self._begun, 0.0


def measure(rounds: int) -> dict[str, float]:
    """What each adds to the time, as a share, by name and size of the pushes. rounds: times as many turns."""
    found: dict[str, float] = {}
    for size, (chunk, pushes) in SIZES.items():
        contestants = [Contestant(name) for name in ("plain", "uncounted", "memory accounting", "SysStream")]
        for number in range(_WARMING + _TURNS * rounds):
            parts = turn(number, chunk, pushes)
            for contestant in contestants if number <= _WARMING else ():
                contestant.begin()
            # In short turns, and in another order each time: a machine that is not alone slows all of them alike.
            for contestant in contestants[number % 4 :] + contestants[: number % 4]:
                contestant.push(parts, number % _FETCH_EVERY == 0)
        seconds = {contestant.name: contestant.seconds for contestant in contestants}
        found[f"counters, {size}"] = seconds["plain"] / seconds["uncounted"] - 1
        for name in ("memory accounting", "SysStream"):
            found[f"{name}, {size}"] = seconds[name] / seconds["plain"] - 1
    return found


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Operators and queues that count nothing but what their bounds need."""
    kept = [(Queue, "offer", Queue.offer)]
    Queue.offer = _offer  # type: ignore[method-assign]
    for name, function in (("_run_slice", _run_slice), ("_emit", _emit)):
        common = getattr(Operator, name).__code__.co_code
        for each in (Operator, *_below(Operator)):  # each class has its own copy of what it inherits
            if each.__dict__[name].__code__.co_code == common:
                kept.append((each, name, each.__dict__[name]))
                setattr(each, name, function)
    try:
        yield
    finally:
        for each, name, before in kept:
            setattr(each, name, before)


def _below(class_: type) -> Iterator[Any]:
    for each in class_.__subclasses__():
        yield each
        yield from _below(each)


def _run_slice(self: Operator, until: int, budget: int) -> int:
    inputs = self.inputs
    if self.quantum < budget:
        budget = self.quantum
    for queue in inputs:
        if queue.size > budget:
            until = queue.cut(until, budget)
    latest = MAX_INSTANT if self.is_immediate else until
    has_come = False
    batches: list[Batch | None] = []
    for queue in inputs:
        if queue.size:
            batch = queue.take(latest)
            has_come = has_come or batch is not None
            batches.append(batch)
        else:
            batches.append(None)
    self._until = until
    if not has_come and not self.acts_on_time:
        self._complete()
        return 0
    produced = self.process(batches, until)
    if produced:
        self._emit(iter(produced))
    else:
        self._complete()
    return 1


def _emit(self: Operator, emission: Iterator[Batch]) -> None:
    outputs = self.outputs
    only = outputs[0] if len(outputs) == 1 else None
    held, self._held = self._held, None
    for batch in emission if held is None else itertools.chain((held,), emission):
        if self.failure is not None:
            batch = batch.slice(0, int(np.searchsorted(batch.ts, self.failure.ts)))
        if not len(batch.ts):
            continue
        if only is not None and only.offer(batch):
            if not only.is_full:
                continue
        else:
            if self._is_unread():
                break
            batch = self._put_fitting(batch)
            if self._held is None and not self.is_blocked():
                continue
        complete = int(batch.ts[-1] if self._held is None else self._held.ts[0]) - 1
        for queue in outputs:
            if complete > queue.progress:
                queue.progress = complete
        self._emission = emission
        return
    self._complete()


_counting_offer = Queue.offer


def _offer(self: Queue, batch: Batch) -> bool:
    size = self.size + len(batch.ts)
    if size > self.ample:
        return _counting_offer(self, batch)
    self._batches.append(batch)
    self.size = size
    return True
