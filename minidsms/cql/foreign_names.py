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
_SHARES = "ROW_NUMBER() and COUNT(*) OVER (..) give places and how many there are"
_GROUPINGS = "it stands in GROUP BY: GROUP BY {0}(a, b)"
_CASE = "write CASE WHEN condition THEN a ELSE b END"
_CAST = "write CAST(x AS type)"
_OF_STREAM = "it takes the whole select list, in parentheses: SELECT {0}(a, b) FROM .., or {0} (SELECT ..)"

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
    **dict.fromkeys(("earliest_by_offset", "first_value"), "write FIRST(x), or FIRST(x) IGNORE NULLS"),
    **dict.fromkeys(("latest_by_offset", "last_value"), "write LAST(x), or LAST(x) IGNORE NULLS"),
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
    **dict.fromkeys(("ntile", "percent_rank", "cume_dist"), _SHARES),
    **{name: _GROUPINGS.format(name.upper()) for name in ("rollup", "cube")},
    "grouping": "it tells of a key of GROUPING SETS, ROLLUP or CUBE whether rows are put together over it",
    "stdev": "write STDDEV(x)",
    "average": "write AVG(x)",
    "values": "constants stand in a relation: CREATE RELATION R (k INTEGER); INSERT INTO R VALUES (1), (2)",
}


def foreign_hint(name: str) -> str:
    """What to write instead of a name known from elsewhere; "" for any other."""
    return _HINTS.get(name.lower(), "")
