"""How many of each group's values have each bit, exact whatever came and left before.

Invariant: a group whose values have left is all zeros.  docs/semantics R3; `kernels.bit_counts` draws the planes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.kernels import bit_counts as kernels
from minidsms.kernels.aggregation import Answers
from minidsms.synopses.group_state import Argument, GroupArrays, Run

_ASKED = {"bit_and": kernels.IN_ALL, "bit_or": kernels.IN_ONE, "bit_xor": kernels.ODD}


class BitCounts(GroupArrays):
    """BIT_AND, BIT_OR and BIT_XOR."""

    def __init__(self, function: str) -> None:
        super().__init__(counts=(1, np.int64))
        self._asked = _ASKED[function]

    def advance(self, run: Run, argument: Argument, j: int) -> None:
        """Take a batch in; answers go to column j of the run."""
        words, _, weight = argument
        elements, to = kernels.Valued(run.ids, weight, words), Answers(run.results, run.status, j)
        done = 0
        while True:
            counts: Any = self.tables["counts"]
            done = kernels.count_bits(done, elements, self._asked, counts, to)
            if done == len(words):
                return
            self.tables["counts"] = np.pad(counts, ((0, 0), (0, 2)))
