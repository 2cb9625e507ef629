"""What adapts a join, asked once for each part of its input: orders, caches and trees in one place.

Each of them says at how many elements of the join it wants to be asked again. Elements and time are counted here, once
for all; and so are the two signals that cost nothing, the shares of the inputs and the work an element makes: whoever
rests is told when they change. So a part of a join whose plan stands costs some additions and a comparison.

Invariant: with a plan that is forced everything is asked after every part.  Babu 2005, sections 3.1 and 5.5.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from minidsms.elements import Batch
from minidsms.joins.join import Join
from minidsms.streamon.change_detection.usual import SHARES, Tolerance, Usual
from minidsms.streamon.loop import Loop
from minidsms.streamon.processor_clock import ProcessorClock
from minidsms.streamon.stream_monitor import StreaMon

TICK = 8_192
"""Elements between two looks at the shares of the inputs."""
WORK_TICKS = 4
"""Of these looks, one in so many is at the work as well."""
BUSY = 8_192
"""Elements of a part, about, while somebody wants to be asked after each; else parts are as large as they may be."""
FEW = 512
"""So many at first, and at least."""
LONG_NS = 20_000_000
"""What a part takes then at most, about, if it is not of so few."""
WORK = Tolerance(relative=0.25, floor=0.1)
"""Slots inspected and tuples found per element under a plan; less than a tenth of one does not matter ..."""
WORK_ENOUGH = 16_384
""".. over at least so many elements."""
PROBE_COST, TUPLE_COST = 1.0, 1.0
"""Where time is not measured: of a slot inspected, and of an element taken or a tuple put out."""


class Adapting(Protocol):
    """What can change the plan of a join between two parts of its input."""

    due_at: int
    """Elements of the join at which it is to be asked again."""

    @property
    def adaptation(self) -> Loop[Any]:
        """The place where it does."""

    @property
    def has_choice(self) -> bool:
        """There is more than one plan."""

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        """A part was joined under the plan, and it is time. instant: of the first element."""

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        """Conditions have changed. Either the inputs bring other shares of the elements, or an element makes other
        work, by this share.
        """

    def describe(self) -> tuple[str, ...]:
        """What EXPLAIN ANALYZE tells, a line each."""


class JoinWatch:
    """It is the meter of all that adapts the join: its time is taken once.

    operator: how the plan log names the join.  elements: joined so far; arrived: of each input.  adapting: in the order
    in which they are asked.
    """

    def __init__(self, join: Join, streamon: StreaMon) -> None:
        self.join = join
        self.operator = f"MJoin {', '.join(join.names)}"
        self.streamon = streamon
        self.elements = 0
        self.arrived = [0] * join.graph.n
        self.adapting: tuple[Adapting, ...] = ()
        self._told: list[int] = []
        """Elements up to which each of them knows of what has passed under its plan."""
        self._clock = ProcessorClock() if streamon.settings["cost_model"] == "measured" else None
        self._due_at = 0
        self._tick_at = TICK
        self._ticks = 0
        self._looks = streamon.settings["change_detection"] != "off"
        self._shares = Usual(SHARES, 1)
        self._work = Usual(WORK, WORK_ENOUGH)

    def add(self, adapting: Adapting) -> None:
        """Ask this too."""
        self.adapting += (adapting,)
        self._told.append(0)

    def wake(self) -> None:
        """Something was found that others should know: ask everybody after the next part."""
        self._due_at = 0
        for each in self.adapting:
            each.due_at = 0

    @property
    def joining_ns(self) -> int:
        """Of this thread, spent on joining; 0 where it is not timed."""
        return 0 if self._clock is None else self._clock.ns

    def spent(self) -> tuple[float, int]:
        """Nanoseconds of joining, or slots inspected and tuples where time is not measured; elements joined."""
        if self._clock is not None:
            return float(self._clock.ns), self.elements
        _, inspected, _, put_out = self.join.work()
        return PROBE_COST * inspected + TUPLE_COST * (self.elements + put_out), self.elements

    def limit(self, elements: int) -> int:
        """How many of the elements that wait may be joined before the plan must be looked at."""
        if self._clock is not None:
            self._clock.start(elements)
        if self.streamon.forcing is None:
            ahead, busy = self._due_at - self.elements, self._busy()
            return elements if ahead > 0 and busy == BUSY else min(elements, max(ahead, busy))
        return min((each.adaptation.limit(elements) for each in self.adapting), default=elements)

    def _busy(self) -> int:
        """Elements of a part while somebody wants to be asked: fewer at first, and where they take long."""
        if self._clock is None:
            return BUSY
        if self._clock.ns == 0:
            return FEW
        return int(min(BUSY, max(FEW, LONG_NS * self.elements // self._clock.ns)))

    def joined(self, part: Sequence[Batch | None], beside_ns: int = 0) -> None:
        """A part was joined under the plan. beside_ns: what other threads took for it."""
        if self._clock is not None:
            self._clock.stop()
            self._clock.ns += beside_ns
        arrived = self.arrived
        for i, batch in enumerate(part):
            if batch is not None:
                count = len(batch.ts)
                arrived[i] += count
                self.elements += count
        if self.elements >= self._due_at or self.streamon.forcing is not None:
            with self.streamon.deciding:
                self._ask(part)

    def _ask(self, part: Sequence[Batch | None]) -> None:
        """Tell of signals, and ask those who are due."""
        elements = self.elements
        if elements >= self._tick_at:
            self._tick_at = elements + TICK
            self._look_at_signals()
        is_forced = self.streamon.forcing is not None
        due_at = self._tick_at
        for k, each in enumerate(self.adapting):
            if is_forced or elements >= each.due_at:
                instant = min(int(batch.ts[0]) for batch in part if batch is not None)
                if each.has_choice:
                    each.adaptation.passed(elements - self._told[k], instant)
                self._told[k] = elements
                each.look(part, instant)
            due_at = min(due_at, each.due_at)
        self._due_at = due_at

    def _look_at_signals(self) -> None:
        if not self._looks:
            return
        shifted = self._shares.change((), list(self.arrived), [self.elements] * len(self.arrived)) > 0
        self._ticks += 1
        change = 0.0
        if self._ticks % WORK_TICKS == 0:
            plan = tuple([each.adaptation.executor.plan for each in self.adapting])
            _, inspected, elements, put_out = self.join.work()
            change = self._work.change(plan, (inspected, put_out), (elements, elements))
        if shifted or change:
            for each in self.adapting:
                each.adaptation.changes += 1
                each.notice(shifted, change)
