"""Output: the end of a plan, where answers wait for the application. Babu 2005, section 2.2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from minidsms.elements import Batch, Column
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class Output(Operator):
    """Hands every batch, gathered out of the stores, to `deliver`.

    deliver: gives how many elements it has taken, whole instants, or None for all; where it has not taken all, the
    query ends.
    """

    name = "Output"
    acts_on_time = False

    def __init__(self, input: Queue, deliver: Callable[[Batch], int | None]) -> None:
        super().__init__((input,), input.schema)
        self._deliver = deliver

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is not None:
            taken = self._deliver(batch if batch.is_own else _owned(batch))
            if taken is not None and taken < len(batch):
                self.fail(
                    int(batch.ts[taken]), "nobody has fetched its answers: more would wait than answer_limit allows"
                )
            self.counters.elements_out += len(batch) if taken is None else taken
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
