"""Output: the end of a plan, where answers wait for the application. Babu 2005, section 2.2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from minidsms.elements import Batch, Column
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class Output(Operator):
    """Hands every batch, gathered out of the stores, to `deliver`."""

    name = "Output"
    acts_on_time = False

    def __init__(self, input: Queue, deliver: Callable[[Batch], None]) -> None:
        super().__init__((input,), input.schema)
        self._deliver = deliver

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is not None:
            self.counters.elements_out += len(batch)
            # What is delivered outlives the ring it may be a view of.
            ts = batch.ts if batch.ts.base is None else batch.ts.copy()
            sign = batch.sign if batch.sign is None or batch.sign.base is None else batch.sign.copy()
            self._deliver(Batch(ts, sign, [_owned(c) for c in batch.columns]))
        return ()

    def describe(self) -> Description:
        return Description(self.name)


def _owned(column: Column) -> Column:
    values = column.values if column.values.base is None else column.values.copy()
    valid = column.valid if column.valid is None or column.valid.base is None else column.valid.copy()
    return Column(values, valid)
