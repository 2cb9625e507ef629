"""The benchmarks' queries as one batch of SQL each: DuckDB works out every change of the answer from the whole input.

Each text yields `_ts`, `_sign` (a row that changes n times at one instant may say n), then the query's columns. {until}
is the last closed instant. Windows are half-open (docs/semantics W1): an element of instant t leaves at t + 10000. The
texts named .._COUNTED are those that are fastest where only the number of rows and their sums are asked: an instant,
then the query's columns.
"""

from __future__ import annotations

from collections.abc import Sequence

RANGE = 10_000
SLIDE = 2_000


def changes_of_groups(source: str, key: str, aggregates: str, columns: str) -> str:
    """A grouped query over [RANGE 10 SECONDS]: the states of each group, then the changes between them.

    source gives ts, the key k and the values; aggregates are written OVER w and read `n` rows of the group as r.
    """
    names = [c.strip() for c in columns.split(",")]
    old = ", ".join(f"lag({c}) OVER g AS old_{c}" for c in ("r", *names))
    same = " AND ".join(f"{c} IS NOT DISTINCT FROM old_{c}" for c in names)
    shown_old = ", ".join(f"old_{c}" for c in names)
    return f"""
WITH source AS ({source}),
events AS (SELECT ts, k, TRUE AS arrives, source.* EXCLUDE (ts, k) FROM source
           UNION ALL BY NAME
           SELECT ts + {RANGE} AS ts, k, FALSE AS arrives FROM source WHERE ts + {RANGE} <= {{until}}),
states AS (SELECT DISTINCT ts, k, count(*) FILTER (arrives) OVER w AS r, {aggregates} FROM events
           WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN {RANGE - 1} PRECEDING AND CURRENT ROW)),
steps AS (SELECT *, {old} FROM states WINDOW g AS (PARTITION BY k ORDER BY ts)),
changed AS (SELECT * FROM steps WHERE NOT (coalesce(r, 0) > 0 AND coalesce(old_r, 0) > 0 AND {same}))
SELECT ts AS _ts, 1 AS _sign, k AS {key}, {columns} FROM changed WHERE r > 0
UNION ALL
SELECT ts, -1, k, {shown_old} FROM changed WHERE coalesce(old_r, 0) > 0"""


def changes_of_presence(plus: str, minus: str | None) -> str:
    """When the keys come and go that stand in [RANGE 10 SECONDS] of `plus` and not, where given, of `minus`."""
    flows = [f"SELECT ts, k, 1 AS p, 0 AS m FROM ({plus})", f"SELECT ts + {RANGE}, k, -1, 0 FROM ({plus})"]
    if minus is not None:
        flows += [f"SELECT ts, k, 0, 1 FROM ({minus})", f"SELECT ts + {RANGE}, k, 0, -1 FROM ({minus})"]
    return f"""
WITH flows AS ({" UNION ALL ".join(flows)}),
moments AS (SELECT ts, k, sum(p) AS p, sum(m) AS m FROM flows WHERE ts <= {{until}} GROUP BY ts, k),
totals AS (SELECT ts, k, sum(p) OVER w AS p, sum(m) OVER w AS m FROM moments WINDOW w AS (PARTITION BY k ORDER BY ts)),
present AS (SELECT ts, k, (p > 0 AND m = 0)::INTEGER AS is_in FROM totals),
steps AS (SELECT ts, k, is_in - lag(is_in, 1, 0) OVER (PARTITION BY k ORDER BY ts) AS change FROM present)
SELECT ts AS _ts, change AS _sign, k FROM steps WHERE change <> 0"""


def netted(changes: str, columns: str) -> str:
    """Changes (ts, sign, columns) with what cancels inside an instant taken out."""
    return f"""SELECT ts AS _ts, sum(sign) AS _sign, {columns} FROM ({changes}) WHERE ts <= {{until}}
GROUP BY ts, {columns} HAVING sum(sign) <> 0"""


def entering(changes: str, columns: str) -> str:
    """ISTREAM of the same: what comes in, net."""
    return netted(changes, columns).replace("<> 0", "> 0")


def hash_of(column: str, rounds: int) -> str:
    """H(column, rounds) written out."""
    text = column
    for _ in range(rounds):
        text = f"(({text} * 48271 + 11) % 2147483647)"
    return text


HASH_ROUNDS = (8, 0, 4, 0, 8, 0, 2, 0, 4, 0)

FILTER = "SELECT ts AS _ts, 1 AS _sign, auction, price FROM bid WHERE auction % 123 = 0"

LAG = """
SELECT ts AS _ts, 1 AS _sign, auction, price - lag(price) OVER (PARTITION BY auction ORDER BY ts, price) AS d
FROM bid"""

RUNNING_SUM = """
SELECT ts AS _ts, 1 AS _sign, auction, (sum(price) OVER (PARTITION BY auction ORDER BY ts))::BIGINT AS s FROM bid"""

FILTER_COUNTED = "SELECT ts, auction, price FROM bid WHERE auction % 123 = 0"


def ten_conditions(order: Sequence[int]) -> str:
    """The ten filters written in this order of their numbers, as SQL and CQL."""
    return " AND ".join(f"{hash_of(f'a{j}', HASH_ROUNDS[j])} % 1000 < 500" for j in order)


def filters10(order: Sequence[int]) -> str:
    """The ten filters; two of the columns, and the instant before them."""
    return f"SELECT ts, a0, a9 FROM tuples WHERE {ten_conditions(order)}"


FILTERS10 = f"SELECT ts AS _ts, 1 AS _sign, a0, a9 FROM ({filters10(range(10))})"

WINAGG = f"""
WITH panes AS (SELECT auction, price, ((ts + {SLIDE - 1}) // {SLIDE} + p) * {SLIDE} AS ts
               FROM bid, unnest(range({RANGE // SLIDE})) AS u(p)),
states AS (SELECT ts, auction, count(*) AS n, max(price) AS top FROM panes WHERE ts <= {{until}} GROUP BY ts, auction),
beside AS (SELECT *, lead(ts) OVER w = ts + {SLIDE} AND lead(n) OVER w = n AND lead(top) OVER w = top AS stays,
                  lag(ts) OVER w = ts - {SLIDE} AND lag(n) OVER w = n AND lag(top) OVER w = top AS was
           FROM states WINDOW w AS (PARTITION BY auction ORDER BY ts))
SELECT ts AS _ts, 1 AS _sign, auction, n, top FROM beside WHERE was IS NOT TRUE
UNION ALL SELECT ts + {SLIDE}, -1, auction, n, top FROM beside WHERE stays IS NOT TRUE AND ts + {SLIDE} <= {{until}}"""

WINAGG_COUNTED = f"""
WITH panes AS (SELECT auction, (ts + {SLIDE - 1}) // {SLIDE} AS pane, count(*) AS n, max(price) AS top
               FROM bid GROUP BY ALL)
SELECT (pane + p) * {SLIDE} AS ts, auction, sum(n)::BIGINT AS n, max(top) AS top
FROM panes, unnest(range({RANGE // SLIDE})) AS u(p) WHERE (pane + p) * {SLIDE} <= {{until}} GROUP BY ALL"""

RUNNING = changes_of_groups(
    "SELECT ts, auction AS k, price FROM bid",
    "auction",
    "count(*) FILTER (arrives) OVER w AS n, max(price) OVER w AS top",
    "n, top",
)

RUNNING_COUNTED = f"""
SELECT ts, auction, count(*) OVER w AS n, max(price) OVER w AS top FROM bid
WINDOW w AS (PARTITION BY auction ORDER BY ts RANGE BETWEEN {RANGE - 1} PRECEDING AND CURRENT ROW)"""

_LIFE = f"greatest(b.ts, a.ts) AS born, least(b.ts, a.ts) + {RANGE} AS gone"
_MEETING = (
    f"""FROM bid AS b JOIN auction AS a ON b.auction = a.id AND a.ts > b.ts - {RANGE} AND a.ts < b.ts + {RANGE}"""
)
_PAIRS = f"SELECT {_LIFE}, b.auction, price, seller {_MEETING}"


def born_and_gone(pairs: str, columns: str) -> str:
    """Rows with a life from born to gone as changes."""
    return f"SELECT born AS ts, 1 AS sign, {columns} FROM ({pairs}) UNION ALL SELECT gone, -1, {columns} FROM ({pairs})"


JOIN = entering(born_and_gone(_PAIRS, "auction, price, seller"), "auction, price, seller")


def in_buckets(rows: str, moment: str, width: int) -> str:
    """Rows copied into the bucket of their instant and the two beside it: whoever is less than `width` away and stands
    in one bucket meets one of the copies.
    """
    return f"SELECT *, {moment} // {width} + d AS bucket FROM {rows}, (VALUES (-1), (0), (1)) AS v(d)"


JOIN_COUNTED = f"""
WITH copies AS ({in_buckets("auction", "ts", RANGE)})
SELECT greatest(b.ts, a.ts) AS ts, b.auction, price, seller FROM bid AS b JOIN copies AS a
ON b.auction = a.id AND b.ts // {RANGE} = a.bucket AND abs(a.ts - b.ts) < {RANGE}"""

_TRIPLES = """SELECT greatest(R.ts, S.ts, T.ts) AS born, least(R.ts, S.ts, T.ts) + 2500 AS gone, R.a, S.b
FROM R JOIN S ON R.a = S.a AND abs(R.ts - S.ts) < 2500
JOIN T ON S.b = T.b AND abs(S.ts - T.ts) < 2500 AND abs(R.ts - T.ts) < 2500"""

MJOIN3 = entering(born_and_gone(_TRIPLES, "a, b"), "a, b")

MJOIN3_COUNTED = f"""
WITH copies AS ({in_buckets("S", "ts", 2500)}),
pairs AS (SELECT greatest(R.ts, s.ts) AS newest, least(R.ts, s.ts) AS oldest, s.ts AS middle, s.a, s.b
          FROM R JOIN copies AS s ON R.a = s.a AND R.ts // 2500 = s.bucket AND abs(R.ts - s.ts) < 2500),
pair_copies AS ({in_buckets("pairs", "middle", 2500)})
SELECT greatest(newest, T.ts) AS ts, a, p.b FROM pair_copies AS p JOIN T
ON p.b = T.b AND T.ts // 2500 = p.bucket AND T.ts > newest - 2500 AND T.ts < oldest + 2500"""

DISTINCT = changes_of_presence("SELECT ts, bidder AS k FROM bid", None)

EXCEPT = changes_of_presence("SELECT ts, bidder AS k FROM bid", "SELECT ts, seller AS k FROM auction")

_LIVES = """SELECT ts AS born, lead(ts, 10) OVER (PARTITION BY auction ORDER BY ts, rowid) AS gone, auction, price
FROM bid"""

PARTITION = netted(born_and_gone(_LIVES, "auction, price"), "auction, price")

# An auction's number is unique, so the row with NULLs is there when the number is among the auctions and not the bids.
_ALONE = changes_of_presence("SELECT ts, id AS k FROM auction", "SELECT ts, auction AS k FROM bid")

OUTER_JOIN = f"""
{netted(born_and_gone(f"SELECT {_LIFE}, auction, price {_MEETING}", "auction, price"), "auction, price")}
UNION ALL SELECT _ts, _sign, k, NULL FROM ({_ALONE})"""

TEXT_KEYS = changes_of_groups(
    "SELECT ts, channel AS k, price FROM bid",
    "channel",
    "count(*) FILTER (arrives) OVER w AS n, coalesce(sum(price) OVER w, 0)::BIGINT AS total",
    "n, total",
)

NULLS = changes_of_groups(
    "SELECT ts, auction AS k, price FROM bid",
    "auction",
    "count(price) OVER w AS n, max(price) OVER w AS top",
    "n, top",
)

_RATED = """
SELECT b.ts AS born, b.ts + 1 AS gone, auction, price, rate FROM bid AS b JOIN
(SELECT ts AS since, lead(ts, 1, 9223372036854775807) OVER (PARTITION BY currency ORDER BY ts) AS till, currency, rate
 FROM rates WHERE sign = 1) AS r
ON b.currency = r.currency AND b.ts >= r.since AND b.ts < r.till"""

RELATION = entering(born_and_gone(_RATED, "auction, price, rate"), "auction, price, rate")
