"""Output: the end of a plan, where answers wait for the application. Babu 2005, section 2.2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, Column
from minidsms.limits.allowance import TOO_MANY_ANSWERS
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class Output(Operator):
    """Hands every batch, gathered out of the stores, to `deliver`.

    deliver: gives the first instant that it has not taken, where the query ends, or None.
    """

    name = "Output"
    acts_on_time = False
    takes_whole = True

    def __init__(self, input: Queue, deliver: Callable[[Batch], int | None]) -> None:
        super().__init__((input,), input.schema)
        self._deliver = deliver

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is not None:
            refused = self._deliver(batch if batch.is_own else _owned(batch))
            if refused is None:
                self.counters.elements_out += len(batch.ts)
            else:
                self.fail(refused, TOO_MANY_ANSWERS)
                self.counters.elements_out += int(np.searchsorted(batch.ts, refused))
        return ()

    def describe(self) -> Description:
        return Description(self.name)


def _owned(batch: Batch) -> Batch:
    """The batch with arrays of its own: what is delivered outlives the ring it may be a view of."""
    ts, sign = batch.ts, batch.sign
    if ts.base is not None:
        ts = ts.copy()
    if sign is not None and sign.base is not None:
        sign = sign.copy()
    return Batch(ts, sign, [_owned_column(c) for c in batch.columns])


def _owned_column(column: Column) -> Column:
    values, valid = column.values, column.valid
    if values.base is None and (valid is None or valid.base is None):
        return column
    return Column(values.copy(), None if valid is None else valid.copy())
