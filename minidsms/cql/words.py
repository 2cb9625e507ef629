"""The words of CQL: those that are reserved, and those that are keywords where their neighbours make them so."""

from __future__ import annotations

RESERVED = frozenset(
    {"SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT", "ALL", "AND", "OR"}
    | {"NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END", "AS"}
    | {"ON", "JOIN"}
)
"""Words that are keywords everywhere; as a name they stand in backquotes."""

STREAM_OPERATORS = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})
STATEMENT_WORDS = frozenset(
    {"CREATE", "REGISTER", "DROP", "ALTER", "SHOW", "DESCRIBE", "EXPLAIN", "SET", "INSERT", "VALUES", "CHECKPOINT"}
    | {"DELETE", "UPDATE"}
)
"""Words that are keywords where a statement begins."""
SHOWN = (
    "tables",
    "streams",
    "relations",
    "queries",
    "views",
    "settings",
    "functions",
    "sources",
    "sinks",
    "checkpoints",
    "constraints",
    "screens",
    "system",
)
"""What SHOW lists."""
KINDS = frozenset({"STREAM", "RELATION", "VIEW", "QUERY"})
TAKE_A_LAMBDA = frozenset(
    f"{prefix}{word}" for prefix in ("", "LIST_", "ARRAY_") for word in ("TRANSFORM", "APPLY", "FILTER", "REDUCE")
)
"""The functions in whose arguments `x ->` begins a lambda; `x =>` does everywhere."""
MAKE_ROWS = frozenset({"UNNEST", "EXPLODE", "GENERATE_SERIES", "RANGE"})
"""What stands in FROM with arguments: a list, or what gives one."""

CAST_TEXTS = frozenset(
    {"TEXT", "VARCHAR", "STRING", "JSON", "JSONB", "INTEGER", "INT", "BIGINT", "FLOAT", "DOUBLE", "REAL", "BOOLEAN"}
    | {"BOOL", "TIMESTAMPTZ", "DATETIME"}
)
"""Types that a text behind them is cast to."""
BEFORE_PARENTHESIS = frozenset({"CAST", "TRY_CAST", "EXISTS", "USING"})
JOIN_WORDS = frozenset({"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER"})
BEGIN_CLAUSES = frozenset(
    {"ORDER", "QUALIFY", "WINDOW", "NATURAL", "ASOF", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "LIMIT"}
)
"""Words that are not reserved, and that an alias may stand before."""
QUOTED_WORDS = (
    RESERVED
    | STREAM_OPERATORS
    | BEFORE_PARENTHESIS
    | JOIN_WORDS
    | BEGIN_CLAUSES
    | {"ANY", "ARRAY", "SOME", "INTO", "WITH", "SYMMETRIC", "SEMI", "ANTI"}
)
"""Words the printer puts in backquotes wherever they are names."""

UNITS = ("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week")
"""The units of time, smallest first."""
UNIT_WORDS = frozenset(u.upper() for u in UNITS) | frozenset(u.upper() + "S" for u in UNITS)
MONTHS = {"month": 1, "quarter": 3, "year": 12}
"""How many months the units behind INTERVAL have whose length is the calendar's."""
MONTH_WORDS = frozenset(u.upper() for u in MONTHS) | frozenset(u.upper() + "S" for u in MONTHS)

TICK_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
"""Nanoseconds of a tick, by `time_unit`."""

BEFORE_LISTS = frozenset({"LPAR", "COMMA", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT", "EQUAL"}) | {
    *("COMPARISON", "LLIST", "LINDEX", "LBRACE", "COLON", "ASSIGN", "ARROW", "LAMBDA"),
}
"""Tokens behind which a bracket begins a list."""
