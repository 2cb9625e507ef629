"""A join that keeps only the rows that can still matter once memory gets short: `SET state_reduction = 'auto'`.

What is not kept does not come back, so the change is for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from minidsms.streamon.k_mon.executor import ReductionExecutor
from minidsms.streamon.k_mon.profiler import ReductionProfiler
from minidsms.streamon.k_mon.reoptimizer import ReductionReoptimizer
from minidsms.streamon.loop import Loop, adaptations_of
from minidsms.streamon.stream_monitor import StreaMon

if TYPE_CHECKING:
    from minidsms.joins.join import Join
    from minidsms.plan.adaptivity import Reducing

TECHNIQUE = "state reduction"
"""As the plan log calls it."""


class AdaptiveReduction:
    """join: over streams.  reducing: of what would reduce it."""

    def __init__(self, join: Join, operator: str, streamon: StreaMon, reducing: Reducing) -> None:
        self._streamon = streamon
        self.executor = ReductionExecutor(join, reducing)
        self.profiler = ReductionProfiler(join)
        self.reoptimizer = ReductionReoptimizer(self.executor, self.profiler)
        self.adaptation: Loop[bool] = Loop(
            TECHNIQUE, operator, self.executor, self.profiler, self.reoptimizer, streamon
        )

    @property
    def has_choice(self) -> bool:
        """Memory is limited, and something may reduce the join, or has."""
        return self._streamon.settings["memory_limit"] is not None and not self.executor.why_not

    def describe(self) -> tuple[str, ...]:
        """Whether it does, and if not, why."""
        if self._streamon.settings["memory_limit"] is None or self.executor.plan:
            return ()
        return (f"state: all rows of the windows; {self.reoptimizer.saw}",)


def reduce_state(operators: Iterable[object], instant: int) -> bool:
    """Memory is short: ask the joins among these for what can still matter of their rows; whether one keeps only that
    from now on.
    """
    places = [place for place in adaptations_of(operators) if place.technique == TECHNIQUE]
    return any([place.reconsider(instant) for place in places])
