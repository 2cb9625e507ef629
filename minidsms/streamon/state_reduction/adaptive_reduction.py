"""The place where a join begins to keep fewer rows, asked when memory gets short (`limits.memory`)."""

from __future__ import annotations

from minidsms.joins.join import Join
from minidsms.plan.adaptivity import Reducing
from minidsms.streamon.loop import Loop
from minidsms.streamon.state_reduction import TECHNIQUE
from minidsms.streamon.state_reduction.executor import ReductionExecutor
from minidsms.streamon.state_reduction.profiler import ReductionProfiler
from minidsms.streamon.state_reduction.reoptimizer import ReductionReoptimizer
from minidsms.streamon.stream_monitor import StreaMon


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
