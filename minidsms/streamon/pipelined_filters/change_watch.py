"""How one pipeline notices that its tuples have changed: by three looks, the cheapest first.

    counts         what each filter drops at its place is counted anyway
    look ahead     a few tuples of the chunk to come, by the filter that stands first (`look_ahead.py`)
    detectors      of profile tuples, where `SET change_detection` names some (`streamon.change_detection`)

Invariant: with `change_detection = off` nothing is noticed, and with a rate of profiling that was given there is no
look ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from minidsms.counted import counted
from minidsms.expressions.routes import Order, Routes
from minidsms.expressions.value import Frame
from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.change_detection.detectors import ChangeDetection
from minidsms.streamon.change_detection.usual import Tolerance, Usual
from minidsms.streamon.contracts import Change, DetectsChanges, OrderingAlgorithm
from minidsms.streamon.pipelined_filters.algorithms import OrderingOptions
from minidsms.streamon.pipelined_filters.answers import Answers
from minidsms.streamon.pipelined_filters.executor import FilterExecutor
from minidsms.streamon.pipelined_filters.look_ahead import WORTH_A_LOOK, change_ahead

FRESH = 256
"""Tuples profiled after a change where older ones are discarded: so few tell which order is good now."""

DROP_RATES = Tolerance(absolute=0.04, sure=5.0)
"""Drop rates at a place are the same within chance, and where they differ by less than matters."""
LOOK_SHARE = 0.01
"""Of the time spent in the filters, what looking ahead takes; ..."""
LOOK_SAVED = 0.1
"""... and of what answers have saved: where changes have come there may be others."""
CALM = 1_000_000
"""Tuples without a change, from which it pays to learn what only long phases pay for: routes."""
ENOUGH = 4_096
"""Tuples over which they are compared."""


class ChangeWatch:
    """See `KnowsChanges`. algorithm: orders the filters, and may look for changes itself."""

    def __init__(self, options: OrderingOptions, executor: FilterExecutor, algorithm: OrderingAlgorithm) -> None:
        self._detection = options.detection
        self._looks_ahead = self._detection.uses_counts and options.rate is None
        self._executor = executor
        self._detecting = algorithm if isinstance(algorithm, DetectsChanges) else None
        self._drop_rates: tuple[Usual, ...] = ()
        self._measures_time = options.measures_time
        self._looked_ns = 0
        self._ahead: Change | None = None
        """What changed where the chunk to come begins, as the last look found."""
        self._told = 0
        self.answers = Answers()
        self._changes = 0
        self._changed_at = 0
        self._last: Change | None = None

    @property
    def fresh(self) -> int | None:
        """Tuples to profile after a change; None for a window of them, where older ones stay."""
        return None if self._detecting is None else FRESH

    def counts_have_changed(self) -> bool:
        """Some order's filters drop more or less than they did."""
        if not self._detection.uses_counts:
            return False
        executor = self._executor
        if len(executor.parts) != len(self._drop_rates):
            self._drop_rates = tuple(Usual(DROP_RATES, ENOUGH, restarts=True) for _ in executor.parts)
        parts = zip(self._drop_rates, executor.parts)
        changed = [(u, part.order) for u, part in parts if drop_rates_have_changed(u, part.order, part.reached)]
        if changed and self._ahead is None:
            usual, order = changed[0]
            place, before, after, of = usual.moved
            self.noticed(_counted(place, order, before, after, executor.tuples - of, executor.tuples))
        return bool(changed) and self._ahead is None

    def looks_ahead(self, tuples: int) -> bool:
        """A chunk of so many tuples that is to come is worth a look, or is known to begin with a change."""
        return self._ahead is not None or (self._looks_ahead and tuples >= WORTH_A_LOOK)

    def change_ahead(self, frame: Frame, use_kernels: bool) -> int | None:
        """The tuple of a chunk to come before which the first filter's drop rate changes; None where it does not. At 0
        the change is noticed.

        The chunk is cut there, unless that is at its beginning: then what is left of it is asked about next.
        """
        if self._ahead is not None:
            self.noticed(self._ahead)
            self._ahead = None
            return 0
        plan = self._executor.plan
        if isinstance(plan, Routes) or not self._drop_rates or not self.may_answer():
            return None
        usual = self._drop_rates[0]
        if usual.ratios is None or not usual.is_known(plan) or not self._may_look():
            return None
        began = thread_ns()
        rate = usual.ratios[0]
        found = change_ahead(self._executor.filters[plan[0]], frame, use_kernels, rate)
        self._looked_ns += thread_ns() - began
        if found is None:
            return None
        at, after = found
        change = _counted(0, plan, rate, after, self._executor.tuples + at, self._executor.tuples)
        if at == 0:
            self.noticed(change)
            return 0
        self._ahead = change
        return at

    def _may_look(self) -> bool:
        """Looking has taken its share at most, and what changes have been worth."""
        executor = self._executor
        allowed = LOOK_SHARE * executor.time_ns + LOOK_SAVED * self.answers.saved_ns(executor.tuples)
        return not self._measures_time or self._looked_ns <= allowed

    def detectors_have_told(self) -> bool:
        """The profile tuples have told a change since this was last asked."""
        if self._detecting is None or self._detecting.changes == self._told:
            return False
        self._told = self._detecting.changes
        self.noticed(self._detecting.last_change)
        return True

    @property
    def changes(self) -> int:
        """Noticed so far."""
        return self._changes + self._untold

    @property
    def last_change(self) -> Change | None:
        return self._detecting.last_change if self._detecting is not None and self._untold else self._last

    @property
    def _untold(self) -> int:
        """Changes that detectors found since they were asked last."""
        return 0 if self._detecting is None else self._detecting.changes - self._told

    @property
    def is_calm(self) -> bool:
        """Nothing has changed for a while, or at all."""
        return not self._changes or self._executor.tuples - self._changed_at >= CALM

    def may_answer(self) -> bool:
        """Answers pay, as far as they can be told to."""
        return not self._measures_time or self.answers.pay(self._executor.time_ns, self._executor.tuples)

    def answered(self) -> None:
        """What execution told is taken for a change: profile tuples are out of date, and what was usual is."""
        self.answers.begin()
        for usual, part in zip(self._drop_rates, self._executor.parts):
            usual.begin(part.order, *_dropped(part.reached))
        if self._detecting is not None:
            self._detecting.notice()
            self._told = self._detecting.changes

    def profiled(self, took_ns: int, saving: Callable[[], float]) -> None:
        """See `Answers.profiled`."""
        self.answers.profiled(took_ns, saving, self._executor.tuples)

    def noticed(self, change: Change | None) -> None:
        """The streams have changed."""
        self._last = change
        self.answers.changed(self._executor.tuples)
        self._changes += 1
        self._changed_at = self._executor.tuples

    def describe(self, reordered: int) -> tuple[str, ...]:
        """What EXPLAIN ANALYZE tells. reordered: how often the order changed."""
        return watched_by(self._detection, self._changes, self._changed_at, reordered)


def watched_by(detection: ChangeDetection, changes: int, last: int | None, reordered: int) -> tuple[str, ...]:
    """What EXPLAIN ANALYZE tells of the sense of change of one place. last: tuple at which the last was noticed."""
    if not detection.uses_counts:
        return ()
    told = counted(changes, "change")
    where = f", last at {last:,}" if changes and last is not None else ""
    return (f"watched by {detection.text}: {told}{where}; {counted(reordered, 're-order')}",)


def _counted(place: int, order: Order, before: float, after: float, since: int, at: int) -> Change:
    """What execution counts at a place of an order."""
    return Change(f"d({place + 1}|{place})", order[place], before, after, since, at, is_counted=True)


def drop_rates_have_changed(usual: Usual, order: Order, reached: Sequence[int]) -> bool:
    """reached: (n + 1,) tuples that reached each place and the end since the order is what it is."""
    return usual.is_due(order, reached[0]) and usual.change(order, *_dropped(reached)) > 0


def _dropped(reached: Sequence[int]) -> tuple[list[int], list[int]]:
    """(what is dropped at each place, what reaches it)."""
    return [before - after for before, after in pairwise(reached)], list(reached[:-1])
