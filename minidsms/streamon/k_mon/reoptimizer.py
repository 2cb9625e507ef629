"""The Re-optimizer of state reduction: asked when memory gets short, it tries what a join could do without.

Only a trial tells what matters of the rows held. One that has saved too little is made again when the join has taken
as many elements again, so that all of them together cost a part of what the join does.
"""

from __future__ import annotations

from minidsms.streamon.framework import Proposal
from minidsms.streamon.k_mon.executor import ReductionExecutor
from minidsms.streamon.k_mon.profiler import ReductionProfiler

LEAST_ELEMENTS = 1024
"""That the join has taken before the first trial: what it holds then is little."""
LEAST_SAVED = 0.5
"""Share of the bytes held: room grows by doubling, so that less may be none."""
MOST_RESULTS = 16
"""For each row held, beyond which a trial is broken off: it would take longer than it is worth."""


class ReductionReoptimizer:
    """Proposes to reduce the join, once and for all, where that saves enough."""

    def __init__(self, executor: ReductionExecutor, profiler: ReductionProfiler) -> None:
        self._executor = executor
        self._profiler = profiler
        self._due_at = LEAST_ELEMENTS
        self.saw = "memory is plentiful"
        """What came of the last trial."""

    def propose(self) -> Proposal[bool] | None:
        """To keep what can still matter, where a trial shows that this is half as much."""
        executor, profiler = self._executor, self._profiler
        elements = executor.spent()[1]
        if not executor.can_switch or elements < self._due_at:
            return None
        profiler.measure()
        self._due_at = 2 * elements
        trial = executor.prepare(MOST_RESULTS)
        if trial is None:
            self.saw = executor.why_not or "rows have too many results"
            return None
        profiler.reduced = sum(int(each.nbytes) for each in trial.synopses())
        self.saw = f"{profiler.reduced:,} of {profiler.held:,} bytes would still matter"
        if profiler.reduced > (1 - LEAST_SAVED) * profiler.held:
            executor.give_up()
            return None
        return Proposal(True, f"memory is short: {self.saw}", None)

    def adopt(self, plan: bool) -> None:
        """Nothing is remembered of plans."""
