"""Sums, averages and variances of each group's values, exact whatever came and left before.

Invariant: an answer is the exact result, rounded once; a group whose values have left is all zeros.  docs/semantics R3;
kernels.exact_sums draws the limbs. Imported where a query has such an aggregate: the kernels take long to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Int64Array, Type
from minidsms.kernels import exact_sums as exact
from minidsms.synopses.group_state import Argument, GroupArrays, Run


class FloatSumState(GroupArrays):
    """SUM and AVG of FLOAT: exact sums, infinities counted apart. `base` is the first limb there is a column for."""

    def __init__(self, average: bool) -> None:
        super().__init__(counts=(3, np.int64), limbs=(0, np.int64))
        self._average = average
        self._base = 0
        self._needed: Int64Array = np.zeros(2, np.int64)
        self._digits: Int64Array = np.empty(0, np.int64)

    def advance(self, run: Run, argument: Argument, j: int) -> None:
        """Take a batch in; answers go to column j of the run."""
        words, _, weight = argument
        # Plain tuples in the places of the kernel's bundles: a NamedTuple takes seven times as long.
        values, answers = (run.ts, run.ids, weight, words), (run.floats, run.status, j)
        add: Callable[..., int] = exact.sum_floats
        tables: dict[str, Any] = self.tables
        needed, counts, done = self._needed, tables["counts"], 0
        while True:
            limbs = tables["limbs"]
            if len(self._digits) != limbs.shape[1] + 2:
                self._digits = np.empty(limbs.shape[1] + 2, np.int64)
            done = add(done, values, counts, (limbs, self._base), self._average, needed, answers, self._digits)
            if done == len(words):
                return
            self.tables["limbs"], self._base = _widened(self.tables["limbs"], self._base, needed)

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        return {**super().arrays(live), "base": np.array([self._base], np.int64)}

    def restore(self, arrays: dict[str, Any], capacity: int) -> None:
        super().restore(arrays, capacity)
        self._base = int(arrays["base"][0])


class VariationState(GroupArrays):
    """VARIANCE and STDDEV: exact sums of the values and of their squares."""

    def __init__(self, deviation: bool, arg_type: Type) -> None:
        super().__init__(counts=(2, np.int64), sums=(0, np.int64), squares=(0, np.int64))
        self._deviation = deviation
        self._is_integer = arg_type is not Type.FLOAT
        self._base = 0
        self._squares_base = 0
        self._needed: Int64Array = np.zeros(4, np.int64)
        self._laid_out = 0, 0, 0, 0
        self._room = _room(*self._laid_out)

    def advance(self, run: Run, argument: Argument, j: int) -> None:
        """Take a batch in; answers go to column j of the run."""
        words, _, weight = argument
        values, answers = exact.Values(run.ts, run.ids, weight, words), exact.Answers(run.floats, run.status, j)
        tables: dict[str, Any] = self.tables
        needed, counts, deviation, done = self._needed, tables["counts"], self._deviation, 0
        while True:
            sums = exact.Limbs(tables["sums"], self._base)
            squares = exact.Limbs(tables["squares"], self._squares_base)
            laid_out = sums.limbs.shape[1], sums.base, squares.limbs.shape[1], squares.base
            if laid_out != self._laid_out:
                self._laid_out, self._room = laid_out, _room(*laid_out)
            variation = exact.Variation(counts, sums, squares, needed)
            done = exact.vary(done, values, self._is_integer, variation, deviation, answers, self._room)
            if done == len(words):
                return
            self.tables["sums"], self._base = _widened(self.tables["sums"], self._base, needed[:2])
            self.tables["squares"], self._squares_base = _widened(
                self.tables["squares"], self._squares_base, needed[2:]
            )

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        return {**super().arrays(live), "bases": np.array([self._base, self._squares_base], np.int64)}

    def restore(self, arrays: dict[str, Any], capacity: int) -> None:
        super().restore(arrays, capacity)
        self._base, self._squares_base = (int(base) for base in arrays["bases"])


def _room(*laid_out: int) -> exact.Room:
    return exact.Room(*(np.empty(n, np.int64) for n in exact.limbs_of_variance(*laid_out)))


def _widened(limbs: AnyArray, base: int, needed: Int64Array) -> tuple[AnyArray, int]:
    """The limbs with columns for those needed too, and the first limb that has one."""
    rows, width = limbs.shape
    first, end = int(needed[0]), int(needed[1])
    if width:
        first, end = min(first, base), max(end, base + width)
    result = np.zeros((rows, end - first), np.int64)
    if width:
        result[:, base - first : base - first + width] = limbs
    return result, first
