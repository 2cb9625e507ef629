"""The plan log: every decision that changed a running plan, with what it rested on and what came of it.

Invariant: decisions are numbered from 1 in the order taken and are never forgotten while they can still be asked for
(the last `KEPT`); nothing in an entry changes but `measured_gain`, which becomes known once, later.
Babu 2005, sections 3.1 and 7.1: entries <t, S, P>.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from minidsms.operators.adaptivity import SharedByCopies

_log = logging.getLogger("minidsms.plans")
KEPT = 10_000
"""Decisions held per connection; older ones are forgotten."""


@dataclass(eq=False)
class Decision(SharedByCopies):
    """One change of a plan.

    instant: the timestamp before which the old plan was last used.  query, operator: where; technique: by what.
    reason: why, in words.  statistics: what was known, by name.  expected_gain: the share of the cost that the
    technique thought to save (0.25: a quarter), None where its statistics do not tell.  measured_gain: the share of the
    time per tuple that was saved, None until enough tuples have passed, and where the plan was changed again before, or
    nothing had run under the old one.  decided_s: when, by `time.monotonic`.
    """

    number: int
    instant: int
    query: str
    operator: str
    technique: str
    reason: str
    statistics: Mapping[str, Any]
    old_plan: str
    new_plan: str
    expected_gain: float | None
    measured_gain: float | None = None
    decided_s: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        gain = "" if self.expected_gain is None else f", expected gain {100 * self.expected_gain:.0f} %"
        if self.measured_gain is not None:
            gain += f", measured {100 * self.measured_gain:.0f} %"
        return (
            f"#{self.number} at {self.instant}, {self.query}, {self.technique}: {self.old_plan} -> {self.new_plan} "
            f"({self.reason}{gain})"
        )


@dataclass
class PlanLog:
    """The decisions of a connection. Subscribers are called with each as it is taken, inside the engine's lock: they
    must only note it down.
    """

    _decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=KEPT))
    _subscribers: list[Callable[[Decision], Any]] = field(default_factory=list)
    _taken: int = 0

    def add(
        self, instant: int, where: tuple[str, str, str], reason: str, plans: tuple[str, str], **known: Any
    ) -> Decision:
        """Log a decision.  where: query, operator, technique.  plans: old, new.  known: statistics, expected_gain."""
        self._taken += 1
        decision = Decision(
            self._taken, instant, *where, reason, known.get("statistics", {}), *plans, known.get("expected_gain")
        )
        self._decisions.append(decision)
        _log.info("%s", decision)
        for subscriber in self._subscribers:
            subscriber(decision)
        return decision

    @property
    def taken(self) -> int:
        """How many there have been, forgotten ones too."""
        return self._taken

    def subscribe(self, fn: Callable[[Decision], Any]) -> Callable[[], None]:
        """Call fn with every decision from now on; returns what ends it."""
        self._subscribers.append(fn)
        return lambda: self._subscribers.remove(fn)

    def __iter__(self) -> Iterator[Decision]:
        return iter(tuple(self._decisions))

    def __len__(self) -> int:
        return len(self._decisions)
