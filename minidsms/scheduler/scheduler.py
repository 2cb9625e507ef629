"""The contract of a scheduler: which operator runs next, and for how many elements.

A scheduler sees of an operator what waits in its queues, since when, and what its elements have cost so far; so the
operators of a plan and the simulated ones of `experiments.scheduling_simulation` are driven by the same classes.

Invariant: `run` returns when no operator has work; the answer never depends on the choice (docs/semantics T5).
Babu 2005, section 2.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

IDLE, DONE, LEFT, BLOCKED = range(4)
"""What a turn of an operator has come to: it had nothing to do; it ran, and nothing is left, or something is; no reader
has made room.
"""


class Waiting(Protocol):
    """A queue, as a scheduler sees it; it is known by its identity to its producer and its consumer."""

    def first_ts(self) -> int | None:
        """Since when its oldest element waits, or None."""


class Measured(Protocol):
    """What an operator has consumed, put out and cost since it exists."""

    @property
    def elements_in(self) -> float: ...

    @property
    def elements_out(self) -> float: ...

    @property
    def time_ns(self) -> float: ...


class Schedulable(Protocol):
    """An operator, as a scheduler sees it."""

    @property
    def inputs(self) -> Sequence[Waiting]:
        """One queue per input."""

    @property
    def outputs(self) -> Sequence[Waiting]:
        """One queue per consumer."""

    @property
    def counters(self) -> Measured:
        """Its cost and selectivity, as totals."""

    @property
    def progress(self) -> int:
        """The instant up to which it has processed everything."""

    def has_work(self) -> bool:
        """Something is begun or waits."""

    def take_turn(self, budget: int) -> int:
        """`run`, where there is work and room for what it yields: IDLE, DONE, LEFT or BLOCKED."""

    def is_blocked(self) -> bool:
        """A reader has not made room."""

    def run(self, budget: int) -> int:
        """Consume at most `budget` elements per input, and a sixteenth more (or one instant, if that alone is more);
        returns how many.
        """


class Scheduler(Protocol):
    """Drives operators, given in an order in which producers stand before their consumers.

    least: elements of a slice from which there is something to choose; fewer pass through the plan in one turn.
    """

    name: str
    quantum: int
    least: int

    def run(self, operators: Sequence[Schedulable]) -> None:
        """Run the operators until none has work."""

    def choose(self, operators: Sequence[Schedulable]) -> Schedulable | None:
        """The operator that is to run next; None when none is ready."""


def is_ready(operator: Schedulable) -> bool:
    """There is work, and room for what it yields."""
    return operator.has_work() and not operator.is_blocked()


def run_a_stalled_one(operators: Sequence[Schedulable], quantum: int) -> bool:
    """When nobody is ready, let an operator whose output queue is full run all the same; False if there is none.

    It happens where two paths meet again, one being full while the reader waits for the other, and where an instant has
    more elements than a queue may hold. The one nearest to the output is let: its readers wait for what it holds. The
    queue exceeds its bound by an instant rather than the plan standing still.
    """
    for operator in reversed(operators):
        if operator.has_work():
            operator.run(quantum)
            return True
    return False
