"""Output: the end of a plan, where answers wait for the application. Babu 2005, section 2.2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from minidsms.elements import Batch
from minidsms.limits.allowance import TOO_MANY_ANSWERS
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class Output(Operator):
    """Hands every batch to `deliver`.

    deliver: copies what it keeps, for rows may still stand in stores (`Batch.owned`); gives the first instant that it
    has not taken, where the query ends, or None.
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
            refused = self._deliver(batch)
            if refused is None:
                self.counters.elements_out += len(batch.ts)
            else:
                self.fail(refused, TOO_MANY_ANSWERS)
                self.counters.elements_out += int(np.searchsorted(batch.ts, refused))
        return ()

    def describe(self) -> Description:
        return Description(self.name)
