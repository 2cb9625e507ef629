"""The engine: takes what the input manager has released through the plans of the queries, slice by slice.

Queries that read the same inputs form a group: they have one frontier, the instant up to which every stream they read
has told all (docs/semantics T4), so they go through the same slices, and may share operators (`plan/sharing.py`). A
slice is a range of whole instants, about `batch_size` elements, and ends at the frontier. So operators never wait for
another input's time; what waits stays in the streams' stores (docs/design, point 10).

Invariant: when `step` returns, the engine is at rest: no operator has work, no queue holds an element, every query has
processed every closed instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns

from minidsms.elements import MIN_INSTANT
from minidsms.engine.group import Group
from minidsms.limits.allowance import NO_MEMORY
from minidsms.operators.operator import Operator
from minidsms.operators.stream_source import StreamSource
from minidsms.process.side_by_side import usable_threads
from minidsms.scheduler import Scheduler
from minidsms.scheduler.round_robin import RoundRobin


class _Turns:
    """The operators of several groups, one turn each time it is gone through."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def __iter__(self) -> Iterator[Operator]:
        for group in self._groups:
            yield from group.in_turn()


WORTH_THREADS = 16_384
"""Elements of a slice from which operators run side by side: handing one to another thread takes some 50 us."""


class Engine:
    """Drives groups of networks with a scheduler. threads: that may be at work on a slice, or 'auto'."""

    def __init__(self, scheduler: Scheduler, batch_size: int, threads: Callable[[], int | str] = lambda: 1) -> None:
        self.scheduler = scheduler
        self.batch_size = batch_size
        self._threads = threads
        self.heartbeat = MIN_INSTANT
        self._in_turn = RoundRobin(scheduler.quantum)

    def _scheduler_for(self, elements: int) -> Scheduler:
        """Where few elements come, nobody needs to choose: they pass through the plan in one turn."""
        scheduler = self.scheduler
        if elements >= scheduler.least:
            return scheduler
        if self._in_turn.quantum != scheduler.quantum:
            self._in_turn = RoundRobin(scheduler.quantum)
        return self._in_turn

    def step(self, groups: Sequence[Group]) -> bool:
        """Process everything that is due in these groups; whether an operator ran."""
        pending = groups
        has_run, is_alone = False, len(groups) == 1
        while pending:
            released: list[Group] = []
            cut: list[Group] = []
            for group in pending:
                try:
                    if group.release(self.heartbeat, self.batch_size):
                        has_run = True
                        if group.is_cut:
                            cut.append(group)
                        if not group.pass_by_hand(self.scheduler, is_alone):
                            group.let_go()
                            released.append(group)
                except MemoryError:  # its queries end before the slice
                    group.stop(NO_MEMORY)
            if released:
                try:
                    self._run(released)
                except MemoryError:
                    for group in released:
                        group.stop(NO_MEMORY)
            pending = [group for group in cut if group.is_cut] if cut else cut
        return has_run

    def _run(self, released: Sequence[Group]) -> None:
        """Let a slice of these groups pass."""
        elements = 0
        for group in released:
            elements += group.released
        if elements >= WORTH_THREADS and self._threads() != 1:
            self._run_in_parallel(released, elements)
        else:
            self._schedule(released, elements)
        for group in released:
            group.finish()

    def _run_in_parallel(self, released: Sequence[Group], elements: int) -> None:
        """The same, where operators that do not wait for each other run side by side if that pays; the scheduler has
        what is left. Where memory or time is limited, which query fails depends on the order, and stays in one thread.
        """
        groups = [group for group in released if not group.is_immediate and group.allowance.is_open]
        operators = [operator for group in groups for operator in group.screens.turns]
        parallel, threads = released[0].parallel, self._threads()
        at_once = min(parallel.width(operators), usable_threads(threads))
        pays = at_once > 1 and (threads != "auto" or parallel.dividing.pays())
        began = perf_counter_ns()
        if pays:
            for operator in operators:
                if isinstance(operator, StreamSource):
                    operator.store.keep()  # it would be copied by the first who asks, and two may ask at once
            parallel.run(operators, self.scheduler.quantum, at_once)
        self._schedule(released, elements)
        if at_once > 1:
            parallel.dividing.took(pays, (perf_counter_ns() - began) / elements)

    def _schedule(self, released: Sequence[Group], elements: int) -> None:
        """Let the scheduler run what has work. elements: of the slice."""
        scheduler = self._scheduler_for(elements)
        if isinstance(scheduler, RoundRobin):
            turns = released[0].in_turn()
            scheduler.run(turns if len(released) == 1 and isinstance(turns, list) else _Turns(released))
        else:
            scheduler.run([op for g in released for op in g.screens.turns])
