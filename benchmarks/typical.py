"""Queries as users write them, of every kind: what a row costs that is pushed alone, and one of many.

A benchmark of three queries tells nothing of the thirty others. Processor time of the engine's thread, which the work
of others moves less than the clock; the least of three rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

import minidsms

GOAL_US = 60.0
"""Of a push of one row and its `advance`, of plans of up to ten operators."""
ROWS = 32_768
"""Of a large push."""
_ALONE, _ROUNDS = 1500, 3
STEP = 3
"""Ticks between rows pushed alone: what leaves a window leaves between two pushes, and has a slice of its own."""

_DECLARED = """
CREATE STREAM bid (auction INTEGER, bidder INTEGER, price INTEGER, x FLOAT, channel TEXT);
CREATE RELATION hot (auction INTEGER, rate INTEGER) KEY (auction)
"""
QUERIES = {
    "choose by text": "SELECT auction, price FROM bid WHERE channel = 'channel-7'",
    "choose by LIKE": "SELECT auction, price FROM bid WHERE channel LIKE '%-1%'",
    "CASE": "SELECT auction, CASE WHEN price > 50000 THEN 'high' WHEN price > 1000 THEN 'mid' ELSE 'low' END FROM bid",
    "join texts": "SELECT channel || '/' || CAST(auction AS TEXT) AS path, ROUND(x, 2) FROM bid",
    "DECIMAL": "SELECT SUM(CAST(price AS DECIMAL(12, 2)) / 100) FROM bid [RANGE 10 SECONDS]",
    "UNNEST": "SELECT auction, word FROM bid [NOW], UNNEST(STRING_SPLIT(channel, '-')) AS word",
    "total": "SELECT COUNT(*), AVG(price), MAX(price) FROM bid [RANGE 10 SECONDS]",
    "groups": "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
    "AVG of FLOAT": "SELECT auction, AVG(x) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
    "MEDIAN": "SELECT auction, MEDIAN(price) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
    "COUNT DISTINCT": "SELECT auction, COUNT(DISTINCT bidder) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
    "STRING_AGG": "SELECT auction, STRING_AGG(channel, ',') FROM bid [RANGE 1 SECONDS] GROUP BY auction",
    "two levels": "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM bid [RANGE 10 SECONDS] GROUP BY auction) AS g",
    "SLIDE": "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE 10 SECONDS SLIDE 1 SECOND] GROUP BY auction",
    "TUMBLE": "SELECT channel, COUNT(*), AVG(price) FROM bid [TUMBLE 10 SECONDS] GROUP BY channel",
    "sessions": "SELECT bidder, COUNT(*) FROM bid [SESSION 100 MILLISECONDS PARTITION BY bidder] GROUP BY bidder",
    "newest by key": "SELECT auction, price FROM bid [PARTITION BY auction ROWS 1]",
    "DISTINCT": "SELECT DISTINCT auction FROM bid [RANGE 1 SECONDS]",
    "UNION": "SELECT auction FROM bid [RANGE 1 SECONDS] WHERE price > 90000"
    " UNION SELECT auction FROM bid [RANGE 1 SECONDS] WHERE x < 0.1",
    "LIMIT": "SELECT auction, COUNT(*) AS n FROM bid [RANGE 10 SECONDS] GROUP BY auction ORDER BY n DESC LIMIT 10",
    "ROW_NUMBER": "SELECT auction, price FROM bid [RANGE 10 SECONDS]"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) = 1",
    "LAG": "SELECT auction, price - LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS d FROM bid [RANGE 1 SECONDS]",
    "LAG of a stream": "SELECT auction, price - LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS d FROM bid",
    "running SUM": "SELECT auction, SUM(price) OVER (PARTITION BY auction ORDER BY ts) AS s FROM bid",
    "join": "SELECT ISTREAM(a.bidder, b.bidder) FROM bid [RANGE 1 SECONDS] AS a, bid [RANGE 1 SECONDS] AS b"
    " WHERE a.auction = b.auction AND a.price < b.price",
    "enrich": "SELECT RSTREAM(bid.auction, price, rate) FROM bid [NOW] JOIN hot ON hot.auction = bid.auction",
    "LEFT JOIN": "SELECT RSTREAM(bid.auction, price, rate) FROM bid [NOW] LEFT JOIN hot ON hot.auction = bid.auction",
    "EXISTS": "SELECT ISTREAM(auction, price) FROM bid [NOW]"
    " WHERE EXISTS (SELECT 1 FROM hot WHERE hot.auction = bid.auction)",
    "NOT IN": "SELECT ISTREAM(auction, price) FROM bid [NOW] WHERE auction NOT IN (SELECT auction FROM hot)",
    "above average": "SELECT ISTREAM(auction, price) FROM bid [NOW]"
    " WHERE price > (SELECT AVG(price) FROM bid [RANGE 10 SECONDS])",
    "above its average": "SELECT ISTREAM(auction, price) FROM bid [NOW] AS b"
    " WHERE price > (SELECT AVG(price) FROM bid [RANGE 10 SECONDS] AS o WHERE o.auction = b.auction)",
}


def measure() -> dict[str, dict[str, float]]:
    """By query: operators, us of a push of one row and its `advance` with the goal, ns of a row of a large push. Beside
    them what changes of a relation cost that a query shows.
    """
    found = {name: _query(cql) for name, cql in QUERIES.items()}
    for name, change in _CHANGES.items():
        found[name] = {"operators": 2, "us alone": round(_changes(change), 1), "goal": GOAL_US}
    return found


def _query(cql: str) -> dict[str, float]:
    with connection() as db:
        query = db.query(cql)
        alone = list(rows())
        us = _least(lambda turn: _pushed(db, alone, turn * _ALONE), _ALONE, query)
    with connection() as db:
        query = db.query(cql)
        ns = _least(lambda turn: _pushed_at_once(db, turn), ROWS, query)
        operators = len(query.network.operators)
    return {"operators": operators, "us alone": round(us, 1), "goal": GOAL_US, "ns of many": round(1000 * ns)}


def _least(work: Callable[[int], None], rows: int, query: minidsms.Query) -> float:
    """us of the engine's thread for a row, the least of the rounds behind a first one that fills windows."""
    least = float("inf")
    for turn in range(_ROUNDS + 1):
        begun = time.thread_time()
        work(turn)
        if turn:
            least = min(least, (time.thread_time() - begun) / rows)
        query.fetch_arrow()
    return least * 1e6


def connection() -> minidsms.Connection:
    db = minidsms.connect()
    db.execute(_DECLARED)
    known = np.arange(0, 5000, 7)
    db.push("hot", {"auction": known, "rate": known}, ts=0)
    return db


def _columns(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "auction": rng.integers(0, 5000, n),
        "bidder": rng.integers(0, 2000, n),
        "price": rng.integers(1, 100_000, n),
        "x": rng.random(n),
        "channel": np.array([f"channel-{i}" for i in range(50)])[rng.integers(0, 50, n)],
    }


def rows() -> Iterator[tuple[object, ...]]:
    return zip(*(column.tolist() for column in _columns(_ALONE).values()))


def _pushed(db: minidsms.Connection, rows: list[tuple[object, ...]], first: int) -> None:
    for ts, row in enumerate(rows, first + 1):
        db.push("bid", row, ts=ts * STEP)
        db.advance(ts * STEP)


def _pushed_at_once(db: minidsms.Connection, turn: int) -> None:
    db.push("bid", _columns(ROWS), ts=np.arange(turn * ROWS, (turn + 1) * ROWS) + 1)
    db.advance((turn + 1) * ROWS)


def _changes(change: Callable[[minidsms.Connection, int], object]) -> float:
    with connection() as db:
        query = db.query("SELECT auction, rate FROM hot")

        def work(turn: int) -> None:
            for i in range(turn * _ALONE + 1, (turn + 1) * _ALONE + 1):
                change(db, i)
                db.advance(i)

        return _least(work, _ALONE, query)


_CHANGES: dict[str, Callable[[minidsms.Connection, int], object]] = {
    "insert a row": lambda db, i: db.push("hot", (5000 + i, i), ts=i),
    "replace a row": lambda db, i: db.upsert("hot", (i % 700, i), ts=i),
}
