"""Latency: one pushed tuple and its `advance`, from the call to the answer standing in the query."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import minidsms
from benchmarks.cases import BID

GOALS_US = {"filter": 20.0, "running": 30.0, "join": 30.0}
"""For the p50 of each query, in microseconds; for p99 three times that."""

AUCTION = "CREATE STREAM auction (id INTEGER, seller INTEGER);"
QUERIES = {
    "filter": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "running": "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
    "join": "SELECT ISTREAM(bid.auction, price, seller) FROM bid [RANGE 10 SECONDS], auction [RANGE 10 SECONDS] "
    "WHERE bid.auction = auction.id",
}


def measure(pushes: int = 5000, warm: int = 1500) -> dict[str, dict[str, float]]:
    """Per query p50, p99 and p999 in microseconds, and the goals. The window holds 1000 elements before the clock
    starts.
    """
    return {
        name: _of(cql, pusher(name), pushes, warm) | {"goal_p50_us": GOALS_US[name], "goal_p99_us": 3 * GOALS_US[name]}
        for name, cql in QUERIES.items()
    }


def pusher(name: str) -> Callable[[minidsms.Connection, int], None]:
    def push(db: minidsms.Connection, i: int) -> None:
        stream = "auction" if name == "join" and i % 10 == 0 else "bid"
        db.push(stream, (i * 7919 % 123, i), ts=i * 10)
        db.advance(i * 10)

    return push


def _of(cql: str, push: Callable[[minidsms.Connection, int], None], pushes: int, warm: int) -> dict[str, float]:
    with minidsms.connect() as db:
        db.execute(BID + AUCTION)
        query = db.query(cql)
        for i in range(warm):
            push(db, i)
        query.fetch()
        taken = np.empty(pushes)
        for i in range(pushes):
            start = time.perf_counter_ns()
            push(db, warm + i)
            taken[i] = time.perf_counter_ns() - start
    p50, p99, p999 = np.percentile(taken / 1000, (50, 99, 99.9))
    return {"p50_us": round(float(p50), 1), "p99_us": round(float(p99), 1), "p999_us": round(float(p999), 1)}
