"""Columns of the enclosing query wherever they may stand in a subquery, and of what stands before LATERAL: each answer
is that of the definition.
"""

from __future__ import annotations

from random import Random

import pytest

from minidsms import connect
from minidsms.testing.compare import check, run_definition, run_engine
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

TABLES = (
    "CREATE STREAM A (k INTEGER, v INTEGER, u TEXT)",
    "CREATE STREAM B (k INTEGER, v INTEGER, u TEXT)",
    "CREATE RELATION R (k INTEGER, v INTEGER, u TEXT)",
)
VALUES = [
    "(SELECT MAX(B.v - a.v) FROM B [RANGE 3] AS B WHERE B.k = a.k)",
    "(SELECT MAX(B.v) - a.v FROM B [ROWS 3] AS B WHERE B.k = a.k)",
    "(SELECT COALESCE(SUM(B.v), a.v) FROM B [RANGE 2] AS B WHERE B.k = a.k)",
    "(SELECT COUNT(*) + a.v FROM B [RANGE 2] AS B WHERE B.k = a.k HAVING COUNT(*) >= a.k)",
    "(SELECT MIN(ABS(R.v - a.v)) FROM R)",
    "(SELECT COUNT(*) FILTER (WHERE R.v > a.v) FROM R)",
    "(SELECT STRING_AGG(R.u || a.u, '-' ORDER BY R.v * a.v, R.u) FROM R)",
    "(SELECT B.v FROM B [RANGE 4] AS B WHERE B.k = a.k ORDER BY B.v DESC LIMIT 1)",
    "(SELECT B.u FROM B [ROWS 5] AS B WHERE B.v >= a.v ORDER BY B.v, B.u DESC LIMIT 1 OFFSET 1)",
    "(SELECT R.v FROM R ORDER BY ABS(R.v - a.v), R.k LIMIT 1)",
    "(SELECT MAX(n) FROM (SELECT SUM(R.v) OVER (ORDER BY R.v - a.v, R.k) AS n FROM R WHERE R.k >= a.k) AS x)",
    "(SELECT R.v FROM R WHERE R.k = a.k QUALIFY ROW_NUMBER() OVER (ORDER BY R.v) = 1)",
    "(SELECT MAX(r) FROM (SELECT RANK() OVER (PARTITION BY R.u ORDER BY R.v) AS r FROM R WHERE R.k = a.k) AS x)",
    "(SELECT COUNT(*) FROM (SELECT v FROM R WHERE R.k = a.k) AS x)",
    "(SELECT n FROM (SELECT COUNT(*) AS n FROM R WHERE R.k = a.k) AS x)",
    "(SELECT COUNT(*) FROM R JOIN B [RANGE 3] AS B ON R.k = B.k AND R.v >= a.v)",
    "(SELECT COUNT(B.k) FROM R LEFT JOIN B [RANGE 3] AS B ON R.k = B.k AND R.v >= a.v)",
    "(SELECT COUNT(R.k) FROM R RIGHT JOIN B [RANGE 3] AS B ON R.k = B.k AND B.v >= a.v)",
    "(SELECT COUNT(x.v) + 9 * COUNT(y.v) FROM (SELECT v FROM R WHERE R.k = a.k) AS x "
    "FULL JOIN (SELECT v FROM B [RANGE 3] AS B WHERE B.k >= a.k) AS y ON x.v = y.v)",
    "(SELECT SUM(x.v) FROM (SELECT v FROM R WHERE R.k = a.k) AS x, (SELECT k FROM R WHERE R.v = a.v) AS y)",
    "(SELECT SUM(e) FROM UNNEST([a.k, a.v]) AS e)",
    "(SELECT COUNT(*) FROM R, UNNEST([R.v, a.v]) AS e WHERE e = 1)",
    "(SELECT MAX(w) FROM (SELECT R.v + a.v AS w FROM R UNION SELECT R.k FROM R WHERE R.k = a.k) AS x)",
    "(SELECT COUNT(*) FROM (SELECT R.v * a.v AS w, COUNT(*) FROM R GROUP BY w HAVING COUNT(*) < a.k + 2) AS x)",
    "(SELECT SUM(CASE WHEN EXISTS (SELECT * FROM R AS q WHERE q.k < R.k) THEN a.v ELSE 0 END) FROM R)",
    "(SELECT MAX(n) FROM (SELECT SUM(v - a.v) AS n FROM R, LATERAL (SELECT R.k + a.k AS w) AS x GROUP BY CUBE (k, w)))",
    "(SELECT GROUPING(R.k) + a.k FROM R GROUP BY ROLLUP (R.k) ORDER BY ABS(COUNT(*) - a.v), 1 LIMIT 1)",
    "(SELECT COUNT(DISTINCT (SELECT MAX(R.v - a.v - B.v) FROM R)) FROM B [ROWS 3] AS B)",
]
CONDITIONS = [
    "EXISTS (SELECT a.v FROM R WHERE R.k = a.k)",
    "a.v IN (SELECT R.v + a.k FROM R)",
    "a.v NOT IN (SELECT a.k - R.v FROM R WHERE R.k = a.k)",
    "(a.k, a.v) IN (SELECT R.k, a.k - R.v FROM R)",
    "a.v IN (SELECT v FROM B [ROWS 4] AS B WHERE B.k = a.k ORDER BY v LIMIT 2)",
    "a.v > ALL (SELECT R.v - a.k FROM R WHERE R.k = a.k)",
    "a.v = ANY (SELECT MAX(R.v - a.k) + a.k FROM R GROUP BY R.k)",
    "NOT EXISTS (SELECT * FROM (SELECT * FROM R WHERE R.k = a.k) AS x "
    "LEFT JOIN B [NOW] AS B ON x.v = B.v AND B.k = a.k WHERE B.k IS NULL)",
]
LATERALS = [
    ", LATERAL (SELECT COUNT(*) AS w FROM R WHERE R.k = a.k) AS x",
    " CROSS JOIN LATERAL (SELECT B.v - a.v AS w FROM B [RANGE 2] AS B WHERE B.k >= a.k) AS x",
    " LEFT JOIN LATERAL (SELECT B.u FROM B [ROWS 4] AS B WHERE B.k = a.k ORDER BY B.v DESC LIMIT 2) AS x (w) ON TRUE",
    " LEFT JOIN LATERAL (SELECT MAX(R.v) AS w FROM R WHERE R.k < a.v GROUP BY R.u) AS x ON x.w > a.k",
    " JOIN LATERAL (SELECT R.v AS w FROM R UNION SELECT B.k FROM B [NOW] AS B WHERE B.v = a.v) AS x ON x.w <> a.v",
    ", R, LATERAL (SELECT R.v * a.v AS w) AS x",
    ", LATERAL (VALUES (a.k, 1), (a.v, 2)) AS x (w, n)",
    " LEFT JOIN LATERAL (SELECT R.v FROM R WHERE R.k = a.k) AS y ON y.v > a.v, LATERAL (SELECT y.v + 1 AS w) AS x",
    " JOIN LATERAL (SELECT R.v AS w FROM R WHERE R.k = a.k) AS x ON w IN (SELECT v FROM B [ROWS 2] AS B WHERE k = a.k)",
    ", LATERAL (SELECT SUM(z.v) AS w FROM R, LATERAL (SELECT B.v FROM B [ROWS 3] AS B WHERE B.k = R.k AND B.v >= a.v) "
    "AS z) AS x",
    ", LATERAL (SELECT z.v AS w FROM (SELECT k FROM R WHERE R.v = a.v) AS y "
    "LEFT JOIN LATERAL (SELECT B.v FROM B [NOW] AS B WHERE B.k = y.k) AS z ON z.v > a.k) AS x",
]
BEHIND_A_COMMA = [
    "LATERAL (SELECT R.v AS w FROM R WHERE R.k = a.k) AS x JOIN B [RANGE 2] AS b ON b.k = x.w",
    "LATERAL (SELECT R.v AS w FROM R WHERE R.k = a.k) AS x LEFT JOIN B [RANGE 2] AS b ON b.k = a.k AND b.v > x.w",
    "LATERAL (SELECT R.v AS w FROM R WHERE R.k = a.k) AS x CROSS JOIN UNNEST([x.w, a.v]) AS e",
    "UNNEST([a.v, 1]) AS x (w) ANTI JOIN R ON R.k = x.w",
    "UNNEST([v, 1]) AS x (w) LEFT JOIN R ON R.k = x.w CROSS JOIN B [NOW] AS b (y)",
    "R AS o (y) JOIN LATERAL (SELECT b.v AS w FROM B [RANGE 2] AS b WHERE b.k = a.k AND b.v >= y) AS x ON x.w > y",
    "R AS o (y) CROSS JOIN UNNEST([a.v, y]) AS x (w)",
]
GROWING = [
    ", LATERAL (SELECT B.v AS w FROM B WHERE B.k = a.k) AS x",
    " JOIN LATERAL (SELECT B.v - a.v AS w FROM B WHERE B.k >= a.k) AS x ON w <> a.v",
    " CROSS JOIN LATERAL (SELECT a.v + 1 AS w UNION SELECT DISTINCT B.v FROM B WHERE B.k < a.v) AS x",
    ", LATERAL (VALUES (a.k), (a.v)) AS x (w)",
    ", LATERAL (SELECT v AS w FROM B WHERE B.k = a.k AND EXISTS (SELECT * FROM B AS c WHERE c.v > a.v)) AS x",
    ", LATERAL (SELECT B.k AS w, SUM(v) OVER (ORDER BY ts) AS n FROM B WHERE B.v >= a.k) AS x",
    ", LATERAL (SELECT y.w FROM B, LATERAL (SELECT a.v + B.v AS w) AS y WHERE B.k = a.k GROUP BY y.w) AS x",
]
"""Nothing leaves these where nothing leaves A."""
SHRINKING = [
    " LEFT JOIN LATERAL (SELECT B.v AS w FROM B WHERE B.k = a.k) AS x ON TRUE",
    ", LATERAL (SELECT B.v AS w FROM B WHERE B.k = a.k ORDER BY w LIMIT 1) AS x",
    ", LATERAL (SELECT MAX(B.v) AS w FROM B WHERE B.k = a.k) AS x",
    ", LATERAL (SELECT R.v AS w FROM R WHERE R.k = a.k) AS x",
    ", LATERAL (SELECT B.v AS w FROM B WHERE B.k NOT IN (SELECT c.k FROM B AS c WHERE c.v = a.v)) AS x",
]
QUERIES = [
    *(f"SELECT a.k, a.v, x.w FROM A [RANGE 3] AS a, {behind}" for behind in BEHIND_A_COMMA),
    *(f"SELECT a.k, a.v, x.w FROM A [RANGE 3] AS a{lateral}" for lateral in LATERALS),
    *(f"SELECT a.k, a.v, x.w FROM A AS a{lateral}" for lateral in (*GROWING, *SHRINKING)),
    *(f"SELECT w FROM (SELECT a.k, x.w FROM A AS a{lateral}) [RANGE 2]" for lateral in GROWING),
    f"SELECT RSTREAM(a.k, x.w) FROM A [NOW] AS a{LATERALS[2]}",
    f"SELECT ISTREAM(a.k, SUM(x.w)) FROM R AS a{LATERALS[1]} WHERE a.k > 0 GROUP BY a.k",
    "SELECT a.k, (SELECT a.v + 1), (SELECT MAX(w) FROM (VALUES (a.k), (a.v)) AS x (w)) FROM A [ROWS 3] AS a",
    "SELECT a.k FROM A [ROWS 3] AS a WHERE a.k IN (SELECT a.v - 1)",
    *(f"SELECT a.k, a.v, {value} AS w FROM A [RANGE 3] AS a" for value in VALUES),
    *(f"SELECT a.k, a.v FROM A [ROWS 4] AS a WHERE {condition}" for condition in CONDITIONS),
    f"SELECT RSTREAM(a.k, {VALUES[7]} AS w) FROM A [NOW] AS a",
    f"SELECT a.k FROM R AS a WHERE a.v = {VALUES[9]} OR a.u = 'b'",
    f"SELECT a.k, SUM({VALUES[4]}) FROM A [RANGE 3] AS a GROUP BY a.k",
]


def _feed(seed: int) -> tuple[Push | Advance, ...]:
    rng, feed, present = Random(seed), [], []
    for ts in range(1, 9):
        for _ in range(rng.randrange(4)):
            name = rng.choice("ABBRR")
            row = (rng.choice((None, 1, 2)), rng.choice((None, -1, 1, 2, 3)), rng.choice((None, "a", "b")))
            sign = 1
            if name == "R" and present and rng.random() < 0.4:
                row, sign = present.pop(rng.randrange(len(present))), -1
            elif name == "R":
                present.append(row)
            feed.append(Push(name, ((ts, sign, row),)))
    return (*feed, Advance(12))


@pytest.mark.parametrize("query", QUERIES)
def test_columns_of_the_enclosing_query_may_stand_anywhere_in_a_subquery(query: str) -> None:
    for seed, size in enumerate((1, 2, 7, 65536)):
        assert check(Case(TABLES, query, _feed(seed)), batch_size=size) == "agreed"


@pytest.mark.parametrize("behind", BEHIND_A_COMMA)
def test_lateral_in_a_join_behind_a_comma_sees_what_stands_before_the_comma(behind: str) -> None:
    comma, joined = (
        f"SELECT a.k, a.v, x.w FROM A [RANGE 3] AS a{between} {behind}" for between in (",", " CROSS JOIN")
    )
    for feed in map(_feed, range(4)):
        assert run_engine(Case(TABLES, comma, feed)).netted == run_definition(Case(TABLES, joined, feed)).netted


@pytest.mark.parametrize(("laterals", "kind"), [(GROWING, "stream"), (SHRINKING, "relation")])
def test_rows_beside_those_of_a_query_that_only_grows_are_a_stream(laterals: list[str], kind: str) -> None:
    with connect() as db:
        for table in TABLES:
            db.execute(table)
        assert {db.query(f"SELECT a.v, x.w FROM A AS a{lateral}").kind for lateral in laterals} == {kind}


def test_a_name_in_a_query_in_from_is_looked_up_anew_where_the_same_text_stands_elsewhere() -> None:
    query = "(SELECT k AS n FROM R WHERE n > 1)"
    with connect() as db:
        db.execute("CREATE RELATION R (k INTEGER)")
        db.execute("CREATE RELATION T (n INTEGER)")
        inside = f"(SELECT COUNT(*) FROM {query} AS x)"
        alone, beside = (db.query(f"SELECT T.n, {inside} FROM T{other}") for other in ("", f", {query} AS y (w)"))
        for name, value in (("R", 1), ("R", 5), ("T", 0), ("T", 3)):
            db.push(name, (value,), ts=1)
        db.advance(2)
        # Inside, n is a column of T; beside T it is the name that the select list gives to k.
        assert sorted(alone.snapshot()) == sorted(beside.snapshot()) == [(0, 0), (3, 2)]


@pytest.mark.parametrize(("kind", "there"), [("SEMI", "EXISTS"), ("ANTI", "NOT EXISTS")])
def test_the_right_side_of_a_half_join_sees_the_row_outside_and_not_that_on_the_left(kind: str, there: str) -> None:
    right = "(SELECT k FROM B [ROWS 4] AS B WHERE B.v >= a.v) AS y"
    joined = f"SELECT k, (SELECT COUNT(*) FROM R {kind} JOIN {right} ON y.k = R.k AND R.v <> a.k) FROM A [RANGE 3] AS a"
    where = f"{there} (SELECT * FROM {right} WHERE y.k = R.k AND R.v <> a.k)"
    written = f"SELECT k, (SELECT COUNT(*) FROM R WHERE {where}) FROM A [RANGE 3] AS a"
    for feed in map(_feed, range(4)):
        assert run_engine(Case(TABLES, joined, feed)).netted == run_definition(Case(TABLES, written, feed)).netted
