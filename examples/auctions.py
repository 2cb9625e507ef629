"""Which auctions are hot at the moment, and what do bids cost in euros at the rate of their instant?

Two queries of NEXMark over generated bids: the most bids within ten seconds, told every two (Q5), and a currency
conversion with a rate that changes (Q1). All eight stand in examples/nexmark.

    python examples/auctions.py [EVENTS]
"""

from __future__ import annotations

import sys
from collections import Counter

from checking import agree, generated

import minidsms

CQL = """
CREATE STREAM Bid (auction INTEGER, bidder INTEGER, price INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR nexmark('bid', events = {events}, rate = 1000);
CREATE RELATION Rate (euros INTEGER);

CREATE VIEW Heat (auction, bids) AS
    SELECT auction, COUNT(*) FROM Bid [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY auction;
CREATE QUERY hot AS SELECT ISTREAM(auction, bids) FROM Heat WHERE bids >= ALL (SELECT bids FROM Heat);

CREATE QUERY converted AS
    SELECT RSTREAM(auction, price * euros / 1000 AS euros) FROM Bid [NOW], Rate WHERE price >= 99000000
"""


def expected(events: int) -> tuple[set[tuple[int, int, int]], list[tuple[int, int]]]:
    """((instant, auction, bids) of what becomes hottest, conversions of the dearest bids)."""
    rows = generated("nexmark", "bid", events=events, rate=1000)
    hot: set[tuple[int, int, int]] = set()
    before: set[tuple[int, int]] = set()
    for b in range(0, rows[-1].at + 1, 2000):
        counts = Counter(row.auction for row in rows if b - 10_000 < row.at <= b)
        hottest = {(a, n) for a, n in counts.items() if n == max(counts.values())}
        hot |= {(b, *item) for item in hottest - before}
        before = hottest
    half = events // 2
    dear = [row for row in rows if row.price >= 99_000_000]
    return hot, [(row.auction, row.price * (908 if row.at < half else 912) // 1000) for row in dear]


def main(arguments: list[str]) -> int:
    """Run both queries; half-way the rate changes."""
    events = int(arguments[0]) if arguments else 30_000
    half = events // 2
    with minidsms.connect() as db:
        db.execute(CQL.format(events=events))
        db.push("Rate", (908,), ts=0)
        db.run(until=half - 1)
        db.push("Rate", [(908,), (912,)], ts=half, sign=[-1, 1])
        db.run()
        hot = {(change.ts, *change.row) for change in db.queries["hot"].fetch()}
        converted = [change.row for change in db.queries["converted"].fetch()]
    for ts, auction, bids in sorted(hot)[-5:]:
        print(f"second {ts // 1000}: auction {auction} is hot, {bids} bids in ten seconds")
    print(f"{len(converted)} bids of 990,000 and more, the last one {converted[-1][1] / 100:,.2f} euros")
    return agree("what is hot when, and every conversion", (hot, converted), expected(events))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
