"""Which shares trade three percent away from their average price of the last minute, and against which quote?

A view gives the volume-weighted average price of the last minute; each trade is compared with that of its own instant.
The second query joins each trade with the last quote of its symbol, by a PARTITION window.

    python examples/stocks.py [TRADES]
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque

from checking import agree, generated

import minidsms

CQL = """
CREATE STREAM Trade (symbol TEXT, price INTEGER, shares INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR stocks('trade', events = {trades}, rate = 100, symbols = 8);
CREATE STREAM Quote (symbol TEXT, bid INTEGER, ask INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR stocks('quote', events = {trades}, rate = 100, symbols = 8);

CREATE VIEW Average (symbol, paid, shares) AS
    SELECT symbol, SUM(price * shares), SUM(shares) FROM Trade [RANGE 1 MINUTE] GROUP BY symbol;

CREATE QUERY moves AS
    SELECT RSTREAM(T.symbol, T.price, A.paid / A.shares AS average)
    FROM Trade [NOW] AS T, Average AS A
    WHERE T.symbol = A.symbol AND ABS(T.price * A.shares - A.paid) * 100 > A.paid * 3;

CREATE QUERY quoted AS
    SELECT RSTREAM(T.symbol, T.price, Q.bid, Q.ask)
    FROM Trade [NOW] AS T, Quote [PARTITION BY symbol ROWS 1] AS Q
    WHERE T.symbol = Q.symbol
"""


def expected(trades: int) -> tuple[list[tuple[str, int, int]], int]:
    """(moves, number of trades that have a quote)."""
    window: dict[str, deque[tuple[int, int, int]]] = defaultdict(deque)
    first_quote = {}
    for quote in generated("stocks", "quote", events=trades, rate=100, symbols=8):
        first_quote.setdefault(quote.symbol, quote.at)
    moves, quoted = [], 0
    for row in generated("stocks", "trade", events=trades, rate=100, symbols=8):
        held = window[row.symbol]
        held.append((row.at, row.price, row.shares))
        while held[0][0] <= row.at - 60_000:
            held.popleft()
        paid, shares = sum(p * s for _, p, s in held), sum(s for _, _, s in held)
        if abs(row.price * shares - paid) * 100 > paid * 3:
            moves.append((row.symbol, row.price, paid // shares))
        quoted += first_quote.get(row.symbol, row.at + 1) <= row.at
    return moves, quoted


def main(arguments: list[str]) -> int:
    """Run both queries over some minutes of trading."""
    trades = int(arguments[0]) if arguments else 15_000
    with minidsms.connect() as db:
        db.execute(CQL.format(trades=trades))
        db.run()
        moves = [change.row for change in db.queries["moves"].fetch()]
        quoted = db.queries["quoted"].fetch()
    for symbol, price, average in moves[:5]:
        print(f"{symbol} at {price / 100:.2f}, while the last minute's average was {average / 100:.2f}")
    print(f"{len(moves)} such trades of {trades}; {len(quoted)} trades met a quote, the last one: {quoted[-1].row}")
    return agree("every move, and how many trades have a quote", (moves, len(quoted)), expected(trades))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
