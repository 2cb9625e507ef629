"""SELECT without FROM in which subqueries stand: one row of their values, which changes as they do."""

from __future__ import annotations

import pytest

import minidsms
from minidsms.cql.errors import CqlError
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

TABLES = ("CREATE STREAM S (a INTEGER)", "CREATE RELATION R (k INTEGER)")
FEED = (
    Push("R", ((1, 1, (1,)), (3, 1, (2,)), (3, 1, (2,)), (6, -1, (1,)))),
    Push("S", ((2, 1, (1,)), (3, 1, (5,)), (3, 1, (None,)), (7, 1, (2,)))),
    Advance(12),
)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT (SELECT COUNT(*) FROM R) AS n, (SELECT MAX(a) FROM S [RANGE 3]) AS m, 1 AS one",
        "SELECT EXISTS (SELECT * FROM S [ROWS 1] WHERE a = 5), 2 IN (SELECT k FROM R)",
        "SELECT 3 > ALL (SELECT a FROM S [ROWS 2]), 1 NOT IN (SELECT a FROM S [RANGE 3])",
        "SELECT (SELECT (SELECT MAX(k) FROM R)) + 1",
        "SELECT (SELECT MIN(k) FROM R) UNION SELECT a FROM S [ROWS 1]",
        "SELECT x FROM (SELECT (SELECT MAX(k) FROM R) AS x, (SELECT COUNT(*) FROM S [NOW])) AS t (x) WHERE x > 1",
        "SELECT a FROM S [ROWS 3] WHERE a > (SELECT (SELECT MIN(k) FROM R))",
        "SELECT ISTREAM((SELECT SUM(k) FROM R) AS s) FROM (VALUES (1)) AS one",
        "SELECT 2 AS a, a + (SELECT MAX(k) FROM R) AS b, a * b AS c, LIST_TRANSFORM([a], x -> x + b)",
        "SELECT UNNEST([1, 2, NULL]) AS e, e + (SELECT COUNT(*) FROM R) AS n, STRUCT(a := e).a AS m",
        "SELECT COUNT(*), (SELECT MAX(a) FROM S [ROWS 1]), TIMESTAMPDIFF(HOUR, TIMESTAMP '2020-01-01', NULL)",
    ],
)
def test_subqueries_alone_make_a_row(query: str, batch_size: int) -> None:
    case = Case(TABLES, query, FEED)
    assert run_definition(case).changes
    assert check(case, batch_size=batch_size) == "agreed"


def test_what_reads_nothing_is_answered_at_once() -> None:
    with minidsms.connect() as db:
        for text, value in (
            ("(SELECT 1)", 1),
            ("1 + (SELECT 2)", 3),
            ("(1, 2) IN (SELECT 1, 2)", True),
            ("EXISTS (VALUES (1), (2))", True),
            ("1 > ANY (SELECT 1)", False),
            ("(SELECT MAX(x) FROM (VALUES (3), (4)) AS t (x))", 4),
        ):
            assert list(db.execute(f"SELECT {text}")) == [(value,)]
        assert list(db.execute("SELECT 1 AS a, a + 1 AS b, a + b AS c")) == [(1, 2, 3)]
        assert list(db.execute("SELECT UNNEST([1, 2]) AS e, e * 2")) == [(1, 2), (2, 4)]
        assert list(db.execute("SELECT {'a': 1}, LIST_TRANSFORM([1], x -> x + 1), (SELECT 3)")) == [({"a": 1}, [2], 3)]


@pytest.mark.parametrize("item", ["k", "*", "`no column`", "R.k", "MAX(k)", "1 + k"])
def test_a_column_needs_from_as_without_subqueries(item: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k INTEGER)")
        for other in ("(SELECT MAX(k) FROM R)", "UNNEST([1])", *(() if item == "MAX(k)" else ("2",))):
            with pytest.raises(CqlError, match="a column needs FROM"):
                db.execute(f"SELECT {item}, {other}")


def test_an_alias_may_name_the_first_columns_alone() -> None:
    with minidsms.connect() as db:
        assert list(db.execute("SELECT a, column2 FROM (VALUES (1, 2)) AS t (a)")) == [(1, 2)]
        assert list(db.execute("WITH t (a) AS (SELECT 1 AS x, 2 AS y) SELECT y, a FROM t")) == [(2, 1)]
        with pytest.raises(CqlError, match="ambiguous"):
            db.execute("SELECT y FROM (SELECT 1 AS x, 2 AS y) AS t (y)")
