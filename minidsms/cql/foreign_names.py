"""Names that other SQL systems have and CQL does not, and what to write instead.

Invariant: these are hints for errors only; a column or user function of such a name means itself.
"""

from __future__ import annotations

from minidsms.aggregates.over import NEIGHBOURS, RANKS

_NO_CLOCK = (
    "a CQL query has no clock: a window such as [NOW] or [RANGE 10 SECONDS] says what is current, and "
    "CURRENT_TIMESTAMP is the instant of a row"
)
_INSTANT = (
    "CURRENT_TIMESTAMP is the instant of a stream's element, also called S.ts: FROM must have a stream, or a query "
    "with ISTREAM, RSTREAM or DSTREAM; a relation's rows have no instant"
)
_ROW_TIME = "write CURRENT_TIMESTAMP for the instant of a row"
_SESSION_ID = "the rows of a window of sessions have it: S [SESSION 30 MINUTES PARTITION BY k]"
_BOUNDS = (
    "a window that moves in steps has it: S [TUMBLE 1 MINUTE], S [HOP 5 MINUTES EVERY 1 MINUTE], [RANGE .. SLIDE ..]"
)
_COALESCE = "write COALESCE(a, b)"
_HOPPING = "the window stands behind the stream: S [TUMBLE 1 MINUTE], S [HOP 5 MINUTES EVERY 1 MINUTE]"
_RANKS = "it stands with OVER: {0} OVER (PARTITION BY .. ORDER BY ..)"
_A_FILE = "declare what is read: CREATE STREAM S (..) FROM 'file'; the shell proposes it: .schema 'file'"
_GROUPINGS = "it stands in GROUP BY: GROUP BY {0}(a, b)"
_CASE = "write CASE WHEN condition THEN a ELSE b END"
_CAST = "write CAST(x AS type)"
_OF_STREAM = "it takes the whole select list, in parentheses: SELECT {0}(a, b) FROM .., or {0} (SELECT ..)"

FOREIGN_JOINS = {
    "SEMI": "write WHERE k IN (SELECT k FROM T), or EXISTS",
    "ANTI": "write WHERE NOT EXISTS (SELECT * FROM T WHERE T.k = S.k)",
    "ASOF": "join S [NOW] with a relation, which is as it is at the instant of the row, or T [PARTITION BY k ROWS 1]",
}
"""Kinds of joins that elsewhere stand between a table and JOIN, where here an alias may."""

_HINTS = {
    **dict.fromkeys(("current_time", "current_date", "now", "localtime", "sysdate"), _NO_CLOCK),
    **dict.fromkeys(("getdate", "localtimestamp", "proctime"), _NO_CLOCK),
    **dict.fromkeys(("current_timestamp", "ts"), _INSTANT),
    **dict.fromkeys(("rowtime", "event_time", "row_time"), _ROW_TIME),
    **dict.fromkeys(("window_start", "window_end"), _BOUNDS),
    "session_id": _SESSION_ID,
    **dict.fromkeys(("ifnull", "nvl", "isnull"), _COALESCE),
    **dict.fromkeys(("tumble", "hop", "tumbling", "hopping"), _HOPPING),
    "session": "the window stands behind the stream: S [SESSION 30 MINUTES PARTITION BY k]",
    **dict.fromkeys(("earliest_by_offset", "first_value"), "write FIRST(x), or FIRST_VALUE(x) OVER (ORDER BY ..)"),
    **dict.fromkeys(("latest_by_offset", "last_value"), "write LAST(x), or LAST_VALUE(x) OVER (ORDER BY ..)"),
    "top_k": "write MAX(x, n): the n greatest, the greatest first",
    **dict.fromkeys(("if", "iif", "decode"), _CASE),
    **dict.fromkeys(("convert", "to_number", "to_date", "try_cast"), _CAST),
    **{op: _OF_STREAM.format(op.upper()) for op in ("istream", "dstream", "rstream")},
    **dict.fromkeys(
        ("explode", "posexplode", "flatten"), "UNNEST stands in FROM: FROM S [NOW], UNNEST(list) AS element"
    ),
    "unnest": "it stands in FROM: FROM S [NOW], UNNEST(list) AS element",
    "len": "write LENGTH(x)",
    **{name: _RANKS.format(f"{name.upper()}()") for name in RANKS},
    **{name: _RANKS.format(f"{name.upper()}(x)") for name in NEIGHBOURS},
    **dict.fromkeys(("nth_value", "ntile"), _RANKS.format("NTH_VALUE(x, n), NTILE(n)")),
    **dict.fromkeys(("percent_rank", "cume_dist"), _RANKS.format("CUME_DIST()")),
    **dict.fromkeys(("read_csv", "read_csv_auto", "read_parquet", "read_json", "read_json_auto"), _A_FILE),
    "columns": "name the columns, or write * EXCLUDE (a, b)",
    **{name: _GROUPINGS.format(name.upper()) for name in ("rollup", "cube")},
    "grouping": "it tells of a key of GROUPING SETS, ROLLUP or CUBE whether rows are put together over it",
    "stdev": "write STDDEV(x)",
    "average": "write AVG(x)",
    "values": "constants stand in a relation: CREATE RELATION R (k INTEGER); INSERT INTO R VALUES (1), (2)",
}


def foreign_hint(name: str) -> str:
    """What to write instead of a name known from elsewhere; "" for any other."""
    return _HINTS.get(name.lower(), "")
