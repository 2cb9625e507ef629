"""The rows of a relation by partition, in order, for aggregates of frames that states of groups give.

The states have one group, which is empty between portions of changes.  `kernels.frame_moves`; docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from minidsms.aggregates.over import OverCall
from minidsms.elements import Int64Array, Schema
from minidsms.kernels import frame_moves
from minidsms.kernels import sorted_partitions as kernels
from minidsms.kernels.aggregation import FAILED
from minidsms.kernels.sorted_frames import SPAN_WORDS
from minidsms.synopses.framed_partitions import frame_of
from minidsms.synopses.frames import first_moves, room_for_moves
from minidsms.synopses.object_states import Texts
from minidsms.synopses.sorted_partitions import NO_CHANGES, SortedPartitions

if TYPE_CHECKING:
    from minidsms.operators.frame_states import FrameStates

_MOST_MOVES = 1 << 13
"""Elements for aggregates that stand in the caches together."""


class VisitedPartitions(SortedPartitions):
    """As its base. states: of the call, with one group.  keeps: all rows, unless the frame has a beginning."""

    def __init__(
        self, schema: Schema, call: OverCall, at_most: int | None, keeps: int, texts: Texts, states: FrameStates
    ) -> None:
        self._frame = frame_of(call, schema, keeps)
        self._states = states
        super().__init__(schema, call, at_most, keeps, texts)
        self._sums_digits = False

    def _reserve(self, n: int) -> None:
        super()._reserve(n)
        start, end, seen, self._answers = np.empty((4, n), np.int64)
        noted, spans = np.empty((n, frame_moves.NOTED_WORDS), np.int64), np.empty((n + 1, SPAN_WORDS), np.int64)
        figures = frame_moves.VisitFigures()
        self._visits = frame_moves.Visits(self._beside.before, start, end, seen, noted, spans, figures)
        room = min(4 * n, _MOST_MOVES)
        self._moves = room_for_moves(room)

    def _change(self, work: kernels.Work, cursor: kernels.ChangeCursor) -> int:
        status = frame_moves.visit(work, self._frame, self._visits, cursor)
        failed = self._answer()
        if failed is not None:
            cursor.next, status = failed, kernels.OVERFLOWS
        frame_moves.tell(work, self._visits, cursor)
        return status

    def _answer(self) -> int | None:
        """Find the results of all visits; the first change of an instant at which there is one that does not fit, and
        what is noted of it is forgotten.
        """
        visits, beside = self._visits, self._beside
        n, first, cursor = visits.figures.visits, 0, frame_moves.MoveCursor()
        rows, asked, answers = self._rows, self._asked, self._answers
        while not cursor.is_done:
            moved = frame_moves.move_frames(visits, rows, asked, self._moves, answers, cursor)
            if moved:
                found, status = self._states.answers(first_moves(self._moves, moved))
                at, done = answers[first : cursor.next], cursor.next
                beside.results[:, first:done], beside.told[:, first:done] = found[at], status[at]
                first = done
            if self._states.reason:
                beside.told[:, first:n] = FAILED
                break
        self._states.groups.settle(n)
        told = beside.told[0, :n]
        beside.results[:, :n] *= told != 0
        failed = np.flatnonzero(told == FAILED)
        if not len(failed):
            return None
        noted = visits.noted[: visits.figures.noted]
        start: int = noted[noted[:, frame_moves.ARE_END] > failed[0], frame_moves.START].item(0)
        visits.figures.noted = int(np.searchsorted(noted[:, frame_moves.START], start))
        return start

    def present(self) -> kernels.RankedRows:
        if len(self._out.ts) < self.held:
            self._reserve(self.held)
        frame_moves.visit_all(self._work(NO_CHANGES), self._frame, self._visits)
        self._answer()
        n, beside = self._visits.figures.visits, self._beside
        ts, words = np.zeros(n, np.int64), self._rows[beside.before[:n]]
        results, told = beside.results[0, :n].copy(), beside.told[0, :n].copy()
        return kernels.RankedRows(ts, np.ones(n, np.int8), words, results, told, self._out.high[:0])

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._states.groups.nbytes

    def live_codes(self) -> Iterator[Int64Array]:
        yield from super().live_codes()
        yield from self._states.groups.live_codes()
