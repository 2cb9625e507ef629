"""Bits of one n-way join with their Executor, Profiler and Re-optimizer: when they are asked."""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.elements import Batch
from minidsms.joins.plan import Index
from minidsms.streamon.join_index.bits import BitsExecutor, BitsProfiler, BitsReoptimizer
from minidsms.streamon.join_index.tuning import Tuning
from minidsms.streamon.join_watch import JoinWatch
from minidsms.streamon.loop import Loop

REST = 256
"""Elements between two looks."""
FIRST_WINDOW = 512
"""Requests; each window has twice as many, until it is as long as was asked for: windows fill, and little is known."""


class AdaptiveBits:
    """See `Adapting`. `watch` counts the join's elements, and asks."""

    has_choice = True

    def __init__(self, watch: JoinWatch) -> None:
        join, names, settings = watch.join, watch.join.names, watch.streamon.settings
        self.due_at = 0
        self._join = join
        self._watch = watch
        self._n = len(names)
        self._window = settings["index_window"]
        self._tuning = Tuning(settings["index_tuning"], self._n)
        self._size = min(FIRST_WINDOW, self._window)
        self._requests = [0] * self._n
        self._arrived = [0] * self._n
        self.profiler = BitsProfiler(join, names, settings)
        schemas = [queue.schema for queue in join.inputs]
        self.executor = BitsExecutor(join, names, schemas, watch, self.profiler, settings["index_migration"])
        self.reoptimizer = BitsReoptimizer(self.executor, self.profiler)
        self.adaptation: Loop[Index] = Loop(
            "join index", watch.operator, self.executor, self.profiler, self.reoptimizer, watch.streamon
        )
        self.executor.switch(self.executor.first())

    def look(self, part: Sequence[Batch | None], instant: int) -> None:
        self.due_at = self._watch.elements + REST
        for i, counted in enumerate(self._join.requests()):
            self._requests[i] += sum(counted.values())
            if i in self._tuning.assessed:
                for pattern, times in sorted(counted.items()):
                    self.profiler.assessments[i].note(pattern, times)
        if sum(self._requests) >= self._size:
            self._end_window(instant)

    def _end_window(self, instant: int) -> None:
        complete = self._tuning.end(self._requests)
        arrived = [now - before for now, before in zip(self._watch.arrived, self._arrived)]
        with self.adaptation.deciding():
            self.profiler.complete(complete, arrived, self._requests)
            self.reoptimizer.complete = complete
            self.adaptation.reconsider(instant)
            for i, configurations in enumerate(self._join.index.configurations):
                if len(configurations) > 1:
                    self._join.migrate(i, ())
        self._requests, self._arrived = [0] * self._n, list(self._watch.arrived)
        self._size = min(2 * self._size, self._window)

    def notice(self, shares_have_shifted: bool, work_changed_by: float) -> None:
        """See `Adapting.notice`: the schedule looks at the requests itself."""

    def describe(self) -> tuple[str, ...]:
        """A line for each input."""
        executor, configurations = self.executor, self._join.index.configurations
        told = []
        for j, each in enumerate(executor.plan):
            others = len(configurations[j]) - 1
            told.append(f"index of {executor.names[j]}: {executor.index_text(j, each)}")
            if others > 0:
                told[-1] += f", {others} earlier"
        return tuple(told)
