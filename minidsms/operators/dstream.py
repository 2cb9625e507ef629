"""DSTREAM: the stream of the rows that leave a relation.

Invariant: at instant t it carries the positive part of R(t-1) - R(t), as bags.  docs/semantics S1, T3; Arasu, Babu,
Widom 2006.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minidsms.elements import Batch
from minidsms.operators.netting import Ranks, as_stream, load, ordered_by_value, surviving
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class DStream(Operator):
    """The rows deleted at each instant, net, as a stream. Options as for `IStream`."""

    name = "DStream"
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

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        batch = batches[0]
        if batch is None or batch.sign is None:
            return
        wanted = batch.sign < 0
        if not wanted.any():
            return
        kept = None if self._input_netted else surviving(batch)
        batch = as_stream(batch.take(wanted if kept is None else wanted & kept), self._keep_seq)
        yield ordered_by_value(batch, self.schema, self._ranks) if self._order_by_value else batch

    def describe(self) -> Description:
        return Description(self.name, "ordered by value" if self._order_by_value else "")
