"""Kernels of filters: the positions that pass are those that numpy's comparison finds, wherever the values stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidsms.elements import Column
from minidsms.expressions.filter_tests import AT, DENSE, GATHERED, FloatRange, IntegerRange, Members, ValueTest
from minidsms.expressions.filter_tests import keep as kept

LEAST, GREATEST = -(2**63), 2**63 - 1
EDGES = [0, 1, -1, 2, -2, 7, 999, 1000, -999, -1000, 2**50 - 1, 2**50, -(2**50), 2**53 + 1, GREATEST, LEAST, LEAST + 1]


def integers(seed: int = 0) -> np.ndarray:
    """Some words of 64 that are all within 2^50, and some that are not."""
    rng = np.random.default_rng(seed)
    near = rng.integers(-(2**50) + 1, 2**50, 300) >> rng.integers(0, 50, 300)
    spread = rng.integers(LEAST, GREATEST, 200) >> rng.integers(0, 62, 200)
    return np.concatenate([near, spread, np.array(EDGES, np.int64)])


def agrees_with_numpy(test: ValueTest, values: np.ndarray) -> None:
    rows = np.flatnonzero(np.random.default_rng(1).random(len(values)) < 0.6)
    none = rows[:0]
    for given, among, layout in (
        (values, None, DENSE),
        (values, rows, AT),
        (values[rows], rows, GATHERED),
        (values[:0], None, DENSE),
        (values, none, AT),
    ):
        by_kernel = kept(test, given, among, layout, use_kernels=True)
        assert by_kernel.tolist() == kept(test, given, among, layout, use_kernels=False).tolist()
    alone = values[-len(EDGES) :: 2]
    assert [test.passes(value) for value in alone.tolist()] == test.mask(alone).tolist()
    assert [len(kept(test, alone[i : i + 1], None, DENSE, True)) for i in range(len(alone))] == test.mask(
        alone
    ).tolist()


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 1000, 10**12, 2**53, 2**62, GREATEST])
def test_a_remainder_has_the_sign_of_the_dividend(divisor: int) -> None:
    values = integers()
    for value in np.fmod(values, divisor)[-40:].tolist():
        agrees_with_numpy(IntegerRange(value, value, divisor=divisor), values)
        agrees_with_numpy(IntegerRange(LEAST, value, True, divisor), values)
        agrees_with_numpy(IntegerRange(value, GREATEST, False, divisor), values)


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 1000, 2**25 + 1, 2**49 - 1, 2**50 - 1, 2**50])
def test_quotients_near_whole_and_half_ones_are_taken_exactly(divisor: int) -> None:
    most = 2**50 // divisor
    quotients = np.unique(np.concatenate([np.arange(min(most, 40)), most - np.arange(1, min(most, 40))]))
    rests = [r for r in {0, 1, divisor // 2 - 1, divisor // 2, divisor // 2 + 1, divisor - 1} if 0 <= r < divisor]
    values = np.array([q * divisor + r for q in quotients.tolist() for r in rests], np.int64)
    values = np.resize(np.concatenate([values, -values]), 2 * len(values) + 64)
    for rest in rests:
        agrees_with_numpy(IntegerRange(rest, rest, divisor=divisor), values)
        agrees_with_numpy(IntegerRange(-rest, rest, True, divisor), values)


def test_an_integer_range_holds_both_its_ends() -> None:
    values = integers(2)
    for lo in EDGES:
        for hi in EDGES:
            if lo <= hi:
                agrees_with_numpy(IntegerRange(lo, hi), values)
                agrees_with_numpy(IntegerRange(lo, hi, True), values)
    assert kept(IntegerRange(2, 4), np.arange(6), None, DENSE, True).tolist() == [2, 3, 4]


def test_a_float_range_holds_both_its_ends_and_infinities() -> None:
    inf = float("inf")
    ends = np.array([0.0, 1.0, -1.0, 5e-324, 1e308, inf, -inf, 2.5, 2.5000000000000004])
    values = np.random.default_rng(5).choice(ends, 300)
    for lo in (*ends, float("nan")):
        for hi in ends:
            agrees_with_numpy(FloatRange(float(lo), float(hi)), values)
            agrees_with_numpy(FloatRange(float(lo), float(hi), True), values)


@pytest.mark.parametrize(
    "items", [[0], [5, 5, 5], list(range(40)), [GREATEST, LEAST, 0, -1], [1 << s for s in range(62)]]
)
def test_members_of_a_list_are_found(items: list[Any]) -> None:
    values = np.concatenate([integers(3), np.array(items, np.int64)])
    for negated in (False, True):
        agrees_with_numpy(Members(np.array(items, np.int64), negated), values)
        agrees_with_numpy(Members(np.array(items, np.float64), negated), values.astype(np.float64) + 0.0)


def test_strided_and_read_only_values_are_taken() -> None:
    values = integers(4)[::2]
    agrees_with_numpy(IntegerRange(0, 10**6), values)
    frozen = np.ascontiguousarray(values)
    frozen.flags.writeable = False
    agrees_with_numpy(IntegerRange(0, 10**6), frozen)
    agrees_with_numpy(Members(values[:3], False), Column(frozen).values)
