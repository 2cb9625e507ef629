"""PartitionWindow: the last N arrivals of each key, within T, or its present session.

Invariant: after the instant tau the window holds, for each key, those of its last N arrivals whose ts is in
(tau - T, tau]; or the run of its arrivals between which less than T has passed, if that is so of the last and tau. NULL
keys are one group. Deletions come in any order, so the relation is not first-in-first-out.
docs/semantics W5, W11; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql.window_spec import WindowSpec
from minidsms.elements import Batch
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.partition_stub import PartitionStub


class PartitionWindow(Resuming):
    """spec: PARTITION or SESSION. Rows are put out as copies, numbered."""

    name = "PartitionWindow"
    is_self_contained = True

    def __init__(self, input_: Queue, spec: WindowSpec) -> None:
        super().__init__([input_], input_.schema + spec.implied)
        self.spec = spec
        self.stub = PartitionStub(input_.schema, spec)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None and self.stub.range_ is None:
            return ()
        return self.stub.pass_through(batch, until)

    def wakes_at(self) -> int:
        """The instant at which the next element may leave, where any does of its own."""
        return min(super().wakes_at(), self.stub.leaves_at())

    def contents(self) -> Batch:
        """The rows present, as insertions (ts of no meaning)."""
        return self.stub.contents()

    def describe(self) -> Description:
        stub = self.stub
        return Description(
            self.name, self.spec.text(self.schema), {"rows": len(stub), "groups": stub.groups, "bytes": stub.nbytes}
        )

    def synopses(self) -> tuple[PartitionStub, ...]:
        return (self.stub,)
