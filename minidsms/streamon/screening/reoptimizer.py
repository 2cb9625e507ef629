"""When a sequence is arranged anew, and into which. Lee and Lee 2012, section 5.2.

Every `rearrange_period` rows (lambda) the share of rows dropped is compared with what it was when the sequence was
chosen; it is arranged anew where the two differ by `rearrange_threshold` (mu) of the former. Where that was 0 any
drop is a change. The paper adopts what it arranges; `auto` adopts the better of the macro- and the hybrid-sequence only
where the rows remembered say that it looks at fewer columns, for greedy arranging may lose.
"""

from __future__ import annotations

from random import Random

from minidsms.screens.level import Level
from minidsms.screens.sequence import Sequence
from minidsms.streamon.framework import Proposal
from minidsms.streamon.screening.arranging import hybrid_sequence, looked_at, macro_sequence
from minidsms.streamon.screening.executor import SequenceExecutor
from minidsms.streamon.screening.profiler import RegionProfiler
from minidsms.streamon.stream_monitor import SettingValues

_LEAST_ROWS = 8
"""Rows on which `auto` rests an arrow."""
_WORTH = 0.05
"""Share of the columns that `auto` wants to save."""


class SequenceReoptimizer:
    """`screening`: auto, macro, hybrid, ticket; written keeps the columns as they stand."""

    def __init__(self, settings: SettingValues, executor: SequenceExecutor, profiler: RegionProfiler) -> None:
        self._settings = settings
        self._executor = executor
        self._profiler = profiler
        self._rng = Random(settings["seed"])
        self._initial: float | None = None
        self._mark = (0, 0)
        self._of: Level | None = None

    def propose(self) -> Proposal[Sequence] | None:
        level, mode = self._executor.level, self._settings["screening"]
        if level is None or len(level.constructs.columns) < 2:
            return None
        if level is not self._of:
            self._of, self._initial, self._mark = level, None, (level.rows, level.dropped)
            return None
        if mode == "ticket":
            return Proposal(self._drawn(level), "ticket: drawn", None)
        rows, dropped = level.rows - self._mark[0], level.dropped - self._mark[1]
        if rows < self._settings["rearrange_period"]:
            return None
        ratio = dropped / rows
        self._mark = level.rows, level.dropped
        initial, threshold = self._initial, self._settings["rearrange_threshold"]
        if initial is not None and abs(ratio - initial) < threshold * initial + (initial == 0) * 1e-12:
            return None
        self._initial = ratio
        return None if mode == "written" else self._arranged(level, mode, initial, ratio)

    def _arranged(self, level: Level, mode: str, before: float | None, ratio: float) -> Proposal[Sequence] | None:
        window = self._profiler.window
        if not window.shape[1]:
            return None
        constructs, present = level.constructs, level.sequence
        plan = macro_sequence(constructs, [window])
        if mode != "macro":
            least = _LEAST_ROWS if mode == "auto" else 1
            hybrid = hybrid_sequence(constructs, plan, [window], least)
            plan = hybrid if mode == "hybrid" else min(plan, hybrid, key=lambda s: looked_at(constructs, s, window))
        cost, now = looked_at(constructs, plan, window), looked_at(constructs, present, window)
        gain = 1 - cost / now if now else 0.0
        if mode == "auto" and gain < _WORTH:
            return None
        was = "" if before is None else f"{before:.2f} -> "
        return Proposal(plan, f"{mode}: dropping ratio {was}{ratio:.2f}", gain)

    def _drawn(self, level: Level) -> Sequence:
        """Columns by lottery: a ticket for every row taken, one back for every row returned (Avnur 2000)."""
        tickets = [1 + int(level.counts[1][c]) for c in range(len(level.constructs.columns))]
        left = list(range(len(tickets)))
        order = []
        while left:
            chosen = self._rng.choices(left, [tickets[c] for c in left])[0]
            order.append(chosen)
            left.remove(chosen)
        return Sequence(tuple(order))

    def adopt(self, plan: Sequence) -> None:
        """Its dropping ratio is to be measured anew."""
        level = self._executor.level
        if level is not None:
            self._mark = level.rows, level.dropped
