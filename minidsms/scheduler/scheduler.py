"""The contract of a scheduler: which operator runs next, and for how many elements.

Invariant: `run` returns when no operator has work; the answer never depends on the choice (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from minidsms.operators.operator import Operator


class Scheduler(Protocol):
    """Drives operators, given in an order in which producers stand before their consumers."""

    name: str
    quantum: int

    def run(self, operators: Sequence[Operator]) -> None:
        """Run the operators until none has work."""
        ...


def run_a_stalled_one(operators: Sequence[Operator], quantum: int) -> bool:
    """When nobody is ready, let an operator whose output queue is full run all the same; False if there is none.

    It happens where two paths meet again: one is full, the reader waits for the other. The queue exceeds its bound by
    one
    batch rather than the plan standing still.
    """
    for operator in operators:
        if operator.has_work():
            operator.run(quantum)
            return True
    return False
