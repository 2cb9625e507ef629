"""Spark gives the changes that the definition gives: every kind of window, operator and failure, on few rows.

The rows have NULLs, ties, a gap of years and streams of one row or none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import minidsms
from minidsms.spark import run
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case, declaration, random_case
from tests.long.spark_answers import ON_SPARK, check_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YEARS = 3 * 365 * 86_400_000
SA = [
    (0, 1, 2, 0.5, "a"),
    (0, 1, None, 1.5, "b"),
    (1, 2, 3, None, "a"),
    (1, None, 3, -1.0, None),
    (1, 2, 3, 0.1, "a"),
    (4, 1, 1, 0.2, "c"),
    (7, 1, 2, 0.5, "a"),
    (YEARS, 2, 1, 2.5, "b"),
    (YEARS, 1, None, 0.3, "b"),
    (YEARS + 2, 2, 5, None, None),
]
SB = [(0, 1, 3, "a"), (2, 2, None, "a"), (2, 1, 2, "b"), (5, None, 1, "c"), (YEARS + 1, 2, 2, "b")]
SC = [(3, 1, True)]
REL = [(0, 1, 1, 5, "a"), (0, 1, 2, 6, "b"), (2, -1, 1, 5, "a"), (5, 1, 1, 7, None), (5, 1, 1, 7, None)]

QUERIES = {
    "sums and counts of groups": "SELECT k, COUNT(*), COUNT(v), SUM(v), AVG(x), SUM(x) FROM Sa [RANGE 3] GROUP BY k",
    "an aggregate over all, from the first arrival on": "SELECT COUNT(*), SUM(v), MAX(x), MIN(t) FROM Sa [RANGE 2]",
    "extremes, variance, first and last": (
        "SELECT k, MIN(x), MAX(t), STDDEV(v), FIRST(v), LAST(t) FROM Sa [RANGE 5] GROUP BY k"
    ),
    "means of intervals": (
        "SELECT k, AVG(CAST(v AS INTERVAL)) AS m, EXTRACT(EPOCH FROM SUM(CAST(v AS INTERVAL))) AS s"
        " FROM Sa [RANGE 3] GROUP BY k"
    ),
    "middles and multiples of intervals": (
        "SELECT k, MEDIAN(CAST(v AS INTERVAL)) AS m, SUM(CAST(v AS INTERVAL)) * 1.5 AS s,"
        " MIN(CAST(v AS INTERVAL)) / 0.4 AS d FROM Sa [RANGE 3] GROUP BY k"
    ),
    "what fails left of IN where it is not asked for": (
        "SELECT k, CASE WHEN t IS NULL THEN CAST(t AS INTEGER) IN (SELECT v FROM Sb [RANGE 3]) END FROM Sa [RANGE 3]"
    ),
    "what fails left of IN where it is asked for": (
        "SELECT k, CASE WHEN k = 2 THEN CAST(t AS INTEGER) = ANY (SELECT v FROM Sb [RANGE 3]) END FROM Sa [RANGE 3]"
    ),
    "months, and names of the select list": (
        "SELECT TIMESTAMP '2024-01-31' + INTERVAL (v) MONTHS AS a, {'u': v}.u + 1 AS w, t SIMILAR TO '(a|c)%' AS m, "
        "SIGN(CAST(x AS DECIMAL(9, 2))) AS g FROM Sa [RANGE 3] WHERE w > 2"
    ),
    "neighbours with a default": "SELECT k, v, LAG(v, 1, k) OVER (PARTITION BY t ORDER BY v) AS l FROM Sa [ROWS 4]",
    "frames of states": (
        "SELECT k, v, STDDEV(x) OVER (PARTITION BY k ORDER BY v, t ROWS 2 PRECEDING) AS d"
        ", STRING_AGG(t) OVER (PARTITION BY k ORDER BY v) AS s FROM Sa [RANGE 4]"
    ),
    "distinct aggregates": "SELECT COUNT(DISTINCT v), SUM(DISTINCT v), AVG(DISTINCT x) FROM Sa [ROWS 4]",
    "ROWS by arrival": "ISTREAM (SELECT v, t FROM Sa [ROWS 2])",
    "extremes of what only grows": (
        "SELECT k, MIN(x), MAX(t), FIRST(v), LAST(t), STDDEV(v), COUNT(DISTINCT v) FROM Sa GROUP BY k"
    ),
    "extremes of all that was": "SELECT MIN(x), MAX(v), FIRST(t), LAST(v), COUNT(DISTINCT t) FROM Sa",
    "ROWS that slide": "SELECT k, v FROM Sa [ROWS 3 SLIDE 2]",
    "PARTITION, within a RANGE": "DSTREAM (SELECT k, v FROM Sa [PARTITION BY k ROWS 1 RANGE 4])",
    "RANGE that slides, over all": "RSTREAM (SELECT COUNT(*) FROM Sb [RANGE 4 SLIDE 1000000000])",
    "a join of windows with a relation": (
        "SELECT Sa.v, Sb.t, Rel.a FROM Sa [RANGE 3], Sb [ROWS 2], Rel "
        "WHERE Sa.k = Sb.k AND Sb.k = Rel.k AND Rel.a > Sa.v"
    ),
    "a join of groups that are still there at the end": (
        "SELECT A.k, A.n, B.n FROM (SELECT k, COUNT(*) AS n FROM Sa [RANGE 50] GROUP BY k) A, "
        "(SELECT k, MAX(v) AS n FROM Sb [RANGE 50] GROUP BY k) B WHERE A.k = B.k"
    ),
    "an outer join": "SELECT Sa.k, Sb.v FROM Sa [RANGE 2] FULL JOIN Sb [RANGE 3] ON Sa.k = Sb.k",
    "an outer join that asks subqueries": (
        "SELECT Sa.k, Sb.v FROM Sa [RANGE 2] LEFT JOIN Sb [RANGE 3] ON Sa.k = Sb.k"
        " AND Sb.v IN (SELECT a FROM Rel) AND Sa.v >= (SELECT MIN(a) FROM Rel WHERE Rel.k = Sa.k)"
    ),
    "groups of constants": "SELECT 1 AS one, k, COUNT(*) FROM Sa [RANGE 3] GROUP BY one, k",
    "one group, of a constant": "SELECT 'all' AS every, SUM(v) FROM Sa [RANGE 3] GROUP BY every",
    "NOT IN, with NULLs": "SELECT k, v FROM Sa [RANGE 3] WHERE v NOT IN (SELECT v FROM Sb [RANGE 2])",
    "EXISTS of a correlated query, over an unbounded window": (
        "SELECT k FROM Sa [RANGE 3] WHERE EXISTS (SELECT * FROM Sb WHERE Sb.k = Sa.k AND Sb.t = 'b')"
    ),
    "a scalar query": "SELECT v, (SELECT MAX(a) FROM Rel WHERE Rel.k = Sa.k) FROM Sa [NOW]",
    "queries beside each row": (
        "SELECT Sa.k, x.t, y.w FROM Sa [RANGE 3] LEFT JOIN LATERAL (SELECT t FROM Sb [RANGE 4] WHERE Sb.k = Sa.k"
        " ORDER BY v LIMIT 1) AS x ON TRUE, LATERAL (SELECT MAX(a - v) AS w FROM Rel WHERE a >= Sa.k) AS y"
    ),
    "what elements find as of their instants": (
        "SELECT A.k, A.v, B.t FROM Sa [RANGE 3] AS A ASOF LEFT JOIN Sb AS B ON A.k = B.k AND A.ts >= B.ts"
    ),
    "set operators": ("SELECT k FROM Sa [RANGE 2] EXCEPT ALL SELECT k FROM Sb [RANGE 2] UNION SELECT a FROM Rel"),
    "INTERSECT": "SELECT DISTINCT t FROM Sa [RANGE 3] INTERSECT ALL SELECT t FROM Sb [RANGE UNBOUNDED]",
    "RSTREAM when a window or a relation changes": "RSTREAM (SELECT Sa.k, a FROM Sa [RANGE 2], Rel WHERE Sa.k = Rel.k)",
    "a window over a derived stream": (
        "SELECT k, n FROM (ISTREAM (SELECT k, COUNT(*) AS n FROM Sa [RANGE 3] GROUP BY k)) [PARTITION BY k ROWS 1]"
    ),
    "a stream that never says anything": "SELECT COUNT(*) FROM Sd [RANGE 3]",
    "a stream of one row": "SELECT k, b FROM Sc [RANGE 2]",
    "a failure, and the answers before it": "SELECT v * 4611686018427387904 FROM Sa [RANGE 1]",
    "a failure hidden by another condition": "SELECT k FROM Sa [RANGE 1] WHERE v * 4611686018427387904 > 0 AND v < 2",
    "user functions, which fail": "SELECT uf_tag(t, v), uf_half(x), uf_twice(v + 1) FROM Sa [ROWS 2]",
    "texts of floats, and floats of texts": (
        "SELECT CAST(x AS TEXT), CAST(CAST(x AS TEXT) AS FLOAT), ROUND(x, v) FROM Sa [ROWS 3]"
    ),
    "a sum that overflows": "SELECT SUM(v * 3074457345618258602) FROM Sa [RANGE 1] GROUP BY t",
}


def case_of(query: str) -> Case:
    """The rows above, and a query over them."""
    names = ("Sa", "Sb", "Sc", "Sd", "Rel")
    used = [name for name in names if name in query]
    feed = {
        "Sa": tuple((ts, 1, row) for ts, *row in SA),
        "Sb": tuple((ts, 1, row) for ts, *row in SB),
        "Sc": tuple((ts, 1, row) for ts, *row in SC),
        "Rel": tuple((ts, sign, row) for ts, sign, *row in REL),
    }
    pushes = [
        Push(name, tuple((ts, sign, tuple(row)) for ts, sign, row in feed[name]))
        for name in ("Rel", "Sa", "Sb", "Sc")
        if name in used
    ]
    return Case(tuple(declaration(name) for name in used), query, (*pushes, Advance(YEARS + 9)))


@pytest.mark.parametrize("name", QUERIES)
def test_spark_answers_as_the_definition_says(spark: SparkSession, name: str) -> None:
    assert check_spark(spark, case_of(QUERIES[name])) == "agreed"


@pytest.mark.parametrize("seed", [1, 10])
def test_spark_answers_a_generated_query(spark: SparkSession, seed: int) -> None:
    assert check_spark(spark, random_case(seed, ON_SPARK)) == "agreed"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_spark_answers_generated_queries(spark: SparkSession, seed: int) -> None:
    assert check_spark(spark, random_case(seed, ON_SPARK)).startswith(("agreed", "refused"))


def test_sums_of_small_negative_floats_keep_their_digits(spark: SparkSession, tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v FLOAT) ARCHIVE '{tmp_path}'")
        db.push("S", [(-1e-5,), (-1.1,), (1e12,)], ts=[1, 20, 40])
    told = run("SELECT SUM(v) AS total FROM S [RANGE 10]", str(tmp_path), spark=spark, by="frames")
    totals = [row.total for row in told.where("_sign = 1 AND total IS NOT NULL").sort("_ts").collect()]
    assert totals == pytest.approx([-1e-5, -1.1, 1e12], rel=1e-14)
