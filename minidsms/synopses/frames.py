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


class Frames:
    """is_text: the argument's words are codes."""

    def __init__(self, is_text: bool) -> None:
        self._is_text = is_text
        self.partitions: Int64Array = np.zeros((0, kernels.FIELDS), np.int64)
        self._rows: Int64Array = np.zeros((_FIRST_ROWS, kernels.ROW_WORDS), np.int64)
        self._figures: Int64Array = np.zeros(kernels.FIGURES, np.int64)
        self._cursor: Int64Array = np.zeros(kernels.CURSOR_SIZE, np.int64)
        self._reserve(_FEWEST)

    def _reserve(self, n: int) -> None:
        self._moves = kernels.Moves(
            np.empty(n, np.int64), np.empty(n, np.int8), np.empty(n, np.int8), np.empty(n, np.int64),
            np.empty(n, np.int8),
        )  # fmt: skip

    def __len__(self) -> int:
        """How many rows are kept."""
        return self._figures.item(kernels.HELD)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.partitions.nbytes + self._rows.nbytes

    def resize(self, capacity: int) -> None:
        """Room for all ids below capacity."""
        missing = capacity - len(self.partitions)
        if missing > 0:
            self.partitions = np.concatenate([self.partitions, np.zeros((missing, kernels.FIELDS), np.int64)])

    def begin(self, n: int) -> None:
        """So many rows are about to slide."""
        self._cursor.fill(0)
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
            self._pack(2 * cursor.item(kernels.NEEDED))
        return cursor.item(kernels.NEXT), cursor.item(kernels.WRITTEN)

    def moved(self, n: int) -> kernels.Moves:
        """The elements for aggregates that the last call has written; good until the next one."""
        ids, sign, weight, words, valid = self._moves
        return kernels.Moves(ids[:n], sign[:n], weight[:n], words[:n], valid[:n])

    def settle(self) -> None:
        """Give memory back where most of it is free."""
        if len(self._rows) > _WORTH_SHRINKING and 16 * self._spread < len(self._rows):
            self._pack(0)

    @property
    def _spread(self) -> int:
        """Rows that rings need, half of them at least."""
        return len(self) + self._figures.item(kernels.RINGS)

    def _pack(self, more: int) -> None:
        """All rings anew, with room for one of so many more rows."""
        at_most = 2 * self._spread + more
        packed: Int64Array = np.zeros((max(_FIRST_ROWS, 1 << (2 * at_most).bit_length()), kernels.ROW_WORDS), np.int64)
        kept = kernels.FrameRows(self.partitions, self._rows, self._figures)
        self._figures[kernels.USED] = kernels.pack(kept, packed)
        self._rows = packed

    def arrays(self) -> dict[str, AnyArray]:
        """The state; it is packed."""
        self._pack(0)
        are_used = self.partitions[:, kernels.COME] > 0
        return {"partitions": self.partitions[are_used], "rows": self._rows[: self._figures[kernels.USED]].copy()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        self.partitions = np.array(state["partitions"], np.int64, order="C")
        rows = np.array(state["rows"], np.int64, order="C")
        self._rows = rows.reshape(-1, kernels.ROW_WORDS)
        held = self.partitions[:, kernels.COME] - self.partitions[:, kernels.GONE]
        self._figures[:] = (len(self._rows), held.sum(), np.count_nonzero(self.partitions[:, kernels.SIZE]))
        self._pack(0)

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held (0 stands for NULL)."""
        if self._is_text:
            self._pack(0)
            yield self._rows[:, 0]
            yield self.partitions[:, kernels.WORD]
