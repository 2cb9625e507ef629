"""Types, conversions and functions (docs/semantics R2, R4)."""

from __future__ import annotations

import pytest

from minidsms.cql import bound
from minidsms.cql.errors import CqlError
from minidsms.cql.functions import can_fail
from minidsms.cql.times import NotATime, duration_ticks, iso_ticks
from minidsms.elements import Type
from tests.cql.catalogs import bind_text, column, condition, write


def error(expression: str) -> str:
    with pytest.raises(CqlError) as caught:
        column(expression)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "tree", "type_"),
    [
        ("i + 1", "(#0 + 1)", "INTEGER"),
        ("i + f", "(#0::FLOAT + #1)", "FLOAT"),
        ("f * 2", "(#1 * 2.0)", "FLOAT"),
        ("-5", "-5", "INTEGER"),
        ("-i", "neg(#0)", "INTEGER"),
        ("t + 10 SECONDS", "(#4 + 10000)", "TIMESTAMP"),
        ("t + 5", "(#4 + 5)", "TIMESTAMP"),
        ("t + i", "(#4 + #0::INTERVAL)", "TIMESTAMP"),
        ("t - t", "(#4 - #4)", "INTERVAL"),
        ("t - '1970-01-02'", "(#4 - 86400000)", "INTERVAL"),
        ("v * i", "(#5 * #0)", "INTERVAL"),
        ("v / v", "(#5 / #5)", "INTEGER"),
        ("v / 2", "(#5 / 2)", "INTERVAL"),
        ("INTERVAL '10' SECOND", "10000", "INTERVAL"),
        ("t > '1970-01-01 00:00:01'", "(#4 > 1000)", "BOOLEAN"),
        ("t >= 7", "(#4 >= 7)", "BOOLEAN"),
        ("i IN (1, 2.5)", "in(#0::FLOAT, 1.0, 2.5)", "BOOLEAN"),
        ("i NOT IN (1, NULL)", "not(in(#0, 1, None))", "BOOLEAN"),
        ("i BETWEEN 1 AND 2 AND o", "and((#0 >= 1), (#0 <= 2), #2)", "BOOLEAN"),
        ("x NOT LIKE 'a%'", "not(like(#3, 'a%'))", "BOOLEAN"),
        ("x LIKE 'a!%' ESCAPE '!'", "like(#3, 'a!%', '!')", "BOOLEAN"),
        ("i IS NOT NULL", "not(is null(#0))", "BOOLEAN"),
        ("i IS DISTINCT FROM f", "is distinct from(#0::FLOAT, #1)", "BOOLEAN"),
        ("CASE WHEN o THEN i ELSE f END", "case(#2: #0::FLOAT, #1)", "FLOAT"),
        ("CASE i WHEN 1 THEN 'a' END", "case((#0 = 1): 'a', None)", "TEXT"),
        ("COALESCE(f, 0)", "coalesce(#1, 0.0)", "FLOAT"),
        ("COALESCE(v, 0)", "coalesce(#5, 0)", "INTERVAL"),
        ("NULLIF(i, 0)", "nullif(#0, 0)", "INTEGER"),
        ("SQRT(i)", "sqrt(#0::FLOAT)", "FLOAT"),
        ("POWER(2, i)", "power(2.0, #0::FLOAT)", "FLOAT"),
        ("ROUND(f, 1)", "round(#1, 1)", "FLOAT"),
        ("FLOOR(i)", "floor(#0)", "INTEGER"),
        ("MOD(i, 3)", "(#0 % 3)", "INTEGER"),
        ("CONCAT(x, 'a', 'b')", "((#3 || 'a') || 'b')", "TEXT"),
        ("SUBSTRING(x, 1, 2)", "substring(#3, 1, 2)", "TEXT"),
        ("YEAR(t)", "year(#4)", "INTEGER"),
        ("DAY('2024-05-06')", "day(1714953600000)", "INTEGER"),
        ("twice(i)", "twice(#0::FLOAT)", "FLOAT"),
        ("CAST(x AS INTEGER)", "#3::INTEGER", "INTEGER"),
        ("CAST(1 AS FLOAT)", "1.0", "FLOAT"),
        ("(i, x) = (1, 'a')", "((#0 = 1) and (#3 = 'a'))", "BOOLEAN"),
    ],
)
def test_an_expression_has_its_type_and_conversions(text: str, tree: str, type_: str) -> None:
    expr = column(text)
    assert (write(expr), str(expr.type)) == (tree, type_)


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("x + 1", "+ takes numbers", "CAST(x AS INTEGER)"),
        ("i = x", "cannot compare INTEGER and TEXT", "CAST(x AS INTEGER)"),
        ("x = t", "cannot compare TEXT and TIMESTAMP", "CAST"),
        ("i AND o", "AND needs a condition", "<>"),
        ("NOT i", "NOT needs a condition", "<>"),
        ("i || i", "|| takes TEXT", "CAST(i AS TEXT)"),
        ("UPPER(i)", "UPPER takes TEXT", "CAST(i AS TEXT)"),
        ("t + t", "+ takes", ""),
        ("v * x", "* takes", ""),
        ("i IN (1, 'a')", "cannot compare INTEGER and TEXT", "CAST"),
        ("CASE WHEN o THEN 1 ELSE 'a' END", "the branches of CASE differ", "CAST"),
        ("COALESCE(i, x)", "COALESCE cannot bring together", "CAST"),
        ("t > 'yesterday'", "is not an ISO time", "2024-05-01"),
        ("t > '1970-01-01 00:00:00.0005'", "does not fall on a tick", ""),
        ("0.5 MILLISECONDS", "does not fall on a tick", ""),
        ("CAST(o AS TIMESTAMP)", "BOOLEAN cannot be cast to TIMESTAMP", ""),
        ("wholly(i)", 'unknown function "wholly"', "create_function"),
        ("flor(f)", 'unknown function "flor"', 'did you mean "floor"'),
        ("ABS(i, i)", "ABS takes 1 argument, not 2", ""),
        ("SUBSTRING(x)", "SUBSTRING takes 2 to 3 arguments, not 1", ""),
        ("twice(x)", "TEXT cannot stand where FLOAT is wanted", "CAST(x AS FLOAT)"),
        ("twice(1, 2)", "not 2", ""),
        ("x LIKE 'a' ESCAPE 'ab'", "ESCAPE takes one character", ""),
        ("(i, x) = (1, 2, 3)", "a row of 2 is compared with a row of 3", ""),
        ("(i, x) + 1", "a row of several values", ""),
        ("i + E", "whole row", ""),
    ],
)
def test_a_mismatch_is_an_error_with_a_way_out(text: str, reason: str, hint: str) -> None:
    message = error(text)
    assert reason in message and hint in message


def test_a_condition_must_be_boolean() -> None:
    for text in ("SELECT * FROM S WHERE a", "SELECT a FROM S GROUP BY a HAVING a", "SELECT * FROM S1 JOIN S2 ON 1"):
        with pytest.raises(CqlError, match="needs a condition"):
            bind_text(text)


def test_the_mismatch_is_shown_where_it_stands() -> None:
    assert "^ this is TEXT" in error("i = x")


def test_conjuncts_are_one_flat_and() -> None:
    flat = condition("SELECT * FROM S WHERE a = 1 AND (b = 2 AND (c BETWEEN 1 AND 2))")
    assert isinstance(flat, bound.Call) and flat.function == "and" and len(flat.args) == 4


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("i + 1", True),
        ("f + 1", False),
        ("-i", True),
        ("-f", False),
        ("i / 2", False),
        ("i / -1", True),
        ("i / i", True),
        ("i % i", False),
        ("t + v", True),
        ("ABS(i)", True),
        ("CAST(f AS INTEGER)", True),
        ("CAST(i AS FLOAT)", False),
        ("CAST(x AS FLOAT)", True),
        ("CAST(i AS TEXT)", False),
        ("twice(f)", True),
        ("SQRT(f)", False),
        ("UPPER(x)", False),
        ("CASE WHEN i = 1 THEN i * 2 ELSE 0 END > 1", True),
        ("i = 1 OR x LIKE 'a'", False),
        ("(SELECT COUNT(*) FROM S)", True),
    ],
)
def test_what_can_fail_is_known(text: str, fails: bool) -> None:
    assert can_fail(column(text)) is fails


@pytest.mark.parametrize(
    ("number", "unit", "ticks"),
    [
        ("10", None, 10),
        ("10,000", None, 10_000),
        ("2", "Minutes", 120_000),
        ("0.5", "second", 500),
        ("1", "DAY", 86_400_000),
        ("1.5", "Weeks", 907_200_000),
    ],
)
def test_a_duration_is_whole_ticks(number: str, unit: str | None, ticks: int) -> None:
    assert duration_ticks(number, unit, 1_000_000) == ticks


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        ("1", "nanosecond"),
        ("1", "fortnight"),
        ("x", None),
        ("1e999", None),
        ("9223372036854775808", None),
        ("1e15", "day"),
    ],
)
def test_what_is_no_duration_is_refused(number: str, unit: str | None) -> None:
    with pytest.raises(NotATime):
        duration_ticks(number, unit, 1_000_000)


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("1970-01-01", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("1970-01-01 02:00+02:00", 0),
        ("1970-01-01 00:00:00.001", 1),
        ("2000-02-29 12:00", 951_825_600_000),
        ("2000-02-29 12", 951_825_600_000),
        ("2000-02-29T12+01", 951_822_000_000),
    ],
)
def test_an_iso_text_is_a_time(text: str, ticks: int) -> None:
    assert iso_ticks(text, 1_000_000) == ticks


@pytest.mark.parametrize("text", ["", "2024-13-01", "2023-02-29", "2024-01-01 25:00", "12:00", "٢٠٢٤-01-01"])
def test_what_is_no_iso_time_is_refused(text: str) -> None:
    with pytest.raises(NotATime):
        iso_ticks(text, 1_000_000)


def test_a_literal_null_compared_with_null_has_a_type() -> None:
    expr = column("NULL = NULL")
    assert isinstance(expr, bound.Call) and [a.type for a in expr.args] == [Type.INTEGER] * 2


def test_queries_in_from_that_differ_in_the_type_of_a_literal_are_two() -> None:
    one, other = ("(SELECT car + 1 AS x, 1 AS y FROM P [NOW])", "(SELECT car + 1.0 AS x, TRUE AS y FROM P [NOW])")
    bound_query = bind_text(f"SELECT * FROM {one} AS a, {other} AS b")
    assert [field.type for field in bound_query.node.schema] == [Type.INTEGER, Type.INTEGER, Type.FLOAT, Type.BOOLEAN]
