"""Subqueries in expressions, correlated and not (docs/semantics R1, R2)."""

from __future__ import annotations

import pytest

from minidsms.cql import bound
from tests.cql.catalogs import bind_text, condition, error, find, shape, write


def inner_condition(text: str) -> str:
    """The condition of the first subquery's Filter."""
    (query, *_) = bound.subqueries(condition(text))
    node = find(query, bound.Filter)
    assert isinstance(node, bound.Filter)
    return write(node.condition)


def test_a_whole_row_is_compared_column_by_column() -> None:
    text = "SELECT RSTREAM(*) FROM S1 [NOW] WHERE S1 IN (SELECT * FROM S2 [ROWS 10,000])"
    assert write(condition(text)) == "in(#0, #1; query)"


def test_a_row_in_a_subquery_takes_common_types() -> None:
    expr = condition("SELECT * FROM P [NOW] WHERE (car, road) IN (SELECT speed, road FROM P [ROWS 3])")
    assert write(expr) == "in(#0::FLOAT, #2; query)"
    expr = condition("SELECT * FROM P [NOW] WHERE speed NOT IN (SELECT car FROM P [ROWS 3])")
    assert write(expr) == "not(in(#1; query))"
    (query,) = bound.subqueries(expr)
    assert str(query.schema) == "car FLOAT"


def test_the_enclosing_row_is_seen_in_the_subquerys_where() -> None:
    text = "SELECT * FROM S [NOW] WHERE EXISTS (SELECT * FROM S1 [ROWS 5] WHERE S1.a = S.c AND S1.b > 1)"
    assert inner_condition(text) == "((#0 = outer1#2) and (#1 > 1))"


def test_a_bare_name_means_the_nearest_query() -> None:
    text = "SELECT * FROM S [NOW] WHERE EXISTS (SELECT * FROM S1 [ROWS 5] WHERE a = c)"
    assert inner_condition(text) == "(#0 = outer1#2)"


def test_a_table_outside_may_be_called_as_columns_of_several_tables_are() -> None:
    text = "SELECT * FROM S1 [NOW] AS s, S2 [NOW] AS a WHERE EXISTS (SELECT * FROM S [NOW] AS u WHERE u.c = a.c)"
    assert inner_condition(text) == "(#2 = outer1#3)"


def test_two_levels_out_is_level_two() -> None:
    inner = "SELECT * FROM S2 [NOW] WHERE S2.a = S.a AND S2.c = S1.b"
    text = f"SELECT * FROM S [NOW] WHERE EXISTS (SELECT * FROM S1 [NOW] WHERE EXISTS ({inner}))"
    (first,) = bound.subqueries(condition(text))
    middle = find(first, bound.Filter)
    assert isinstance(middle, bound.Filter)
    (second,) = bound.subqueries(middle.condition)
    last = find(second, bound.Filter)
    assert isinstance(last, bound.Filter)
    assert write(last.condition) == "((#0 = outer2#0) and (#1 = outer1#1))"


def test_in_having_the_enclosing_row_is_the_groups_row() -> None:
    text = "SELECT b, COUNT(*) FROM S [NOW] GROUP BY b HAVING EXISTS (SELECT * FROM S1 [NOW] WHERE S1.a = S.b)"
    assert inner_condition(text) == "(#0 = outer1#0)"
    assert 'column "c"' in error(text.replace("= S.b", "= S.c"))


@pytest.mark.parametrize(
    "subquery",
    [
        "ISTREAM (SELECT a FROM S1 [NOW] WHERE S1.a = S.c)",
        "SELECT a FROM (SELECT a FROM S1 WHERE S1.a = S.c) [ROWS 2] AS x",
        "SELECT a FROM (SELECT RSTREAM(a) FROM S1 [NOW] WHERE S1.a = S.c) AS x",
        "SELECT a FROM ((SELECT a FROM S1 WHERE S1.a = S.c) AS y) [ROWS 2] AS x",
        "SELECT x.a FROM S1 ASOF JOIN (SELECT a, ts AS t FROM S1 WHERE S1.a = S.c) AS x ON S1.a = x.a AND t <= ts",
        "WITH x AS (SELECT a FROM S1 [NOW] WHERE S1.a = S.c) SELECT a FROM x",
    ],
)
def test_streams_and_names_of_with_see_no_enclosing_row(subquery: str) -> None:
    message = error(f"SELECT * FROM S [NOW] WHERE a IN ({subquery})")
    assert "belongs to an enclosing query" in message and "it sees no row of the enclosing query" in message


def test_an_aggregate_of_the_enclosing_querys_columns_alone_is_none_of_the_subquerys() -> None:
    message = error("SELECT * FROM S [NOW] WHERE a IN (SELECT COUNT(S.c) FROM S1 [NOW])")
    assert "COUNT is of columns of the enclosing query alone" in message
    message = error("SELECT a FROM S [NOW] GROUP BY a HAVING EXISTS (SELECT * FROM R WHERE R.a > SUM(S.c))")
    assert "put the condition in HAVING; what is of the enclosing query's rows is named in a query in" in message
    condition(
        "SELECT * FROM S [NOW] WHERE a IN (SELECT SUM(S.c + (SELECT MAX(a) FROM R WHERE R.a = S1.a)) FROM S1 [NOW])"
    )


def test_what_select_without_from_does_not_find_is_told_by_the_query_outside() -> None:
    message = error("SELECT * FROM R CROSS JOIN LATERAL (SELECT S.c + R.a AS n) AS x, S [NOW]")
    assert 'unknown table "S"' in message and "FROM has: R" in message
    assert 'unknown column "d"' in error("SELECT * FROM R WHERE a IN (SELECT d)")


def test_a_subquery_that_is_a_stream_gets_an_unbounded_window() -> None:
    (query,) = bound.subqueries(condition("SELECT * FROM S [NOW] WHERE a IN (SELECT ISTREAM(a) FROM S1 [ROWS 2])"))
    assert shape(query) == "Window(ISTREAM(Project(Window(S1))))"


def test_quantified_and_scalar_subqueries_have_one_column() -> None:
    expr = condition("SELECT * FROM S [NOW] WHERE a > ALL (SELECT a FROM R) OR b = (SELECT MAX(a) FROM R)")
    assert write(expr) == "((#0 > all query) or (#1 = (query)))"
    assert "must give one column, not 2" in error("SELECT * FROM S WHERE a > ANY (SELECT * FROM R)")
    assert "must give one column, not 2" in error("SELECT (SELECT * FROM R) FROM S")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("a IN (SELECT a, b FROM S1)", "IN compares 1 value with 2 columns"),
        ("S IN (SELECT * FROM S1)", "IN compares 3 values with 2 columns"),
        ("a IN (SELECT name FROM R)", "cannot compare INTEGER with the subquery's column name, which is TEXT"),
        ("a = ALL (SELECT name FROM R)", "cannot compare INTEGER"),
        ("EXISTS (SELECT x FROM S1)", 'unknown column "x"'),
    ],
)
def test_a_subquery_that_does_not_fit_is_refused(where: str, reason: str) -> None:
    assert reason in error(f"SELECT * FROM S WHERE {where}")


def test_the_windows_of_a_subquery_are_events_of_the_query() -> None:
    node = bind_text("SELECT RSTREAM(a) FROM S [NOW] WHERE a IN (SELECT a FROM S1 [ROWS 2])").node
    assert isinstance(node, bound.RelationToStream)
    assert sorted(shape(e) for e in node.events) == ["Window(S)", "Window(S1)"]
