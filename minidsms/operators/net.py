"""The output of a relation: its changes, netted per instant (docs/semantics D2, S1).

Invariant: no row is both inserted and deleted at one instant. Which of several equal elements stay is not told, so
arrival numbers end here. Of a relation whose rows leave in the order in which they came, the rows present are a run of
its arrivals, known here before netting loses their order: a stub is all that is kept of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, Schema
from minidsms.operators.netting import load, surviving
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.stub import Stub


class PresentRun:
    """The rows present of a relation that deletes in the order of insertion: references where its rows are some."""

    def __init__(self, schema: Schema) -> None:
        self.stub = Stub(schema)

    def take(self, batch: Batch) -> None:
        """Take in changes, before netting."""
        stub, arrived = self.stub, batch
        if batch.sign is not None:
            arrived = batch.take(np.flatnonzero(batch.sign > 0))
            arrived.sign = None
        if len(arrived):
            stub.receive(arrived)
        stub.mid = stub.hi
        stub.lo += len(batch) - len(arrived)
        stub.settle()

    def rows(self) -> Batch:
        """The rows present as insertions."""
        return self.stub.contents()


class Net(Operator):
    """The elements of a relation without those that cancel within their instant.

    keeps: know the rows present. Only where deletions come in the order of insertions, and come.
    """

    name = "Net"
    is_self_contained = True
    acts_on_time = False

    def __init__(self, input: Queue, keeps: bool = False) -> None:
        super().__init__([input], input.schema)
        load()
        self._present = PresentRun(input.schema) if keeps else None

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = batches[0]
        if batch is None:
            return ()
        if self._present is not None:
            self._present.take(batch)
        kept = surviving(batch)
        if kept is not None:
            batch = batch.take(kept)
        if batch.reference is None and batch.seq is None:
            return (batch,)
        return (Batch(batch.ts, batch.sign, batch.columns, is_own=batch.is_own),)

    def contents(self) -> Batch:
        """The rows present, as insertions (ts of no meaning)."""
        assert self._present is not None, "a relation with deletions in the order of insertions"
        return self._present.rows()

    def describe(self) -> Description:
        if self._present is None:
            return Description(self.name)
        stub = self._present.stub
        return Description(self.name, "", {"rows": len(stub), "bytes": stub.nbytes})

    def close(self) -> None:
        """Give up the claim on the store."""
        if self._present is not None:
            self._present.stub.release()

    def synopses(self) -> tuple[Stub, ...]:
        return () if self._present is None else (self._present.stub,)
