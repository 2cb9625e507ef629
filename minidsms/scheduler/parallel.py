"""Operators that do not wait for each other run side by side: those of several queries, or of branches of one plan.

An operator runs when those before it have run, so nobody writes a queue that another thread reads. Only operators that
touch nothing but their own state are given to other threads; the others run in the thread that called, in which the
dictionary, answers and functions of the user are safe.

Invariant: as under every scheduler, the answer does not depend on who ran first; when `run` returns or raises no other
thread is at work. docs/processes.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from typing import Protocol

from minidsms.process.side_by_side import Dividing, side_by_side
from minidsms.scheduler.scheduler import LEFT, Schedulable
from minidsms.scheduler.wiring import Wiring


class Independent(Schedulable, Protocol):
    """An operator, as seen here."""

    @property
    def is_self_contained(self) -> bool:
        """Any thread may run it."""


class Parallel:
    """dividing: whether it pays, of the operators last seen."""

    def __init__(self) -> None:
        self.dividing = Dividing()
        self._wiring = Wiring(())
        self._width = 0

    def width(self, operators: Sequence[Independent]) -> int:
        """How many threads may be at work at once, of operators in an order in which producers stand before consumers:
        the most, at one distance from the inputs, that any thread may run.
        """
        if not self._wiring.is_of(operators):
            self._wiring, self.dividing = Wiring(operators), Dividing()
            distances: list[int] = []
            at: Counter[int] = Counter()
            for operator, producers in zip(operators, self._wiring.producers):
                distances.append(1 + max((distances[i] for i in producers), default=0))
                at[distances[-1]] += operator.is_self_contained
            self._width = max(at.values(), default=0)
        return self._width

    def run(self, operators: Sequence[Independent], quantum: int, threads: int) -> None:
        """Give each of these, which `width` has been asked of, the turns it can have; what is left waits for room."""
        wiring = self._wiring
        waits_for = [len(producers) for producers in wiring.producers]
        anywhere: deque[int] = deque()
        here: deque[int] = deque()
        changed = threading.Condition()
        left = len(operators)

        def may_run(position: int) -> None:
            (anywhere if operators[position].is_self_contained else here).append(position)

        def work(part: int) -> None:
            nonlocal left
            mine = anywhere if part else here
            try:
                while True:
                    with changed:
                        while left and not mine and not anywhere:
                            changed.wait()
                        if not left:
                            return
                        position = (mine or anywhere).popleft()
                    while operators[position].take_turn(quantum) == LEFT:
                        pass
                    with changed:
                        left = max(0, left - 1)
                        for behind in wiring.consumers[position]:
                            waits_for[behind] -= 1
                            if not waits_for[behind]:
                                may_run(behind)
                        changed.notify_all()
            except BaseException:
                with changed:
                    left = 0  # nobody begins another
                    changed.notify_all()
                raise

        for position, count in enumerate(waits_for):
            if not count:
                may_run(position)
        side_by_side(work, threads)
