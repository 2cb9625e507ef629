"""Output hands on what its producer has put out, as it is."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Batch, Column, Schema, Type
from minidsms.operators.operator import LARGE
from minidsms.operators.output import Output
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from minidsms.statements.history import HistoryGate


def test_batches_that_are_larger_than_a_slice_are_handed_on_as_they_were_put_out() -> None:
    n = LARGE + 1
    delivered: list[Batch] = []
    inputs = Queue(Schema.of(("v", Type.INTEGER)), 4 * n)
    operator = Output(inputs, lambda batch: delivered.append(batch))
    for begin in (0, n):
        ts = np.arange(begin, begin + n)
        inputs.put(Batch(ts, None, [Column(ts)], is_own=True))
        inputs.progress = begin + n
    while is_ready(operator):
        operator.run(100)
    assert [len(batch) for batch in delivered] == [n, n]
    assert all(batch.is_own and batch.ts.base is None for batch in delivered)


def test_the_past_of_a_late_query_stays_when_the_store_it_stood_in_is_written_again() -> None:
    ts, ring = np.arange(8), np.arange(8)
    delivered: list[Batch] = []
    gate = HistoryGate(lambda batch: delivered.append(batch), True, Batch.concat, 8)
    for start in (0, 4):
        gate(Batch(ts[start : start + 4], None, [Column(ring[start : start + 4])]))
        ring[:4] = -1
    gate.open()
    assert [batch.columns[0].values.tolist() for batch in delivered] == [[*range(8)]]
