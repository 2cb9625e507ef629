"""GROUPING SETS, ROLLUP and CUBE (docs/semantics R10), beside DuckDB; and how they read."""

from __future__ import annotations

import random
import re

import duckdb
import pytest

import minidsms
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query

ROWS = [
    (rng.choice((1, 2, None)), rng.choice(("a", "b", None)), rng.choice((1, 5, 7, None)))
    for rng in [random.Random(3)]
    for _ in range(30)
]
GROUPED = (
    "SELECT k, t, COUNT(*), SUM(v), GROUPING(k), GROUPING(t) FROM S GROUP BY ROLLUP (k, t)",
    "SELECT k, t, COUNT(*), SUM(v), GROUPING(t) FROM S GROUP BY CUBE (k, t)",
    "SELECT k, t, MAX(v) FROM S GROUP BY GROUPING SETS ((k, t), (t), (), (t))",
    "SELECT k + 1 AS n, COUNT(k) FROM S GROUP BY GROUPING SETS ((n), ()) HAVING COUNT(*) > 2",
    "SELECT k, v % 2 AS odd, t, COUNT(*) FROM S GROUP BY k, ROLLUP (v % 2, t)",
    "SELECT k, t, v, COUNT(*) FROM S GROUP BY ROLLUP (k), CUBE (t, v)",
    "SELECT COALESCE(t, '?'), COUNT(*) FROM S WHERE v > 1 GROUP BY ROLLUP (t)",
    "SELECT DISTINCT t FROM S GROUP BY GROUPING SETS ((k, t), (t))",
    "SELECT K, COUNT(*) FROM S GROUP BY ROLLUP (1)",
    "SELECT S.k, COUNT(*) FROM S GROUP BY GROUPING SETS ((S.k), ())",
    "SELECT k, t, COUNT(*), GROUPING(k, t) FROM S GROUP BY GROUPING SETS (k, (k, t), t, ())",
    "SELECT k, t, v % 2 AS odd, COUNT(*) FROM S GROUP BY GROUPING SETS (ROLLUP (k, t), CUBE (odd), GROUPING SETS (t))",
    "SELECT k, t, v % 2 AS odd, GROUPING(t, odd, k), SUM(v) FROM S GROUP BY ROLLUP ((k, t), odd)",
    "SELECT k, t, v % 2 AS odd, SUM(v) FROM S GROUP BY CUBE ((k, t), (odd, t))",
    "SELECT k, t, SUM(v) FROM S GROUP BY (k, t)",
    "SELECT k, t, SUM(v) FROM S GROUP BY k, (t)",
    "SELECT SUM(v) FROM S GROUP BY ()",
    "SELECT k, SUM(v) FROM S GROUP BY k, ()",
    "SELECT 1 AS one FROM S GROUP BY ()",
    "SELECT v % k AS n, k, COUNT(*) FROM S GROUP BY ROLLUP (v % k, k)",
    "SELECT v + k AS n, COUNT(*), GROUPING(v + k) FROM S GROUP BY CUBE (n, k)",
    "SELECT v % 2 AS v, COUNT(*) FROM S GROUP BY ROLLUP (v)",
    "SELECT COALESCE(k, 9) AS k, COUNT(*) FROM S GROUP BY CUBE (k, t)",
    "SELECT k, t, SUM(v) AS s, RANK() OVER (ORDER BY SUM(v) DESC) AS r FROM S GROUP BY ROLLUP (k, t)",
    "SELECT k, COUNT(*) OVER (), SUM(SUM(v)) OVER (PARTITION BY GROUPING(k)) FROM S GROUP BY CUBE (k, t)",
    "SELECT DISTINCT t, COUNT(*) OVER (PARTITION BY t) AS n FROM S GROUP BY ROLLUP (t, k)",
    "SELECT k, COUNT(*) FILTER (WHERE v > 5) AS n, LAG(SUM(v), 1, 0) OVER (ORDER BY k NULLS LAST, GROUPING(k)) AS l "
    "FROM S GROUP BY ROLLUP (k)",
    "SELECT k AS z, COUNT(*) AS n FROM S GROUP BY CUBE (z, t) HAVING n > 2 "
    "QUALIFY DENSE_RANK() OVER (PARTITION BY z ORDER BY n DESC) = 1",
    "SELECT t, SUM(v) * 2 - MAX(SUM(v)) OVER w AS s, SUM(v) FROM S GROUP BY ROLLUP (t, k) WINDOW w AS (ORDER BY t)",
    "SELECT t, k, SUM(v) AS s FROM S GROUP BY ROLLUP (t, k) ORDER BY s DESC, t NULLS LAST, k NULLS LAST LIMIT 4",
    "SELECT t, k FROM S GROUP BY CUBE (t, k) ORDER BY SUM(v), 1 NULLS LAST, 2 NULLS LAST LIMIT 3 OFFSET 2",
    "SELECT DISTINCT t, COUNT(*) FROM S GROUP BY ROLLUP (t, k) ORDER BY COUNT(*) DESC, t NULLS LAST LIMIT 3",
    "SELECT * EXCLUDE (t, v), RANK() OVER (ORDER BY COUNT(*)) FROM S GROUP BY CUBE (k, t)",
    "SELECT s.*, COUNT(*) FROM S AS s GROUP BY GROUPING SETS ((t, v), (k, v), (k, t, v))",
    "SELECT * REPLACE (v % 2 AS v), COUNT(*) FROM S GROUP BY ROLLUP (k, t, v % 2) ORDER BY 4 DESC, 1, 2, 3 LIMIT 5",
    "SELECT MAX(COLUMNS('k|v')), RANK() OVER (ORDER BY MIN(t) NULLS LAST) FROM S GROUP BY ROLLUP (t)",
    "SELECT S.k, GROUPING(k), COUNT(*) FROM S GROUP BY CUBE (k, S.t) ORDER BY COUNT(*), S.k, t NULLS LAST LIMIT 5",
    "SELECT SUM(v) * 2 AS a, SUM(v) * 2.0 + 0.5 AS b, RANK() OVER (ORDER BY SUM(v) * 2.0) FROM S GROUP BY ROLLUP (k)",
    "SELECT LIST_SUM(LIST_TRANSFORM([1, 2], lambda k: k + 1)) AS n, k FROM S GROUP BY ROLLUP (k)",
    "SELECT LIST_SUM(LIST_TRANSFORM([SUM(v) OVER (), k], lambda v, i: v * k + i)) FROM S GROUP BY CUBE (k, v)",
    "SELECT k, t, (SELECT COUNT(*) FROM S AS o WHERE S.k IS NOT DISTINCT FROM o.k AND S.t IS NULL) "
    "FROM S GROUP BY CUBE (k, t)",
    "SELECT SUM((SELECT COUNT(*) FROM S AS o WHERE S.k IS NULL)) FROM S GROUP BY GROUPING SETS (k, t) "
    "HAVING MIN(v) <= (SELECT MIN(o.v) FROM S AS o WHERE o.k <> S.k)",
    "SELECT k, RANK() OVER (ORDER BY k IN (SELECT o.v FROM S AS o WHERE o.k >= S.k)) FROM S GROUP BY ROLLUP (k)",
    "SELECT k, (SELECT MIN((SELECT COUNT(*) FROM S AS i WHERE i.v = S.k)) FROM S AS o WHERE o.k = S.k) "
    "FROM S GROUP BY ROLLUP (k)",
    "SELECT {'k': RANK() OVER (ORDER BY COUNT(*)), 't': k}.k, {'k': 3, 't': t}.k FROM S GROUP BY ROLLUP (k, t)",
)


@pytest.mark.parametrize("query", GROUPED)
def test_sets_of_keys_give_what_duckdb_gives(query: str) -> None:
    with duckdb.connect() as duck, minidsms.connect() as db:
        duck.execute("CREATE TABLE S (k BIGINT, t VARCHAR, v BIGINT)")
        duck.executemany("INSERT INTO S VALUES (?, ?, ?)", ROWS)
        db.execute("CREATE STREAM S (k INTEGER, t TEXT, v INTEGER)")
        answer = db.query(query.replace("FROM S", "FROM S [RANGE 100]"))
        db.push("S", ROWS, ts=list(range(30)))
        db.advance(30)
        assert sorted(answer.snapshot(), key=repr) == sorted(duck.execute(query).fetchall(), key=repr)


@pytest.mark.parametrize("query", GROUPED)
def test_printed_sets_are_those_that_were_parsed(query: str) -> None:
    parsed = parse_query(query)
    assert parse_query(print_query(parsed)) == parsed


def test_what_has_over_may_be_called_by_its_name_and_follows_every_change() -> None:
    rows = "SELECT k, SUM(v) AS s FROM S [RANGE 3] GROUP BY ROLLUP (k)"
    for one, other in (
        ("SELECT k, SUM(v) AS s, RANK() OVER (ORDER BY s) AS r, r + 1 AS n FROM S [RANGE 3] GROUP BY ROLLUP (k) "
         "QUALIFY n < 4 AND r > 0",
         f"SELECT k, s, RANK() OVER (ORDER BY s) AS r, r + 1 AS n FROM ({rows}) QUALIFY r < 3"),
        ("SELECT SUM(v) AS s, 7 AS c, ROW_NUMBER() OVER (ORDER BY c, k) AS r FROM S [RANGE 3] GROUP BY ROLLUP (k)",
         f"SELECT s, 7 AS c, ROW_NUMBER() OVER (ORDER BY k) AS r FROM ({rows})"),
    ):  # fmt: skip
        with minidsms.connect() as db:
            db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
            first, second = db.query(one), db.query(other)
            assert first.schema == second.schema
            db.push("S", [(k, v) for k, _, v in ROWS], ts=list(range(30)))
            db.advance(40)
            assert sorted(first.fetch(), key=repr) == sorted(second.fetch(), key=repr)


def test_the_defaults_show_a_query_for_each_set() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        query = db.query("SELECT k, COUNT(*) AS n FROM S [RANGE 5] GROUP BY ROLLUP (k)")
        assert query.schema.names == ("k", "n")
        assert query.expanded.count("UNION ALL") == 1 and "SELECT NULL" in query.expanded


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "SELECT k FROM S GROUP BY CUBE (k, v, k + 1, k + 2, k + 3, k + 4, k + 5)",
            "these are more than 64 sets of keys",
        ),
        (f"SELECT k FROM S GROUP BY CUBE ({', '.join(f'k + {i}' for i in range(60))})", "more than 64 sets of keys"),
        ("SELECT GROUPING(v) FROM S GROUP BY ROLLUP (k)", "GROUPING tells of expressions of GROUP BY"),
        ("SELECT v FROM S GROUP BY ROLLUP (k)", 'column "v" has no single value in a group'),
        ("SELECT v, RANK() OVER () FROM S GROUP BY ROLLUP (k)", 'column "v" has no single value in a group'),
        ("SELECT DISTINCT k FROM S GROUP BY ROLLUP (k) ORDER BY COUNT(*) LIMIT 1", "with DISTINCT, ORDER BY names"),
        (
            "SELECT k, RANK() OVER (ORDER BY k) IN (SELECT v FROM S) FROM S GROUP BY ROLLUP (k)",
            "a subquery and OVER in one expression",
        ),
        ("SELECT k, RANK() OVER (ORDER BY k) AS r FROM S GROUP BY ROLLUP (k) HAVING r > 1", "may not stand in HAVING"),
        (
            "SELECT k, RANK() OVER (ORDER BY SUM(v)) AS r FROM S WHERE r > 1 GROUP BY ROLLUP (k)",
            "put the condition in QUALIFY",
        ),
        ("SELECT *, COUNT(*) FROM (SELECT k, k FROM S) GROUP BY ROLLUP (1)", 'several columns are called "k"'),
        ("SELECT k FROM S GROUP BY GROUPED SETS ((k))", 'unexpected "SETS" after "GROUPED"'),
        ("SELECT ROLLUP(k) FROM S", "ROLLUP"),
    ],
)
def test_wrong_sets_are_told(query: str, told: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        with pytest.raises(minidsms.CqlError, match=re.escape(told)):
            db.query(query)
