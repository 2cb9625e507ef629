"""FirstArrival: rows that are there from the first arrival on, and never leave.

They are those of VALUES (R9), and the one row without columns by which an aggregate without GROUP BY has its own (R3).

Invariant: they are put out once, at the least ts over all inputs.  docs/semantics R3, R9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.counted import counted
from minidsms.elements import AnyArray, Batch, Column, Int64Array, Schema
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.operators.window_events import NO_COLUMNS
from minidsms.queues import Queue


class Started:
    """Whether the first arrival has been. columns, schema: of the rows that wait for it."""

    def __init__(self, columns: Sequence[Column], schema: Schema) -> None:
        self.ts: int | None = None
        self._columns, self._schema = columns, schema

    @property
    def nbytes(self) -> int:
        return sum(column.values.nbytes for column in self._columns)

    def live_codes(self) -> Iterator[Int64Array]:
        """Codes of the rows, which whoever reads them holds once they are put out."""
        if self.ts is None:
            yield from (self._columns[i].values for i in self._schema.coded)  # type: ignore[misc]

    def arrays(self) -> dict[str, AnyArray]:
        return {"started": np.array([] if self.ts is None else [self.ts], np.int64)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self.ts = int(state["started"][0]) if len(state["started"]) else None


class FirstArrival(Resuming):
    """The rows at the first arrival in any of the streams (or first change of any base relation).

    columns: n values each, of the schema.
    """

    name = "FirstArrival"
    acts_on_time = False

    def __init__(
        self, inputs: Sequence[Queue], columns: Sequence[Column] = (), schema: Schema = NO_COLUMNS, n: int = 1
    ) -> None:
        super().__init__(inputs, schema)
        self._columns, self._n = columns, n
        self._started = Started(columns, schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        if self._started.ts is not None:
            return ()
        first = min((int(batch.ts[0]) for batch in batches if batch is not None), default=None)
        if first is None:
            return ()
        self._started.ts = first
        return (Batch(np.full(self._n, first, np.int64), None, list(self._columns)),)

    def present(self) -> Batch:
        n = 0 if self._started.ts is None else self._n
        return Batch(np.zeros(n, np.int64), None, [column.slice(0, n) for column in self._columns])

    def describe(self) -> Description:
        rows = f"{counted(self._n, 'row')}, " if len(self.schema) else ""
        return Description(self.name, f"{rows}of {counted(len(self.inputs), 'input')}", {"at": self._started.ts})

    def synopses(self) -> tuple[Started, ...]:
        return (self._started,)
