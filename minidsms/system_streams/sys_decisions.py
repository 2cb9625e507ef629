"""SysDecisions: the plan log as a stream, a row for every decision that changed a running plan.

A decision is told when it has been taken, and once more when its gain has been measured.
Invariant: only decisions taken while somebody listens are told, in the order in which they were taken; what is kept to
be told later is bounded.  Babu 2005, sections 3.1 and 7.1; docs/sys-stream.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minidsms.elements import MIN_INSTANT, Schema, Type
from minidsms.streamon.plan_log import Decision, PlanLog

SCHEMA = Schema.of(
    ("ts", Type.TIMESTAMP),
    ("number", Type.INTEGER),
    ("instant", Type.TIMESTAMP),
    ("query", Type.TEXT),
    ("operator", Type.TEXT),
    ("technique", Type.TEXT),
    ("reason", Type.TEXT),
    ("old_plan", Type.TEXT),
    ("new_plan", Type.TEXT),
    ("expected_gain", Type.FLOAT),
    ("measured_gain", Type.FLOAT),
)
_MOST_UNMEASURED = 1000


class SysDecisions:
    """The `Publisher` of SysDecisions."""

    name = "SysDecisions"
    schema = SCHEMA
    is_prompt = True

    def __init__(self, plan_log: PlanLog) -> None:
        self._plan_log = plan_log
        self._untold: list[Decision] = []
        self._unmeasured: deque[Decision] = deque(maxlen=_MOST_UNMEASURED)
        self._unsubscribe: Callable[[], None] = lambda: None

    def begin(self, now: int) -> None:
        """Decisions are told from now on."""
        self._unsubscribe = self._plan_log.subscribe(self._untold.append)

    def end(self) -> None:
        self._unsubscribe()
        self._untold.clear()
        self._unmeasured.clear()

    def is_due(self, now: int) -> bool:
        """A decision has been taken, or the gain of one measured."""
        return bool(self._untold) or any(d.measured_gain is not None for d in self._unmeasured)

    def columns(self, now: int) -> Mapping[str, Sequence[Any]]:
        """A row per decision."""
        told = [d for d in self._unmeasured if d.measured_gain is not None] + self._untold
        unmeasured = [d for d in (*self._unmeasured, *self._untold) if d.measured_gain is None]
        self._untold.clear()
        self._unmeasured = deque(unmeasured, _MOST_UNMEASURED)
        rows: dict[str, Sequence[Any]] = {f: [getattr(d, f) for d in told] for f in SCHEMA.names[1:]}
        rows["instant"] = [d.instant if d.instant > MIN_INSTANT else None for d in told]
        return rows
