"""Every aggregate that DuckDB has under the same name gives what DuckDB gives, over rows with NULLs and extremes.

A row of the table of aggregates that DuckDB has, too, and that is compared nowhere, fails here.
"""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pytest

import minidsms
from minidsms.aggregates import AGGREGATES, SYNONYMS

COLUMNS = {
    "n": "INTEGER", "k": "INTEGER", "i": "INTEGER", "h": "INTEGER", "f": "FLOAT", "g": "FLOAT", "x": "FLOAT",
    "t": "TEXT", "b": "BOOLEAN", "d": "DECIMAL(12, 2)",
}  # fmt: skip
"""n is never twice the same.  h and x have the extremes."""
THERE = {"INTEGER": "BIGINT", "FLOAT": "DOUBLE", "TEXT": "VARCHAR"}
FREQUENT = "CASE WHEN n % 3 = 0 THEN n ELSE 7 END"
"""In groups of many rows only 7 is there more than once."""
CALLS = {
    "any_value": ("ANY_VALUE(n * 0)",), "arbitrary": ("ARBITRARY(n * 0)",),
    "approx_count_distinct": ("APPROX_COUNT_DISTINCT(b)",),
    "approx_quantile": ("APPROX_QUANTILE(n * 0, 0.5)",), "approx_top_k": (f"APPROX_TOP_K({FREQUENT}, 1)",),
    "arg_max": ("ARG_MAX(f, n)", "ARG_MAX(n, n, 50)", "ARG_MAX(t, n, 2)"),
    "arg_min": ("ARG_MIN(t, n)", "ARG_MIN(t, n, 4)"), "argmax": ("ARGMAX(d, n)",), "argmin": ("ARGMIN(h, n)",),
    "max_by": ("MAX_BY(x, n)",), "min_by": ("MIN_BY(b, n)",),
    "array_agg": ("ARRAY_AGG(i)", "ARRAY_AGG(t ORDER BY i DESC, n)", "ARRAY_AGG(DISTINCT i ORDER BY i)"),
    "list": ("LIST(x ORDER BY n)", "LIST(d ORDER BY t NULLS FIRST, n DESC)"),
    "avg": ("AVG(i)", "AVG(f)", "AVG(DISTINCT i)", "AVG(d)"), "mean": ("MEAN(f)",), "favg": ("FAVG(f)",),
    "bit_and": ("BIT_AND(h)", "BIT_AND(n)"), "bit_or": ("BIT_OR(h)", "BIT_OR(n)"),
    "bit_xor": ("BIT_XOR(h)", "BIT_XOR(DISTINCT i)"), "product": ("PRODUCT(f)", "PRODUCT(DISTINCT i)"),
    "bool_and": ("BOOL_AND(b)",), "bool_or": ("BOOL_OR(b)",),
    "count": ("COUNT(*)", "COUNT(i)", "COUNT(DISTINCT t)", "COUNT(DISTINCT x)", "COUNT(*) FILTER (WHERE i > 0)"),
    "count_if": ("COUNT_IF(b)", "COUNT_IF(i > 1)"), "countif": ("COUNTIF(NOT b)",),
    "corr": ("CORR(f, g)",), "covar_pop": ("COVAR_POP(f, g)",), "covar_samp": ("COVAR_SAMP(i, g)",),
    "first": ("FIRST(n)", "FIRST(t)"), "last": ("LAST(n)", "LAST(x)"),
    "group_concat": ("GROUP_CONCAT(t, '/')",), "listagg": ("LISTAGG(t, '' ORDER BY n)",),
    "histogram": ("HISTOGRAM(t)", "HISTOGRAM(i)"),
    "max": ("MAX(h)", "MAX(x)", "MAX(t)", "MAX(d)", "MAX(t, 2)", "MAX(b)"),
    "min": ("MIN(h)", "MIN(x)", "MIN(t)", "MIN(d)", "MIN(i, 3)", "MIN(h) FILTER (WHERE b)"),
    "median": ("MEDIAN(i)", "MEDIAN(f)", "MEDIAN(d)"),
    "mode": (f"MODE({FREQUENT})", f"MODE() WITHIN GROUP (ORDER BY {FREQUENT})"),
    "quantile": ("QUANTILE(n, 0.3)",), "quantile_cont": ("QUANTILE_CONT(f, 0.3)", "QUANTILE_CONT(DISTINCT i, 0.5)"),
    "quantile_disc": ("QUANTILE_DISC(i, 0.3)", "QUANTILE_DISC(t, 0.75)", "QUANTILE_DISC(x, 0.5)",
                      "QUANTILE_DISC(h, 1)"),
    "percentile_cont": ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY f DESC)",),
    "percentile_disc": (
        "PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY i)", "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY t DESC)",
    ),
    **{name: (f"{name.upper()}(f, g)",) for name in ("regr_avgx", "regr_avgy", "regr_count", "regr_intercept",
                                                     "regr_r2",
                                                     "regr_slope", "regr_sxx", "regr_sxy", "regr_syy")},
    "stddev": ("STDDEV(f)",), "stddev_pop": ("STDDEV_POP(i)",), "stddev_samp": ("STDDEV_SAMP(d)",),
    "string_agg": (
        "STRING_AGG(t, '-' ORDER BY i, t)", "STRING_AGG(t, '-' ORDER BY f DESC NULLS FIRST, t)",
        "STRING_AGG(DISTINCT t, '+' ORDER BY t DESC)", "STRING_AGG(t, ',' ORDER BY n) FILTER (WHERE b)",
    ),
    "sum": ("SUM(i)", "SUM(f)", "SUM(DISTINCT i)", "SUM(d)", "SUM(i) FILTER (WHERE t > 'a')"),
    "fsum": ("FSUM(g)",), "kahan_sum": ("KAHAN_SUM(f)",),
    "var_pop": ("VAR_POP(f)", "VAR_POP(DISTINCT i)"), "var_samp": ("VAR_SAMP(i)",), "variance": ("VARIANCE(f)",),
}  # fmt: skip
"""By name, in calls where both settle ties alike, and approximations have nothing to be wrong about."""
OTHERWISE = {
    "MEDIAN(d)": "MEDIAN(CAST(d AS DOUBLE))",
    **{f"{name}({condition})": f"COALESCE(COUNT_IF({condition}), 0)"
       for name, condition in (("COUNT_IF", "b"), ("COUNT_IF", "i > 1"), ("COUNTIF", "NOT b"))},
}  # fmt: skip
"""Where DuckDB is asked otherwise: the middle of two DECIMALs is one there, and COUNT_IF of NULLs only is NULL."""
EVERY = [call for calls in CALLS.values() for call in calls]
GROUPINGS = ("k", "ROLLUP (k, b)", "GROUPING SETS ((k), (b), ())", "CUBE (k, t)")
ROWS = 90
INSIDE = 50


def _rows(seed: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    floats = [None, -2.5, 0.5, 0.125, 3.0, -1.0, 6.0]
    choices: dict[str, list[Any]] = {
        "k": [0, 1, 2], "i": [*range(-3, 6), 2**40, None], "h": [None, 2**63 - 1, -(2**63), -1, 12, 2**62], "f": floats,
        "g": floats, "x": [None, math.inf, -math.inf, 1e300, -1e300, 5e-324, 0.0],
        "t": ["a", "B", "é", "", "zz", None], "b": [True, False, None], "d": [None, "-0.05", "12.50", "9999999999.99"],
    }  # fmt: skip
    return [(n, *(rng.choice(choices[c]) for c in list(COLUMNS)[1:])) for n in rng.sample(range(10 * ROWS), ROWS)]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.8e}") + 0.0 if abs(value) > 1e-9 else 0.0
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_aggregates_that_duckdb_has_give_what_duckdb_gives(grouping: str) -> None:
    keys = ["k"] if grouping == "k" else ["k", "t"] if "t" in grouping else ["k", "b"]
    calls = [c for c in EVERY[:: 1 if grouping in GROUPINGS[:2] else 3] if grouping == "k" or FREQUENT not in c]
    rows = _rows(len(grouping))
    with minidsms.connect() as db, duckdb.connect() as duck:
        db.execute(f"CREATE STREAM S ({', '.join(f'{n} {t}' for n, t in COLUMNS.items())})")
        duck.execute(f"CREATE TABLE S ({', '.join(f'{n} {THERE.get(t, t)}' for n, t in COLUMNS.items())})")
        shown = ", ".join([*keys, *(f"GROUPING({key})" for key in keys if grouping != "k")])
        named = ", ".join(f"{call} AS r{i}" for i, call in enumerate(calls))
        query = db.query(f"SELECT {shown}, {named} FROM S [RANGE {INSIDE}] GROUP BY {grouping}")
        db.push("S", rows, ts=list(range(ROWS)))
        db.advance(ROWS - 1)
        duck.execute("SET threads = 1")
        duck.executemany(f"INSERT INTO S VALUES ({', '.join('?' * len(COLUMNS))})", rows[-INSIDE:])
        asked = ", ".join(OTHERWISE.get(call, call) for call in calls)
        want = duck.execute(f"SELECT {shown}, {asked} FROM S GROUP BY {grouping}").fetchall()
        got = query.snapshot()
    width = len(got[0]) - len(calls)
    mine, theirs = ({tuple(row[:width]): _plain(row[width:]) for row in found} for found in (got, want))
    assert mine.keys() == theirs.keys()
    differing = {
        (key, call): (one, other)
        for key, found in mine.items()
        for call, one, other in zip(calls, found, theirs[key])
        if one != other
    }
    assert not differing


def test_no_aggregate_that_duckdb_has_is_compared_nowhere() -> None:
    there = {
        name
        for (name,) in duckdb.sql(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"
        ).fetchall()
    }
    assert not (set(AGGREGATES) | set(SYNONYMS)) & there - set(CALLS)
