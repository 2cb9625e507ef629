"""Project: one row of expressions per row. Babu 2005, table 2.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, BoolArray, Choice, Column, Schema
from minidsms.operators.operator import Description, Operator
from minidsms.operators.select import Explain
from minidsms.queues import Queue

Projection = Callable[[Batch], tuple[Sequence[Column], BoolArray | None]]
"""batch -> (columns, rows where an expression failed or None)."""


class Project(Operator):
    """Computes the columns of its schema; a projection that only chooses columns keeps references to the store."""

    name = "Project"
    is_stateless = True
    acts_on_time = False

    def __init__(
        self,
        input: Queue,
        projection: Projection,
        explain: Explain,
        schema: Schema,
        detail: str,
        chosen: list[int] | None,
    ) -> None:
        """chosen: the input columns, in order, when no expression computes anything; else None."""
        super().__init__((input,), schema)
        self._projection = projection
        self._explain = explain
        self._detail = detail
        self.choice = None if chosen is None else Choice(chosen)
        """Of the input columns, when no expression computes anything; else None."""

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None:
            return ()
        if self.choice is not None:
            return (batch.select(self.choice),)
        columns, failed = self._projection(batch)
        if failed is not None and failed.any():
            row = int(np.argmax(failed))
            self.fail(int(batch.ts[row]), self._explain(batch, row))
        return (batch.with_columns(columns),)

    def describe(self) -> Description:
        return Description(self.name, self._detail)
