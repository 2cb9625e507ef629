"""How the cost of an element changes with the window, the groups, the batch and the number of queries.

Goal: within 20 % of the kernel's own curve, which bends with the caches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import minidsms
from benchmarks import contestants
from benchmarks.cases import BID, Case
from benchmarks.feeds import Feed, Feeds, last_instant, parts, push_all

Curve = dict[int, float]
"""x -> nanoseconds per element."""
Curves = dict[str, Curve]
"""Contestant -> its curve; the kernel's only where there is one."""

RUNNING = "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE {window}] GROUP BY auction"
JOIN = (
    "SELECT ISTREAM(bid.auction, price, seller) FROM bid [RANGE {window}], auction [RANGE {window}] "
    "WHERE bid.auction = auction.id"
)
AUCTION = "CREATE STREAM auction (id INTEGER, seller INTEGER);"


def even(events: int, keys: int, seed: int = 6) -> Feeds:
    """Bids on `keys` auctions alike, one a tick: a window of n ticks holds n."""
    rng = np.random.default_rng(seed)
    columns = {"auction": rng.integers(0, keys, events), "price": rng.integers(1, 1_000_000, events)}
    return {"bid": Feed(np.arange(events, dtype=np.int64), columns)}


def meeting(events: int, window: int, seed: int = 7) -> Feeds:
    """A bid and an auction a tick; each bid names one of the last `window` auctions, so that each meets about one."""
    rng = np.random.default_rng(seed)
    ts = np.arange(events // 2, dtype=np.int64)
    named = np.maximum(ts - rng.integers(0, window, len(ts)), 0)
    bid = {"auction": named, "price": rng.integers(1, 1_000_000, len(ts))}
    return {
        "bid": Feed(ts, bid),
        "auction": Feed(ts.copy(), {"id": ts.copy(), "seller": rng.integers(0, 1000, len(ts))}),
    }


def measure(events: int) -> dict[str, Curves]:
    """All curves; `events` elements each, and twice the window where that is more."""
    sizes = (1_000, 10_000, 100_000, 1_000_000)
    return {
        "rows in the window": _over(sizes, lambda x: _running(max(events, 2 * x), x, 1000)),
        "rows in two windows, joined": _over(sizes, lambda x: _join(max(events, 4 * x), x)),
        "groups": _over((10, 1_000, 100_000), lambda x: _running(events, 100_000, x)),
        "elements in one push": _over(
            (4096, 16_384, 65_536, 262_144, 1_048_576), lambda x: _running(max(events, x), 10_000, 1000, x)
        ),
        "queries over one stream": _over((1, 4, 16, 64), lambda x: _queries(events // 4, x)),
    }


def growth(curves: Curves) -> dict[int, float]:
    """How much more an element costs the engine than at the first x, over how much more it costs the kernel."""
    own, kernel = curves["minidsms"], curves["kernel"]
    first = next(iter(own))
    return {x: round(own[x] / own[first] / (kernel[x] / kernel[first]), 2) for x in own}


def _over(xs: tuple[int, ...], cost: Callable[[int], dict[str, float]]) -> Curves:
    cost(xs[0])
    curves: Curves = {}
    for x in xs:
        rounds = [cost(x) for _ in range(2)]
        for who in rounds[0]:
            curves.setdefault(who, {})[x] = round(min(r[who] for r in rounds), 2)
    return curves


def _running(events: int, window: int, keys: int, chunk: int = contestants.CHUNK) -> dict[str, float]:
    from benchmarks.limits import count_and_max

    feeds = even(events, keys)
    case = Case("sweep", BID, RUNNING.format(window=window), lambda n: feeds, "")
    bid = feeds["bid"]
    enters, auction, price = bid.ts, bid.array("auction"), bid.array("price")
    kernel, _ = contestants.timed(
        lambda: count_and_max(enters, enters + window, auction, 0, keys, price, last_instant(feeds))
    )
    own = contestants.engine(case, feeds, chunk=chunk).seconds
    return {"minidsms": own * 1e9 / events, "kernel": kernel * 1e9 / events}


def _join(events: int, window: int) -> dict[str, float]:
    from benchmarks.limits_joins import join_windows

    feeds = meeting(events, window)
    case = Case("sweep", BID + AUCTION, JOIN.format(window=window), lambda n: feeds, "")
    bid, auction = feeds["bid"], feeds["auction"]
    arrays = (
        bid.ts,
        bid.array("auction"),
        bid.array("price"),
        auction.ts,
        auction.array("id"),
        auction.array("seller"),
    )
    kernel, _ = contestants.timed(lambda: join_windows(*arrays, window, last_instant(feeds)))
    own = contestants.engine(case, feeds).seconds
    return {"minidsms": own * 1e9 / events, "kernel": kernel * 1e9 / events}


def _queries(events: int, queries: int) -> dict[str, float]:
    """Per element and query: filters with different constants over one stream."""
    feeds = even(events, 1000)
    pieces = list(parts(feeds, contestants.CHUNK))
    with minidsms.connect() as db:
        db.execute(BID)
        for i in range(queries):
            db.query(f"SELECT auction, price FROM bid WHERE auction % 123 = {i}")
        seconds, _ = contestants.timed(lambda: push_all(db, pieces, last_instant(feeds)))
    return {"minidsms": seconds * 1e9 / events / queries}
