"""The contract of an operator.

An operator reads its input queues in ts order and writes its output queues. It works in slices of whole instants: it
takes what all its inputs have up to the least of their progresses, so that every instant it sees is complete on every
input and everything it puts out is final. What waits for another input's time waits in the input manager, not here.

Invariants:
  - `progress`: every instant up to it has been processed, and its output stands in the output queues;
  - output obeys the invariants of `elements.Batch` (within an instant deletions first, no transients);
  - an error is a property of an instant, not of a batch: `fail(ts, ..)` ends the output just before ts, so that
    answers do not depend on batch boundaries (docs/semantics T5, R4).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter_ns
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from minidsms.cql.errors import Error, MemoryLimitError, TimeLimitError
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch, Schema
from minidsms.limits.allowance import NO_MEMORY, OPEN, Allowance
from minidsms.machine_code.compile_time import COMPILED
from minidsms.queues import LITTLE, MOST_BESIDE, Queue
from minidsms.scheduler.scheduler import BLOCKED, DONE, IDLE, LEFT
from minidsms.synopses.synopsis import Synopsis

SMALL = 2048
"""Elements of a run that is timed always."""
LARGE = 8_192
"""Elements of batches that are taken one at a time: to join them is to copy them."""
MOST_BY_HAND = 256
"""Elements of a slice, and of what an operator makes of it, that pass from hand to hand in any plan (`engine.by_hand`).
"""
QUEUED = Batch.empty(Schema(()))
"""In place of what is given by hand: it stands in the output queues, or what it is made of in the input queues."""
_NO_MORE: Iterator[Batch] = iter(())
_EVERY_TURN = "take_by_hand", "take_turn", "_run_slice", "_emit", "_complete"
_TIMED_FIRST, _LEAST_UNTIMED, _UNTIMED_SPREAD = 4, 8, 15


@dataclass(frozen=True)
class Failure:
    """Why a query stopped, and the instant that has no answer."""

    ts: int
    reason: str


class Counters:
    """What every operator counts, always. stalls: how often it stopped because a reader had no room.

    Looking at the clock costs as much as all the rest, so of the runs of fewer than SMALL elements one in several is
    timed, and those behind it, up to the next, are taken to have cost as much. untimed: how many of them are to come.
    """

    __slots__ = ("_promised", "_runs", "_time_ns", "_usual_ns", "elements_in", "elements_out", "stalls", "untimed")

    def __init__(self) -> None:
        self.elements_in = self.elements_out = self.stalls = self.untimed = 0
        self._runs = self._time_ns = self._usual_ns = self._promised = 0

    @property
    def runs(self) -> int:
        """How often it ran."""
        return self._runs + self._promised - self.untimed

    @property
    def time_ns(self) -> int:
        """Nanoseconds in all runs; never falls."""
        return self._time_ns + (self._promised - self.untimed) * self._usual_ns

    def time(self, spent: int, stands_for_others: bool) -> None:
        """A run has taken so many nanoseconds."""
        passed = self._promised - self.untimed
        self._time_ns += passed * self._usual_ns + spent
        self._runs += passed + 1
        self._promised = self.untimed
        if stands_for_others and self._runs > _TIMED_FIRST:
            # How many is left to chance, for what runs do may have a period.
            self.untimed = self._promised = _LEAST_UNTIMED + (spent & _UNTIMED_SPREAD)
            self._usual_ns = spent


@dataclass(frozen=True)
class Description:
    """What EXPLAIN, SysStream and tests see of an operator: its name, one line of detail, figures about its state, and
    what EXPLAIN ANALYZE tells of its parts, a line each.
    """

    name: str
    detail: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


class BetweenSlices(Protocol):
    """What may change how an operator works, between two slices (`streamon.compilation`)."""

    @property
    def adaptation(self) -> Any:
        """Its `streamon.loop.Loop`."""

    def between(self, elements: int, instant: int, coming: int = 0) -> None:
        """elements: the operator has taken.  instant: up to which it has.  coming: it is about to take."""

    def describe(self) -> tuple[str, ...]:
        """What EXPLAIN ANALYZE tells, a line each."""


class Operator:
    """Base of all operators. A subclass gives `process`, and `describe` and `synopses` where it has something to say.

    inputs: one queue per input, in order.  outputs: one queue per consumer, appended by the planner.  schema: of the
    output. What holds of its rows, such as whether any are deleted, is known of its node (`cql.node`).
    is_immediate: set by the planner on a path that is append-only and cannot fail: elements of an instant that is
        still open pass at once, for nothing can take them back.
    """

    name = "Operator"
    acts_on_time = True
    """Time that passes without elements is told to `process`; an operator that does nothing then says so."""
    quantum = MAX_INSTANT
    """Elements it takes in a turn, at most, whatever the scheduler grants."""
    takes_whole = False
    """It takes what waits as it was put out, however much that is: it does nothing for each element."""
    is_stateless = False
    """Between two slices nothing is kept: what is put out depends on what comes in with it alone."""
    is_self_contained = False
    """A turn touches its own state and queues and decides about its plan alone, and reads rows in stores: any thread
    may run it (`scheduler.parallel`)."""
    is_entrance = False
    """It hands on what stands in a store, and makes nothing that a call could have too little room or time for."""
    lineage = 0
    """What is put out, from now on: operators of one lineage put out the same (`plan.sharing`); 0 is no lineage."""
    lineage_key: Hashable = None
    """What gives the lineage: kind, parameters, the inputs' lineages."""
    _resumed_at = MIN_INSTANT

    def __init_subclass__(cls) -> None:
        """A class has what runs in every turn of its own: an instruction of Python remembers of which class the object
        was that it met last, and looks an attribute up anew, for 20 to 30 ns, where the next one is of another.
        """
        for name in _EVERY_TURN:
            if name not in cls.__dict__:
                common = getattr(cls, name)
                own = FunctionType(
                    common.__code__.replace(), common.__globals__, name, common.__defaults__, common.__closure__
                )
                setattr(cls, name, own)

    def __init__(self, inputs: Sequence[Queue], schema: Schema) -> None:
        self.inputs = list(inputs)
        self.outputs: list[Queue] = []
        self.schema = schema
        self.progress = MIN_INSTANT
        self.failure: Failure | None = None
        self.failures: list[Operator] | None = None
        """Where the engine looks for operators that have failed; set while it runs the plan."""
        self.shown = 0
        """Failed queries that show it until they are closed, though it may run no more."""
        self.is_immediate = False
        self.counters = Counters()
        self._emission: Iterator[Batch] | None = None
        self._held: Batch | None = None
        self._latest = MIN_INSTANT
        self._has_run_out = False
        self._until = MIN_INSTANT
        # Asked in every turn: what stands in the class alone is found later.
        self.acts_on_time = self.acts_on_time
        self._most_row_nbytes = MOST_BESIDE + 8 * len(schema)
        self.allowance: Allowance = OPEN
        """What the call that runs it may take; the engine's, once it has taken the plan."""
        self.compilation: BetweenSlices | None = None
        """What chooses the form of its kernel, where that has forms (`operators.forms`)."""
        self._resumed: Batch | None = None
        """Rows to be put out before others, once time has come to `_resumed_at` (`operators.resuming`)."""
        self.most_by_hand = MOST_BY_HAND
        """Elements that it may hand on so."""

    # ------------------------------------------------------------------------------------------ for subclasses

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Consume one batch (or None) per input, complete up to `until`; give the output up to `until`, in ts order.

        May be a generator: it is resumed only while the output queues have room. Windows also act on `until` alone:
        time passes without elements.
        """
        raise AssertionError("an operator defines process")

    def describe(self) -> Description:
        """Name, detail and figures."""
        return Description(self.name)

    def synopses(self) -> tuple[Synopsis, ...]:
        """The synopses this operator keeps (`minidsms.synopses`): for sharing, memory accounting and the dictionary's
        sweep.
        """
        return ()

    def wakes_at(self) -> int:
        """An instant before which time alone gives it nothing to do; asked at rest, where `acts_on_time`.

        Whatever stands here: it is not told of each instant that passes.
        """
        return MIN_INSTANT

    def let_go(self) -> None:
        """It is neither run nor asked for anything any more, and loses all that it has: operators, queues, loops and
        synopses refer to each other, and would else stay until a search for garbage, which may be hours away.
        """
        vars(self).clear()

    def fail(self, ts: int, reason: str) -> None:
        """No answer exists at ts or later; the earliest failure counts."""
        if self.failure is None or ts < self.failure.ts:
            self.failure = Failure(int(ts), reason)
            if self.failures is not None:
                self.failures.append(self)

    # --------------------------------------------------------------------------------------------- for the engine

    def available(self) -> int:
        """The instant up to which every input is complete."""
        until = MAX_INSTANT
        for queue in self.inputs:
            if queue.progress < until:
                until = queue.progress
        return until

    def has_work(self) -> bool:
        """Something is begun or waits."""
        if self._emission is not None:
            return True
        if self.failure is not None:
            return False
        progress = self.progress
        for queue in self.inputs:
            if queue.progress <= progress:
                return self.is_immediate and queue.size > 0
        return True

    def passes_time(self) -> bool:
        """Whether there is nothing to do. Time in which nothing comes and nothing happens here passes at once."""
        if self._emission is not None:
            return False
        if self.failure is not None:
            return True
        until = MAX_INSTANT
        for queue in self.inputs:
            if queue.size:
                return False
            if queue.progress < until:
                until = queue.progress
        if until > self.progress:
            if self.acts_on_time and self.wakes_at() <= until:
                return False
            self._until = until
            self._complete()
        return True

    @property
    def is_fresh(self) -> bool:
        """Nothing has come in yet: the state is that of a new operator, however much time has passed."""
        return self.counters.elements_in == 0

    @property
    def is_in_a_slice(self) -> bool:
        """It has begun one, and put out a part of what it gives."""
        return self._emission is not None

    def is_blocked(self) -> bool:
        """A reader has not made room."""
        for queue in self.outputs:
            if queue.is_full:
                return True
        return False

    def take_turn(self, budget: int) -> int:
        """`run`, where there is work and room for what it yields: IDLE, DONE, LEFT or BLOCKED."""
        inputs = self.inputs
        if inputs and self._emission is None and self.failure is None:
            # As `passes_time` and `has_work`, at once: every element takes a turn in every operator on its way.
            until, waiting = MAX_INSTANT, 0
            for queue in inputs:
                waiting += queue.size
                if queue.progress < until:
                    until = queue.progress
            if until <= self.progress:
                if not waiting or not (self.is_immediate and self.has_work()):
                    return IDLE
            elif not waiting and not (self.acts_on_time and self.wakes_at() <= until):
                self._until = until
                self._complete()
                return IDLE
            if self.is_blocked():
                return BLOCKED
            self._run_slice(until, budget)
            if self._emission is None and self.progress >= until:
                return DONE
        elif self.passes_time() or not self.has_work():
            return IDLE
        elif self.is_blocked():
            return BLOCKED
        else:
            self.run(budget)
        return LEFT if self.has_work() else DONE

    def take_by_hand(self, batches: Sequence[Batch | None], until: int) -> Batch | None:
        """A turn with what input queues, complete up to `until`, would hold: gives what it puts out, or QUEUED.

        Nothing is begun or waits. What is given is complete up to `until`, which queues do not say.
        """
        if self.failure is not None or self._resumed is not None:
            for queue, batch in zip(self.inputs, batches):
                if batch is not None:
                    queue.put(batch)
            return QUEUED
        consumed = 0
        for batch in batches:
            if batch is not None:
                consumed += len(batch.ts)
        if not consumed and not (self.acts_on_time and self.wakes_at() <= until):
            self.progress = until
            return None
        counters = self.counters
        untimed = counters.untimed
        start = 0 if untimed and consumed < SMALL else perf_counter_ns() - COMPILED.wall_ns
        given, n, emission = None, 0, _NO_MORE
        try:
            if self.compilation is not None:
                self.compilation.between(counters.elements_in, self.progress, consumed)
            counters.elements_in += consumed
            produced = self.process(batches, until)
            if type(produced) is tuple and len(produced) == 1:
                given = produced[0]
                n = len(given.ts)
            elif produced:
                emission = iter(produced)
                for batch in emission:
                    if given is not None:
                        n = MAX_INSTANT
                        emission = chain((batch,), emission)
                        break
                    given, n = batch, len(batch.ts)
                    if n > self.most_by_hand:
                        break  # it is claimed before more is made
            allowance = self.allowance
            if n <= self.most_by_hand and self.failure is None:
                if given is None or not n:
                    given = None
                elif not (allowance.is_open or self.is_entrance):
                    left = allowance.left - n * self._most_row_nbytes
                    if left >= 0 and not allowance.is_clocked:
                        allowance.left = left
                    else:
                        allowance.take(n * given.row_nbytes)
                counters.elements_out += n
                self.progress = until
            else:
                self._until, self._latest = until, self._before(batches)
                emission = emission if given is None else chain((given,), emission)
                given, n = QUEUED, 0
                self._emit(emission)
            if allowance.is_clocked and not n and not self.is_entrance:  # `take` has looked
                allowance.check_time()
        except (MemoryLimitError, TimeLimitError, MemoryError) as error:
            self._until = until
            if given is not QUEUED:
                self._latest = self._before(batches)
            self._run_out(error)
            given = QUEUED
        if start:
            counters.time(max(0, perf_counter_ns() - COMPILED.wall_ns - start), self._stands_for_others(consumed))
        else:
            counters.untimed = untimed - 1
        return given

    def run(self, budget: int) -> int:
        """Consume at most `budget` elements per input, and a sixteenth more (or one instant, if that alone is more, or
        what `takes_whole` takes); returns how many.

        Never blocks and never calls another operator.
        """
        if self._emission is None:
            until = self.available()
            if self.failure is not None or (until <= self.progress and not self.is_immediate):
                return 0
            return self._run_slice(until, budget)
        start = perf_counter_ns() - COMPILED.wall_ns
        emission, self._emission = self._emission, None
        try:
            self._emit(emission)
            if not self.allowance.is_open and not self.is_entrance:
                self.allowance.check_time()
        except (MemoryLimitError, TimeLimitError, MemoryError) as error:
            self._run_out(error)
        self.counters.time(max(0, perf_counter_ns() - COMPILED.wall_ns - start), self._stands_for_others(0))
        return 0

    def _run_slice(self, until: int, budget: int) -> int:
        """`run` from the beginning of a slice, which all inputs have up to `until`."""
        counters, allowance, inputs, consumed = self.counters, self.allowance, self.inputs, 0
        untimed = counters.untimed
        start = 0 if untimed else perf_counter_ns() - COMPILED.wall_ns
        if self.quantum < budget:
            budget = self.quantum
        for queue in inputs:
            if queue.size > budget + budget // LITTLE and not self.takes_whole:
                until = queue.cut(until, budget)
            elif queue.size > LARGE and len(inputs) == 1:
                until = queue.end_of_first(until)
        self._until = until
        latest = MAX_INSTANT if self.is_immediate else until
        batches: list[Batch | None] = []
        try:
            for queue in inputs:
                batch = queue.take(latest) if queue.size else None
                if batch is not None:
                    consumed += len(batch.ts)
                batches.append(batch)
            self._latest = self._before(batches)
            if not consumed and not self.acts_on_time:
                self._complete()
                return 0
            if self.compilation is not None:
                self.compilation.between(counters.elements_in, self.progress, consumed)
            counters.elements_in += consumed
            if untimed and consumed >= SMALL:
                start = perf_counter_ns() - COMPILED.wall_ns
            produced = self.process(batches, until)
            if self._resumed is not None and until >= self._resumed_at:
                # What waits in queues before that instant does not outlive a change of plan.
                produced, self._resumed = chain((self._resumed,), produced), None
            if produced:
                self._emit(iter(produced))
            else:
                self._complete()
            if not allowance.is_open and not self.is_entrance:
                allowance.check_time()
        except (MemoryLimitError, TimeLimitError, MemoryError) as error:
            self._run_out(error)
        if start:
            counters.time(max(0, perf_counter_ns() - COMPILED.wall_ns - start), self._stands_for_others(consumed))
        else:
            counters.untimed = untimed - 1
        return consumed

    def _before(self, batches: Sequence[Batch | None]) -> int:
        """The first instant that may have no answer as a slice begins, if that is behind its progress: before its first
        element nothing can have happened.
        """
        if self.progress != MIN_INSTANT:
            return MIN_INSTANT
        return min((int(batch.ts[0]) for batch in batches if batch is not None), default=MIN_INSTANT)

    def _stands_for_others(self, consumed: int) -> bool:
        return not self.counters.untimed and consumed < SMALL

    def _emit(self, emission: Iterator[Batch]) -> None:
        """Put out what `process` yields until a queue is full, then keeping the rest, or until the slice is done.

        Whoever lets it run though a queue is full gets one instant put out all the same.
        """
        outputs, counters, allowance = self.outputs, self.counters, self.allowance
        only = outputs[0] if len(outputs) == 1 else None
        held = self._held
        if held is not None:
            self._held = None
        for batch in emission if held is None else chain((held,), emission):
            if self.failure is not None:
                batch = batch.slice(0, int(np.searchsorted(batch.ts, self.failure.ts)))
            n = len(batch.ts)
            if not n:
                continue
            if not allowance.is_open and not self.is_entrance:
                self.claim(n * batch.row_nbytes)
                self._latest = int(batch.ts[-1])
            if only is not None and only.offer(batch):
                counters.elements_out += n
                continue
            if self._is_unread():
                break
            batch = self._put_fitting(batch)
            if self._held is None and not self.is_blocked():
                continue
            # What is put out so far ends just before the last instant, or the one of what is held.
            complete = int(batch.ts[-1] if self._held is None else self._held.ts[0]) - 1
            for queue in outputs:
                if complete > queue.progress:
                    queue.progress = complete
            self._latest = complete + 1  # what is held may yet be lost
            self.counters.stalls += 1
            self._emission = emission
            return
        self._complete()

    def claim(self, nbytes: int) -> None:
        """So many bytes more are about to be held; MemoryLimitError or TimeLimitError, which ends the query here, where
        the call may not take them. For what `process` makes room for beside what it puts out.
        """
        allowance = self.allowance
        if not allowance.is_open:
            left = allowance.left - nbytes
            if left >= 0 and not allowance.is_clocked:
                allowance.left = left
            else:
                allowance.take(nbytes)

    def _run_out(self, error: Error | MemoryError) -> None:
        """The call may take no more, or the system has none: no answer from the first instant on that has not been put
        out whole.
        """
        self._emission = self._held = None
        self._has_run_out = True
        if isinstance(error, TimeLimitError):
            self.allowance.begin()
        reason = NO_MEMORY if isinstance(error, MemoryError) else str(error)
        self.fail(max(self.progress + 1, self._latest), f"{self.name} was stopped: {reason}")
        self._complete()

    def _is_unread(self) -> bool:
        """All readers have failed: what this operator would still put out, nobody waits for."""
        if self.is_entrance or not self.outputs or not all(queue.is_unread for queue in self.outputs):
            return False
        if self.failure is None:
            # Not told: the queries that have this operator have failed already.
            self.failure, self._has_run_out = Failure(self.progress + 1, "its readers have failed"), True
        return True

    def _put_fitting(self, batch: Batch) -> Batch:
        """Put out what the queues have room for, and hold the rest; what was put out."""
        batch = self._fitting(batch)
        self.counters.elements_out += len(batch)
        for queue in self.outputs:
            queue.put(batch)
        return batch

    def _fitting(self, batch: Batch) -> Batch:
        """What the queues have room for; the rest is held. Where none has room for one, the first instant."""
        room = n = len(batch)
        for queue in self.outputs:
            if not queue.has_room(batch):
                room = min(room, queue.room(batch))
        if room == n:
            return batch
        if not room:
            room = int(np.searchsorted(batch.ts, batch.ts[0], side="right"))
        if room < n:
            self._held = batch.slice(room, n)
        return batch.slice(0, room)

    def _complete(self) -> None:
        """The slice is done: tell the readers."""
        progress = self._until
        if self.failure is not None:
            progress = min(progress, self.failure.ts - 1)
            for queue in self.inputs:
                queue.give_up(self._has_run_out)
        self.progress = progress
        for queue in self.outputs:
            if progress > queue.progress:
                queue.progress = progress
