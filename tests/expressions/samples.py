"""An expression for every built-in function and operator, and for every aggregate, over the columns of streams Sa, Sc
and Sd (`minidsms.testing.grammar`).
"""

from __future__ import annotations

TEXTS = {name: f"{name.upper()}(t)" for name in ("upper", "lower", "trim", "ltrim", "rtrim", "length")}
FLOATS = {name: f"{name.upper()}(x)" for name in ("sqrt", "exp", "ln", "log10", "floor", "ceil")}
PARTS = {name: f"{name.upper()}(at)" for name in ("year", "month", "day", "hour", "minute", "second", "dayofweek")}
SAMPLES: dict[str, str] = {
    **TEXTS,
    **FLOATS,
    **PARTS,
    **{op: f"k {op} v" for op in ("+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=")},
    "neg": "-k",
    "||": "t || 'a'",
    "and": "k > 1 AND v > 1",
    "or": "k > 1 OR v > 1",
    "not": "NOT k > 1",
    "like": "t LIKE 'a%'",
    "in": "k IN (1, v)",
    "is null": "k IS NULL",
    "is distinct from": "k IS DISTINCT FROM v",
    "abs": "ABS(k - v)",
    "sign": "SIGN(k - v)",
    "round": "ROUND(x * 3, 1)",
    "mod": "MOD(k, v)",
    "least": "LEAST(k, v)",
    "greatest": "GREATEST(k, v)",
    "coalesce": "COALESCE(k, v, 0)",
    "nullif": "NULLIF(k, v)",
    "power": "POWER(x, 2)",
    "substring": "SUBSTRING(t, 1, 2)",
    "replace": "REPLACE(t, 'a', 'b')",
    "starts_with": "STARTS_WITH(t, 'a')",
    "concat": "CONCAT(t, '-', t)",
    "concat_ws": "CONCAT_WS('-', t, 'a')",
    "date_part": "DATE_PART('hour', at)",
}
"""By the name under which `cql.functions` knows it."""

AGGREGATES: dict[str, str] = {
    **{name: f"{name.upper()}(v)" for name in ("count", "sum", "avg", "min", "max", "first", "last")},
    **{name: f"{name.upper()}(x)" for name in ("variance", "stddev")},
}


def stream_of(expression: str) -> str:
    """The stream whose columns the expression reads."""
    return "Sd" if "at)" in expression else "Sa"
