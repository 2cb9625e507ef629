"""The rows of a relation by partition, in order, for what OVER computes of frames.

Where rows come in order and no frame has a beginning, a partition carries behind its fields what its aggregate has of
rows that have passed.  `kernels.sorted_frames`; docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minidsms.aggregates.over import NEIGHBOURS, Frame, OverCall
from minidsms.elements import Int64Array, Schema
from minidsms.kernels import sorted_frames
from minidsms.kernels import sorted_partitions as kernels
from minidsms.synopses.frames import as_unsigned
from minidsms.synopses.object_states import Texts
from minidsms.synopses.sorted_partitions import FARTHEST, SortedPartitions, kind_of

_OF_FRAMES = ("count", "sum", "avg", "sum_decimal", "min", "max", "nth_value", "last_value")


class FramedPartitions(SortedPartitions):
    """As its base; the call is of a frame, or LAG or LEAD."""

    def __init__(self, schema: Schema, call: OverCall, at_most: int | None, keeps: int, texts: Texts) -> None:
        self._frame = frame_of(call, schema, keeps)
        self._carries_codes = self._frame.carries and call.arg is not None and schema.types[call.arg].is_coded
        self._fields = kernels.FIELDS + (sorted_frames.STATE_SIZE if self._frame.carries else 0)
        super().__init__(schema, call, at_most, keeps, texts)

    def _compared(self, call: OverCall) -> Sequence[int]:
        if call.arg is None or not (call.function in ("min", "max") or call.sums_decimals):
            return ()
        return (call.arg,)

    def _reserve(self, n: int) -> None:
        super()._reserve(n)
        self._sliding = sorted_frames.Sliding(
            np.zeros(sorted_frames.STATE_SIZE, np.int64), np.empty(sorted_frames.STATE_SIZE, np.int64),
            np.empty(n, np.int64), np.empty((n + 1, sorted_frames.SPAN_WORDS), np.int64),
        )  # fmt: skip

    def _change(self, work: kernels.Work, cursor: kernels.ChangeCursor) -> int:
        return sorted_frames.change_frames(work, self._frame, self._sliding, cursor)

    def _tell(self, work: kernels.Work) -> int:
        return sorted_frames.tell_frames(work, self._frame, self._sliding)

    # ---------------------------------------------------------------------------------------------------------- texts

    def _carried_codes(self) -> Int64Array:
        codes: Int64Array = np.zeros(0, np.int64)
        return self._carried()[:, sorted_frames.WORD] if self._carries_codes else codes

    def _held_codes(self) -> Int64Array:
        return np.concatenate([super()._held_codes(), self._carried_codes()])

    def live_codes(self) -> Iterator[Int64Array]:
        yield from super().live_codes()
        if self._carries_codes:
            yield self._carried_codes()


def frame_of(call: OverCall, schema: Schema, keeps: int) -> sorted_frames.FrameOf:
    """LAG and LEAD are of a frame of one row."""
    frame, nth, function = call.frame, call.distance or 0, call.function
    if function in NEIGHBOURS:
        away = min(nth, FARTHEST) if function == "lead" else -min(nth, FARTHEST)
        frame, nth = Frame(False, away, away), 1
    if function in (*NEIGHBOURS, "first_value"):
        function, nth = "nth_value", 1
    place = sorted_frames.OF_GROUPS
    if call.slides or not call.is_aggregate:
        place = _OF_FRAMES.index(call.aggregate if call.sums_decimals else function)
    kind = kernels.WORDS if call.arg is None else kind_of(schema.types[call.arg])
    start, end = frame.start or 0, frame.end or 0
    return sorted_frames.FrameOf(
        place,
        kind,
        min(nth, FARTHEST),
        -1 if call.default is None else call.default,
        frame.by_value,
        frame.start is not None,
        frame.end is not None,
        _distance(frame, start),
        _distance(frame, end),
        1 if start > 0 else -1,
        1 if end > 0 else -1,
        _distance(frame, frame.reach),
        keeps == kernels.KEEPS_LAST and frame.start is None and function != "last_value",
    )


def _distance(frame: Frame, distance: int) -> int:
    return as_unsigned(abs(distance)) if frame.by_value else max(-FARTHEST, min(distance, FARTHEST))
