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
        ("SELECT k FROM S GROUP BY ROLLUP (k) ORDER BY k LIMIT 1", "ORDER BY .. LIMIT is of one GROUP BY"),
        ("SELECT k FROM S GROUP BY GROUPED SETS ((k))", 'unexpected "SETS" after "GROUPED"'),
        ("SELECT ROLLUP(k) FROM S", "ROLLUP"),
    ],
)
def test_wrong_sets_are_told(query: str, told: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        with pytest.raises(minidsms.CqlError, match=re.escape(told)):
            db.query(query)
