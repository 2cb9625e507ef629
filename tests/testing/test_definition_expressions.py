"""Expressions by definition: NULLs, failures, and the arithmetic of docs/semantics R4."""

from __future__ import annotations

import pytest

from minidsms.cql.bound import Call, Case, Cast, Expr, Literal
from minidsms.elements import Type
from minidsms.testing.definition_expressions import MIN_INTEGER, Failed, Result, Scope, judged

LARGE = 2**63 - 1


def literal(value: bool | int | float | str | None) -> Literal:
    types = {bool: Type.BOOLEAN, int: Type.INTEGER, float: Type.FLOAT, str: Type.TEXT}
    return Literal(types.get(value.__class__, Type.NULL), value)


def value(expr: Expr) -> Result:
    return judged(expr, (), Scope(lambda node, outer: []))


def of(function: str, *values: bool | int | float | str | None) -> Result:
    args = tuple(literal(v) for v in values)
    return value(Call(args[0].type, function, args))


OVERFLOW = Call(Type.BOOLEAN, "=", (Call(Type.INTEGER, "+", (literal(LARGE), literal(1))), literal(0)))


def logic(op: str, *operands: bool | str | None) -> Result:
    """'!' stands for an operand that fails."""
    return value(Call(Type.BOOLEAN, op, tuple(OVERFLOW if o == "!" else literal(o) for o in operands)))


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        ("/", (-7, 2), -3),
        ("%", (-7, 2), -1),
        ("%", (7, -2), 1),
        ("/", (1, 0), None),
        ("%", (1, 0), None),
        ("%", (MIN_INTEGER, -1), 0),
        ("/", (1.0, 0.0), None),
        ("/", (-7.0, 2.0), -3.5),
        ("%", (-7.5, 2.0), -1.5),
        ("round", (-2.5,), -3.0),
        ("round", (2.5,), 3.0),
        ("round", (2.25, 1), 2.3),
        ("floor", (-0.5,), -1.0),
        ("sqrt", (-1.0,), None),
        ("ln", (0.0,), None),
        ("power", (-8.0, 0.5), None),
        ("power", (0.0, -1.0), float("inf")),
        ("least", (None, 3, 2), 2),
        ("nullif", (1, 1), None),
        ("nullif", (1, None), 1),
        ("coalesce", (None, 4), 4),
        ("||", ("a", None), None),
        ("like", ("a\nb", "a%"), True),
        ("like", ("a%b", "a!%_", "!"), True),
        ("like", ("axb", "a!%_", "!"), False),
        ("substring", ("hello", 2, 3), "ell"),
        ("substring", ("hello", 2), "ello"),
        ("in", (1, 2, None), None),
        ("in", (1, 1, None), True),
        ("is distinct from", (None, None), False),
        ("=", (None, None), None),
        ("<", (False, True), True),
    ],
)
def test_functions_follow_the_rules_of_r4(
    function: str, args: tuple[bool | int | float | str | None, ...], expected: Result
) -> None:
    assert of(function, *args) == expected


@pytest.mark.parametrize(
    "failing", [("+", LARGE, 1), ("-", MIN_INTEGER, 1), ("*", LARGE, 2), ("neg", MIN_INTEGER), ("/", MIN_INTEGER, -1)]
)
def test_integers_never_wrap(failing: tuple[str, int, int]) -> None:
    assert isinstance(of(*failing), Failed)


def test_an_error_in_and_counts_only_if_all_else_is_true() -> None:
    assert logic("and", "!", False) is False
    assert logic("and", "!", None) is None
    assert isinstance(logic("and", "!", True), Failed)


def test_an_error_in_or_counts_only_if_all_else_is_false() -> None:
    assert logic("or", "!", True) is True
    assert logic("or", "!", None) is None
    assert isinstance(logic("or", False, "!"), Failed)


def test_case_evaluates_only_the_chosen_branch() -> None:
    whens = ((literal(False), OVERFLOW), (literal(None), OVERFLOW), (literal(True), literal(True)))
    assert value(Case(Type.BOOLEAN, whens, OVERFLOW)) is True


def test_casts_truncate_and_refuse_what_does_not_fit() -> None:
    def cast(v: bool | int | float | str, target: Type) -> Result:
        return value(Cast(target, literal(v)))

    assert cast(-2.9, Type.INTEGER) == -2
    assert isinstance(cast(1e30, Type.INTEGER), Failed)
    assert cast(" 12 ", Type.INTEGER) == 12
    assert isinstance(cast("twelve", Type.INTEGER), Failed)
    assert cast(1.0, Type.TEXT) == "1.0"
    assert cast(True, Type.TEXT) == "true"
    assert cast("1970-01-01 00:00:01", Type.TIMESTAMP) == 1000


def test_negative_zero_is_zero() -> None:
    assert str(of("neg", 0.0)) == "0.0"


def test_calendar_functions_read_utc() -> None:
    moment = Literal(Type.TIMESTAMP, 951_782_400_000 + 3_661_000)  # 2000-02-29 01:01:01
    parts = ("year", "month", "day", "hour", "minute", "second", "dayofweek")
    assert [value(Call(Type.INTEGER, p, (moment,))) for p in parts] == [2000, 2, 29, 1, 1, 1, 2]
