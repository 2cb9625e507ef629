"""What `tests.long.beside_duckdb` asks: what is read, queries, and how they are written for DuckDB where it takes other
words.

DuckDB has the tables S, of all elements that have come, with their instants `ts` and their `number` by arrival, Rel, of
the rows that are there, and Log, of all rows that Rel has ever had, from the instant `ts` until they had `gone`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PLAIN = "k INTEGER, v INTEGER, t TEXT"
WIDE = f"{PLAIN}, f FLOAT, p DECIMAL(9, 2), w TIMESTAMP, b BOOLEAN"
SOURCES = {
    "Rel": "SELECT * FROM Rel",
    "S": "SELECT * FROM S",
    "S [RANGE 400]": "SELECT * FROM S WHERE ts > {now} - 400",
    "S [RANGE 3000]": "SELECT * FROM S WHERE ts > {now} - 3000",
    "S [RANGE 2000 SLIDE 500]": "SELECT * FROM S WHERE ts > {now} // 500 * 500 - 2000 AND ts <= {now} // 500 * 500",
    "S [ROWS 700]": "SELECT * FROM (FROM S ORDER BY number DESC LIMIT 700)",
    "S [ROWS 5000]": "SELECT * FROM (FROM S ORDER BY number DESC LIMIT 5000)",
    "S [PARTITION BY k ROWS 2]":
        "SELECT * FROM S QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY number DESC) <= 2",
}  # fmt: skip
"""What is read, and the text that gives the same rows."""

SESSIONS = """SELECT *, SUM(begins) OVER (PARTITION BY k ORDER BY number) AS session FROM
    (SELECT *, CASE WHEN ts - LAG(ts) OVER (PARTITION BY k ORDER BY number) < 60 THEN 0 ELSE 1 END AS begins FROM S)"""
ENRICHED = "JOIN Log AS r ON S.k = r.k AND S.v = r.v AND r.ts <= S.ts AND S.ts < r.gone"
VIEWS = {
    "Large": "SELECT * FROM Rel WHERE v > 20",
    "Recent": "SELECT k, v, t, f, p, w, b FROM S [RANGE 1000] WHERE v % 3 <> 1",
    "Chosen": "SELECT ISTREAM(k, v, t, f, p, w, b) FROM S [RANGE UNBOUNDED] WHERE v % 3 <> 1",
    "Enriched": """SELECT RSTREAM(S.k, S.v, r.t, S.f, r.p, S.w, r.b) FROM S [NOW], Rel AS r
        WHERE S.k = r.k AND S.v = r.v""",
    "Totals": """SELECT k, SUM(v) AS v, MAX(t) AS t, SUM(f) AS f, MAX(p) AS p, MIN(w) AS w, BOOL_OR(b) AS b
        FROM S [RANGE 900] GROUP BY k""",
}
WIDE_SOURCES = SOURCES | {
    "S [NOW]": "SELECT * FROM S WHERE ts = {now}",
    "S [RANGE 300 SLIDE 700]": "SELECT * FROM S WHERE ts > {now} // 700 * 700 - 300 AND ts <= {now} // 700 * 700",
    "S [HOP 2000 EVERY 600]": "SELECT * FROM S WHERE ts >= {now} // 600 * 600 - 2000 AND ts < {now} // 600 * 600",
    "S [TUMBLE 1000]": "SELECT * FROM S WHERE ts >= {now} // 1000 * 1000 - 1000 AND ts < {now} // 1000 * 1000",
    "S [ROWS 1000 SLIDE 300]": """SELECT * FROM (FROM S WHERE number < (SELECT COUNT(*) // 300 * 300 FROM S)
        ORDER BY number DESC LIMIT 1000)""",
    "S [PARTITION BY t, b ROWS 3]":
        "SELECT * FROM S QUALIFY ROW_NUMBER() OVER (PARTITION BY t, b ORDER BY number DESC) <= 3",
    "S [PARTITION BY k ROWS 20 RANGE 1500]": """SELECT * FROM
        (FROM S QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY number DESC) <= 20) WHERE ts > {now} - 1500""",
    "S [SESSION 60 PARTITION BY k]": f"""SELECT * FROM ({SESSIONS})
        QUALIFY session = MAX(session) OVER (PARTITION BY k) AND MAX(ts) OVER (PARTITION BY k) + 60 > {{now}}""",
    "Large": VIEWS["Large"],
    "Recent": "SELECT * FROM S WHERE v % 3 <> 1 AND ts > {now} - 1000",
    "Chosen [ROWS 500]": "SELECT * FROM (FROM S WHERE v % 3 <> 1 ORDER BY number DESC LIMIT 500)",
    "Enriched [RANGE 800]":
        f"SELECT S.k, S.v, r.t, S.f, r.p, S.w, r.b FROM S {ENRICHED} WHERE S.ts > {{now}} - 800",
    "Totals": """SELECT k, SUM(v) AS v, MAX(t) AS t, SUM(f) AS f, CAST(MAX(p) AS DECIMAL(9, 2)) AS p, MIN(w) AS w,
        BOOL_OR(b) AS b FROM S WHERE ts > {now} - 900 GROUP BY k""",
}  # fmt: skip

FIRST_ROWS = {
    "SELECT k, v, t FROM {A} AS a ORDER BY v DESC LIMIT {n} OFFSET {m}":
        "v DESC NULLS LAST, k NULLS FIRST, t NULLS FIRST",
    "SELECT t, k FROM {A} AS a ORDER BY t LIMIT {n} OFFSET {m}": "t NULLS LAST, k NULLS FIRST",
    "SELECT k, COUNT(*) AS c FROM {A} AS a GROUP BY k ORDER BY c DESC LIMIT {n}": "c DESC NULLS LAST, k NULLS FIRST",
    "SELECT t, SUM(v) AS c FROM {A} AS a GROUP BY t ORDER BY c LIMIT {n}": "c NULLS LAST, t NULLS FIRST",
}  # fmt: skip
"""Queries, and how DuckDB is told to sort as R6 says."""
QUERIES = (
    *FIRST_ROWS,
    "SELECT k, COUNT(*), SUM(v), MIN(v), MAX(v), MIN(t), MAX(t) FROM {A} AS a GROUP BY k",
    "SELECT t, COUNT(v), COUNT(DISTINCT v), COUNT(DISTINCT k), MAX(k) FROM {A} AS a GROUP BY t",
    "SELECT COUNT(*), SUM(v), MIN(t), MAX(t), MIN(v), COUNT(DISTINCT t) FROM {A} AS a",
    "SELECT DISTINCT t, v % 7 AS m FROM {A} AS a",
    "SELECT k, MEDIAN(v), QUANTILE_DISC(v, 0.3) FROM {A} AS a WHERE v IS NOT NULL GROUP BY k",
    "SELECT k, COUNT(*) FROM {A} AS a GROUP BY k HAVING COUNT(*) > 3 AND MAX(v) > 20",
    "SELECT k, AVG(c) AS m FROM (SELECT k, t, COUNT(*) AS c FROM {A} AS a GROUP BY k, t) AS g GROUP BY k",
    "SELECT k, v, t, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, t) AS r FROM {A} AS a QUALIFY r <= 3",
    "SELECT DISTINCT k, v, t, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM {A} AS a QUALIFY r <= 4",
    "SELECT DISTINCT k, v, DENSE_RANK() OVER (PARTITION BY k ORDER BY t DESC) AS r FROM {A} AS a",
    "SELECT k, v, SUM(v) OVER (PARTITION BY t) AS s FROM {A} AS a",
    "SELECT a.k, a.v, b.t FROM {A} AS a JOIN {B} AS b ON a.k = b.k AND a.v = b.v",
    "SELECT a.k, a.v, b.t FROM {A} AS a LEFT JOIN {B} AS b ON a.k = b.k AND a.v = b.v",
    "SELECT a.k, a.v, b.t, b.k FROM {A} AS a FULL JOIN {B} AS b ON a.v = b.v AND a.k = b.k",
    "SELECT a.v, COUNT(*) FROM {A} AS a JOIN {B} AS b ON a.t = b.t AND a.v = b.v GROUP BY a.v",
    "SELECT a.k, a.v, b.v, c.v FROM {A} AS a, {B} AS b, {C} AS c WHERE a.k = b.k AND b.v = c.v AND a.v = b.v",
    "SELECT k, v FROM {A} AS a WHERE EXISTS (SELECT 1 FROM {B} AS b WHERE b.k = a.k AND b.v > a.v)",
    "SELECT k, v FROM {A} AS a WHERE v NOT IN (SELECT v FROM {B} AS b WHERE b.k = a.k)",
    "SELECT k, v FROM {A} AS a WHERE v > (SELECT AVG(v) FROM {B} AS b WHERE b.k = a.k)",
    "SELECT k, v FROM {A} AS a WHERE NOT EXISTS (SELECT 1 FROM {B} AS b WHERE b.t = a.t AND b.v = a.v)",
    "SELECT k, (SELECT MAX(b.v) FROM {B} AS b WHERE b.t = a.t) AS m FROM {A} AS a",
    "SELECT k, v FROM {A} AS a EXCEPT SELECT k, v FROM {B} AS b",
    "SELECT k, v FROM {A} AS a EXCEPT ALL SELECT k, v FROM {B} AS b",
    "SELECT k, v FROM {A} AS a INTERSECT ALL SELECT k, v FROM {B} AS b",
    "SELECT k, v FROM {A} AS a UNION SELECT v, k FROM {B} AS b",
)

_FRAMES = (
    "SUM(v) OVER (PARTITION BY k ORDER BY v, t ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING)",
    "AVG(v) OVER (PARTITION BY k ORDER BY t, v ROWS 5 PRECEDING)",
    "MIN(t) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 10 PRECEDING AND 5 FOLLOWING)",
    "COUNT(*) OVER (PARTITION BY t ORDER BY v RANGE BETWEEN 5 FOLLOWING AND 50 FOLLOWING)",
    "SUM(v) OVER (PARTITION BY k ORDER BY v), COUNT(v) OVER (PARTITION BY k ORDER BY v DESC)",
    "SUM(f) OVER (PARTITION BY k ORDER BY v, t, f ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), f",
    "MAX(v) OVER (PARTITION BY t ORDER BY k, v ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "NTILE(4) OVER (PARTITION BY k ORDER BY v, t), CUME_DIST() OVER (PARTITION BY k ORDER BY v)",
    "PERCENT_RANK() OVER (PARTITION BY k ORDER BY v DESC), LAST_VALUE(t) OVER (PARTITION BY k ORDER BY v, t)",
    "FIRST_VALUE(t) OVER (PARTITION BY k ORDER BY v, t ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
    "NTH_VALUE(v, 3) OVER (PARTITION BY k ORDER BY t, v ROWS BETWEEN 4 PRECEDING AND CURRENT ROW)",
    "LEAD(v, 2) OVER (PARTITION BY k ORDER BY v, t) - v",
    "LAG(t) OVER (PARTITION BY k ORDER BY v DESC, t DESC)",
    "AVG(v) OVER (PARTITION BY k), COUNT(*) OVER (PARTITION BY k, t), MAX(f) OVER ()",
)
_GROUPED = (
    "k, SUM(p), MIN(p), MAX(p), COUNT(DISTINCT p) FROM {A} AS a GROUP BY k",
    "SUM(p), SUM(f), AVG(f), MIN(w), MAX(w), BOOL_AND(b), BOOL_OR(b) FROM {A} AS a",
    "b, SUM(f), AVG(f), MIN(f), MAX(f), STDDEV_POP(v) FROM {A} AS a GROUP BY b",
    "k, STDDEV(v), MEDIAN(f) FROM {A} AS a WHERE k < 20 GROUP BY k",
    "k, STRING_AGG(t, '-' ORDER BY t DESC) FROM {A} AS a WHERE v % 5 = 1 AND t IS NOT NULL GROUP BY k",
    "k, ARRAY_AGG(v ORDER BY v), MAX(w) - MIN(w) FROM {A} AS a WHERE v % 5 = 1 GROUP BY k",
    "k, COUNT(DISTINCT t), SUM(DISTINCT v), BIT_XOR(v) FROM {A} AS a GROUP BY k",
    "k, BIT_AND(v), BIT_OR(k + v), BIT_XOR(DISTINCT v), BIT_OR(v) FILTER (WHERE b) FROM {A} AS a GROUP BY k",
    "b, COVAR_POP(f, v) / 1009, COVAR_SAMP(v, f) / 1009, REGR_SXY(v, k) / 1009, REGR_SYY(v, f) / 1009 "
    "FROM {A} AS a GROUP BY b",
    "CORR(v, f), REGR_SLOPE(f, v), REGR_INTERCEPT(v, f), REGR_R2(f, v), VAR_POP(DISTINCT v) / 1009 FROM {A} AS a",
    "k, b, COUNT(*), SUM(v), GROUPING(k), GROUPING(b) FROM {A} AS a GROUP BY ROLLUP (k, b)",
    "b, v % 3, COUNT(*), MAX(t) FROM {A} AS a GROUP BY CUBE (b, v % 3)",
    "k, COUNT(*) FILTER (WHERE v > 20), SUM(v) FILTER (WHERE b) FROM {A} AS a GROUP BY k",
    "MEDIAN(v), QUANTILE_DISC(t, 0.4), QUANTILE_CONT(f, 0.9) FROM {A} AS a WHERE v IS NOT NULL AND t IS NOT NULL",
    "x, COUNT(*), SUM(v) FROM {A} AS a, UNNEST(STRING_SPLIT(t, '1')) AS e(x) GROUP BY x",
    "CASE WHEN v > 20 THEN 'x' ELSE t END AS c, COUNT(*) FROM {A} AS a GROUP BY c",
    "DATE_TRUNC('hour', w) AS h, COUNT(*), MAX(w) FROM {A} AS a GROUP BY h",
    "a.k, COUNT(*), SUM(c.v), MIN(c.t) FROM {A} AS a LEFT JOIN {B} AS c ON a.k = c.k AND a.v = c.v GROUP BY a.k",
    "COUNT(*) FROM {A} AS a WHERE EXISTS (SELECT 1 FROM {B} AS c WHERE c.k = a.k AND c.v = a.v)",
)
_CHOSEN = (
    "k, t FROM {A} AS a WHERE t LIKE 'n1%' AND (v > 10 OR b) AND p > 3.5",
    "k, w + INTERVAL '1' HOUR AS later, w FROM {A} AS a WHERE w > TIMESTAMP '1970-01-01 05:00:00'",
    "DISTINCT w, b, p FROM {A} AS a WHERE k % 2 = 0",
    "DISTINCT ON (k) k, v, t FROM {A} AS a ORDER BY k, v DESC NULLS LAST, t NULLS FIRST",
    "k, v FROM {A} AS a WHERE v = (SELECT MAX(v) FROM {A} AS c)",
    "k, v, t FROM {A} AS a WHERE v > ALL (SELECT c.v FROM {B} AS c WHERE c.k = a.k AND c.v IS NOT NULL)",
    "k, v FROM {A} AS a WHERE k NOT IN (SELECT k FROM {B} AS c WHERE v > 1900 AND k IS NOT NULL)",
    "k, v FROM {A} AS a WHERE (k, v) IN (SELECT k, v FROM {B} AS c)",
    "k, v, (SELECT COUNT(*) FROM {B} AS c WHERE c.k = a.k) AS n FROM {A} AS a",
    "k, (SELECT COUNT(*) FROM {B} AS c WHERE c.v < a.v) AS n FROM {A} AS a WHERE k % 10 = 3",
    "a.k, a.p, c.p FROM {A} AS a JOIN {B} AS c ON a.p = c.p AND a.k = c.k",
    "a.k, a.t, c.f FROM {A} AS a LEFT JOIN {B} AS c ON a.t = c.t AND a.b = c.b AND a.v > c.v + 1000",
    "a.k, c.v FROM {A} AS a RIGHT JOIN {B} AS c ON a.k = c.k AND a.v = c.v WHERE c.b",
    "a.k, a.v, c.v FROM {A} AS a JOIN {B} AS c ON a.k = c.k AND a.v BETWEEN c.v - 3 AND c.v + 3",
    "a.k, c.v, d.t FROM {A} AS a JOIN {B} AS c ON a.k = c.k AND a.v = c.v "
    "LEFT JOIN {C} AS d ON c.v = d.v AND c.k = d.k",
    "DISTINCT a.v FROM {A} AS a, {B} AS c, {C} AS d WHERE a.k = c.k AND a.v = c.v AND c.k = d.k AND d.v = a.v",
    "k FROM {A} AS a INTERSECT SELECT k FROM {B} AS c WHERE b EXCEPT SELECT v FROM {C} AS d",
    "g.k, g.n, h.m FROM (SELECT k, COUNT(*) AS n FROM {A} AS a GROUP BY k) AS g "
    "FULL JOIN (SELECT k, MAX(v) AS m FROM {B} AS c GROUP BY k) AS h ON g.k = h.k",
    "n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM {A} AS a GROUP BY k) AS g GROUP BY n",
    "k, c, RANK() OVER (ORDER BY c DESC) AS r FROM (SELECT k, COUNT(*) AS c FROM {A} AS a GROUP BY k) AS g",
)
WIDE_QUERIES = (
    *(f"SELECT k, v, t, {frame} FROM {{A}} AS a" for frame in _FRAMES),
    *(f"SELECT {text}" for text in (*_GROUPED, *_CHOSEN)),
    "SELECT k, ARG_MAX(t, v), ARG_MIN(t, v) FROM {A} AS a WHERE t IS NOT NULL AND v IS NOT NULL GROUP BY k",
    "SELECT k, MODE(v) FROM {A} AS a WHERE v IS NOT NULL GROUP BY k",
)

_PASSED = "SELECT k, v, t, {} FROM S"
STREAMS = (
    _PASSED.format("SUM(v) OVER (PARTITION BY k ORDER BY ts, v, t ROWS 5 PRECEDING)"),
    _PASSED.format("AVG(f) OVER (PARTITION BY k ORDER BY ts RANGE 30 PRECEDING)") + " WHERE v > 3",
    _PASSED.format("LAG(v) OVER (PARTITION BY k ORDER BY ts, v, t), COUNT(*) OVER (PARTITION BY t ORDER BY ts)"),
    _PASSED.format("MAX(v) OVER (PARTITION BY k ORDER BY ts RANGE 100 PRECEDING)"),
    _PASSED.format("RANK() OVER (PARTITION BY k ORDER BY ts), SUM(p) OVER (PARTITION BY b ORDER BY ts)"),
    _PASSED.format("FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts, v, t ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)"),
    _PASSED.format("COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 50 PRECEDING AND 10 PRECEDING)"),
    _PASSED.format("NTH_VALUE(v, 2) OVER (PARTITION BY k ORDER BY ts, v, t ROWS UNBOUNDED PRECEDING)"),
    "SELECT a.k, c.v FROM S AS a, S AS c WHERE a.k = c.k AND a.v = c.v AND a.b AND NOT c.b",
    "SELECT RSTREAM(S.k, S.v, r.t, r.p) FROM S [NOW], Rel AS r WHERE S.k = r.k AND S.v = r.v",
    "SELECT RSTREAM(S.k, S.v, r.t, r.p) FROM S [NOW] LEFT JOIN Rel AS r ON S.k = r.k AND S.v = r.v",
    "SELECT RSTREAM(S.k, COUNT(*)) FROM S [NOW], Rel AS r WHERE S.k = r.k GROUP BY S.k",
    "SELECT RSTREAM(k, v) FROM S [NOW] WHERE v > (SELECT AVG(v) FROM Rel AS r WHERE r.k = S.k)",
    "SELECT RSTREAM(S.k, S.v, y.v) FROM S [NOW], S [RANGE 300] AS y WHERE S.k = y.k AND y.v < S.v - 1000",
    "SELECT RSTREAM(k, COUNT(*), SUM(v)) FROM S [NOW] GROUP BY k",
    "SELECT ISTREAM(k, COUNT(*), window_end) FROM S [TUMBLE 1000] GROUP BY k, window_end",
    "SELECT k, start, n FROM (SELECT DSTREAM(k, window_start AS start, MAX(ts) AS last, COUNT(*) AS n) "
    "FROM S [SESSION 60 PARTITION BY k] GROUP BY k, window_start) AS d WHERE d.ts = last + 60",
)
"""Queries that are streams, over S and Rel."""
JOINS = (
    "SELECT a.k, c.v, d.t FROM {A} AS a, {B} AS c, {C} AS d WHERE a.k = c.k AND c.v = d.v",
    "SELECT a.k, a.v, c.v, d.v FROM {A} AS a, {B} AS c, {C} AS d WHERE a.k = c.k AND c.k = d.k AND a.v = d.v",
    "SELECT a.v, COUNT(*) FROM {A} AS a, {B} AS c, {C} AS d WHERE a.k = c.k AND c.v = d.v AND a.v > 500 GROUP BY a.v",
    "SELECT a.k, c.v, d.t, e.k FROM {A} AS a, {B} AS c, {C} AS d, {A} AS e "
    "WHERE a.k = c.k AND c.v = d.v AND d.k = e.k AND e.v = a.v",
    "SELECT a.k, a.v, c.v FROM {A} AS a, {B} AS c WHERE a.v BETWEEN c.v - 2 AND c.v + 2 AND a.k = c.k",
)
IN_OTHER_WORDS = {
    WIDE_QUERIES[-2]: """SELECT k, MAX(struct_pack(v := v, t := t)).t, MIN(struct_pack(v := v, t := t)).t FROM {A} AS a
        WHERE t IS NOT NULL AND v IS NOT NULL GROUP BY k""",
    WIDE_QUERIES[-1]: """SELECT k, -MAX(struct_pack(n := n, v := -v)).v FROM
        (SELECT k, v, COUNT(*) AS n FROM {A} AS a WHERE v IS NOT NULL GROUP BY k, v) AS g GROUP BY k""",
    STREAMS[9]: f"SELECT S.k, S.v, r.t, r.p FROM S {ENRICHED}",
    STREAMS[10]: f"SELECT S.k, S.v, r.t, r.p FROM S LEFT {ENRICHED}",
    STREAMS[11]: """SELECT S.k, COUNT(*) FROM S JOIN Log AS r ON S.k = r.k AND r.ts <= S.ts AND S.ts < r.gone
        GROUP BY S.k, S.ts""",
    STREAMS[12]: """SELECT k, v FROM S WHERE
        v > (SELECT AVG(v) FROM Log AS r WHERE r.k = S.k AND r.ts <= S.ts AND S.ts < r.gone)""",
    STREAMS[13]: """SELECT S.k, S.v, y.v FROM S, S AS y
        WHERE S.k = y.k AND y.ts <= S.ts AND y.ts > S.ts - 300 AND y.v < S.v - 1000""",
    STREAMS[14]: "SELECT k, COUNT(*), SUM(v) FROM S GROUP BY k, ts",
    STREAMS[15]: """SELECT k, COUNT(*), ts // 1000 * 1000 + 1000 AS until FROM S
        WHERE until <= {now} GROUP BY k, until""",
    STREAMS[16]: f"SELECT k, MIN(ts), COUNT(*) FROM ({SESSIONS}) GROUP BY k, session HAVING MAX(ts) + 60 <= {{now}}",
}

PLAIN_OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {"compilation": "at once"}, {"compilation": "off"}, {"adaptive": "off"}, {"threads": 2},
    {"batch_size": 700},
)  # fmt: skip
WIDE_OPTIONS: tuple[dict[str, Any], ...] = (
    *PLAIN_OPTIONS, {"batch_size": 64}, {"sharing": "off"}, {"state_reduction": "k-mon"}, {"caching": "global"},
    {"scheduler": "round_robin", "queue_size": 500, "batch_size": 100},
)  # fmt: skip
JOIN_OPTIONS: tuple[dict[str, Any], ...] = (
    {"caching": "global", "cache_interval": 500, "cache_memory": 20_000}, {"caching": "prefix", "cache_interval": 500},
    {"join_plan": "xjoin"}, {"join_plan": "mjoin"}, {"state_reduction": "k-mon"}, {"state_reduction": "swj"},
    {"join_index": "bit_address", "caching": "global", "index_window": 2000, "cache_interval": 500},
    {"join_index": "bit_address", "index_migration": "partial", "index_window": 500},
    {"join_index": "bit_address", "join_plan": "xjoin"}, {"join_index": "patterns", "caching": "global"},
    {"threads": 2}, {"batch_size": 50}, {"compilation": "at once"},
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What cases draw from. columns: of S and Rel.  most: rows of an answer; a case with more ends there."""

    columns: str
    sources: Mapping[str, str]
    queries: tuple[str, ...]
    options: tuple[dict[str, Any], ...]
    most: int
    in_folder: bool = False
    """The connection has a folder, which is closed and opened again, and checkpoints are made, also while rows come."""


KINDS = {
    "plain": Kind(PLAIN, SOURCES, QUERIES, PLAIN_OPTIONS, 400_000),
    "wide": Kind(WIDE, WIDE_SOURCES, WIDE_QUERIES, WIDE_OPTIONS, 30_000),
    "streams": Kind(WIDE, WIDE_SOURCES, STREAMS, WIDE_OPTIONS, 60_000),
    "joins": Kind(PLAIN, SOURCES, JOINS, JOIN_OPTIONS, 30_000),
    "folder": Kind(WIDE, WIDE_SOURCES, (*QUERIES, *WIDE_QUERIES, *STREAMS), ({}, {}, {"sharing": "off"}), 20_000, True),
}
