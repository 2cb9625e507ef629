"""Text functions are computed once per text, and forget what a sweep may have renamed."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.cql.bound import Cast, ColumnRef
from minidsms.elements import Batch, Column
from minidsms.expressions import Context, Evaluator, compile_predicate, text
from minidsms.expressions.text import CodeTable
from minidsms.expressions.value import Value
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import BOOLEAN, FLOAT, INTEGER, TEXT, call, literal

T, U = ColumnRef(TEXT, 0, "t"), ColumnRef(TEXT, 1, "u")


def run(evaluator: Evaluator, dictionary: TextDictionary, *columns: list[str | None]) -> list[str | None]:
    encoded = [dictionary.encode(c) for c in columns]
    return dictionary.decode(evaluator(encoded.__getitem__, len(columns[0])).column())


def test_a_function_touches_each_text_once() -> None:
    d, seen = TextDictionary(), []

    def length(text: str) -> int:
        seen.append(text)
        return len(text)

    table = CodeTable(d, length, INTEGER)
    for _ in range(3):
        column = d.encode(["aa", "b", "aa", None])
        assert table(Value(column.values, column.valid)).values.tolist() == [2, 1, 2, 0]
    assert sorted(seen) == ["aa", "b"]


def test_a_code_that_names_another_text_after_a_sweep_is_computed_anew() -> None:
    d = TextDictionary()
    upper = Evaluator(call(TEXT, "upper", T), Context(d))
    for letter in ("a", "b", "c"):
        assert run(upper, d, [letter]) == [letter.upper()]
        d.sweep([])


def test_a_constant_of_a_plan_outlives_sweeps() -> None:
    d = TextDictionary()
    predicate = compile_predicate(call(BOOLEAN, "=", T, literal("x")), Context(d))
    d.sweep([])
    column = d.encode(["y", "x"])
    mask, failed = predicate(Batch(np.zeros(2, np.int64), None, [column]))
    assert mask.tolist() == [False, True] and failed is None


def test_concatenation_with_null_is_null() -> None:
    d = TextDictionary()
    both = Evaluator(call(TEXT, "||", T, U), Context(d))
    assert run(both, d, ["a", None, "a", "a"], ["b", "b", None, "b"]) == ["ab", None, None, "ab"]


def test_a_concatenation_leaves_no_text_of_its_parts() -> None:
    d = TextDictionary()
    i, f = ColumnRef(INTEGER, 0, "i"), ColumnRef(FLOAT, 1, "f")
    parts = call(
        TEXT, "||", call(TEXT, "||", Cast(TEXT, i), literal("-")), call(TEXT, "||", Cast(TEXT, f), Cast(TEXT, i))
    )
    columns = [Column(np.array([7, 8, 0]), np.array([True, True, False])), Column(np.array([0.5, -1.0, 2.0]))]
    joined = Evaluator(parts, Context(d))(columns.__getitem__, 3)
    assert d.decode(joined.column()) == ["7-0.57", "8--1.08", None]
    assert len(d) == len({"-", "7-0.57", "8--1.08"})


def test_what_few_rows_are_told_stays_bounded() -> None:
    d = TextDictionary()
    upper = Evaluator(call(TEXT, "upper", T), Context(d))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_MOST_SINGLE", 3)
        for turn in range(2):
            for letter in "abcde":
                assert run(upper, d, [letter]) == [letter.upper()], turn
    assert run(upper, d, [None]) == [None]


def test_substring_counts_from_one_and_clips() -> None:
    d = TextDictionary()
    for start, length, expected in ((1, 2, "ab"), (0, 2, "a"), (-5, 2, ""), (2, -1, ""), (3, 9, "c"), (9, 1, "")):
        cut = Evaluator(call(TEXT, "substring", T, literal(start), literal(length)), Context(d))
        assert run(cut, d, ["abc"]) == [expected]


def test_order_is_by_code_point_for_columns_and_constants() -> None:
    d = TextDictionary()
    left, right = ["Z", "a", "\uffff", None], ["a", "a", "\U00010000", "a"]
    less = Evaluator(call(BOOLEAN, "<", T, U), Context(d))
    columns = [d.encode(left), d.encode(right)]
    assert less(columns.__getitem__, 4).values.tolist() == [True, False, True, False]
    above = Evaluator(call(BOOLEAN, "<", literal("Z"), T), Context(d))
    assert above(columns.__getitem__, 4).values.tolist() == [False, True, True, False]


def test_length_of_an_empty_batch_is_empty() -> None:
    d = TextDictionary()
    for expr in (call(INTEGER, "length", T), call(TEXT, "||", T, U), call(TEXT, "||", literal("a"), literal("b"))):
        value = Evaluator(expr, Context(d))(lambda i: Column(np.zeros(0, np.int64)), 0)
        assert len(value.values) == 0
