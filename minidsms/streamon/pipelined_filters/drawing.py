"""Pipelined filters under an Eddy: a block of tuples takes an order that was drawn for it.

Draws stand in no log: they are no decisions.  Invariant: which rows come out does not depend on them.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.value import Frame
from minidsms.streamon.contracts import DrawsOrders
from minidsms.streamon.pipelined_filters.executor import FilterExecutor

BLOCK = 1024


def run_drawn(
    executor: FilterExecutor, eddy: DrawsOrders, frame: Frame, rows: Int64Array | None, use_kernels: bool
) -> tuple[Int64Array | None, Int64Array | None]:
    """As `narrow_by`, block by block."""
    entering = np.arange(frame.n) if rows is None else rows
    kept: list[Int64Array] = []
    wrong: list[Int64Array] = []
    for start in range(0, len(entering), BLOCK):
        order = eddy.draw()
        executor.switch(order)
        passing, failed = executor.run(frame, entering[start : start + BLOCK], use_kernels)
        eddy.count(order, executor.parts[-1].reached)
        if passing is not None:
            kept.append(passing)
        if failed is not None:
            wrong.append(failed)
    return np.concatenate(kept) if kept else entering, np.concatenate(wrong) if wrong else None
