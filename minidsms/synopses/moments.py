"""Sums of each group's pairs, their squares and their products, for CORR, REGR_SLOPE and the like, and of its values,
for VAR_POP and STDDEV_POP; exact whatever came and left before.

Invariant: a group whose pairs have left is all zeros.  docs/semantics R3; `kernels.moments` draws the limbs. Imported
where a query has such an aggregate.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from minidsms.aggregates.moments import RESULTS, Moments
from minidsms.elements import AnyArray, Int64Array, Type
from minidsms.kernels import moments as kernels
from minidsms.kernels.aggregation import NULL, VALUE
from minidsms.kernels.moments import Asked
from minidsms.synopses.group_state import Argument, GroupArrays, Run

_ASKED = {
    "covar_pop": Asked(kernels.COVARIATION, kernels.BY_N_N, False),
    "covar_samp": Asked(kernels.COVARIATION, kernels.BY_N_LESS_ONE, False),
    "corr": Asked(kernels.COVARIATION, kernels.BY_ROOT_OF_BOTH, False),
    "regr_slope": Asked(kernels.COVARIATION, kernels.BY_X, False),
    "regr_intercept": Asked(kernels.INTERCEPT, kernels.BY_X, False),
    "regr_r2": Asked(kernels.COVARIATION, kernels.SQUARED_BY_BOTH, False),
    "regr_sxx": Asked(kernels.VARIATION_OF_X, kernels.BY_N, False),
    "regr_syy": Asked(kernels.VARIATION_OF_Y, kernels.BY_N, False),
    "regr_sxy": Asked(kernels.COVARIATION, kernels.BY_N, False),
    "var_pop": Asked(kernels.VARIATION_OF_Y, kernels.BY_N_N, False),
    "stddev_pop": Asked(kernels.VARIATION_OF_Y, kernels.BY_N_N, True),
}
_DIVIDED = {
    kernels.COVARIATION: {kernels.OF_Y, kernels.OF_X, kernels.OF_XY},
    kernels.VARIATION_OF_Y: {kernels.OF_Y, kernels.OF_YY},
    kernels.VARIATION_OF_X: {kernels.OF_X, kernels.OF_XX},
    kernels.INTERCEPT: {kernels.OF_Y, kernels.OF_X, kernels.OF_XX, kernels.OF_XY},
}
_OF_BOTH = _DIVIDED[kernels.VARIATION_OF_X] | _DIVIDED[kernels.VARIATION_OF_Y]
_DIVISORS = {
    kernels.BY_X: _DIVIDED[kernels.VARIATION_OF_X],
    kernels.BY_ROOT_OF_BOTH: _OF_BOTH,
    kernels.SQUARED_BY_BOTH: _OF_BOTH,
}
_FACTORS = ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
"""Of each sum, how often y and x are multiplied: so many limbs of theirs it has."""
_UNIT = 1074
"""A FLOAT is a whole multiple of 2 ** -_UNIT."""
_MOST_UNKNOWN = 16


class MomentSums(GroupArrays):
    """The sums that one function needs. by_type: of x, where there are pairs."""

    def __init__(self, function: str, arg_type: Type, by_type: Type | None = None) -> None:
        super().__init__(counts=(2, np.int64), limbs=(0, np.int64))
        self._function = function
        self._asked = asked = _ASKED[function]
        self._kept = _DIVIDED[asked.divided] | _DIVISORS.get(asked.divisor, set())
        self._are_integers = arg_type is not Type.FLOAT, (arg_type if by_type is None else by_type) is not Type.FLOAT
        self._needed: Int64Array = np.zeros(4, np.int64)
        self._lay_out([(0, 0), (0, 0)])

    def _lay_out(self, spans: list[tuple[int, int]]) -> None:
        """spans: of the limbs of y and of x the first, and how many."""
        self._spans = spans
        (y_base, y), (x_base, x) = spans
        widths = [
            a * y + b * x if sum_ in self._kept and (y or not a) and (x or not b) else 0
            for sum_, (a, b) in enumerate(_FACTORS)
        ]
        ends: Int64Array = np.array([*accumulate(widths, initial=0)], np.int64)
        self._layout = kernels.Layout(*self._are_integers, y_base, x_base, y, x, ends)
        factor = 2 * max(y, x) + 4
        sizes = 2, factor, factor, 3 * max(y, x) + 16, 3 * max(y, x) + 16
        self._room = kernels.Room(*(np.zeros(size, np.int64) for size in sizes))
        self._unknown: Int64Array = np.zeros((1 + _MOST_UNKNOWN, 2 + int(ends[-1])), np.int64)

    def advance(self, run: Run, argument: Argument, j: int, by: Argument | None = None) -> None:
        """Take a batch in; answers go to column j of the run, where they may be asked for.  by: the values of x."""
        words, _, weight = argument
        pairs = kernels.Pairs(run.ts, run.ids, weight, words, words)
        if by is not None:
            pairs = kernels.Pairs(run.ts, run.ids, weight * by.valid, words, by.words)
        counts: Any = self.tables["counts"]
        needed, done = self._needed, 0
        while True:
            limbs: Any = self.tables["limbs"]
            sums = kernels.Sums(counts, limbs, self._layout)
            to = kernels.Answers(run.floats, run.status, self._unknown, j)
            done = kernels.relate(done, pairs, self._asked, sums, needed, to, self._room)
            self._find(run, j)
            if done == len(words):
                return
            self._widen()

    def _find(self, run: Run, j: int) -> None:
        """The answers that the kernel could not round."""
        found = self._unknown.item(0, 0)
        for i, n, *limbs in self._unknown[1 : 1 + found].tolist():
            result = RESULTS[self._function](self._moments(n, limbs))
            run.floats[i, j] = 0.0 if result is None else result + 0.0
            run.status[i, j] = NULL if result is None else VALUE
        self._unknown[0, 0] = 0

    def _moments(self, n: int, limbs: list[int]) -> Moments:
        places = 0 if all(self._are_integers) else _UNIT
        moved = [
            32 * base + (places if is_integer else 0) for (base, _), is_integer in zip(self._spans, self._are_integers)
        ]
        sums = []
        for (start, end), (a, b) in zip(pairwise(self._layout.ends.tolist()), _FACTORS):
            whole = sum(limb << 32 * i for i, limb in enumerate(limbs[start:end]))
            sums.append(whole << a * moved[0] + b * moved[1])
        return Moments(n, places, *sums)

    def _widen(self) -> None:
        """Columns for what the kernel needs."""
        spans = []
        for (base, width), (first, end) in zip(self._spans, self._needed.reshape(2, 2).tolist()):
            if end and width:
                first, end = min(first, base), max(end, base + width)
            spans.append((first, end - first) if end else (base, width))
        if spans == self._spans:
            return
        before, limbs, old = self._spans, self.tables["limbs"], self._layout.ends.tolist()
        self._lay_out(spans)
        moved = [was - now for (was, _), (now, _) in zip(before, spans)]
        ends = self._layout.ends.tolist()
        self.tables["limbs"] = wider = np.zeros((len(limbs), ends[-1]), np.int64)
        for (start, end), to, (a, b) in zip(pairwise(old), ends, _FACTORS):
            at = to + a * moved[0] + b * moved[1]
            wider[:, at : at + end - start] = limbs[:, start:end]

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        return {**super().arrays(live), "spans": np.array(self._spans, np.int64)}

    def restore(self, arrays: dict[str, Any], capacity: int) -> None:
        self._lay_out([(base, width) for base, width in arrays["spans"].tolist()])
        super().restore(arrays, capacity)
