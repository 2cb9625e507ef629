"""UnboundedWindow: all rows so far. Nothing ever leaves, so nothing is kept.

Invariant: every element that comes is put out once, as an insertion, with an arrival number above all before it.
docs/semantics W3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class UnboundedWindow(Operator):
    """numbers: count the arrivals anew even where batches have numbers (a derived stream's may be out of order)."""

    name = "UnboundedWindow"
    is_stateless = True
    acts_on_time = False

    def __init__(self, input_: Queue, numbers: bool = False) -> None:
        super().__init__([input_], input_.schema)
        self._numbers = numbers
        self._arrived = 0

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = batches[0]
        if batch is None:
            return ()
        if self._numbers or batch.seq is None:
            seq = np.arange(self._arrived, self._arrived + len(batch), dtype=np.int64)
            batch = Batch(batch.ts, None, batch.columns, seq)
        self._arrived += len(batch)
        return (batch,)

    def describe(self) -> Description:
        return Description(self.name, "RANGE UNBOUNDED", {"arrived": self._arrived})
