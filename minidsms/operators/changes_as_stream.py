"""What ISTREAM and DSTREAM have in common: the changes of one sign, net, become a stream.

Invariant: what an instant both deletes and inserts is in neither stream.  docs/semantics S1, T3.
"""

from __future__ import annotations

from minidsms.elements import Batch, BoolArray
from minidsms.operators.netting import Ranks, as_stream, load, ordered_by_value, surviving
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class ChangesAsStream(Operator):
    """order_by_value: order the rows of an instant by value, TEXT by `ranks` (where the stream feeds a window).
    keep_seq: pass the arrival numbers on; they are those of the one stream the relation filters and projects.
    input_netted: no row of the input is deleted and inserted at one instant.
    """

    is_stateless = True
    acts_on_time = False

    def __init__(
        self,
        input: Queue,
        order_by_value: bool = False,
        ranks: Ranks | None = None,
        keep_seq: bool = False,
        input_netted: bool = False,
    ) -> None:
        super().__init__([input], input.schema)
        self._order_by_value = order_by_value
        self._ranks = ranks
        self._input_netted = input_netted
        if not input_netted:
            load()
        self._keep_seq = keep_seq and not order_by_value

    def stream_of(self, batch: Batch, wanted: BoolArray | None) -> Batch:
        """The wanted (n,) changes of a batch that their instant does not take back; None: all of it is wanted."""
        if wanted is not None:
            kept = None if self._input_netted else surviving(batch)
            batch = batch.take(wanted if kept is None else wanted & kept)
        batch = as_stream(batch, self._keep_seq)
        return ordered_by_value(batch, self.schema, self._ranks) if self._order_by_value else batch

    def describe(self) -> Description:
        return Description(self.name, "ordered by value" if self._order_by_value else "")
