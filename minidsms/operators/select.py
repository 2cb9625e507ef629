"""Select: the rows for which a condition is TRUE. Babu 2005, table 2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, BoolArray
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue

Predicate = Callable[[Batch], tuple[BoolArray, BoolArray | None]]
"""batch -> (rows where the condition is TRUE, rows where it failed or None), each (n,) bool."""

Explain = Callable[[Batch, int], str]
"""(batch, row) -> which expression failed there, and why."""


class Select(Operator):
    """Passes the elements whose row satisfies the predicate; both signs alike, so that a deletion follows its
    insertion.
    """

    name = "Select"
    acts_on_time = False

    def __init__(self, input: Queue, predicate: Predicate, explain: Explain, detail: str, is_fifo: bool) -> None:
        super().__init__((input,), input.schema, is_fifo)
        self._predicate = predicate
        self._explain = explain
        self._detail = detail

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None:
            return
        mask, failed = self._predicate(batch)
        if failed is not None and failed.any():
            row = int(np.argmax(failed))
            self.fail(int(batch.ts[row]), self._explain(batch, row))
        kept = np.flatnonzero(mask)
        if len(kept) == len(batch):
            yield batch
        elif len(kept):
            yield batch.take(kept)

    def describe(self) -> Description:
        counters = self.counters
        selectivity = counters.elements_out / counters.elements_in if counters.elements_in else None
        return Description(self.name, self._detail, {"selectivity": selectivity})
