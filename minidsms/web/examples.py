"""What the page offers to begin with: each a text for its editor, which declares sources and registers queries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """name, about: a line each.  text: statements.  speed: at which the sources are read, None: as fast as possible."""

    name: str
    about: str
    text: str
    speed: float | None


EXAMPLES = (
    Example(
        "Prices on the move",
        "Means of the last seconds by symbol. Show the answer as bars, or as lines over time.",
        """CREATE STREAM IF NOT EXISTS Trade (symbol TEXT, price INTEGER, shares INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR stocks('trade', symbols = 8, rate = 200);

CREATE QUERY IF NOT EXISTS moving AS
  SELECT symbol, AVG(price) AS mean, COUNT(*) AS trades
  FROM Trade [RANGE 10 SECONDS SLIDE 1 SECOND]
  GROUP BY symbol;
""",
        5.0,
    ),
    Example(
        "Filters that change places",
        "Three conditions, written in a poor order. A-Greedy notices, and the plan changes while it runs.",
        """CREATE STREAM IF NOT EXISTS Bid (auction INTEGER, bidder INTEGER, price INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR nexmark('bid');

CREATE QUERY IF NOT EXISTS bargains AS
  SELECT auction, price FROM Bid
  WHERE price > 10 AND bidder % 100 < 95 AND auction % 50 = 7;
""",
        10.0,
    ),
    Example(
        "Packets over three links",
        "The first example of STREAM's thesis: which share of the traffic goes over all three links of a network?",
        """CREATE STREAM IF NOT EXISTS C (pid INTEGER, size INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR network('c', rate = 500);
CREATE STREAM IF NOT EXISTS B (pid INTEGER, size INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR network('b', rate = 500);
CREATE STREAM IF NOT EXISTS O (pid INTEGER, size INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR network('o', rate = 500);

CREATE QUERY IF NOT EXISTS traffic AS
  SELECT COUNT(*) AS packets, SUM(C.size) AS bytes
  FROM C [RANGE 10 SECONDS], B [RANGE 10 SECONDS], O [RANGE 10 SECONDS]
  WHERE C.pid = B.pid AND B.pid = O.pid;
""",
        10.0,
    ),
    Example(
        "Two queries, one plan",
        "What queries have in common runs once: look for the boxes that serve both.",
        """CREATE STREAM IF NOT EXISTS Reading (sensor INTEGER, value FLOAT, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR sensors('reading');

CREATE QUERY IF NOT EXISTS means AS
  SELECT sensor, AVG(value) AS mean FROM Reading [RANGE 60 SECONDS] GROUP BY sensor;
CREATE QUERY IF NOT EXISTS hottest AS
  SELECT MAX(mean) AS hottest FROM
    (SELECT sensor, AVG(value) AS mean FROM Reading [RANGE 60 SECONDS] GROUP BY sensor) AS M;
""",
        30.0,
    ),
)
