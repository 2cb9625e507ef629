"""The output of a relation: its changes, netted per instant (docs/semantics D2, S1).

Invariant: no row is both inserted and deleted at one instant. Which of several equal elements stay is not told, so
arrival numbers end here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minidsms.elements import Batch
from minidsms.operators.netting import surviving
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class Net(Operator):
    """The elements of a relation without those that cancel within their instant."""

    name = "Net"

    def __init__(self, input: Queue) -> None:
        super().__init__([input], input.schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        batch = batches[0]
        if batch is None:
            return
        kept = surviving(batch)
        if kept is not None:
            batch = batch.take(kept)
        yield Batch(batch.ts, batch.sign, batch.columns)

    def describe(self) -> Description:
        return Description(self.name)
