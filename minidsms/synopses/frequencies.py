"""How many rows of each group have each value, in the order of these numbers: MODE.

Invariant: of every group each value that is there stands once among the ranked ones, under the number of its rows.
docs/semantics R3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Int64Array, Type
from minidsms.kernels import frequencies as kernels
from minidsms.kernels.aggregation import Answers
from minidsms.kernels.ordered_values import Valued
from minidsms.synopses.group_state import Argument, DistinctValues, Run
from minidsms.synopses.object_states import Texts
from minidsms.synopses.ordered_values import OrderedValues


class Frequencies:
    """The most frequent value of each group. is_descending: of several the greatest, else the least."""

    def __init__(self, arg_type: Type, is_descending: bool, texts: Texts | None) -> None:
        self._counted = DistinctValues(arg_type)
        # The value of the extreme number; of several the extreme one.
        self._ranked = OrderedValues(arg_type, is_descending, False, False, texts, by_type=Type.INTEGER)
        self._step = 1 if is_descending else -1

    @property
    def nbytes(self) -> int:
        return self._counted.nbytes + self._ranked.nbytes

    def advance(self, run: Run, argument: Argument, j: int) -> None:
        """Take a batch in; answers go to column j of the run."""
        words, valid, weight = argument
        counted, ranked = self._counted, self._ranked
        ranked.cover(words, words, valid != 0)
        elements = Valued(run.ids, weight, valid, np.empty(len(words), np.int64), words)
        order, to, done = ranked.order, Answers(run.results, run.status, j), 0
        while True:
            ordered, pairs = ranked.ordered, kernels.Counted(counted.pairs.parts, counted.counts)
            done = kernels.most_frequent(done, elements, self._step, pairs, order, ordered, to)
            if done == len(words):
                break
            (ranked if ranked.is_full else counted).grow()
        counted.settle()

    def settle(self, n: int) -> None:
        """Give memory back where most of it is free."""
        self._ranked.settle(n)

    def resize(self, capacity: int) -> None:
        """Room for all ids below capacity."""
        self._ranked.resize(capacity)

    def renumber(self, kept: Int64Array, capacity: int) -> None:
        """Group kept[i] is group i from now on."""
        self._counted.renumber(kept, capacity)
        self._ranked.renumber(kept, capacity)

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """The state, with groups numbered as in live."""
        return {**self._counted.arrays(live), **self._ranked.arrays(live)}

    def restore(self, arrays: dict[str, Any], capacity: int) -> None:
        self._counted.restore(arrays, capacity)
        self._ranked.restore(arrays, capacity)

    def live_codes(self) -> Iterable[Int64Array]:
        yield from self._counted.live_codes()
        yield from self._ranked.live_codes()
