"""Sums, averages and variances against exact fractions: any floats and integers, whatever came and left before."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minidsms.elements import Batch, Type
from minidsms.kernels.aggregation import FAILED, NULL
from minidsms.kernels.grouping import AVG, SUM, move_sums
from minidsms.synopses.exact_sums import FloatSumState, VariationState
from minidsms.synopses.group_records import Call, GroupRecords
from minidsms.synopses.group_state import Argument, Run
from tests.operators.harness import column, run_over

floats = st.floats(allow_nan=False).map(lambda x: x + 0.0)
integers = st.integers(-(2**63), 2**63 - 1)


class IntegerSums(GroupRecords):
    """Records of one sum or average of INTEGER, moved as the other states are."""

    def __init__(self, average: bool) -> None:
        super().__init__([Call(AVG if average else SUM)])
        self.average = average

    def advance(self, run: Run, argument: Argument, j: int) -> None:
        values, weights = argument.words.reshape(1, -1), argument.weight.reshape(1, -1)
        move_sums(run.ids, self.calls, values, weights, self.records, run.results, run.floats, run.status)


def after_each(state: Any, values: list[Any], signs: list[int], type_: Type) -> list[Any]:
    """The answers of one group after each element."""
    n = len(values)
    run, argument = run_over(Batch(np.arange(n), np.array(signs, np.int8), [column(values, type_)]), [0] * n)
    state.resize(1)
    state.advance(run, argument, 0)
    answers = []
    is_integer_answer = isinstance(state, IntegerSums) and not state.average
    for i in range(n):
        kind = run.status[i, 0]
        word = run.results[i, 0] if is_integer_answer else run.floats[i, 0]
        answers.append(None if kind == NULL else "failed" if kind == FAILED else word.item())
    return answers


def moves(values: list[Any], left: list[int]) -> tuple[list[Any], list[int], list[list[Any]]]:
    """Insert each value, then delete the oldest present as often as `left` says; also the values present after each."""
    out: list[Any] = []
    signs: list[int] = []
    present: list[Any] = []
    states: list[list[Any]] = []
    for value, gone in zip(values, left):
        for sign in (1, *(-1,) * gone):
            if sign < 0 and not present:
                break
            present.append(value) if sign > 0 else None
            out.append(value if sign > 0 else present.pop(0))
            signs.append(sign)
            states.append(list(present))
    return out, signs, states


def rounded(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def total(present: list[Any], average: bool) -> Any:
    if not present:
        return None
    if any(isinstance(v, float) and math.isinf(v) for v in present):
        result = sum(v for v in present if math.isinf(v))
        return None if math.isnan(result) else result
    exact = sum((Fraction(v) for v in present), Fraction(0))
    return rounded(exact / len(present) if average else exact)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(floats, st.integers(0, 2)), min_size=1, max_size=25))
@example([(1e308, 0), (1e308, 0), (5e-324, 2), (-1e308, 0)])
@example([(0.0, 0), (0.0, 1)])
def test_float_sums_are_exact_and_rounded_once(items: list[tuple[float, int]]) -> None:
    values, signs, states = moves([v for v, _ in items], [g for _, g in items])
    answers = after_each(FloatSumState(False), values, signs, Type.FLOAT)
    assert answers == [total(present, False) for present in states]
    averages = after_each(FloatSumState(True), values, signs, Type.FLOAT)
    for mine, present in zip(averages, states):
        expected = total(present, True)
        assert mine == expected or math.isclose(mine, expected, rel_tol=1e-15, abs_tol=1e-323)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(integers, st.integers(0, 2)), min_size=1, max_size=25))
@example([(-(2**63), 0), (-(2**63), 0), (2**63 - 1, 1), (2**63 - 1, 1)])
@example([(2**53, 0), (1, 0), (0, 0)])
def test_integer_sums_are_exact_and_fail_only_where_the_sum_does_not_fit(items: list[tuple[int, int]]) -> None:
    values, signs, states = moves([v for v, _ in items], [g for _, g in items])
    expected = [sum(p) if p else None for p in states]
    answers = after_each(IntegerSums(False), values, signs, Type.INTEGER)
    assert answers == [e if e is None or -(2**63) <= e < 2**63 else "failed" for e in expected]
    for mine, present in zip(after_each(IntegerSums(True), values, signs, Type.INTEGER), states):
        assert mine == (sum(present) / len(present) if present else None)


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.data())
def test_variance_is_that_of_the_values_present(is_integer: bool, data: st.DataObject) -> None:
    kind = integers | st.integers(-3, 3) if is_integer else floats | st.integers(-9, 9).map(lambda i: i / 8)
    items = data.draw(st.lists(st.tuples(kind, st.integers(0, 2)), min_size=1, max_size=20))
    values, signs, states = moves([v for v, _ in items], [g for _, g in items])
    type_ = Type.INTEGER if is_integer else Type.FLOAT
    variances = after_each(VariationState(False, type_), values, signs, type_)
    deviations = after_each(VariationState(True, type_), values, signs, type_)
    for variance, deviation, present in zip(variances, deviations, states):
        if len(present) < 2 or any(isinstance(v, float) and math.isinf(v) for v in present):
            assert variance is None and deviation is None
            continue
        exact = [Fraction(v) for v in present]
        mean = sum(exact, Fraction(0)) / len(exact)
        expected = rounded(sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (len(exact) - 1))
        assert math.isclose(variance, expected, rel_tol=1e-14, abs_tol=1e-320)
        assert deviation == pytest.approx(math.sqrt(expected), rel=1e-14, abs=1e-160)


def test_the_limbs_a_sum_takes_follow_the_data() -> None:
    state = FloatSumState(False)
    after_each(state, [1.5, 2.5, 1000.0], [1, 1, 1], Type.FLOAT)
    assert state.tables["limbs"].shape[1] <= 4
    after_each(state, [1e300], [1], Type.FLOAT)
    assert 30 < state.tables["limbs"].shape[1] < 40
    assert after_each(state, [1e300, 1.5], [-1, -1], Type.FLOAT) == [1004.0, 1002.5]


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 2**40), st.integers(-(2**80), 2**80), st.integers(-1, 1), st.booleans())
def test_a_mean_of_integers_is_rounded_once(count: int, quotient: int, beside: int, is_half: bool) -> None:
    doubled = 2 * quotient * count + (count if is_half else 0)
    total = (doubled >> 1) + beside
    state = GroupRecords([Call(AVG)])
    state.resize(1)
    at = state.calls["offset"].item(0)
    state.records[0, at : at + 3] = (count, np.uint64(total & (1 << 64) - 1).astype(np.int64), total >> 64)
    run, argument = run_over(Batch(np.zeros(1, np.int64), None, [column([0], Type.INTEGER)]), [0])
    nothing = np.zeros((1, 1), np.int8)
    move_sums(
        run.ids, state.calls, argument.words.reshape(1, 1), nothing, state.records, run.results, run.floats, run.status
    )
    assert run.floats.item(0, 0) == total / count
