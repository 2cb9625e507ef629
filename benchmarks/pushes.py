"""Small pushes: what an element costs by the size of the push, and what a plan of ten operators adds to a push.

Processor time of the engine's thread, which the work of others moves less than the clock; the least of three rounds.
"""

from __future__ import annotations

import time

import numpy as np

import minidsms

CHAIN_GOALS_US = {4000: 1.5, 100: 2.0, 10: 8.0}
"""By rows of a push, for an element of the join of four."""
PLAN_GOAL_US = 60.0
"""What a plan of ten operators adds to a push of one row and its `advance`."""
_ROUNDS = 3

_STREAMS = {"A": "x", "B": "xy", "C": "yz", "D": "z"}
_CHAIN = """SELECT ISTREAM(A.x, B.y, C.z) FROM A [RANGE 2000], B [RANGE 2000], C [RANGE 2000], D [RANGE 2000]
WHERE A.x = B.x AND B.y = C.y AND C.z = D.z"""
_PLAN = """SELECT seller, COUNT(*), MAX(p) FROM
(SELECT ISTREAM(bid.auction, price * 2 AS p, seller) FROM bid [RANGE 2 SECONDS], auction [RANGE 2 SECONDS]
 WHERE bid.auction = auction.id AND price > 10 AND seller < 1000) [RANGE 1 SECOND]
GROUP BY seller HAVING COUNT(*) > 1"""


def measure() -> dict[str, dict[str, float]]:
    """us and goals: of an element of the four-way chain join by rows of a push; of the plan, beside no query at all."""
    found = {
        f"join of four, an element in pushes of {rows:,}": {"us": round(_chain(rows), 2), "goal": goal}
        for rows, goal in CHAIN_GOALS_US.items()
    }
    operators, with_plan = _plan(_PLAN)
    _, without = _plan(None)
    found[f"plan of {operators} operators, a push"] = {"us": round(with_plan - without, 1), "goal": PLAN_GOAL_US}
    return found


def _chain(rows: int) -> float:
    """Every stream is given so many rows in turn; keys are drawn from 2,000."""
    rng = np.random.default_rng(1)
    pushes = max(4, min(1000, 100_000 // rows))
    with minidsms.connect() as db:
        db.execute(
            "; ".join(f"CREATE STREAM {s} ({', '.join(f'{c} INTEGER' for c in cs)})" for s, cs in _STREAMS.items())
        )
        query = db.query(_CHAIN)
        now, least = 0, float("inf")
        for turn in range(_ROUNDS + 1):  # the first fills the windows
            parts = []
            for _ in range(pushes if turn else 10_000 // rows + 1):
                ts = np.arange(now, now + rows)
                parts += [(s, {c: rng.integers(0, 2000, rows) for c in cs}, ts) for s, cs in _STREAMS.items()]
                now += rows
            begun = time.thread_time()
            for stream, columns, ts in parts:
                db.push(stream, columns, ts=ts)
            if turn:
                least = min(least, (time.thread_time() - begun) / (len(parts) * rows))
            query.fetch_arrow()
    return least * 1e6


def _plan(cql: str | None, pushes: int = 1500) -> tuple[int, float]:
    """(operators, us of a push of one row and its `advance`); three rows of four are bids, one is an auction."""
    rng = np.random.default_rng(1)
    with minidsms.connect() as db:
        db.execute(
            "CREATE STREAM bid (auction INTEGER, price INTEGER); CREATE STREAM auction (id INTEGER, seller INTEGER)"
        )
        query = None if cql is None else db.query(cql)
        rows = list(zip(rng.integers(0, 500, pushes).tolist(), rng.integers(0, 2000, pushes).tolist()))
        least, ts = float("inf"), 0
        for turn in range(_ROUNDS + 1):
            begun = time.thread_time()
            for i, row in enumerate(rows):
                ts += 10
                db.push("bid" if i % 4 else "auction", row, ts=ts)
                db.advance(ts)
            if turn:
                least = min(least, (time.thread_time() - begun) / pushes)
            if query is not None:
                query.fetch_arrow()
        return 0 if query is None else len(query.network.operators), least * 1e6
