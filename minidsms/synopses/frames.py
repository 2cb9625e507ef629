"""What OVER keeps of a stream: of each partition its rows from the first of the frame on, and how many there were.

Invariant: ids of partitions are those of the groups beside it; no partition is ever forgotten. `kernels.frames` draws
the arrays.  docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from minidsms.aggregates.over import PLACES, OverCall
from minidsms.elements import AnyArray, Int8Array, Int64Array
from minidsms.kernels import frames as kernels
from minidsms.machine_code import rows_from, rows_of, words_of

_FIRST_ROWS = 64
_WORTH_SHRINKING = 4096
_FEWEST, _MOST = 64, 1 << 13
"""Elements for aggregates that stand in the caches together."""
_FARTHEST = 1 << 62
"""As many rows away are none."""


def asked(call: OverCall) -> kernels.FrameAsked:
    """The frame of a call that looks at no row behind a row; LAG is the last value of a frame of one row."""
    if call.function == "lag":
        distance = min(call.distance or 0, _FARTHEST)
        return kernels.FrameAsked(False, distance, distance, False, kernels.LAST)
    frame = call.frame
    assert frame.end is not None
    back, ahead = -(frame.start or 0), -frame.end
    if frame.by_value:
        back, ahead = as_unsigned(back), as_unsigned(ahead)
    else:
        back, ahead = min(back, _FARTHEST), min(ahead, _FARTHEST)
    place = kernels.AGGREGATE
    if call.function in PLACES:
        of_first = {"first_value": 1, "last_value": kernels.LAST}
        place = of_first.get(call.function, min(call.distance or 0, _FARTHEST))
    return kernels.FrameAsked(frame.by_value, back, ahead, frame.start is None, place)


def as_unsigned(n: int) -> int:
    """A distance between instants, up to 2^64 - 1, as the kernel takes it."""
    n = min(n, (1 << 64) - 1)
    return n - (1 << 64) if n >= 1 << 63 else n


def room_for_moves(n: int) -> kernels.Moves:
    ids, stamps, numbers, words = np.empty((4, n), np.int64)
    sign, weight, valid = np.empty((3, n), np.int8)
    return kernels.Moves(ids, stamps, numbers, sign, weight, words, valid)


def first_moves(moves: kernels.Moves, n: int) -> kernels.Moves:
    """The first n of them."""
    ids, stamps, numbers, sign, weight, words, valid = moves
    return kernels.Moves(ids[:n], stamps[:n], numbers[:n], sign[:n], weight[:n], words[:n], valid[:n])


class Frames:
    """is_text: the argument's words are codes."""

    def __init__(self, is_text: bool) -> None:
        self._is_text = is_text
        self.partitions = rows_of(kernels.FramePartition, 0)
        self._rows = rows_of(kernels.FrameRow, _FIRST_ROWS)
        self._figures = kernels.FrameFigures()
        self._cursor = kernels.FrameCursor()
        self._reserve(_FEWEST)

    def _reserve(self, n: int) -> None:
        self._moves = room_for_moves(n)

    def __len__(self) -> int:
        """How many rows are kept."""
        return self._figures.held

    @property
    def nbytes(self) -> int:
        return self.partitions.nbytes + self._rows.nbytes

    def resize(self, capacity: int) -> None:
        """Room for all ids below capacity."""
        if capacity > len(self.partitions):
            fewer, self.partitions = self.partitions, rows_of(kernels.FramePartition, capacity)
            self.partitions[: len(fewer)] = fewer

    def begin(self, n: int) -> None:
        """So many rows are about to slide."""
        self._cursor = kernels.FrameCursor()
        room = len(self._moves.ids)
        if room < min(3 * n, _MOST):
            self._reserve(min(1 << (3 * n).bit_length(), _MOST))

    def slide(
        self, arriving: kernels.Arriving, frame: kernels.FrameAsked, answers: Int64Array, told: Int8Array
    ) -> tuple[int, int]:
        """Let more rows arrive, as the kernel says; how many are done, and how many elements have been written."""
        cursor = self._cursor
        kept = kernels.FrameRows(self.partitions, self._rows, self._figures)
        if kernels.slide(arriving, frame, kept, self._moves, answers, told, cursor) == kernels.RINGS_FULL:
            self._pack(2 * cursor.needed)
        return cursor.next, cursor.written

    def moved(self, n: int) -> kernels.Moves:
        """The elements for aggregates that the last call has written; good until the next one."""
        return first_moves(self._moves, n)

    def settle(self) -> None:
        """Give memory back where most of it is free."""
        if len(self._rows) > _WORTH_SHRINKING and 16 * self._spread < len(self._rows):
            self._pack(0)

    @property
    def _spread(self) -> int:
        """Rows that rings need, half of them at least."""
        return len(self) + self._figures.rings

    def _pack(self, more: int) -> None:
        """All rings anew, with room for one of so many more rows."""
        at_most = 2 * self._spread + more
        packed = rows_of(kernels.FrameRow, max(_FIRST_ROWS, 1 << (2 * at_most).bit_length()))
        kept = kernels.FrameRows(self.partitions, self._rows, self._figures)
        self._figures.used = kernels.pack(kept, packed)
        self._rows = packed

    def arrays(self) -> dict[str, AnyArray]:
        """The state; it is packed."""
        self._pack(0)
        partitions, rows = self.partitions[self.partitions["come"] > 0], self._rows[: self._figures.used]
        return {"partitions": words_of(partitions), "rows": words_of(rows).copy()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self.partitions = rows_from(kernels.FramePartition, np.array(state["partitions"], np.int64))
        self._rows = rows_from(kernels.FrameRow, np.array(state["rows"], np.int64).reshape(-1, 3))
        held = self.partitions["come"] - self.partitions["gone"]
        rings = np.count_nonzero(self.partitions["size"])
        self._figures = kernels.FrameFigures(len(self._rows), int(held.sum()), rings)
        self._pack(0)

    def live_codes(self) -> Iterable[Int64Array]:
        if self._is_text:
            self._pack(0)
            yield self._rows["word"]
            yield self.partitions["word"]
