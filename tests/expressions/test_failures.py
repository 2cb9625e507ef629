"""An error names the innermost expression that failed, as a reader would write it, and says why."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.bound import Case, Cast, Expr, UserCall
from minidsms.cql.catalog import FunctionDef
from minidsms.expressions import Context, explain_failure, print_expression
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import BOOLEAN, EDGE, FLOAT, INTEGER, TEXT, batch_of, call, column, literal

I, J, B, T = column("i"), column("j"), column("b"), column("t")
ROW = (EDGE - 1, 2, 1e300, None, True, "abc", None, None)


def explain(expr: Expr, row: tuple[Any, ...] = ROW, **functions: FunctionDef) -> tuple[str, str]:
    d = TextDictionary()
    batch = batch_of([(None,) * 8, row], d)
    return explain_failure(expr, Context(d, functions=functions), batch.column, 1)


def test_the_innermost_overflow_is_named() -> None:
    inner = call(INTEGER, "+", I, J)
    assert explain(call(BOOLEAN, ">", call(INTEGER, "*", inner, literal(2)), literal(0))) == (
        "i + j",
        "INTEGER overflow for 9223372036854775807, 2",
    )


def test_a_cast_says_what_it_could_not_read() -> None:
    assert explain(Cast(INTEGER, T)) == ("CAST(t AS INTEGER)", "'abc' cannot be read as INTEGER")
    assert explain(Cast(INTEGER, column("f"))) == ("CAST(f AS INTEGER)", "1e+300 is out of range for INTEGER")


def test_a_cast_shows_the_decimal_that_does_not_fit() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (p DECIMAL(38, 2))")
        told = (
            db.query("SELECT CAST(p AS DECIMAL(5, 2)) AS a FROM S"),
            db.query("SELECT CAST(p AS INTEGER) AS a FROM S"),
        )
        db.push("S", (Decimal("9" * 36 + ".25"),), ts=1)
        db.advance(1)
        for query, type_ in zip(told, ("DECIMAL(5, 2)", "INTEGER")):
            assert query.failure is not None
            assert f"{'9' * 36}.25 is out of range for {type_}" in query.failure[1]


def test_a_branch_not_taken_is_not_blamed() -> None:
    expr = Case(INTEGER, ((call(BOOLEAN, "not", B), call(INTEGER, "neg", J)),), call(INTEGER, "*", I, J))
    assert explain(expr)[0] == "i * j"


def test_a_user_function_is_quoted() -> None:
    def raises(x: int) -> int:
        raise ValueError(f"no {x}")

    definition = FunctionDef("f", raises, (INTEGER,), INTEGER)
    assert explain(UserCall(INTEGER, "f", (J,)), f=definition) == ("f(j)", "ValueError: no 2")
    vector = FunctionDef("v", lambda x: np.array(["a"]), (INTEGER,), INTEGER, True)
    assert explain(UserCall(INTEGER, "v", (J,)), v=vector) == ("v(j)", "v must give INTEGER, not str")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (call(INTEGER, "-", I, call(INTEGER, "-", J, I)), "i - (j - i)"),
        (call(INTEGER, "-", call(INTEGER, "-", I, J), I), "i - j - i"),
        (call(INTEGER, "neg", call(INTEGER, "neg", I)), "-(-i)"),
        (call(INTEGER, "-", I, literal(-1)), "i - -1"),
        (call(BOOLEAN, "and", call(BOOLEAN, "or", B, B), B), "(b OR b) AND b"),
        (call(BOOLEAN, "not", call(BOOLEAN, "and", B, B)), "NOT (b AND b)"),
        (call(BOOLEAN, "not", call(BOOLEAN, "is null", I)), "i IS NOT NULL"),
        (call(BOOLEAN, "not", call(BOOLEAN, "in", I, literal(1), literal(2))), "i NOT IN (1, 2)"),
        (call(BOOLEAN, "like", T, literal("it's%"), literal("!")), "t LIKE 'it''s%' ESCAPE '!'"),
        (call(TEXT, "substring", T, literal(1)), "SUBSTRING(t, 1)"),
        (Case(INTEGER, ((B, I),), J), "CASE WHEN b THEN i ELSE j END"),
        (Cast(FLOAT, call(INTEGER, "+", I, J)), "CAST(i + j AS FLOAT)"),
        (call(BOOLEAN, "is distinct from", I, J), "i IS DISTINCT FROM j"),
    ],
)  # fmt: skip
def test_an_expression_is_printed_with_the_parentheses_it_needs(expr: Expr, text: str) -> None:
    assert print_expression(expr) == text
