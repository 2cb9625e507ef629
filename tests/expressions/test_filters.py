"""Filters of a conjunction: whatever their order, and by kernel or by numpy, the same rows pass and the same fail."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minidsms.cql.bound import Expr
from minidsms.cql.catalog import FunctionDef
from minidsms.expressions import Context
from minidsms.expressions.filter_tests import FloatRange, IntegerRange, IsTrue, Members, split
from minidsms.expressions.predicate import chunk_of, filters_of, pass_filters
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    TEXT,
    batch_of,
    call,
    column,
    expressions,
    literal,
    rows,
)  # fmt: skip
from tests.expressions.test_expressions import FAILURE, by_definition

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def passed(condition: Expr, table: list[tuple[Any, ...]], order: list[int], use_kernels: bool) -> list[Any]:
    dictionary = TextDictionary()
    batch = batch_of(table, dictionary)
    filters = filters_of(condition, Context(dictionary))
    kept, wrong = pass_filters(filters, order, chunk_of(batch, 0, len(batch)), use_kernels)
    result: list[Any] = [False] * len(batch)
    for row in range(len(batch)) if kept is None else kept.tolist():
        result[row] = True
    for row in () if wrong is None else wrong.tolist():
        assert result[row] is False
        result[row] = FAILURE
    return result


@SLOW
@given(st.lists(expressions(BOOLEAN, 1), min_size=1, max_size=4), rows(30), st.randoms(use_true_random=False))
def test_no_order_of_the_filters_changes_what_passes_and_what_fails(
    parts: list[Expr], table: list[tuple[Any, ...]], random: Random
) -> None:
    condition = call(BOOLEAN, "and", *parts, literal(True))
    expected = [e if e == FAILURE else e is True for e in by_definition(condition, table)]
    order = list(range(len(filters_of(condition, Context(TextDictionary())))))
    random.shuffle(order)
    for use_kernels in (False, True):
        assert passed(condition, table, order, use_kernels) == expected


COMPARED = [
    call(BOOLEAN, name, column(c), literal(v))
    for name in ("=", "<>", "<", "<=", ">", ">=")
    for c, values in (
        ("i", (0, 1, -(2**63), 2**63 - 1)),
        ("f", (0.0, 1.5, float("inf"), float("-inf"))),
        ("t", ("a", "")),
    )
    for v in values
    if not (c == "t" and name[0] in "<>" and name != "<>")
]


@pytest.mark.parametrize("flipped", [False, True])
@given(rows(20))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_comparison_with_a_constant_is_a_range_or_a_list(flipped: bool, table: list[tuple[Any, ...]]) -> None:
    for part in COMPARED:
        test = split(part, TextDictionary())[1]
        # Nothing is below the smallest integer or above the greatest: such a comparison stays what it is.
        assert isinstance(test, IsTrue) == ((part.function, part.args[1].value) in (("<", -(2**63)), (">", 2**63 - 1)))
        written = call(BOOLEAN, part.function, *reversed(part.args)) if flipped else part
        expected = [e is True for e in by_definition(written, table)]
        for use_kernels in (False, True):
            assert passed(written, table, [0], use_kernels) == expected, written


@given(rows(20))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_lists_and_remainders_are_tests_of_their_operand(table: list[tuple[Any, ...]]) -> None:
    null = literal(None, INTEGER)
    for part, kind in (
        (call(BOOLEAN, "in", column("i"), literal(1), literal(-1), literal(7)), Members),
        (call(BOOLEAN, "in", column("i"), literal(1), null), Members),
        (call(BOOLEAN, "not", call(BOOLEAN, "in", column("i"), literal(1), literal(0))), Members),
        (call(BOOLEAN, "not", call(BOOLEAN, "in", column("i"), literal(1), null)), IsTrue),
        (call(BOOLEAN, "in", column("t"), literal("a"), literal("zz")), Members),
        (call(BOOLEAN, "in", column("f"), literal(1.5), literal(0.0)), Members),
        (call(BOOLEAN, "=", call(INTEGER, "%", column("i"), literal(3)), literal(-1)), IntegerRange),
        (call(BOOLEAN, "<", call(INTEGER, "%", column("i"), literal(-3)), literal(1)), IntegerRange),
        (call(BOOLEAN, "=", call(INTEGER, "%", column("i"), literal(0)), literal(0)), IntegerRange),
        (call(BOOLEAN, ">=", call(FLOAT, "+", column("f"), literal(1.0)), literal(1.0)), FloatRange),
    ):
        assert isinstance(split(part, TextDictionary())[1], kind), part
        expected = [e is True for e in by_definition(part, table)]
        for use_kernels in (False, True):
            assert passed(part, table, [0], use_kernels) == expected, part


def test_a_failing_row_is_told_only_if_all_other_filters_let_it_pass() -> None:
    def picky(x: int) -> bool:
        if x == 2:
            raise ValueError("two")
        return x != 4

    context = Context(TextDictionary(), functions={"f": FunctionDef("f", picky, (INTEGER,), BOOLEAN)})
    from minidsms.cql.bound import UserCall

    condition = call(
        BOOLEAN, "and", UserCall(BOOLEAN, "f", (column("i"),)), call(BOOLEAN, "<", column("j"), literal(10))
    )
    filters = filters_of(condition, context)
    table = [(i, 5 if i < 5 else 50, None, None, None, None, None, None) for i in range(7)]
    table[3] = (2, 50, None, None, None, None, None, None)
    frame = chunk_of(batch_of(table, context.dictionary), 0, 7)
    for order, use_kernels in itertools.product(([0, 1], [1, 0]), (False, True)):
        kept, wrong = pass_filters(filters, order, frame, use_kernels)
        assert kept is not None and kept.tolist() == [0, 1]
        assert wrong is not None and wrong.tolist() == [2]


def test_a_text_in_a_filter_keeps_its_code() -> None:
    dictionary = TextDictionary()
    operand, test = split(call(BOOLEAN, "=", column("t"), literal("held")), dictionary)
    assert operand == column("t") and isinstance(test, Members)
    dictionary.sweep([])
    assert dictionary.code("held") == test.items[0]
    assert operand.type is TEXT
