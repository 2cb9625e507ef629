"""What the page offers to begin with: each a text for its editor, which declares sources and registers queries.

The experiments are those of the papers, alive: two plans of one query side by side on the same stream, with the figures
pinned in which they differ. Their settings stand in the text, which puts them back.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.web import scheduling


@dataclass(frozen=True)
class Example:
    """name, about: a line each.  text: statements.  speed: at which the sources are read, None: as fast as possible.

    compared: a query that runs a second time with a plan that stays (`Workbench.compare`), or ''.  watched: (kind,
    entity, property) pinned as graphs.  schedulers: its queries run apart, under each scheduler
    (`minidsms.web.scheduling`).  paper: where an experiment stands, or ''.
    """

    name: str
    about: str
    text: str
    speed: float | None
    compared: str = ""
    watched: tuple[tuple[str, str, str], ...] = ()
    schedulers: bool = False
    paper: str = ""


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
        """CREATE STREAM IF NOT EXISTS Reading (sensor INTEGER, temperature FLOAT, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR sensors('reading');

CREATE QUERY IF NOT EXISTS means AS
  SELECT sensor, AVG(temperature) AS mean FROM Reading [RANGE 60 SECONDS] GROUP BY sensor;
CREATE QUERY IF NOT EXISTS hottest AS
  SELECT MAX(mean) AS hottest FROM
    (SELECT sensor, AVG(temperature) AS mean FROM Reading [RANGE 60 SECONDS] GROUP BY sensor) AS M;
""",
        30.0,
    ),
    Example(
        "Sensors on a map",
        "Means of the last minute at the places of the sensors: show the answer as a map.",
        """CREATE STREAM IF NOT EXISTS Sensed (sensor INTEGER, temperature FLOAT, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR sensors('reading', sensors = 60, rate = 60);

CREATE QUERY IF NOT EXISTS weather AS
  SELECT 46.0 + sensor * 37 % 60 * 0.15 AS lat, 6.0 + sensor * 13 % 60 * 0.2 AS lon, AVG(temperature) AS mean, sensor
  FROM Sensed [RANGE 1 MINUTE] GROUP BY sensor;
""",
        60.0,
    ),
    Example(
        "A-Greedy against Static",
        "Six filters, correlated in pairs, which change places every ten seconds. A-Greedy follows; the copy keeps the "
        "order in which they are written. Below: what each takes.",
        """CREATE STREAM IF NOT EXISTS Changing (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER,
    at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('filters', rate = 50000, period = 500000);

CREATE QUERY IF NOT EXISTS a_greedy AS
  SELECT ISTREAM(a) FROM Changing
  WHERE a < 500 AND b < 500 AND c < 500 AND d < 500 AND e < 500 AND f < 500;
""",
        1.0,
        compared="a_greedy",
        paper="Babu 2005, section 4.7",
    ),
    Example(
        "Caches in a join",
        "A row of T meets five rows of S and R, and ten rows of T ask for the same: a cache keeps what they find. The "
        "same join without caches beside it.",
        """CREATE STREAM IF NOT EXISTS R (a INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('r', rate = 4000);
CREATE STREAM IF NOT EXISTS S (a INTEGER, b INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('s', rate = 4000);
CREATE STREAM IF NOT EXISTS T (b INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('t', rate = 4000, multiplicity = 10);

SET join_plan = mjoin;
SET cost_model = fixed;
SET caching = prefix;
CREATE QUERY IF NOT EXISTS cached AS SELECT COUNT(*) AS n FROM R [ROWS 5000], S [ROWS 5000], T [ROWS 10000]
  WHERE R.a = S.a AND S.b = T.b;
SET caching = off;
CREATE QUERY IF NOT EXISTS uncached AS SELECT COUNT(*) AS n FROM R [ROWS 5000], S [ROWS 5000], T [ROWS 10000]
  WHERE R.a = S.a AND S.b = T.b;
SET caching = auto;
SET cost_model = measured;
SET join_plan = auto;
""",
        1.0,
        watched=(
            ("operator", "cached.10 MJoin", "total_ns"),
            ("operator", "uncached.10 MJoin", "total_ns"),
            ("adaptation", "cached.10 MJoin: caching", "cache [S, R] for T: hit_rate"),
        ),
        paper="Babu 2005, section 5.8",
    ),
    Example(
        "k-Mon: rows that can matter no more",
        "A parent names a child that comes at most 1,000 children later. k-Mon finds that out, and keeps what can "
        "still be joined; the other query keeps the rows of its windows.",
        """CREATE STREAM IF NOT EXISTS Parent (child INTEGER, size INTEGER, at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('parent', rate = 500);
CREATE STREAM IF NOT EXISTS Child (id INTEGER, kind INTEGER, at TIMESTAMP)
  KEY (id) TIMESTAMP BY at FROM GENERATOR experiments('child', rate = 500);

SET state_reduction = 'k-mon';
SET k_mon = lossy;
CREATE QUERY IF NOT EXISTS reduced AS SELECT ISTREAM(size, kind) FROM Parent [RANGE 1 MINUTE], Child [RANGE 1 MINUTE]
  WHERE child = id AND kind < 3;
SET state_reduction = off;
SET k_mon = exact;
CREATE QUERY IF NOT EXISTS whole AS SELECT ISTREAM(size, kind) FROM Parent [RANGE 1 MINUTE], Child [RANGE 1 MINUTE]
  WHERE child = id AND kind < 3;
SET state_reduction = auto;
""",
        5.0,
        watched=(
            ("operator", "reduced.5 KMonJoin", "nbytes"),
            ("operator", "whole.6 MJoin", "nbytes"),
            ("adaptation", "reduced.5 KMonJoin: k-Mon", "k of child.id RIDS"),
        ),
        paper="Babu 2005, section 6.5",
    ),
    Example(
        "An index for each pattern of access",
        "Every pair of four streams is compared in one column. The first join looks rows up by all columns that are "
        "known by then, the second by one of them.",
        "".join(
            f"""CREATE STREAM IF NOT EXISTS W{i} (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER,
    at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('filters', rate = 1000, seed = {i});
"""
            for i in range(1, 5)
        )
        + "".join(
            f"""
SET join_index = {index};
CREATE QUERY IF NOT EXISTS by_{index} AS
  SELECT COUNT(*) AS n FROM W1 [ROWS 4000], W2 [ROWS 4000], W3 [ROWS 4000], W4 [ROWS 4000]
  WHERE W1.a = W2.a AND W1.b = W3.a AND W1.c = W4.a AND W2.b = W3.b AND W2.c = W4.b AND W3.c = W4.c;
"""
            for index in ("patterns", "hash")
        )
        + "SET join_index = auto;\n",
        1.0,
        watched=tuple(
            ("operator", f"by_{index}.{number} MJoin", name)
            for name in ("total_ns", "nbytes")
            for index, number in (("patterns", 13), ("hash", 13))
        ),
        paper="Works, Rundensteiner, Agu 2012",
    ),
    Example(
        "Content-based routing",
        "Tuples of five classes, each of which another filter drops: every class gets an order of its own. The copy "
        "has one order for all. Below: what each takes.",
        """CREATE STREAM IF NOT EXISTS Classes (class INTEGER, a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER,
    at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('classes', rate = 50000);

SET cost_model = fixed;
CREATE QUERY IF NOT EXISTS routed AS
  SELECT ISTREAM(a) FROM Classes WHERE a < 500 AND b < 500 AND c < 500 AND d < 500 AND e < 500;
SET cost_model = measured;
""",
        1.0,
        compared="routed",
        paper="Bizarro, Babu, DeWitt, Widom 2005, section 6",
    ),
    Example(
        "Chain against FIFO, Greedy and round robin",
        "Bursts that come faster than they are processed, four times. Each scheduler runs these queries in a "
        "connection of its own; below: what waits in the queues after every run of an operator.",
        scheduling.TEXT,
        None,
        schedulers=True,
        paper="Babu 2005, section 2.3.2",
    ),
    Example(
        "Change detection",
        "The filters change places every five seconds. The order of the first query follows a detector, that of the "
        "second only what its profile window holds.",
        """CREATE STREAM IF NOT EXISTS Shifting (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER,
    at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('filters', rate = 50000, period = 250000);

SET change_detection = beta_cusum;
CREATE QUERY IF NOT EXISTS sensing AS SELECT ISTREAM(a) FROM Shifting
  WHERE a < 500 AND b < 500 AND c < 500 AND d < 500 AND e < 500 AND f < 500;
SET change_detection = off;
CREATE QUERY IF NOT EXISTS unaware AS SELECT ISTREAM(a) FROM Shifting
  WHERE a <= 499 AND b <= 499 AND c <= 499 AND d <= 499 AND e <= 499 AND f <= 499;
SET change_detection = auto;
""",
        1.0,
        watched=tuple(
            (kind, f"{query}.2 Select{what}", name)
            for kind, what, name in (("operator", "", "total_ns"), ("adaptation", ": filter ordering", "decisions"))
            for query in ("sensing", "unaware")
        ),
        paper="docs/adaptivity.md",
    ),
    Example(
        "Many filters looked up together",
        "Forty rules over one stream. A screen looks a row up in the columns by which most rules refuse it; below: how "
        "many columns it looks at, and which share of the rows no rule wants.",
        """CREATE STREAM IF NOT EXISTS Watched (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER,
    at TIMESTAMP)
  TIMESTAMP BY at FROM GENERATOR experiments('filters', rate = 20000, period = 200000);

"""
        + "".join(
            f"CREATE QUERY IF NOT EXISTS rule_{i} AS SELECT ISTREAM(a) FROM Watched "
            f"WHERE {'abcdef'[i % 6]} = {16 * i} AND {'abcdef'[(i + 1) % 6]} < 500;\n"
            for i in range(40)
        ),
        1.0,
        watched=(("screen", "rule_0.1 Stream", "columns_a_row"), ("screen", "rule_0.1 Stream", "dropped")),
        paper="docs/sharing.md",
    ),
)
