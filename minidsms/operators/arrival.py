"""What comes beside an element's columns, as a column: its arrival number, its instant.

A batch carries its elements' arrival numbers beside its columns, and filters and projections pass them on. Joins do
not: where one stands between a window and FIRST or LAST (a subquery in WHERE), the numbers travel as a column.
Instants become a column where a query reads them (docs/semantics W10).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql.window_spec import INSTANT
from minidsms.elements import Batch, Column, Field, Schema, Type
from minidsms.operators.operator import Operator
from minidsms.queues import Queue

ARRIVAL = Field("_arrival", Type.INTEGER)


class KeepArrival(Operator):
    """Appends the arrival numbers as a last column."""

    name = "KeepArrival"

    def __init__(self, input: Queue) -> None:
        super().__init__((input,), input.schema + Schema((ARRIVAL,)))

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is not None:
            assert batch.seq is not None, "a window numbers its elements"
            yield batch.with_columns([*batch.columns, Column(batch.seq)])


class RestoreArrival(Operator):
    """Takes the last column back as the arrival numbers."""

    name = "RestoreArrival"

    def __init__(self, input: Queue) -> None:
        super().__init__((input,), Schema(input.schema.fields[:-1]))

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is not None:
            arrival = batch.column(batch.width - 1).values
            columns = [batch.column(i) for i in range(batch.width - 1)]
            yield Batch(batch.ts, batch.sign, columns, arrival)  # type: ignore[arg-type]


class Stamp(Operator):
    """Appends the instants as a last column. refers: batches refer to the stream's store, where they stand, too."""

    name = "Stamp"
    is_stateless = True
    acts_on_time = False

    def __init__(self, input: Queue, refers: bool = False) -> None:
        super().__init__((input,), input.schema + INSTANT)
        self._refers = refers

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None:
            return ()
        return (batch.stamped() if self._refers else batch.with_columns([*batch.columns, Column(batch.ts)]),)
