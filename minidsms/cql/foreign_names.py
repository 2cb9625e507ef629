"""Names that other SQL systems have and CQL does not, and what to write instead.

Invariant: these are hints for errors only; a column or user function of such a name means itself.
"""

from __future__ import annotations

from minidsms.aggregates.over import NEIGHBOURS, RANKS
from minidsms.cql.words import MONTHS, UNITS

_NO_CLOCK = (
    "a CQL query has no clock: a window such as [NOW] or [RANGE 10 SECONDS] says what is current, and "
    "CURRENT_TIMESTAMP is the instant of a row"
)
_INSTANT = (
    "CURRENT_TIMESTAMP is the instant of a stream's element, also called S.ts: FROM must have a stream, or a query "
    "with ISTREAM, RSTREAM or DSTREAM; a relation's rows have no instant"
)
_ELEMENTS = "once in a select list without groups, else in FROM: FROM S [NOW], UNNEST(list) AS element"
_ROW_TIME = "write CURRENT_TIMESTAMP for the instant of a row"
_SESSION_ID = "the rows of a window of sessions have it: S [SESSION 30 MINUTES PARTITION BY k]"
_BOUNDS = (
    "a window that moves in steps has it: S [TUMBLE 1 MINUTE], S [HOP 5 MINUTES EVERY 1 MINUTE], [RANGE .. SLIDE ..]"
)
_BOUNDS_OF = "rows of S [TUMBLE ..], [HOP ..] and [SESSION ..] have window_start and window_end; group by what you show"
_COALESCE = "write COALESCE(a, b)"
_HOPPING = "the window stands behind the stream: S [TUMBLE 1 MINUTE], S [HOP 5 MINUTES EVERY 1 MINUTE]"
_RANKS = "it stands with OVER: {0} OVER (PARTITION BY .. ORDER BY ..)"
A_FILE = (
    "declare what is read: CREATE STREAM S (..) FROM 'file'; what fits a file is proposed by .schema file in the "
    "shell, and by minidsms.declaration('file') in Python"
)
_GROUPINGS = "it stands in GROUP BY: GROUP BY {0}(a, b)"
_CASE = "write CASE WHEN condition THEN a ELSE b END"
_STRUCT = "write STRUCT(a := x, b := y)"
_FORMATS = "write STRFTIME(t, '%Y-%m-%d'), or FORMAT_TIMESTAMP(t, 'yyyy-MM-dd')"
_CAST = "write CAST(x AS type)"
_OF_STREAM = "it takes the whole select list, in parentheses: SELECT {0}(a, b) FROM .., or {0} (SELECT ..)"

FOREIGN_JOINS = {
    "ASOF": "write FROM S AS s ASOF LEFT JOIN T AS t ON s.k = t.k AND s.ts >= t.ts",
}
"""Kinds of joins that elsewhere stand between a table and JOIN, where here an alias may."""

_HINTS = {
    **dict.fromkeys(("current_time", "current_date", "now", "localtime", "sysdate"), _NO_CLOCK),
    **dict.fromkeys(("getdate", "localtimestamp", "proctime", "mz_now", "systimestamp"), _NO_CLOCK),
    **dict.fromkeys(("current_timestamp", "ts"), _INSTANT),
    **dict.fromkeys(("rowtime", "event_time", "row_time"), _ROW_TIME),
    "window_time": "the rows of a window that moves in steps have window_end, which is exclusive",
    **dict.fromkeys(("window_start", "window_end"), _BOUNDS),
    "windowstart": f"write window_start; {_BOUNDS}",
    "windowend": f"write window_end; {_BOUNDS}",
    "session_id": _SESSION_ID,
    "irstream": "the answer of a query that is a relation has both, what enters and what leaves: leave IRSTREAM out",
    "prev": "write LAG(x) OVER (ORDER BY ts)",
    **{f"{window}_{end}": _BOUNDS_OF for window in ("tumble", "hop", "session") for end in ("start", "end")},
    "isnull": _COALESCE,
    **dict.fromkeys(("tumble", "hop", "tumbling", "hopping", "window"), _HOPPING),
    "stream": "leave STREAM out: a query over a stream goes on; ISTREAM(..) around the select list makes it a stream",
    **dict.fromkeys(
        ("session", "session_window"), "the window stands behind the stream: S [SESSION 30 MINUTES PARTITION BY k]"
    ),
    "first_value": "write FIRST(x) IGNORE NULLS, or FIRST_VALUE(x) OVER (ORDER BY ..)",
    "last_value": "write LAST(x) IGNORE NULLS, or LAST_VALUE(x) OVER (ORDER BY ..)",
    "cube_explode": "write GROUP BY CUBE (..), or UNNEST in FROM",
    **dict.fromkeys(("to_bytes", "from_bytes"), "HEX, UNHEX, TO_BASE64 and FROM_BASE64 are the encodings of a text"),
    "top_k": "write MAX(x, n): the n greatest, the greatest first",
    **dict.fromkeys(("iif", "iff"), "write IF(condition, a, b)"),
    "nvl2": _CASE,
    **dict.fromkeys(("convert", "to_number"), _CAST),
    **{kind: f"write CAST(x AS {kind.upper()})" for kind in ("date", "time", "timestamp")},
    "datetime": "write CAST(x AS TIMESTAMP)",
    **dict.fromkeys(("date_format", "format_datetime"), _FORMATS),
    **dict.fromkeys(("charindex", "locate"), "write STRPOS(text, part)"),
    **dict.fromkeys(("timezone", "from_utc_timestamp"), "write t AT TIME ZONE 'Europe/Berlin'"),
    "add_months": "write TIMESTAMPADD(MONTH, n, t)",
    **{f"to_{unit}s": f"write INTERVAL (n) {unit.upper()}" for unit in (*UNITS, *MONTHS)},
    "make_interval": "write INTERVAL (n) DAY",
    "months_between": "write TIMESTAMPDIFF(MONTH, b, a)",
    "percentile": "write QUANTILE_CONT(x, 0.95)",
    "percentile_approx": "write APPROX_QUANTILE(x, 0.95)",
    **dict.fromkeys(("struct_pack", "named_struct"), _STRUCT),
    **dict.fromkeys(("json_arrayagg", "json_group_array"), "write TO_JSON(ARRAY_AGG(x))"),
    **{op: _OF_STREAM.format(op.upper()) for op in ("istream", "dstream", "rstream")},
    **dict.fromkeys(("explode", "posexplode"), _ELEMENTS),
    "unnest": _ELEMENTS,
    "format": "write a || b, or CONCAT",
    **dict.fromkeys(
        ("uuid", "gen_random_uuid", "random", "rand"), "no function here is random: answers are repeatable"
    ),
    "regexp_substr": "write REGEXP_EXTRACT(text, pattern)",
    **dict.fromkeys(
        ("parse_url", "url_extract_host"), "write REGEXP_EXTRACT(url, '^[a-z]+://([^/:?#]+)', 1), which is the host"
    ),
    **dict.fromkeys(("isnan", "isfinite", "isinf"), "a NaN is NULL here, in the data and from computations: x IS NULL"),
    "current_watermark": "how late rows may come is declared with the stream: CREATE STREAM .. SLACK 5 SECONDS",
    "regexp_match": "write REGEXP_EXTRACT(text, pattern, group), or REGEXP_EXTRACT_ALL",
    **dict.fromkeys(("jsonb_object_keys", "json_object_keys"), "write JSON_KEYS(j), and UNNEST in FROM for rows"),
    **dict.fromkeys(("jsonb_array_elements", "json_array_elements"), "write UNNEST(JSON_ITEMS(j)) in FROM"),
    **dict.fromkeys(
        ("jsonb_build_object", "json_build_object", "json_object"), "write TO_JSON(STRUCT(a := x, b := y))"
    ),
    **dict.fromkeys(("jsonb_build_array", "json_build_array", "json_array"), "write TO_JSON([x, y])"),
    "json_query": "write JSON_EXTRACT(j, '$.a'), or j -> 'a'",
    "from_json": "write CAST(j AS STRUCT(a INTEGER, b TEXT)), or j ->> 'a'",
    "jsonb": "JSON is TEXT: j -> 'a', JSON_EXTRACT(j, '$.a')",
    **dict.fromkeys(("array_ndims", "array_dims"), "CARDINALITY(l) counts the elements"),
    "array_lower": "a list begins at 1: its elements are l[1] to l[CARDINALITY(l)]",
    "array": "a list is [a, b]; ARRAY(SELECT x FROM ..) is that of a query's values",
    "array_fill": "write LIST_TRANSFORM(GENERATE_SERIES(1, n), i -> x)",
    "quote_ident": """write '"' || REPLACE(name, '"', '""') || '"'""",
    "unistr": "a text holds any characters as they are; CHR(n) gives that of a number",
    **dict.fromkeys(("date_add", "adddate"), "write t + INTERVAL '1 day', or TIMESTAMPADD(DAY, n, t)"),
    **dict.fromkeys(("date_sub", "subdate"), "write t - INTERVAL '1 day', or TIMESTAMPADD(DAY, -n, t)"),
    "age": "write a - b, or TIMESTAMPDIFF(DAY, b, a)",
    **dict.fromkeys(("num_nulls", "num_nonnulls"), "write CASE WHEN a IS NULL THEN 1 ELSE 0 END + .."),
    "xor": "write BITXOR(a, b)",
    "hash": "write MD5(text) or SHA256(text)",
    "version": "in Python, minidsms.__version__",
    "attr": "write ANY_VALUE(x)",
    **{name: _RANKS.format(f"{name.upper()}()") for name in RANKS},
    **{name: _RANKS.format(f"{name.upper()}(x)") for name in NEIGHBOURS},
    **dict.fromkeys(("nth_value", "ntile"), _RANKS.format("NTH_VALUE(x, n), NTILE(n)")),
    **dict.fromkeys(("percent_rank", "cume_dist"), _RANKS.format("CUME_DIST()")),
    **dict.fromkeys(("read_csv", "read_csv_auto", "read_parquet", "read_json", "read_json_auto"), A_FILE),
    "columns": "COLUMNS('^a|b$') stands in a select list, for the columns of such names",
    **{name: _GROUPINGS.format(name.upper()) for name in ("rollup", "cube")},
    "grouping": "it tells of a key of GROUPING SETS, ROLLUP or CUBE whether rows are put together over it",
    "stdev": "write STDDEV(x)",
    "average": "write AVG(x)",
    "key": "KEY (columns) stands behind the columns: CREATE RELATION R (a INTEGER) KEY (a)",
    "unique": "KEY (columns) stands behind the columns: CREATE RELATION R (a INTEGER) KEY (a)",
    "values": "rows written out stand in parentheses: FROM (VALUES (1, 'a'), (2, 'b')) AS t(k, name)",
}


def foreign_hint(name: str) -> str:
    """What to write instead of a name known from elsewhere; "" for any other."""
    return _HINTS.get(name.lower(), "")
