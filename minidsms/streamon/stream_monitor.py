"""StreaMon of one connection: what all techniques share.

Invariant: whether plans may change is asked when a decision is due, so that `SET adaptive = off` holds at once, for
running queries too: their plans stay what they are.  Babu 2005, section 3.1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from minidsms.elements import MIN_INSTANT
from minidsms.operators.adaptivity import SharedByCopies
from minidsms.settings import SettingValues
from minidsms.streamon.forcing import ForcedSwitching
from minidsms.streamon.k_mon.monitoring.registry import ConstraintRegistry
from minidsms.streamon.plan_log import PlanLog


def _nobody(text: str) -> None:
    """Nobody listens."""


class StreaMon(SharedByCopies):
    """plan_log: of all queries.  forcing: None but in tests (`minidsms.testing.switching`).

    constraints: those that queries watch.  warn: is given what authors of declarations should know.  queries_of: the
    names of the queries that an operator works for.  instant: the last one at which a plan was looked at.
    decisions_kept: per place.
    """

    decisions_kept = 10_000

    def __init__(self, settings: SettingValues) -> None:
        self.settings = settings
        self.plan_log = PlanLog()
        self.constraints = ConstraintRegistry(settings)
        self.forcing: ForcedSwitching | None = None
        self.instant = MIN_INSTANT
        self.deciding = threading.RLock()
        """Held by who looks at a plan while it runs: operators may run side by side."""
        self.warn: Callable[[str], Any] = _nobody
        self.queries_of: Callable[[object], Sequence[str]] = lambda operator: ()

    def note_violation(self, instant: int, operator: object, name: str, text: str) -> None:
        """The data violate a declaration on which an operator relied; it goes on without. name: the operator's.  text:
        which, and by what rows.
        """
        queries = self.queries_of(operator)
        self.warn(f"{', '.join(queries)}: {text}" if queries else text)
        where = queries[0] if queries else "", name, "k-Mon"
        self.plan_log.add(instant, where, text, ("the key is relied on", "the key is watched"))

    def threads(self) -> int | str:
        """That operators may run in: one where the same tuples are to give the same decisions in the same order."""
        is_timed = self.forcing is None and self.settings["cost_model"] == "measured"
        threads: int | str = self.settings["threads"]
        return threads if is_timed else 1

    @property
    def is_adaptive(self) -> bool:
        """Plans may change while they run."""
        return bool(self.settings["adaptive"] == "on")
