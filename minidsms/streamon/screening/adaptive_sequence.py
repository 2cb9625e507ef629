"""One screen's sequence: executor, profiler and re-optimizer in StreaMon's framework. Babu 2005, section 3.1."""

from __future__ import annotations

from minidsms.elements import BoolArray, Int64Array
from minidsms.screens.level import Level
from minidsms.screens.screening import Screening
from minidsms.streamon.loop import Loop
from minidsms.streamon.screening.arranging import Window
from minidsms.streamon.screening.executor import ScreenPlan, SequenceExecutor
from minidsms.streamon.screening.profiler import RegionProfiler
from minidsms.streamon.screening.reoptimizer import SequenceReoptimizer
from minidsms.streamon.stream_monitor import StreaMon

TICKETS = 1024
"""Rows for which an order is drawn by lottery."""


class AdaptiveSequence:
    """See `LookUps`. operator: how the plan log names the screen.  names: the producer's columns."""

    def __init__(self, screening: Screening, streamon: StreaMon, operator: str, names: tuple[str, ...]) -> None:
        self._screening = screening
        self._executor = SequenceExecutor(names)
        self._profiler = RegionProfiler(screening.settings["rearrange_period"])
        reoptimizer = SequenceReoptimizer(screening, self._executor, self._profiler)
        self.adaptation: Loop[ScreenPlan] = Loop(
            "screening", operator, self._executor, self._profiler, reoptimizer, streamon
        )

    @property
    def _mode(self) -> str:
        return str(self._screening.settings["screening"])

    @property
    def window(self) -> Window:
        """The regions of the rows remembered."""
        return self._profiler.window

    def take(self, level: Level | None) -> None:
        self._executor.take(level)

    def limit(self, rows: int) -> int:
        """How many rows may pass before the sequence must be looked at."""
        rows = self.adaptation.limit(rows)
        return min(rows, TICKETS) if self._mode == "ticket" else rows

    def passed(self, keys: Int64Array, present: BoolArray, instant: int) -> None:
        level = self._executor.level
        if level is None:
            return
        if self.adaptation.is_free and self._mode != "written":
            self._profiler.observe(level, keys, present)
        self.adaptation.passed(keys.shape[1], instant)
        if self._mode != "auto" or self._is_affordable(level):
            with self.adaptation.deciding():
                self.adaptation.reconsider(instant)

    def _is_affordable(self, level: Level) -> bool:
        """Arranging has taken no more than its share of the screen's time; costs are counted in columns, not in it."""
        loop = self.adaptation
        return not loop.measures_time or loop.decided_ns < loop.budget.share * level.time_ns
