"""What windows hold in memory, against the bytes of the columns they must hold."""

from __future__ import annotations

import minidsms
from benchmarks import nexmark, sql
from benchmarks.feeds import parts

QUERIES = {
    "window": ("SELECT auction, price FROM bid [RANGE 10 SECONDS]", 0),
    "running": ("SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE 10 SECONDS] GROUP BY auction", 0),
    "join": (
        "SELECT ISTREAM(bid.auction, price, seller) FROM bid [RANGE 10 SECONDS], auction [RANGE 10 SECONDS] "
        "WHERE bid.auction = auction.id",
        16,
    ),
}
GOAL = 2.0


def measure(bids: int) -> dict[str, dict[str, float]]:
    """Per query: bytes of state once the window is full and after all has passed, and the bytes it may have.

    The columns of an element are its row and its instant; an index may add 16 bytes a slot.
    """
    return {name: _of(cql, index, bids) for name, (cql, index) in QUERIES.items()}


def _of(cql: str, index: int, bids: int) -> dict[str, float]:
    market = nexmark.nexmark(bids)
    feeds = {
        "bid": nexmark.only(market, "bid", "auction", "price"),
        "auction": nexmark.only(market, "auction", "id", "seller"),
    }
    with minidsms.connect() as db:
        db.execute(
            "CREATE STREAM bid (auction INTEGER, price INTEGER); CREATE STREAM auction (id INTEGER, seller INTEGER)"
        )
        query = db.query(cql)
        held: list[int] = []
        for name, part in parts(feeds, 8192):
            db.push(name, part.columns, ts=part.ts)
            query.fetch_arrow()
            held.append(db.nbytes)
    last = int(feeds["bid"].ts[-1])
    present = sum(int((feed.ts > last - sql.RANGE).sum()) for name, feed in feeds.items() if name in cql)
    columns = present * 24
    return {
        "state_bytes": max(held),
        "half_way_bytes": max(held[: len(held) // 2]),
        "column_bytes": columns,
        "ratio": round((max(held) - present * index) / columns, 2),
    }
