"""Every expression, on every row, is what the evaluator by definition says: value, NULL or failure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from minidsms.cql import bound
from minidsms.cql.bound import Case, Cast, Expr, Literal
from minidsms.elements import Batch, Column, Type
from minidsms.expressions import Context, Evaluator, Projection, compile_predicate, compiler, text, value
from minidsms.testing.definition_expressions import Failed, Scope, judged
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import (
    BOOLEAN,
    EDGE,
    FLOAT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    batch_of,
    call,
    column,
    expressions,
    literal,
    rows,
)  # fmt: skip

FAILURE = "failed"
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
KINDS = (INTEGER, FLOAT, BOOLEAN, TEXT, TIMESTAMP)


def no_subqueries(node: bound.Node, outer: Any) -> Any:
    raise AssertionError("these expressions have no subqueries")


def by_definition(expr: Expr, table: list[tuple[Any, ...]]) -> list[Any]:
    results = [judged(expr, row, Scope(no_subqueries)) for row in table]
    return [FAILURE if isinstance(r, Failed) else r for r in results]


def vectorised(expr: Expr, table: list[tuple[Any, ...]], programs: bool = False) -> list[Any]:
    dictionary = TextDictionary()
    batch = batch_of(table, dictionary)
    evaluator = Evaluator(expr, Context(dictionary, compilation=lambda: "auto" if programs else "off"))
    value = evaluator(batch.column, len(batch))
    obeys_the_invariants(value, expr.type, len(batch))
    items = dictionary.decode(value.column()) if expr.type is TEXT else value.values.tolist()
    valid = np.ones(len(batch), bool) if value.valid is None else value.valid
    failed = np.zeros(len(batch), bool) if value.failed is None else value.failed
    return [FAILURE if f else item if v else None for item, v, f in zip(items, valid, failed)]


def obeys_the_invariants(value: Any, type_: Type, n: int) -> None:
    assert value.values.shape == (n,) and value.values.dtype == type_.dtype
    assert value.values.flags.c_contiguous
    if value.valid is not None:
        assert value.valid.shape == (n,) and not value.values[~value.valid].any()
    if value.failed is not None:
        assert value.failed.shape == (n,) and not value.valid[value.failed].any()
    if type_ is FLOAT:
        assert not np.isnan(value.values).any() and not (np.signbit(value.values) & (value.values == 0)).any()


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-9)
    return type(a) is type(b) and a == b


def check(expr: Expr, table: list[tuple[Any, ...]]) -> None:
    expected = by_definition(expr, table)
    for programs in (False, True):
        found = vectorised(expr, table, programs)
        assert all(map(alike, expected, found)), (programs, expected, found)


@pytest.mark.parametrize("type_", KINDS, ids=str)
@pytest.mark.parametrize("depth", [1, 2])
def test_an_expression_is_what_the_definition_says(type_: Type, depth: int) -> None:
    @SLOW
    @given(expressions(type_, depth), rows())
    def law(expr: Expr, table: list[tuple[Any, ...]]) -> None:
        check(expr, table)

    law()


def test_nullif_keeps_its_invariants_where_no_row_is() -> None:
    check(call(FLOAT, "nullif", column("f"), Cast(FLOAT, literal(""))), [])


@SLOW
@given(expressions(BOOLEAN, 2), st.lists(expressions(BOOLEAN, 1), min_size=1, max_size=3), rows(30))
def test_a_predicate_finds_the_rows_that_are_true_and_the_rows_that_failed(
    first: Expr, others: list[Expr], table: list[tuple[Any, ...]]
) -> None:
    condition = call(BOOLEAN, "and", first, *others)
    dictionary = TextDictionary()
    mask, failed = compile_predicate(condition, Context(dictionary))(batch_of(table, dictionary))
    expected = by_definition(condition, table)
    assert mask.tolist() == [e is True for e in expected]
    assert (failed is not None) == (FAILURE in expected)
    if failed is not None:
        assert failed.tolist() == [e == FAILURE for e in expected]


@pytest.mark.parametrize("operator", list("+-*/%"))
def test_integer_arithmetic_is_exact_or_fails_on_every_pair_of_edges(operator: str) -> None:
    edges = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        7,
        2**31,
        2**32 + 1,
        3037000499,
        3037000500,
        2**62,
        -(2**62),
        EDGE - 1,
        -EDGE,
        1 - EDGE,
    ]
    table = [(a, b, None, None, None, None, None, None) for a in edges for b in edges]
    check(call(INTEGER, operator, column("i"), column("j")), table)
    for edge in edges:
        check(call(INTEGER, operator, column("i"), literal(edge)), table)
        check(call(INTEGER, operator, literal(edge), column("i")), table)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [(i, i % 3 or None, i / 2, 0.0, i % 2 == 0, "ab"[i % 2], None, i) for i in range(100)]
    expr = Case(
        INTEGER,
        ((call(BOOLEAN, ">", column("i"), literal(50)), call(INTEGER, "/", column("i"), column("j"))),),
        call(INTEGER, "*", column("i"), literal(2**58)),
    )
    whole = vectorised(expr, table)
    assert FAILURE in whole and None in whole
    monkeypatch.setattr(compiler, "CHUNK", 7)
    assert vectorised(expr, table) == whole == by_definition(expr, table)


@pytest.mark.parametrize("operator", list("+-*"))
def test_floats_of_large_chunks_are_those_of_small_ones(monkeypatch: pytest.MonkeyPatch, operator: str) -> None:
    edges = [None, 0.0, -1.5, 3.0, 5e-324, -5e-324, 1e308, math.inf, -math.inf]
    table = [(None, None, a, b, None, None, None, None) for a in edges for b in edges]
    monkeypatch.setattr(value, "KERNELS_FROM", len(table))
    check(call(FLOAT, operator, column("f"), column("g")), table)


@SLOW
@given(st.sampled_from(KINDS).flatmap(lambda type_: expressions(type_, 2)), rows(30))
def test_few_rows_have_the_values_that_they_have_among_many(expr: Expr, table: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (value, text):
            patch.setattr(module, "FEW", 0)
        check(expr, table)


def test_a_condition_of_case_fails_only_where_no_earlier_one_is_true() -> None:
    reads = Cast(BOOLEAN, column("t"))
    expr = Case(INTEGER, ((column("b"), literal(1)), (reads, column("i"))), column("j"))
    table = [(i, j, None, None, b, s, None, None) for i in (None, 7) for j in (None, 8) for b in (True, False, None)
             for s in ("true", "odd", None)]  # fmt: skip
    check(expr, table)
    assert FAILURE in vectorised(expr, table)


def test_an_error_counts_only_where_every_other_conjunct_is_true() -> None:
    overflows = call(BOOLEAN, ">", call(INTEGER, "+", column("i"), literal(1)), literal(0))
    flag = column("b")
    table = [(EDGE - 1, None, None, None, b, None, None, None) for b in (True, False, None)]
    for order in ((overflows, flag), (flag, overflows)):
        assert vectorised(call(BOOLEAN, "and", *order), table) == [FAILURE, False, None]
        assert vectorised(call(BOOLEAN, "or", *order), table) == [True, FAILURE, None]


def test_only_the_chosen_branch_of_a_case_can_fail() -> None:
    expr = Case(
        INTEGER, ((call(BOOLEAN, "<", column("i"), literal(10)), column("i")),), call(INTEGER, "neg", column("i"))
    )
    assert vectorised(expr, [(-EDGE, *[None] * 7), (11, *[None] * 7)]) == [-EDGE, -11]


def test_a_column_is_passed_on_without_a_copy() -> None:
    dictionary = TextDictionary()
    batch = batch_of([(1, 2, None, None, None, None, None, None)], dictionary)
    projection = Projection((column("i"), call(INTEGER, "+", column("i"), column("j"))), Context(dictionary))
    (same, total), failed = projection(batch)
    assert same is batch.column(0) and total.values.tolist() == [3] and failed is None


def test_evaluating_columns_tells_the_rows_that_failed() -> None:
    dictionary = TextDictionary()
    batch = Batch(np.zeros(2, np.int64), None, [Column(np.array([1, EDGE - 1]))])
    (result,), failed = Projection((call(INTEGER, "+", column("i"), literal(1)),), Context(dictionary))(batch)
    assert failed is not None and failed.tolist() == [False, True]
    assert result.values.tolist() == [2, 0]


def test_subqueries_and_outer_references_never_reach_the_compiler() -> None:
    with pytest.raises(AssertionError):
        Evaluator(bound.OuterRef(INTEGER, 0), Context(TextDictionary()))


@given(st.floats(allow_nan=False))
@example(9223372036854774784.0)
@example(-9223372036854775808.0)
@example(9223372036854775808.0)
def test_a_float_is_cast_toward_zero_or_fails(x: float) -> None:
    fits = math.isfinite(x) and -EDGE <= int(x) < EDGE
    assert vectorised(Cast(INTEGER, column("f")), [(None, None, x + 0.0, *[None] * 5)]) == [int(x) if fits else FAILURE]


def test_a_text_that_is_no_number_fails_and_nan_is_null() -> None:
    table = [(*[None] * 5, text, None, None) for text in ("12", " -3 ", "1_000", "٣", "1e5", "nan", "", "inf")]
    assert vectorised(Cast(INTEGER, column("t")), table) == [12, -3] + [FAILURE] * 6
    floats = vectorised(Cast(FLOAT, column("t")), table)
    assert floats == [12.0, -3.0, FAILURE, FAILURE, 100000.0, None, FAILURE, math.inf]


def test_null_literals_of_every_type_are_null() -> None:
    for type_ in KINDS:
        assert vectorised(Literal(type_, None), [(None,) * 8] * 2) == [None, None]
