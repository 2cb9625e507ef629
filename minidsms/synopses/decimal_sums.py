"""The exact sum of each group's DECIMALs.

Invariant: a group whose values have left is all zeros.  docs/semantics R3, R4; `kernels.decimal_sums` draws the words.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Column, Int64Array, Type
from minidsms.kernels import decimal_sums as kernels
from minidsms.kernels.aggregation import FAILED, NULL, VALUE, Answers
from minidsms.synopses.group_state import Argument, GroupArrays, Run
from minidsms.synopses.object_states import Texts
from minidsms.values.coded import digits_of

_WORD = 2**64


class DecimalSums(GroupArrays):
    """SUM of DECIMAL. texts: has the values, and gets the sums, that have no computed code."""

    def __init__(self, type_: Type, texts: Texts) -> None:
        super().__init__(sums=(kernels.SUM_WORDS, np.int64))
        self._texts = texts
        self._greatest = 10**type_.digits - 1

    def advance(self, run: Run, argument: Argument, j: int) -> None:
        """Take a batch in; answers go to column j of the run."""
        codes, _, weight = argument
        elements, answers = kernels.Summed(run.ids, weight, codes), Answers(run.results, run.status, j)
        sums: Int64Array = self.tables["sums"]  # type: ignore[assignment]
        done = kernels.sum_decimals(0, elements, sums, answers)
        while done < len(codes):
            at = done if done >= 0 else -1 - done
            sum_ = sums[run.ids[at]]
            if done >= 0:
                way = int(weight[at])
                sum_[kernels.COUNT] += way
                _write(sum_, _read(sum_) + way * self._digits(codes[at : at + 1]))
            self._answer(sum_, run, at, j)
            done = kernels.sum_decimals(at + 1, elements, sums, answers)

    def _digits(self, code: Int64Array) -> int:
        (text,) = self._texts.decode(Column(code))
        assert text is not None, "what is NULL has no weight"
        return digits_of(text)

    def _answer(self, sum_: Int64Array, run: Run, at: int, j: int) -> None:
        total = _read(sum_) if sum_[kernels.COUNT] else None
        fits = total is None or abs(total) <= self._greatest
        column = self._texts.digits_column([total if fits else None])
        run.results[at, j] = column.values[0]
        run.status[at, j] = FAILED if not fits else NULL if total is None else VALUE


def _read(sum_: Int64Array) -> int:
    """The digits without the point."""
    low, middle, high = sum_[kernels.LOW :].tolist()
    return int(low % _WORD + _WORD * (middle % _WORD) + _WORD**2 * high)


def _write(sum_: Int64Array, digits: int) -> None:
    low, middle, high = digits % _WORD, digits // _WORD % _WORD, digits // _WORD**2
    sum_[kernels.LOW :] = [word - _WORD if word >= _WORD // 2 else word for word in (low, middle)] + [high]
