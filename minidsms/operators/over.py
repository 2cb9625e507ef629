"""OVER on a relation, or on a stream whose rows look ahead.

Invariant: after an instant the rows put out are those of the input with their results; of those whose result is above
`at_most`, none need be.  docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.aggregates.over import SHARES, OverCall
from minidsms.elements import Batch, Schema
from minidsms.kernels import sorted_partitions as kernels
from minidsms.operators.aggregate import AggregateSpec
from minidsms.operators.frame_states import FrameStates
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.object_states import Texts
from minidsms.synopses.sorted_partitions import BY_PLACE, SortedPartitions


class Over(Resuming):
    """Appends what the call gives.  at_most: rows with a greater rank are of no interest.  input_append_only: no row
    leaves.  in_order: and all rows of an instant stand behind those of earlier ones.  spec: of an aggregate that no
    kernel slides.

    O(log n) comparisons a change of n rows of a partition, and moving the slots behind it.
    """

    name = "Over"
    acts_on_time = False

    def __init__(
        self, input_: Queue, call: OverCall, schema: Schema, texts: Texts, at_most: int | None = None,
        input_append_only: bool = False, in_order: bool = False, spec: AggregateSpec | None = None,
    ) -> None:  # fmt: skip
        super().__init__([input_], schema)
        self._call = call
        self._row_nbytes = 8 * (len(schema) + 8)
        keeps = kernels.KEEPS_ALL
        sees_all = call.function in SHARES or (call.is_framed and call.frame.end is None)
        self._states = None if spec is None or call.slides else FrameStates(spec, (), texts, self.claim)
        carries_states = self._states is not None and call.frame.start is None
        if input_append_only and in_order and not sees_all and not carries_states:
            keeps = kernels.KEEPS_LAST
        elif input_append_only and at_most is not None:
            keeps = kernels.KEEPS_SHOWN
        self.knows_rows = keeps != kernels.KEEPS_LAST  # else they have been forgotten
        self._rows = _partitions(input_.schema, call, at_most, keeps, texts, self._states)
        self.is_self_contained = not input_.schema.coded and (self._states is None or not self._states.groups.objects)

    @property
    def has_states(self) -> bool:
        """States of groups give its answers."""
        return self._states is not None

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return
        self.claim(self._row_nbytes * len(batch.ts))
        for told in self._rows.take(batch):
            yield self._batch(told)
        if self._rows.failed_at is not None:
            reason = "" if self._states is None else self._states.reason
            self.fail(self._rows.failed_at, reason or f"{self._call.label} overflows {self._call.type}")

    def _batch(self, told: kernels.RankedRows) -> Batch:
        batch = Batch(told.ts.copy(), told.sign.copy(), self._rows.columns(told, self._call.type), is_own=True)
        batch.is_netted = True
        return batch

    def present(self) -> Batch:
        return self._batch(self._rows.present())

    def describe(self) -> Description:
        return Description(self.name, self._call.label, {"rows": len(self._rows), "bytes": self._rows.nbytes})

    def synopses(self) -> tuple[SortedPartitions, ...]:
        return (self._rows,)


def _partitions(
    schema: Schema, call: OverCall, at_most: int | None, keeps: int, texts: Texts, states: FrameStates | None
) -> SortedPartitions:
    """The kernels of frames are large, and loaded with the first call that needs them."""
    if call.function in BY_PLACE:
        return SortedPartitions(schema, call, at_most, keeps, texts)
    if states is None:
        from minidsms.synopses.framed_partitions import FramedPartitions

        return FramedPartitions(schema, call, at_most, keeps, texts)
    from minidsms.synopses.visited_partitions import VisitedPartitions

    return VisitedPartitions(schema, call, at_most, keeps, texts, states)
