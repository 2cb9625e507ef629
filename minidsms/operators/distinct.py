"""DISTINCT: every row of the input once.  docs/semantics R1, R5; Babu 2005, table 2.1 ("duplicate-eliminate")."""

from __future__ import annotations

from minidsms.kernels.counting import DISTINCT
from minidsms.operators.counting import CountingOperator
from minidsms.queues import Queue


class DuplicateEliminate(CountingOperator):
    """The input without duplicates. is_fifo: its deletions come in the order of its insertions."""

    name = "Distinct"

    def __init__(self, input: Queue, is_fifo: bool = False) -> None:
        super().__init__([input], DISTINCT, input.schema, [is_fifo])
