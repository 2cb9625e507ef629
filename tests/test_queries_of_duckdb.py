"""Queries written for DuckDB give here what DuckDB gives, over the same table."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import minidsms

_TICK = datetime.timedelta(microseconds=1)
_DAY = datetime.datetime(2024, 1, 31, 10, 30)
ROWS = [
    (f"k{i % 3}", None if i % 7 == 3 else i * 5 % 11, i * 1.25 - 9, _DAY + i * datetime.timedelta(days=29, seconds=7))
    for i in range(30)
]
COLUMNS = {"k": pa.string(), "v": pa.int64(), "f": pa.float64(), "t": pa.timestamp("us")}

NAMES = [
    "SELECT k, v * 2 AS w FROM S WHERE w > 3",
    "SELECT v + 1 AS w, w * 2 AS x FROM S WHERE x BETWEEN 3 AND 12 AND w <> 4",
    "SELECT k AS v, f AS g FROM S WHERE v > 3 AND g < 20",  # v is the column
    "SELECT CASE WHEN v > 5 THEN 'high' ELSE 'low' END AS level, COUNT(*) AS n FROM S WHERE level = 'high' GROUP BY 1",
    "SELECT v % 4 AS w, COUNT(*) AS n FROM S WHERE w > 0 GROUP BY w HAVING n * 2 > 5",
    "SELECT v % 4 AS w, COUNT(*) FROM S WHERE w > 0 GROUP BY ROLLUP (w)",
    "SELECT k, v * 2 AS w FROM S WHERE w IN (SELECT v FROM S WHERE v > 3)",
    "SELECT k, v * 2 AS w, f FROM S ORDER BY -w, f LIMIT 4",
    "SELECT *, -v AS v FROM S ORDER BY v, f LIMIT 4",  # v is the name that AS gives
    "SELECT v + 0 AS w, * FROM S ORDER BY 3 DESC, 4, 2 LIMIT 5",
    "SELECT * REPLACE (-v AS v) FROM S ORDER BY v, f LIMIT 4",
    "SELECT k, SUM(v) AS v, COUNT(*) AS f FROM S GROUP BY k HAVING v > 40 AND f > 3 AND k <> 'k1'",
    "SELECT v % 2 AS o, COUNT(*) AS k FROM S GROUP BY o HAVING k > 3",  # where k is a TEXT
    "SELECT DISTINCT k, v * 2 AS w FROM S WHERE w IS NOT NULL",
    "SELECT k, v * 2 AS w, ROW_NUMBER() OVER (PARTITION BY k ORDER BY w, f) AS r FROM S WHERE w > 3 QUALIFY r = 1",
]

MONTHS = [
    "SELECT t + INTERVAL '1 month', t - INTERVAL 3 MONTHS, t + INTERVAL '1 year 2 days', INTERVAL 1 QUARTER + t FROM S",
    "SELECT CAST(t AS DATE) + INTERVAL '1' MONTH, CAST(t AS DATE) - INTERVAL 1 YEAR FROM S",
    "SELECT t - INTERVAL '13 months 1 day', t + INTERVAL '-1 month', t - (INTERVAL '1 month' + INTERVAL 1 DAY) FROM S",
    "SELECT t + INTERVAL '1 month' + INTERVAL '1 month', t - INTERVAL '1 month' + INTERVAL '1 month' FROM S",
    "SELECT t + v * INTERVAL '1 month', t - INTERVAL (v + 1) MONTHS, t + INTERVAL (v) MINUTE FROM S",
    "SELECT COUNT(*) FROM S WHERE t BETWEEN TIMESTAMP '2024-05-31' - INTERVAL '3 months' AND TIMESTAMP '2025-05-31'",
    "SELECT TIME_BUCKET(INTERVAL '2 months', t), TIME_BUCKET(INTERVAL '1 year', t - INTERVAL 30 YEARS) FROM S",
    "SELECT t + INTERVAL '0 months', CAST(t AS DATE) - INTERVAL '0 years 1 day' FROM S",
    "SELECT TIME_BUCKET(INTERVAL '5 months', t), TIME_BUCKET(INTERVAL 1 QUARTER, t), t + INTERVAL '25:00:01.5' FROM S",
]

LENGTHS = [
    "SELECT (t - TIMESTAMP '2024-05-01') * 1.5, 0.25 * (t - TIMESTAMP '2024-05-01'), INTERVAL '7 minutes' / 2.0 FROM S",
    "SELECT t + f * INTERVAL '1 hour', t + INTERVAL '90 seconds' / 4, t - INTERVAL (v) HOUR / 3.0 FROM S",
    "SELECT k, MEDIAN(t - TIMESTAMP '2024-05-01') FROM S GROUP BY k",
    "SELECT MEDIAN(v * INTERVAL '1 second') FILTER (WHERE v > 4) AS m FROM S HAVING m > INTERVAL '5 seconds'",
    "SELECT SIGN(CAST(f AS DECIMAL(9, 2))), SIGN(v - 4) FROM S",
]

NESTED = [
    "SELECT LEN([v, 1]), LENGTH(['a', k]), LEN(k) FROM S",
    "SELECT k, LEN(LIST(v ORDER BY f)) FROM S GROUP BY k",
    "SELECT {'a': 1, 'b': v}.b, {'a': {'c': k}}.a.c, MAP {'x': v, 'y': 2}['x'] FROM S",
    "SELECT k FROM S WHERE k SIMILAR TO 'k[01]' OR k NOT SIMILAR TO '(k|x)(0|1)'",
]

COLUMN_NAMES = [
    "SELECT x, b, t FROM S AS a (x, b) WHERE a.x <> 'k1'",
    "SELECT * EXCLUDE (w) FROM S a (k, w) ORDER BY f LIMIT 3",
    "SELECT a.x, b.x, COUNT(*) FROM S AS a (y, x) JOIN S b (y, x) USING (y) GROUP BY ALL",
    "SELECT k, v FROM S AS a (v, k) ORDER BY f LIMIT 4",
    "SELECT * RENAME (k AS key, V AS n) FROM S WHERE v > 3",
    "SELECT * EXCLUDE t RENAME k AS key FROM S",
    "SELECT * EXCLUDE (t) REPLACE (v + 1 AS v) RENAME (k AS key) FROM S ORDER BY key, f LIMIT 5",
    "SELECT v, k FROM S UNION ALL BY NAME SELECT k AS K, f FROM S WHERE v > 3",
    "SELECT v % 3 AS a, k FROM S UNION BY NAME SELECT k, v % 2 AS b FROM S UNION ALL BY NAME SELECT v AS b FROM S",
    "SELECT v % 3 AS a, k FROM S UNION BY NAME SELECT k, v % 2 AS b FROM S UNION ALL BY NAME SELECT 1 AS b",
    "SELECT v, k FROM (SELECT v, k FROM S UNION ALL BY NAME VALUES (1)) WHERE v > 2",
]

FRAMES = [
    f"SELECT v, SUM(v) OVER (ORDER BY CAST(t AS DATE) {frame}) AS s FROM S"
    for frame in (
        "RANGE BETWEEN INTERVAL '60 days' PRECEDING AND CURRENT ROW",
        "RANGE BETWEEN 29 PRECEDING AND 30 FOLLOWING",
        "RANGE BETWEEN INTERVAL '9 weeks' PRECEDING AND INTERVAL '24 hours' PRECEDING",
    )
] + [
    f"SELECT k, v, {call} OVER (PARTITION BY k ORDER BY {key} GROUPS {frame}) AS s FROM S"
    for call in ("SUM(v)", "COUNT(*)", "MAX(f)", "AVG(DISTINCT v)")
    for key in ("v", "v % 3 DESC NULLS FIRST, v % 2", "COALESCE(v % 4, 1) DESC")
    for frame in ("2 PRECEDING", "BETWEEN 1 PRECEDING AND 1 FOLLOWING", "BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
]

OF_ROWS = [
    "SELECT (v, f) < (5, 3.0), (k, v) >= ('k1', 4), (v, f) BETWEEN (2, -1.5) AND (5, 6.0) FROM S WHERE v IS NOT NULL",
    "SELECT (v, k) IS DISTINCT FROM (5, 'k1'), (v, k, f) IS NOT DISTINCT FROM (5, k, f) FROM S",
    "SELECT k FROM S WHERE (v, k) = ANY (SELECT v, 'k1' FROM S WHERE f > 3)",
    "SELECT k FROM S WHERE (v, k) <> ALL (SELECT v, 'k1' FROM S WHERE f > 30)",
    "SELECT SUBSTRING(k FROM 2 FOR 1), SUBSTRING(k FOR 1) FROM S",
]

SERIES = [
    "SELECT INTEGER '5' + v, VARCHAR 'x' || k, TEXT 'y', BOOLEAN 'true', DOUBLE '1.5' * f, BIGINT '7' FROM S",
    "SELECT k, v, LENGTH(ARRAY_TO_STRING(ARRAY(SELECT t.k FROM S AS t WHERE t.v = S.v + 1), '-')) FROM S",
    "SELECT x FROM GENERATE_SERIES(1, 5) AS t (x), S",
    "SELECT i, COUNT(v) FROM RANGE(7) AS t (i) LEFT JOIN S ON v = i GROUP BY i",
    "SELECT i, k FROM S RIGHT JOIN GENERATE_SERIES(9, 1, -2) AS t (i) ON v = i",
    "SELECT k, x, n FROM S, UNNEST([v, 7, NULL]) WITH ORDINALITY AS u (x, n) WHERE n > 1",
    "SELECT k, x FROM S LEFT JOIN UNNEST([1, 3]) WITH ORDINALITY AS u (x, n) ON x = v AND n = 2",
    *(
        f"SELECT k, ARRAY_TO_STRING(RANGE({of}), '-') FROM S WHERE v > 0"
        for of in ("3", "2, 5", "10, 0, -3", "5, v", "0, 9, 3", "v")
    ),
]

BEHIND_PARENTHESES = [
    f"{text} ORDER BY v DESC, k NULLS FIRST LIMIT 3"
    for text in (
        "SELECT k, v FROM S UNION (SELECT 'x', v % 3 FROM S)",
        "(SELECT k, v FROM S) UNION ALL (SELECT k, v + 1 FROM S ORDER BY f LIMIT 4)",
        "SELECT k, v FROM S EXCEPT (SELECT k, v FROM S WHERE v > 3 UNION SELECT 'k1', 2)",
        "SELECT k, v FROM S UNION ALL SELECT k, 12 FROM S WHERE v > 6 INTERSECT ALL (SELECT k, 12 FROM S)",
        "WITH w AS (SELECT k, v % 5 AS v FROM S) SELECT k, v FROM w UNION (SELECT 'a', v FROM w)",
        "(SELECT k, v FROM S INTERSECT SELECT k, v FROM S WHERE f > 0)",
        "((SELECT k, v FROM S ORDER BY f LIMIT 9))",
    )
] + ["SELECT f, (SELECT v FROM S AS a UNION (SELECT S.v + 5) ORDER BY v LIMIT 1) AS least FROM S"]
"""ORDER BY of the whole, where what stands before it is in parentheses."""

CONSTANT_KEYS = [
    "SELECT 1, k, COUNT(*) AS c FROM S GROUP BY 1, k",
    "SELECT 1, SUM(v) + 1 FROM S GROUP BY 1",
    "SELECT 'all' AS g, SUM(v) FROM S WHERE v > 100 GROUP BY g",
    "SELECT NULL AS g, k, MAX(v), RANK() OVER (PARTITION BY g ORDER BY k) FROM S GROUP BY g, 2 HAVING MAX(v) > 3",
]

DIFFERENT = [
    "SELECT k, STRING_AGG(DISTINCT k, '-' ORDER BY k) FILTER (WHERE f > 0) FROM S GROUP BY k",
    *(
        f"SELECT ARRAY_TO_STRING(ARRAY_AGG(DISTINCT v ORDER BY {order}) FILTER (WHERE f > 0), '-') FROM S GROUP BY k"
        for order in ("v", "v DESC NULLS FIRST")
    ),
]
"""Different values of chosen rows, in their order."""

OTHERS = [
    "SELECT DAYOFMONTH(t), WEEKOFYEAR(t), COUNT(*) FROM S GROUP BY ALL",
    "SELECT k, FIRST(v ORDER BY f) AS a, LAST(v ORDER BY f) AS b, FIRST(v ORDER BY f DESC) AS c FROM S GROUP BY k",
    "SELECT k, FIRST(v ORDER BY f) FILTER (WHERE v > 3) AS a FROM S GROUP BY k",
    "SELECT LIST_SUM(LIST_FILTER([1, 2], lambda x: x > v)), LIST_MAX(LIST_TRANSFORM([v], lambda x, i: x * i)) FROM S",
    "SELECT TIME_BUCKET('5 days', t) AS b, COUNT(*) FROM S GROUP BY b",
]
"""Queries as they are written of themselves: the first and last by an order, texts put together, buckets of time."""


def _canonical(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """With instants and lengths of time in microseconds, as they are here."""
    return tuple(
        (value - datetime.datetime(1970, 1, 1)) // _TICK if isinstance(value, datetime.datetime)
        else value // _TICK if isinstance(value, datetime.timedelta)
        else float(f"{value:.10e}") if isinstance(value, float) else value
        for value in row
    )  # fmt: skip


QUERIES = [*NAMES, *MONTHS, *LENGTHS, *NESTED, *COLUMN_NAMES, *FRAMES, *OF_ROWS, *SERIES, *OTHERS]
QUERIES += [*BEHIND_PARENTHESES, *CONSTANT_KEYS, *DIFFERENT]


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_of_duckdb_gives_here_what_it_gives_there(text: str) -> None:
    table = pa.table({name: pa.array(column, type_) for (name, type_), column in zip(COLUMNS.items(), zip(*ROWS))})
    with minidsms.connect(time_unit="us") as db, duckdb.connect() as there:
        db.execute("CREATE RELATION S (k TEXT, v INTEGER, f FLOAT, t TIMESTAMP)")
        query = db.query(text)
        db.push("S", ROWS, ts=1)
        db.advance(2)
        there.register("S", table)
        want = Counter(map(_canonical, there.execute(text).fetchall()))
        got = Counter(_canonical(change.row) for change in query.fetch())
    assert got == want
