"""Entering: the rows of a window as they enter it, as a stream.

Of a window that slides these are the rows of its stream, each at the first multiple of L that is not before it. What
leaves the window is passed over: whoever reads this lets rows leave by their own clock.

Invariant: the output has no deletions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.elements import Batch
from minidsms.operators.operator import Operator
from minidsms.queues import Queue


class Entering(Operator):
    """input: from a window."""

    name = "Entering"
    is_stateless = True
    acts_on_time = False

    def __init__(self, input_: Queue) -> None:
        super().__init__((input_,), input_.schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None or batch.sign is None:
            return () if batch is None else (batch,)
        entering = batch.take(batch.sign > 0)
        entering.sign = None
        return (entering,) if len(entering.ts) else ()
