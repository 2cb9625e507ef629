"""When a screen's plan is arranged anew, and into which. Lee and Lee 2012, section 5.2.

Every `rearrange_period` rows (lambda) the share of rows dropped is compared with what it was when the sequence was
chosen; it is arranged anew where the two differ by more than `rearrange_threshold` (mu) of the larger one, the paper
says of the former. The paper adopts what it arranges; `auto` adopts the better of the macro- and the
hybrid-sequence only where the rows remembered say that it looks at fewer columns, for greedy arranging may lose.

Of home lists the words looked at are compared. Every box goes where it admits fewest of the rows remembered: one half
of them tells where, the other what it saves, and `auto` waits until what it would have saved pays for new tables.
"""

from __future__ import annotations

from random import Random

import numpy as np

from minidsms.screens.asc import Constructs
from minidsms.screens.homes import HomeLists
from minidsms.screens.level import Level
from minidsms.screens.screening import Screening
from minidsms.screens.sequence import Sequence
from minidsms.streamon.change_detection.usual import Tolerance, Usual
from minidsms.streamon.framework import Proposal
from minidsms.streamon.screening.arranging import Window, hybrid_sequence, looked_at, macro_sequence
from minidsms.streamon.screening.executor import ScreenPlan, SequenceExecutor
from minidsms.streamon.screening.profiler import RegionProfiler

_LEAST_ROWS = 8
"""Rows on which `auto` rests an arrow."""
_WORTH = 0.05
"""Share of the columns that `auto` wants to save, of home lists of the boxes met."""
_EVENLY = 32
"""Rows that are taken to lie in all regions of a column alike, beside those remembered."""


class SequenceReoptimizer:
    """`screening`: auto, macro, hybrid, ticket; written goes back to the columns as they stand."""

    def __init__(self, screening: Screening, executor: SequenceExecutor, profiler: RegionProfiler) -> None:
        self._screening = screening
        self._executor = executor
        self._profiler = profiler
        self._rng = Random(screening.settings["seed"])
        self._usual: Usual | None = None
        self._is_asked = False
        self._mark = 0
        self._of: Level | None = None

    def propose(self) -> Proposal[ScreenPlan] | None:
        level, mode = self._executor.level, str(self._screening.settings["screening"])
        if level is None or len(level.domains.columns) < 2:
            return None
        if level is not self._of:
            self._begin(level)
            return None
        if mode == "ticket":
            return (
                None if isinstance(level.constructs, HomeLists) else Proposal(self._drawn(level), "ticket: drawn", None)
            )
        if mode == "written" and isinstance(level.constructs, Constructs):
            written = Sequence(tuple(range(len(level.domains.columns))))
            return None if level.plan == written else Proposal(written, "written: as declared", None)
        if level.rows - self._mark < self._screening.settings["rearrange_period"]:
            return None
        self._mark = level.rows
        self._is_asked = self._has_changed(level) or self._is_asked
        if not self._is_asked or mode == "written" or not self._profiler.window.shape[1]:
            return None
        if isinstance(level.constructs, HomeLists):
            return self._moved(level, level.constructs, mode)
        self._is_asked = False
        return self._arranged(level, level.constructs, mode)

    def _begin(self, level: Level) -> None:
        """Another level is the first."""
        settings = self._screening.settings
        threshold = Tolerance(relative=settings["rearrange_threshold"])
        self._usual = Usual(threshold, settings["rearrange_period"])
        self._of, self._mark, self._is_asked = level, level.rows, False
        self._has_changed(level)

    def _has_changed(self, level: Level) -> bool:
        """Rows are dropped, or words looked at, in another share than they were, or nobody knows yet."""
        assert self._usual is not None
        has_homes = isinstance(level.constructs, HomeLists)
        condition = level.plan if has_homes else None
        is_first = not self._usual.is_known(condition)
        counts = level.words if has_homes else level.dropped
        has_changed = self._usual.change(condition, (counts,), (level.rows,)) > 0
        return is_first or (has_changed and self._screening.settings["change_detection"] != "off")

    def _arranged(self, level: Level, constructs: Constructs, mode: str) -> Proposal[ScreenPlan] | None:
        window, present = self._profiler.window, level.plan
        assert isinstance(present, Sequence)
        plan = macro_sequence(constructs, [window])
        if mode != "macro":
            least = _LEAST_ROWS if mode == "auto" else 1
            hybrid = hybrid_sequence(constructs, plan, [window], least)
            plan = hybrid if mode == "hybrid" else min(plan, hybrid, key=lambda s: looked_at(constructs, s, window))
        cost, now = looked_at(constructs, plan, window), looked_at(constructs, present, window)
        gain = 1 - cost / now if now else 0.0
        if mode == "auto" and gain < _WORTH:
            return None
        return Proposal(plan, f"{mode}: dropping ratio {level.dropped / level.rows:.2f}", gain)

    def _moved(self, level: Level, lists: HomeLists, mode: str) -> Proposal[ScreenPlan] | None:
        window = self._profiler.window
        plan = lists.best(_weights(level, window[:, ::2]))
        others = _weights(level, window[:, 1::2])
        now, cost = lists.candidates(lists.homes, others), lists.candidates(plan, others)
        gain = 1 - cost / now if now else 0.0
        if mode == "auto" and gain >= _WORTH and not self._pays(level, gain):
            return None
        self._is_asked = False
        if mode == "auto" and gain < _WORTH:
            return None
        return Proposal(plan, f"{mode}: a row meets {cost:,.0f} filters at home, not {now:,.0f}", gain)

    def _pays(self, level: Level, gain: float) -> bool:
        """What would have been saved until now pays for new tables."""
        return self._screening.settings["cost_model"] != "measured" or gain * level.time_ns > level.built_ns

    def _drawn(self, level: Level) -> Sequence:
        """Columns by lottery: a ticket for every row taken, one back for every row returned (Avnur 2000)."""
        tickets = [1 + int(level.counts[1][c]) for c in range(len(level.domains.columns))]
        left = list(range(len(tickets)))
        order = []
        while left:
            chosen = self._rng.choices(left, [tickets[c] for c in left])[0]
            order.append(chosen)
            left.remove(chosen)
        return Sequence(tuple(order))

    def adopt(self, plan: ScreenPlan) -> None:
        """What it drops or looks at is to be measured anew."""
        level = self._executor.level
        if level is not None:
            self._mark = level.rows


def _weights(level: Level, window: Window) -> np.ndarray:
    """Of every region: the rows remembered there, and a few that lie in all regions of a column alike."""
    sizes = np.diff(level.domains.first)
    counted: np.ndarray = np.bincount(window.ravel(), minlength=level.domains.size)
    return counted + np.repeat(_EVENLY / sizes, sizes)
