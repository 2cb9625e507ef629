"""What ISTREAM and DSTREAM have in common: the changes of one sign, net, become a stream.

Invariant: what an instant both deletes and inserts is in neither stream.  docs/semantics S1, T3.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Batch, Int64Array
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
        self.is_self_contained = not order_by_value  # the order of texts is the connection's
        self._input_netted = input_netted
        if not input_netted:
            load()
        self._keep_seq = keep_seq and not order_by_value

    def stream_of(self, batch: Batch, wanted: int) -> Batch | None:
        """The changes of this sign that their instant does not take back; None where there are none."""
        rows: Int64Array | None = None
        if not self._input_netted:
            rows = surviving(batch, wanted)
        elif batch.sign is not None and bool((batch.sign != wanted).any()):
            rows = np.flatnonzero(batch.sign == wanted)
        if rows is not None and not len(rows):
            return None
        if rows is not None:
            batch = batch.take(rows)
        batch = as_stream(batch, self._keep_seq)
        return ordered_by_value(batch, self.schema, self._ranks) if self._order_by_value else batch

    def describe(self) -> Description:
        return Description(self.name, "ordered by value" if self._order_by_value else "")
