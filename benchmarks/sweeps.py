"""How the cost of an element changes with the window, the groups, the batch and the number of queries.

Goal: within 20 % of the kernel's own curve, which bends with the caches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

import minidsms
from benchmarks import contestants
from benchmarks.cases import BID, Case
from benchmarks.feeds import Feed, Feeds, last_instant, parts, push_all

Curve = dict[int, float]
"""x -> nanoseconds per element."""

RUNNING = "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE {window}] GROUP BY auction"


def even(events: int, keys: int, seed: int = 6) -> Feeds:
    """Bids on `keys` auctions alike, one a tick: a window of n ticks holds n."""
    rng = np.random.default_rng(seed)
    columns = {"auction": rng.integers(0, keys, events), "price": rng.integers(1, 1_000_000, events)}
    return {"bid": Feed(np.arange(events, dtype=np.int64), columns)}


def measure(events: int) -> dict[str, Curve]:
    """All curves; `events` elements each, and twice the window where that is more."""
    return {
        "rows in the window": _over(
            (1_000, 10_000, 100_000, 1_000_000), lambda x: _running(max(events, 2 * x), x, 1000)
        ),
        "groups": _over((10, 1_000, 100_000), lambda x: _running(events, 100_000, x)),
        "elements in one push": _over((4096, 16_384, 65_536, 262_144, 1_048_576), lambda x: _chunks(max(events, x), x)),
        "queries over one stream": _over((1, 4, 16, 64), lambda x: _queries(events // 4, x)),
    }


def _over(xs: tuple[int, ...], cost: Callable[[int], float]) -> Curve:
    cost(xs[0])
    return {x: round(min(cost(x) for _ in range(2)), 2) for x in xs}


def _case(window: int) -> Case:
    return Case("sweep", BID, RUNNING.format(window=window), lambda n: even(n, 1000), "")


def _running(events: int, window: int, keys: int) -> float:
    feeds = even(events, keys)
    return contestants.engine(_case(window), feeds).seconds * 1e9 / events


def _chunks(events: int, chunk: int) -> float:
    case = dataclasses.replace(_case(10_000), name="batches")
    return contestants.engine(case, even(events, 1000), chunk=chunk).seconds * 1e9 / events


def _queries(events: int, queries: int) -> float:
    """Per element and query: filters with different constants over one stream."""
    feeds = even(events, 1000)
    pieces = list(parts(feeds, contestants.CHUNK))
    with minidsms.connect() as db:
        db.execute(BID)
        for i in range(queries):
            db.query(f"SELECT auction, price FROM bid WHERE auction % 123 = {i}")
        seconds, _ = contestants.timed(lambda: push_all(db, pieces, last_instant(feeds)))
    return seconds * 1e9 / events / queries
